/*-------------------------------------------------------------------------
 *
 * config_json.h
 *	  Configuration as arguments: the jsonb objects of alter_stream() and its
 *	  siblings, and the comparison that makes create_stream() and its siblings idempotent.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_CONFIG_JSON_H
#define HMS_CORE_CONFIG_JSON_H

#include "hms.h"
#include "utils/jsonb.h"

typedef enum HmsConfigType
{
	HMS_CONFIG_INT,				/* an integral number, min..max */
	HMS_CONFIG_DURATION,		/* an interval without months,
								 * 0..HMS_MAX_INTERVAL_US */
	HMS_CONFIG_INTERVAL,		/* any interval; the caller checks it */
	HMS_CONFIG_DURATIONS,		/* array of 1..HMS_MAX_BACKOFF durations */
	HMS_CONFIG_FIXED			/* known, but cannot be changed */
} HmsConfigType;

typedef struct HmsConfigKey
{
	const char *name;
	HmsConfigType type;
	bool		nullable;
	int32		min;			/* HMS_CONFIG_INT only */
	int32		max;
} HmsConfigKey;

typedef struct HmsConfigValue
{
	bool		given;			/* the object has the key */
	bool		isnull;			/* as JSON null; the rest is then zero */
	int32		integer;
	int64		duration_us;
	Interval	interval;		/* also set for a duration */
	int			ndurations;
	int64		durations_us[HMS_MAX_BACKOFF];
} HmsConfigValue;

/*
 * Read 'config' into values[i] for keys[i].  Raises 22023 naming the key when it is
 * unknown or fixed, or its value has the wrong type or is out of range, and when 'config' is not an object.
 */
extern void hms_config_json_parse(Jsonb *config, const HmsConfigKey *keys, int nkeys,
								  HmsConfigValue *values);

/* Read an interval; false when the text is no finite interval that fits its type. */
extern bool hms_config_decode_interval(const char *text, Interval *out);

/* Raise 22023: the value of a key 'must be' so and so. */
extern void hms_config_json_refuse(const char *key, const char *must_be) pg_attribute_noreturn();

/*
 * Raise HMS_ERRCODE_CONFIG_MISMATCH: object 'name' exists, and its option is 'has', not 'asked' for.
 * kind is "stream", "consumer group" or "namespace"; alter names the function that changes it.
 */
extern void hms_config_mismatch(const char *kind, const char *name, const char *alter,
								const char *option, const char *has,
								const char *asked) pg_attribute_noreturn();

/* A duration as interval_out() shows it. */
extern char *hms_duration_text(int64 us);

#endif							/* HMS_CORE_CONFIG_JSON_H */
