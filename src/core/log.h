/*-------------------------------------------------------------------------
 *
 * log.h
 *	  The log as core sees it: append, fetch by id, walk in id order, walk a
 *	  transaction's messages; partitions are pruned here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_LOG_H
#define HMS_CORE_LOG_H

#include "core/stream_cache.h"
#include "nodes/pg_list.h"
#include "shmem/log_slot.h"
#include "storage/route.h"
#include "storage/scan.h"

/* Columns of hotmesh_stream.log_row. */
enum
{
	HMS_LOG_STREAM_ID = 1,
	HMS_LOG_PRIORITY,
	HMS_LOG_ID,
	HMS_LOG_XID,
	HMS_LOG_PUBLISHED_AT,
	HMS_LOG_DELIVER_AT,
	HMS_LOG_EXPIRES_AT,
	HMS_LOG_KEY,
	HMS_LOG_HEADERS,
	HMS_LOG_PAYLOAD,
	HMS_LOG_BODY,
	HMS_LOG_CONTENT_TYPE,
	HMS_LOG_DEDUP_ID,
	HMS_LOG_NCOLUMNS = HMS_LOG_DEDUP_ID
};

/* A message copied out of the log (varlenas detoasted, in the current context). */
typedef struct HmsMessage
{
	int64		id;
	HmsXid		xid;
	int32		priority;
	TimestampTz published_at;
	bool		has_deliver_at;
	TimestampTz deliver_at;
	struct varlena *key;		/* NULL = SQL null, as for the others */
	struct varlena *headers;
	struct varlena *payload;
	struct varlena *body;
	struct varlena *content_type;
	/* the delivery's side */
	int64		token;
	int32		attempts;
	int32		retries;
	TimestampTz first_delivered_at;
	TimestampTz delivered_at;
	TimestampTz lease_until;	/* DT_NOEND = no lease */
} HmsMessage;

extern Size hms_message_bytes(const HmsMessage *message);	/* payload + body +
															 * headers */

/* A palloc'd copy of an array of ids, sorted and without duplicates; returns their number. */
extern int	hms_sorted_ids(const int64 *ids, int nids, int64 **sorted);

/* The log's shared-memory slot, with the catalog's bounds merged when it is new; NULL when full and on a standby. */
extern HmsLogSlot *hms_log_attach(Oid log_relid, int32 namespace_id);

/*
 * Leaves that may hold rows visible to 'snapshot', with low < id <= high possible, in order of
 * min_id.  Call after the snapshot was taken: it waits for a healing in
 * progress and processes invalidations, so that no visible row is missed.  A leaf is opened and
 * locked with AccessShareLock when it is first needed; hms_log_release() closes them all.
 */
typedef struct HmsLogView
{
	Oid			log_relid;
	int32		namespace_id;
	int			nleaves;
	HmsLeaf    *leaves;			/* sorted by min_id */
	Relation   *rels;			/* NULL = not opened so far */
	HmsScan    *fetch;			/* scans of hms_log_fetch(); opened when
								 * needed */
	bool	   *fetch_open;
	Oid			default_locked; /* InvalidOid if the default partition was not
								 * needed */
} HmsLogView;

extern void hms_log_view(HmsLogView *view, Oid log_relid, int32 namespace_id, int64 low_id, int64 high_id);
extern void hms_log_release(HmsLogView *view);

/* The relation of a leaf, opened now if it was not; NULL when the leaf was dropped, so that nobody is owed its rows. */
extern Relation hms_log_leaf(HmsLogView *view, int leaf);

/* Keep the partitions that a view has opened from being dropped until this transaction ends; not the default one. */
extern void hms_log_pin(const HmsLogView *view);

/* Copy the current row of a scan. */
extern void hms_log_copy_message(TupleTableSlot *slot, HmsMessage *message);

/* Fetch one message by id; false when it is not visible (deleted, retired, uncommitted). */
extern bool hms_log_fetch(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
						  int priority, int64 id, HmsMessage *message);

/*
 * A merged walk over the leaves of a view in id order: a stream's messages of one priority, or those
 * of one transaction to the stream.  The slot returned is valid until the next call.
 */
typedef struct HmsLogWalk HmsLogWalk;
extern HmsLogWalk *hms_log_walk_begin(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
									  int priority, int64 after_id, int64 upto_id, ScanDirection direction);

/* A forward walk that has come to its end goes on behind it, up to a higher id. */
extern void hms_log_walk_on(HmsLogWalk *walk, int64 upto_id);

/* All transactions of a log use one walk; position it with hms_log_walk_xid(). */
extern HmsLogWalk *hms_log_xid_walk_begin(const HmsStream *stream, HmsLogView *view, Snapshot snapshot);
extern void hms_log_walk_xid(HmsLogWalk *walk, HmsXid xid, int64 after_id, int64 upto_id);
extern TupleTableSlot *hms_log_walk_next(HmsLogWalk *walk); /* NULL at the end */
extern int64 hms_log_walk_invisible(HmsLogWalk *walk);
extern void hms_log_walk_end(HmsLogWalk *walk);

/* The lowest xid in [from, to) that has a visible message in any stream of the log; 'to' if none. */
extern HmsXid hms_log_next_xid(HmsLogView *view, Snapshot snapshot, HmsXid from, HmsXid to);

/* The highest xid stored in a log; -1 if it is empty. */
extern HmsXid hms_log_highest_xid(const HmsNamespace *ns, Snapshot snapshot);

/* Append messages (ids and published_at are assigned here); returns with one CommandCounterIncrement done. */
typedef struct HmsNewMessage
{
	int64		id;				/* out */
	TimestampTz deliver_at;		/* DT_NOBEGIN = at once */
	int32		priority;
	Datum		headers;		/* 0 = null */
	Datum		payload;
	Datum		body;
	Datum		content_type;
	Datum		key;
} HmsNewMessage;

extern void hms_log_append(const HmsStream *stream, HmsNewMessage *messages, int nmessages, TimestampTz now);

/* Put a message that retention has dropped back under its old id (redrive); groups that passed it do not see it again. */
extern void hms_log_restore(const HmsStream *stream, const HmsMessage *message, TimestampTz now);

#endif							/* HMS_CORE_LOG_H */
