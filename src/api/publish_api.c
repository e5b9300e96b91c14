/*-------------------------------------------------------------------------
 *
 * publish_api.c
 *	  SQL functions that publish: publish, publish_many, publish_batch,
 *	  publish_bytes, complete.
 *
 * Arguments are checked here, the rules are in core/publish.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

#include "api/args.h"
#include "api/batch_json.h"
#include "api/srf.h"
#include "core/privilege.h"
#include "core/publish.h"
#include "core/settle.h"
#include "debug/debug_point.h"

PG_FUNCTION_INFO_V1(hms_sql_publish);
PG_FUNCTION_INFO_V1(hms_sql_publish_bytes);
PG_FUNCTION_INFO_V1(hms_sql_publish_many);
PG_FUNCTION_INFO_V1(hms_sql_publish_batch);
PG_FUNCTION_INFO_V1(hms_sql_complete);

/* An argument that may be null, as a Datum that is 0 then. */
static Datum
optional(FunctionCallInfo fcinfo, int argno)
{
	return PG_ARGISNULL(argno) ? (Datum) 0 : PG_GETARG_DATUM(argno);
}

static Datum
required(FunctionCallInfo fcinfo, int argno, const char *argname)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", argname)));
	return PG_GETARG_DATUM(argno);
}

/* The headers argument: null or a JSON object. */
static Datum
headers_arg(FunctionCallInfo fcinfo, int argno)
{
	if (PG_ARGISNULL(argno))
		return (Datum) 0;
	if (!JB_ROOT_IS_OBJECT(PG_GETARG_JSONB_P(argno)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"headers\" must be a JSON object")));
	return PG_GETARG_DATUM(argno);
}

/*
 * When a message becomes available: from the arguments delay and deliver_at, at most one
 * of which may be given; DT_NOEND = as the stream says.
 */
static TimestampTz
deliver_at_arg(FunctionCallInfo fcinfo, int delay_argno, int at_argno, TimestampTz now)
{
	TimestampTz at;

	if (!PG_ARGISNULL(delay_argno) && !PG_ARGISNULL(at_argno))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("only one of \"delay\" and \"deliver_at\" can be given")));
	if (!PG_ARGISNULL(delay_argno))
	{
		int64		delay_us = hms_arg_interval_us(fcinfo, delay_argno, "delay", HMS_ARG_REQUIRED);

		return delay_us == 0 ? DT_NOBEGIN : now + delay_us;
	}
	if (PG_ARGISNULL(at_argno))
		return DT_NOEND;

	at = PG_GETARG_TIMESTAMPTZ(at_argno);
	if (TIMESTAMP_NOT_FINITE(at))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"deliver_at\" must be finite")));
	return at <= now ? DT_NOBEGIN : at;
}

/* The arguments key, headers, priority, delay and deliver_at, in this order. */
static void
message_args(FunctionCallInfo fcinfo, int argno, TimestampTz now, HmsNewMessage *message)
{
	(void) hms_arg_name_or_null(fcinfo, argno, "key");
	message->key = optional(fcinfo, argno);
	message->headers = headers_arg(fcinfo, argno + 1);
	message->priority = hms_arg_int(fcinfo, argno + 2, "priority", 0, 0, HMS_PRIORITY_LEVELS - 1);
	message->deliver_at = deliver_at_arg(fcinfo, argno + 3, argno + 4, now);
}

/* publish(stream, payload, key, headers, priority, delay, deliver_at) */
Datum
hms_sql_publish(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	TimestampTz now = HMS_NOW();
	HmsNewMessage message = {0};
	HmsStream	stream;

	hms_require_writable("publish()");
	message.payload = required(fcinfo, 1, "payload");
	message_args(fcinfo, 2, now, &message);
	hms_stream_by_name(name, &stream);
	hms_publish(&stream, &message, 1, now);
	PG_RETURN_INT64(message.id);
}

