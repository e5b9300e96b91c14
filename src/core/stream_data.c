/*-------------------------------------------------------------------------
 *
 * stream_data.c
 *	  HotMesh's message envelope, StreamData, read into a struct.
 *
 * The tables below are the format: HotMesh 0.3.32's types plus what later versions add for
 * transport.  json_read.c does the walking and complains; here is only what a table
 * cannot say.  Pure computation.
 *
 * What HotMesh writes is wider than its types where values come from an application: a
 * workflow function that throws gives its error's code, as "ENOENT", and a job's id
 * may be a number.  The lenient reader takes these, so that a job fails as its
 * application means it to and not in the queue.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "core/config_json.h"
#include "core/duration.h"
#include "core/json_read.h"
#include "core/stream_data.h"
#include "hms.h"

#define MIN_CODE					1
#define MAX_CODE					999
#define DEFAULT_MAXIMUM_ATTEMPTS	3
#define DEFAULT_COEFFICIENT			10
#define DEFAULT_INITIAL_S			1
#define DEFAULT_MAXIMUM_INTERVAL_US (120 * USECS_PER_SEC)
#define MAX_INTERVAL_DAYS			((int) (HMS_MAX_INTERVAL_US / USECS_PER_DAY))

static void read_jid(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_metadata(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_data(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_code(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_stack(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_retry(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_retry_policy(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_coefficient(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_initial(const HmsJsonPlace *place, HmsJsonSpan value, void *out);
static void read_maximum_interval(const HmsJsonPlace *place, HmsJsonSpan value, void *out);

#define IN(member)	offsetof(HmsStreamData, member)

/* Index + 1 is the enum's value. */
static const char *const type_words[] = {
	"timehook", "webhook", "await", "result", "worker", "response", "transition",
	"signal", "interrupt", NULL
};
static const char *const status_words[] = {"success", "error", "pending", NULL};

static const HmsJsonKey metadata_keys[] = {
	{.name = "guid",.kind = HMS_JSON_STRING,.required = true,.offset = IN(guid)},
	{.name = "topic",.kind = HMS_JSON_STRING,.offset = IN(topic)},
	{.name = "jid",.kind = HMS_JSON_CUSTOM,.read = read_jid},
	{.name = "gid",.kind = HMS_JSON_STRING,.offset = IN(gid)},
	{.name = "dad",.kind = HMS_JSON_STRING,.offset = IN(dad)},
	{.name = "aid",.kind = HMS_JSON_STRING,.required = true,.offset = IN(aid)},
	{.name = "trc",.kind = HMS_JSON_STRING,.offset = IN(trc)},
	{.name = "spn",.kind = HMS_JSON_STRING,.offset = IN(spn)},
	{.name = "wfn",.kind = HMS_JSON_STRING,.offset = IN(wfn)},
	{.name = "try",.kind = HMS_JSON_INT32,.offset = IN(try_count),.has_offset = IN(has_try),
	.max = PG_INT32_MAX},
	{.name = "await",.kind = HMS_JSON_BOOL,.offset = IN(await),.has_offset = IN(has_await)},
	{.name = NULL}
};

static const HmsJsonKey policies_keys[] = {
	{.name = "retry",.kind = HMS_JSON_CUSTOM,.read = read_retry},
	{.name = NULL}
};

static const HmsJsonKey retry_policy_keys[] = {
	{.name = "maximumAttempts",.kind = HMS_JSON_INT32,
	.offset = IN(retry_policy.maximum_attempts),.max = PG_INT32_MAX},
	{.name = "backoffCoefficient",.kind = HMS_JSON_CUSTOM,.read = read_coefficient},
	{.name = "maximumInterval",.kind = HMS_JSON_CUSTOM,.read = read_maximum_interval},
	{.name = "initialInterval",.kind = HMS_JSON_CUSTOM,.read = read_initial},
	{.name = NULL}
};

