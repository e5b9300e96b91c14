/*-------------------------------------------------------------------------
 *
 * hotmesh.h
 *	  HotMesh's contract on streams and groups: publish, answer, give up.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_HOTMESH_H
#define HMS_CORE_HOTMESH_H

#include "core/read.h"
#include "core/settle.h"
#include "core/stream_data.h"
#include "core/throttle.h"

/* What a stream or group has that HotMesh's functions create. */
#define HMS_HOTMESH_MAX_PRIORITY	6
#define HMS_HOTMESH_MESSAGE_BYTES	1048576
#define HMS_HOTMESH_LEASE_US		(INT64CONST(30) * USECS_PER_SEC)

/* Codes of HotMesh. */
#define HMS_HOTMESH_UNKNOWN			500
#define HMS_HOTMESH_UNACKED			999

typedef struct HmsPublishOptions
{
	bool		lenient;		/* take what HotMesh's users may write */
	bool		has_delay;
	int64		delay_ms;
	HmsRetryPolicy retry;
	Datum		retry_headers;	/* jsonb of the retry policy, 0 = none */
} HmsPublishOptions;

/* 'json' may be NULL; raises 22023 naming the option. */
extern void hms_publish_options_parse(text *json, HmsPublishOptions *out);

/*
 * The stream of this name, created if there is none (which needs manage on the
 * database), and the group, created with HotMesh's defaults if there is none.
 */
extern void hms_hotmesh_stream(const char *name, HmsStream *out);
extern void hms_hotmesh_group(const HmsStream *stream, const char *name, HmsGroup *out);

/* ENGINE for a key that ends with ':', else WORKER. */
extern const char *hms_hotmesh_default_group(const char *stream);

/* The key of the engine's stream of the application that a key belongs to; false when it is no key. */
extern bool hms_hotmesh_engine_stream(const char *stream, char *engine);

/*
 * Publish a JSON array of StreamData, all or none; returns the messages with their ids.
 * Each element keeps its bytes.  Raises 22023 naming the element and key.
 */
extern HmsNewMessage *hms_hotmesh_publish(const HmsStream *stream, text *messages,
										  const HmsPublishOptions *options, TimestampTz now,
										  int *nmessages);

/* The envelope as a consumer gets it: with the retries of the delivery added to metadata.try. */
extern text *hms_hotmesh_envelope(const HmsMessage *message);

typedef enum HmsOutcome
{
	HMS_COMPLETED,				/* answered and acknowledged */
	HMS_RETRYING,				/* an error that its policy retries */
	HMS_LOST					/* the receipt settles nothing; nothing was
								 * published */
} HmsOutcome;

/*
 * Answer one delivery: acknowledge it and publish 'response' (an envelope) to 'to', or, when the
 * response is an error that the message's policy retries, make it due again after the pause.
 * *id is the response's id when there is one.
 */
extern HmsOutcome hms_hotmesh_complete(const HmsStream *stream, const HmsGroup *group,
									   const HmsReceipt *receipt, const HmsStream *to,
									   text *response, const HmsPublishOptions *options,
									   TimestampTz now, int64 *id);

/*
 * A message of a group with error_stream has used up its deliveries: publish the error
 * response.  Does nothing for a message that is no envelope, or is such a response itself.
 */
extern void hms_hotmesh_exhausted(const HmsGroup *group, const HmsMessage *message,
								  TimestampTz now);

/*
 * Delete the messages of a job (by its jid) from all streams whose names begin with
 * 'prefix', with their deliveries; returns how many.  Needs manage on each of them.
 */
extern int	hms_hotmesh_expire_job(const char *prefix, const char *jid);

#endif							/* HMS_CORE_HOTMESH_H */
