/*-------------------------------------------------------------------------
 *
 * debug_hotmesh.c
 *	  What the readers and writers of HotMesh's JSON make of a text; tests declare these
 *	  functions for themselves, no install script does.
 *
 * Empty unless compiled with -DHMS_DEBUG_POINTS.  Pure computation: nothing is stored.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef HMS_DEBUG_POINTS

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"

#include "core/hotmesh_config.h"
#include "core/stream_data.h"

PG_FUNCTION_INFO_V1(hms_sql_debug_stream_data);
PG_FUNCTION_INFO_V1(hms_sql_debug_with_try);
PG_FUNCTION_INFO_V1(hms_sql_debug_stream_error);
PG_FUNCTION_INFO_V1(hms_sql_debug_retry_delays);
PG_FUNCTION_INFO_V1(hms_sql_debug_router_config);
PG_FUNCTION_INFO_V1(hms_sql_debug_stream_config);

static void
show_string(StringInfo out, const char *name, const char *value)
{
	if (value != NULL)
		appendStringInfo(out, " %s=%s", name, value);
}

static void
show_number(StringInfo out, const char *name, bool has, int64 value)
{
	if (has)
		appendStringInfo(out, " %s=%lld", name, (long long) value);
}

static void
show_metadata(StringInfo out, const HmsStreamData *message)
{
	show_string(out, "guid", message->guid);
	show_string(out, "topic", message->topic);
	show_string(out, message->jid_is_number ? "jid(number)" : "jid", message->jid);
	show_string(out, "gid", message->gid);
	show_string(out, "dad", message->dad);
	show_string(out, "aid", message->aid);
	show_string(out, "trc", message->trc);
	show_string(out, "spn", message->spn);
	show_string(out, "wfn", message->wfn);
	show_number(out, "try", message->has_try, message->try_count);
	show_number(out, "await", message->has_await, message->await);
}

static void
show_policies(StringInfo out, const HmsStreamData *message)
{
	const HmsRetryPolicy *policy = &message->retry_policy;

	for (int i = 0; i < message->nretries; i++)
		appendStringInfo(out, " retry[%d]=%d", message->retries[i].code,
						 hms_stream_data_max_retries(message, message->retries[i].code));
	if (policy->has)
		appendStringInfo(out, " policy=%d:%g:%g:%lld", policy->maximum_attempts,
						 policy->coefficient, policy->initial_s,
						 (long long) policy->maximum_interval_us);
	show_number(out, "delay_ms", message->has_visibility_delay, message->visibility_delay_ms);
	show_number(out, "attempt", message->has_retry_attempt, message->retry_attempt);
}

static void
read_message(FunctionCallInfo fcinfo, bool lenient, HmsStreamData *message)
{
	text	   *json = PG_GETARG_TEXT_PP(0);

	if (lenient)
		hms_stream_data_parse_lenient(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json),
									  "messages[3]", message);
	else
		hms_stream_data_parse(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json),
							  "messages[3]", message);
}

/*
 * hms_sql_debug_stream_data(message json, lenient boolean) returns text
 *		The fields that are set, by name.
 */
Datum
hms_sql_debug_stream_data(PG_FUNCTION_ARGS)
{
	HmsStreamData message;
	StringInfoData out;

	read_message(fcinfo, PG_GETARG_BOOL(1), &message);
	initStringInfo(&out);
	show_metadata(&out, &message);
	show_string(&out, "type", hms_stream_data_type_name(message.type));
	show_number(&out, "priority", true, hms_stream_data_priority(message.type));
	show_string(&out, "status", hms_stream_status_name(message.status));
	show_number(&out, "code", message.code != 0, message.code);
	show_string(&out, "code", message.has_other_code ? "other" : NULL);
	show_string(&out, "stack", message.stack);
	show_policies(&out, &message);
	show_number(&out, "data", message.data.start != NULL, message.data.len);
	PG_RETURN_TEXT_P(cstring_to_text(out.data + 1));
}

/*
 * hms_sql_debug_with_try(message json, try integer) returns text
 */
Datum
hms_sql_debug_with_try(PG_FUNCTION_ARGS)
{
	text	   *json = PG_GETARG_TEXT_PP(0);

	PG_RETURN_TEXT_P(hms_stream_data_with_try(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json),
											  PG_GETARG_INT32(1)));
}

/*
 * hms_sql_debug_stream_error(message json, guid text, code integer, error text) returns text
 */
Datum
hms_sql_debug_stream_error(PG_FUNCTION_ARGS)
{
	HmsStreamData message;

	read_message(fcinfo, true, &message);
	PG_RETURN_TEXT_P(hms_stream_data_error(&message, text_to_cstring(PG_GETARG_TEXT_PP(1)),
										   PG_GETARG_INT32(2),
										   text_to_cstring(PG_GETARG_TEXT_PP(3))));
}

