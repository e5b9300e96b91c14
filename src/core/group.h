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

/*
 * Drop a group; false when the stream has none of that name.  Raises
 * HMS_ERRCODE_UNKNOWN_STREAM, 42501 without 'consume' on the stream.
 */
extern bool hms_group_drop(const char *stream_name, const char *name);

#endif							/* HMS_CORE_GROUP_H */
