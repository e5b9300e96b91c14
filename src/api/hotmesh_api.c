/*-------------------------------------------------------------------------
 *
 * hotmesh_api.c
 *	  HotMesh's SQL functions that move messages: publish, consume, ack,
 *	  complete, reclaim, dead_letter, extend, expire_job.
 *
 * Arguments are checked here, the rules are in core/hotmesh.c.  Streams and groups are
 * created by those who publish and consume; whoever settles finds them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/timestamp.h"

#include "api/args.h"
#include "api/hotmesh_args.h"
#include "api/short_path.h"
#include "api/srf.h"
#include "core/hotmesh.h"
#include "core/privilege.h"
#include "debug/debug_point.h"
#include "guc.h"
#include "shmem/effects.h"

PG_FUNCTION_INFO_V1(hms_sql_hotmesh_publish);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_consume);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_reclaim);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_ack);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_complete);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_dead_letter);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_extend);
PG_FUNCTION_INFO_V1(hms_sql_hotmesh_expire_job);

#define RECLAIM_LIMIT	10		/* HotMesh's default */

static Datum
id_datum(int64 id)
{
	return CStringGetTextDatum(psprintf(INT64_FORMAT, id));
}

/* --- publish ----------------------------------------------------------------------- */

/* hotmesh_publish(stream, messages, options) */
Datum
hms_sql_hotmesh_publish(PG_FUNCTION_ARGS)
{
	const char *name = hms_arg_name(fcinfo, 0, "stream");
	TimestampTz now = HMS_NOW();
	HmsPublishOptions options;
	HmsNewMessage *messages;
	HmsStream	stream;
	HmsGroup	group;
	text	   *array;
	int			n;

	hms_require_writable("hotmesh_publish()");
	array = hms_arg_json(fcinfo, 1, "messages");
	hms_publish_options_parse(hms_arg_json_or_null(fcinfo, 2), &options);
	hms_hotmesh_stream(name, &stream);
	hms_hotmesh_group(&stream, hms_hotmesh_default_group(name), &group);
	messages = hms_hotmesh_publish(&stream, array, &options, now, &n);

	hms_srf_begin_scalar(fcinfo);
	for (int i = 0; i < n; i++)
	{
		Datum		value = id_datum(messages[i].id);
		bool		isnull = false;

		hms_srf_put(fcinfo, &value, &isnull);
	}
	return (Datum) 0;
}

/* --- consume ------------------------------------------------------------------------ */

static int64
epoch_ms(TimestampTz time)
{
	return (time - SetEpochTimestamp()) / 1000;
}

/* The seed's StreamMessageMetadata, and what fences and orders the message here. */
static Datum
message_metadata(const HmsStream *stream, const HmsGroup *group, const char *consumer,
				 const HmsMessage *message)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfo(&json, "{\"timestamp\":" INT64_FORMAT ",\"stream\":", epoch_ms(message->published_at));
	escape_json(&json, stream->name);
	appendStringInfoString(&json, ",\"groupName\":");
	escape_json(&json, group->name);
	appendStringInfoString(&json, ",\"consumerName\":");
	escape_json(&json, consumer);
	appendStringInfo(&json, ",\"retryCount\":%d,\"deliveryTime\":" INT64_FORMAT
					 ",\"originalMessageId\":\"" INT64_FORMAT "\",\"priority\":%d,\"tries\":%d}",
					 message->attempts - 1, epoch_ms(message->delivered_at), message->id,
					 message->priority, message->retries);
	return PointerGetDatum(cstring_to_text_with_len(json.data, json.len));
}

/* ["id",["message","envelope"]], an element of ReclaimedMessageType. */
static Datum
reclaimed_tuple(const HmsMessage *message, text *envelope)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfo(&json, "[\"" INT64_FORMAT "\",[\"message\",", message->id);
	escape_json(&json, text_to_cstring(envelope));
	appendStringInfoString(&json, "]]");
	return PointerGetDatum(cstring_to_text_with_len(json.data, json.len));
}

