/*-------------------------------------------------------------------------
 *
 * retention.c
 *	  Dropping the oldest partition of a log.
 *
 * A sealed partition goes when it is older than 'retention' and no group is
 * owed anything in it, or when it is older than 'retention_hard', whoever is
 * owed; what groups lose then is counted.  Age is that of the upper bound,
 * by a clock that is the lower of now and the newest message's published_at:
 * a server whose clock is a year ahead drops nothing until somebody publishes.
 * The last partition always stays.
 *
 * Everything is looked at under a light lock first.  Only what may go is
 * locked AccessExclusive, and then, nobody being able to add a delivery from
 * it, looked at again with a snapshot taken after the lock.
 *
 * One partition per transaction.  A crash leaves either the partition with its
 * seal or neither.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "core/leaf.h"
#include "core/log.h"
#include "core/retention.h"
#include "core/sealing.h"
#include "debug/debug_point.h"
#include "shmem/effects.h"
#include "storage/partman.h"
#include "storage/route.h"

/* Lost messages are counted one by one up to this many per group. */
#define TALLY_LIMIT		100000

typedef struct Loss
{
	int32		stream_id;
	int64		messages;
} Loss;

/* Called for each group of a namespace that is owed something; false stops. */
typedef bool (*OwedVisitor) (const HmsStream *stream, const HmsGroup *group,
							 const HmsOwed *owed, void *arg);

/* The oldest partition, when it is not the only one. */
static bool
oldest_leaf(const HmsNamespace *ns, HmsLeaf *leaf)
{
	const HmsLeaves *leaves = hms_route_leaves(ns->log_relid, ns->namespace_id);
	int			partitions = leaves->nleaves - (leaves->default_index >= 0 ? 1 : 0);

	if (partitions < 2)
		return false;
	*leaf = leaves->leaves[0];
	return true;
}

/* Was anything published at or after a time?  Looks into the newest leaves first. */
static bool
published_since(const HmsNamespace *ns, TimestampTz since)
{
	HmsLeaves	leaves = *hms_route_leaves(ns->log_relid, ns->namespace_id);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	HmsLeaf    *copy = palloc(sizeof(HmsLeaf) * leaves.nleaves);
	bool		found = false;

	memcpy(copy, leaves.leaves, sizeof(HmsLeaf) * leaves.nleaves);
	for (int i = leaves.nleaves - 1; i >= 0 && !found; i--)
	{
		Relation	rel;

		if (copy[i].is_default)
			continue;
		if (copy[i].upper <= since)
			break;
		rel = hms_leaf_open(&copy[i]);
		if (rel == NULL)
			continue;
		found = hms_leaf_published_since(&copy[i], rel, snapshot, since);
		hms_leaf_close(rel);
	}
	pfree(copy);
	UnregisterSnapshot(snapshot);
	return found;
}

/* Has a leaf passed a retention time? */
static bool
is_expired(const HmsNamespace *ns, const HmsLeaf *leaf, const Interval *age, TimestampTz now)
{
	/* As timestamp without time zone: days are those of UTC. */
	TimestampTz end = DatumGetTimestamp(DirectFunctionCall2(timestamp_pl_interval,
															TimestampGetDatum(leaf->upper),
															IntervalPGetDatum(age)));

	return end <= now && published_since(ns, end);
}

/* Visit the groups of a namespace that are owed something in an open leaf. */
static void
each_owed(const HmsNamespace *ns, const HmsLeaf *leaf, Relation rel, int64 limit,
		  OwedVisitor visit, void *arg)
{
	Snapshot	snapshot;
	HmsGroup   *groups;
	int			ngroups;

	if (leaf->max_id == 0)
		return;

	ngroups = hms_list_groups(0, &groups);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	for (int i = 0; i < ngroups; i++)
	{
		HmsStream	stream;
		HmsOwed		owed;

		if (!hms_stream_by_id(groups[i].stream_id, &stream) ||
			stream.namespace_id != ns->namespace_id)
			continue;
		hms_leaf_owed(leaf, rel, snapshot, &stream, &groups[i], limit, &owed);
		if (owed.reason != HMS_OWED_NOTHING && !visit(&stream, &groups[i], &owed, arg))
			break;
	}
	UnregisterSnapshot(snapshot);
}

static bool
note_any(const HmsStream *stream, const HmsGroup *group, const HmsOwed *owed, void *arg)
{
	*(bool *) arg = true;
	return false;
}

static bool
is_owed(const HmsNamespace *ns, const HmsLeaf *leaf, Relation rel)
{
	bool		any = false;

	each_owed(ns, leaf, rel, 1, note_any, &any);
	return any;
}

