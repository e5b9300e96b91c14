/*-------------------------------------------------------------------------
 *
 * log.c
 *	  The log as core sees it: which partitions a read has to look at, and
 *	  fetching messages by id.
 *
 * A view is opened AFTER the snapshot S it serves was taken, and must list
 * every leaf that holds a row visible to S:
 *
 * - A publisher raises the slot's 'newest' (or 'default used') before it
 *	 inserts, so a leaf above 'newest' holds nothing that S sees.
 * - A new partition is attached under AccessExclusiveLock on itself, and nobody inserts into it
 *	 before that lock is gone, which is after its creator's
 *	 invalidations were sent.  We process invalidations after S, so a partition with a row
 *	 visible to S is in our list.
 * - Healing moves rows from the default partition to a new one in one
 *	 transaction that holds AccessExclusiveLock on the default partition.
 *	 We lock the default partition after S: either the healing is over and its
 *	 invalidations have arrived, or it has not begun and S sees the old place.
 * - A sealed leaf gets no more rows; its id range is exact and final.
 *
 * So the list is complete when the view is made.  Leaves are opened when a row of them
 * is needed, as a view may list hundreds.  Nothing gets lost by that: all that can
 * happen to a listed leaf meanwhile is that it is dropped, when nobody is owed its rows, or that its
 * indexes are rebuilt, so they are looked up under its lock.  The default
 * partition is locked from the start.
 *
 * All locks are AccessShareLock and are released with the view.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/rel.h"

#include "core/log.h"

/* The closed bound as the catalog has it: the highest upper bound of a sealed leaf. */
static TimestampTz
catalog_closed_bound(const HmsLeaves *leaves)
{
	TimestampTz bound = DT_NOBEGIN;

	for (int i = 0; i < leaves->nleaves; i++)
	{
		if (leaves->leaves[i].sealed && leaves->leaves[i].upper > bound)
			bound = leaves->leaves[i].upper;
	}
	return bound;
}

static bool
leaf_has_blocks(Oid relid)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);
	bool		has_blocks;

	if (rel == NULL)
		return false;
	has_blocks = RelationGetNumberOfBlocks(rel) > 0;
	relation_close(rel, AccessShareLock);
	return has_blocks;
}

/*
 * Give a slot that nobody has initialised its catalog values.  Whoever comes
 * first does it, several at once agree: both values only ever rise.  The bound is
 * merged before the slot counts as initialised.
 */
static void
initialise_slot(HmsLogSlot *slot, const HmsLeaves *leaves)
{
	TimestampTz newest = DT_NOBEGIN;
	bool		default_used = false;

	hms_log_raise_closed_bound(slot, catalog_closed_bound(leaves));
	for (int i = 0; i < leaves->nleaves; i++)
	{
		const HmsLeaf *leaf = &leaves->leaves[i];

		if (!leaf_has_blocks(leaf->relid))
			continue;
		if (leaf->is_default)
			default_used = true;
		else
			newest = Max(newest, leaf->lower);
	}
	hms_log_set_base_newest(slot, newest, default_used);
}

HmsLogSlot *
hms_log_attach(Oid log_relid, int32 namespace_id)
{
	bool		created;
	HmsLogSlot *slot;

	/* Replay would not keep a slot up to date: a standby looks at every leaf. */
	if (RecoveryInProgress())
		return NULL;

	slot = hms_log_slot(log_relid, &created);
	if (slot != NULL && TIMESTAMP_IS_NOEND(hms_log_newest(slot)))
	{
		HmsLeaves	copy = *hms_route_leaves(log_relid, namespace_id);
		HmsLeaf    *leaves = palloc(sizeof(HmsLeaf) * Max(copy.nleaves, 1));

		memcpy(leaves, copy.leaves, sizeof(HmsLeaf) * copy.nleaves);
		copy.leaves = leaves;
		initialise_slot(slot, &copy);
		pfree(leaves);
	}
	return slot;
}

/* True when a leaf may hold ids in (low_id, high_id]. */
static bool
leaf_meets(const HmsLeaf *leaf, int64 low_id, int64 high_id)
{
	return !leaf->sealed || (leaf->max_id > low_id && leaf->min_id <= high_id);
}

