/*-------------------------------------------------------------------------
 *
 * log_admin.c
 *	  Looking into a stream's log, and deleting single messages from it.
 *
 * Both run in the backend that calls.  A query reads under the snapshot of its
 * caller, so that it agrees with the rest of the statement.  A delete takes a
 * fresh snapshot, as everything that changes state does; the leaf that it deletes
 * from stays locked RowExclusive until end of transaction, as a publish does it
 * (but not the default partition, which healing needs).  Nothing waits for a row
 * lock.  Whether a message is settled is decided under the same snapshot for the
 * cursor and the deliveries: an advance writes both in one transaction, so that a
 * message that was passed and has no delivery has been settled.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/cursor.h"
#include "core/delivery.h"
#include "core/log_admin.h"
#include "core/log_merge.h"
#include "core/log_trim.h"
#include "shmem/effects.h"
#include "storage/relset.h"
#include "storage/write.h"

/* Scans for probing one leaf by id; opened when first used. */
typedef struct LeafProbe
{
	bool		open;
	bool		locked;			/* RowExclusiveLock taken */
	HmsScan		scan;
} LeafProbe;

/* One group of the stream while messages are deleted. */
typedef struct GroupProbe
{
	HmsGroup   *group;
	bool		has_cursor;
	HmsCursor	cursor;
	HmsScan		scan;
} GroupProbe;

typedef struct DeleteState
{
	const HmsStream *stream;
	Snapshot	snapshot;
	HmsLogView	view;
	LeafProbe  *leaves;
	Relation	deliveries;
	int			ngroups;
	GroupProbe *groups;
} DeleteState;

/* Leave only the leaves that may hold rows published in [from, to); none is open so far. */
static void
prune_by_time(HmsLogView *view, TimestampTz from, TimestampTz to)
{
	int			kept = 0;

	for (int i = 0; i < view->nleaves; i++)
	{
		const HmsLeaf *leaf = &view->leaves[i];

		if (leaf->is_default || (leaf->lower < to && leaf->upper > from))
			view->leaves[kept++] = *leaf;
	}
	view->nleaves = kept;
}

void
hms_log_query(const HmsStream *stream, const HmsLogQuery *query, Snapshot snapshot,
			  HmsMessageVisitor visit, void *arg)
{
	int64		after = Max(query->from_id, 1) - 1;
	HmsLogView	view;
	HmsLogMerge *merge;
	TupleTableSlot *slot;
	MemoryContext per_row;
	int64		id;
	int			priority;
	int			found = 0;

	if (query->to_id <= after || query->from_time >= query->to_time)
		return;

	hms_log_view(&view, stream->log_relid, stream->namespace_id, after, query->to_id);
	prune_by_time(&view, query->from_time, query->to_time);
	per_row = AllocSetContextCreate(CurrentMemoryContext, "hotmesh_stream message",
									ALLOCSET_DEFAULT_SIZES);
	merge = hms_log_merge_range(stream, &view, snapshot, after, query->to_id,
								query->descending ? BackwardScanDirection : ForwardScanDirection);
	while (found < query->max_messages &&
		   (slot = hms_log_merge_next(merge, &id, &priority)) != NULL)
	{
		TimestampTz published_at = DatumGetTimestampTz(hms_log_column(slot, HMS_LOG_PUBLISHED_AT));
		MemoryContext old;
		HmsMessage	message;

		if (published_at < query->from_time || published_at >= query->to_time)
			continue;
		old = MemoryContextSwitchTo(per_row);
		hms_log_copy_message(slot, &message);
		visit(&message, arg);
		MemoryContextSwitchTo(old);
		MemoryContextReset(per_row);
		found++;
	}
	hms_log_merge_end(merge);
	MemoryContextDelete(per_row);
	hms_log_release(&view);
}

static int
compare_ids(const void *a, const void *b)
{
	int64		left = *(const int64 *) a;
	int64		right = *(const int64 *) b;

	return (left > right) - (left < right);
}

