/*-------------------------------------------------------------------------
 *
 * namespace_api.c
 *	  create_namespace(), alter_namespace() and drop_namespace().
 *
 * Unpack, check, one call down.  The rules stand in core/namespace.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#include "api/args.h"
#include "core/namespace.h"
#include "core/privilege.h"

PG_FUNCTION_INFO_V1(hms_sql_create_namespace);
PG_FUNCTION_INFO_V1(hms_sql_alter_namespace);
PG_FUNCTION_INFO_V1(hms_sql_drop_namespace);

/* An interval, or null for never. */
static bool
interval_or_never(FunctionCallInfo fcinfo, int argno, Interval *out)
{
	memset(out, 0, sizeof(Interval));
	if (PG_ARGISNULL(argno))
		return false;
	*out = *PG_GETARG_INTERVAL_P(argno);
	return true;
}

/*
 * create_namespace(namespace, partition_interval, retention, retention_hard, premake) returns boolean
 */
Datum
hms_sql_create_namespace(PG_FUNCTION_ARGS)
{
	HmsNamespaceOptions options;

	hms_require_writable("create_namespace()");
	options.name = hms_arg_name(fcinfo, 0, "namespace");
	options.partition_interval = PG_ARGISNULL(1) ? "daily" :
		text_to_cstring(PG_GETARG_TEXT_PP(1));
	options.has_retention = interval_or_never(fcinfo, 2, &options.retention);
	options.has_retention_hard = interval_or_never(fcinfo, 3, &options.retention_hard);
	options.premake = hms_arg_int(fcinfo, 4, "premake", HMS_DEFAULT_PREMAKE,
								  HMS_MIN_PREMAKE, HMS_MAX_PREMAKE);
	hms_privilege_check(HMS_PRIV_MANAGE, 0, NULL);
	PG_RETURN_BOOL(hms_namespace_create(&options));
}

/*
 * alter_namespace(namespace, config) returns void
 */
Datum
hms_sql_alter_namespace(PG_FUNCTION_ARGS)
{
	const char *name;

	hms_require_writable("alter_namespace()");
	name = hms_arg_name(fcinfo, 0, "namespace");
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", "config")));
	hms_privilege_check(HMS_PRIV_MANAGE, 0, NULL);
	hms_namespace_alter(name, PG_GETARG_JSONB_P(1));
	PG_RETURN_VOID();
}

/*
 * drop_namespace(namespace) returns boolean
 */
Datum
hms_sql_drop_namespace(PG_FUNCTION_ARGS)
{
	const char *name;

	hms_require_writable("drop_namespace()");
	name = hms_arg_name(fcinfo, 0, "namespace");
	hms_privilege_check(HMS_PRIV_MANAGE, 0, NULL);
	PG_RETURN_BOOL(hms_namespace_drop(name));
}
