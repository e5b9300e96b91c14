/*-------------------------------------------------------------------------
 *
 * log_api.c
 *	  messages() and delete_messages().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/snapmgr.h"

#include "api/args.h"
#include "api/srf.h"
#include "core/log_admin.h"
#include "core/privilege.h"
#include "debug/debug_point.h"
#include "core/stream_cache.h"

PG_FUNCTION_INFO_V1(hms_sql_messages);
PG_FUNCTION_INFO_V1(hms_sql_trim_stream);
PG_FUNCTION_INFO_V1(hms_sql_purge_stream);
PG_FUNCTION_INFO_V1(hms_sql_delete_messages);

static void
put_varlena(struct varlena *value, int column, Datum *values, bool *nulls)
{
	values[column] = PointerGetDatum(value);
	nulls[column] = (value == NULL);
}

static void
put_message(const HmsMessage *message, void *arg)
{
	Datum		values[8];
	bool		nulls[8] = {false};

	values[0] = Int64GetDatum(message->id);
	put_varlena(message->payload, 1, values, nulls);
	put_varlena(message->body, 2, values, nulls);
	put_varlena(message->content_type, 3, values, nulls);
	put_varlena(message->headers, 4, values, nulls);
	put_varlena(message->key, 5, values, nulls);
	values[6] = Int32GetDatum(message->priority);
	values[7] = TimestampTzGetDatum(message->published_at);
	hms_srf_put((FunctionCallInfo) arg, values, nulls);
}

/* messages(stream, from_id, to_id, from_time, to_time, max_messages, descending) */
Datum
hms_sql_messages(PG_FUNCTION_ARGS)
{
	HmsLogQuery query;
	HmsStream	stream;

	query.from_id = hms_arg_int8(fcinfo, 1, "from_id", 1, PG_INT64_MIN, PG_INT64_MAX);
	query.to_id = hms_arg_int8(fcinfo, 2, "to_id", PG_INT64_MAX, PG_INT64_MIN, PG_INT64_MAX);
	query.from_time = PG_ARGISNULL(3) ? DT_NOBEGIN : PG_GETARG_TIMESTAMPTZ(3);
	query.to_time = PG_ARGISNULL(4) ? DT_NOEND : PG_GETARG_TIMESTAMPTZ(4);
	query.max_messages = hms_arg_int(fcinfo, 5, "max_messages", 100, 1, HMS_MAX_BATCH);
	query.descending = hms_arg_bool(fcinfo, 6, "descending", false);
	hms_stream_by_name(hms_arg_name(fcinfo, 0, "stream"), &stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream.stream_id, stream.name);

	hms_srf_begin(fcinfo);
	hms_log_query(&stream, &query, GetActiveSnapshot(), put_message, fcinfo);
	PG_RETURN_NULL();
}

/* trim_stream(stream, max_len, before_id, max_age, only_settled) */
Datum
hms_sql_trim_stream(PG_FUNCTION_ARGS)
{
	HmsTrim		trim;
	HmsStream	stream;
	int64		max_age_us;

	hms_require_writable("trim_stream()");
	trim.max_len = hms_arg_int8(fcinfo, 1, "max_len", -1, 0, PG_INT64_MAX);
	trim.before_id = hms_arg_int8(fcinfo, 2, "before_id", 0, 1, PG_INT64_MAX);
	max_age_us = hms_arg_interval_us(fcinfo, 3, "max_age", -1);
	trim.before = max_age_us < 0 ? DT_NOBEGIN : HMS_NOW() - max_age_us;
	trim.only_settled = hms_arg_bool(fcinfo, 4, "only_settled", false);
	trim.count_live = false;
	if (trim.max_len < 0 && trim.before_id == 0 && max_age_us < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("one of \"max_len\", \"before_id\" and \"max_age\" must be given")));
	hms_stream_by_name(hms_arg_name(fcinfo, 0, "stream"), &stream);
	hms_privilege_check(HMS_PRIV_MANAGE, stream.stream_id, stream.name);
	PG_RETURN_INT64(hms_log_trim(&stream, &trim));
}

/* purge_stream(stream, key, keep) */
Datum
hms_sql_purge_stream(PG_FUNCTION_ARGS)
{
	const char *key = hms_arg_name_or_null(fcinfo, 1, "key");
	int			keep = hms_arg_int(fcinfo, 2, "keep", 0, 0, PG_INT32_MAX);
	HmsStream	stream;

	hms_require_writable("purge_stream()");
	hms_stream_by_name(hms_arg_name(fcinfo, 0, "stream"), &stream);
	hms_privilege_check(HMS_PRIV_MANAGE, stream.stream_id, stream.name);
	PG_RETURN_INT64(key == NULL ? hms_log_purge(&stream, keep) :
					hms_log_purge_key(&stream, key, keep));
}

/* delete_messages(stream, ids, only_settled) */
Datum
hms_sql_delete_messages(PG_FUNCTION_ARGS)
{
	HmsStream	stream;
	Datum	   *elements;
	int64	   *ids;
	int			nids;
	bool		only_settled;

	hms_require_writable("delete_messages()");
	elements = hms_arg_array(fcinfo, 1, "ids", INT8OID, false, &nids);
	only_settled = hms_arg_bool(fcinfo, 2, "only_settled", false);
	hms_stream_by_name(hms_arg_name(fcinfo, 0, "stream"), &stream);
	hms_privilege_check(HMS_PRIV_MANAGE, stream.stream_id, stream.name);

	ids = palloc(sizeof(int64) * nids);
	for (int i = 0; i < nids; i++)
		ids[i] = DatumGetInt64(elements[i]);
	PG_RETURN_INT32(hms_log_delete(&stream, ids, nids, only_settled));
}