/*
 * hms_sql_debug_retry_delays(message json, tries integer) returns text
 *		Milliseconds after that many retries, by code and, where the message has one, by policy.
 */
Datum
hms_sql_debug_retry_delays(PG_FUNCTION_ARGS)
{
	int			tries = PG_GETARG_INT32(1);
	HmsStreamData message;
	StringInfoData out;

	read_message(fcinfo, false, &message);
	initStringInfo(&out);
	show_number(&out, "code", true, hms_retry_code_delay_us(tries) / 1000);
	if (message.retry_policy.has)
		show_number(&out, "policy", true,
					hms_retry_policy_delay_us(&message.retry_policy, tries) / 1000);
	PG_RETURN_TEXT_P(cstring_to_text(out.data + 1));
}

/*
 * hms_sql_debug_router_config(config json) returns text
 */
Datum
hms_sql_debug_router_config(PG_FUNCTION_ARGS)
{
	text	   *json = PG_GETARG_TEXT_PP(0);
	HmsRouterConfig config;
	StringInfoData out;

	hms_router_config_parse(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json), "config", &config);
	initStringInfo(&out);
	show_string(&out, "namespace", config.namespace_name);
	show_string(&out, "appId", config.app_id);
	show_string(&out, "guid", config.guid);
	show_string(&out, "role", hms_stream_role_name(config.role));
	show_number(&out, "throttle", true, config.throttle_ms);
	show_string(&out, "topic", config.topic);
	show_number(&out, "reclaimDelay", config.has_reclaim_delay, config.reclaim_delay_ms);
	show_number(&out, "reclaimCount", config.has_reclaim_count, config.reclaim_count);
	show_number(&out, "readonly", config.has_readonly, config.readonly);
	PG_RETURN_TEXT_P(cstring_to_text(out.data + 1));
}

static void
show_providers(StringInfo out, const HmsStreamConfig *config)
{
	show_number(out, "claimTimeout", config->redis.has_claim_timeout, config->redis.claim_timeout_ms);
	show_number(out, "blockingTimeout", config->redis.has_blocking_timeout,
				config->redis.blocking_timeout_ms);
	show_number(out, "minIdleTime", config->redis.has_min_idle_time, config->redis.min_idle_time_ms);
	show_number(out, "pollInterval", config->postgres.has_poll_interval,
				config->postgres.poll_interval_ms);
	show_number(out, "vacuumInterval", config->postgres.has_vacuum_interval,
				config->postgres.vacuum_interval_ms);
	show_number(out, "partitionInterval", config->postgres.partition_interval != 0,
				config->postgres.partition_interval);
	show_number(out, "cleanupInterval", config->postgres.has_cleanup_interval,
				config->postgres.cleanup_interval_ms);
	show_number(out, "jetstream", config->nats.has_jetstream, config->nats.jetstream);
	show_string(out, "durableName", config->nats.durable_name);
	show_number(out, "deliverPolicy", config->nats.deliver_policy != 0, config->nats.deliver_policy);
	show_number(out, "ackWait", config->nats.has_ack_wait, config->nats.ack_wait_ms);
	show_string(out, "deadLetterQueue", config->sqs.dead_letter_queue);
	show_number(out, "visibilityTimeout", config->sqs.has_visibility_timeout,
				config->sqs.visibility_timeout_s);
	show_number(out, "waitTimeSeconds", config->sqs.has_wait_time, config->sqs.wait_time_s);
	show_number(out, "messageRetentionPeriod", config->sqs.has_message_retention_period,
				config->sqs.message_retention_period_s);
	show_string(out, "dlqArn", config->sqs.dlq_arn);
}

/*
 * hms_sql_debug_stream_config(config json) returns text
 */
Datum
hms_sql_debug_stream_config(PG_FUNCTION_ARGS)
{
	text	   *json = PG_GETARG_TEXT_PP(0);
	HmsStreamConfig config;
	StringInfoData out;

	hms_stream_config_parse(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json), "config", &config);
	initStringInfo(&out);
	show_number(&out, "provider", true, config.provider);
	show_string(&out, "namespace", config.namespace_name);
	show_string(&out, "appId", config.app_id);
	show_number(&out, "maxRetries", config.has_max_retries, config.max_retries);
	show_number(&out, "batchSize", config.has_batch_size, config.batch_size);
	show_number(&out, "timeout", config.has_timeout, config.timeout_ms);
	show_number(&out, "redis", config.has_redis, 1);
	show_number(&out, "postgres", config.has_postgres, 1);
	show_number(&out, "nats", config.has_nats, 1);
	show_number(&out, "sqs", config.has_sqs, 1);
	show_providers(&out, &config);
	PG_RETURN_TEXT_P(cstring_to_text(out.data + 1));
}

#endif							/* HMS_DEBUG_POINTS */
