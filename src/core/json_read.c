/*-------------------------------------------------------------------------
 *
 * json_read.c
 *	  JSON objects of known keys, read strictly into structs; errors name the path.
 *
 * An object is walked over by spans (json_span.c); cJSON reads only the keys and
 * the scalars that a table asks for, so that its depth limit and the size of its
 * trees never matter, and each complaint knows its exact place.
 *
 * cJSON's allocator is process-wide.  It is ours (palloc, without errors, since
 * cJSON may not be left by longjmp half way) only while a call of ours runs, lest
 * another library that uses cJSON frees with one allocator what it got from another.  What
 * cJSON allocated is released with the memory context if an error follows.
 *
 * cJSON turns escapes into UTF-8; in a database of another encoding a string goes
 * through UTF-8, and characters that the encoding lacks raise its usual error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <cjson/cJSON.h>
#include <math.h>

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/memutils.h"

#include "core/json_read.h"
#include "hms.h"

#define SHOWN_KEY_BYTES		64

static bool out_of_memory;

static void *
allocate(size_t size)
{
	void	   *result = NULL;

	if (AllocSizeIsValid(size))
		result = MemoryContextAllocExtended(CurrentMemoryContext, size, MCXT_ALLOC_NO_OOM);
	if (result == NULL)
		out_of_memory = true;
	return result;
}

static void
release(void *pointer)
{
	if (pointer != NULL)
		pfree(pointer);
}

void
hms_cjson_begin(void)
{
	cJSON_Hooks hooks = {.malloc_fn = allocate,.free_fn = release};

	out_of_memory = false;
	cJSON_InitHooks(&hooks);
}

void
hms_cjson_end(void)
{
	cJSON_InitHooks(NULL);
	if (out_of_memory)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory"),
				 errdetail("JSON could not be read or written.")));
}

static void
append_place(StringInfo path, const HmsJsonPlace *place)
{
	if (place->parent != NULL)
		append_place(path, place->parent);
	if (place->parent != NULL && path->len > 0)
		appendStringInfoChar(path, '.');
	appendStringInfoString(path, place->name);
}

static char *
place_text(const HmsJsonPlace *place)
{
	StringInfoData path;

	initStringInfo(&path);
	append_place(&path, place);
	return path.data;
}

void
hms_json_refuse(const HmsJsonPlace *place, const char *must_be)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s must be %s", place_text(place), must_be)));
}

void
hms_json_refuse_duplicate(const HmsJsonPlace *place, const char *key)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("duplicate key \"%s\" in %s", key, place_text(place))));
}

static bool
has_escape(HmsJsonSpan string)
{
	return memchr(string.start, '\\', string.len) != NULL;
}

/* Whether a string's text would hold a null character. */
static bool
has_null_escape(HmsJsonSpan string)
{
	for (int i = 0; i + 5 < string.len; i++)
	{
		if (string.start[i] != '\\')
			continue;
		if (memcmp(string.start + i, "\\u0000", 6) == 0)
			return true;
		i++;
	}
	return false;
}

/* A scalar as cJSON reads it; false, and no item, when it cannot or leaves a rest. */
static bool
parse_scalar(const char *text, int len, cJSON * result)
{
	const char *parsed_end;
	cJSON	   *item;
	bool		whole = false;

	hms_cjson_begin();
	item = cJSON_ParseWithLengthOpts(text, len, &parsed_end, false);
	if (item != NULL)
	{
		whole = parsed_end == text +len;

		*result = *item;
		item->valuestring = NULL;
		cJSON_Delete(item);
	}
	hms_cjson_end();
	return whole;
}

char *
hms_json_get_string(HmsJsonSpan value)
{
	char	   *text;
	int			len;
	cJSON		item;

	if (!hms_json_is(value, '"') || has_null_escape(value))
		return NULL;
	text = pg_server_to_any(value.start, value.len, PG_UTF8);

	len = (text == value.start) ? value.len : strlen(text);
	if (!parse_scalar(text, len, &item) || !cJSON_IsString(&item))
		return NULL;
	return pg_any_to_server(item.valuestring, strlen(item.valuestring), PG_UTF8);
}

static void refuse_string(const char *what, HmsJsonSpan value) pg_attribute_noreturn();

/* 'what' stands for a string that hms_json_get_string() does not take. */
static void
refuse_string(const char *what, HmsJsonSpan value)
{
	if (has_null_escape(value))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must not contain \\u0000", what)));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s contains an invalid escape", what),
			 errdetail("A Unicode surrogate must be one of a pair.")));
}

char *
hms_json_read_string(const HmsJsonPlace *place, HmsJsonSpan value)
{
	char	   *string;

	if (!hms_json_is(value, '"'))
		hms_json_refuse(place, "a string");
	string = hms_json_get_string(value);
	if (string == NULL)
		refuse_string(place_text(place), value);
	return string;
}

/* A key may be as long as the message; errors show its beginning. */
static char *
shown_key(const char *key)
{
	int			len = strlen(key);

	if (len <= SHOWN_KEY_BYTES)
		return pstrdup(key);
	return psprintf("%.*s...", pg_mbcliplen(key, len, SHOWN_KEY_BYTES), key);
}

void
hms_json_refuse_key(const HmsJsonPlace *place, HmsJsonSpan key, const char *detail)
{
	char	   *text = hms_json_get_string(key);

	if (text == NULL)
		refuse_string(psprintf("a key in %s", place_text(place)), key);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown key \"%s\" in %s", shown_key(text), place_text(place)),
			 detail == NULL ? 0 : errdetail_internal("%s", detail)));
}

