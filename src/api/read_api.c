/*-------------------------------------------------------------------------
 *
 * read_api.c
 *	  SQL functions that hand out or show messages: read, claim, pending, and
 *	  the procedure wait.
 *
 * Arguments are checked here, the rules are in core/read.c and core/takeover.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "api/args.h"
#include "api/short_path.h"
#include "api/srf.h"
#include "core/privilege.h"
#include "core/read.h"
#include "core/settle.h"
#include "debug/debug_point.h"
#include "guc.h"
#include "shmem/effects.h"

PG_FUNCTION_INFO_V1(hms_sql_read);
PG_FUNCTION_INFO_V1(hms_sql_claim);
PG_FUNCTION_INFO_V1(hms_sql_pending);
PG_FUNCTION_INFO_V1(hms_sql_wait);

#define MESSAGE_NCOLUMNS	13

/* Return messages as rows of hotmesh_stream.message. */
static void
return_messages(FunctionCallInfo fcinfo, const HmsMessages *messages)
{
	hms_srf_begin(fcinfo);
	for (int i = 0; i < messages->n; i++)
	{
		const HmsMessage *m = &messages->items[i];
		bool		leased = !TIMESTAMP_IS_NOEND(m->lease_until);
		Datum		values[MESSAGE_NCOLUMNS] = {
			Int64GetDatum(m->id),
			leased ? CStringGetTextDatum(hms_receipt_format(m->id, m->token)) : (Datum) 0,
			PointerGetDatum(m->payload),
			PointerGetDatum(m->body),
			PointerGetDatum(m->content_type),
			PointerGetDatum(m->headers),
			PointerGetDatum(m->key),
			Int32GetDatum(m->priority),
			Int32GetDatum(m->attempts),
			TimestampTzGetDatum(m->published_at),
			TimestampTzGetDatum(m->first_delivered_at),
			TimestampTzGetDatum(m->delivered_at),
			TimestampTzGetDatum(m->lease_until)
		};
		bool		nulls[MESSAGE_NCOLUMNS] = {
			false, !leased, m->payload == NULL, m->body == NULL, m->content_type == NULL,
			m->headers == NULL, m->key == NULL, false, false, false, false, false, !leased
		};

		hms_srf_put(fcinfo, values, nulls);
	}
}

/* A positive count of messages. */
static int
count_arg(FunctionCallInfo fcinfo, int argno, int dflt)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "max_messages")));
	return hms_arg_int(fcinfo, argno, "max_messages", dflt, 1, HMS_MAX_BATCH);
}

/* wait > 0 needs a snapshot per statement, and is limited. */
static int64
wait_arg(FunctionCallInfo fcinfo, int argno, const char *argname)
{
	int64		wait_us = hms_arg_interval_us(fcinfo, argno, argname, HMS_ARG_REQUIRED);

	if (wait_us > (int64) hms_max_wait_ms * 1000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" exceeds \"%s\" (%d ms)", argname,
						"hotmesh_stream.max_wait", hms_max_wait_ms)));
	if (wait_us > 0 && IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot wait for messages in a REPEATABLE READ transaction"),
				 errhint("Use READ COMMITTED, or read without waiting.")));
	return wait_us;
}

/* read(stream, consumer_group, consumer, max_messages, wait, ack_wait, max_bytes, no_ack) */
Datum
hms_sql_read(PG_FUNCTION_ARGS)
{
	HmsReadRequest request = {0};
	HmsMessages messages = {0};

	hms_require_writable("read()");
	hms_refuse_serializable("read()");
	request.stream = hms_arg_name(fcinfo, 0, "stream");
	request.group = hms_arg_name(fcinfo, 1, "consumer_group");
	request.consumer = hms_arg_name(fcinfo, 2, "consumer");
	request.max_messages = count_arg(fcinfo, 3, 1);
	request.wait_us = wait_arg(fcinfo, 4, "wait");
	request.ack_wait_us = hms_arg_interval_us(fcinfo, 5, "ack_wait", -1);
	if (request.ack_wait_us == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"ack_wait\" must be greater than 0")));
	request.max_bytes = hms_arg_int(fcinfo, 6, "max_bytes", 0, 1, PG_INT32_MAX);
	request.no_ack = hms_arg_bool(fcinfo, 7, "no_ack", false);
	request.short_path = hms_short_path(fcinfo, &request.acks);

	hms_read(&request, &messages);
	return_messages(fcinfo, &messages);
	return (Datum) 0;
}

