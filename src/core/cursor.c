/*-------------------------------------------------------------------------
 *
 * cursor.c
 *	  Handing out the log without losing a message and without handing one
 *	  out twice.
 *
 * Ids come from a sequence, transactions commit in another order.  A reader that
 * remembers only the last id it saw loses what commits below it later.  So a
 * group's cursor holds
 *
 *		pos		the highest id handed out, one for each priority level, and
 *		pending	entries (xid, after): transactions that were undecided when pos moved;
 *				their messages with after < id <= pos are still owed.
 *
 * An advance, under the tuple lock of the cursor row:
 *
 *	 0. reads L, the last id allocated by the sequence; then takes the snapshot
 *		S; then reads 'next', the first xid not yet assigned.  S is registered and serves all steps.
 *	 1. For each pending entry whose transaction S sees decided: hands out its
 *		messages with after < id <= pos.  When they do not all fit, the entry stays with
 *		after = the last one handed out, and step 2 is not entered.
 *	 2. Walks the messages with id > pos that S sees, in id order; pos follows.  When the walk
 *		met many entries that S does not see and came to the end, pos may jump to L.
 *	 3. If pos moved: adds (xid, old pos) for every xid in S.xip and in [S.xmax, next)
 *		that is not listed, except our own and subtransactions.
 *
 * With several priorities, "pos" below is that of the message's priority, step 2 walks one or
 * all of them, and 'after' in step 3 is the highest of the old pos.  Any of them would do:
 * a transaction that is not listed had not been assigned when the last pos was
 * moved, so that by (P) all its ids are above every pos.  The highest is right for a message
 * that is put back under its old id, too (hms_log_restore).
 *
 * Claim: at every moment, for each message m of the stream (id i, transaction x) exactly one holds:
 *	 (a) m was handed out; (b) i > pos; (c) i <= pos, and pending has an entry of x with
 *	 after < i; (d) x aborted, or m was deleted.
 *
 * Publishers assign x before they take i, the sequence has CACHE 1, and ids are used
 * in the transaction that took them.  So (P): if i <= v for a value v that the sequence had
 * handed out when it was read at time t, then x was assigned before t.
 *
 * Step 2 keeps the claim.  Let pos move from p to p'.  A message with p < i <= p'
 * that S sees was handed out, since the walk is in id order and complete up to p' (or to
 * its end, when p' = L).  One that S does not see is aborted, or x is in S.xip, or x >= S.xmax.  In
 * the last case x < next: p' is an id that S sees or L, in both cases allocated before S was taken, so x was
 * assigned before S by (P), and next was read after S.  So step 3 lists x, or x was listed already with a lower
 * 'after' that still covers i, as the entry's own range was worked off only if x was decided.  Never may p' be the id
 * of an entry that the walk met but does not see: such an id may have been allocated after next was read.
 *
 * Step 1 keeps it: once S sees x decided, all rows x will ever have are visible or never
 * will be; those <= pos above 'after' go out or stay owed through the new 'after'.  Rows above pos are case (b).  This is why a
 * partly drained entry forbids step 2: pos would move over the rest.
 *
 * 'after' starts at the pos before the move because x was not listed: no message of x had been passed
 * before, so each range of ids is accounted once, even if S were stale.
 *
 * Our own transaction is decided for us: what it published is visible to S.  It
 * is never added to pending; when somebody else listed it, its entry is worked off as in step 1, and
 * what it publishes later gets ids above L >= pos.
 *
 * During PREPARE a transaction stands twice in S.xip: xid.c removes duplicates.  xids from
 * before a logical restore are decided (xid.c).
 *
 * Crash: cursor, deliveries and their commit record are WAL in that order; the
 * sequence logs ahead.  Every prefix of the WAL satisfies the claim.  A claim that
 * committed asynchronously and was lost takes its cursor with it.
 *
 * Locks: the cursor row's tuple lock, never waited for here; AccessShareLock on log leaves
 * during the call.  Others wait on the group's slot (read.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/cursor.h"
#include "core/cursor_state.h"
#include "core/delivery.h"
#include "core/log_merge.h"
#include "core/xid.h"
#include "debug/debug_point.h"
#include "portability/instr_time.h"
#include "shmem/effects.h"
#include "storage/relset.h"
#include "storage/sequence.h"

/* Invisible entries met by a walk before pos jumps over them. */
#define JUMP_AFTER_INVISIBLE	64

