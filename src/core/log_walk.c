/*-------------------------------------------------------------------------
 *
 * log_walk.c
 *	  Walking the leaves of a log view in id order.
 *
 * Ids do not follow partitions exactly: a publisher takes its id first and its
 * partition later.  So the leaves are merged by id.  A sealed leaf is opened
 * only when the walk comes to its lowest id, so that a reader far behind
 * opens one partition after the other and not all of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/tableam.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/log.h"

typedef enum LeafState
{
	LEAF_UNOPENED,				/* not yet positioned for the current keys */
	LEAF_CURRENT,				/* scan.slot holds its next row */
	LEAF_DONE
} LeafState;

typedef struct LeafWalk
{
	HmsScan		scan;
	bool		has_scan;
	LeafState	state;
	int64		id;				/* of the row in scan.slot */
} LeafWalk;

struct HmsLogWalk
{
	const HmsStream *stream;
	HmsLogView *view;
	Snapshot	snapshot;
	ScanDirection direction;
	bool		by_xid;
	int			priority;
	HmsXid		xid;
	int64		after_id;
	int64		upto_id;
	int			last;			/* leaf whose row was returned last, -1 if
								 * none */
	LeafWalk   *leaves;
};

static HmsLogWalk *
walk_create(const HmsStream *stream, HmsLogView *view, Snapshot snapshot)
{
	HmsLogWalk *walk = palloc0(sizeof(HmsLogWalk));

	walk->stream = stream;
	walk->view = view;
	walk->snapshot = snapshot;
	walk->direction = ForwardScanDirection;
	walk->last = -1;
	walk->leaves = palloc0(sizeof(LeafWalk) * Max(view->nleaves, 1));
	return walk;
}

/* Leaves outside (after_id, upto_id] need not be opened at all. */
static void
walk_reset(HmsLogWalk *walk)
{
	walk->last = -1;
	for (int i = 0; i < walk->view->nleaves; i++)
	{
		const HmsLeaf *leaf = &walk->view->leaves[i];
		bool		outside = leaf->sealed &&
		(leaf->max_id <= walk->after_id || leaf->min_id > walk->upto_id);

		walk->leaves[i].state = outside ? LEAF_DONE : LEAF_UNOPENED;
	}
}

HmsLogWalk *
hms_log_walk_begin(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
				   int priority, int64 after_id, int64 upto_id, ScanDirection direction)
{
	HmsLogWalk *walk = walk_create(stream, view, snapshot);

	walk->direction = direction;
	walk->priority = priority;
	walk->after_id = after_id;
	walk->upto_id = upto_id;
	walk_reset(walk);
	return walk;
}

void
hms_log_walk_on(HmsLogWalk *walk, int64 upto_id)
{
	Assert(!walk->by_xid && ScanDirectionIsForward(walk->direction));

	walk->after_id = walk->upto_id;
	walk->upto_id = upto_id;
	walk_reset(walk);
}

HmsLogWalk *
hms_log_xid_walk_begin(const HmsStream *stream, HmsLogView *view, Snapshot snapshot)
{
	HmsLogWalk *walk = walk_create(stream, view, snapshot);

	walk->by_xid = true;
	for (int i = 0; i < view->nleaves; i++)
		walk->leaves[i].state = LEAF_DONE;
	return walk;
}

void
hms_log_walk_xid(HmsLogWalk *walk, HmsXid xid, int64 after_id, int64 upto_id)
{
	walk->xid = xid;
	walk->after_id = after_id;
	walk->upto_id = upto_id;
	walk_reset(walk);
}

/* Keys for the walk's index; returns their number, always the same for one walk. */
static int
walk_keys(const HmsLogWalk *walk, ScanKey keys)
{
	if (walk->by_xid)
	{
		hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, walk->xid);
		hms_key_int4(&keys[1], 2, BTEqualStrategyNumber, walk->stream->stream_id);
	}
	else
	{
		hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, walk->stream->stream_id);
		hms_key_int2(&keys[1], 2, BTEqualStrategyNumber, walk->priority);
	}
	hms_key_int8(&keys[2], 3, BTGreaterStrategyNumber, walk->after_id);
	hms_key_int8(&keys[3], 3, BTLessEqualStrategyNumber, walk->upto_id);
	return 4;
}

/* Move one leaf to its next row. */
static void
leaf_step(HmsLogWalk *walk, LeafWalk *leaf)
{
	bool		isnull;

	if (!hms_scan_next(&leaf->scan, walk->direction))
	{
		leaf->state = LEAF_DONE;
		return;
	}
	leaf->state = LEAF_CURRENT;
	leaf->id = DatumGetInt64(slot_getattr(leaf->scan.slot, HMS_LOG_ID, &isnull));
}

/* Position a leaf on its first row. */
static void
leaf_open(HmsLogWalk *walk, int i)
{
	LeafWalk   *leaf = &walk->leaves[i];
	ScanKeyData keys[4];
	int			nkeys = walk_keys(walk, keys);

	if (leaf->has_scan)
		hms_scan_restart(&leaf->scan, nkeys, keys);
	else
	{
		const HmsLeaf *l = &walk->view->leaves[i];
		Relation	rel = hms_log_leaf(walk->view, i);

		if (rel == NULL)
		{
			leaf->state = LEAF_DONE;
			return;
		}
		hms_scan_begin(&leaf->scan, rel,
					   walk->by_xid ? l->xid_idx : l->order_idx,
					   walk->snapshot, nkeys, keys);
		leaf->has_scan = true;
	}
	leaf_step(walk, leaf);
}