static int
compare_leaves(const void *a, const void *b)
{
	const HmsLeaf *x = a;
	const HmsLeaf *y = b;
	int64		min_x = x->sealed ? x->min_id : 0;
	int64		min_y = y->sealed ? y->min_id : 0;

	return (min_x > min_y) - (min_x < min_y);
}

/* Copy the leaves a view needs, sorted by min_id. */
static void
choose_leaves(HmsLogView *view, const HmsLeaves *leaves, TimestampTz newest,
			  int64 low_id, int64 high_id)
{
	view->leaves = palloc(sizeof(HmsLeaf) * Max(leaves->nleaves, 1));
	view->nleaves = 0;
	for (int i = 0; i < leaves->nleaves; i++)
	{
		const HmsLeaf *leaf = &leaves->leaves[i];

		if (leaf->is_default ? !OidIsValid(view->default_locked) : leaf->lower > newest)
			continue;
		if (leaf_meets(leaf, low_id, high_id))
			view->leaves[view->nleaves++] = *leaf;
	}
	if (view->nleaves > 1)
		qsort(view->leaves, view->nleaves, sizeof(HmsLeaf), compare_leaves);
}

void
hms_log_view(HmsLogView *view, Oid log_relid, int32 namespace_id,
			 int64 low_id, int64 high_id)
{
	HmsLogSlot *slot = hms_log_attach(log_relid, namespace_id);
	TimestampTz newest = slot ? hms_log_newest(slot) : DT_NOEND;
	const HmsLeaves *leaves = hms_route_leaves(log_relid, namespace_id);

	view->default_locked = InvalidOid;
	if (leaves->default_index >= 0 && (slot == NULL || hms_log_default_used(slot)))
	{
		view->default_locked = leaves->leaves[leaves->default_index].relid;
		LockRelationOid(view->default_locked, AccessShareLock);
	}
	AcceptInvalidationMessages();
	choose_leaves(view, hms_route_leaves(log_relid, namespace_id), newest, low_id, high_id);

	view->log_relid = log_relid;
	view->namespace_id = namespace_id;
	view->rels = palloc0(sizeof(Relation) * Max(view->nleaves, 1));
	view->fetch = NULL;
}

/* Take the indexes of a leaf that we have locked just now from the cache: they may have been rebuilt. */
static void
refresh_leaf(const HmsLogView *view, HmsLeaf *leaf)
{
	const HmsLeaves *leaves = hms_route_leaves(view->log_relid, view->namespace_id);
	int			i = leaf->is_default ? leaves->default_index :
	hms_route_find(leaves, leaf->lower);

	if (i < 0 || leaves->leaves[i].relid != leaf->relid)
		return;
	leaf->order_idx = leaves->leaves[i].order_idx;
	leaf->xid_idx = leaves->leaves[i].xid_idx;
	leaf->key_idx = leaves->leaves[i].key_idx;
}

Relation
hms_log_leaf(HmsLogView *view, int leaf)
{
	if (view->rels[leaf] == NULL)
	{
		view->rels[leaf] = try_relation_open(view->leaves[leaf].relid, AccessShareLock);
		if (view->rels[leaf] != NULL)
			refresh_leaf(view, &view->leaves[leaf]);
	}
	return view->rels[leaf];
}

void
hms_log_pin(const HmsLogView *view)
{
	for (int i = 0; i < view->nleaves; i++)
	{
		if (view->rels[i] != NULL && !view->leaves[i].is_default)
			LockRelationOid(view->leaves[i].relid, AccessShareLock);
	}
}

void
hms_log_release(HmsLogView *view)
{
	for (int i = 0; i < view->nleaves; i++)
	{
		if (view->rels[i] == NULL)
			continue;
		if (view->fetch != NULL && view->fetch_open[i])
			hms_scan_end(&view->fetch[i]);
		relation_close(view->rels[i], AccessShareLock);
	}
	if (OidIsValid(view->default_locked))
		UnlockRelationOid(view->default_locked, AccessShareLock);
	view->nleaves = 0;
	view->fetch = NULL;
	view->default_locked = InvalidOid;
}

/* A varlena column copied and detoasted; NULL for a null. */
static struct varlena *
copy_varlena(TupleTableSlot *slot, int attno)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, attno, &isnull);

	return isnull ? NULL : PG_DETOAST_DATUM_COPY(value);
}

