/*-------------------------------------------------------------------------
 *
 * cursor_query.c
 *	  Questions to a cursor that need no lock, its creation and its end.
 *
 * Looking without the tuple lock is only ever a hint: whoever acts on it advances
 * (cursor.c), which looks again under the lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "core/cursor.h"
#include "core/cursor_state.h"
#include "core/delivery.h"
#include "core/log_merge.h"
#include "core/xid.h"
#include "storage/relset.h"
#include "storage/sequence.h"

/* Invisible entries behind pos that are worth an advance, which jumps over them. */
#define JUMP_WORTH_INVISIBLE	1000

/*
 * hms_cursor_create
 *		Create the cursor of a new incarnation; returns the group's start_id.
 *
 * With from_now, everything that commits after this call's snapshot belongs to
 * the group, ids taken before it included: pos is the last id allocated before the
 * snapshot, and every transaction in progress is pending from id 0, our own included if it has an xid.
 */
int64
hms_cursor_create(const HmsStream *stream, int64 incarnation, bool from_now)
{
	HmsCursor	cursor = {0};
	HmsXidView	xids;
	Snapshot	snapshot;
	int64		start_id;

	if (!from_now)
	{
		hms_cursor_insert(incarnation, NULL, 0);
		return 0;
	}

	start_id = hms_sequence_last(hms_relset()->message_id_seq);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	hms_xid_view(&xids, snapshot);
	UnregisterSnapshot(snapshot);
	hms_pending_add_undecided(&cursor, &xids, 0);
	if (xids.own != 0)
	{
		HmsXidView	own = {.own = 0,.xmax = xids.own,.next = xids.own + 1,.offset = xids.offset};

		hms_pending_add_undecided(&cursor, &own, 0);
	}
	hms_cursor_insert(incarnation, cursor.pending, cursor.npending);
	return start_id;
}

bool
hms_cursor_peek(const HmsGroup *group, Snapshot snapshot, HmsCursor *cursor)
{
	Relation	rel = table_open(hms_relset()->cursor_rel, AccessShareLock);
	HmsScan		scan;
	bool		found = hms_cursor_find(rel, group->incarnation, snapshot, &scan);

	if (found)
		hms_cursor_decode(group, scan.slot, snapshot, cursor);
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
	return found;
}

/* True when a decided run of a pending entry has a visible message of the stream. */
static bool
run_has_message(const HmsStream *stream, HmsLogView *view, HmsLogWalk *walk,
				Snapshot snapshot, HmsXid from, HmsXid to, int64 after,
				const HmsCursor *cursor)
{
	while (from < to)
	{
		HmsXid		xid = to - from == 1 ? from : hms_log_next_xid(view, snapshot, from, to);
		TupleTableSlot *slot;

		if (xid == to)
			return false;
		hms_log_walk_xid(walk, xid, after, hms_cursor_highest_pos(cursor));
		while ((slot = hms_log_walk_next(walk)) != NULL)
		{
			int			level = DatumGetInt16(hms_log_column(slot, HMS_LOG_PRIORITY));

			if (DatumGetInt64(hms_log_column(slot, HMS_LOG_ID)) <= cursor->pos[level])
				return true;
		}
		from = xid + 1;
	}
	return false;
}

/* True when some pending transaction that 'xids' sees decided owes a message. */
static bool
pending_has_message(const HmsStream *stream, const HmsCursor *cursor, HmsLogView *view,
					Snapshot snapshot, HmsXidView *xids)
{
	HmsLogWalk *walk = hms_log_xid_walk_begin(stream, view, snapshot);
	bool		found = false;

	for (int i = 0; i < cursor->npending && !found; i++)
	{
		const HmsPending *entry = &cursor->pending[i];
		HmsXid		from = entry->from;

		while (from < entry->to && !found)
		{
			bool		decided;
			HmsXid		end = hms_xid_run(xids, from, entry->to, &decided);

			found = decided &&
				run_has_message(stream, view, walk, snapshot, from, end,
								entry->after, cursor);
			from = end;
		}
	}
	hms_log_walk_end(walk);
	return found;
}