/* A small advance looks first at this many ids behind pos per message that it wants. */
#define NEAR_IDS				16
#define SMALL_ADVANCE			16

/* A level without messages follows when the others are this many ids ahead. */
#define IDLE_LEVEL_IDS			10000

/* One advance; everything in the caller's memory context. */
typedef struct Advance
{
	const HmsStream *stream;
	const HmsGroup *group;
	TimestampTz now;
	HmsAdvance *adv;
	Snapshot	snapshot;
	int64		last_id;		/* L */
	HmsXidView	xids;
	HmsCursor	cursor;
	bool		any_decided;	/* step 1 has something to do */
	HmsPending *kept;			/* the new pending list */
	int			nkept;
	bool		spill_changed;
	HmsLogView	view;
	HmsLogWalk *xid_walk;		/* NULL until step 1 needs it */
	HmsDeliveryBatch *deliveries;	/* ready and delayed rows to write */
	int			ready_left;
	int			made_ready;		/* rows that step 1 left as ready */
	int64		bytes_left;		/* < 0 = no limit */
	int			rows_left;
	int			rows_met;
	instr_time	started;
	bool		full;			/* the budget or the demand is used up */
} Advance;

/* True when this advance should let go of the cursor. */
static bool
budget_used(Advance *st)
{
	instr_time	elapsed;

	if (st->rows_left <= 0)
		return true;

	/*
	 * The clock is looked at every 64 rows, and not before the first: each
	 * advance gets on.
	 */
	if (++st->rows_met % 64 != 0)
		return false;
	INSTR_TIME_SET_CURRENT(elapsed);
	INSTR_TIME_SUBTRACT(elapsed, st->started);
	return INSTR_TIME_GET_MILLISEC(elapsed) > HMS_ADVANCE_MS;
}

/* Take the message in 'slot' for the caller; false when it does not fit. */
static bool
take_for_caller(Advance *st, TupleTableSlot *slot)
{
	HmsAdvance *adv = st->adv;
	HmsMessage *message = &adv->messages[adv->nmessages];

	hms_log_copy_message(slot, message);
	if (st->bytes_left >= 0)
	{
		int64		bytes = hms_message_bytes(message);

		if (bytes > st->bytes_left && adv->nmessages + adv->have > 0)
		{
			st->bytes_left = 0;
			return false;
		}
		st->bytes_left = Max(st->bytes_left - bytes, 0);
	}
	adv->nmessages++;
	return true;
}

/*
 * Dispose of the visible message in 'slot': lease it to the caller, leave it as a ready
 * or delayed row, or report false when there is no room for it.
 */
static bool
dispose(Advance *st, TupleTableSlot *slot)
{
	bool		isnull;
	TimestampTz deliver_at;

	if (budget_used(st))
		return false;
	st->rows_left--;

	deliver_at = DatumGetTimestampTz(slot_getattr(slot, HMS_LOG_DELIVER_AT, &isnull));
	if (!isnull && deliver_at > st->now)
	{
		hms_delivery_add_due(st->deliveries, slot, deliver_at);
		return true;
	}
	if (st->adv->nmessages < st->adv->want &&
		(st->bytes_left != 0 || st->adv->nmessages + st->adv->have == 0))
	{
		if (take_for_caller(st, slot))
			return true;
	}
	if (st->ready_left > 0)
	{
		st->ready_left--;
		hms_delivery_add_due(st->deliveries, slot, st->now);
		return true;
	}
	return false;
}

/*
 * The same for a message that a pending transaction owes.  Such messages come in the order of
 * their transactions, so where the stream has priorities all of them become ready rows, and
 * are claimed in theirs.
 */
