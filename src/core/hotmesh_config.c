/*-------------------------------------------------------------------------
 *
 * hotmesh_config.c
 *	  HotMesh's RouterConfig and StreamConfig, read into structs.
 *
 * The tables are the format; json_read.c walks, checks and complains.  Intervals are
 * milliseconds, but for SQS, whose own unit is the second; SQS's ranges are those of its API.
 * Pure computation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/hotmesh_config.h"
#include "core/json_read.h"

#define MAX_INTERVAL_MS				(HMS_MAX_INTERVAL_US / 1000)
#define SQS_MAX_VISIBILITY_S		(12 * SECS_PER_HOUR)
#define SQS_MAX_WAIT_S				20
#define SQS_MIN_RETENTION_S			SECS_PER_MINUTE
#define SQS_MAX_RETENTION_S			(14 * SECS_PER_DAY)

#define ROUTER(member)	.offset = offsetof(HmsRouterConfig, member)
#define ROUTER_HAS(member)	.has_offset = offsetof(HmsRouterConfig, member)
#define STREAM(member)	.offset = offsetof(HmsStreamConfig, member)
#define STREAM_HAS(member)	.has_offset = offsetof(HmsStreamConfig, member)

/* Index + 1 is the enum's value. */
static const char *const role_words[] = {"worker", "engine", "system", NULL};
static const char *const provider_words[] = {
	"redis", "ioredis", "postgres", "nats", "sqs", NULL
};
static const char *const partition_words[] = {"daily", "weekly", "monthly", NULL};
static const char *const deliver_words[] = {
	"all", "last", "new", "byStartSequence", "byStartTime", NULL
};

static const HmsJsonKey router_keys[] = {
	{.name = "namespace",.kind = HMS_JSON_NAME,.required = true, ROUTER(namespace_name)},
	{.name = "appId",.kind = HMS_JSON_NAME,.required = true, ROUTER(app_id)},
	{.name = "guid",.kind = HMS_JSON_NAME,.required = true, ROUTER(guid)},
	{.name = "role",.kind = HMS_JSON_WORD,.required = true, ROUTER(role),.words = role_words},
	{.name = "throttle",.kind = HMS_JSON_INT32,.required = true, ROUTER(throttle_ms),
	.min = HMS_THROTTLE_PAUSED,.max = PG_INT32_MAX},
	{.name = "topic",.kind = HMS_JSON_NAME, ROUTER(topic)},
	{.name = "reclaimDelay",.kind = HMS_JSON_INT64, ROUTER(reclaim_delay_ms),
	ROUTER_HAS(has_reclaim_delay),.max = MAX_INTERVAL_MS},
	{.name = "reclaimCount",.kind = HMS_JSON_INT32, ROUTER(reclaim_count),
	ROUTER_HAS(has_reclaim_count),.max = HMS_MAX_RECLAIM_COUNT},
	{.name = "readonly",.kind = HMS_JSON_BOOL, ROUTER(readonly), ROUTER_HAS(has_readonly)},
	{.name = NULL}
};

static const HmsJsonKey redis_keys[] = {
	{.name = "claimTimeout",.kind = HMS_JSON_INT64, STREAM(redis.claim_timeout_ms),
	STREAM_HAS(redis.has_claim_timeout),.max = MAX_INTERVAL_MS},
	{.name = "blockingTimeout",.kind = HMS_JSON_INT64, STREAM(redis.blocking_timeout_ms),
	STREAM_HAS(redis.has_blocking_timeout),.max = MAX_INTERVAL_MS},
	{.name = "minIdleTime",.kind = HMS_JSON_INT64, STREAM(redis.min_idle_time_ms),
	STREAM_HAS(redis.has_min_idle_time),.max = MAX_INTERVAL_MS},
	{.name = NULL}
};

static const HmsJsonKey postgres_keys[] = {
	{.name = "pollInterval",.kind = HMS_JSON_INT64, STREAM(postgres.poll_interval_ms),
	STREAM_HAS(postgres.has_poll_interval),.max = MAX_INTERVAL_MS},
	{.name = "vacuumInterval",.kind = HMS_JSON_INT64, STREAM(postgres.vacuum_interval_ms),
	STREAM_HAS(postgres.has_vacuum_interval),.max = MAX_INTERVAL_MS},
	{.name = "partitionInterval",.kind = HMS_JSON_WORD, STREAM(postgres.partition_interval),
	.words = partition_words},
	{.name = "cleanupInterval",.kind = HMS_JSON_INT64, STREAM(postgres.cleanup_interval_ms),
	STREAM_HAS(postgres.has_cleanup_interval),.max = MAX_INTERVAL_MS},
	{.name = NULL}
};

