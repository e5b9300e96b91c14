/*-------------------------------------------------------------------------
 *
 * json_read.h
 *	  JSON objects of known keys, read strictly into structs; errors name the path.
 *
 * Errors have SQLSTATE 22023 unless said otherwise.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_JSON_READ_H
#define HMS_CORE_JSON_READ_H

#include "core/json_span.h"

/* Where in a document a value stands: a chain from the value to the root, on the stack. */
typedef struct HmsJsonPlace
{
	const struct HmsJsonPlace *parent;	/* NULL at the root */
	const char *name;			/* key, or the root's path */
	bool		lenient;		/* unknown keys are ignored, and null counts
								 * as absent for keys that are not required */
} HmsJsonPlace;

typedef enum HmsJsonKind
{
	HMS_JSON_STRING,			/* char * */
	HMS_JSON_NAME,				/* char *, 1..HMS_MAX_NAME_BYTES bytes */
	HMS_JSON_INT32,				/* int32, min..max */
	HMS_JSON_INT64,				/* int64, min..max */
	HMS_JSON_BOOL,				/* bool */
	HMS_JSON_WORD,				/* an enum: 1 + index in words */
	HMS_JSON_OBJECT,			/* its members by keys, into the same struct */
	HMS_JSON_CUSTOM				/* read() decides */
} HmsJsonKind;

/* One key that an object may have.  Offsets are those of members of the struct that is filled. */
typedef struct HmsJsonKey
{
	const char *name;			/* NULL ends a table, of at most 32 keys */
	HmsJsonKind kind;
	bool		required;
	size_t		offset;
	size_t		has_offset;		/* of a bool set when the key is there; 0:
								 * none */
	int64		min;
	int64		max;
	const char *const *words;	/* NULL ends them */
	const struct HmsJsonKey *keys;
	void		(*read) (const HmsJsonPlace *place, HmsJsonSpan value, void *out);
} HmsJsonKey;

/*
 * Read an object into 'out', which the caller has zeroed.  Raises an error when 'value' is
 * no object, has an unknown key, one key twice (however written), lacks a required one,
 * or when a value does not fit its key.
 */
extern void hms_json_read_object(const HmsJsonPlace *place, HmsJsonSpan value,
								 const HmsJsonKey *keys, void *out);

/* The text of a JSON string, unescaped; raises an error when it is none or holds no characters. */
extern char *hms_json_read_string(const HmsJsonPlace *place, HmsJsonSpan value);

/* The same, but NULL instead of an error. */
extern char *hms_json_get_string(HmsJsonSpan value);

/* Whether 'value' is a number, and which, as JavaScript reads it (1e400 is infinite). */
extern bool hms_json_get_number(HmsJsonSpan value, double *number);

/* Whether 'value' is a number that is an integer of min..max, and which. */
extern bool hms_json_get_integer(HmsJsonSpan value, int64 min, int64 max, int64 *number);

/* Whether a key's span, quotes included, spells 'name'. */
extern bool hms_json_key_is(HmsJsonSpan key, const char *name);

/* Raise an error: the value at 'place' 'must be' so and so. */
extern void hms_json_refuse(const HmsJsonPlace *place, const char *must_be) pg_attribute_noreturn();

/* Raise an error: the object at 'place' has a key it may not have; detail may be NULL. */
extern void hms_json_refuse_key(const HmsJsonPlace *place, HmsJsonSpan key,
								const char *detail) pg_attribute_noreturn();

/* Raise an error: the object at 'place' has this key twice. */
extern void hms_json_refuse_duplicate(const HmsJsonPlace *place, const char *key) pg_attribute_noreturn();

/* The first byte tells a JSON value's type. */
static inline bool
hms_json_is(HmsJsonSpan value, char first)
{
	return value.len > 0 && value.start[0] == first;
}

/*
 * Around every use of cJSON: between the two it allocates in the current context, and
 * end raises 53200 if memory ran out.  Nothing between them may raise an error.
 */
extern void hms_cjson_begin(void);
extern void hms_cjson_end(void);

#endif							/* HMS_CORE_JSON_READ_H */
