/*-------------------------------------------------------------------------
 *
 * tasks_core.c
 *	  Periodic work on groups and state tables.
 *
 * Called by the workers and by maintain(), inside their transaction.  The probes
 * (has work, next due) take no lock and no xid.  Writers never wait: a row or a
 * table that somebody else works on is left for the next time.  A crash loses
 * nothing but the presence noted since the last flush.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "debug/debug_point.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/snapmgr.h"

#include "core/cursor.h"
#include "core/dead_letter.h"
#include "core/delivery.h"
#include "core/log_merge.h"
#include "core/rows.h"
#include "core/tasks_core.h"
#include "shmem/counters.h"
#include "shmem/effects.h"
#include "shmem/hint.h"
#include "storage/due_scan.h"
#include "storage/relset.h"
#include "storage/scan.h"
#include "storage/write.h"

/* Dead letters looked at per row that a call may delete. */
#define EXPIRE_ROWS_PER_DELETE	20
/* Consumers that were not seen for this long are forgotten. */
#define CONSUMER_KEEP_US		(INT64CONST(7) * USECS_PER_DAY)
/* Dead index entries that the search for the next due time passes per priority. */
#define NEXT_DUE_MAX_DEAD		1000

/* --- dead letters ----------------------------------------------------------- */

/* How far the walk over dead_letter has come; it goes on in the next call. */
static int32 expire_group_id = 0;
static int64 expire_id = 0;

/* The group of a dead letter, looked up when it changes. */
typedef struct DeadGroup
{
	bool		valid;
	bool		exists;
	HmsGroup	group;
} DeadGroup;

static bool
is_expired(TupleTableSlot *slot, DeadGroup *current, TimestampTz now)
{
	int32		group_id = DatumGetInt32(hms_log_column(slot, HMS_DEAD_GROUP_ID));
	TimestampTz dead_at = DatumGetTimestampTz(hms_log_column(slot, HMS_DEAD_DEAD_AT));

	if (!current->valid || current->group.group_id != group_id)
	{
		current->exists = hms_group_by_id(group_id, &current->group);
		current->group.group_id = group_id;
		current->valid = true;
	}
	return !current->exists ||
		dead_at < now - current->group.dead_letter_retention_us;
}

/* What one call may still do. */
typedef struct ExpireBudget
{
	int			deletes;
	int64		rows;
} ExpireBudget;

/* Delete what is expired of the rows that 'keys' select; true when the budget ended first. */
static bool
expire_walk(Relation rel, Snapshot snapshot, int nkeys, ScanKey keys,
			TimestampTz now, ExpireBudget *budget)
{
	DeadGroup	current = {.valid = false};
	bool		more = false;
	HmsScan		scan;

	hms_scan_begin(&scan, rel, hms_relset()->dead_letter_idx, snapshot, nkeys, keys);
	while (hms_scan_next(&scan, ForwardScanDirection))
	{
		CHECK_FOR_INTERRUPTS();
		if (budget->deletes <= 0 || budget->rows <= 0)
		{
			more = true;
			break;
		}
		budget->rows--;
		expire_group_id = DatumGetInt32(hms_log_column(scan.slot, HMS_DEAD_GROUP_ID));
		expire_id = DatumGetInt64(hms_log_column(scan.slot, HMS_DEAD_ID));
		if (is_expired(scan.slot, &current, now) &&
			hms_delete_row(rel, &scan.slot->tts_tid, snapshot) == HMS_ROW_OK)
			budget->deletes--;
	}
	hms_scan_end(&scan);
	return more;
}

bool
hms_expire_dead_letters(TimestampTz now, int limit)
{
	Relation	rel = table_open(hms_relset()->dead_letter_rel, RowExclusiveLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ExpireBudget budget = {limit, (int64) limit * EXPIRE_ROWS_PER_DELETE};
	ScanKeyData keys[2];
	bool		more;

	/* The rest of the group where the last call stopped, then the others. */
	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, expire_group_id);
	hms_key_int8(&keys[1], 2, BTGreaterStrategyNumber, expire_id);
	more = expire_walk(rel, snapshot, 2, keys, now, &budget);
	if (!more)
	{
		hms_key_int4(&keys[0], 1, BTGreaterStrategyNumber, expire_group_id);
		more = expire_walk(rel, snapshot, 1, keys, now, &budget);
	}
	if (!more)
	{
		expire_group_id = 0;
		expire_id = 0;
	}

	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
	table_close(rel, NoLock);
	return more;
}

