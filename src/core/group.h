/*-------------------------------------------------------------------------
 *
 * group.h
 *	  Creating, changing and dropping consumer groups.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_GROUP_H
#define HMS_CORE_GROUP_H

#include "core/stream_cache.h"
#include "utils/jsonb.h"

typedef struct HmsGroupOptions
{
	const char *name;
	HmsDeliverPolicy deliver_policy;
	int64		ack_wait_us;
	int32		max_deliver;	/* 0 = no limit */
	int32		nbackoff;
	int64		backoff_us[HMS_MAX_BACKOFF];
	int64		dead_letter_retention_us;
	const char *error_stream;	/* NULL = none */
} HmsGroupOptions;

/*
 * Create a group.  Returns false when it exists with these options; raises
 * HMS_ERRCODE_CONFIG_MISMATCH when it has others, HMS_ERRCODE_UNKNOWN_STREAM, 42501
 * without 'consume' on the stream, 22023 when the options contradict each other.
 */
extern bool hms_group_create(const char *stream_name, const HmsGroupOptions *options);

/*
 * Change ack_wait, max_deliver, backoff and dead_letter_retention, from the next hand-out on.
 * Raises HMS_ERRCODE_UNKNOWN_STREAM or _GROUP, 42501 without 'consume' on the stream, 22023 naming the key.
 */
extern void hms_group_alter(const char *stream_name, const char *name, Jsonb *config);

/* What HotMesh's configurations say about a group; 0 (default_wait_us: -1) leaves an option alone. */
typedef struct HmsGroupTuning
{
	int64		ack_wait_us;
	int32		max_deliver;
	int32		default_batch;
	int64		default_wait_us;
} HmsGroupTuning;

/* Change them.  Raises 42501 without 'consume' on the stream. */
extern void hms_group_tune(const HmsStream *stream, const HmsGroup *group, const HmsGroupTuning *tuning);

/*
 * Drop a group; false when the stream has none of that name.  Raises
 * HMS_ERRCODE_UNKNOWN_STREAM, 42501 without 'consume' on the stream.
 */
extern bool hms_group_drop(const char *stream_name, const char *name);

#endif							/* HMS_CORE_GROUP_H */