/* Names, privilege and group of a call that consumes. */
static void
resolve(FunctionCallInfo fcinfo, HmsStream *stream, HmsGroup *group)
{
	const char *stream_name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");

	hms_stream_by_name(stream_name, stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream->stream_id, stream->name);
	hms_group_by_name(stream, group_name, group);
}

/* claim(stream, consumer_group, consumer, min_idle, ids, after_id, max_messages) */
Datum
hms_sql_claim(PG_FUNCTION_ARGS)
{
	HmsMessages messages = {0};
	HmsStream	stream;
	HmsGroup	group;
	const char *consumer;
	int64		min_idle_us;
	int64		after_id;
	int			max_messages;
	Datum	   *elements;
	int64	   *ids = NULL;
	int			nids;

	hms_require_writable("claim()");
	hms_refuse_serializable("claim()");
	consumer = hms_arg_name(fcinfo, 2, "consumer");
	min_idle_us = hms_arg_interval_us(fcinfo, 3, "min_idle", HMS_ARG_REQUIRED);
	elements = hms_arg_array(fcinfo, 4, "ids", INT8OID, true, &nids);
	after_id = hms_arg_int8(fcinfo, 5, "after_id", 0, 0, PG_INT64_MAX);
	max_messages = count_arg(fcinfo, 6, 100);
	resolve(fcinfo, &stream, &group);

	if (nids > 0)
		ids = palloc(sizeof(int64) * nids);
	for (int i = 0; i < nids; i++)
		ids[i] = DatumGetInt64(elements[i]);
	hms_effects_claim_begin();
	hms_claim(&stream, &group, consumer, min_idle_us, ids, nids, after_id,
			  max_messages, HMS_NOW(), &messages);
	hms_effects_claim_end();
	return_messages(fcinfo, &messages);
	return (Datum) 0;
}

/* pending(stream, consumer_group, consumer, min_idle, after_id, max_messages) */
Datum
hms_sql_pending(PG_FUNCTION_ARGS)
{
	HmsMessages messages = {0};
	HmsStream	stream;
	HmsGroup	group;
	const char *consumer = hms_arg_name_or_null(fcinfo, 2, "consumer");
	int64		min_idle_us = hms_arg_interval_us(fcinfo, 3, "min_idle", 0);
	int64		after_id = hms_arg_int8(fcinfo, 4, "after_id", 0, 0, PG_INT64_MAX);
	int			max_messages = count_arg(fcinfo, 5, 100);

	resolve(fcinfo, &stream, &group);
	hms_list_pending(&stream, &group, consumer, min_idle_us, after_id, max_messages,
					 HMS_NOW(), &messages);
	return_messages(fcinfo, &messages);
	return (Datum) 0;
}

/* CALL wait(stream, consumer_group, timeout) */
Datum
hms_sql_wait(PG_FUNCTION_ARGS)
{
	const char *stream = hms_arg_name(fcinfo, 0, "stream");
	const char *group = hms_arg_name(fcinfo, 1, "consumer_group");
	int64		timeout_us = wait_arg(fcinfo, 2, "timeout");
	bool		nonatomic = fcinfo->context != NULL && IsA(fcinfo->context, CallContext) &&
	!castNode(CallContext, fcinfo->context)->atomic;

	(void) hms_wait_for_work(stream, group, timeout_us, nonatomic);
	PG_RETURN_VOID();
}
