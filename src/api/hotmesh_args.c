/*-------------------------------------------------------------------------
 *
 * hotmesh_args.c
 *	  JSON arguments of HotMesh's functions, read strictly.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "api/args.h"
#include "api/hotmesh_args.h"
#include "core/json_read.h"

text *
hms_arg_json_or_null(FunctionCallInfo fcinfo, int argno)
{
	return PG_ARGISNULL(argno) ? NULL : PG_GETARG_TEXT_PP(argno);
}

text *
hms_arg_json(FunctionCallInfo fcinfo, int argno, const char *argname)
{
	if (PG_ARGISNULL(argno))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", argname)));
	return PG_GETARG_TEXT_PP(argno);
}

static HmsJsonSpan
span_of(text *json)
{
	return hms_json_span(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json));
}

/* --- consume and reclaim --------------------------------------------------------- */

#define IN(member)	offsetof(HmsConsumeOptions, member)

/* Seconds, with a fraction perhaps. */
static void
read_reservation(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	double		seconds;

	if (!hms_json_get_number(value, &seconds) || !(seconds > 0) ||
		seconds * USECS_PER_SEC > HMS_MAX_INTERVAL_US)
		hms_json_refuse(place, "a number of seconds greater than 0");
	((HmsConsumeOptions *) out)->reservation_us = Max((int64) (seconds * USECS_PER_SEC), 1);
}

static void
read_ms(const HmsJsonPlace *place, HmsJsonSpan value, int64 *us)
{
	int64		ms;

	if (!hms_json_get_integer(value, 0, HMS_MAX_INTERVAL_US / 1000, &ms))
		hms_json_refuse(place, "a number of milliseconds");
	*us = ms * 1000;
}

static void
read_wait(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	read_ms(place, value, &((HmsConsumeOptions *) out)->wait_us);
}

static void
read_min_idle(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	read_ms(place, value, &((HmsConsumeOptions *) out)->min_idle_us);
}

static int64
read_id(const HmsJsonPlace *place, HmsJsonSpan value)
{
	HmsReceipt	receipt;

	if (!hms_json_is(value, '"'))
		hms_json_refuse(place, "a message id as a string");
	hms_receipt_parse(hms_json_read_string(place, value), &receipt);
	return receipt.id;
}

static void
read_ids(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsConsumeOptions *options = out;
	HmsJsonSpan element;
	HmsJsonWalk walk;

	if (!hms_json_is(value, '['))
		hms_json_refuse(place, "an array of message ids");
	options->ids = palloc(sizeof(int64) * HMS_MAX_BATCH);
	hms_json_walk(&walk, value);
	while (hms_json_next_element(&walk, &element))
	{
		if (options->nids == HMS_MAX_BATCH)
			hms_json_refuse(place, psprintf("an array of at most %d ids", HMS_MAX_BATCH));
		options->ids[options->nids++] = read_id(place, element);
	}
}

static const HmsJsonKey consume_keys[] = {
	{.name = "batchSize",.kind = HMS_JSON_INT32,.offset = IN(batch_size),.min = 1,.max = HMS_MAX_BATCH},
	{.name = "reservationTimeout",.kind = HMS_JSON_CUSTOM,.read = read_reservation},
	{.name = "autoAck",.kind = HMS_JSON_BOOL,.offset = IN(auto_ack)},
	{.name = "wait",.kind = HMS_JSON_CUSTOM,.read = read_wait},
	{.name = "keepTry",.kind = HMS_JSON_BOOL,.offset = IN(keep_try)},
	{.name = NULL}
};

static const HmsJsonKey reclaim_keys[] = {
	{.name = "limit",.kind = HMS_JSON_INT32,.offset = IN(batch_size),.min = 1,.max = HMS_MAX_BATCH},
	{.name = "minIdleTime",.kind = HMS_JSON_CUSTOM,.read = read_min_idle},
	{.name = "messageIds",.kind = HMS_JSON_CUSTOM,.read = read_ids},
	{.name = "keepTry",.kind = HMS_JSON_BOOL,.offset = IN(keep_try)},
	{.name = NULL}
};

#undef IN

static void
parse_options(text *json, const HmsJsonKey *keys, HmsConsumeOptions *out)
{
	HmsJsonPlace place = {.name = "options"};

	memset(out, 0, sizeof(*out));
	out->batch_size = -1;
	out->reservation_us = -1;
	out->wait_us = -1;
	out->min_idle_us = -1;
	if (json != NULL)
		hms_json_read_object(&place, span_of(json), keys, out);
}

void
hms_consume_options_parse(text *json, HmsConsumeOptions *out)
{
	parse_options(json, consume_keys, out);
}

void
hms_reclaim_options_parse(text *json, HmsConsumeOptions *out)
{
	parse_options(json, reclaim_keys, out);
}

/* --- items -------------------------------------------------------------------------- */

