/*-------------------------------------------------------------------------
 *
 * log_merge.c
 *	  A stream's messages of all priorities in one id order.
 *
 * The log's index is ordered by priority first, so that each level is walked by
 * itself and the walks are merged.  A level without rows costs one look and is
 * closed at once.  Runs in the backend that asks; nothing is shared, no lock but
 * the view's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "core/log_merge.h"

struct HmsLogMerge
{
	ScanDirection direction;
	int			last;			/* level of the row returned last, -1 at first */
	HmsLogWalk *walks[HMS_PRIORITY_LEVELS]; /* NULL = at its end */
	TupleTableSlot *slots[HMS_PRIORITY_LEVELS];
	int64		ids[HMS_PRIORITY_LEVELS];
};

Datum
hms_log_column(TupleTableSlot *slot, AttrNumber attno)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, attno, &isnull);

	if (isnull)
		elog(ERROR, "column %d of a log row is null", attno);
	return value;
}

static void
advance_level(HmsLogMerge *merge, int level)
{
	TupleTableSlot *slot = hms_log_walk_next(merge->walks[level]);

	if (slot == NULL)
	{
		hms_log_walk_end(merge->walks[level]);
		merge->walks[level] = NULL;
		return;
	}
	merge->slots[level] = slot;
	merge->ids[level] = DatumGetInt64(hms_log_column(slot, HMS_LOG_ID));
}

HmsLogMerge *
hms_log_merge_begin(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
					const int64 *after, const int64 *upto, ScanDirection direction)
{
	HmsLogMerge *merge = palloc0(sizeof(HmsLogMerge));

	merge->direction = direction;
	merge->last = -1;
	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
	{
		if (after[level] >= upto[level])
			continue;
		merge->walks[level] = hms_log_walk_begin(stream, view, snapshot, level,
												 after[level], upto[level], direction);
		advance_level(merge, level);
	}
	return merge;
}

HmsLogMerge *
hms_log_merge_range(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
					int64 after, int64 upto, ScanDirection direction)
{
	int64		afters[HMS_PRIORITY_LEVELS];
	int64		uptos[HMS_PRIORITY_LEVELS];

	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
	{
		afters[level] = after;
		uptos[level] = upto;
	}
	return hms_log_merge_begin(stream, view, snapshot, afters, uptos, direction);
}

TupleTableSlot *
hms_log_merge_next(HmsLogMerge *merge, int64 *id, int *priority)
{
	int			best = -1;

	CHECK_FOR_INTERRUPTS();
	if (merge->last >= 0 && merge->walks[merge->last] != NULL)
		advance_level(merge, merge->last);

	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
	{
		if (merge->walks[level] == NULL)
			continue;
		if (best < 0 ||
			(ScanDirectionIsForward(merge->direction) ?
			 merge->ids[level] < merge->ids[best] :
			 merge->ids[level] > merge->ids[best]))
			best = level;
	}

	merge->last = best;
	if (best < 0)
		return NULL;
	*id = merge->ids[best];
	*priority = best;
	return merge->slots[best];
}

void
hms_log_merge_end(HmsLogMerge *merge)
{
	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
	{
		if (merge->walks[level] != NULL)
			hms_log_walk_end(merge->walks[level]);
	}
	pfree(merge);
}
