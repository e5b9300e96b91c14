/*-------------------------------------------------------------------------
 *
 * sealing.c
 *	  Closing a partition for ever, so that readers can skip it by its ids.
 *
 * published_at does not follow from the id, so a time says nothing about the
 * ids of a partition until nothing can be added to it.  Steps, for the oldest
 * partition whose upper bound has passed:
 *
 * 1. The log's closed bound in shared memory is raised to the upper bound.
 *	  From here on no publisher chooses a time below it.
 * 2. ShareRowExclusiveLock on the leaf, without waiting.  Publishers keep
 *	  RowExclusiveLock on their leaf to the end of their transaction, so when we
 *	  get it, all rows are committed or gone.  A publisher that chose the leaf
 *	  before 1 and has no lock on it yet looks at the bound again once it has,
 *	  and moves on.  When we do not get it, the bound stays raised and the step
 *	  is repeated later: new publishers go elsewhere, so the lock is free once
 *	  those of before have ended.  The lock excludes a second sealing, too.
 * 3. With a snapshot taken now the lowest and highest id are read, and written
 *	  to log_partition; everybody's list of leaves is invalidated at commit.
 *
 * The bound never passes the lower bound of the newest partition in use, so a
 * clock that jumps ahead does not drag it along, and the default partition is
 * never sealed.  A crash loses the raised bound, but not what was committed:
 * the slot's next user merges the bounds of log_partition.  A log without a
 * slot is not sealed: publishers would not see its bound.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/stratnum.h"
#include "storage/lmgr.h"
#include "utils/snapmgr.h"

#include "core/leaf.h"
#include "core/log.h"
#include "core/retention.h"
#include "core/sealing.h"
#include "storage/config.h"
#include "storage/relset.h"
#include "storage/scan.h"

/* Columns of hotmesh_stream.log_partition. */
enum
{
	SEAL_NAMESPACE_ID,
	SEAL_LOWER_BOUND,
	SEAL_UPPER_BOUND,
	SEAL_MIN_ID,
	SEAL_MAX_ID,
	SEAL_NCOLUMNS
};

/* Is this still a leaf of the log, and not sealed? */
static bool
is_unsealed(const HmsNamespace *ns, const HmsLeaf *leaf)
{
	const HmsLeaves *leaves = hms_route_leaves(ns->log_relid, ns->namespace_id);

	for (int i = 0; i < leaves->nleaves; i++)
	{
		if (leaves->leaves[i].relid == leaf->relid)
			return !leaves->leaves[i].sealed;
	}
	return false;
}

static void
write_seal(const HmsNamespace *ns, const HmsLeaf *leaf, int64 min_id, int64 max_id)
{
	Datum		values[SEAL_NCOLUMNS];
	bool		nulls[SEAL_NCOLUMNS] = {false};

	values[SEAL_NAMESPACE_ID] = Int32GetDatum(ns->namespace_id);
	values[SEAL_LOWER_BOUND] = TimestampTzGetDatum(leaf->lower);
	values[SEAL_UPPER_BOUND] = TimestampTzGetDatum(leaf->upper);
	values[SEAL_MIN_ID] = Int64GetDatum(min_id);
	values[SEAL_MAX_ID] = Int64GetDatum(max_id);
	hms_config_insert(hms_relset()->log_partition_rel, values, nulls);
	hms_route_invalidate(ns->log_relid);
}

/* Steps 2 and 3 of the head of the file. */
static HmsStep
seal_leaf(const HmsNamespace *ns, const HmsLeaf *leaf)
{
	Relation	rel;
	Snapshot	snapshot;
	int64		min_id;
	int64		max_id;

	if (!ConditionalLockRelationOid(leaf->relid, ShareRowExclusiveLock))
		return HMS_STEP_BLOCKED;

	/* Others may have sealed or dropped it before we had the lock. */
	if (!is_unsealed(ns, leaf))
		return HMS_STEP_DONE;

	rel = relation_open(leaf->relid, NoLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	hms_leaf_id_range(leaf, rel, snapshot, &min_id, &max_id);
	UnregisterSnapshot(snapshot);
	relation_close(rel, NoLock);

	write_seal(ns, leaf, min_id, max_id);
	return HMS_STEP_DONE;
}

/*
 * hms_retention_seal
 *		Seal the oldest partition whose time has passed; the next one when that
 *		is still being published to.
 */
HmsStep
hms_retention_seal(const HmsNamespace *ns, TimestampTz now)
{
	HmsLogSlot *slot = hms_log_attach(ns->log_relid, ns->namespace_id);
	HmsLeaves	leaves = *hms_route_leaves(ns->log_relid, ns->namespace_id);
	HmsLeaf    *copy = palloc(sizeof(HmsLeaf) * Max(leaves.nleaves, 1));
	HmsStep		step = HMS_STEP_IDLE;
	TimestampTz limit;

	memcpy(copy, leaves.leaves, sizeof(HmsLeaf) * leaves.nleaves);
	if (slot == NULL || TIMESTAMP_IS_NOEND(hms_log_newest(slot)))
		return HMS_STEP_IDLE;
	limit = Min(now, hms_log_newest(slot));

	for (int i = 0; i < leaves.nleaves && step != HMS_STEP_DONE; i++)
	{
		if (copy[i].sealed || copy[i].is_default || copy[i].upper > limit)
			continue;
		hms_log_raise_closed_bound(slot, copy[i].upper);
		step = seal_leaf(ns, &copy[i]);
	}
	pfree(copy);
	return step;
}

/*
 * hms_seal_break
 *		Forget that a leaf is sealed.
 */
void
hms_seal_break(const HmsNamespace *ns, const HmsLeaf *leaf)
{
	const HmsRelset *relset = hms_relset();
	ScanKeyData keys[2];
	HeapTuple	tuple;

	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, ns->namespace_id);
	hms_key_time(&keys[1], 2, BTEqualStrategyNumber, leaf->lower);
	tuple = hms_config_find(relset->log_partition_rel, relset->log_partition_pkey, 2, keys);
	if (tuple != NULL)
		hms_config_delete(relset->log_partition_rel, tuple);
	hms_route_invalidate(ns->log_relid);
}

static bool
collect_tuple(HeapTuple tuple, TupleDesc desc, void *arg)
{
	List	  **tuples = arg;

	*tuples = lappend(*tuples, heap_copytuple(tuple));
	return true;
}

/*
 * hms_seal_forget_namespace
 *		Delete the seals of a namespace whose log is dropped.
 */
void
hms_seal_forget_namespace(int32 namespace_id)
{
	const HmsRelset *relset = hms_relset();
	ScanKeyData key;
	List	   *tuples = NIL;
	ListCell   *lc;

	hms_key_int4(&key, 1, BTEqualStrategyNumber, namespace_id);
	hms_config_each(relset->log_partition_rel, relset->log_partition_pkey, 1, &key,
					collect_tuple, &tuples);
	foreach(lc, tuples)
		hms_config_delete(relset->log_partition_rel, lfirst(lc));
}
