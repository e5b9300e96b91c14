/*-------------------------------------------------------------------------
 *
 * hotmesh_configure.c
 *	  hotmesh_configure: HotMesh's StreamConfig for one stream and group.
 *
 * Each option is either done or refused by its name, with what to do instead; none is
 * ignored.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "api/args.h"
#include "api/hotmesh_args.h"
#include "core/group.h"
#include "core/hotmesh.h"
#include "core/hotmesh_config.h"
#include "core/namespace.h"
#include "core/privilege.h"
#include "guc.h"

PG_FUNCTION_INFO_V1(hms_sql_hotmesh_configure);

static void
refuse(const char *option, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("option \"%s\" cannot be set for a stream", option),
			 errhint("%s", hint)));
}

static void
require(bool same, const char *option, const char *is)
{
	if (!same)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" must be \"%s\" here", option, is)));
}

/* Several options name the length of a lease: they must agree. */
static void
set_lease(HmsGroupTuning *tuning, const char *option, int64 us)
{
	if (us <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" must be greater than 0", option)));
	if (tuning->ack_wait_us != 0 && tuning->ack_wait_us != us)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" contradicts another option for the length of a lease", option)));
	tuning->ack_wait_us = us;
}

static void
set_wait(HmsGroupTuning *tuning, const char *option, int64 us)
{
	if (us > (int64) hms_max_wait_ms * 1000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" exceeds \"%s\" (%d ms)", option,
						"hotmesh_stream.max_wait", hms_max_wait_ms)));
	if (tuning->default_wait_us >= 0 && tuning->default_wait_us != us)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"%s\" contradicts another option for how long to wait", option)));
	tuning->default_wait_us = us;
}

static void
apply_common(const HmsStreamConfig *config, const HmsStream *stream, HmsGroupTuning *tuning)
{
	const char *colon = strchr(stream->name, ':');
	const char *app_end = colon == NULL ? NULL : strchr(colon + 1, ':');

	if (config->namespace_name != NULL)
	{
		char	   *name = colon == NULL ? "" : pnstrdup(stream->name, colon - stream->name);

		require(strcmp(config->namespace_name, name) == 0, "namespace", name);
	}
	if (config->app_id != NULL)
	{
		char	   *name = app_end == NULL ? "" : pnstrdup(colon + 1, app_end - colon - 1);

		require(strcmp(config->app_id, name) == 0, "appId", name);
	}
	if (config->has_max_retries)
		tuning->max_deliver = config->max_retries + 1;
	if (config->has_batch_size)
		tuning->default_batch = config->batch_size;
	if (config->has_timeout)
		set_lease(tuning, "timeout", config->timeout_ms * 1000);
}

static void
apply_redis(const HmsStreamConfig *config, HmsGroupTuning *tuning)
{
	if (config->redis.has_claim_timeout)
		set_lease(tuning, "redis.claimTimeout", config->redis.claim_timeout_ms * 1000);
	if (config->redis.has_min_idle_time)
		set_lease(tuning, "redis.minIdleTime", config->redis.min_idle_time_ms * 1000);
	if (config->redis.has_blocking_timeout)
		set_wait(tuning, "redis.blockingTimeout", config->redis.blocking_timeout_ms * 1000);
}

