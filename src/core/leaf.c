/*-------------------------------------------------------------------------
 *
 * leaf.c
 *	  What stands in one partition of a log.
 *
 * Ids and times come from the index (stream_id, priority, id): a few descents
 * for each stream and priority that has rows, never a look at all of them.
 *
 * A group is owed a message of a sealed leaf when the message is behind the
 * group's position at its priority, when it belongs to a pending transaction
 * (all of which have ended: sealing waited for them) and is above what was
 * worked off of it, or when a delivery of it exists.  The first two are looked
 * up in the leaf itself, so a group that is far behind in a stream that has
 * nothing here holds nothing back.
 *
 * Reads only; no lock outlives a call but those of the caller.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "miscadmin.h"
#include "storage/lmgr.h"

#include "core/cursor.h"
#include "core/leaf.h"
#include "core/log.h"
#include "storage/relset.h"
#include "storage/scan.h"

/* Index columns of (stream_id, priority, id) and of (xid, stream_id, id). */
enum
{
	ORDER_STREAM_ID = 1,
	ORDER_PRIORITY,
	ORDER_ID
};
enum
{
	XID_XID = 1,
	XID_STREAM_ID,
	XID_ID
};

/* Columns of (incarnation, id) in the delivery table and its index. */
#define DELIVERY_KEY_INCARNATION	1
#define DELIVERY_KEY_ID				2
#define DELIVERY_ID					2

/* One row of the log, as far as it matters here. */
typedef struct LeafRow
{
	int32		stream_id;
	int16		priority;
	int64		id;
	TimestampTz published_at;
} LeafRow;

/*
 * hms_leaf_open
 *		Open a leaf, unless somebody is dropping it.
 */
Relation
hms_leaf_open(const HmsLeaf *leaf)
{
	Relation	rel;

	if (!ConditionalLockRelationOid(leaf->relid, AccessShareLock))
		return NULL;
	rel = try_relation_open(leaf->relid, NoLock);
	if (rel == NULL)
		UnlockRelationOid(leaf->relid, AccessShareLock);
	return rel;
}

/*
 * hms_leaf_close
 *		Close and unlock.
 */
void
hms_leaf_close(Relation rel)
{
	relation_close(rel, AccessShareLock);
}

static void
read_row(TupleTableSlot *slot, LeafRow *row)
{
	bool		isnull;

	row->stream_id = DatumGetInt32(slot_getattr(slot, HMS_LOG_STREAM_ID, &isnull));
	row->priority = DatumGetInt16(slot_getattr(slot, HMS_LOG_PRIORITY, &isnull));
	row->id = DatumGetInt64(slot_getattr(slot, HMS_LOG_ID, &isnull));
	row->published_at =
		DatumGetTimestampTz(slot_getattr(slot, HMS_LOG_PUBLISHED_AT, &isnull));
}

/* The first visible row in one direction. */
static bool
probe(const HmsLeaf *leaf, Relation rel, Snapshot snapshot, int nkeys,
	  ScanKey keys, ScanDirection direction, LeafRow *row)
{
	HmsScan		scan;
	bool		found;

	CHECK_FOR_INTERRUPTS();
	hms_scan_begin(&scan, rel, leaf->order_idx, snapshot, nkeys, keys);
	found = hms_scan_next(&scan, direction);
	if (found)
		read_row(scan.slot, row);
	hms_scan_end(&scan);
	return found;
}

/* From the first row of one stream and priority to the first row of the next. */
static bool
next_run(const HmsLeaf *leaf, Relation rel, Snapshot snapshot, LeafRow *row)
{
	ScanKeyData keys[2];

	hms_key_int4(&keys[0], ORDER_STREAM_ID, BTEqualStrategyNumber, row->stream_id);
	hms_key_int2(&keys[1], ORDER_PRIORITY, BTGreaterStrategyNumber, row->priority);
	if (probe(leaf, rel, snapshot, 2, keys, ForwardScanDirection, row))
		return true;
	hms_key_int4(&keys[0], ORDER_STREAM_ID, BTGreaterStrategyNumber, row->stream_id);
	return probe(leaf, rel, snapshot, 1, keys, ForwardScanDirection, row);
}

/* The last row of the same stream and priority. */
static LeafRow
last_of_run(const HmsLeaf *leaf, Relation rel, Snapshot snapshot, const LeafRow *first)
{
	ScanKeyData keys[2];
	LeafRow		last = *first;

	hms_key_int4(&keys[0], ORDER_STREAM_ID, BTEqualStrategyNumber, first->stream_id);
	hms_key_int2(&keys[1], ORDER_PRIORITY, BTEqualStrategyNumber, first->priority);
	(void) probe(leaf, rel, snapshot, 2, keys, BackwardScanDirection, &last);
	return last;
}

/*
 * hms_leaf_id_range
 *		Lowest and highest id of the visible rows.
 */
void
hms_leaf_id_range(const HmsLeaf *leaf, Relation rel, Snapshot snapshot,
				  int64 *min_id, int64 *max_id)
{
	LeafRow		row;
	bool		found;

	*min_id = 0;
	*max_id = 0;
	found = probe(leaf, rel, snapshot, 0, NULL, ForwardScanDirection, &row);
	while (found)
	{
		LeafRow		last = last_of_run(leaf, rel, snapshot, &row);

		*min_id = *max_id == 0 ? row.id : Min(*min_id, row.id);
		*max_id = Max(*max_id, last.id);
		found = next_run(leaf, rel, snapshot, &row);
	}
}

/*
 * hms_leaf_published_since
 *		Was something published here at or after a time?
 */