static bool
dispose_owed(Advance *st, TupleTableSlot *slot)
{
	bool		isnull;
	TimestampTz deliver_at;

	if (st->stream->levels == 1)
		return dispose(st, slot);
	if (budget_used(st))
		return false;
	st->rows_left--;

	deliver_at = DatumGetTimestampTz(slot_getattr(slot, HMS_LOG_DELIVER_AT, &isnull));
	if (isnull || deliver_at <= st->now)
	{
		deliver_at = st->now;
		st->made_ready++;
	}
	hms_delivery_add_due(st->deliveries, slot, deliver_at);
	return true;
}

/* True when the next message could not be disposed of: no need to look for it. */
static bool
sated(const Advance *st)
{
	return st->adv->nmessages >= st->adv->want && st->ready_left <= 0;
}

/* Keep a piece of a pending entry for later. */
static void
keep(Advance *st, HmsXid from, HmsXid to, const HmsPending *entry, int64 after)
{
	/* Pieces of one range that touch become one again. */
	if (st->nkept > 0 && from > entry->from)
	{
		HmsPending *last = &st->kept[st->nkept - 1];

		if (last->to == from && last->after == after && last->spilled == entry->spilled)
		{
			last->to = to;
			return;
		}
	}
	st->kept[st->nkept].from = from;
	st->kept[st->nkept].to = to;
	st->kept[st->nkept].after = after;
	st->kept[st->nkept].spilled = entry->spilled;
	st->nkept++;
}

/*
 * Step 1 for one decided transaction: true when all it owes was disposed of; else
 * *after is the last id that was.
 */
static bool
work_off_xid(Advance *st, HmsXid xid, int64 *after)
{
	TupleTableSlot *slot;

	if (st->xid_walk == NULL)
		st->xid_walk = hms_log_xid_walk_begin(st->stream, &st->view, st->snapshot);
	hms_log_walk_xid(st->xid_walk, xid, *after, hms_cursor_highest_pos(&st->cursor));
	while ((slot = hms_log_walk_next(st->xid_walk)) != NULL)
	{
		int64		id = DatumGetInt64(hms_log_column(slot, HMS_LOG_ID));
		int			level = DatumGetInt16(hms_log_column(slot, HMS_LOG_PRIORITY));

		CHECK_FOR_INTERRUPTS();
		if (id <= st->cursor.pos[level] && !dispose_owed(st, slot))
			return false;
		*after = id;
	}
	return true;
}

/* Step 1 for a decided run of xids [from, to) of one entry. */
static void
work_off_run(Advance *st, HmsXid from, HmsXid to, const HmsPending *entry)
{
	while (from < to && !st->full)
	{
		int64		after = entry->after;
		HmsXid		xid = to - from == 1 ? from :
		hms_log_next_xid(&st->view, st->snapshot, from, to);

		if (xid == to)
			return;
		if (!work_off_xid(st, xid, &after))
		{
			st->full = true;
			keep(st, xid, xid + 1, entry, after);
		}
		from = xid + 1;
	}
	if (from < to)
		keep(st, from, to, entry, entry->after);
}

static bool
same_entry(const HmsPending *a, const HmsPending *b)
{
	return a->from == b->from && a->to == b->to && a->after == b->after &&
		a->spilled == b->spilled;
}

/* Step 1; true when the list changed. */
static bool
work_off_pending(Advance *st)
{
	bool		changed;

	/*
	 * An entry is cut only at running xids, at our own, xmax, the offset and
	 * a rest.
	 */
	st->kept = palloc_extended(sizeof(HmsPending) *
							   (2 * ((Size) st->cursor.npending + st->xids.nrunning) + 16),
							   MCXT_ALLOC_HUGE);
	for (int i = 0; i < st->cursor.npending; i++)
	{
		const HmsPending *entry = &st->cursor.pending[i];
		int			first_kept = st->nkept;
		HmsXid		from = entry->from;

		while (from < entry->to)
		{
			bool		decided;
			HmsXid		end = hms_xid_run(&st->xids, from, entry->to, &decided);

			if (decided && !st->full)
				work_off_run(st, from, end, entry);
			else
				keep(st, from, end, entry, entry->after);
			from = end;
		}
		if (entry->spilled &&
			(st->nkept != first_kept + 1 || !same_entry(&st->kept[first_kept], entry)))
			st->spill_changed = true;
	}
	if (st->xid_walk != NULL)
		hms_log_walk_end(st->xid_walk);

	changed = st->nkept != st->cursor.npending;
	for (int i = 0; i < st->nkept && !changed; i++)
		changed = !same_entry(&st->kept[i], &st->cursor.pending[i]);
	st->cursor.pending = st->kept;
	st->cursor.npending = st->nkept;
	return changed;
}

