/*-------------------------------------------------------------------------
 *
 * read.h
 *	  Reading: due deliveries first, then the log, perhaps waiting.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_READ_H
#define HMS_CORE_READ_H

#include "core/log.h"
#include "core/stream_cache.h"

typedef struct HmsReadRequest
{
	const char *stream;
	const char *group;
	const char *consumer;
	int			max_messages;
	int64		max_bytes;		/* 0 = no limit */
	int64		ack_wait_us;	/* -1 = the group's */
	int64		wait_us;
	bool		no_ack;
	bool		short_path;		/* a bare autocommit read: may hold the cursor
								 * until commit */
	bool		throttled;		/* obey throttles and registrations */
	bool		fair;			/* lower priorities get a share */
	bool		acks;			/* ... whose statement also acks: flush after
								 * the locks */
} HmsReadRequest;

/* A growing array of messages. */
typedef struct HmsMessages
{
	HmsMessage *items;
	int			n;
	int			capacity;
	int64		bytes;
	TimestampTz held_until;		/* nothing was looked for: a throttle forbids
								 * it until then */
} HmsMessages;

extern void hms_messages_add(HmsMessages *messages, const HmsMessage *message);

/*
 * Hand out up to max_messages, leased to the consumer (or settled, with no_ack),
 * sorted by priority and id.  Raises for unknown names; checks the consume privilege.
 */
extern void hms_read(const HmsReadRequest *request, HmsMessages *out);

extern void hms_read_once(const HmsReadRequest *request, HmsMessages *out);

/* Milliseconds from now to 'when', 0 if it has passed. */
extern long hms_ms_until(TimestampTz when);

/*
 * Sleep until there may be work for the group or timeout_us is over, committing
 * before each sleep, so that no snapshot is held.  True when there may be work.  Raises 2D000 unless nonatomic.
 */
extern bool hms_wait_for_work(const char *stream, const char *group, int64 timeout_us,
							  bool nonatomic);

/* Claim due deliveries of a group, of the priorities top down to bottom; in claim.c. */
extern void hms_claim_due(const HmsStream *stream, const HmsGroup *group,
						  const HmsReadRequest *request, TimestampTz now,
						  int top, int bottom, HmsMessages *out);

#endif							/* HMS_CORE_READ_H */