static const HmsJsonKey message_keys[] = {
	{.name = "metadata",.kind = HMS_JSON_CUSTOM,.required = true,.read = read_metadata},
	{.name = "type",.kind = HMS_JSON_WORD,.offset = IN(type),.words = type_words},
	{.name = "data",.kind = HMS_JSON_CUSTOM,.read = read_data},
	{.name = "policies",.kind = HMS_JSON_OBJECT,.keys = policies_keys},
	{.name = "status",.kind = HMS_JSON_WORD,.offset = IN(status),.words = status_words},
	{.name = "code",.kind = HMS_JSON_CUSTOM,.read = read_code},
	{.name = "stack",.kind = HMS_JSON_CUSTOM,.read = read_stack},
	{.name = "_streamRetryConfig",.kind = HMS_JSON_CUSTOM,.read = read_retry_policy},
	{.name = "_visibilityDelayMs",.kind = HMS_JSON_INT64,.offset = IN(visibility_delay_ms),
	.has_offset = IN(has_visibility_delay),.max = HMS_MAX_INTERVAL_US / 1000},
	{.name = "_retryAttempt",.kind = HMS_JSON_INT32,.offset = IN(retry_attempt),
	.has_offset = IN(has_retry_attempt),.max = PG_INT32_MAX},
	{.name = NULL}
};

static void
read_jid(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsStreamData *message = out;
	double		number;

	if (place->lenient && hms_json_get_number(value, &number))
	{
		message->jid = pnstrdup(value.start, value.len);
		message->jid_is_number = true;
		return;
	}
	message->jid = hms_json_read_string(place, value);
}

static void
read_metadata(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsStreamData *message = out;

	hms_json_read_object(place, value, metadata_keys, out);
	message->metadata = value;
}

static void
read_data(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsStreamData *message = out;

	if (!place->lenient && !hms_json_is(value, '{'))
		hms_json_refuse(place, "an object");
	message->data = value;
}

/* The code that a string spells, as keys of policies.retry do; 0 if none. */
static int
spelled_code(HmsJsonSpan string)
{
	char	   *text = hms_json_get_string(string);
	int			len = text == NULL ? 0 : strlen(text);

	if (len < 1 || len > 3 || text[0] == '0' || strspn(text, "0123456789") != len)
		return 0;
	return atoi(text);
}

static void
read_code(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsStreamData *message = out;
	double		number;
	int64		code;

	if (hms_json_get_integer(value, MIN_CODE, MAX_CODE, &code))
		message->code = (int32) code;
	else if (place->lenient)
	{
		message->code = spelled_code(value);
		message->has_other_code = message->code == 0;
	}
	else if (hms_json_get_number(value, &number) && rint(number) == number)
		hms_json_refuse(place, psprintf("between %d and %d", MIN_CODE, MAX_CODE));
	else
		hms_json_refuse(place, "an integer");
}

static void
read_stack(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsStreamData *message = out;

	message->stack = place->lenient ? hms_json_get_string(value) :
		hms_json_read_string(place, value);
}

/* The count of [count] or [count, "x"]; -1 for anything else. */
static int32
entry_count(HmsJsonSpan value)
{
	HmsJsonWalk walk;
	HmsJsonSpan element;
	int64		count;

	if (!hms_json_is(value, '['))
		return -1;
	hms_json_walk(&walk, value);
	if (!hms_json_next_element(&walk, &element) ||
		!hms_json_get_integer(element, 0, PG_INT32_MAX, &count))
		return -1;
	if (hms_json_next_element(&walk, &element) &&
		(!hms_json_key_is(element, "x") || hms_json_next_element(&walk, &element)))
		return -1;
	return (int32) count;
}

static void
add_entry(const HmsJsonPlace *place, int code, HmsJsonSpan value, HmsStreamData *message)
{
	char	   *name = psprintf("%d", code);
	HmsJsonPlace inner = {place, name, place->lenient};
	int32		count = entry_count(value);

	if (count < 0)
	{
		if (place->lenient)
			return;
		hms_json_refuse(&inner, "[count] or [count, \"x\"] with an integer count of at least 0");
	}
	for (int i = 0; i < message->nretries; i++)
	{
		if (message->retries[i].code == code)
			hms_json_refuse_duplicate(place, name);
	}
	message->retries[message->nretries].code = code;
	message->retries[message->nretries].max_retries = count;
	message->nretries++;
}

/* An entry that HotMesh could not use either never lets it retry. */
static void
read_retry(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsStreamData *message = out;
	HmsJsonWalk walk;
	HmsJsonSpan key;
	HmsJsonSpan member;
	int			capacity = 4;

	if (!hms_json_is(value, '{'))
		hms_json_refuse(place, "an object");
	message->retries = palloc(capacity * sizeof(HmsRetryEntry));
	hms_json_walk(&walk, value);
	while (hms_json_next_member(&walk, &key, &member))
	{
		int			code = spelled_code(key);

		if (code == 0 && place->lenient)
			continue;
		if (code == 0)
			hms_json_refuse_key(place, key, psprintf("Keys are codes between %d and %d.",
													 MIN_CODE, MAX_CODE));
		if (message->nretries == capacity)
		{
			capacity *= 2;
			message->retries = repalloc(message->retries, capacity * sizeof(HmsRetryEntry));
		}
		add_entry(place, code, member, message);
	}
}