/* True when there is a visible message behind a level's pos, or so many invisible ones that a jump pays. */
static bool
level_has_message(const HmsStream *stream, const HmsCursor *cursor, HmsLogView *view,
				  Snapshot snapshot, int level, Size *first_bytes)
{
	HmsLogWalk *walk = hms_log_walk_begin(stream, view, snapshot, level, cursor->pos[level],
										  PG_INT64_MAX, ForwardScanDirection);
	TupleTableSlot *slot = hms_log_walk_next(walk);
	bool		found = slot != NULL;

	if (found && *first_bytes == 0)
	{
		HmsMessage	message;

		hms_log_copy_message(slot, &message);
		*first_bytes = hms_message_bytes(&message);
	}
	if (hms_log_walk_invisible(walk) >= JUMP_WORTH_INVISIBLE)
		found = true;
	hms_log_walk_end(walk);
	return found;
}

/* The lowest 'after' among the pending entries and pos. */
static int64
lowest_after(const HmsStream *stream, const HmsCursor *cursor)
{
	int64		low = cursor->pos[0];

	for (int level = 1; level < stream->levels; level++)
		low = Min(low, cursor->pos[level]);
	for (int i = 0; i < cursor->npending; i++)
		low = Min(low, cursor->pending[i].after);
	return low;
}

/* The levels of which the log has a message, as bits. */
static uint32
levels_with_message(const HmsStream *stream, const HmsCursor *cursor, HmsLogView *view,
					Snapshot snapshot, Size *first_bytes)
{
	uint32		levels = 0;

	for (int level = stream->levels - 1; level >= 0; level--)
	{
		if (level_has_message(stream, cursor, view, snapshot, level, first_bytes))
			levels |= 1 << level;
	}
	return levels;
}

bool
hms_cursor_look(const HmsStream *stream, const HmsGroup *group, HmsCursorWork *work)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	HmsCursor	cursor;

	memset(work, 0, sizeof(*work));
	if (hms_cursor_peek(group, snapshot, &cursor))
	{
		HmsXidView	xids;
		HmsLogView	view;

		hms_xid_view(&xids, snapshot);
		hms_log_view(&view, stream->log_relid, stream->namespace_id,
					 lowest_after(stream, &cursor), PG_INT64_MAX);
		work->levels = levels_with_message(stream, &cursor, &view, snapshot, &work->first_bytes);
		if (work->levels == 0 || stream->levels > 1)
			work->pending = pending_has_message(stream, &cursor, &view, snapshot, &xids);
		hms_log_release(&view);
	}
	UnregisterSnapshot(snapshot);
	return work->levels != 0 || work->pending;
}

bool
hms_cursor_has_work(const HmsStream *stream, const HmsGroup *group)
{
	HmsCursorWork work;

	return hms_cursor_look(stream, group, &work);
}

bool
hms_cursor_owes_leaf(const HmsStream *stream, const HmsCursor *cursor,
					 HmsLogView *one_leaf, Snapshot snapshot)
{
	HmsXidView	xids;
	Size		bytes = 0;

	hms_xid_view(&xids, snapshot);
	return levels_with_message(stream, cursor, one_leaf, snapshot, &bytes) != 0 ||
		pending_has_message(stream, cursor, one_leaf, snapshot, &xids);
}

bool
hms_cursor_passed(const HmsCursor *cursor, int priority, int64 id, HmsXid xid)
{
	if (id > cursor->pos[priority])
		return false;
	for (int i = 0; i < cursor->npending; i++)
	{
		const HmsPending *entry = &cursor->pending[i];

		if (xid >= entry->from && xid < entry->to && id > entry->after)
			return false;
	}
	return true;
}