static void
return_messages(FunctionCallInfo fcinfo, const HmsStream *stream, const HmsGroup *group,
				const char *consumer, const HmsConsumeOptions *options, bool reclaimed,
				const HmsMessages *messages)
{
	hms_srf_begin(fcinfo);
	for (int i = 0; i < messages->n; i++)
	{
		const HmsMessage *m = &messages->items[i];
		bool		leased = !TIMESTAMP_IS_NOEND(m->lease_until);
		text	   *envelope = options->keep_try ? (text *) m->payload : hms_hotmesh_envelope(m);
		Datum		values[5] = {
			id_datum(m->id),
			leased ? CStringGetTextDatum(hms_receipt_format(m->id, m->token)) : (Datum) 0,
			PointerGetDatum(envelope),
			message_metadata(stream, group, consumer, m)
		};
		bool		nulls[5] = {false, !leased, envelope == NULL, false, envelope == NULL};

		if (reclaimed && envelope != NULL)
			values[4] = reclaimed_tuple(m, envelope);
		hms_srf_put(fcinfo, values, nulls);
	}
}

/* A wait needs a snapshot per statement, and is limited. */
static int64
checked_wait(int64 wait_us)
{
	if (wait_us > (int64) hms_max_wait_ms * 1000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("options.wait exceeds \"%s\" (%d ms)", "hotmesh_stream.max_wait", hms_max_wait_ms)));
	if (wait_us > 0 && IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot wait for messages in a REPEATABLE READ transaction"),
				 errhint("Use READ COMMITTED, or consume without waiting.")));
	return wait_us;
}

/* hotmesh_consume(stream, consumer_group, consumer, options) */
Datum
hms_sql_hotmesh_consume(PG_FUNCTION_ARGS)
{
	HmsReadRequest request = {.throttled = true,.fair = true};
	HmsMessages messages = {0};
	HmsConsumeOptions options;
	HmsStream	stream;
	HmsGroup	group;

	hms_require_writable("hotmesh_consume()");
	hms_refuse_serializable("hotmesh_consume()");
	request.stream = hms_arg_name(fcinfo, 0, "stream");
	request.group = hms_arg_name(fcinfo, 1, "consumer_group");
	request.consumer = hms_arg_name(fcinfo, 2, "consumer");
	hms_consume_options_parse(hms_arg_json_or_null(fcinfo, 3), &options);
	hms_hotmesh_stream(request.stream, &stream);
	hms_hotmesh_group(&stream, request.group, &group);

	request.max_messages = options.batch_size > 0 ? options.batch_size : group.default_batch;
	request.ack_wait_us = options.reservation_us;
	request.wait_us = checked_wait(options.wait_us >= 0 ? options.wait_us : group.default_wait_us);
	request.no_ack = options.auto_ack;
	request.short_path = hms_short_path(fcinfo, &request.acks);
	hms_read(&request, &messages);
	return_messages(fcinfo, &stream, &group, request.consumer, &options, false, &messages);
	return (Datum) 0;
}

/* Names, privilege and group of a call that settles. */
static void
resolve(FunctionCallInfo fcinfo, const char *what, HmsStream *stream, HmsGroup *group)
{
	const char *stream_name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");

	hms_require_writable(what);
	hms_refuse_serializable(what);
	hms_stream_by_name(stream_name, stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream->stream_id, stream->name);
	hms_group_by_name(stream, group_name, group);
}

/* hotmesh_reclaim(stream, consumer_group, consumer, options) */
Datum
hms_sql_hotmesh_reclaim(PG_FUNCTION_ARGS)
{
	HmsMessages messages = {0};
	HmsConsumeOptions options;
	HmsStream	stream;
	HmsGroup	group;
	const char *consumer = hms_arg_name(fcinfo, 2, "consumer");

	hms_reclaim_options_parse(hms_arg_json_or_null(fcinfo, 3), &options);
	resolve(fcinfo, "hotmesh_reclaim()", &stream, &group);
	if (hms_throttle_until(&group, consumer) <= HMS_NOW())
	{
		hms_effects_claim_begin();
		hms_claim(&stream, &group, consumer,
				  options.min_idle_us >= 0 ? options.min_idle_us : group.ack_wait_us,
				  options.ids, options.ids == NULL ? -1 : options.nids, 0,
				  options.batch_size > 0 ? options.batch_size : RECLAIM_LIMIT, HMS_NOW(), &messages);
		hms_effects_claim_end();
	}
	return_messages(fcinfo, &stream, &group, consumer, &options, true, &messages);
	return (Datum) 0;
}

/* --- settle --------------------------------------------------------------------------- */

static int
settle_items(FunctionCallInfo fcinfo, const char *what, const HmsSettle *how)
{
	HmsReceipt *receipts;
	HmsStream	stream;
	HmsGroup	group;
	int			n = hms_items_parse(hms_arg_json(fcinfo, 2, "items"), &receipts);

	resolve(fcinfo, what, &stream, &group);
	return n == 0 ? 0 : hms_settle(&stream, &group, receipts, n, how, HMS_NOW());
}