static void
apply_postgres(const HmsStreamConfig *config, const HmsStream *stream)
{
	static const int days[] = {[HMS_PARTITION_DAILY] = 1,[HMS_PARTITION_WEEKLY] = 7};
	static const char *const words[] = {
		[HMS_PARTITION_DAILY] = "daily",[HMS_PARTITION_WEEKLY] = "weekly",[HMS_PARTITION_MONTHLY] = "monthly"
	};
	HmsPartitionInterval wanted = config->postgres.partition_interval;
	HmsNamespace ns;

	if (config->postgres.has_poll_interval)
		refuse("postgres.pollInterval", "Set hotmesh_stream.naptime for the server; consumers are woken without polling.");
	if (config->postgres.has_vacuum_interval)
		refuse("postgres.vacuumInterval", "Set hotmesh_stream.maintenance_naptime for the server.");
	if (config->postgres.has_cleanup_interval)
		refuse("postgres.cleanupInterval", "Set hotmesh_stream.maintenance_naptime for the server.");
	if (wanted == HMS_PARTITION_NONE || !hms_namespace_by_id(stream->namespace_id, &ns))
		return;
	if (wanted == HMS_PARTITION_MONTHLY ?
		(ns.partition_interval.month != 1 || ns.partition_interval.day != 0 || ns.partition_interval.time != 0) :
		(ns.partition_interval.month != 0 || ns.partition_interval.day != days[wanted] || ns.partition_interval.time != 0))
		refuse("postgres.partitionInterval",
			   psprintf("Create the stream in a namespace made with create_namespace(partition_interval => '%s').",
						words[wanted]));
}

static void
apply_nats(const HmsStreamConfig *config, const HmsGroup *group, HmsGroupTuning *tuning)
{
	static const char *const words[] = {
		[HMS_NATS_ALL] = "all",[HMS_NATS_LAST] = "last",[HMS_NATS_NEW] = "new",
		[HMS_NATS_BY_START_SEQUENCE] = "byStartSequence",[HMS_NATS_BY_START_TIME] = "byStartTime"
	};

	if (config->nats.has_jetstream && !config->nats.jetstream)
		refuse("nats.jetstream", "Streams are durable; consume with autoAck to do without acknowledgements.");
	if (config->nats.durable_name != NULL)
		require(strcmp(config->nats.durable_name, group->name) == 0, "nats.durableName", group->name);
	if (config->nats.deliver_policy != HMS_NATS_NONE &&
		strcmp(words[config->nats.deliver_policy], hms_deliver_policy_word(group->deliver_policy)) != 0)
		refuse("nats.deliverPolicy",
			   psprintf("Consumer group \"%s\" was created with \"%s\".", group->name,
						hms_deliver_policy_word(group->deliver_policy)));
	if (config->nats.has_ack_wait)
		set_lease(tuning, "nats.ackWait", config->nats.ack_wait_ms * 1000);
}

static void
apply_sqs(const HmsStreamConfig *config, HmsGroupTuning *tuning)
{
	if (config->sqs.dead_letter_queue != NULL)
		refuse("sqs.deadLetterQueue", "Dead letters stay with their consumer group: see dead_letters() and redrive().");
	if (config->sqs.dlq_arn != NULL)
		refuse("sqs.dlqArn", "Dead letters stay with their consumer group: see dead_letters() and redrive().");
	if (config->sqs.has_message_retention_period)
		refuse("sqs.messageRetentionPeriod", "Set \"retention\" of the namespace with alter_namespace().");
	if (config->sqs.has_visibility_timeout)
		set_lease(tuning, "sqs.visibilityTimeout", config->sqs.visibility_timeout_s * USECS_PER_SEC);
	if (config->sqs.has_wait_time)
		set_wait(tuning, "sqs.waitTimeSeconds", config->sqs.wait_time_s * USECS_PER_SEC);
}

/* hotmesh_configure(stream, consumer_group, config) */
Datum
hms_sql_hotmesh_configure(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");
	text	   *json = hms_arg_json(fcinfo, 2, "config");
	HmsGroupTuning tuning = {.default_wait_us = -1};
	HmsStreamConfig config;
	HmsStream	stream;
	HmsGroup	group;

	hms_require_writable("hotmesh_configure()");
	hms_stream_config_parse(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json), "config", &config);
	hms_hotmesh_stream(name, &stream);
	hms_hotmesh_group(&stream, group_name, &group);
	hms_privilege_check(HMS_PRIV_CONSUME, stream.stream_id, stream.name);

	apply_common(&config, &stream, &tuning);
	apply_redis(&config, &tuning);
	apply_postgres(&config, &stream);
	apply_nats(&config, &group, &tuning);
	apply_sqs(&config, &tuning);
	hms_group_tune(&stream, &group, &tuning);
	PG_RETURN_VOID();
}
