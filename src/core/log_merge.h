/*-------------------------------------------------------------------------
 *
 * log_merge.h
 *	  A stream's messages of all priorities in one id order.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_LOG_MERGE_H
#define HMS_CORE_LOG_MERGE_H

#include "core/log.h"

typedef struct HmsLogMerge HmsLogMerge;

/*
 * Walk the ids after[p] < id <= upto[p] of each priority p, as 'snapshot' sees
 * them.  The view must outlive the walk.
 */
extern HmsLogMerge *hms_log_merge_begin(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
										const int64 *after, const int64 *upto, ScanDirection direction);

/* The same with one pair of bounds for every priority. */
extern HmsLogMerge *hms_log_merge_range(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
										int64 after, int64 upto, ScanDirection direction);

/* The next row, valid until the next call; NULL at the end. */
extern TupleTableSlot *hms_log_merge_next(HmsLogMerge *merge, int64 *id, int *priority);
extern void hms_log_merge_end(HmsLogMerge *merge);

/* One column that is never null. */
extern Datum hms_log_column(TupleTableSlot *slot, AttrNumber attno);

#endif							/* HMS_CORE_LOG_MERGE_H */
