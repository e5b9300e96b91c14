/*-------------------------------------------------------------------------
 *
 * srf.c
 *	  Materialised set-returning results.
 *
 * All our sets are built before the first row is returned: a caller who stops
 * reading early must not leave a call half done.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "funcapi.h"
#include "nodes/execnodes.h"

#include "api/srf.h"

void
hms_srf_begin(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
}

void
hms_srf_begin_scalar(FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
}

void
hms_srf_put(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}
