/*-------------------------------------------------------------------------
 *
 * log_trim.c
 *	  Deleting the oldest messages of a stream, or those of a key.
 *
 * Ids are found under one snapshot and deleted in batches (log_admin.c) in the same
 * transaction, so that a trim is all or nothing.  What commits meanwhile stays.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "core/log_admin.h"
#include "core/log_merge.h"
#include "core/log_trim.h"
#include "storage/scan.h"

/* Ids deleted at a time. */
#define BATCH	1000

typedef struct IdList
{
	int64	   *ids;
	int64		n;
	int64		capacity;
} IdList;

static void
add_id(IdList *list, int64 id)
{
	if (list->n == list->capacity)
	{
		list->capacity = Max(list->capacity * 2, 256);
		list->ids = list->ids == NULL ?
			MemoryContextAllocHuge(CurrentMemoryContext, sizeof(int64) * list->capacity) :
			repalloc_huge(list->ids, sizeof(int64) * list->capacity);
	}
	list->ids[list->n++] = id;
}

static int64
delete_ids(const HmsStream *stream, const IdList *list, bool only_settled)
{
	int64		deleted = 0;

	for (int64 done = 0; done < list->n; done += BATCH)
		deleted += hms_log_delete(stream, list->ids + done,
								  (int) Min(BATCH, list->n - done), only_settled);
	return deleted;
}

/*
 * The ids to trim, newest first; *live is how many of them some group has not done with.
 */
static void
find_trimmed(const HmsStream *stream, const HmsTrim *trim, IdList *list, int64 *live)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	HmsSettledView *settled = hms_settled_view(stream, snapshot);
	HmsLogView	view;
	HmsLogMerge *merge;
	TupleTableSlot *slot;
	int64		id;
	int			priority;
	int64		kept = 0;

	*live = 0;
	hms_log_view(&view, stream->log_relid, stream->namespace_id, 0, PG_INT64_MAX);
	merge = hms_log_merge_range(stream, &view, snapshot, 0, PG_INT64_MAX, BackwardScanDirection);
	while ((slot = hms_log_merge_next(merge, &id, &priority)) != NULL)
	{
		TimestampTz published_at = DatumGetTimestampTz(hms_log_column(slot, HMS_LOG_PUBLISHED_AT));
		bool		counts = !trim->count_live || !hms_settled(settled, slot, id);

		CHECK_FOR_INTERRUPTS();
		if (counts)
			kept++;
		if (!(trim->max_len >= 0 && kept > trim->max_len) &&
			id >= trim->before_id && published_at >= trim->before)
			continue;
		add_id(list, id);
		if (counts)
			(*live)++;
	}
	hms_log_merge_end(merge);
	hms_log_release(&view);
	hms_settled_view_end(settled);
	UnregisterSnapshot(snapshot);
}

int64
hms_log_trim(const HmsStream *stream, const HmsTrim *trim)
{
	IdList		list = {0};
	int64		live;
	int64		deleted;

	find_trimmed(stream, trim, &list, &live);
	deleted = delete_ids(stream, &list, trim->only_settled);
	return trim->count_live ? Min(live, deleted) : deleted;
}

int64
hms_log_purge(const HmsStream *stream, int keep)
{
	HmsTrim		trim = {.max_len = keep,.before = DT_NOBEGIN};

	return hms_log_trim(stream, &trim);
}

/* Add the ids that one partition has of a key. */
static void
find_key(const HmsStream *stream, HmsLogView *view, int leaf, Snapshot snapshot,
		 const text *key, IdList *list)
{
	Relation	rel = hms_log_leaf(view, leaf);
	ScanKeyData keys[2];
	HmsScan		scan;

	if (rel == NULL)
		return;
	hms_key_text(&keys[0], 1, key);
	hms_key_int4(&keys[1], 2, BTEqualStrategyNumber, stream->stream_id);
	hms_scan_begin(&scan, rel, view->leaves[leaf].key_idx, snapshot, lengthof(keys), keys);
	while (hms_scan_next(&scan, ForwardScanDirection))
	{
		CHECK_FOR_INTERRUPTS();
		add_id(list, DatumGetInt64(hms_log_column(scan.slot, HMS_LOG_ID)));
	}
	hms_scan_end(&scan);
}

int64
hms_log_purge_key(const HmsStream *stream, const char *key, int keep)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	text	   *wanted = cstring_to_text(key);
	IdList		list = {0};
	IdList		sorted = {0};
	HmsLogView	view;

	hms_log_view(&view, stream->log_relid, stream->namespace_id, 0, PG_INT64_MAX);
	for (int i = 0; i < view.nleaves; i++)
		find_key(stream, &view, i, snapshot, wanted, &list);
	hms_log_release(&view);
	UnregisterSnapshot(snapshot);
	if (list.n <= keep)
		return 0;

	sorted.n = hms_sorted_ids(list.ids, (int) list.n, &sorted.ids) - keep;
	return delete_ids(stream, &sorted, false);
}
