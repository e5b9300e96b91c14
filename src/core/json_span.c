/*-------------------------------------------------------------------------
 *
 * json_span.c
 *	  Walk over the text of a JSON object, member by member, without parsing values.
 *
 * What stands inside a message's data belongs to its sender, may be deeper than any
 * parser's stack and larger than its tree would be worth, and has to come back
 * byte for byte.  So values are skipped by counting brackets outside of strings,
 * which for valid JSON needs one counter.  Every step is bounded by the text's end:
 * for invalid JSON the walk raises an error or finds wrong members, and never reads beyond.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "core/json_span.h"

static inline bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *
skip_space(const char *at, const char *end)
{
	while (at < end && is_space(*at))
		at++;
	return at;
}

static void
malformed(void)
{
	elog(ERROR, "JSON text to walk over is malformed");
}

/* The byte after the closing quote of the string that starts at 'at'. */
static const char *
skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
	{
		if (*at == '\\')
			at++;
	}
	if (at >= end)
		malformed();
	return at + 1;
}

static const char *
skip_container(const char *at, const char *end)
{
	int			depth = 0;

	while (at < end)
	{
		switch (*at)
		{
			case '"':
				at = skip_string(at, end);
				continue;
			case '{':
			case '[':
				depth++;
				break;
			case '}':
			case ']':
				if (--depth == 0)
					return at + 1;
				break;
			default:
				break;
		}
		at++;
	}
	malformed();
	return end;
}

static const char *
skip_value(const char *at, const char *end)
{
	const char *start = at;

	if (at < end && *at == '"')
		return skip_string(at, end);
	if (at < end && (*at == '{' || *at == '['))
		return skip_container(at, end);
	while (at < end && !is_space(*at) && *at != ',' && *at != '}' && *at != ']')
		at++;
	if (at == start)
		malformed();
	return at;
}

HmsJsonSpan
hms_json_span(const char *json, int len)
{
	const char *end = json + len;
	HmsJsonSpan span;

	span.start = skip_space(json, end);
	while (end > span.start && is_space(end[-1]))
		end--;
	span.len = end - span.start;
	return span;
}

void
hms_json_walk(HmsJsonWalk *walk, HmsJsonSpan container)
{
	walk->end = container.start + container.len;
	walk->next = skip_space(container.start + 1, walk->end);
}

/* Whether something follows; then next is at its first byte. */
static bool
at_item(HmsJsonWalk *walk)
{
	if (walk->next >= walk->end)
		malformed();
	return *walk->next != '}' && *walk->next != ']';
}

static void
take_value(HmsJsonWalk *walk, HmsJsonSpan *value)
{
	value->start = walk->next;
	walk->next = skip_value(walk->next, walk->end);
	value->len = walk->next - value->start;
	walk->next = skip_space(walk->next, walk->end);
	if (walk->next < walk->end && *walk->next == ',')
		walk->next = skip_space(walk->next + 1, walk->end);
}

bool
hms_json_next_member(HmsJsonWalk *walk, HmsJsonSpan *key, HmsJsonSpan *value)
{
	if (!at_item(walk))
		return false;
	if (*walk->next != '"')
		malformed();
	key->start = walk->next;
	walk->next = skip_string(walk->next, walk->end);
	key->len = walk->next - key->start;

	walk->next = skip_space(walk->next, walk->end);
	if (walk->next >= walk->end || *walk->next != ':')
		malformed();
	walk->next = skip_space(walk->next + 1, walk->end);
	take_value(walk, value);
	return true;
}

bool
hms_json_next_element(HmsJsonWalk *walk, HmsJsonSpan *value)
{
	if (!at_item(walk))
		return false;
	take_value(walk, value);
	return true;
}
