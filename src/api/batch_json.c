/*-------------------------------------------------------------------------
 *
 * batch_json.c
 *	  The JSON array that publish_batch() takes.
 *
 * Parsed with PostgreSQL's own JSON parser, which tells where each value begins
 * and ends in the text: payloads are cut out byte for byte, so that key order,
 * number formats, duplicate keys and escapes survive.  The parser is told not to
 * resolve escapes, because it would refuse \u0000; it then does not report
 * names of fields either, so the name is read from the text before the value.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/jsonapi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonfuncs.h"
#include "utils/timestamp.h"

#include "api/args.h"
#include "api/batch_json.h"
#include "hms_compat.h"

/* Nesting levels of the parser's lexer. */
#define LEVEL_ARRAY		1		/* inside the outer array */
#define LEVEL_MESSAGE	2		/* inside one message object */

typedef struct BatchParser
{
	JsonLexContext *lex;
	TimestampTz now;
	HmsNewMessage *messages;
	int			nmessages;
	int			capacity;
	const char *name;			/* of the current field, as written */
	const char *value_start;	/* its value in the text */
	JsonTokenType value_type;
	bool		refused;		/* with an error that names the message */
} BatchParser;

static void
refuse(BatchParser *parser, const char *what)
{
	parser->refused = true;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("message %d of the batch: %s", parser->nmessages, what)));
}

static void
object_start(void *state)
{
	BatchParser *parser = state;

	if (parser->lex->lex_level == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"messages\" must be a JSON array")));
}

static void
scalar(void *state, char *token, JsonTokenType type)
{
	BatchParser *parser = state;

	if (parser->lex->lex_level == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"messages\" must be a JSON array")));
}

static void
element_start(void *state, bool isnull)
{
	BatchParser *parser = state;

	if (parser->lex->lex_level != LEVEL_ARRAY)
		return;
	if (parser->nmessages >= HMS_MAX_BATCH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"messages\" has more than %d elements", HMS_MAX_BATCH)));
	if (parser->nmessages == parser->capacity)
	{
		parser->capacity = Max(parser->capacity * 2, 64);
		parser->messages = parser->messages == NULL ?
			palloc(sizeof(HmsNewMessage) * parser->capacity) :
			repalloc(parser->messages, sizeof(HmsNewMessage) * parser->capacity);
	}
	memset(&parser->messages[parser->nmessages], 0, sizeof(HmsNewMessage));
	parser->messages[parser->nmessages++].deliver_at = DT_NOEND;
	if (parser->lex->token_type != JSON_TOKEN_OBJECT_START)
		refuse(parser, "must be an object");
}

static void
element_end(void *state, bool isnull)
{
	BatchParser *parser = state;

	if (parser->lex->lex_level == LEVEL_ARRAY &&
		DatumGetPointer(parser->messages[parser->nmessages - 1].payload) == NULL)
		refuse(parser, "\"payload\" is missing");
}

/* The name that stands before the value at 'value': ..."name" : value. */
static char *
field_name(const char *value)
{
	const char *end = value - 1;
	const char *start;

	while (*end != ':')
		end--;
	while (*end != '"')
		end--;
	for (start = end - 1;; start--)
	{
		int			backslashes = 0;

		if (*start != '"')
			continue;
		while (start[-1 - backslashes] == '\\')
			backslashes++;
		if (backslashes % 2 == 0)
			break;
	}
	return pnstrdup(start + 1, end - start - 1);
}

static void
field_start(void *state, char *fname, bool isnull)
{
	BatchParser *parser = state;

	if (parser->lex->lex_level != LEVEL_MESSAGE)
		return;
	parser->name = field_name(parser->lex->token_start);
	parser->value_start = parser->lex->token_start;
	parser->value_type = parser->lex->token_type;
}

/* The text of a JSON string value. */
static char *
string_value(BatchParser *parser, const char *name, Datum value)
{
	if (parser->value_type != JSON_TOKEN_STRING)
		refuse(parser, psprintf("\"%s\" must be a string", name));
	return text_to_cstring(DatumGetTextPP(DirectFunctionCall2(json_array_element_text,
															  DirectFunctionCall1(json_in,
																				  CStringGetDatum(psprintf("[%s]", TextDatumGetCString(value)))),
															  Int32GetDatum(0))));
}