/* Walk on as long as messages can be disposed of; the level's pos follows. */
static void
walk_messages(Advance *st, HmsLogWalk *walk, int level)
{
	TupleTableSlot *slot;

	while ((slot = hms_log_walk_next(walk)) != NULL)
	{
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		if (!dispose(st, slot))
		{
			st->full = true;
			break;
		}
		st->cursor.pos[level] = DatumGetInt64(slot_getattr(slot, HMS_LOG_ID, &isnull));
		if (sated(st))
		{
			st->full = true;
			break;
		}
	}
}

/*
 * Step 2 for one level; true when its pos moved.
 *
 * An index scan collects a whole page of entries before it returns the first,
 * which costs more than all the rest of a small advance.  So that one looks at
 * a few ids only, and walks on when they did not suffice.
 */
static bool
walk_level(Advance *st, int level)
{
	int64		old_pos = st->cursor.pos[level];
	int			demand = st->adv->want + st->ready_left;
	bool		small = demand <= SMALL_ADVANCE;
	HmsLogWalk *walk;

	walk = hms_log_walk_begin(st->stream, &st->view, st->snapshot, level, old_pos,
							  small ? old_pos + NEAR_IDS * demand : PG_INT64_MAX,
							  ForwardScanDirection);
	walk_messages(st, walk, level);
	if (small && !st->full)
	{
		hms_log_walk_on(walk, PG_INT64_MAX);
		walk_messages(st, walk, level);
	}
	if (!st->full && hms_log_walk_invisible(walk) >= JUMP_AFTER_INVISIBLE)
		st->cursor.pos[level] = Max(st->cursor.pos[level], st->last_id);
	hms_log_walk_end(walk);
	return st->cursor.pos[level] != old_pos;
}

/*
 * Let levels that nobody publishes to follow: one that stays far behind would make each
 * look begin in old partitions.  A level without a visible row behind its pos is a walk
 * that came to its end.
 */
static void
follow_idle_levels(Advance *st)
{
	for (int level = 0; level < st->stream->levels; level++)
	{
		HmsLogWalk *walk;

		if (st->last_id - st->cursor.pos[level] <= IDLE_LEVEL_IDS)
			continue;
		walk = hms_log_walk_begin(st->stream, &st->view, st->snapshot, level,
								  st->cursor.pos[level], PG_INT64_MAX, ForwardScanDirection);
		if (hms_log_walk_next(walk) == NULL)
			st->cursor.pos[level] = st->last_id;
		hms_log_walk_end(walk);
	}
}

/* Step 2; true when a pos moved. */
static bool
walk_log(Advance *st)
{
	int			level = st->adv->level;
	bool		moved = false;

	if (level != HMS_ALL_LEVELS)
		moved = walk_level(st, level);
	else
	{
		for (level = st->stream->levels - 1; level >= 0 && !st->full; level--)
			moved = walk_level(st, level) || moved;
	}
	if (moved && st->stream->levels > 1)
		follow_idle_levels(st);
	return moved;
}

/* The lowest id that this advance may need from the log; sets any_decided. */
static int64
lowest_needed(Advance *st)
{
	int64		low = st->cursor.pos[0];

	for (int level = 1; level < st->stream->levels; level++)
		low = Min(low, st->cursor.pos[level]);
	for (int i = 0; i < st->cursor.npending; i++)
	{
		bool		decided;

		(void) hms_xid_run(&st->xids, st->cursor.pending[i].from,
						   st->cursor.pending[i].to, &decided);
		if (decided || st->cursor.pending[i].to - st->cursor.pending[i].from > 1)
		{
			low = Min(low, st->cursor.pending[i].after);
			st->any_decided = true;
		}
	}
	return low;
}