/* Sort ids and drop duplicates; returns how many are left. */
static int
sort_ids(int64 *ids, int nids)
{
	int			n = 0;

	qsort(ids, nids, sizeof(int64), compare_ids);
	for (int i = 0; i < nids; i++)
	{
		if (n == 0 || ids[n - 1] != ids[i])
			ids[n++] = ids[i];
	}
	return n;
}

/* Find a message in one leaf, in whichever priority it has. */
static bool
probe_leaf(DeleteState *state, int leaf_no, int64 id)
{
	LeafProbe  *probe = &state->leaves[leaf_no];
	const HmsLeaf *leaf = &state->view.leaves[leaf_no];
	Relation	rel;

	if (leaf->sealed && (id < leaf->min_id || id > leaf->max_id))
		return false;
	rel = hms_log_leaf(&state->view, leaf_no);
	if (rel == NULL)
		return false;
	for (int priority = 0; priority < HMS_PRIORITY_LEVELS; priority++)
	{
		ScanKeyData keys[3];

		hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, state->stream->stream_id);
		hms_key_int2(&keys[1], 2, BTEqualStrategyNumber, priority);
		hms_key_int8(&keys[2], 3, BTEqualStrategyNumber, id);
		if (probe->open)
			hms_scan_restart(&probe->scan, lengthof(keys), keys);
		else
			hms_scan_begin(&probe->scan, rel, leaf->order_idx,
						   state->snapshot, lengthof(keys), keys);
		probe->open = true;
		if (hms_scan_next(&probe->scan, ForwardScanDirection))
			return true;
	}
	return false;
}

/* Position the group's scan on its deliveries of a message. */
static void
seek_deliveries(DeleteState *state, GroupProbe *probe, int64 id)
{
	ScanKeyData keys[2];

	hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, probe->group->incarnation);
	hms_key_int8(&keys[1], 2, BTEqualStrategyNumber, id);
	hms_scan_restart(&probe->scan, lengthof(keys), keys);
}

/* True when every group has done with the message in 'slot'. */
static bool
is_settled(DeleteState *state, TupleTableSlot *slot, int64 id)
{
	int			priority = DatumGetInt16(hms_log_column(slot, HMS_LOG_PRIORITY));
	HmsXid		xid = DatumGetInt64(hms_log_column(slot, HMS_LOG_XID));

	for (int i = 0; i < state->ngroups; i++)
	{
		GroupProbe *probe = &state->groups[i];

		if (!probe->has_cursor ||
			!hms_cursor_passed(&probe->cursor, priority, id, xid))
			return false;
		seek_deliveries(state, probe, id);
		if (hms_scan_next(&probe->scan, ForwardScanDirection))
			return false;
	}
	return true;
}

/* Until we commit, our own scans do not see the row, but a rollback brings it back: keep the hint below it. */
static void
note_replaced(const DeleteState *state, const GroupProbe *probe)
{
	TupleTableSlot *slot = probe->scan.slot;
	HmsHintKey	key;

	hms_hint_key(&key, RelationGetRelid(state->deliveries), probe->group->incarnation,
				 DatumGetInt16(hms_log_column(slot, HMS_DELIVERY_PRIORITY)));
	hms_effects_replaced(&key, DatumGetTimestampTz(hms_log_column(slot, HMS_DELIVERY_DUE_AT)));
}

/* Delete what the groups have of a message; rows that somebody else holds stay. */
static void
delete_deliveries(DeleteState *state, int64 id)
{
	for (int i = 0; i < state->ngroups; i++)
	{
		GroupProbe *probe = &state->groups[i];

		seek_deliveries(state, probe, id);
		while (hms_scan_next(&probe->scan, ForwardScanDirection))
		{
			if (hms_delete_row(state->deliveries, &probe->scan.slot->tts_tid,
							   state->snapshot) == HMS_ROW_OK)
				note_replaced(state, probe);
		}
	}
}