static void
set_delay(BatchParser *parser, HmsNewMessage *message, Datum value)
{
	char	   *string = string_value(parser, "delay", value);
	Interval   *interval;

	interval = DatumGetIntervalP(DirectFunctionCall3(interval_in, CStringGetDatum(string),
													 ObjectIdGetDatum(InvalidOid),
													 Int32GetDatum(-1)));
	message->deliver_at = parser->now + hms_interval_us(interval, "delay");
}

static void
set_deliver_at(BatchParser *parser, HmsNewMessage *message, Datum value)
{
	char	   *string = string_value(parser, "deliver_at", value);

	message->deliver_at = DatumGetTimestampTz(DirectFunctionCall3(timestamptz_in,
																  CStringGetDatum(string),
																  ObjectIdGetDatum(InvalidOid),
																  Int32GetDatum(-1)));
	if (TIMESTAMP_NOT_FINITE(message->deliver_at))
		refuse(parser, "\"deliver_at\" must be finite");
}

static void
set_key(BatchParser *parser, HmsNewMessage *message, Datum value)
{
	char	   *string = string_value(parser, "key", value);

	if (*string == '\0' || strlen(string) > HMS_MAX_NAME_BYTES)
		refuse(parser, psprintf("\"key\" must have 1 to %d bytes", HMS_MAX_NAME_BYTES));
	message->key = CStringGetTextDatum(string);
}

static void
set_priority(BatchParser *parser, HmsNewMessage *message, Datum value)
{
	char	   *digits = TextDatumGetCString(value);

	if (parser->value_type != JSON_TOKEN_NUMBER || strlen(digits) != 1)
		refuse(parser, psprintf("\"priority\" must be an integer from 0 to %d", HMS_PRIORITY_LEVELS - 1));
	message->priority = *digits - '0';
}

/* Names the message in errors of the type input functions. */
static void
conversion_error(void *arg)
{
	const BatchParser *parser = arg;

	if (!parser->refused)
		errcontext("message %d of the batch", parser->nmessages);
}

/* One field of a message, which is not null. */
static void
set_field(BatchParser *parser, HmsNewMessage *message, Datum value)
{
	const char *name = parser->name;

	if (strcmp(name, "headers") == 0)
	{
		if (parser->value_type != JSON_TOKEN_OBJECT_START)
			refuse(parser, "\"headers\" must be an object");
		message->headers = DirectFunctionCall1(jsonb_in,
											   CStringGetDatum(TextDatumGetCString(value)));
		return;
	}
	if (strcmp(name, "key") == 0)
	{
		set_key(parser, message, value);
		return;
	}
	if (strcmp(name, "priority") == 0)
	{
		set_priority(parser, message, value);
		return;
	}
	if (message->deliver_at != DT_NOEND)
		refuse(parser, "only one of \"delay\" and \"deliver_at\" can be given");
	if (strcmp(name, "delay") == 0)
		set_delay(parser, message, value);
	else
		set_deliver_at(parser, message, value);
}

static bool
is_field(const char *name)
{
	static const char *const fields[] = {"key", "headers", "priority", "delay", "deliver_at"};

	for (int i = 0; i < lengthof(fields); i++)
	{
		if (strcmp(name, fields[i]) == 0)
			return true;
	}
	return false;
}

static void
field_end(void *state, char *fname, bool isnull)
{
	BatchParser *parser = state;
	const char *name = parser->name;
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = conversion_error,
		.arg = parser
	};
	HmsNewMessage *message;
	Datum		value;

	if (parser->lex->lex_level != LEVEL_MESSAGE)
		return;
	message = &parser->messages[parser->nmessages - 1];
	value = PointerGetDatum(cstring_to_text_with_len(parser->value_start,
													 parser->lex->prev_token_terminator - parser->value_start));
	if (strcmp(name, "payload") == 0)
		message->payload = value;
	else if (!is_field(name))
		refuse(parser, psprintf("unknown key \"%s\"", name));
	else if (!isnull)
	{
		error_context_stack = &context;
		set_field(parser, message, value);
		error_context_stack = context.previous;
	}
}

int
hms_batch_parse(text *json, TimestampTz now, HmsNewMessage **messages)
{
	BatchParser parser = {.now = now};
	JsonSemAction actions = {
		.semstate = &parser,
		.object_start = object_start,
		.scalar = scalar,
		.array_element_start = element_start,
		.array_element_end = element_end,
		.object_field_start = field_start,
		.object_field_end = field_end
	};

	parser.lex = hms_make_json_lex(json);
	pg_parse_json_or_ereport(parser.lex, &actions);
	*messages = parser.messages;
	return parser.nmessages;
}