/* publish_bytes(stream, body, content_type, key, headers, priority, delay, deliver_at) */
Datum
hms_sql_publish_bytes(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	TimestampTz now = HMS_NOW();
	HmsNewMessage message = {0};
	HmsStream	stream;

	hms_require_writable("publish_bytes()");
	message.body = required(fcinfo, 1, "body");
	(void) hms_arg_name_or_null(fcinfo, 2, "content_type");
	message.content_type = optional(fcinfo, 2);
	message_args(fcinfo, 3, now, &message);
	hms_stream_by_name(name, &stream);
	hms_publish(&stream, &message, 1, now);
	PG_RETURN_INT64(message.id);
}

/* publish_many(stream, payloads) */
Datum
hms_sql_publish_many(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	TimestampTz now = HMS_NOW();
	HmsNewMessage *messages;
	HmsStream	stream;
	Datum	   *payloads;
	int			n;

	hms_require_writable("publish_many()");
	payloads = hms_arg_array(fcinfo, 1, "payloads", JSONOID, false, &n);
	hms_stream_by_name(name, &stream);
	messages = palloc0(sizeof(HmsNewMessage) * n);
	for (int i = 0; i < n; i++)
	{
		messages[i].payload = payloads[i];
		messages[i].deliver_at = DT_NOEND;
	}
	hms_publish(&stream, messages, n, now);

	hms_srf_begin_scalar(fcinfo);
	for (int i = 0; i < n; i++)
	{
		Datum		value = Int64GetDatum(messages[i].id);
		bool		isnull = false;

		hms_srf_put(fcinfo, &value, &isnull);
	}
	return (Datum) 0;
}

/* publish_batch(stream, messages) */
Datum
hms_sql_publish_batch(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	TimestampTz now = HMS_NOW();
	HmsNewMessage *messages;
	HmsStream	stream;
	int			n;

	hms_require_writable("publish_batch()");
	(void) required(fcinfo, 1, "messages");
	n = hms_batch_parse(PG_GETARG_TEXT_PP(1), now, &messages);
	hms_stream_by_name(name, &stream);
	if (n > 0)
		hms_publish(&stream, messages, n, now);
	else
		hms_privilege_check(HMS_PRIV_PUBLISH, stream.stream_id, stream.name);

	hms_srf_begin(fcinfo);
	for (int i = 0; i < n; i++)
	{
		Datum		values[3] = {
			Int32GetDatum(i + 1),
			Int64GetDatum(messages[i].id),
			BoolGetDatum(false)
		};
		bool		nulls[3] = {false};

		hms_srf_put(fcinfo, values, nulls);
	}
	return (Datum) 0;
}

/* complete(stream, consumer_group, receipt, to_stream, payload, headers) */
Datum
hms_sql_complete(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");
	const char *receipt_text;
	const char *to_name = hms_arg_name(fcinfo, 3, "to_stream");
	TimestampTz now = HMS_NOW();
	HmsSettle	how = {.verb = HMS_ACK};
	HmsNewMessage message = {.deliver_at = DT_NOEND};
	HmsReceipt	receipt;
	HmsStream	stream;
	HmsStream	to_stream;
	HmsGroup	group;

	hms_require_writable("complete()");
	(void) required(fcinfo, 2, "receipt");
	receipt_text = text_to_cstring(PG_GETARG_TEXT_PP(2));
	hms_receipt_parse(receipt_text, &receipt);
	message.payload = required(fcinfo, 4, "payload");
	message.headers = headers_arg(fcinfo, 5);
	hms_refuse_serializable("complete()");
	hms_stream_by_name(name, &stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream.stream_id, stream.name);
	hms_group_by_name(&stream, group_name, &group);
	hms_stream_by_name(to_name, &to_stream);
	hms_privilege_check(HMS_PRIV_PUBLISH, to_stream.stream_id, to_stream.name);

	if (hms_settle(&stream, &group, &receipt, 1, &how, now) == 0)
		PG_RETURN_NULL();
	hms_publish(&to_stream, &message, 1, now);
	PG_RETURN_INT64(message.id);
}