static const HmsJsonKey nats_keys[] = {
	{.name = "jetstream",.kind = HMS_JSON_BOOL, STREAM(nats.jetstream),
	STREAM_HAS(nats.has_jetstream)},
	{.name = "durableName",.kind = HMS_JSON_NAME, STREAM(nats.durable_name)},
	{.name = "deliverPolicy",.kind = HMS_JSON_WORD, STREAM(nats.deliver_policy),
	.words = deliver_words},
	{.name = "ackWait",.kind = HMS_JSON_INT64, STREAM(nats.ack_wait_ms),
	STREAM_HAS(nats.has_ack_wait),.max = MAX_INTERVAL_MS},
	{.name = NULL}
};

static const HmsJsonKey sqs_keys[] = {
	{.name = "deadLetterQueue",.kind = HMS_JSON_NAME, STREAM(sqs.dead_letter_queue)},
	{.name = "visibilityTimeout",.kind = HMS_JSON_INT32, STREAM(sqs.visibility_timeout_s),
	STREAM_HAS(sqs.has_visibility_timeout),.max = SQS_MAX_VISIBILITY_S},
	{.name = "waitTimeSeconds",.kind = HMS_JSON_INT32, STREAM(sqs.wait_time_s),
	STREAM_HAS(sqs.has_wait_time),.max = SQS_MAX_WAIT_S},
	{.name = "messageRetentionPeriod",.kind = HMS_JSON_INT32,
		STREAM(sqs.message_retention_period_s), STREAM_HAS(sqs.has_message_retention_period),
	.min = SQS_MIN_RETENTION_S,.max = SQS_MAX_RETENTION_S},
	{.name = "dlqArn",.kind = HMS_JSON_NAME, STREAM(sqs.dlq_arn)},
	{.name = NULL}
};

static const HmsJsonKey stream_keys[] = {
	{.name = "provider",.kind = HMS_JSON_WORD, STREAM(provider),.words = provider_words},
	{.name = "namespace",.kind = HMS_JSON_NAME, STREAM(namespace_name)},
	{.name = "appId",.kind = HMS_JSON_NAME, STREAM(app_id)},
	{.name = "maxRetries",.kind = HMS_JSON_INT32, STREAM(max_retries),
	STREAM_HAS(has_max_retries),.max = PG_INT32_MAX - 1},
	{.name = "batchSize",.kind = HMS_JSON_INT32, STREAM(batch_size),
	STREAM_HAS(has_batch_size),.min = 1,.max = HMS_MAX_BATCH},
	{.name = "timeout",.kind = HMS_JSON_INT64, STREAM(timeout_ms),
	STREAM_HAS(has_timeout),.max = MAX_INTERVAL_MS},
	{.name = "redis",.kind = HMS_JSON_OBJECT, STREAM_HAS(has_redis),.keys = redis_keys},
	{.name = "postgres",.kind = HMS_JSON_OBJECT, STREAM_HAS(has_postgres),.keys = postgres_keys},
	{.name = "nats",.kind = HMS_JSON_OBJECT, STREAM_HAS(has_nats),.keys = nats_keys},
	{.name = "sqs",.kind = HMS_JSON_OBJECT, STREAM_HAS(has_sqs),.keys = sqs_keys},
	{.name = NULL}
};

void
hms_router_config_parse(const char *json, int len, const char *path, HmsRouterConfig *out)
{
	HmsJsonPlace place = {.name = path};

	memset(out, 0, sizeof(*out));
	hms_json_read_object(&place, hms_json_span(json, len), router_keys, out);
}

void
hms_stream_config_parse(const char *json, int len, const char *path, HmsStreamConfig *out)
{
	HmsJsonPlace place = {.name = path};

	memset(out, 0, sizeof(*out));
	hms_json_read_object(&place, hms_json_span(json, len), stream_keys, out);
}

const char *
hms_stream_role_name(HmsStreamRole role)
{
	return role == 0 ? NULL : role_words[role - 1];
}
