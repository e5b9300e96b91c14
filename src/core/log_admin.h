/*-------------------------------------------------------------------------
 *
 * log_admin.h
 *	  Looking into a stream's log, and deleting single messages from it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_LOG_ADMIN_H
#define HMS_CORE_LOG_ADMIN_H

#include "core/log.h"

typedef struct HmsLogQuery
{
	int64		from_id;		/* both inclusive */
	int64		to_id;
	TimestampTz from_time;		/* from <= published_at < to */
	TimestampTz to_time;
	int			max_messages;
	bool		descending;
} HmsLogQuery;

/* Called for each message, in a context that is reset after the call. */
typedef void (*HmsMessageVisitor) (const HmsMessage *message, void *arg);

/*
 * Visit the messages of a stream that a query asks for, by id over all
 * priorities, as 'snapshot' sees them.  Takes no xid and changes nothing: works on a standby.
 */
extern void hms_log_query(const HmsStream *stream, const HmsLogQuery *query, Snapshot snapshot,
						  HmsMessageVisitor visit, void *arg);

/*
 * Delete messages by id, with the deliveries that groups of the stream have of
 * them; sorts 'ids'.  With only_settled, messages that some group still owes or
 * has in flight are left alone.  Never waits for a row: a message or delivery that another
 * transaction holds stays (a delivery's reader then finds the message gone).
 * Returns the number of messages deleted.
 */
extern int	hms_log_delete(const HmsStream *stream, int64 *ids, int nids, bool only_settled);

typedef struct HmsTrim
{
	int64		max_len;		/* keep the newest so many; -1 = no limit */
	int64		before_id;		/* trim ids below; 0 = none */
	TimestampTz before;			/* trim what was published before */
	bool		only_settled;	/* leave what some group has not done with */
	bool		count_live;		/* max_len and the result count only what some
								 * group has not done with */
} HmsTrim;

/* Delete the oldest messages of a stream, with their deliveries; returns how many. */
extern int64 hms_log_trim(const HmsStream *stream, const HmsTrim *trim);

/* Delete the messages of a stream that have a key, but for the newest 'keep'; returns how many. */
extern int64 hms_log_purge_key(const HmsStream *stream, const char *key, int keep);

/* Delete all messages of a stream but for the newest 'keep'; returns how many. */
extern int64 hms_log_purge(const HmsStream *stream, int keep);

#endif							/* HMS_CORE_LOG_ADMIN_H */
