/*-------------------------------------------------------------------------
 *
 * json_span.h
 *	  Walk over the text of a JSON object, member by member, without parsing values.
 *
 * The text must be valid JSON already (the type json checked it).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_JSON_SPAN_H
#define HMS_CORE_JSON_SPAN_H

/* Some bytes of a JSON text, not null-terminated; start is NULL when there are none. */
typedef struct HmsJsonSpan
{
	const char *start;
	int			len;
} HmsJsonSpan;

/* Where a walk stands; members and elements are read with the two functions below. */
typedef struct HmsJsonWalk
{
	const char *next;
	const char *end;
} HmsJsonWalk;

/* The text without white space around it. */
extern HmsJsonSpan hms_json_span(const char *json, int len);

/* Start over a span whose first byte is '{' or '['. */
extern void hms_json_walk(HmsJsonWalk *walk, HmsJsonSpan container);

/*
 * The next member of an object; false at its end.  'key' includes its quotes and
 * escapes, 'value' has no white space around it.  Takes time linear in the bytes
 * passed, whatever their nesting, and no stack.
 */
extern bool hms_json_next_member(HmsJsonWalk *walk, HmsJsonSpan *key, HmsJsonSpan *value);

/* The next element of an array; false at its end. */
extern bool hms_json_next_element(HmsJsonWalk *walk, HmsJsonSpan *value);

#endif							/* HMS_CORE_JSON_SPAN_H */
