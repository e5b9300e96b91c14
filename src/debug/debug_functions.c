/*-------------------------------------------------------------------------
 *
 * debug_functions.c
 *	  C functions that tests declare for themselves; no install script does.
 *
 * Empty unless compiled with -DHMS_DEBUG_POINTS.  They read or set state of the
 * calling backend or of shared memory through the owning module's own functions, so they
 * add no lock and nothing that survives a crash.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef HMS_DEBUG_POINTS

#include "catalog/namespace.h"
#include "fmgr.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "shmem/hint.h"
#include "storage/scan.h"

PG_FUNCTION_INFO_V1(hms_sql_debug_scan_entries);
PG_FUNCTION_INFO_V1(hms_sql_debug_set_hint);

/*
 * hms_sql_debug_scan_entries() returns bigint
 *		Index entries visited by this backend's scans so far.
 */
Datum
hms_sql_debug_scan_entries(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64((int64) hms_scan_entries_visited());
}

/*
 * hms_sql_debug_set_hint(incarnation bigint, priority int, due timestamptz) returns void
 *		Set a group's low-water hint, right or wrong.
 */
Datum
hms_sql_debug_set_hint(PG_FUNCTION_ARGS)
{
	HmsHintKey	key;
	Oid			schema_oid = get_namespace_oid(HMS_SCHEMA, false);

	hms_hint_key(&key, get_relname_relid("delivery", schema_oid),
				 PG_GETARG_INT64(0), PG_GETARG_INT32(1));
	hms_hint_set_for_test(&key, PG_GETARG_TIMESTAMPTZ(2));
	PG_RETURN_VOID();
}

#endif							/* HMS_DEBUG_POINTS */