/* A number of seconds, or an interval as text, in microseconds. */
static int64
read_duration(const HmsJsonPlace *place, HmsJsonSpan value)
{
	Interval	interval;
	double		us;

	if (hms_json_get_number(value, &us))
		us = rint(us * USECS_PER_SEC);
	else
	{
		if (!hms_json_is(value, '"') ||
			!hms_config_decode_interval(hms_json_read_string(place, value), &interval))
			hms_json_refuse(place, "a number of seconds or an interval, written as a string");
		if (interval.month != 0)
			hms_json_refuse(place, "an interval without months or years");
		us = (double) interval.day * USECS_PER_DAY + interval.time;
	}
	if (us < 0 || us > HMS_MAX_INTERVAL_US)
		hms_json_refuse(place, psprintf("between 0 and %d days", MAX_INTERVAL_DAYS));
	return (int64) us;
}

static void
read_maximum_interval(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	((HmsStreamData *) out)->retry_policy.maximum_interval_us = read_duration(place, value);
}

static void
read_initial(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	((HmsStreamData *) out)->retry_policy.initial_s =
		read_duration(place, value) / (double) USECS_PER_SEC;
}

static void
read_coefficient(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	double		number;

	if (!hms_json_get_number(value, &number))
		hms_json_refuse(place, "a number");
	if (number <= 0 || !isfinite(number))
		hms_json_refuse(place, "above 0 and finite");
	((HmsStreamData *) out)->retry_policy.coefficient = number;
}

static void
read_retry_policy(const HmsJsonPlace *place, HmsJsonSpan value, void *out)
{
	HmsRetryPolicy *policy = &((HmsStreamData *) out)->retry_policy;

	policy->has = true;
	policy->maximum_attempts = DEFAULT_MAXIMUM_ATTEMPTS;
	policy->coefficient = DEFAULT_COEFFICIENT;
	policy->initial_s = DEFAULT_INITIAL_S;
	policy->maximum_interval_us = DEFAULT_MAXIMUM_INTERVAL_US;
	hms_json_read_object(place, value, retry_policy_keys, out);
}

static void
parse(const char *json, int len, const HmsJsonPlace *place, HmsStreamData *out)
{
	memset(out, 0, sizeof(*out));
	hms_json_read_object(place, hms_json_span(json, len), message_keys, out);
}

void
hms_stream_data_parse(const char *json, int len, const char *path, HmsStreamData *out)
{
	HmsJsonPlace place = {.name = path};

	parse(json, len, &place, out);
}

void
hms_stream_data_parse_lenient(const char *json, int len, const char *path, HmsStreamData *out)
{
	HmsJsonPlace place = {.name = path,.lenient = true};

	parse(json, len, &place, out);
}

int
hms_stream_data_max_retries(const HmsStreamData *message, int code)
{
	for (int i = 0; i < message->nretries; i++)
	{
		if (message->retries[i].code == code)
			return message->retries[i].max_retries;
	}
	return 0;
}

const char *
hms_stream_data_type_name(HmsStreamDataType type)
{
	return type == HMS_DATA_NONE ? NULL : type_words[type - 1];
}

const char *
hms_stream_status_name(HmsStreamStatus status)
{
	return status == HMS_STATUS_NONE ? NULL : status_words[status - 1];
}

int
hms_stream_data_priority(HmsStreamDataType type)
{
	switch (type)
	{
		case HMS_DATA_INTERRUPT:
			return 6;
		case HMS_DATA_TIMEHOOK:
		case HMS_DATA_WEBHOOK:
		case HMS_DATA_SIGNAL:
			return 5;
		case HMS_DATA_TRANSITION:
			return 4;
		case HMS_DATA_RESULT:
			return 3;
		case HMS_DATA_RESPONSE:
			return 2;
		case HMS_DATA_WORKER:
			return 1;
		case HMS_DATA_AWAIT:
		case HMS_DATA_NONE:
			break;
	}
	return 0;
}

void
hms_retry_policy_parse(const char *json, int len, const char *path, HmsRetryPolicy *out)
{
	HmsJsonPlace place = {.name = path};
	HmsStreamData message = {0};

	read_retry_policy(&place, hms_json_span(json, len), &message);
	*out = message.retry_policy;
}
