/*-------------------------------------------------------------------------
 *
 * stream_cache.h
 *	  Streams, groups, namespaces and privileges by name or id, cached per backend.
 *
 * Invalidated through the relcache of the configuration tables.  Results are copied to
 * the caller, so that they outlive any invalidation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_STREAM_CACHE_H
#define HMS_CORE_STREAM_CACHE_H

#include "hms.h"

typedef struct HmsNamespace
{
	int32		namespace_id;
	Oid			log_relid;		/* InvalidOid when the log table is missing */
	char		name[HMS_MAX_NAME_BYTES + 1];
	Interval	partition_interval;
	int			premake;
	bool		has_retention;
	Interval	retention;
	bool		has_retention_hard;
	Interval	retention_hard;
} HmsNamespace;

typedef struct HmsStream
{
	int32		stream_id;
	int32		namespace_id;
	Oid			log_relid;
	int32		max_message_bytes;
	int32		levels;			/* priorities 0 to levels - 1 are in use */
	int64		delay_us;
	char		name[HMS_MAX_NAME_BYTES + 1];
} HmsStream;

typedef enum HmsDeliverPolicy
{
	HMS_DELIVER_ALL,
	HMS_DELIVER_NEW
} HmsDeliverPolicy;

typedef struct HmsGroup
{
	int32		group_id;
	int32		stream_id;
	int64		incarnation;
	int64		start_id;
	int64		ack_wait_us;
	int32		max_deliver;	/* 0 = no limit */
	int32		nbackoff;
	int64		backoff_us[HMS_MAX_BACKOFF];
	int64		dead_letter_retention_us;
	HmsDeliverPolicy deliver_policy;
	char		error_stream[HMS_MAX_NAME_BYTES + 1];	/* "" = none */
	int32		default_batch;	/* of hotmesh_consume() */
	int64		default_wait_us;
	char		name[HMS_MAX_NAME_BYTES + 1];
} HmsGroup;

/* "all" or "new"; false when the word is neither. */
extern bool hms_deliver_policy_parse(const char *word, HmsDeliverPolicy *out);
extern const char *hms_deliver_policy_word(HmsDeliverPolicy policy);

/* Pause after attempt 'attempt' (1 = the first hand-out), in microseconds. */
extern int64 hms_group_backoff_us(const HmsGroup *group, int attempt);

/* By name; raise HMS_ERRCODE_UNKNOWN_STREAM / _GROUP naming the object. */
extern void hms_stream_by_name(const char *name, HmsStream *out);
extern void hms_group_by_name(const HmsStream *stream, const char *name, HmsGroup *out);

/* false when unknown. */
extern bool hms_stream_find(const char *name, HmsStream *out);
extern bool hms_stream_by_id(int32 stream_id, HmsStream *out);
extern bool hms_group_find(int32 stream_id, const char *name, HmsGroup *out);
extern bool hms_group_by_id(int32 group_id, HmsGroup *out);
extern bool hms_namespace_find(const char *name, HmsNamespace *out);
extern bool hms_namespace_by_id(int32 namespace_id, HmsNamespace *out);

/* All of them, palloc'd arrays in id order; streams of one namespace (0 = all), groups of one stream (0 = all). */
extern int	hms_list_namespaces(HmsNamespace **out);
extern int	hms_list_streams(int32 namespace_id, HmsStream **out);
extern int	hms_list_groups(int32 stream_id, HmsGroup **out);

#endif							/* HMS_CORE_STREAM_CACHE_H */