/* --- consumers -------------------------------------------------------------- */

typedef struct ConsumerKey
{
	int32		group_id;
	char		name[HMS_MAX_NAME_BYTES + 1];
} ConsumerKey;

typedef struct ConsumerRow
{
	ConsumerKey key;
	bool		stored;			/* the table has a row, at tid */
	bool		changed;
	ItemPointerData tid;
	TimestampTz last_seen;
	TimestampTz last_active;	/* DT_NOBEGIN = never */
} ConsumerRow;

static ConsumerRow *
consumer_entry(HTAB *rows, int32 group_id, const char *name, bool *found)
{
	ConsumerKey key;

	memset(&key, 0, sizeof(key));
	key.group_id = group_id;
	strlcpy(key.name, name, sizeof(key.name));
	return hash_search(rows, &key, HASH_ENTER, found);
}

/* Read the table; rows of dropped groups and of consumers long gone are deleted at once. */
static void
load_consumers(HTAB *rows, Relation rel, Snapshot snapshot, TimestampTz now)
{
	HmsScan		scan;

	hms_scan_begin(&scan, rel, hms_relset()->consumer_pkey, snapshot, 0, NULL);
	while (hms_scan_next(&scan, ForwardScanDirection))
	{
		int32		group_id = DatumGetInt32(hms_log_column(scan.slot, HMS_CONSUMER_COL_GROUP_ID));
		TimestampTz last_seen = DatumGetTimestampTz(hms_log_column(scan.slot, HMS_CONSUMER_COL_LAST_SEEN));
		ConsumerRow *row;
		HmsGroup	group;
		Datum		active;
		bool		isnull;
		bool		found;

		CHECK_FOR_INTERRUPTS();
		if (last_seen < now - CONSUMER_KEEP_US || !hms_group_by_id(group_id, &group))
		{
			(void) hms_delete_row(rel, &scan.slot->tts_tid, snapshot);
			continue;
		}
		row = consumer_entry(rows, group_id,
							 TextDatumGetCString(hms_log_column(scan.slot, HMS_CONSUMER_COL_NAME)),
							 &found);
		active = slot_getattr(scan.slot, HMS_CONSUMER_COL_LAST_ACTIVE, &isnull);
		row->stored = true;
		row->changed = false;
		row->tid = scan.slot->tts_tid;
		row->last_seen = last_seen;
		row->last_active = isnull ? DT_NOBEGIN : DatumGetTimestampTz(active);
	}
	hms_scan_end(&scan);
}

/* Merge what shared memory knows into the rows; returns true when something is newer. */
static bool
merge_presence(HTAB *rows, TimestampTz now)
{
	HmsPresence *presence;
	int			n = hms_presence_list(now - CONSUMER_KEEP_US, &presence);
	bool		changed = false;

	for (int i = 0; i < n; i++)
	{
		ConsumerRow *row;
		HmsGroup	group;
		bool		found;

		if (!hms_group_by_id(presence[i].group_id, &group))
			continue;
		row = consumer_entry(rows, presence[i].group_id, presence[i].name, &found);
		if (!found)
		{
			row->stored = false;
			row->changed = false;
			row->last_seen = DT_NOBEGIN;
			row->last_active = DT_NOBEGIN;
		}
		if (presence[i].last_seen > row->last_seen || presence[i].last_active > row->last_active)
		{
			row->last_seen = Max(presence[i].last_seen, row->last_seen);
			row->last_active = Max(presence[i].last_active, row->last_active);
			row->changed = true;
			changed = true;
		}
	}
	return changed;
}

