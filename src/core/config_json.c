/*-------------------------------------------------------------------------
 *
 * config_json.c
 *	  Configuration as arguments: the jsonb objects of alter_stream() and its siblings.
 *
 * Each caller has a table of the keys it knows.  Everything is checked before
 * anything is changed, and every refusal names its key with one SQLSTATE,
 * whatever was wrong: hence intervals are decoded here instead of by
 * interval_in(), which raises errors of its own.  Pure computation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "core/config_json.h"
#include "core/duration.h"

#define MAX_INTERVAL_DAYS	(HMS_MAX_INTERVAL_US / USECS_PER_DAY)

void
hms_config_json_refuse(const char *key, const char *must_be)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("configuration key \"%s\" must be %s", key, must_be)));
}

/* The text of a JSON string, NULL for any other value. */
static char *
string_value(const JsonbValue *value)
{
	if (value->type != jbvString)
		return NULL;
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/*
 * hms_config_decode_interval
 *		Read an interval as SQL would; false when the text is none.
 */
bool
hms_config_decode_interval(const char *text, Interval *out)
{
	struct pg_itm_in parts = {0};
	char	   *fields[MAXDATEFIELDS];
	int			types[MAXDATEFIELDS];
	char		work[256];
	int			nfields;
	int			kind;
	int			error;

	error = ParseDateTime(text, work, sizeof(work), fields, types, MAXDATEFIELDS, &nfields);
	if (error == 0)
		error = DecodeInterval(fields, types, nfields, INTERVAL_FULL_RANGE, &kind, &parts);
	if (error == DTERR_BAD_FORMAT)
		error = DecodeISO8601Interval(unconstify(char *, text), &kind, &parts);
	return error == 0 && kind == DTK_DELTA && itmin2interval(&parts, out) == 0;
}

static void
read_int(const HmsConfigKey *key, const JsonbValue *value, HmsConfigValue *out)
{
	char	   *text;
	char	   *end;
	long long	number;

	if (value->type == jbvNumeric)
	{
		text = DatumGetCString(DirectFunctionCall1(numeric_out,
												   NumericGetDatum(value->val.numeric)));

		errno = 0;
		number = strtoll(text, &end, 10);
		if (errno == 0 && *end == '\0' && number >= key->min && number <= key->max)
		{
			out->integer = (int32) number;
			return;
		}
	}
	hms_config_json_refuse(key->name,
						   psprintf("an integer between %d and %d", key->min, key->max));
}

static void
read_interval(const HmsConfigKey *key, const JsonbValue *value, Interval *out)
{
	char	   *text = string_value(value);

	if (text == NULL || !hms_config_decode_interval(text, out))
		hms_config_json_refuse(key->name, "an interval, written as a string");
}

static int64
read_duration(const HmsConfigKey *key, const JsonbValue *value, Interval *out)
{
	int64		us;

	read_interval(key, value, out);
	if (out->month != 0)
		hms_config_json_refuse(key->name, "an interval without months or years");

	/* Both parts are bounded first, so that the sum cannot overflow. */
	if (Abs((int64) out->day) <= MAX_INTERVAL_DAYS &&
		out->time >= -HMS_MAX_INTERVAL_US && out->time <= HMS_MAX_INTERVAL_US)
	{
		us = hms_duration_us(out);
		if (us >= 0 && us <= HMS_MAX_INTERVAL_US)
			return us;
	}
	hms_config_json_refuse(key->name,
						   psprintf("between 0 and %d days", (int) MAX_INTERVAL_DAYS));
}

static void
read_durations(const HmsConfigKey *key, const JsonbValue *value, HmsConfigValue *out)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	element;
	Interval	unused;

	if (value->type != jbvBinary || !JsonContainerIsArray(value->val.binary.data) ||
		JsonContainerSize(value->val.binary.data) < 1 ||
		JsonContainerSize(value->val.binary.data) > HMS_MAX_BACKOFF)
		hms_config_json_refuse(key->name,
							   psprintf("an array of 1 to %d intervals", HMS_MAX_BACKOFF));

	it = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&it, &element, true)) != WJB_DONE)
	{
		if (token == WJB_ELEM)
			out->durations_us[out->ndurations++] = read_duration(key, &element, &unused);
	}
}

static void
read_value(const HmsConfigKey *key, const JsonbValue *value, HmsConfigValue *out)
{
	out->given = true;
	if (key->type == HMS_CONFIG_FIXED)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("configuration key \"%s\" cannot be changed", key->name)));
	if (value->type == jbvNull)
	{
		if (!key->nullable)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("configuration key \"%s\" must not be null", key->name)));
		out->isnull = true;
		return;
	}

	switch (key->type)
	{
		case HMS_CONFIG_INT:
			read_int(key, value, out);
			break;
		case HMS_CONFIG_DURATION:
			out->duration_us = read_duration(key, value, &out->interval);
			break;
		case HMS_CONFIG_INTERVAL:
			read_interval(key, value, &out->interval);
			break;
		case HMS_CONFIG_DURATIONS:
			read_durations(key, value, out);
			break;
		case HMS_CONFIG_FIXED:
			break;
	}
}

static int
find_key(const char *name, const HmsConfigKey *keys, int nkeys)
{
	StringInfoData known;

	for (int i = 0; i < nkeys; i++)
	{
		if (strcmp(name, keys[i].name) == 0)
			return i;
	}

	initStringInfo(&known);
	for (int i = 0; i < nkeys; i++)
	{
		if (keys[i].type != HMS_CONFIG_FIXED)
			appendStringInfo(&known, "%s\"%s\"", known.len > 0 ? ", " : "", keys[i].name);
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized configuration key \"%s\"", name),
			 errhint("The keys are %s.", known.data)));
}

/*
 * hms_config_json_parse
 *		Read a configuration object by a table of keys.
 *
 * Fills values[0..nkeys); keys that the object lacks have 'given' = false.
 */
void
hms_config_json_parse(Jsonb *config, const HmsConfigKey *keys, int nkeys,
					  HmsConfigValue *values)
{
	JsonbIterator *it;
	JsonbIteratorToken token;
	JsonbValue	item;
	int			current = -1;

	memset(values, 0, nkeys * sizeof(HmsConfigValue));
	if (!JB_ROOT_IS_OBJECT(config))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be a JSON object", "config")));

	it = JsonbIteratorInit(&config->root);

	/* Step into the object, then take its values whole. */
	(void) JsonbIteratorNext(&it, &item, false);
	while ((token = JsonbIteratorNext(&it, &item, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			current = find_key(string_value(&item), keys, nkeys);
		else if (token == WJB_VALUE)
			read_value(&keys[current], &item, &values[current]);
	}
}

void
hms_config_mismatch(const char *kind, const char *name, const char *alter,
					const char *option, const char *has, const char *asked)
{
	ereport(ERROR,
			(errcode(HMS_ERRCODE_CONFIG_MISMATCH),
			 errmsg("%s \"%s\" already exists with another configuration", kind, name),
			 errdetail("Its option \"%s\" is %s, but %s was asked for.", option, has, asked),
			 errhint("What can be changed is changed with hotmesh_stream.%s().", alter)));
}

char *
hms_duration_text(int64 us)
{
	Interval	interval;

	hms_duration_interval(us, &interval);
	return DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(&interval)));
}