/* hotmesh_ack(stream, consumer_group, items) */
Datum
hms_sql_hotmesh_ack(PG_FUNCTION_ARGS)
{
	HmsSettle	how = {.verb = HMS_ACK};

	PG_RETURN_INT32(settle_items(fcinfo, "hotmesh_ack()", &how));
}

/* hotmesh_dead_letter(stream, consumer_group, items, reason) */
Datum
hms_sql_hotmesh_dead_letter(PG_FUNCTION_ARGS)
{
	HmsSettle	how = {.verb = HMS_REJECT};

	how.reason = hms_arg_name(fcinfo, 3, "reason");
	PG_RETURN_INT32(settle_items(fcinfo, "hotmesh_dead_letter()", &how));
}

/* hotmesh_complete(stream, consumer_group, item, response_stream, response, options) */
Datum
hms_sql_hotmesh_complete(PG_FUNCTION_ARGS)
{
	static const char *const words[] = {
		[HMS_COMPLETED] = "completed",[HMS_RETRYING] = "retrying",[HMS_LOST] = "lost"
	};
	const char *to_name = hms_arg_name(fcinfo, 3, "response_stream");
	HmsPublishOptions options;
	HmsReceipt	receipt;
	HmsStream	stream;
	HmsStream	to;
	HmsGroup	group;
	HmsGroup	to_group;
	HmsOutcome	outcome;
	text	   *response;
	int64		id = 0;
	Datum		values[2];
	bool		nulls[2] = {false};

	hms_item_parse(hms_arg_json(fcinfo, 2, "item"), &receipt);
	response = hms_arg_json(fcinfo, 4, "response");
	hms_publish_options_parse(hms_arg_json_or_null(fcinfo, 5), &options);
	resolve(fcinfo, "hotmesh_complete()", &stream, &group);
	hms_hotmesh_stream(to_name, &to);
	hms_hotmesh_group(&to, hms_hotmesh_default_group(to_name), &to_group);
	hms_privilege_check(HMS_PRIV_PUBLISH, to.stream_id, to.name);

	outcome = hms_hotmesh_complete(&stream, &group, &receipt, &to, response, &options, HMS_NOW(), &id);
	values[0] = CStringGetTextDatum(words[outcome]);
	nulls[1] = outcome != HMS_COMPLETED;
	values[1] = nulls[1] ? (Datum) 0 : id_datum(id);
	hms_srf_begin(fcinfo);
	hms_srf_put(fcinfo, values, nulls);
	return (Datum) 0;
}

/* hotmesh_extend(stream, consumer_group, item, consumer, seconds) */
Datum
hms_sql_hotmesh_extend(PG_FUNCTION_ARGS)
{
	HmsSettle	how = {.verb = HMS_EXTEND};
	HmsReceipt	receipt;
	HmsStream	stream;
	HmsGroup	group;
	double		seconds = PG_ARGISNULL(4) ? HMS_HOTMESH_LEASE_US / USECS_PER_SEC : PG_GETARG_FLOAT8(4);

	(void) hms_arg_name_or_null(fcinfo, 3, "consumer");
	if (!(seconds >= 0) || seconds * USECS_PER_SEC > HMS_MAX_INTERVAL_US)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"seconds\" is out of range")));
	how.delay_us = (int64) (seconds * USECS_PER_SEC);
	hms_item_parse(hms_arg_json(fcinfo, 2, "item"), &receipt);
	resolve(fcinfo, "hotmesh_extend()", &stream, &group);
	if (!PG_ARGISNULL(3) && !receipt.has_token &&
		!hms_held_by(&group, &receipt, text_to_cstring(PG_GETARG_TEXT_PP(3))))
		PG_RETURN_INT32(0);
	PG_RETURN_INT32(hms_settle(&stream, &group, &receipt, 1, &how, HMS_NOW()));
}

/* hotmesh_expire_job(prefix, jid) */
Datum
hms_sql_hotmesh_expire_job(PG_FUNCTION_ARGS)
{
	const char *prefix = hms_arg_name(fcinfo, 0, "prefix");
	const char *jid = hms_arg_name(fcinfo, 1, "jid");

	hms_require_writable("hotmesh_expire_job()");
	PG_RETURN_INT32(hms_hotmesh_expire_job(prefix, jid));
}