/* Delete one message; false when it is not there, not settled although it must be, or held by another transaction. */
static bool
delete_message(DeleteState *state, int64 id, bool only_settled)
{
	for (int i = 0; i < state->view.nleaves; i++)
	{
		LeafProbe  *probe = &state->leaves[i];

		if (!probe_leaf(state, i, id))
			continue;
		if (only_settled && !is_settled(state, probe->scan.slot, id))
			return false;
		if (!probe->locked)
			LockRelationOid(state->view.leaves[i].relid, RowExclusiveLock);
		probe->locked = true;
		if (hms_delete_row(state->view.rels[i], &probe->scan.slot->tts_tid,
						   state->snapshot) != HMS_ROW_OK)
			return false;
		delete_deliveries(state, id);
		return true;
	}

	/* Nobody may be handed a message that is gone. */
	if (!only_settled)
		delete_deliveries(state, id);
	return false;
}

static void
open_groups(DeleteState *state, bool want_cursors)
{
	HmsGroup   *groups;
	Oid			index = hms_relset()->delivery_id_idx;

	state->deliveries = table_open(hms_relset()->delivery_rel, RowExclusiveLock);
	state->ngroups = hms_list_groups(state->stream->stream_id, &groups);
	state->groups = palloc0(sizeof(GroupProbe) * Max(state->ngroups, 1));
	for (int i = 0; i < state->ngroups; i++)
	{
		GroupProbe *probe = &state->groups[i];
		ScanKeyData keys[2];

		probe->group = &groups[i];
		if (want_cursors)
			probe->has_cursor = hms_cursor_peek(probe->group, state->snapshot, &probe->cursor);
		hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, probe->group->incarnation);
		hms_key_int8(&keys[1], 2, BTEqualStrategyNumber, 0);
		hms_scan_begin(&probe->scan, state->deliveries, index, state->snapshot,
					   lengthof(keys), keys);
	}
}

static void
close_all(DeleteState *state)
{
	for (int i = 0; i < state->view.nleaves; i++)
	{
		LeafProbe  *probe = &state->leaves[i];

		if (probe->open)
			hms_scan_end(&probe->scan);
		if (probe->locked && state->view.leaves[i].is_default)
			UnlockRelationOid(state->view.leaves[i].relid, RowExclusiveLock);
	}
	for (int i = 0; i < state->ngroups; i++)
		hms_scan_end(&state->groups[i].scan);
	table_close(state->deliveries, NoLock);
	hms_log_release(&state->view);
}

int
hms_log_delete(const HmsStream *stream, int64 *ids, int nids, bool only_settled)
{
	DeleteState state = {.stream = stream};
	int			deleted = 0;

	nids = sort_ids(ids, nids);
	if (nids == 0 || ids[nids - 1] < 1)
		return 0;

	state.snapshot = RegisterSnapshot(GetLatestSnapshot());
	hms_log_view(&state.view, stream->log_relid, stream->namespace_id,
				 Max(ids[0], 1) - 1, ids[nids - 1]);
	state.leaves = palloc0(sizeof(LeafProbe) * Max(state.view.nleaves, 1));
	open_groups(&state, only_settled);
	for (int i = 0; i < nids; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (delete_message(&state, ids[i], only_settled))
			deleted++;
	}
	close_all(&state);
	UnregisterSnapshot(state.snapshot);
	CommandCounterIncrement();
	if (deleted > 0)
		hms_effects_count_stream(stream->stream_id, HMS_STREAM_DELETED, deleted);
	return deleted;
}

struct HmsSettledView
{
	DeleteState state;
};

HmsSettledView *
hms_settled_view(const HmsStream *stream, Snapshot snapshot)
{
	HmsSettledView *view = palloc0(sizeof(HmsSettledView));

	view->state.stream = stream;
	view->state.snapshot = snapshot;
	open_groups(&view->state, true);
	return view;
}

bool
hms_settled(HmsSettledView *view, TupleTableSlot *slot, int64 id)
{
	return is_settled(&view->state, slot, id);
}

void
hms_settled_view_end(HmsSettledView *view)
{
	for (int i = 0; i < view->state.ngroups; i++)
		hms_scan_end(&view->state.groups[i].scan);
	table_close(view->state.deliveries, NoLock);
	pfree(view);
}