/* True when a's next row comes before b's. */
static bool
comes_before(const HmsLogWalk *walk, const LeafWalk *a, const LeafWalk *b)
{
	return ScanDirectionIsForward(walk->direction) ? a->id < b->id : a->id > b->id;
}

/* The leaf with the next row among those opened; -1 if none. */
static int
best_leaf(const HmsLogWalk *walk)
{
	int			best = -1;

	for (int i = 0; i < walk->view->nleaves; i++)
	{
		if (walk->leaves[i].state != LEAF_CURRENT)
			continue;
		if (best < 0 || comes_before(walk, &walk->leaves[i], &walk->leaves[best]))
			best = i;
	}
	return best;
}

/*
 * An unopened leaf that could hold a row before the best one.  Leaves are
 * sorted by min_id, so walking forward the first unopened one decides; backward, any
 * leaf whose max_id is higher.
 */
static int
leaf_to_open(const HmsLogWalk *walk, int best)
{
	for (int i = 0; i < walk->view->nleaves; i++)
	{
		const HmsLeaf *leaf = &walk->view->leaves[i];

		if (walk->leaves[i].state != LEAF_UNOPENED)
			continue;
		if (best < 0 || !leaf->sealed)
			return i;
		if (ScanDirectionIsForward(walk->direction))
			return leaf->min_id < walk->leaves[best].id ? i : -1;
		if (leaf->max_id > walk->leaves[best].id)
			return i;
	}
	return -1;
}

TupleTableSlot *
hms_log_walk_next(HmsLogWalk *walk)
{
	int			best;
	int			unopened;

	if (walk->last >= 0)
		leaf_step(walk, &walk->leaves[walk->last]);

	best = best_leaf(walk);
	while ((unopened = leaf_to_open(walk, best)) >= 0)
	{
		leaf_open(walk, unopened);
		best = best_leaf(walk);
	}
	walk->last = best;
	return best < 0 ? NULL : walk->leaves[best].scan.slot;
}

int64
hms_log_walk_invisible(HmsLogWalk *walk)
{
	int64		invisible = 0;

	for (int i = 0; i < walk->view->nleaves; i++)
	{
		if (walk->leaves[i].has_scan)
			invisible += walk->leaves[i].scan.invisible;
	}
	return invisible;
}

void
hms_log_walk_end(HmsLogWalk *walk)
{
	for (int i = 0; i < walk->view->nleaves; i++)
	{
		if (walk->leaves[i].has_scan)
			hms_scan_end(&walk->leaves[i].scan);
	}
	pfree(walk->leaves);
	pfree(walk);
}

/* First row of the xid index of one leaf at or after 'from', below 'to'. */
static HmsXid
leaf_next_xid(HmsLogView *view, int leaf, Snapshot snapshot, HmsXid from, HmsXid to)
{
	Relation	rel = hms_log_leaf(view, leaf);
	ScanKeyData keys[2];
	HmsScan		scan;
	HmsXid		xid = to;

	if (rel == NULL)
		return to;

	hms_key_int8(&keys[0], 1, BTGreaterEqualStrategyNumber, from);
	hms_key_int8(&keys[1], 1, BTLessStrategyNumber, to);
	hms_scan_begin(&scan, rel, view->leaves[leaf].xid_idx, snapshot, 2, keys);
	if (hms_scan_next(&scan, ForwardScanDirection))
	{
		bool		isnull;

		xid = DatumGetInt64(slot_getattr(scan.slot, HMS_LOG_XID, &isnull));
	}
	hms_scan_end(&scan);
	return xid;
}

HmsXid
hms_log_next_xid(HmsLogView *view, Snapshot snapshot, HmsXid from, HmsXid to)
{
	HmsXid		lowest = to;

	for (int i = 0; i < view->nleaves; i++)
		lowest = Min(lowest, leaf_next_xid(view, i, snapshot, from, to));
	return lowest;
}

HmsXid
hms_log_highest_xid(const HmsNamespace *ns, Snapshot snapshot)
{
	HmsLogView	view;
	HmsXid		highest = -1;

	if (!OidIsValid(ns->log_relid))
		return -1;
	hms_log_view(&view, ns->log_relid, ns->namespace_id, 0, PG_INT64_MAX);
	for (int i = 0; i < view.nleaves; i++)
	{
		Relation	rel = hms_log_leaf(&view, i);
		HmsScan		scan;
		bool		isnull;

		if (rel == NULL)
			continue;
		hms_scan_begin(&scan, rel, view.leaves[i].xid_idx, snapshot, 0, NULL);
		if (hms_scan_next(&scan, BackwardScanDirection))
			highest = Max(highest, DatumGetInt64(slot_getattr(scan.slot, HMS_LOG_XID, &isnull)));
		hms_scan_end(&scan);
	}
	hms_log_release(&view);
	return highest;
}
