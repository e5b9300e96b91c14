/*-------------------------------------------------------------------------
 *
 * hotmesh.c
 *	  HotMesh's contract on streams and groups: publish, answer, give up.
 *
 * A message of HotMesh is an envelope (stream_data.h), published as the json
 * payload and kept byte for byte.  Its type decides the priority, its job id is the
 * key.  The retry count of an error answer stands in the delivery row, so that the message is
 * never copied: id, bytes and place stay, and no consumer sleeps while it waits.
 *
 * Nothing here holds state of its own; all runs in the transaction of the caller.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

#include "core/delivery.h"
#include "core/group.h"
#include "core/hotmesh.h"
#include "core/json_read.h"
#include "core/log_admin.h"
#include "core/namespace.h"
#include "core/privilege.h"
#include "core/publish.h"
#include "core/stream.h"
#include "shmem/effects.h"
#include "storage/relset.h"

#define MAX_DELIVER_DEFAULT		4	/* three reclaims */
#define DEAD_LETTER_RETENTION_US	(INT64CONST(14) * USECS_PER_DAY)
#define RETRY_HEADER			"retry"
#define UNACKED_MESSAGE			"stream message max delivery count exceeded"

/* --- options ------------------------------------------------------------------ */

static void
read_retry_option(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsPublishOptions *options = out;

	hms_retry_policy_parse(value.start, value.len, "options.retry", &options->retry);
	options->retry_headers =
		DirectFunctionCall1(jsonb_in,
							CStringGetDatum(psprintf("{\"" RETRY_HEADER "\": %s}",
													 pnstrdup(value.start, value.len))));
}

#define IN(member)	offsetof(HmsPublishOptions, member)

static const HmsJsonKey publish_keys[] = {
	{.name = "lenient",.kind = HMS_JSON_BOOL,.offset = IN(lenient)},
	{.name = "delay",.kind = HMS_JSON_INT64,.offset = IN(delay_ms),.has_offset = IN(has_delay),
	.max = HMS_MAX_INTERVAL_US / 1000},
	{.name = "retry",.kind = HMS_JSON_CUSTOM,.read = read_retry_option},
	{.name = NULL}
};

#undef IN

void
hms_publish_options_parse(text *json, HmsPublishOptions *out)
{
	HmsJsonPlace place = {.name = "options"};

	memset(out, 0, sizeof(*out));
	if (json != NULL)
		hms_json_read_object(&place, hms_json_span(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json)),
							 publish_keys, out);
}

/* --- streams and groups --------------------------------------------------------- */

const char *
hms_hotmesh_default_group(const char *stream)
{
	size_t		len = strlen(stream);

	return len > 0 && stream[len - 1] == ':' ? "ENGINE" : "WORKER";
}

bool
hms_hotmesh_engine_stream(const char *stream, char *engine)
{
	/* namespace:app:x:topic */
	const char *end = strchr(stream, ':');

	if (end != NULL)
		end = strchr(end + 1, ':');
	if (end == NULL || strncmp(end, ":x:", 3) != 0)
		return false;
	strlcpy(engine, stream, end + 3 - stream + 1);
	return true;
}

void
hms_hotmesh_stream(const char *name, HmsStream *out)
{
	HmsStreamOptions options = {
		.name = name,
		.namespace_name = HMS_DEFAULT_NAMESPACE,
		.max_message_bytes = HMS_HOTMESH_MESSAGE_BYTES,
		.max_priority = HMS_HOTMESH_MAX_PRIORITY
	};

	if (hms_stream_find(name, out))
		return;
	(void) hms_stream_create(&options);
	hms_stream_by_name(name, out);
}

void
hms_hotmesh_group(const HmsStream *stream, const char *name, HmsGroup *out)
{
	char		engine[HMS_MAX_NAME_BYTES + 1];
	HmsGroupOptions options = {
		.name = name,
		.deliver_policy = HMS_DELIVER_ALL,
		.ack_wait_us = HMS_HOTMESH_LEASE_US,
		.max_deliver = MAX_DELIVER_DEFAULT,
		.dead_letter_retention_us = DEAD_LETTER_RETENTION_US
	};

	if (hms_group_find(stream->stream_id, name, out))
		return;
	if (hms_hotmesh_engine_stream(stream->name, engine))
		options.error_stream = engine;
	(void) hms_group_create(stream->name, &options);
	hms_group_by_name(stream, name, out);
}

/* --- publishing ------------------------------------------------------------------ */

