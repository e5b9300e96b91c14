/*-------------------------------------------------------------------------
 *
 * monitor.h
 *	  Numbers about streams, groups and consumers, as they are at the moment of the call.
 *
 * Everything here reads under one fresh snapshot per object, takes no lock that
 * anybody waits for and no xid, and works on a standby.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_MONITOR_H
#define HMS_CORE_MONITOR_H

#include "core/stream_cache.h"
#include "utils/jsonb.h"

typedef struct HmsStreamNumbers
{
	int64		messages;
	bool		messages_estimated;
	int64		bytes;			/* payload, body and headers */
	int64		first_id;		/* 0 = no message */
	int64		last_id;
	TimestampTz first_at;
	TimestampTz last_at;
	int			ngroups;
	double		publish_rate;	/* messages/s while counted; -1 = unknown */
	TimestampTz created_at;
	Jsonb	   *config;
} HmsStreamNumbers;

typedef struct HmsGroupNumbers
{
	int64		lag;			/* messages not handed to a delivery yet */
	bool		lag_estimated;
	int64		ready;			/* deliveries due now */
	int64		leased;			/* deliveries whose lease has not ended */
	int64		delayed;		/* deliveries due later that nobody holds */
	int64		dead;
	int64		redelivered;	/* open deliveries handed out more than once */
	int64		ack_floor;		/* see monitor_group.c */
	int64		last_delivered_id;
	int			waiting;		/* blocked readers */
	int64		oldest_age_us;	/* -1 = nothing is owed */
	int64		avg_processing_us;	/* -1 = nothing was acked */
	Jsonb	   *last_error;		/* NULL = none */
	TimestampTz last_error_at;
	TimestampTz created_at;
	Jsonb	   *config;
} HmsGroupNumbers;

typedef struct HmsConsumerNumbers
{
	char		name[HMS_MAX_NAME_BYTES + 1];	/* first: the hash key */
	int64		leased;
	TimestampTz last_seen;		/* DT_NOBEGIN = not known */
	TimestampTz last_active;
	const char *role;			/* the next three: NULL, NULL and false unless
								 * registered */
	const char *topic;
	bool		readonly;
	bool		registered;
} HmsConsumerNumbers;

/* True when the caller may see the numbers of a stream. */
extern bool hms_monitor_allowed(int32 stream_id);

extern void hms_monitor_stream(const HmsStream *stream, TimestampTz now, HmsStreamNumbers *out);
extern void hms_monitor_group(const HmsStream *stream, const HmsGroup *group, TimestampTz now,
							  HmsGroupNumbers *out);

/* All consumers known of a group, by name; returns their number. */
extern int	hms_monitor_consumers(const HmsGroup *group, TimestampTz now, HmsConsumerNumbers **out);

/* Small json objects, key by key; a NULL text is a json null. */
extern void hms_json_begin(JsonbParseState **state);
extern void hms_json_text(JsonbParseState **state, const char *key, const char *value);
extern void hms_json_int(JsonbParseState **state, const char *key, int64 value);
extern Jsonb *hms_json_end(JsonbParseState **state);

#endif							/* HMS_CORE_MONITOR_H */
