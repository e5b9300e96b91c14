/*-------------------------------------------------------------------------
 *
 * maintain_api.c
 *	  The procedure maintain(), and the check that CREATE EXTENSION makes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"

#include "core/maintenance.h"
#include "core/privilege.h"
#include "shmem/shmem.h"

PG_FUNCTION_INFO_V1(hms_sql_maintain);
PG_FUNCTION_INFO_V1(hms_sql_require_preload);

/*
 * hms_sql_maintain
 *		procedure maintain(): what the workers do, once.
 *
 * Raises 55000 without preload, 25006 on a standby, 42501 without 'manage' on
 * the database, 2D000 inside a transaction block or function.
 */
Datum
hms_sql_maintain(PG_FUNCTION_ARGS)
{
	CallContext *call;

	hms_shmem_require();
	PreventCommandDuringRecovery("maintain()");
	hms_privilege_check(HMS_PRIV_MANAGE, 0, get_database_name(MyDatabaseId));

	call = (CallContext *) fcinfo->context;
	hms_maintain(call != NULL && IsA(call, CallContext) && !call->atomic);
	PG_RETURN_VOID();
}

/*
 * hms_sql_require_preload
 *		Raise 55000, with the setting to change, unless the server has
 *		preloaded the library.
 */
Datum
hms_sql_require_preload(PG_FUNCTION_ARGS)
{
	hms_shmem_require();
	PG_RETURN_VOID();
}