bool
hms_json_get_number(HmsJsonSpan value, double *number)
{
	cJSON		item;

	if (value.len == 0 || (value.start[0] != '-' && !(value.start[0] >= '0' && value.start[0] <= '9')))
		return false;
	if (!parse_scalar(value.start, value.len, &item) || !cJSON_IsNumber(&item))
		return false;
	*number = item.valuedouble;
	return true;
}

bool
hms_json_get_integer(HmsJsonSpan value, int64 min, int64 max, int64 *number)
{
	double		read;

	if (!hms_json_get_number(value, &read) || rint(read) != read ||
		read < (double) min || read > (double) max)
		return false;
	*number = (int64) read;
	return true;
}

bool
hms_json_key_is(HmsJsonSpan key, const char *name)
{
	char	   *text;

	if (!has_escape(key))
		return key.len == strlen(name) + 2 && memcmp(key.start + 1, name, key.len - 2) == 0;
	text = hms_json_get_string(key);
	return text !=NULL && strcmp(text, name) == 0;
}

static void
read_integer(const HmsJsonPlace *place, HmsJsonSpan value, const HmsJsonKey *key, char *at)
{
	double		number;
	int64		integer;

	if (hms_json_get_integer(value, key->min, key->max, &integer))
	{
		if (key->kind == HMS_JSON_INT32)
			*(int32 *) at = (int32) integer;
		else
			*(int64 *) at = integer;
		return;
	}
	if (!hms_json_get_number(value, &number) || (isfinite(number) && rint(number) != number))
		hms_json_refuse(place, "an integer");
	hms_json_refuse(place, psprintf("between %lld and %lld", (long long) key->min,
									(long long) key->max));
}

static void
read_bool(const HmsJsonPlace *place, HmsJsonSpan value, char *at)
{
	cJSON		item;

	if (!(hms_json_is(value, 't') || hms_json_is(value, 'f')) ||
		!parse_scalar(value.start, value.len, &item))
		hms_json_refuse(place, "a boolean");
	*(bool *) at = cJSON_IsTrue(&item);
}

static void
read_name(const HmsJsonPlace *place, HmsJsonSpan value, char *at)
{
	char	   *name = hms_json_read_string(place, value);

	if (name[0] == '\0' || strlen(name) > HMS_MAX_NAME_BYTES)
		hms_json_refuse(place, psprintf("a string of 1 to %d bytes", HMS_MAX_NAME_BYTES));
	*(char **) at = name;
}

static void
read_word(const HmsJsonPlace *place, HmsJsonSpan value, const HmsJsonKey *key, char *at)
{
	char	   *word = hms_json_read_string(place, value);
	StringInfoData choice;

	for (int i = 0; key->words[i] != NULL; i++)
	{
		if (strcmp(word, key->words[i]) == 0)
		{
			*(int *) at = i + 1;
			return;
		}
	}

	initStringInfo(&choice);
	for (int i = 0; key->words[i] != NULL; i++)
		appendStringInfo(&choice, "%s\"%s\"",
						 i == 0 ? "" : key->words[i + 1] == NULL ? " or " : ", ", key->words[i]);
	hms_json_refuse(place, choice.data);
}

static void
read_value(const HmsJsonPlace *place, HmsJsonSpan value, const HmsJsonKey *key, void *out)
{
	char	   *at = (char *) out + key->offset;

	if (place->lenient && !key->required && hms_json_is(value, 'n'))
		return;
	if (key->has_offset != 0)
		*((bool *) ((char *) out + key->has_offset)) = true;
	switch (key->kind)
	{
		case HMS_JSON_STRING:
			*(char **) at = hms_json_read_string(place, value);
			break;
		case HMS_JSON_NAME:
			read_name(place, value, at);
			break;
		case HMS_JSON_INT32:
		case HMS_JSON_INT64:
			read_integer(place, value, key, at);
			break;
		case HMS_JSON_BOOL:
			read_bool(place, value, at);
			break;
		case HMS_JSON_WORD:
			read_word(place, value, key, at);
			break;
		case HMS_JSON_OBJECT:
			hms_json_read_object(place, value, key->keys, out);
			break;
		case HMS_JSON_CUSTOM:
			key->read(place, value, out);
			break;
	}
}

/* The entry of a key, NULL if the table has none and that is forgiven. */
static const HmsJsonKey *
find_key(const HmsJsonPlace *place, HmsJsonSpan written, const HmsJsonKey *keys)
{
	for (const HmsJsonKey *key = keys; key->name != NULL; key++)
	{
		if (hms_json_key_is(written, key->name))
			return key;
	}
	if (!place->lenient)
		hms_json_refuse_key(place, written, NULL);
	return NULL;
}

void
hms_json_read_object(const HmsJsonPlace *place, HmsJsonSpan value, const HmsJsonKey *keys, void *out)
{
	HmsJsonWalk walk;
	HmsJsonSpan written;
	HmsJsonSpan member;
	uint32		seen = 0;

	if (!hms_json_is(value, '{'))
		hms_json_refuse(place, "an object");
	hms_json_walk(&walk, value);
	while (hms_json_next_member(&walk, &written, &member))
	{
		const HmsJsonKey *key = find_key(place, written, keys);
		HmsJsonPlace inner = {.parent = place,.lenient = place->lenient};

		if (key == NULL)
			continue;
		if (seen & (1U << (key - keys)))
			hms_json_refuse_duplicate(place, key->name);
		seen |= 1U << (key - keys);
		inner.name = key->name;
		read_value(&inner, member, key, out);
	}
	for (int i = 0; keys[i].name != NULL; i++)
	{
		if (keys[i].required && !(seen & (1U << i)))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("key \"%s\" is missing in %s", keys[i].name, place_text(place))));
	}
}
