/*-------------------------------------------------------------------------
 *
 * stream_api.c
 *	  create_stream(), alter_stream() and drop_stream().
 *
 * Unpack, check, one call down.  The rules stand in core/stream.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/jsonb.h"

#include "api/args.h"
#include "core/namespace.h"
#include "core/stream.h"

#define DEFAULT_MAX_MESSAGE_BYTES	1048576

PG_FUNCTION_INFO_V1(hms_sql_create_stream);
PG_FUNCTION_INFO_V1(hms_sql_alter_stream);
PG_FUNCTION_INFO_V1(hms_sql_drop_stream);

/*
 * create_stream(stream, namespace, max_message_bytes, delay, max_priority) returns boolean
 */
Datum
hms_sql_create_stream(PG_FUNCTION_ARGS)
{
	HmsStreamOptions options;

	hms_require_writable("create_stream()");
	options.name = hms_arg_name(fcinfo, 0, "stream");
	options.namespace_name = hms_arg_name_or_null(fcinfo, 1, "namespace");
	if (options.namespace_name == NULL)
		options.namespace_name = HMS_DEFAULT_NAMESPACE;
	options.max_message_bytes = hms_arg_int(fcinfo, 2, "max_message_bytes",
											DEFAULT_MAX_MESSAGE_BYTES, 1, HMS_MAX_MESSAGE_BYTES);
	options.delay_us = hms_arg_interval_us(fcinfo, 3, "delay", 0);
	options.max_priority = hms_arg_int(fcinfo, 4, "max_priority", 0, 0, HMS_PRIORITY_LEVELS - 1);
	PG_RETURN_BOOL(hms_stream_create(&options));
}

/*
 * alter_stream(stream, config) returns void
 */
Datum
hms_sql_alter_stream(PG_FUNCTION_ARGS)
{
	const char *name;

	hms_require_writable("alter_stream()");
	name = hms_arg_name(fcinfo, 0, "stream");
	hms_stream_alter(name, hms_arg_jsonb(fcinfo, 1, "config"));
	PG_RETURN_VOID();
}

/*
 * drop_stream(stream) returns boolean
 */
Datum
hms_sql_drop_stream(PG_FUNCTION_ARGS)
{
	hms_require_writable("drop_stream()");
	PG_RETURN_BOOL(hms_stream_drop(hms_arg_name(fcinfo, 0, "stream")));
}
