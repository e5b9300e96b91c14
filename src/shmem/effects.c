/*-------------------------------------------------------------------------
 *
 * effects.c
 *	  What the current transaction owes to shared memory at its end.
 *
 * Everything noted is private to the backend (effect_list.c) until the
 * transaction ends.  At commit, in this order: hints are lowered, so that who
 * looks finds the rows; waiters are woken; counters are added to; cursors are
 * released.  The commit callback neither allocates nor fails.  At abort only
 * cursors and our own waits are let go.  A rolled back subtransaction's
 * effects are forgotten, its due times kept.
 *
 * A prepared transaction's effects are forgotten: its messages are found by
 * the waiters' fallback tick, its counts are missing from the statistics, and
 * what would need a hint to be lowered cannot be prepared.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "debug/debug_point.h"
#include "shmem/async_commit.h"
#include "shmem/effect_list.h"
#include "shmem/effects.h"
#include "shmem/log_slot.h"
#include "shmem/wakeup.h"

static void
note_simple(HmsEffectKind kind, int64 id, int counter, int64 amount)
{
	HmsEffect	effect = {
		.kind = kind,
		.id = id,
		.counter = counter,
		.amount = amount
	};

	hms_effect_note(&effect);
}

/* --- noting ------------------------------------------------------------------- */

/*
 * hms_effects_published
 *		'count' messages of 'bytes' in all were published to a stream.
 */
void
hms_effects_published(int32 stream_id, int count, int64 bytes)
{
	if (count <= 0)
		return;
	note_simple(HMS_EFFECT_WAKE_STREAM, stream_id, 0, count);
	note_simple(HMS_EFFECT_COUNT_STREAM, stream_id, HMS_STREAM_PUBLISHED, count);
	note_simple(HMS_EFFECT_COUNT_STREAM, stream_id, HMS_STREAM_PUBLISHED_BYTES, bytes);
}

/*
 * hms_effects_has_published
 *		True when this transaction published to the stream, and has not
 *		rolled that back.
 */
bool
hms_effects_has_published(int32 stream_id)
{
	return hms_effect_exists(HMS_EFFECT_WAKE_STREAM, stream_id);
}

/*
 * hms_effects_due
 *		A delivery row due at 'due' was written.
 *
 * At commit lowers the hint, and wakes a waiter per row if the lowest is due
 * then, else has the first waiter compute its timer again.
 */
void
hms_effects_due(const HmsHintKey *key, TimestampTz due)
{
	HmsLow	   *low = hms_low_enter(key);

	low->written = Min(low->written, due);
	low->nwritten++;
	hms_effects_refuse_prepare(NULL);
}

/*
 * hms_effects_replaced
 *		A delivery row that was due at 'due' was updated or deleted.
 */
void
hms_effects_replaced(const HmsHintKey *key, TimestampTz due)
{
	HmsLow	   *low = hms_low_enter(key);

	low->replaced = Min(low->replaced, due);
}

/*
 * hms_effects_own_low
 *		The lowest due time noted for the key, DT_NOEND if none.
 */
TimestampTz
hms_effects_own_low(const HmsHintKey *key)
{
	HmsLow	   *low = hms_low_find(key);

	return low ? Min(low->written, low->replaced) : DT_NOEND;
}

/*
 * hms_effects_wake_group
 *		Wake up to 'count' waiters of a group.
 */
void
hms_effects_wake_group(int64 incarnation, int count)
{
	if (count > 0)
		note_simple(HMS_EFFECT_WAKE_GROUP, incarnation, 0, count);
}

/*
 * hms_effects_wake_all
 *		Wake all waiters of a stream, or, unless 0, of one incarnation.
 */
void
hms_effects_wake_all(int32 stream_id, int64 incarnation)
{
	if (incarnation == 0)
		note_simple(HMS_EFFECT_WAKE_STREAM_ALL, stream_id, 0, 1);
	else
		note_simple(HMS_EFFECT_WAKE_GROUP_ALL, incarnation, 0, 1);
}

/*
 * hms_effects_refuse_prepare
 *		This transaction cannot be prepared; 'action' is the name of the
 *		function that is to blame, a constant, or NULL.
 */
void
hms_effects_refuse_prepare(const char *action)
{
	HmsEffect	effect = {
		.kind = HMS_EFFECT_REFUSE_PREPARE,
		.u.action = action
	};

	hms_effect_note(&effect);
}

/*
 * hms_effects_cursor_held
 *		This transaction has locked a group's cursor.
 */
