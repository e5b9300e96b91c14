/*-------------------------------------------------------------------------
 *
 * stream.h
 *	  Creating, changing and dropping streams.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_STREAM_H
#define HMS_CORE_STREAM_H

#include "core/privilege.h"
#include "core/stream_cache.h"
#include "utils/jsonb.h"

#define HMS_MAX_MESSAGE_BYTES	0x3fffffff	/* what a value can hold */

typedef struct HmsStreamOptions
{
	const char *name;
	const char *namespace_name;
	int32		max_message_bytes;
	int32		max_priority;
	int64		delay_us;
} HmsStreamOptions;

/*
 * Create a stream, with its namespace if that is 'default'.  Returns false when the stream exists
 * with these options; raises HMS_ERRCODE_CONFIG_MISMATCH when it has others, 42501 without 'manage' on
 * the database.
 */
extern bool hms_stream_create(const HmsStreamOptions *options);

/*
 * Change max_message_bytes, max_priority and delay.  Raises HMS_ERRCODE_UNKNOWN_STREAM, 42501 without
 * 'manage' on the stream, 22023 naming the key.
 */
extern void hms_stream_alter(const char *name, Jsonb *config);

/*
 * Drop a stream with its groups and grants.  Returns false when there is none; raises 42501 without
 * 'manage' on the stream.  Does not wait for publishers or readers.
 */
extern bool hms_stream_drop(const char *name);

/*
 * The stream, kept from being changed or dropped until end of transaction,
 * and checked for a privilege.  Raises HMS_ERRCODE_UNKNOWN_STREAM and 42501.
 */
extern void hms_stream_hold(const char *name, HmsPrivilege privilege, HmsStream *out);

#endif							/* HMS_CORE_STREAM_H */
