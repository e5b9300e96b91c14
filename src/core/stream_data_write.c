/*-------------------------------------------------------------------------
 *
 * stream_data_write.c
 *	  What the server itself writes of HotMesh's envelope: a higher try count, the answer
 *	  to a message that failed for good, and when a retry is due.
 *
 * A retried message keeps its sender's bytes but for one number, so it is spliced, not
 * parsed and printed.  The answer is small and ours, so cJSON prints it.  Pure computation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "core/json_read.h"
#include "core/stream_data.h"

/* Retries after the fourth wait no longer than the fourth. */
#define MAX_CODE_DELAY_POWER	4

/* The value of a key of an object; false if it has none. */
static bool
find_member(HmsJsonSpan object, const char *name, HmsJsonSpan *value)
{
	HmsJsonWalk walk;
	HmsJsonSpan key;

	if (!hms_json_is(object, '{'))
		return false;
	hms_json_walk(&walk, object);
	while (hms_json_next_member(&walk, &key, value))
	{
		if (hms_json_key_is(key, name))
			return true;
	}
	return false;
}

/* Where a further member would start, empty, after an object's last one. */
static HmsJsonSpan
after_last_member(HmsJsonSpan object, bool *is_first)
{
	HmsJsonWalk walk;
	HmsJsonSpan key;
	HmsJsonSpan value;
	HmsJsonSpan gap = {object.start + 1, 0};

	*is_first = true;
	hms_json_walk(&walk, object);
	while (hms_json_next_member(&walk, &key, &value))
	{
		*is_first = false;
		gap.start = value.start + value.len;
	}
	return gap;
}

text *
hms_stream_data_with_try(const char *json, int len, int try_count)
{
	HmsJsonPlace place = {.name = "message"};
	HmsJsonSpan message = hms_json_span(json, len);
	HmsJsonSpan metadata;
	HmsJsonSpan old;
	const char *prefix = "";
	char	   *written;
	StringInfoData result;

	if (!find_member(message, "metadata", &metadata) || !hms_json_is(metadata, '{'))
		hms_json_refuse(&place, "an object with an object \"metadata\"");
	if (!find_member(metadata, "try", &old))
	{
		bool		is_first;

		old = after_last_member(metadata, &is_first);
		prefix = is_first ? "\"try\":" : ",\"try\":";
	}
	written = psprintf("%s%d", prefix, try_count);

	initStringInfo(&result);
	appendBinaryStringInfo(&result, json, old.start - json);
	appendStringInfoString(&result, written);
	appendBinaryStringInfo(&result, old.start + old.len, json + len - (old.start + old.len));
	return cstring_to_text_with_len(result.data, result.len);
}

static void
add_string(cJSON * object, const char *key, const char *string)
{
	if (string != NULL)
		cJSON_AddStringToObject(object, key, string);
}

static void
add_jid(cJSON * object, const char *key, const HmsStreamData *message)
{
	if (message->jid_is_number)
		cJSON_AddRawToObject(object, key, message->jid);
	else
		add_string(object, key, message->jid);
}

text *
hms_stream_data_error(const HmsStreamData *failed, const char *guid, int code,
					  const char *message)
{
	cJSON	   *response;
	cJSON	   *metadata;
	cJSON	   *error;
	char	   *printed;

	hms_cjson_begin();
	response = cJSON_CreateObject();
	metadata = cJSON_AddObjectToObject(response, "metadata");
	add_string(metadata, "guid", guid);
	add_jid(metadata, "jid", failed);
	add_string(metadata, "gid", failed->gid);
	add_string(metadata, "dad", failed->dad);
	add_string(metadata, "aid", failed->aid);
	add_string(metadata, "trc", failed->trc);
	add_string(metadata, "spn", failed->spn);
	add_string(response, "type", hms_stream_data_type_name(HMS_DATA_RESPONSE));
	add_string(response, "status", hms_stream_status_name(HMS_STATUS_ERROR));
	cJSON_AddNumberToObject(response, "code", code);
	error = cJSON_AddObjectToObject(response, "data");
	add_string(error, "message", message);
	cJSON_AddNumberToObject(error, "code", code);
	add_jid(error, "job_id", failed);
	printed = cJSON_PrintUnformatted(response);
	cJSON_Delete(response);
	hms_cjson_end();
	return cstring_to_text(printed);
}

int64
hms_retry_code_delay_us(int tries_done)
{
	int64		delay_ms = 1;

	for (int power = Min(tries_done, MAX_CODE_DELAY_POWER - 1); power >= 0; power--)
		delay_ms *= 10;
	return delay_ms * 1000;
}

int64
hms_retry_policy_delay_us(const HmsRetryPolicy *policy, int tries_done)
{
	double		delay_us;

	if (policy->initial_s == 0)
		return 0;
	delay_us = policy->initial_s * USECS_PER_SEC * pow(policy->coefficient, tries_done + 1.0);
	if (delay_us >= policy->maximum_interval_us)
		return policy->maximum_interval_us;
	return (int64) rint(delay_us);
}
