/*-------------------------------------------------------------------------
 *
 * stream_data.h
 *	  HotMesh's message envelope, StreamData: read strictly, and changed or answered
 *	  without touching what it carries.
 *
 * Nothing here reads the catalogs or shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_STREAM_DATA_H
#define HMS_CORE_STREAM_DATA_H

#include "core/json_span.h"

typedef enum HmsStreamDataType
{
	HMS_DATA_NONE,				/* no "type": worker invocations, retry copies */
	HMS_DATA_TIMEHOOK,
	HMS_DATA_WEBHOOK,
	HMS_DATA_AWAIT,
	HMS_DATA_RESULT,
	HMS_DATA_WORKER,
	HMS_DATA_RESPONSE,
	HMS_DATA_TRANSITION,
	HMS_DATA_SIGNAL,
	HMS_DATA_INTERRUPT
} HmsStreamDataType;

typedef enum HmsStreamStatus
{
	HMS_STATUS_NONE,			/* no "status"; means success */
	HMS_STATUS_SUCCESS,
	HMS_STATUS_ERROR,
	HMS_STATUS_PENDING
} HmsStreamStatus;

/* One entry of policies.retry. */
typedef struct HmsRetryEntry
{
	int32		code;			/* 1..999 */
	int32		max_retries;	/* 0..INT_MAX */
} HmsRetryEntry;

/* _streamRetryConfig; the defaults of later versions where a key is absent. */
typedef struct HmsRetryPolicy
{
	bool		has;			/* false: the rest is zero */
	int32		maximum_attempts;	/* in all, the first included; default 3 */
	double		coefficient;	/* above 0, finite; default 10 */
	double		initial_s;		/* 0..400 days; default 1 */
	int64		maximum_interval_us;	/* 0..HMS_MAX_INTERVAL_US; default 120
										 * s */
} HmsRetryPolicy;

/* Strings are null-terminated, in the server's encoding, unescaped; NULL when absent. */
typedef struct HmsStreamData
{
	char	   *guid;			/* never NULL */
	char	   *topic;
	char	   *jid;
	bool		jid_is_number;	/* lenient only: jid is the number's text */
	char	   *gid;
	char	   *dad;
	char	   *aid;			/* never NULL */
	char	   *trc;
	char	   *spn;
	char	   *wfn;
	bool		has_try;
	int32		try_count;		/* 0..INT_MAX; 0 when absent */
	bool		has_await;
	bool		await;
	HmsStreamDataType type;
	HmsStreamStatus status;
	int32		code;			/* 1..999, 0 when absent or other */
	bool		has_other_code; /* lenient only: "code" is none of 1..999 */
	char	   *stack;
	int			nretries;
	HmsRetryEntry *retries;		/* in the order written, each code once */
	HmsRetryPolicy retry_policy;
	bool		has_visibility_delay;
	int64		visibility_delay_ms;	/* 0..HMS_MAX_INTERVAL_US / 1000 */
	bool		has_retry_attempt;
	int32		retry_attempt;	/* 0..INT_MAX */
	HmsJsonSpan metadata;		/* both point into the text that was read */
	HmsJsonSpan data;			/* an object, never looked into; start is NULL
								 * when absent */
} HmsStreamData;

/*
 * Read one StreamData.  'json' is len bytes of valid JSON; 'path' (as "messages[3]")
 * begins the names in errors.  All of 'out' is set; strings are allocated in the
 * current context.
 *
 * Raises 22023 naming the path: not an object, unknown, duplicate or missing key, wrong
 * type, value out of range, escape that is no character, \u0000.  The value of
 * "data" has to be an object and is not looked into.
 */
extern void hms_stream_data_parse(const char *json, int len, const char *path,
								  HmsStreamData *out);

/*
 * The same for what the client's own code may write beyond its types: unknown keys are
 * passed over, null where a key may be absent means absent, "data" is any value, "code" may
 * be a string or no code at all, "jid" may be a number, "stack" anything (NULL if it is no string), and an
 * entry of policies.retry that cannot be used is none.
 */
extern void hms_stream_data_parse_lenient(const char *json, int len, const char *path,
										  HmsStreamData *out);

/* A retry policy as it stands in _streamRetryConfig; raises 22023 naming the path. */
extern void hms_retry_policy_parse(const char *json, int len, const char *path,
								   HmsRetryPolicy *out);

/* How often policies.retry lets a message that failed with 'code' be tried again; 0 without an entry. */
extern int	hms_stream_data_max_retries(const HmsStreamData *message, int code);

/* The seed's name of a type, a status; NULL for none. */
extern const char *hms_stream_data_type_name(HmsStreamDataType type);
extern const char *hms_stream_status_name(HmsStreamStatus status);

/* 0 (await and untyped messages) .. 6 (interrupt). */
extern int	hms_stream_data_priority(HmsStreamDataType type);

/*
 * The same bytes with metadata.try set to try_count: replaced where it stands, else
 * added as metadata's last member.  Raises 22023 if there is no object "metadata".
 */
extern text *hms_stream_data_with_try(const char *json, int len, int try_count);

/*
 * The error response to a message that failed for good, for the engine's stream: compact
 * JSON with the metadata of 'failed' except its topic and try count, and with a guid of its own.
 */
extern text *hms_stream_data_error(const HmsStreamData *failed, const char *guid, int code,
								   const char *message);

/* Pause after a message has been retried tries_done times: 10, 100, 1000, then always 10000 ms. */
extern int64 hms_retry_code_delay_us(int tries_done);

/* The same by a policy: initial * coefficient ^ (tries_done + 1), at most its maximum. */
extern int64 hms_retry_policy_delay_us(const HmsRetryPolicy *policy, int tries_done);

#endif							/* HMS_CORE_STREAM_DATA_H */