void
hms_effects_cursor_held(HmsGroupSlot *slot, int64 incarnation)
{
	HmsEffect	effect = {
		.kind = HMS_EFFECT_CURSOR,
		.id = incarnation,
		.u.slot = slot
	};

	/* Locked at a higher level it stays locked when this one rolls back. */
	if (hms_effect_exists(HMS_EFFECT_CURSOR, incarnation))
		return;

	hms_effect_note(&effect);
	if (slot)
		hms_cursor_held(slot);
}

/*
 * hms_effects_cursor_place
 *		We have written the cursor's row at this place.
 */
void
hms_effects_cursor_place(HmsGroupSlot *slot, int64 incarnation, const ItemPointerData * tid)
{
	HmsEffect	effect = {
		.kind = HMS_EFFECT_CURSOR_PLACE,
		.id = incarnation,
		.amount = (int64) hms_cursor_place_pack(tid),
		.u.slot = slot
	};

	hms_effect_note(&effect);
}

/*
 * hms_effects_holds_cursor
 *		True when this transaction has the cursor locked.
 */
bool
hms_effects_holds_cursor(int64 incarnation)
{
	return hms_effect_exists(HMS_EFFECT_CURSOR, incarnation);
}

/*
 * hms_effects_count_group, hms_effects_count_stream
 *		Add to a counter at commit.
 */
void
hms_effects_count_group(int32 group_id, HmsGroupCounter counter, int64 n)
{
	note_simple(HMS_EFFECT_COUNT_GROUP, group_id, counter, n);
}

void
hms_effects_count_stream(int32 stream_id, HmsStreamCounter counter, int64 n)
{
	note_simple(HMS_EFFECT_COUNT_STREAM, stream_id, counter, n);
}

/*
 * hms_effects_log_dropped
 *		At commit give back the slot of a log.
 */
void
hms_effects_log_dropped(Oid log_relid)
{
	note_simple(HMS_EFFECT_LOG_DROPPED, log_relid, 0, 0);
}

/* --- the end of the transaction ----------------------------------------------- */

static void
apply_lows(void)
{
	int			nlows;
	const HmsLow *lows = hms_low_list(&nlows);
	TimestampTz now;

	if (nlows == 0)
		return;

	for (int i = 0; i < nlows; i++)
	{
		if (lows[i].written != DT_NOEND)
			hms_hint_lower(&lows[i].key, lows[i].written);
	}

	/* The clock, as the statement's or commit's time may be before a row's. */
	now = HMS_NOW();
	for (int i = 0; i < nlows; i++)
	{
		const HmsHintKey *key = &lows[i].key;

		if (lows[i].written <= now)
			hms_wake_group(key->dboid, key->incarnation, lows[i].nwritten);
		else if (lows[i].written != DT_NOEND)
			hms_wake_timer(key->dboid, key->incarnation, lows[i].written);
	}
}

static void
apply_wakes(const HmsEffect *effects, int neffects)
{
	for (int i = 0; i < neffects; i++)
	{
		const HmsEffect *effect = &effects[i];
		int			count = (int) Min(effect->amount, PG_INT32_MAX);

		switch (effect->kind)
		{
			case HMS_EFFECT_WAKE_STREAM:
				hms_wake_stream(MyDatabaseId, (int32) effect->id, count);
				break;
			case HMS_EFFECT_WAKE_STREAM_ALL:
				hms_wake_stream_all(MyDatabaseId, (int32) effect->id);
				break;
			case HMS_EFFECT_WAKE_GROUP:
				hms_wake_group(MyDatabaseId, effect->id, count);
				break;
			case HMS_EFFECT_WAKE_GROUP_ALL:
				hms_wake_group_all(MyDatabaseId, effect->id);
				break;
			default:
				break;
		}
	}
}

/*
 * Add up the counts of one stream or group at the head of 'effects', pass
 * them on, and return how many records that were.
 */
static int
apply_run_of_counts(const HmsEffect *effects, int neffects)
{
	int64		delta[Max((int) HMS_STREAM_NCOUNTERS, (int) HMS_GROUP_NCOUNTERS)] = {0};
	HmsEffectKind kind = effects[0].kind;
	int64		id = effects[0].id;
	int			n;

	for (n = 0; n < neffects && effects[n].kind == kind && effects[n].id == id; n++)
		delta[effects[n].counter] += effects[n].amount;

	if (kind == HMS_EFFECT_COUNT_STREAM)
		hms_count_stream(MyDatabaseId, (int32) id, delta);
	else
		hms_count_group(MyDatabaseId, (int32) id, delta);
	return n;
}

