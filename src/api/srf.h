/*-------------------------------------------------------------------------
 *
 * srf.h
 *	  Materialised set-returning results.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_API_SRF_H
#define HMS_API_SRF_H

#include "fmgr.h"

/* Prepare the tuplestore of the caller's result; raises when no set is expected. */
extern void hms_srf_begin(FunctionCallInfo fcinfo);

/* The same for a set of a scalar type. */
extern void hms_srf_begin_scalar(FunctionCallInfo fcinfo);

/* Add one row. */
extern void hms_srf_put(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

#endif							/* HMS_API_SRF_H */
