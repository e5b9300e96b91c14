/*-------------------------------------------------------------------------
 *
 * grant_api.c
 *	  grant_stream() and revoke_stream().
 *
 * Unpack, check, one call down.  The rules stand in core/privilege.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

#include "api/args.h"
#include "core/privilege.h"
#include "core/stream.h"

PG_FUNCTION_INFO_V1(hms_sql_grant_stream);
PG_FUNCTION_INFO_V1(hms_sql_revoke_stream);

typedef struct Grant
{
	int32		stream_id;		/* 0 = the database */
	HmsPrivilege privilege;
	Oid			role;
} Grant;

static Grant
grant_args(FunctionCallInfo fcinfo, const char *what)
{
	const char *name = hms_arg_name_or_null(fcinfo, 0, "stream");
	HmsStream	stream;
	Grant		grant = {0};

	hms_require_writable(what);
	if (PG_ARGISNULL(1) || PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null",
						PG_ARGISNULL(1) ? "privilege" : "role")));
	grant.privilege = hms_privilege_parse(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	grant.role = PG_GETARG_OID(2);
	if (name != NULL)
	{
		hms_stream_hold(name, HMS_PRIV_MANAGE, &stream);
		grant.stream_id = stream.stream_id;
	}
	else
		hms_privilege_check(HMS_PRIV_MANAGE, 0, NULL);
	return grant;
}

/*
 * grant_stream(stream, privilege, role) returns void
 */
Datum
hms_sql_grant_stream(PG_FUNCTION_ARGS)
{
	Grant		grant = grant_args(fcinfo, "grant_stream()");

	hms_privilege_grant(grant.stream_id, grant.privilege, grant.role);
	PG_RETURN_VOID();
}

/*
 * revoke_stream(stream, privilege, role) returns boolean
 */
Datum
hms_sql_revoke_stream(PG_FUNCTION_ARGS)
{
	Grant		grant = grant_args(fcinfo, "revoke_stream()");

	PG_RETURN_BOOL(hms_privilege_revoke(grant.stream_id, grant.privilege, grant.role));
}