/* Read an envelope as the caller wants it read. */
static void
parse_envelope(const char *json, int len, const char *path, bool lenient, HmsStreamData *out)
{
	if (lenient)
		hms_stream_data_parse_lenient(json, len, path, out);
	else
		hms_stream_data_parse(json, len, path, out);
}

/* The message of one envelope. */
static void
form_message(const HmsStream *stream, HmsJsonSpan envelope, const char *path,
			 const HmsPublishOptions *options, TimestampTz now, HmsNewMessage *message)
{
	HmsStreamData data;

	parse_envelope(envelope.start, envelope.len, path, options->lenient, &data);
	memset(message, 0, sizeof(*message));
	message->payload = PointerGetDatum(cstring_to_text_with_len(envelope.start, envelope.len));
	message->headers = options->retry_headers;
	message->priority = Min(hms_stream_data_priority(data.type), stream->levels - 1);
	if (data.jid != NULL && *data.jid != '\0')
		message->key = CStringGetTextDatum(data.jid);
	message->deliver_at = DT_NOEND;
	if (options->has_delay && options->delay_ms > 0)
		message->deliver_at = now + options->delay_ms * 1000;
	else if (data.has_visibility_delay && data.visibility_delay_ms > 0)
		message->deliver_at = now + data.visibility_delay_ms * 1000;
}

HmsNewMessage *
hms_hotmesh_publish(const HmsStream *stream, text *messages, const HmsPublishOptions *options,
					TimestampTz now, int *nmessages)
{
	HmsJsonSpan span = hms_json_span(VARDATA_ANY(messages), VARSIZE_ANY_EXHDR(messages));
	HmsNewMessage *out = NULL;
	HmsJsonSpan element;
	HmsJsonWalk walk;
	int			capacity = 0;
	int			n = 0;

	if (!hms_json_is(span, '['))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"messages\" must be a JSON array")));
	hms_json_walk(&walk, span);
	while (hms_json_next_element(&walk, &element))
	{
		if (n >= HMS_MAX_BATCH)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("argument \"messages\" has more than %d elements", HMS_MAX_BATCH)));
		if (n == capacity)
		{
			capacity = Max(capacity * 2, 8);
			out = out == NULL ? palloc(sizeof(HmsNewMessage) * capacity) :
				repalloc(out, sizeof(HmsNewMessage) * capacity);
		}
		form_message(stream, element, psprintf("messages[%d]", n), options, now, &out[n]);
		n++;
	}
	if (n > 0)
		hms_publish(stream, out, n, now);
	else
		hms_privilege_check(HMS_PRIV_PUBLISH, stream->stream_id, stream->name);
	*nmessages = n;
	return out;
}

text *
hms_hotmesh_envelope(const HmsMessage *message)
{
	text	   *payload = (text *) message->payload;
	HmsStreamData data;

	if (payload == NULL || message->retries == 0)
		return payload;
	hms_stream_data_parse_lenient(VARDATA_ANY(payload), VARSIZE_ANY_EXHDR(payload), "data", &data);
	return hms_stream_data_with_try(VARDATA_ANY(payload), VARSIZE_ANY_EXHDR(payload),
									data.try_count + message->retries);
}

/* --- answering --------------------------------------------------------------------- */

/* The policy that was given when the message was published, or that its envelope has. */
static void
find_policy(const HmsMessage *message, const HmsStreamData *data, HmsRetryPolicy *policy)
{
	JsonbValue	value;
	StringInfoData text;

	*policy = data->retry_policy;
	if (message->headers == NULL ||
		getKeyJsonValueFromContainer(&((Jsonb *) message->headers)->root, RETRY_HEADER,
									 strlen(RETRY_HEADER), &value) == NULL ||
		value.type != jbvBinary)
		return;
	initStringInfo(&text);
	(void) JsonbToCString(&text, value.val.binary.data, value.val.binary.len);
	hms_retry_policy_parse(text.data, text.len, "retry", policy);
}

/*
 * The pause before the next try of a message that failed with 'code', in us; -1 when it is
 * not tried again.  A retry policy counts attempts in all and looks at no code.
 */
static int64
retry_pause_us(const HmsMessage *message, int code)
{
	text	   *payload = (text *) message->payload;
	HmsRetryPolicy policy;
	HmsStreamData data;
	int			tries;

	if (payload == NULL)
		return -1;
	hms_stream_data_parse_lenient(VARDATA_ANY(payload), VARSIZE_ANY_EXHDR(payload), "data", &data);
	tries = data.try_count + message->retries;
	find_policy(message, &data, &policy);
	if (policy.has)
		return tries + 1 < policy.maximum_attempts ?
			hms_retry_policy_delay_us(&policy, tries) : -1;
	return tries < hms_stream_data_max_retries(&data, code) ? hms_retry_code_delay_us(tries) : -1;
}

