/*-------------------------------------------------------------------------
 *
 * monitor_api.c
 *	  stream_info(), group_info(), consumer_info(), health() and the rows of
 *	  the statistics views.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "api/args.h"
#include "api/srf.h"
#include "core/health.h"
#include "core/monitor.h"
#include "core/privilege.h"
#include "debug/debug_point.h"
#include "shmem/counters.h"
#include "shmem/shmem.h"

PG_FUNCTION_INFO_V1(hms_sql_stream_info);
PG_FUNCTION_INFO_V1(hms_sql_group_info);
PG_FUNCTION_INFO_V1(hms_sql_consumer_info);
PG_FUNCTION_INFO_V1(hms_sql_health);
PG_FUNCTION_INFO_V1(hms_sql_stat_stream_rows);
PG_FUNCTION_INFO_V1(hms_sql_stat_group_rows);

/* One row under construction; put_* append to it. */
typedef struct Row
{
	int			n;
	Datum		values[24];
	bool		nulls[24];
} Row;

static void
put(Row *row, Datum value, bool isnull)
{
	row->values[row->n] = value;
	row->nulls[row->n++] = isnull;
}

static void
put_text(Row *row, const char *text)
{
	put(row, text ? CStringGetTextDatum(text) : (Datum) 0, text == NULL);
}

static void
put_int8(Row *row, int64 value)
{
	put(row, Int64GetDatum(value), false);
}

/* Ids that are 0 for "none". */
static void
put_id(Row *row, int64 id)
{
	put(row, Int64GetDatum(id), id == 0);
}

static void
put_time(Row *row, TimestampTz at, bool known)
{
	put(row, TimestampTzGetDatum(at), !known);
}

/* An interval of days and microseconds; null when negative. */
static void
put_interval(Row *row, int64 us)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->day = us / USECS_PER_DAY;
	interval->time = us % USECS_PER_DAY;
	put(row, IntervalPGetDatum(interval), us < 0);
}

static void
put_jsonb(Row *row, Jsonb *json)
{
	put(row, PointerGetDatum(json), json == NULL);
}

static void
finish_row(FunctionCallInfo fcinfo, Row *row)
{
	hms_srf_put(fcinfo, row->values, row->nulls);
	row->n = 0;
}

/* --- stream_info ------------------------------------------------------------------ */

static void
put_stream(FunctionCallInfo fcinfo, const HmsStream *stream, TimestampTz now)
{
	Row			row = {.n = 0};
	HmsStreamNumbers numbers;
	HmsNamespace ns;

	hms_monitor_stream(stream, now, &numbers);
	put_text(&row, stream->name);
	put_text(&row, hms_namespace_by_id(stream->namespace_id, &ns) ? ns.name : NULL);
	put_int8(&row, numbers.messages);
	put(&row, BoolGetDatum(numbers.messages_estimated), false);
	put_int8(&row, numbers.bytes);
	put_id(&row, numbers.first_id);
	put_id(&row, numbers.last_id);
	put_time(&row, numbers.first_at, numbers.first_id != 0);
	put_time(&row, numbers.last_at, numbers.last_id != 0);
	put(&row, Int32GetDatum(numbers.ngroups), false);
	put(&row, Float8GetDatum(numbers.publish_rate), numbers.publish_rate < 0);
	put_time(&row, numbers.created_at, true);
	put_jsonb(&row, numbers.config);
	finish_row(fcinfo, &row);
}

/* stream_info(stream) */
Datum
hms_sql_stream_info(PG_FUNCTION_ARGS)
{
	TimestampTz now = HMS_NOW();
	const char *name = hms_arg_name_or_null(fcinfo, 0, "stream");

	hms_shmem_require();
	if (name != NULL)
	{
		HmsStream	stream;

		hms_stream_by_name(name, &stream);
		hms_privilege_check_info(stream.stream_id, stream.name);
		hms_srf_begin(fcinfo);
		put_stream(fcinfo, &stream, now);
	}
	else
	{
		HmsStream  *streams;
		int			n = hms_list_streams(0, &streams);

		hms_srf_begin(fcinfo);
		for (int i = 0; i < n; i++)
		{
			CHECK_FOR_INTERRUPTS();
			if (OidIsValid(streams[i].log_relid) && hms_monitor_allowed(streams[i].stream_id))
				put_stream(fcinfo, &streams[i], now);
		}
	}
	PG_RETURN_NULL();
}

/* --- group_info -------------------------------------------------------------------- */

static void
put_group(FunctionCallInfo fcinfo, const HmsStream *stream, const HmsGroup *group, TimestampTz now)
{
	Row			row = {.n = 0};
	HmsGroupNumbers numbers;

	hms_monitor_group(stream, group, now, &numbers);
	put_text(&row, stream->name);
	put_text(&row, group->name);
	put_int8(&row, numbers.lag);
	put(&row, BoolGetDatum(numbers.lag_estimated), false);
	put_int8(&row, numbers.ready);
	put_int8(&row, numbers.leased);
	put_int8(&row, numbers.delayed);
	put_int8(&row, numbers.dead);
	put_int8(&row, numbers.redelivered);
	put_int8(&row, numbers.ack_floor);
	put_int8(&row, numbers.last_delivered_id);
	put(&row, Int32GetDatum(numbers.waiting), false);
	put_interval(&row, numbers.oldest_age_us);
	put_interval(&row, numbers.avg_processing_us);
	/* What a consumer writes there may well quote the message. */
	put_jsonb(&row, hms_privilege_has(HMS_PRIV_CONSUME, stream->stream_id) ?
			  numbers.last_error : NULL);
	put_jsonb(&row, numbers.config);
	put_time(&row, numbers.created_at, true);
	finish_row(fcinfo, &row);
}