static void
apply_counts(const HmsEffect *effects, int neffects)
{
	int			i = 0;

	while (i < neffects)
	{
		if (effects[i].kind == HMS_EFFECT_COUNT_STREAM ||
			effects[i].kind == HMS_EFFECT_COUNT_GROUP)
			i += apply_run_of_counts(effects + i, neffects - i);
		else
			i++;
	}
}

/* Tell where the cursors that we have written stand. */
static void
apply_cursor_places(const HmsEffect *effects, int neffects)
{
	for (int i = 0; i < neffects; i++)
	{
		if (effects[i].kind == HMS_EFFECT_CURSOR_PLACE)
			hms_cursor_set_place(effects[i].u.slot, (uint64) effects[i].amount);
	}
}

static void
apply_drops(const HmsEffect *effects, int neffects)
{
	for (int i = 0; i < neffects; i++)
	{
		if (effects[i].kind == HMS_EFFECT_LOG_DROPPED)
			hms_log_slot_forget((Oid) effects[i].id);
	}
}

/* Release the cursors noted in the list from 'first' on. */
static void
release_cursors(int first)
{
	int			neffects;
	const HmsEffect *effects = hms_effect_list(&neffects);

	for (int i = first; i < neffects; i++)
	{
		if (effects[i].kind == HMS_EFFECT_CURSOR && effects[i].u.slot)
			hms_cursor_released(effects[i].u.slot);
	}
}

/*
 * hms_effects_pre_commit
 *		XACT_EVENT_PRE_COMMIT: choose how to commit.
 */
void
hms_effects_pre_commit(void)
{
	hms_async_commit_choose();
}

/*
 * hms_effects_pre_prepare
 *		XACT_EVENT_PRE_PREPARE: raise feature_not_supported when refused.
 */
void
hms_effects_pre_prepare(void)
{
	int			neffects;
	const HmsEffect *effects = hms_effect_list(&neffects);

	for (int i = 0; i < neffects; i++)
	{
		if (effects[i].kind == HMS_EFFECT_REFUSE_PREPARE && effects[i].u.action)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot PREPARE a transaction that has called %s.%s",
							HMS_SCHEMA, effects[i].u.action)));
	}
	if (hms_effect_exists_kind(HMS_EFFECT_REFUSE_PREPARE) ||
		hms_effect_exists_kind(HMS_EFFECT_CURSOR))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has handed out or rescheduled messages")));
}

/*
 * hms_effects_at_commit
 *		XACT_EVENT_COMMIT: the transaction is visible.  Never fails.
 */
void
hms_effects_at_commit(void)
{
	int			neffects;
	const HmsEffect *effects = hms_effect_list(&neffects);

	hms_async_commit_committed();
	apply_lows();
	apply_wakes(effects, neffects);
	apply_counts(effects, neffects);
	apply_cursor_places(effects, neffects);
	apply_drops(effects, neffects);
	release_cursors(0);
	hms_effect_list_reset();
}

/*
 * hms_effects_at_abort
 *		XACT_EVENT_ABORT: let go of cursors and waits.
 */
void
hms_effects_at_abort(void)
{
	hms_async_commit_reset();
	hms_group_slot_at_abort(1);
	hms_wait_leave_all();
	release_cursors(0);
	hms_effect_list_reset();
}

/*
 * hms_effects_at_prepare
 *		XACT_EVENT_PREPARE: forget what another backend would have to do.
 */
void
hms_effects_at_prepare(void)
{
	hms_async_commit_reset();
	hms_effect_list_reset();
}

/*
 * hms_effects_after_locks
 *		After a top-level commit has released its locks.
 */
void
hms_effects_after_locks(void)
{
	hms_async_commit_late_flush();
}

/*
 * hms_effects_at_subcommit
 *		What a subtransaction noted becomes its parent's.
 */
void
hms_effects_at_subcommit(int nest_level)
{
	hms_effect_raise_level(nest_level);
}

/*
 * hms_effects_at_subabort
 *		A subtransaction rolled back: what it noted goes, and its row locks
 *		are gone.
 */
void
hms_effects_at_subabort(int nest_level)
{
	int			first = hms_effect_first_of_level(nest_level);

	hms_group_slot_at_abort(nest_level);
	hms_wait_leave_level(nest_level);
	release_cursors(first);
	hms_effect_truncate(first);
}
