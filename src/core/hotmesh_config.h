/*-------------------------------------------------------------------------
 *
 * hotmesh_config.h
 *	  HotMesh's RouterConfig and StreamConfig, read strictly.
 *
 * Nothing here reads the catalogs or shared memory.  Every option is returned; what cannot
 * be honoured is the caller's to refuse.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_HOTMESH_CONFIG_H
#define HMS_CORE_HOTMESH_CONFIG_H

#include "hms.h"

#define HMS_MAX_RECLAIM_COUNT	3
#define HMS_THROTTLE_PAUSED		(-1)

typedef enum HmsStreamRole
{
	HMS_ROLE_WORKER = 1,
	HMS_ROLE_ENGINE,
	HMS_ROLE_SYSTEM
} HmsStreamRole;

/* Strings have 1..HMS_MAX_NAME_BYTES bytes. */
typedef struct HmsRouterConfig
{
	char	   *namespace_name; /* the first five are required */
	char	   *app_id;
	char	   *guid;
	HmsStreamRole role;
	int32		throttle_ms;	/* HMS_THROTTLE_PAUSED, or 0..INT_MAX */
	char	   *topic;			/* NULL when absent */
	bool		has_reclaim_delay;
	int64		reclaim_delay_ms;	/* 0..HMS_MAX_INTERVAL_US / 1000 */
	bool		has_reclaim_count;
	int32		reclaim_count;	/* 0..HMS_MAX_RECLAIM_COUNT */
	bool		has_readonly;
	bool		readonly;
} HmsRouterConfig;

typedef enum HmsStreamProvider
{
	HMS_PROVIDER_NONE,
	HMS_PROVIDER_REDIS,
	HMS_PROVIDER_IOREDIS,
	HMS_PROVIDER_POSTGRES,
	HMS_PROVIDER_NATS,
	HMS_PROVIDER_SQS
} HmsStreamProvider;

typedef enum HmsPartitionInterval
{
	HMS_PARTITION_NONE,
	HMS_PARTITION_DAILY,
	HMS_PARTITION_WEEKLY,
	HMS_PARTITION_MONTHLY
} HmsPartitionInterval;

typedef enum HmsNatsDeliver
{
	HMS_NATS_NONE,
	HMS_NATS_ALL,
	HMS_NATS_LAST,
	HMS_NATS_NEW,
	HMS_NATS_BY_START_SEQUENCE,
	HMS_NATS_BY_START_TIME
} HmsNatsDeliver;

/*
 * An option is absent when its has_ is false, its string NULL or its enum 0 (..._NONE).
 * Strings have 1..HMS_MAX_NAME_BYTES bytes, ARNs and queues too; milliseconds are
 * 0..HMS_MAX_INTERVAL_US / 1000.
 */
typedef struct HmsStreamConfig
{
	HmsStreamProvider provider;
	char	   *namespace_name;
	char	   *app_id;
	bool		has_max_retries;
	int32		max_retries;	/* 0..INT_MAX - 1 */
	bool		has_batch_size;
	int32		batch_size;		/* 1..HMS_MAX_BATCH */
	bool		has_timeout;
	int64		timeout_ms;

	bool		has_redis;		/* the object was given, perhaps empty */
	struct
	{
		bool		has_claim_timeout;
		int64		claim_timeout_ms;
		bool		has_blocking_timeout;
		int64		blocking_timeout_ms;
		bool		has_min_idle_time;
		int64		min_idle_time_ms;
	}			redis;

	bool		has_postgres;
	struct
	{
		bool		has_poll_interval;
		int64		poll_interval_ms;
		bool		has_vacuum_interval;
		int64		vacuum_interval_ms;
		HmsPartitionInterval partition_interval;
		bool		has_cleanup_interval;
		int64		cleanup_interval_ms;
	}			postgres;

	bool		has_nats;
	struct
	{
		bool		has_jetstream;
		bool		jetstream;
		char	   *durable_name;
		HmsNatsDeliver deliver_policy;
		bool		has_ack_wait;
		int64		ack_wait_ms;
	}			nats;

	bool		has_sqs;
	struct
	{
		char	   *dead_letter_queue;
		bool		has_visibility_timeout;
		int32		visibility_timeout_s;	/* 0..43200 */
		bool		has_wait_time;
		int32		wait_time_s;	/* 0..20 */
		bool		has_message_retention_period;
		int32		message_retention_period_s; /* 60..1209600 */
		char	   *dlq_arn;
	}			sqs;
} HmsStreamConfig;

/*
 * Read a configuration.  'json' is len bytes of valid JSON; 'path' (as "config")
 * begins the names in errors.  All of 'out' is set; strings are allocated in the current
 * context.
 *
 * Raises 22023 naming the path, for the reasons hms_stream_data_parse() has.
 */
extern void hms_router_config_parse(const char *json, int len, const char *path,
									HmsRouterConfig *out);
extern void hms_stream_config_parse(const char *json, int len, const char *path,
									HmsStreamConfig *out);

/* The seed's name of a role, NULL for 0. */
extern const char *hms_stream_role_name(HmsStreamRole role);

#endif							/* HMS_CORE_HOTMESH_CONFIG_H */