/* Remember what a group loses; it is counted once the partition is gone. */
static bool
note_loss(const HmsStream *stream, const HmsGroup *group, const HmsOwed *owed, void *arg)
{
	List	  **losses = arg;
	Loss	   *loss;

	if (owed->reason == HMS_OWED_UNKNOWN)
		return true;
	loss = palloc(sizeof(Loss));
	loss->stream_id = stream->stream_id;
	loss->messages = owed->messages;
	*losses = lappend(*losses, loss);
	return true;
}

static void
count_losses(List *losses)
{
	ListCell   *lc;

	foreach(lc, losses)
	{
		Loss	   *loss = lfirst(lc);

		hms_effects_count_stream(loss->stream_id, HMS_STREAM_RETIRED_UNREAD, loss->messages);
	}
}

/* Drop a leaf that may go; 'hard' = whoever is owed. */
static HmsStep
drop_leaf(const HmsNamespace *ns, const HmsLeaf *leaf, bool hard)
{
	Relation	rel;
	bool		owed;

	if (!hms_partman_lock_leaf(leaf->relid))
		return HMS_STEP_BLOCKED;
	HMS_DEBUG_POINT("retention-locked");

	if (!hard)
	{
		rel = relation_open(leaf->relid, NoLock);
		owed = is_owed(ns, leaf, rel);
		relation_close(rel, NoLock);
		if (owed)
			return HMS_STEP_IDLE;
	}
	if (!hms_partman_drop_locked_leaf(leaf->relid))
		return HMS_STEP_BLOCKED;
	hms_seal_break(ns, leaf);
	return HMS_STEP_DONE;
}

/*
 * hms_retention_drop
 *		Drop the oldest partition that retention or retention_hard lets go.
 */
HmsStep
hms_retention_drop(const HmsNamespace *ns, TimestampTz now)
{
	HmsLeaf		leaf;
	Relation	rel;
	List	   *losses = NIL;
	bool		hard;
	bool		owed = false;
	HmsStep		step;

	if (!oldest_leaf(ns, &leaf) || !leaf.sealed)
		return HMS_STEP_IDLE;
	hard = ns->has_retention_hard && is_expired(ns, &leaf, &ns->retention_hard, now);
	if (!hard && !(ns->has_retention && is_expired(ns, &leaf, &ns->retention, now)))
		return HMS_STEP_IDLE;

	rel = hms_leaf_open(&leaf);
	if (rel == NULL)
		return HMS_STEP_BLOCKED;
	if (hard)
		each_owed(ns, &leaf, rel, TALLY_LIMIT, note_loss, &losses);
	else
		owed = is_owed(ns, &leaf, rel);
	hms_leaf_close(rel);
	if (owed)
		return HMS_STEP_IDLE;

	step = drop_leaf(ns, &leaf, hard);
	if (step == HMS_STEP_DONE)
		count_losses(losses);
	return step;
}

/* Say in words what holds a partition back. */
static bool
describe_owed(const HmsStream *stream, const HmsGroup *group, const HmsOwed *owed, void *arg)
{
	char	  **text = arg;
	const char *what = "";

	switch (owed->reason)
	{
		case HMS_OWED_UNREAD:
			what = "has not read message";
			break;
		case HMS_OWED_LATE:
			what = "has not read late message";
			break;
		case HMS_OWED_DELIVERY:
			what = "has not settled message";
			break;
		case HMS_OWED_UNKNOWN:
		case HMS_OWED_NOTHING:
			return true;
	}
	*text = psprintf("group \"%s\" of stream \"%s\" %s %lld", group->name,
					 stream->name, what, (long long) owed->id);
	return false;
}

/*
 * hms_retention_blocker
 *		Why the oldest expired partition is still there, in words; NULL if
 *		nothing holds one.
 */
char *
hms_retention_blocker(const HmsNamespace *ns, TimestampTz now)
{
	HmsLeaf		leaf;
	Relation	rel;
	char	   *text = NULL;

	if (!ns->has_retention || !oldest_leaf(ns, &leaf) ||
		!is_expired(ns, &leaf, &ns->retention, now))
		return NULL;
	if (!leaf.sealed)
		return psprintf("a transaction that published before %s may still be open",
						timestamptz_to_str(leaf.upper));

	rel = hms_leaf_open(&leaf);
	if (rel == NULL)
		return NULL;
	each_owed(ns, &leaf, rel, 1, describe_owed, &text);
	hms_leaf_close(rel);
	return text;
}