void
hms_log_copy_message(TupleTableSlot *slot, HmsMessage *message)
{
	bool		isnull;

	memset(message, 0, sizeof(HmsMessage));
	slot_getallattrs(slot);
	message->id = DatumGetInt64(slot_getattr(slot, HMS_LOG_ID, &isnull));
	message->xid = DatumGetInt64(slot_getattr(slot, HMS_LOG_XID, &isnull));
	message->priority = DatumGetInt16(slot_getattr(slot, HMS_LOG_PRIORITY, &isnull));
	message->published_at = DatumGetTimestampTz(slot_getattr(slot, HMS_LOG_PUBLISHED_AT, &isnull));
	message->deliver_at = DatumGetTimestampTz(slot_getattr(slot, HMS_LOG_DELIVER_AT, &isnull));
	message->has_deliver_at = !isnull;
	message->key = copy_varlena(slot, HMS_LOG_KEY);
	message->headers = copy_varlena(slot, HMS_LOG_HEADERS);
	message->payload = copy_varlena(slot, HMS_LOG_PAYLOAD);
	message->body = copy_varlena(slot, HMS_LOG_BODY);
	message->content_type = copy_varlena(slot, HMS_LOG_CONTENT_TYPE);
	message->lease_until = DT_NOEND;
}

Size
hms_message_bytes(const HmsMessage *message)
{
	Size		bytes = 0;

	if (message->payload)
		bytes += VARSIZE_ANY_EXHDR(message->payload);
	if (message->body)
		bytes += VARSIZE_ANY_EXHDR(message->body);
	if (message->headers)
		bytes += VARSIZE_ANY_EXHDR(message->headers);
	return bytes;
}

static int
compare_ids(const void *a, const void *b)
{
	int64		x = *(const int64 *) a;
	int64		y = *(const int64 *) b;

	return (x > y) - (x < y);
}

int
hms_sorted_ids(const int64 *ids, int nids, int64 **sorted)
{
	int			n = 0;

	*sorted = palloc(sizeof(int64) * Max(nids, 1));
	memcpy(*sorted, ids, sizeof(int64) * nids);
	qsort(*sorted, nids, sizeof(int64), compare_ids);
	for (int i = 0; i < nids; i++)
	{
		if (n == 0 || (*sorted)[n - 1] != (*sorted)[i])
			(*sorted)[n++] = (*sorted)[i];
	}
	return n;
}

/* Position the fetch scan of one leaf on (stream, priority, id); NULL when the leaf is gone. */
static HmsScan *
fetch_scan(const HmsStream *stream, HmsLogView *view, int leaf, Snapshot snapshot,
		   int priority, int64 id)
{
	Relation	rel = hms_log_leaf(view, leaf);
	ScanKeyData keys[3];

	if (rel == NULL)
		return NULL;

	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, stream->stream_id);
	hms_key_int2(&keys[1], 2, BTEqualStrategyNumber, priority);
	hms_key_int8(&keys[2], 3, BTEqualStrategyNumber, id);

	if (view->fetch == NULL)
	{
		view->fetch = palloc(sizeof(HmsScan) * view->nleaves);
		view->fetch_open = palloc0(sizeof(bool) * view->nleaves);
	}
	if (view->fetch_open[leaf])
		hms_scan_restart(&view->fetch[leaf], 3, keys);
	else
		hms_scan_begin(&view->fetch[leaf], rel,
					   view->leaves[leaf].order_idx, snapshot, 3, keys);
	view->fetch_open[leaf] = true;
	return &view->fetch[leaf];
}

/*
 * hms_log_fetch
 *		Copy one message; false when the snapshot sees none.
 *
 * The snapshot must be the one of the view's first fetch.
 */
bool
hms_log_fetch(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
			  int priority, int64 id, HmsMessage *message)
{
	for (int i = 0; i < view->nleaves; i++)
	{
		HmsScan    *scan;

		if (!leaf_meets(&view->leaves[i], id - 1, id))
			continue;
		scan = fetch_scan(stream, view, i, snapshot, priority, id);
		if (scan != NULL && hms_scan_next(scan, ForwardScanDirection))
		{
			hms_log_copy_message(scan->slot, message);
			ExecClearTuple(scan->slot);
			return true;
		}
	}
	return false;
}
