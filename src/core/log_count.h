/*-------------------------------------------------------------------------
 *
 * log_count.h
 *	  How many messages lie in a range of a stream: exact up to a limit, then estimated.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_LOG_COUNT_H
#define HMS_CORE_LOG_COUNT_H

#include "core/cursor.h"

/* Rows counted one by one before the rest is estimated. */
#define HMS_COUNT_EXACT_ROWS	100000

typedef struct HmsLogCount
{
	bool		want_bytes;		/* in: sum up payload, body and headers too */
	int64		budget;			/* rows that may still be counted one by one */
	int64		rows;
	int64		bytes;
	bool		estimated;
	int64		lowest_id;		/* PG_INT64_MAX if there is no row */
	TimestampTz lowest_at;		/* its published_at */
} HmsLogCount;

extern void hms_log_count_init(HmsLogCount *count, bool want_bytes);

/* Add the messages of one priority with after < id <= upto. */
extern void hms_log_count_level(HmsLogCount *count, const HmsStream *stream, HmsLogView *view,
								Snapshot snapshot, int priority, int64 after, int64 upto);

/* Add the messages that a cursor has passed and still owes: those of pending transactions that committed. */
extern void hms_log_count_pending(HmsLogCount *count, const HmsStream *stream, HmsLogView *view,
								  Snapshot snapshot, const HmsCursor *cursor);

#endif							/* HMS_CORE_LOG_COUNT_H */