/* Replace the rows that changed. */
static void
store_consumers(HTAB *rows, Relation rel, Snapshot snapshot)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	HASH_SEQ_STATUS seq;
	HmsWriter	writer;
	ConsumerRow *row;

	hms_writer_open(&writer, RelationGetRelid(rel));
	hash_seq_init(&seq, rows);
	while ((row = hash_seq_search(&seq)) != NULL)
	{
		if (!row->changed)
			continue;
		if (row->stored && hms_delete_row(rel, &row->tid, snapshot) != HMS_ROW_OK)
			continue;
		ExecClearTuple(slot);
		memset(slot->tts_isnull, 0, sizeof(bool) * HMS_CONSUMER_NCOLUMNS);
		slot->tts_values[HMS_CONSUMER_COL_GROUP_ID - 1] = Int32GetDatum(row->key.group_id);
		slot->tts_values[HMS_CONSUMER_COL_NAME - 1] = CStringGetTextDatum(row->key.name);
		slot->tts_values[HMS_CONSUMER_COL_LAST_SEEN - 1] = TimestampTzGetDatum(row->last_seen);
		slot->tts_values[HMS_CONSUMER_COL_LAST_ACTIVE - 1] = TimestampTzGetDatum(row->last_active);
		slot->tts_isnull[HMS_CONSUMER_COL_LAST_ACTIVE - 1] = (row->last_active == DT_NOBEGIN);
		ExecStoreVirtualTuple(slot);
		hms_insert(&writer, slot);
	}
	hms_writer_close(&writer, false);
	ExecDropSingleTupleTableSlot(slot);
}

void
hms_flush_presence(void)
{
	TimestampTz now = HMS_NOW();
	HASHCTL		ctl = {.keysize = sizeof(ConsumerKey),.entrysize = sizeof(ConsumerRow)};
	Oid			relid = hms_relset()->consumer_rel;
	Snapshot	snapshot;
	Relation	rel;
	HTAB	   *rows;

	/* One writer at a time, so that no insert waits for another's unique key. */
	if (RecoveryInProgress() || !ConditionalLockRelationOid(relid, ShareUpdateExclusiveLock))
		return;
	rel = table_open(relid, RowExclusiveLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ctl.hcxt = CurrentMemoryContext;
	rows = hash_create("hotmesh_stream consumers", 256, &ctl,
					   HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	load_consumers(rows, rel, snapshot, now);
	if (merge_presence(rows, now))
		store_consumers(rows, rel, snapshot);
	hash_destroy(rows);
	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
	table_close(rel, NoLock);
}

/* --- what is due ------------------------------------------------------------- */

/*
 * True when a delivery is due.  Follows the hint's protocol: each level's hint is noted
 * before the snapshot, and what the scan met is told afterwards.
 */
static bool
delivery_due(const HmsStream *stream, const HmsGroup *group, TimestampTz now)
{
	Oid			relid = hms_relset()->delivery_rel;
	Oid			index = hms_relset()->delivery_claim_idx;
	HmsHintScan hints[HMS_PRIORITY_LEVELS];
	Relation	rel = table_open(relid, AccessShareLock);
	Snapshot	snapshot;
	HmsScan		scan;
	bool		opened = false;
	bool		due = false;

	for (int level = 0; level < stream->levels; level++)
	{
		HmsHintKey	key;

		hms_hint_key(&key, relid, group->incarnation, level);
		hms_hint_begin(&hints[level], &key, hms_effects_own_low(&key), true);
	}
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	for (int level = stream->levels - 1; level >= 0 && !due; level--)
	{
		ScanKeyData keys[4];

		hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, group->incarnation);
		hms_key_int2(&keys[1], 2, BTEqualStrategyNumber, level);
		hms_key_time(&keys[2], 3, BTGreaterEqualStrategyNumber, hints[level].lo);
		hms_key_time(&keys[3], 3, BTLessEqualStrategyNumber, now);
		if (opened)
			hms_scan_restart(&scan, lengthof(keys), keys);
		else
			hms_scan_begin(&scan, rel, index, snapshot, lengthof(keys), keys);
		opened = true;
		due = hms_scan_next(&scan, ForwardScanDirection);
		hms_hint_end(&hints[level], due ?
					 DatumGetTimestampTz(hms_log_column(scan.slot, HMS_DELIVERY_DUE_AT)) : now);
	}
	if (opened)
		hms_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return due;
}

bool
hms_group_has_work(const HmsStream *stream, const HmsGroup *group, TimestampTz now)
{
	return delivery_due(stream, group, now) || hms_cursor_has_work(stream, group);
}

TimestampTz
hms_group_next_due(const HmsStream *stream, const HmsGroup *group, TimestampTz now)
{
	Oid			index = hms_relset()->delivery_claim_idx;
	Relation	rel = table_open(hms_relset()->delivery_rel, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TimestampTz nearest = DT_NOEND;

	for (int level = 0; level < stream->levels; level++)
	{
		TimestampTz due = hms_due_scan(rel, index, snapshot, group->incarnation, level,
									   now, NEXT_DUE_MAX_DEAD);

		nearest = Min(nearest, due);
	}
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return nearest;
}
