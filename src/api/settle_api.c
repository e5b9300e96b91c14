/*-------------------------------------------------------------------------
 *
 * settle_api.c
 *	  SQL functions that settle: ack, nack, reject, extend, drop_consumer.
 *
 * Arguments are checked here, all receipts before any is settled; the rules are
 * in core/settle.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "api/args.h"
#include "core/privilege.h"
#include "core/settle.h"
#include "core/tasks_core.h"
#include "debug/debug_point.h"
#include "shmem/counters.h"
#include "shmem/effects.h"

PG_FUNCTION_INFO_V1(hms_sql_ack);
PG_FUNCTION_INFO_V1(hms_sql_nack);
PG_FUNCTION_INFO_V1(hms_sql_reject);
PG_FUNCTION_INFO_V1(hms_sql_extend);
PG_FUNCTION_INFO_V1(hms_sql_drop_consumer);

/* The steps that all four have in common; receipts are argument 2. */
static int
settle(FunctionCallInfo fcinfo, const char *what, const HmsSettle *how)
{
	const char *stream_name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");
	HmsStream	stream;
	HmsGroup	group;
	HmsReceipt *receipts;
	Datum	   *elements;
	int			n;
	int			settled;

	hms_require_writable(what);
	hms_refuse_serializable(what);

	/*
	 * array_agg() over a read that found nothing is null: there is nothing to
	 * settle.
	 */
	elements = hms_arg_array(fcinfo, 2, "receipts", TEXTOID, true, &n);
	receipts = palloc(sizeof(HmsReceipt) * Max(n, 1));
	for (int i = 0; i < n; i++)
		hms_receipt_parse(TextDatumGetCString(elements[i]), &receipts[i]);

	hms_stream_by_name(stream_name, &stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream.stream_id, stream.name);
	hms_group_by_name(&stream, group_name, &group);
	settled = n <= 0 ? 0 : hms_settle(&stream, &group, receipts, n, how, HMS_NOW());
	pfree(receipts);
	return settled;
}

/* ack(stream, consumer_group, variadic receipts) */
Datum
hms_sql_ack(PG_FUNCTION_ARGS)
{
	HmsSettle	how = {.verb = HMS_ACK};

	PG_RETURN_INT32(settle(fcinfo, "ack()", &how));
}

/* nack(stream, consumer_group, receipts, delay, error, count_attempt) */
Datum
hms_sql_nack(PG_FUNCTION_ARGS)
{
	HmsSettle	how = {.verb = HMS_NACK};

	how.delay_us = hms_arg_interval_us(fcinfo, 3, "delay", -1);
	how.error = PG_ARGISNULL(4) ? NULL : (struct varlena *) PG_GETARG_JSONB_P(4);
	how.count_attempt = hms_arg_bool(fcinfo, 5, "count_attempt", true);
	PG_RETURN_INT32(settle(fcinfo, "nack()", &how));
}

/* reject(stream, consumer_group, receipts, reason) */
Datum
hms_sql_reject(PG_FUNCTION_ARGS)
{
	HmsSettle	how = {.verb = HMS_REJECT};

	if (PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "reason")));
	how.reason = text_to_cstring(PG_GETARG_TEXT_PP(3));
	PG_RETURN_INT32(settle(fcinfo, "reject()", &how));
}

/* extend(stream, consumer_group, receipts, ack_wait) */
Datum
hms_sql_extend(PG_FUNCTION_ARGS)
{
	HmsSettle	how = {.verb = HMS_EXTEND};

	how.delay_us = hms_arg_interval_us(fcinfo, 3, "ack_wait", -1);
	PG_RETURN_INT32(settle(fcinfo, "extend()", &how));
}

/* drop_consumer(stream, consumer_group, consumer) */
Datum
hms_sql_drop_consumer(PG_FUNCTION_ARGS)
{
	const char *stream_name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");
	const char *consumer = hms_arg_name(fcinfo, 2, "consumer");
	HmsStream	stream;
	HmsGroup	group;
	int			released;

	hms_require_writable("drop_consumer()");
	hms_refuse_serializable("drop_consumer()");
	hms_stream_by_name(stream_name, &stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream.stream_id, stream.name);
	hms_group_by_name(&stream, group_name, &group);
	released = hms_release_consumer(&group, consumer, HMS_NOW());
	hms_forget_consumer(&group, consumer);
	PG_RETURN_INT32(released);
}