/* group_info(stream, consumer_group) */
Datum
hms_sql_group_info(PG_FUNCTION_ARGS)
{
	TimestampTz now = HMS_NOW();
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name_or_null(fcinfo, 1, "consumer_group");
	HmsStream	stream;

	hms_shmem_require();
	hms_stream_by_name(name, &stream);
	hms_privilege_check_info(stream.stream_id, stream.name);
	if (group_name != NULL)
	{
		HmsGroup	group;

		hms_group_by_name(&stream, group_name, &group);
		hms_srf_begin(fcinfo);
		put_group(fcinfo, &stream, &group, now);
	}
	else
	{
		HmsGroup   *groups;
		int			n = hms_list_groups(stream.stream_id, &groups);

		hms_srf_begin(fcinfo);
		for (int i = 0; i < n; i++)
			put_group(fcinfo, &stream, &groups[i], now);
	}
	PG_RETURN_NULL();
}

/* --- consumer_info ------------------------------------------------------------------ */

/* consumer_info(stream, consumer_group) */
Datum
hms_sql_consumer_info(PG_FUNCTION_ARGS)
{
	TimestampTz now = HMS_NOW();
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");
	HmsConsumerNumbers *consumers;
	Row			row = {.n = 0};
	HmsStream	stream;
	HmsGroup	group;
	int			n;

	hms_shmem_require();
	hms_stream_by_name(name, &stream);
	hms_privilege_check_info(stream.stream_id, stream.name);
	hms_group_by_name(&stream, group_name, &group);

	hms_srf_begin(fcinfo);
	n = hms_monitor_consumers(&group, now, &consumers);
	for (int i = 0; i < n; i++)
	{
		put_text(&row, consumers[i].name);
		put_int8(&row, consumers[i].leased);
		put_time(&row, consumers[i].last_seen, consumers[i].last_seen != DT_NOBEGIN);
		put_time(&row, consumers[i].last_active, consumers[i].last_active != DT_NOBEGIN);
		put_text(&row, consumers[i].role);
		put_text(&row, consumers[i].topic);
		put(&row, BoolGetDatum(consumers[i].readonly), !consumers[i].registered);
		finish_row(fcinfo, &row);
	}
	PG_RETURN_NULL();
}

/* --- health --------------------------------------------------------------------------- */

static void
report_check(const char *check_name, bool ok, const char *detail, void *arg)
{
	Row			row = {.n = 0};

	put_text(&row, check_name);
	put(&row, BoolGetDatum(ok), false);
	put_text(&row, detail);
	finish_row((FunctionCallInfo) arg, &row);
}

/* health() */
Datum
hms_sql_health(PG_FUNCTION_ARGS)
{
	if (!has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		hms_privilege_check(HMS_PRIV_MANAGE, 0, NULL);
	hms_srf_begin(fcinfo);
	hms_health(report_check, fcinfo);
	PG_RETURN_NULL();
}

/* --- statistics views ------------------------------------------------------------------ */

static void
require_monitor(const char *view)
{
	if (!has_privs_of_role(GetUserId(), ROLE_PG_MONITOR))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for view \"%s\"", view),
				 errhint("Only members of role \"%s\" may read it.", "pg_monitor")));
}

/* stat_stream_rows() */
Datum
hms_sql_stat_stream_rows(PG_FUNCTION_ARGS)
{
	Row			row = {.n = 0};
	HmsStream  *streams;
	int			n;

	require_monitor("stat_stream");
	hms_shmem_require();
	hms_srf_begin(fcinfo);
	n = hms_list_streams(0, &streams);
	for (int i = 0; i < n; i++)
	{
		int64		values[HMS_STREAM_NCOUNTERS] = {0};
		TimestampTz since;
		bool		known = hms_stream_counters(MyDatabaseId, streams[i].stream_id, values, &since);

		put_text(&row, streams[i].name);
		for (int j = 0; j < HMS_STREAM_NCOUNTERS; j++)
			put_int8(&row, values[j]);
		put_time(&row, since, known);
		finish_row(fcinfo, &row);
	}
	PG_RETURN_NULL();
}

/* stat_group_rows() */
Datum
hms_sql_stat_group_rows(PG_FUNCTION_ARGS)
{
	Row			row = {.n = 0};
	HmsStream	stream;
	HmsGroup   *groups;
	int			n;

	require_monitor("stat_group");
	hms_shmem_require();
	hms_srf_begin(fcinfo);
	n = hms_list_groups(0, &groups);
	for (int i = 0; i < n; i++)
	{
		int64		values[HMS_GROUP_NCOUNTERS] = {0};
		TimestampTz since;
		bool		known = hms_group_counters(MyDatabaseId, groups[i].group_id, values, &since);

		if (!hms_stream_by_id(groups[i].stream_id, &stream))
			continue;
		put_text(&row, stream.name);
		put_text(&row, groups[i].name);
		for (int j = 0; j < HMS_GROUP_PROCESSING_US; j++)
			put_int8(&row, values[j]);
		put_interval(&row, values[HMS_GROUP_PROCESSING_US]);
		put_time(&row, since, known);
		finish_row(fcinfo, &row);
	}
	PG_RETURN_NULL();
}