/* Highest xid of the pending list in every row of a relation with (incarnation, ..., pending). */
HmsXid
hms_cursor_highest_xid(Snapshot snapshot)
{
	Relation	rel = table_open(hms_relset()->cursor_rel, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	HmsXid		highest = -1;

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		HmsGroup	group = {0};
		HmsCursor	cursor;
		bool		isnull;

		group.incarnation = DatumGetInt64(slot_getattr(slot, 1, &isnull));
		hms_cursor_decode(&group, slot, snapshot, &cursor);
		for (int i = 0; i < cursor.npending; i++)
			highest = Max(highest, cursor.pending[i].to - 1);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(rel, AccessShareLock);
	return highest;
}

/* The lowest incarnation above 'after' in a table indexed by it; false if none. */
static bool
next_incarnation(Relation rel, Oid index, Snapshot snapshot, int64 after, int64 *incarnation)
{
	ScanKeyData key;
	HmsScan		scan;
	bool		found;
	bool		isnull;

	hms_key_int8(&key, 1, BTGreaterStrategyNumber, after);
	hms_scan_begin(&scan, rel, index, snapshot, 1, &key);
	found = hms_scan_next(&scan, ForwardScanDirection);
	if (found)
		*incarnation = DatumGetInt64(slot_getattr(scan.slot, 1, &isnull));
	hms_scan_end(&scan);
	return found;
}

/* Delete up to 'limit' rows of one incarnation. */
static int64
delete_incarnation(Relation rel, Oid index, Snapshot snapshot, int64 incarnation, int64 limit)
{
	ScanKeyData key;
	HmsScan		scan;
	int64		deleted = 0;

	hms_key_int8(&key, 1, BTEqualStrategyNumber, incarnation);
	hms_scan_begin(&scan, rel, index, snapshot, 1, &key);
	while (deleted < limit && hms_scan_next(&scan, ForwardScanDirection))
	{
		CHECK_FOR_INTERRUPTS();
		if (hms_delete_row(rel, &scan.slot->tts_tid, snapshot) == HMS_ROW_OK)
			deleted++;
	}
	hms_scan_end(&scan);
	return deleted;
}

static bool
group_has(const HmsGroup *groups, int ngroups, int64 incarnation)
{
	for (int i = 0; i < ngroups; i++)
	{
		if (groups[i].incarnation == incarnation)
			return true;
	}
	return false;
}

static bool
cursor_exists(int64 incarnation, Snapshot snapshot)
{
	Relation	rel = table_open(hms_relset()->cursor_rel, AccessShareLock);
	HmsScan		scan;
	bool		found = hms_cursor_find(rel, incarnation, snapshot, &scan);

	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
	return found;
}

/*
 * Delete rows of one table whose incarnation (first column) no group has; with
 * 'cursors', none of an incarnation whose cursor that snapshot still sees.
 */
static int64
clear_voided_in(Oid relid, Oid index, const HmsGroup *groups, int ngroups,
				Snapshot snapshot, Snapshot cursors, int64 limit)
{
	Relation	rel = table_open(relid, RowExclusiveLock);
	int64		incarnation = PG_INT64_MIN;
	int64		deleted = 0;

	while (deleted < limit && next_incarnation(rel, index, snapshot, incarnation, &incarnation))
	{
		if (group_has(groups, ngroups, incarnation) ||
			(cursors != NULL && cursor_exists(incarnation, cursors)))
			continue;
		deleted += delete_incarnation(rel, index, snapshot, incarnation, limit - deleted);
	}
	table_close(rel, NoLock);
	return deleted;
}

/*
 * hms_cursor_clear_voided
 *		Delete the state of incarnations that no group has.
 *
 * The snapshot is taken before the groups are listed: the rows of a group that is
 * created meanwhile are not seen, and a group that is seen has its rows spared.
 *
 * A reader that began before the group was dropped may hold its cursor, which is
 * skipped then.  The spill goes no earlier than its cursor, so that whoever has the
 * cursor finds it.
 */
int64
hms_cursor_clear_voided(int limit)
{
	const HmsRelset relset = *hms_relset();
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	Snapshot	cursors;
	HmsGroup   *groups;
	int			ngroups = hms_list_groups(0, &groups);
	int64		deleted;

	deleted = clear_voided_in(relset.cursor_rel, relset.cursor_idx,
							  groups, ngroups, snapshot, NULL, limit);
	CommandCounterIncrement();
	cursors = RegisterSnapshot(GetLatestSnapshot());
	deleted += clear_voided_in(relset.spill_rel, relset.spill_idx,
							   groups, ngroups, snapshot, cursors, limit - deleted);
	deleted += clear_voided_in(relset.delivery_rel, relset.delivery_claim_idx,
							   groups, ngroups, snapshot, NULL, limit - deleted);
	UnregisterSnapshot(cursors);
	UnregisterSnapshot(snapshot);
	return deleted;
}
