/*-------------------------------------------------------------------------
 *
 * dead_letter.h
 *	  Ending deliveries that a group gave up, and bringing them back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_DEAD_LETTER_H
#define HMS_CORE_DEAD_LETTER_H

#include "core/delivery.h"

/* Columns of hotmesh_stream.dead_letter. */
enum
{
	HMS_DEAD_GROUP_ID = 1,
	HMS_DEAD_ID,
	HMS_DEAD_PRIORITY,
	HMS_DEAD_ATTEMPTS,
	HMS_DEAD_DEAD_AT,
	HMS_DEAD_REASON,
	HMS_DEAD_FIRST_DELIVERED_AT,
	HMS_DEAD_LAST_DELIVERED_AT,
	HMS_DEAD_LAST_CONSUMER,
	HMS_DEAD_LAST_ERROR,
	HMS_DEAD_PUBLISHED_AT,
	HMS_DEAD_KEY,
	HMS_DEAD_HEADERS,
	HMS_DEAD_PAYLOAD,
	HMS_DEAD_BODY,
	HMS_DEAD_CONTENT_TYPE,
	HMS_DEAD_NCOLUMNS = HMS_DEAD_CONTENT_TYPE
};

/* The reason of a dead letter whose last allowed attempt failed or lapsed. */
#define HMS_REASON_MAX_DELIVER	"max_deliver"

/*
 * Turn a locked delivery into a dead letter with its own copy of the message;
 * without a message (gone from the log) the delivery is only deleted and counted.
 * Returns true when a dead letter was written.  The caller increments the command counter.
 */
extern bool hms_bury_locked(const HmsGroup *group, Relation deliveries, ItemPointer tid,
							Snapshot snapshot, const HmsDelivery *delivery,
							const HmsMessage *message, const char *reason, TimestampTz now);

/*
 * Make up to max_messages dead letters due again, lowest ids first, with delivery_count
 * restarting; with to_stream, publish them there instead.  nids = -1: any.
 * A dead letter that another transaction redrives or discards is skipped.  Returns how many.
 */
extern int	hms_redrive(const HmsStream *stream, const HmsGroup *group, const int64 *ids, int nids,
						int max_messages, const HmsStream *to_stream, TimestampTz now);

#endif							/* HMS_CORE_DEAD_LETTER_H */
