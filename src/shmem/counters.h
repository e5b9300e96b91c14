/*-------------------------------------------------------------------------
 *
 * counters.h
 *	  Cumulative statistics of streams and groups, and consumer presence.
 *
 * Both live in shared memory; when a table is full, the oldest entry goes.  The
 * statistics are saved to a file at a clean stop and loaded at start, as
 * pg_stat_statements does; presence is the worker's to save.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_COUNTERS_H
#define HMS_SHMEM_COUNTERS_H

#include "hms.h"

typedef enum HmsStreamCounter
{
	HMS_STREAM_PUBLISHED,
	HMS_STREAM_PUBLISHED_BYTES,
	HMS_STREAM_DELETED,			/* delete_messages */
	HMS_STREAM_RETIRED_UNREAD,	/* dropped by retention_hard although owed,
								 * summed over groups */
	HMS_STREAM_NCOUNTERS
} HmsStreamCounter;

typedef enum HmsGroupCounter
{
	HMS_GROUP_DELIVERED,		/* hand-outs, first and later ones */
	HMS_GROUP_REDELIVERED,		/* hand-outs with delivery_count > 1 */
	HMS_GROUP_ACKED,
	HMS_GROUP_NACKED,
	HMS_GROUP_EXPIRED,			/* leases that lapsed and were handed out
								 * again or died */
	HMS_GROUP_DEAD,
	HMS_GROUP_REDRIVEN,
	HMS_GROUP_LOST_SETTLES,		/* receipts that settled nothing */
	HMS_GROUP_MISSING,			/* deliveries whose message was gone */
	HMS_GROUP_STALLED,			/* reads that gave up after advance_wait */
	HMS_GROUP_PROCESSING_US,	/* hand-out to ack, summed */
	HMS_GROUP_NCOUNTERS
} HmsGroupCounter;

/* Add at commit; called by effects.c.  group_id/stream_id of 'dboid'.  Never fail, no palloc. */
extern void hms_count_stream(Oid dboid, int32 stream_id, const int64 *delta);	/* HMS_STREAM_NCOUNTERS
																				 * values */
extern void hms_count_group(Oid dboid, int32 group_id, const int64 *delta); /* HMS_GROUP_NCOUNTERS
																			 * values */

/* Read; false when there is no entry (values are then zero). */
extern bool hms_stream_counters(Oid dboid, int32 stream_id, int64 *values, TimestampTz *since);
extern bool hms_group_counters(Oid dboid, int32 group_id, int64 *values, TimestampTz *since);
extern void hms_counters_forget_stream(Oid dboid, int32 stream_id);
extern void hms_counters_forget_group(Oid dboid, int32 group_id);

/* --- consumers ------------------------------------------------------------ */

typedef struct HmsPresence
{
	int32		group_id;
	char		name[HMS_MAX_NAME_BYTES + 1];
	TimestampTz last_seen;
	TimestampTz last_active;	/* DT_NOBEGIN = never */
} HmsPresence;

/* A consumer called read() at 'now'; active = it got messages.  Not transactional. */
extern void hms_presence_note(int32 group_id, const char *consumer, TimestampTz now, bool active);

/* Forget one consumer, or all of a group (consumer = NULL). */
extern void hms_presence_forget(int32 group_id, const char *consumer);

/* When a consumer was handed messages last; DT_NOBEGIN if not known. */
extern TimestampTz hms_presence_last_active(int32 group_id, const char *consumer);

/* Copy the entries of the current database seen since 'since' into a palloc'd array. */
extern int	hms_presence_list(TimestampTz since, HmsPresence **out);

/* --- for shmem.c ------------------------------------------------------------ */
extern Size hms_counters_size(void);
extern void hms_counters_init(void *ptr, bool found);
extern void hms_counters_forget_database(Oid dboid);
extern Size hms_presence_size(void);
extern void hms_presence_init(void *ptr, bool found);
extern void hms_presence_forget_database(Oid dboid);

#endif							/* HMS_SHMEM_COUNTERS_H */