typedef struct ItemMembers
{
	char	   *id;
	char	   *receipt;
} ItemMembers;

static const HmsJsonKey item_keys[] = {
	{.name = "id",.kind = HMS_JSON_STRING,.required = true,.offset = offsetof(ItemMembers, id)},
	{.name = "receipt",.kind = HMS_JSON_STRING,.offset = offsetof(ItemMembers, receipt)},
	{.name = NULL}
};

static void
read_item(const HmsJsonPlace *place, HmsJsonSpan value, HmsReceipt *out)
{
	ItemMembers item = {0};
	HmsReceipt	id;

	if (hms_json_is(value, '"'))
	{
		hms_receipt_parse(hms_json_read_string(place, value), out);
		return;
	}
	if (!hms_json_is(value, '{'))
		hms_json_refuse(place, "a message id as a string, or an object with \"id\" and \"receipt\"");
	hms_json_read_object(place, value, item_keys, &item);
	hms_receipt_parse(item.id, &id);
	*out = id;
	if (item.receipt == NULL)
		return;
	hms_receipt_parse(item.receipt, out);
	if (out->id != id.id)
		hms_json_refuse(place, "an object whose \"receipt\" belongs to its \"id\"");
}

void
hms_item_parse(text *json, HmsReceipt *out)
{
	HmsJsonPlace place = {.name = "item"};

	read_item(&place, span_of(json), out);
}

int
hms_items_parse(text *json, HmsReceipt **out)
{
	HmsJsonSpan span = span_of(json);
	HmsJsonPlace root = {.name = "items"};
	HmsJsonSpan element;
	HmsJsonWalk walk;
	int			n = 0;

	if (!hms_json_is(span, '['))
		hms_json_refuse(&root, "an array");
	*out = palloc(sizeof(HmsReceipt) * HMS_MAX_BATCH);
	hms_json_walk(&walk, span);
	while (hms_json_next_element(&walk, &element))
	{
		HmsJsonPlace place = {.name = psprintf("items[%d]", n)};

		if (n == HMS_MAX_BATCH)
			hms_json_refuse(&root, psprintf("an array of at most %d items", HMS_MAX_BATCH));
		read_item(&place, element, &(*out)[n++]);
	}
	return n;
}

/* --- others --------------------------------------------------------------------------- */

typedef struct StreamName
{
	char	   *stream;
} StreamName;

/* HotMesh passes whole profiles: other keys are not looked at. */
static const HmsJsonKey stream_name_keys[] = {
	{.name = "stream",.kind = HMS_JSON_STRING,.required = true,.offset = offsetof(StreamName, stream)},
	{.name = NULL}
};

int
hms_stream_names_parse(text *json, char ***out)
{
	HmsJsonSpan span = span_of(json);
	HmsJsonPlace root = {.name = "streams"};
	HmsJsonSpan element;
	HmsJsonWalk walk;
	int			n = 0;

	if (!hms_json_is(span, '['))
		hms_json_refuse(&root, "an array");
	*out = palloc(sizeof(char *) * HMS_MAX_BATCH);
	hms_json_walk(&walk, span);
	while (hms_json_next_element(&walk, &element))
	{
		HmsJsonPlace place = {.name = psprintf("streams[%d]", n),.lenient = true};
		StreamName	name = {0};

		if (n == HMS_MAX_BATCH)
			hms_json_refuse(&root, psprintf("an array of at most %d streams", HMS_MAX_BATCH));
		if (hms_json_is(element, '"'))
			name.stream = hms_json_read_string(&place, element);
		else
			hms_json_read_object(&place, element, stream_name_keys, &name);
		(*out)[n++] = name.stream;
	}
	return n;
}

typedef struct TrimOptions
{
	int64		max_len;
	int64		max_age_ms;
	bool		exact;
} TrimOptions;

static const HmsJsonKey trim_keys[] = {
	{.name = "maxLen",.kind = HMS_JSON_INT64,.offset = offsetof(TrimOptions, max_len),.max = PG_INT64_MAX},
	{.name = "maxAge",.kind = HMS_JSON_INT64,.offset = offsetof(TrimOptions, max_age_ms),
	.max = HMS_MAX_INTERVAL_US / 1000},
	{.name = "exactLimit",.kind = HMS_JSON_BOOL,.offset = offsetof(TrimOptions, exact)},
	{.name = NULL}
};

void
hms_trim_options_parse(text *json, int64 *max_len, int64 *max_age_ms)
{
	HmsJsonPlace place = {.name = "options"};
	TrimOptions options = {.max_len = -1,.max_age_ms = -1};

	hms_json_read_object(&place, span_of(json), trim_keys, &options);
	if (options.max_len < 0 && options.max_age_ms < 0)
		hms_json_refuse(&place, "an object with \"maxLen\" or \"maxAge\"");
	*max_len = options.max_len;
	*max_age_ms = options.max_age_ms;
}