/* The error in the data of a response, as jsonb; NULL when jsonb cannot hold it. */
static struct varlena *
response_error(const HmsStreamData *data, int code)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfo(&json, "{\"code\": %d, \"status\": \"error\"}", code);
	if (data->data.start != NULL && hms_json_is(data->data, '{') &&
		memmem(data->data.start, data->data.len, "\\u", 2) == NULL)
	{
		resetStringInfo(&json);
		appendBinaryStringInfo(&json, data->data.start, data->data.len);
	}
	return (struct varlena *) DatumGetPointer(DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data)));
}

HmsOutcome
hms_hotmesh_complete(const HmsStream *stream, const HmsGroup *group, const HmsReceipt *receipt,
					 const HmsStream *to, text *response, const HmsPublishOptions *options,
					 TimestampTz now, int64 *id)
{
	HmsJsonSpan span = hms_json_span(VARDATA_ANY(response), VARSIZE_ANY_EXHDR(response));
	HmsSettle	how = {.verb = HMS_ACK};
	HmsNewMessage message;
	HmsStreamData data;

	parse_envelope(span.start, span.len, "response", options->lenient, &data);
	form_message(to, span, "response", options, now, &message);
	if (data.status == HMS_STATUS_ERROR)
	{
		int			code = data.code == 0 ? HMS_HOTMESH_UNKNOWN : data.code;
		HmsMessage	failed;
		int64		pause_us;

		pause_us = hms_settle_peek(stream, group, receipt, &failed) ?
			retry_pause_us(&failed, code) : -1;
		if (pause_us >= 0)
		{
			how = (HmsSettle)
			{
				.verb = HMS_NACK,.delay_us = pause_us,.retry = true,
					.error = response_error(&data, code)
			};
			return hms_settle(stream, group, receipt, 1, &how, now) == 1 ? HMS_RETRYING : HMS_LOST;
		}
	}
	if (hms_settle(stream, group, receipt, 1, &how, now) == 0)
		return HMS_LOST;
	hms_publish(to, &message, 1, now);
	*id = message.id;
	return HMS_COMPLETED;
}

/* --- giving up ----------------------------------------------------------------------- */

/* False when the payload is no envelope.  Reading touches memory only, so its errors can be caught. */
static bool
is_envelope(text *payload, HmsStreamData *data)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool valid = true;

	PG_TRY();
	{
		hms_stream_data_parse_lenient(VARDATA_ANY(payload), VARSIZE_ANY_EXHDR(payload),
									  "payload", data);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		FlushErrorState();
		valid = false;
	}
	PG_END_TRY();
	return valid;
}

void
hms_hotmesh_exhausted(const HmsGroup *group, const HmsMessage *message, TimestampTz now)
{
	HmsNewMessage response = {.deliver_at = DT_NOBEGIN};
	HmsStreamData data;
	HmsStream	to;
	char	   *guid;
	text	   *envelope;

	if (message->payload == NULL || !hms_stream_find(group->error_stream, &to) ||
		!is_envelope((text *) message->payload, &data) || data.code == HMS_HOTMESH_UNACKED)
		return;

	guid = DatumGetCString(DirectFunctionCall1(uuid_out, gen_random_uuid(NULL)));
	envelope = hms_stream_data_error(&data, guid, HMS_HOTMESH_UNACKED, UNACKED_MESSAGE);
	response.payload = PointerGetDatum(envelope);
	response.priority = Min(hms_stream_data_priority(HMS_DATA_RESPONSE), to.levels - 1);
	if (data.jid != NULL && *data.jid != '\0')
		response.key = CStringGetTextDatum(data.jid);

	/*
	 * Not by hms_publish(): it is the group's configuration that answers, not
	 * whoever happens to read.
	 */
	hms_log_append(&to, &response, 1, now);
	hms_effects_published(to.stream_id, 1, VARSIZE_ANY_EXHDR(envelope));
}

int
hms_hotmesh_expire_job(const char *prefix, const char *jid)
{
	HmsStream  *streams;
	int			nstreams = hms_list_streams(0, &streams);
	int			expired = 0;

	for (int i = 0; i < nstreams; i++)
	{
		if (strncmp(streams[i].name, prefix, strlen(prefix)) != 0)
			continue;
		hms_privilege_check(HMS_PRIV_MANAGE, streams[i].stream_id, streams[i].name);
		expired += hms_log_purge_key(&streams[i], jid, 0);
	}
	return expired;
}
