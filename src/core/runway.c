/*-------------------------------------------------------------------------
 *
 * runway.c
 *	  Partitions for what will be published, and for what found none.
 *
 * The runway is the partition of now and 'premake' after it.  When it was not
 * kept, publishers fall into the default partition, and nothing is lost: each
 * step here creates one partition and takes with it whatever of its range
 * stands in the default partition.  A row that was not committed at that time
 * is moved later, into a partition that may be sealed by then: the seal is
 * broken in the same transaction, and made anew with the right ids.
 *
 * Rows that arrive in a leaf raise the log's 'newest' before we commit, as a
 * publisher does before it inserts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/bufmgr.h"
#include "storage/lmgr.h"

#include "core/leaf.h"
#include "core/log.h"
#include "core/retention.h"
#include "core/sealing.h"
#include "storage/partman.h"
#include "storage/route.h"

/* Rows have moved into the leaf for 'at': tell readers, and break its seal. */
static void
note_moved_rows(const HmsNamespace *ns, TimestampTz at)
{
	HmsLogSlot *slot = hms_log_attach(ns->log_relid, ns->namespace_id);
	const HmsLeaves *leaves = hms_route_leaves(ns->log_relid, ns->namespace_id);
	int			i = hms_route_find(leaves, at);
	HmsLeaf		leaf = leaves->leaves[i];

	if (slot != NULL)
		hms_log_raise_newest(slot, leaf.lower);
	if (leaf.sealed)
		hms_seal_break(ns, &leaf);
}

static HmsStep
heal_partition(const HmsNamespace *ns, TimestampTz at)
{
	int64		moved;

	if (!hms_partman_heal_partition(ns->namespace_id, &ns->partition_interval, at, &moved))
		return HMS_STEP_BLOCKED;
	if (moved > 0)
		note_moved_rows(ns, at);
	return HMS_STEP_DONE;
}

/* True when a leaf other than the default one takes rows of this time. */
static bool
has_partition(const HmsNamespace *ns, TimestampTz at)
{
	const HmsLeaves *leaves = hms_route_leaves(ns->log_relid, ns->namespace_id);
	int			i = hms_route_find(leaves, at);

	return i >= 0 && i != leaves->default_index;
}

/*
 * The time at which a message published now would be put down: a clock that
 * was stepped back stands still at the closed bound.
 */
static TimestampTz
publishing_time(const HmsNamespace *ns, TimestampTz now)
{
	HmsLogSlot *slot = hms_log_attach(ns->log_relid, ns->namespace_id);

	return slot == NULL ? now : Max(now, hms_log_closed_bound(slot));
}

/*
 * hms_retention_runway
 *		Create the next missing partition of now .. now + premake intervals.
 */
HmsStep
hms_retention_runway(const HmsNamespace *ns, TimestampTz now)
{
	TimestampTz at = publishing_time(ns, now);

	for (int i = 0; i <= ns->premake; i++)
	{
		TimestampTz lower;

		if (!has_partition(ns, at))
			return heal_partition(ns, at);
		hms_partman_bounds(&ns->partition_interval, at, &lower, &at);
	}
	return HMS_STEP_IDLE;
}

/*
 * Open the default partition without waiting, for a look at its rows.  NULL
 * when there is none or it is empty, or, with *locked set, when a healing or
 * another DDL step has it.
 */
static Relation
open_default(const HmsNamespace *ns, bool *locked)
{
	const HmsLeaves *leaves = hms_route_leaves(ns->log_relid, ns->namespace_id);
	Relation	rel;

	*locked = false;
	if (leaves->default_index < 0)
		return NULL;
	rel = hms_leaf_open(&leaves->leaves[leaves->default_index]);
	if (rel == NULL)
	{
		*locked = true;
		return NULL;
	}
	if (RelationGetNumberOfBlocks(rel) == 0)
	{
		hms_leaf_close(rel);
		return NULL;
	}
	return rel;
}

/*
 * hms_retention_heal
 *		Move one range of rows out of the default partition.
 */
HmsStep
hms_retention_heal(const HmsNamespace *ns, TimestampTz now)
{
	bool		locked;
	Relation	rel = open_default(ns, &locked);
	TimestampTz oldest;
	bool		found;

	if (rel == NULL)
		return locked ? HMS_STEP_BLOCKED : HMS_STEP_IDLE;

	found = hms_partman_default_oldest(RelationGetRelid(rel), &oldest);
	hms_leaf_close(rel);
	if (!found)
		return HMS_STEP_IDLE;
	return heal_partition(ns, oldest);
}

/*
 * hms_retention_runway_left
 *		Partitions ready ahead of now, without a gap; 0 also when that of now
 *		is missing.
 */
int
hms_retention_runway_left(const HmsNamespace *ns, TimestampTz now)
{
	TimestampTz at = publishing_time(ns, now);
	TimestampTz lower;
	int			count = 0;

	while (has_partition(ns, at))
	{
		count++;
		hms_partman_bounds(&ns->partition_interval, at, &lower, &at);
	}
	return Max(count - 1, 0);
}

/*
 * hms_retention_default_rows
 *		Rows in the default partition, estimated above 10,000; 1 while they are
 *		being moved.
 */
int64
hms_retention_default_rows(const HmsNamespace *ns)
{
	bool		locked;
	Relation	rel = open_default(ns, &locked);
	int64		rows;

	if (rel == NULL)
		return locked ? 1 : 0;
	rows = hms_partman_default_rows(RelationGetRelid(rel));
	hms_leaf_close(rel);
	return rows;
}
