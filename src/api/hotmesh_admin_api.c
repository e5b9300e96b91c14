/*-------------------------------------------------------------------------
 *
 * hotmesh_admin_api.c
 *	  HotMesh's SQL functions that look at streams and configure them.
 *
 * Streams that do not exist have no messages: stats and depths are zero, as HotMesh
 * asks for them before anything was published.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "api/args.h"
#include "api/hotmesh_args.h"
#include "api/srf.h"
#include "core/group.h"
#include "core/hotmesh.h"
#include "core/hotmesh_config.h"
#include "core/log_admin.h"
#include "core/monitor.h"
#include "core/privilege.h"
#include "core/stream.h"
#include "core/throttle.h"
#include "debug/debug_point.h"

PG_FUNCTION_INFO_V1(hms_sql_hotmesh_create_group);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_drop_group);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_drop_stream);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_stats);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_depth);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_depths);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_trim);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_features);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_register_consumer);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_set_throttle);

/* --- streams and groups ---------------------------------------------------------------- */

/* hotmesh_create_group(stream, consumer_group) */
Datum
hms_sql_hotmesh_create_group(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");
	HmsStream	stream;
	HmsGroup	group;

	hms_require_writable("hotmesh_create_group()");
	hms_hotmesh_stream(name, &stream);
	hms_hotmesh_group(&stream, group_name, &group);
	PG_RETURN_BOOL(true);
}

/* hotmesh_drop_group(stream, consumer_group): the messages of the last group go with it */
Datum
hms_sql_hotmesh_drop_group(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");
	HmsStream	stream;
	HmsGroup   *groups;

	hms_require_writable("hotmesh_drop_group()");
	if (!hms_stream_find(name, &stream) || !hms_group_drop(name, group_name))
		PG_RETURN_BOOL(false);
	if (hms_list_groups(stream.stream_id, &groups) == 0)
	{
		hms_privilege_check(HMS_PRIV_MANAGE, stream.stream_id, stream.name);
		(void) hms_log_purge(&stream, 0);
	}
	PG_RETURN_BOOL(true);
}

/* hotmesh_drop_stream(stream): one, or all that begin with what stands before the '*' */
Datum
hms_sql_hotmesh_drop_stream(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	size_t		len = strlen(name);
	HmsStream  *streams;
	int			nstreams;
	bool		dropped = false;

	hms_require_writable("hotmesh_drop_stream()");
	if (name[len - 1] != '*')
		PG_RETURN_BOOL(hms_stream_drop(name));
	nstreams = hms_list_streams(0, &streams);
	for (int i = 0; i < nstreams; i++)
	{
		if (strncmp(streams[i].name, name, len - 1) == 0)
			dropped = hms_stream_drop(streams[i].name) || dropped;
	}
	PG_RETURN_BOOL(dropped);
}

/* --- figures ----------------------------------------------------------------------------- */

/* The numbers of all groups of a stream together. */
typedef struct Figures
{
	int64		depth;			/* of the group that is furthest behind */
	int64		pending;
	int64		dead;
	int64		oldest_age_us;	/* -1 = nothing is owed */
	int64		processing_us;	/* -1 = nothing was acked */
	int			nconsumers;
	Jsonb	   *last_error;
	TimestampTz last_error_at;
} Figures;

static int64
group_depth(const HmsGroupNumbers *numbers)
{
	return numbers->lag + numbers->ready + numbers->leased + numbers->delayed;
}

static void
add_group(const HmsStream *stream, const HmsGroup *group, TimestampTz now, Figures *figures)
{
	HmsGroupNumbers numbers;
	HmsConsumerNumbers *consumers;

	hms_monitor_group(stream, group, now, &numbers);
	figures->depth = Max(figures->depth, group_depth(&numbers));
	figures->pending += numbers.leased;
	figures->dead += numbers.dead;
	figures->oldest_age_us = Max(figures->oldest_age_us, numbers.oldest_age_us);
	figures->processing_us = Max(figures->processing_us, numbers.avg_processing_us);
	figures->nconsumers += hms_monitor_consumers(group, now, &consumers);
	if (numbers.last_error != NULL && numbers.last_error_at >= figures->last_error_at)
	{
		figures->last_error = numbers.last_error;
		figures->last_error_at = numbers.last_error_at;
	}
}