/* Steps 1 to 3 on a locked and decoded cursor; true when its row must be rewritten. */
static bool
advance_locked(Advance *st)
{
	int64		old_pos = hms_cursor_highest_pos(&st->cursor);
	bool		changed;

	hms_log_view(&st->view, st->stream->log_relid, st->stream->namespace_id,
				 lowest_needed(st), PG_INT64_MAX);
	changed = st->any_decided && work_off_pending(st);
	if (st->made_ready > 0)
		st->full = true;
	if (!st->full && walk_log(st))
	{
		hms_pending_add_undecided(&st->cursor, &st->xids, old_pos);
		changed = true;
	}
	hms_log_release(&st->view);
	return changed;
}

/* Step 0 on the row in 'slot', and the rest. */
static void
advance_row(Advance *st, HmsWriter *writer, TupleTableSlot *slot, HmsGroupSlot *group_slot)
{
	HmsAdvance *adv = st->adv;

	st->last_id = hms_sequence_last(hms_relset()->message_id_seq);
	st->snapshot = RegisterSnapshot(GetLatestSnapshot());
	hms_xid_view(&st->xids, st->snapshot);
	hms_cursor_decode(st->group, slot, st->snapshot, &st->cursor);

	if (advance_locked(st))
	{
		HMS_DEBUG_POINT("advance-before-write");
		hms_cursor_save(writer, &slot->tts_tid, st->snapshot, st->group,
						&st->cursor, st->spill_changed);
		if (group_slot != NULL)
			hms_effects_cursor_place(group_slot, st->group->incarnation, &slot->tts_tid);
	}
	adv->nready = hms_delivery_write(st->deliveries, &adv->lowest_due);
	UnregisterSnapshot(st->snapshot);
	adv->result = st->full ? HMS_ADVANCE_MORE : HMS_ADVANCE_NOTHING_LEFT;
	CommandCounterIncrement();
}

/*
 * hms_cursor_advance
 *		Advance a group; see cursor.h.
 *
 * Raises HMS_ERRCODE_UNKNOWN_GROUP when the cursor is gone (the group was dropped).
 */
void
hms_cursor_advance(const HmsStream *stream, const HmsGroup *group, TimestampTz now,
				   HmsAdvance *adv)
{
	Advance		st = {
		.stream = stream,
		.group = group,
		.now = now,
		.adv = adv,
		.ready_left = adv->ready,
		.bytes_left = adv->max_bytes > 0 ? adv->max_bytes : -1,
		.rows_left = HMS_ADVANCE_ROWS
	};
	HmsGroupSlot *group_slot;
	HmsWriter	writer;
	TupleTableSlot *slot;
	HmsRowResult locked;

	/* A large batch may take what it asks for in one go. */
	st.rows_left = Max(st.rows_left, adv->want + adv->ready);
	INSTR_TIME_SET_CURRENT(st.started);
	adv->nmessages = 0;
	adv->nready = 0;
	adv->lowest_due = DT_NOEND;
	adv->messages = palloc(sizeof(HmsMessage) * Max(adv->want, 1));
	st.deliveries = hms_delivery_batch(group);

	hms_writer_open(&writer, hms_relset()->cursor_rel);
	slot = table_slot_create(writer.rel, NULL);
	group_slot = hms_group_slot(hms_relset()->delivery_rel, group->incarnation);
	locked = hms_cursor_lock(writer.rel, group->incarnation, group_slot, slot);

	if (locked == HMS_ROW_GONE)
		ereport(ERROR,
				(errcode(HMS_ERRCODE_UNKNOWN_GROUP),
				 errmsg("consumer group \"%s\" of stream \"%s\" was dropped",
						group->name, stream->name)));
	if (locked == HMS_ROW_BUSY)
		adv->result = HMS_ADVANCE_BUSY;
	else
	{
		if (group_slot != NULL)
			hms_effects_cursor_held(group_slot, group->incarnation);
		HMS_DEBUG_POINT("advance-locked");
		advance_row(&st, &writer, slot, group_slot);
	}
	ExecDropSingleTupleTableSlot(slot);
	hms_writer_close(&writer, false);
}
