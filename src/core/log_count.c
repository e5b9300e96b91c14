/*-------------------------------------------------------------------------
 *
 * log_count.c
 *	  How many messages lie in a range of a stream.
 *
 * The first HMS_COUNT_EXACT_ROWS rows are counted by walking the log's index
 * under the caller's snapshot.  What lies behind them is estimated: the remaining
 * ids are cut into windows, the beginning of each window is walked, and its
 * density is taken for the whole window.  So a count never walks more than about
 * 120,000 rows, however long the backlog is.  Reads only; runs on a standby.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"
#include "access/stratnum.h"
#include "miscadmin.h"

#include "core/log_count.h"
#include "core/log_merge.h"

#define WINDOWS			128
#define WINDOW_ROWS		128

void
hms_log_count_init(HmsLogCount *count, bool want_bytes)
{
	memset(count, 0, sizeof(*count));
	count->want_bytes = want_bytes;
	count->budget = HMS_COUNT_EXACT_ROWS;
	count->lowest_id = PG_INT64_MAX;
}

/* Size of a value as its consumer gets it; nothing is detoasted. */
static int64
value_bytes(TupleTableSlot *slot, AttrNumber attno)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, attno, &isnull);

	return isnull ? 0 : (int64) (toast_raw_datum_size(value) - VARHDRSZ);
}

/* Count one row; false when the budget does not allow it. */
static bool
count_row(HmsLogCount *count, TupleTableSlot *slot, int64 id)
{
	CHECK_FOR_INTERRUPTS();
	if (id < count->lowest_id)
	{
		count->lowest_id = id;
		count->lowest_at = DatumGetTimestampTz(hms_log_column(slot, HMS_LOG_PUBLISHED_AT));
	}
	if (count->budget <= 0)
		return false;
	count->budget--;
	count->rows++;
	if (count->want_bytes)
		count->bytes += value_bytes(slot, HMS_LOG_HEADERS) +
			value_bytes(slot, HMS_LOG_PAYLOAD) +
			value_bytes(slot, HMS_LOG_BODY);
	return true;
}

/* Rows with after < id <= upto, from the density at the beginning of the range. */
static double
estimate_window(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
				int priority, int64 after, int64 upto)
{
	HmsLogWalk *walk;
	TupleTableSlot *slot;
	int64		last_id = after;
	int			rows = 0;

	walk = hms_log_walk_begin(stream, view, snapshot, priority, after, upto, ForwardScanDirection);
	while (rows < WINDOW_ROWS && (slot = hms_log_walk_next(walk)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		last_id = DatumGetInt64(hms_log_column(slot, HMS_LOG_ID));
		rows++;
	}
	hms_log_walk_end(walk);

	if (rows < WINDOW_ROWS)
		return rows;
	return rows * ((double) (upto - after) / (double) (last_id - after));
}

/* Rows with after < id <= upto, by sampling windows. */
static int64
estimate_rest(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
			  int priority, int64 after, int64 upto)
{
	HmsLogWalk *walk;
	TupleTableSlot *slot;
	int64		width;
	double		rows = 0;

	walk = hms_log_walk_begin(stream, view, snapshot, priority, after, upto, BackwardScanDirection);
	slot = hms_log_walk_next(walk);
	if (slot != NULL)
		upto = DatumGetInt64(hms_log_column(slot, HMS_LOG_ID));
	hms_log_walk_end(walk);
	if (slot == NULL)
		return 0;

	width = Max((upto - after) / WINDOWS, 1);
	for (int i = 0; i < WINDOWS && after < upto; i++)
	{
		int64		end = (i == WINDOWS - 1) ? upto : Min(after + width, upto);

		rows += estimate_window(stream, view, snapshot, priority, after, end);
		after = end;
	}
	return (int64) rows;
}

void
hms_log_count_level(HmsLogCount *count, const HmsStream *stream, HmsLogView *view,
					Snapshot snapshot, int priority, int64 after, int64 upto)
{
	HmsLogWalk *walk;
	TupleTableSlot *slot;
	bool		complete = true;

	walk = hms_log_walk_begin(stream, view, snapshot, priority, after, upto, ForwardScanDirection);
	while ((slot = hms_log_walk_next(walk)) != NULL)
	{
		int64		id = DatumGetInt64(hms_log_column(slot, HMS_LOG_ID));

		if (!count_row(count, slot, id))
		{
			complete = false;
			break;
		}
		after = id;
	}
	hms_log_walk_end(walk);

	if (!complete)
	{
		int64		rest = estimate_rest(stream, view, snapshot, priority, after, upto);

		if (count->want_bytes && count->rows > 0)
			count->bytes += (int64) ((double) count->bytes / (double) count->rows * (double) rest);
		count->rows += rest;
		count->estimated = true;
	}
}

/* Count the rows of one pending entry in one leaf that the cursor has passed; false when the budget ended. */
static bool
count_pending_leaf(HmsLogCount *count, const HmsStream *stream, Relation heap, Oid xid_idx,
				   Snapshot snapshot, const HmsCursor *cursor, const HmsPending *pending)
{
	ScanKeyData keys[4];
	HmsScan		scan;
	bool		complete = true;

	hms_key_int8(&keys[0], 1, BTGreaterEqualStrategyNumber, pending->from);
	hms_key_int8(&keys[1], 1, BTLessStrategyNumber, pending->to);
	hms_key_int4(&keys[2], 2, BTEqualStrategyNumber, stream->stream_id);
	hms_key_int8(&keys[3], 3, BTGreaterStrategyNumber, pending->after);
	hms_scan_begin(&scan, heap, xid_idx, snapshot, lengthof(keys), keys);
	while (complete && hms_scan_next(&scan, ForwardScanDirection))
	{
		int64		id = DatumGetInt64(hms_log_column(scan.slot, HMS_LOG_ID));
		int			priority = DatumGetInt16(hms_log_column(scan.slot, HMS_LOG_PRIORITY));

		/* Ids that the cursor has not passed are counted by their level. */
		if (id <= cursor->pos[priority])
			complete = count_row(count, scan.slot, id);
	}
	hms_scan_end(&scan);
	return complete;
}

void
hms_log_count_pending(HmsLogCount *count, const HmsStream *stream, HmsLogView *view,
					  Snapshot snapshot, const HmsCursor *cursor)
{
	for (int i = 0; i < cursor->npending; i++)
	{
		const HmsPending *pending = &cursor->pending[i];

		for (int j = 0; j < view->nleaves; j++)
		{
			const HmsLeaf *leaf = &view->leaves[j];
			Relation	rel;

			if (leaf->sealed && leaf->max_id <= pending->after)
				continue;
			rel = hms_log_leaf(view, j);
			if (rel == NULL)
				continue;
			if (!count_pending_leaf(count, stream, rel, leaf->xid_idx,
									snapshot, cursor, pending))
			{
				count->estimated = true;
				return;
			}
		}
	}
}