static void
get_figures(const HmsStream *stream, TimestampTz now, Figures *figures)
{
	HmsGroup   *groups;
	int			ngroups = hms_list_groups(stream->stream_id, &groups);

	memset(figures, 0, sizeof(*figures));
	figures->oldest_age_us = -1;
	figures->processing_us = -1;
	figures->last_error_at = DT_NOBEGIN;
	for (int i = 0; i < ngroups; i++)
		add_group(stream, &groups[i], now, figures);
}

/* False when there is no such stream; checks the privilege. */
static bool
find_stream(const char *name, HmsStream *stream)
{
	if (!hms_stream_find(name, stream))
		return false;
	hms_privilege_check_info(stream->stream_id, name);
	return true;
}

static int64
stream_depth(const char *name)
{
	HmsStream	stream;
	Figures		figures;

	if (!find_stream(name, &stream))
		return 0;
	get_figures(&stream, HMS_NOW(), &figures);
	return figures.depth;
}

/* hotmesh_depth(stream) */
Datum
hms_sql_hotmesh_depth(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(stream_depth(hms_arg_name(fcinfo, 0, "stream")));
}

/* hotmesh_depths(streams) */
Datum
hms_sql_hotmesh_depths(PG_FUNCTION_ARGS)
{
	char	  **names;
	int			n = hms_stream_names_parse(hms_arg_json(fcinfo, 0, "streams"), &names);

	hms_srf_begin(fcinfo);
	for (int i = 0; i < n; i++)
	{
		Datum		values[2] = {CStringGetTextDatum(names[i]), Int64GetDatum(stream_depth(names[i]))};
		bool		nulls[2] = {false};

		hms_srf_put(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

static void
put_ms(StringInfo json, const char *key, bool known, int64 us)
{
	if (known)
		appendStringInfo(json, ",\"%s\":" INT64_FORMAT, key, us / 1000);
	else
		appendStringInfo(json, ",\"%s\":null", key);
}

/* The "message" of an error, or all of it. */
static char *
error_message(Jsonb *error)
{
	JsonbValue	value;

	if (JB_ROOT_IS_OBJECT(error) &&
		getKeyJsonValueFromContainer(&error->root, "message", strlen("message"), &value) != NULL &&
		value.type == jbvString)
		return pnstrdup(value.val.string.val, value.val.string.len);
	return JsonbToCString(NULL, &error->root, VARSIZE(error));
}

/* hotmesh_stats(stream): the seed's StreamStats */
Datum
hms_sql_hotmesh_stats(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	TimestampTz now = HMS_NOW();
	HmsStreamNumbers numbers = {0};
	Figures		figures = {.oldest_age_us = -1,.processing_us = -1};
	StringInfoData json;
	HmsStream	stream;

	if (find_stream(name, &stream))
	{
		hms_monitor_stream(&stream, now, &numbers);
		get_figures(&stream, now, &figures);
	}
	initStringInfo(&json);
	appendStringInfo(&json, "{\"messageCount\":" INT64_FORMAT ",\"consumerCount\":%d,\"bytesInMemory\":"
					 INT64_FORMAT ",\"pendingMessages\":" INT64_FORMAT
					 ",\"deadLetterQueueMessageCount\":" INT64_FORMAT,
					 figures.depth, figures.nconsumers, numbers.bytes, figures.pending, figures.dead);
	put_ms(&json, "oldestMessageTimestamp", figures.oldest_age_us >= 0,
		   now - figures.oldest_age_us - SetEpochTimestamp());
	put_ms(&json, "averageProcessingTime", figures.processing_us >= 0, figures.processing_us);
	put_ms(&json, "lastErrorTimestamp", figures.last_error != NULL,
		   figures.last_error_at - SetEpochTimestamp());
	appendStringInfoString(&json, ",\"lastErrorMessage\":");
	if (figures.last_error == NULL)
		appendStringInfoString(&json, "null");
	else
		escape_json(&json, error_message(figures.last_error));
	appendStringInfoChar(&json, '}');
	PG_RETURN_TEXT_P(cstring_to_text_with_len(json.data, json.len));
}

/* hotmesh_features(): the seed's ProviderSpecificFeatures */
Datum
hms_sql_hotmesh_features(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("{\"provider\":\"postgres\",\"supportsBatching\":true,"
											  "\"supportsDeadLetterQueue\":true,\"supportsNotifications\":false,"
											  "\"supportsOrdering\":true,\"supportsTrimming\":true,"
											  "\"supportsRetry\":false,\"maxMessageSize\":%d,"
											  "\"maxBatchSize\":%d}",
											  HMS_HOTMESH_MESSAGE_BYTES, HMS_MAX_BATCH)));
}

/* hotmesh_trim(stream, options) */
Datum
hms_sql_hotmesh_trim(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	HmsTrim		trim = {.before = DT_NOBEGIN,.count_live = true};
	HmsStream	stream;
	int64		max_age_ms;

	hms_require_writable("hotmesh_trim()");
	hms_trim_options_parse(hms_arg_json(fcinfo, 1, "options"), &trim.max_len, &max_age_ms);
	if (max_age_ms >= 0)
		trim.before = HMS_NOW() - max_age_ms * 1000;
	if (!hms_stream_find(name, &stream))
		PG_RETURN_INT64(0);
	hms_privilege_check(HMS_PRIV_MANAGE, stream.stream_id, stream.name);
	PG_RETURN_INT64(hms_log_trim(&stream, &trim));
}

/* --- configuration ------------------------------------------------------------------------- */

/* The stream that a router consumes: namespace:app:x:topic, without a topic for engines. */
static char *
router_stream(const HmsRouterConfig *config)
{
	char	   *name = psprintf("%s:%s:x:%s", config->namespace_name, config->app_id,
								config->role == HMS_ROLE_WORKER && config->topic != NULL ? config->topic : "");

	if (strlen(name) > HMS_MAX_NAME_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("name of the stream \"%s\" is longer than %d bytes", name, HMS_MAX_NAME_BYTES)));
	return name;
}

