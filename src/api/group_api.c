/*-------------------------------------------------------------------------
 *
 * group_api.c
 *	  create_group(), alter_group() and drop_group().
 *
 * Unpack, check, one call down.  The rules stand in core/group.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "api/args.h"
#include "core/group.h"

#define DEFAULT_ACK_WAIT_US				(30 * USECS_PER_SEC)
#define DEFAULT_DEAD_LETTER_RETENTION_US	(14 * USECS_PER_DAY)

PG_FUNCTION_INFO_V1(hms_sql_create_group);
PG_FUNCTION_INFO_V1(hms_sql_alter_group);
PG_FUNCTION_INFO_V1(hms_sql_drop_group);

static HmsDeliverPolicy
deliver_policy_arg(FunctionCallInfo fcinfo, int argno)
{
	HmsDeliverPolicy policy;
	char	   *word;

	if (PG_ARGISNULL(argno))
		return HMS_DELIVER_ALL;
	word = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	if (!hms_deliver_policy_parse(word, &policy))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized deliver policy \"%s\"", word),
				 errhint("The policies are \"all\" and \"new\".")));
	return policy;
}

/* The backoff array; null = no pauses. */
static void
backoff_arg(FunctionCallInfo fcinfo, int argno, HmsGroupOptions *options)
{
	Datum	   *elements;
	int			n;

	elements = hms_arg_array(fcinfo, argno, "backoff", INTERVALOID, true, &n);
	if (n > HMS_MAX_BACKOFF)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" has %d elements, the limit is %d",
						"backoff", n, HMS_MAX_BACKOFF)));
	options->nbackoff = Max(n, 0);
	for (int i = 0; i < n; i++)
		options->backoff_us[i] = hms_interval_us(DatumGetIntervalP(elements[i]), "backoff");
}

/*
 * create_group(stream, consumer_group, deliver_policy, ack_wait, max_deliver, backoff,
 * dead_letter_retention) returns boolean
 */
Datum
hms_sql_create_group(PG_FUNCTION_ARGS)
{
	const char *stream = hms_arg_name(fcinfo, 0, "stream");
	HmsGroupOptions options = {0};

	hms_require_writable("create_group()");
	options.name = hms_arg_name(fcinfo, 1, "consumer_group");
	options.deliver_policy = deliver_policy_arg(fcinfo, 2);
	options.ack_wait_us = hms_arg_interval_us(fcinfo, 3, "ack_wait", DEFAULT_ACK_WAIT_US);
	options.max_deliver = hms_arg_int(fcinfo, 4, "max_deliver", 0, 1, PG_INT32_MAX);
	backoff_arg(fcinfo, 5, &options);
	options.dead_letter_retention_us = hms_arg_interval_us(fcinfo, 6, "dead_letter_retention",
														   DEFAULT_DEAD_LETTER_RETENTION_US);
	PG_RETURN_BOOL(hms_group_create(stream, &options));
}

/*
 * alter_group(stream, consumer_group, config) returns void
 */
Datum
hms_sql_alter_group(PG_FUNCTION_ARGS)
{
	const char *stream = hms_arg_name(fcinfo, 0, "stream");
	const char *group = hms_arg_name(fcinfo, 1, "consumer_group");

	hms_require_writable("alter_group()");
	hms_group_alter(stream, group, hms_arg_jsonb(fcinfo, 2, "config"));
	PG_RETURN_VOID();
}

/*
 * drop_group(stream, consumer_group) returns boolean
 */
Datum
hms_sql_drop_group(PG_FUNCTION_ARGS)
{
	const char *stream = hms_arg_name(fcinfo, 0, "stream");

	hms_require_writable("drop_group()");
	PG_RETURN_BOOL(hms_group_drop(stream, hms_arg_name(fcinfo, 1, "consumer_group")));
}