bool
hms_leaf_published_since(const HmsLeaf *leaf, Relation rel, Snapshot snapshot,
						 TimestampTz since)
{
	LeafRow		row;
	bool		found;

	found = probe(leaf, rel, snapshot, 0, NULL, ForwardScanDirection, &row);
	while (found)
	{
		if (row.published_at >= since ||
			last_of_run(leaf, rel, snapshot, &row).published_at >= since)
			return true;
		found = next_run(leaf, rel, snapshot, &row);
	}
	return false;
}

static void
note_owed(HmsOwed *owed, HmsOwedReason reason, int64 id)
{
	if (owed->reason == HMS_OWED_NOTHING)
	{
		owed->reason = reason;
		owed->id = id;
	}
	owed->messages++;
}

/* Messages of one priority behind the position. */
static void
count_unread(const HmsLeaf *leaf, Relation rel, Snapshot snapshot, int32 stream_id,
			 int priority, int64 pos, int64 limit, HmsOwed *owed)
{
	ScanKeyData keys[3];
	HmsScan		scan;

	hms_key_int4(&keys[0], ORDER_STREAM_ID, BTEqualStrategyNumber, stream_id);
	hms_key_int2(&keys[1], ORDER_PRIORITY, BTEqualStrategyNumber, priority);
	hms_key_int8(&keys[2], ORDER_ID, BTGreaterStrategyNumber, pos);
	hms_scan_begin(&scan, rel, leaf->order_idx, snapshot, 3, keys);
	while (owed->messages < limit && hms_scan_next(&scan, ForwardScanDirection))
	{
		LeafRow		row;

		CHECK_FOR_INTERRUPTS();
		read_row(scan.slot, &row);
		note_owed(owed, HMS_OWED_UNREAD, row.id);
	}
	hms_scan_end(&scan);
}

/* Messages of one run of pending transactions that were passed before they committed. */
static void
count_late(const HmsLeaf *leaf, Relation rel, Snapshot snapshot, int32 stream_id,
		   const HmsCursor *cursor, const HmsPending *entry, int64 limit, HmsOwed *owed)
{
	ScanKeyData keys[4];
	HmsScan		scan;

	hms_key_int8(&keys[0], XID_XID, BTGreaterEqualStrategyNumber, entry->from);
	hms_key_int8(&keys[1], XID_XID, BTLessStrategyNumber, entry->to);
	hms_key_int4(&keys[2], XID_STREAM_ID, BTEqualStrategyNumber, stream_id);
	hms_key_int8(&keys[3], XID_ID, BTGreaterStrategyNumber, entry->after);
	hms_scan_begin(&scan, rel, leaf->xid_idx, snapshot, 4, keys);
	while (owed->messages < limit && hms_scan_next(&scan, ForwardScanDirection))
	{
		LeafRow		row;

		CHECK_FOR_INTERRUPTS();
		read_row(scan.slot, &row);
		/* What is behind the position has been counted as unread. */
		if (row.id <= cursor->pos[row.priority])
			note_owed(owed, HMS_OWED_LATE, row.id);
	}
	hms_scan_end(&scan);
}

static void
count_deliveries(const HmsLeaf *leaf, Snapshot snapshot, int64 incarnation,
				 int64 limit, HmsOwed *owed)
{
	const HmsRelset *relset = hms_relset();
	Relation	rel = table_open(relset->delivery_rel, AccessShareLock);
	ScanKeyData keys[3];
	HmsScan		scan;

	hms_key_int8(&keys[0], DELIVERY_KEY_INCARNATION, BTEqualStrategyNumber, incarnation);
	hms_key_int8(&keys[1], DELIVERY_KEY_ID, BTGreaterEqualStrategyNumber, leaf->min_id);
	hms_key_int8(&keys[2], DELIVERY_KEY_ID, BTLessEqualStrategyNumber, leaf->max_id);
	hms_scan_begin(&scan, rel, relset->delivery_id_idx, snapshot, 3, keys);
	while (owed->messages < limit && hms_scan_next(&scan, ForwardScanDirection))
	{
		bool		isnull;

		CHECK_FOR_INTERRUPTS();
		note_owed(owed, HMS_OWED_DELIVERY,
				  DatumGetInt64(slot_getattr(scan.slot, DELIVERY_ID, &isnull)));
	}
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
}

/*
 * hms_leaf_owed
 *		What one group is owed in a sealed leaf.
 */
void
hms_leaf_owed(const HmsLeaf *leaf, Relation rel, Snapshot snapshot,
			  const HmsStream *stream, const HmsGroup *group, int64 limit, HmsOwed *owed)
{
	HmsCursor	cursor;

	memset(owed, 0, sizeof(HmsOwed));
	if (leaf->max_id == 0)
		return;
	if (!hms_cursor_peek(group, snapshot, &cursor))
	{
		owed->reason = HMS_OWED_UNKNOWN;
		owed->messages = 1;
		return;
	}

	for (int priority = 0; priority < HMS_PRIORITY_LEVELS; priority++)
	{
		if (cursor.pos[priority] < leaf->max_id)
			count_unread(leaf, rel, snapshot, stream->stream_id, priority,
						 cursor.pos[priority], limit, owed);
	}
	for (int i = 0; i < cursor.npending; i++)
	{
		if (cursor.pending[i].after < leaf->max_id)
			count_late(leaf, rel, snapshot, stream->stream_id, &cursor,
					   &cursor.pending[i], limit, owed);
	}
	count_deliveries(leaf, snapshot, group->incarnation, limit, owed);
}