/* hotmesh_register_consumer(config): a RouterConfig */
Datum
hms_sql_hotmesh_register_consumer(PG_FUNCTION_ARGS)
{
	text	   *json = hms_arg_json(fcinfo, 0, "config");
	HmsGroupTuning tuning = {.default_wait_us = -1};
	HmsRegistration registration = {0};
	HmsRouterConfig config;
	HmsStream	stream;
	HmsGroup	group;
	char	   *name;

	hms_require_writable("hotmesh_register_consumer()");
	hms_router_config_parse(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json), "config", &config);
	name = router_stream(&config);
	hms_hotmesh_stream(name, &stream);
	hms_hotmesh_group(&stream, hms_hotmesh_default_group(name), &group);
	hms_privilege_check(HMS_PRIV_CONSUME, stream.stream_id, stream.name);

	registration.name = config.guid;
	registration.role = hms_stream_role_name(config.role);
	registration.topic = config.topic;
	registration.readonly = config.has_readonly && config.readonly;
	registration.pause_ms = config.throttle_ms;
	registration.config = PointerGetDatum(json);
	hms_register_consumer(&group, &registration);

	if (config.has_reclaim_delay)
		tuning.ack_wait_us = Max(config.reclaim_delay_ms, 1) * 1000;
	if (config.has_reclaim_count)
		tuning.max_deliver = config.reclaim_count + 1;
	if (config.has_reclaim_delay || config.has_reclaim_count)
		hms_group_tune(&stream, &group, &tuning);
	PG_RETURN_TEXT_P(cstring_to_text(name));
}

/* hotmesh_set_throttle(stream, consumer_group, ms) */
Datum
hms_sql_hotmesh_set_throttle(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name_or_null(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name_or_null(fcinfo, 1, "consumer_group");
	int			pause_ms;
	HmsStream	stream;
	HmsGroup	group;

	hms_require_writable("hotmesh_set_throttle()");
	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "ms")));
	pause_ms = hms_arg_int(fcinfo, 2, "ms", 0, HMS_PAUSED, PG_INT32_MAX);
	if (name == NULL && group_name != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a consumer group needs its stream")));
	if (name == NULL)
	{
		hms_privilege_check(HMS_PRIV_MANAGE, 0, NULL);
		hms_throttle_set(NULL, NULL, pause_ms);
		PG_RETURN_VOID();
	}
	hms_stream_by_name(name, &stream);
	hms_privilege_check(HMS_PRIV_MANAGE, stream.stream_id, stream.name);
	if (group_name != NULL)
		hms_group_by_name(&stream, group_name, &group);
	hms_throttle_set(&stream, group_name == NULL ? NULL : &group, pause_ms);
	PG_RETURN_VOID();
}
