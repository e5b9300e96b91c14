/*-------------------------------------------------------------------------
 *
 * args.h
 *	  Checks of SQL arguments: NULL, range, length; every refusal names the argument.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_API_ARGS_H
#define HMS_API_ARGS_H

#include "fmgr.h"
#include "hms.h"
#include "utils/jsonb.h"

/* A name of a stream, group or consumer: not null (22004), 1..255 bytes (22023); palloc'd. */
extern const char *hms_arg_name(FunctionCallInfo fcinfo, int argno, const char *argname);

/* The same, NULL when the argument is null. */
extern const char *hms_arg_name_or_null(FunctionCallInfo fcinfo, int argno, const char *argname);

/*
 * An interval in microseconds, 0..HMS_MAX_INTERVAL_US, without months (22023).
 * Null gives 'dflt'; with dflt = HMS_ARG_REQUIRED null raises 22004.
 */
#define HMS_ARG_REQUIRED	PG_INT64_MIN
extern int64 hms_arg_interval_us(FunctionCallInfo fcinfo, int argno, const char *argname, int64 dflt);
extern int64 hms_interval_us(const Interval *interval, const char *argname);

extern int32 hms_arg_int(FunctionCallInfo fcinfo, int argno, const char *argname,
						 int32 dflt, int32 min, int32 max);
extern int64 hms_arg_int8(FunctionCallInfo fcinfo, int argno, const char *argname,
						  int64 dflt, int64 min, int64 max);
extern bool hms_arg_bool(FunctionCallInfo fcinfo, int argno, const char *argname, bool dflt);

/*
 * Elements of an array argument: one dimension (22023), no null elements (22004),
 * 1..HMS_MAX_BATCH of them (22023).  A null array raises 22004, or with
 * null_ok gives NULL and *n = -1.
 */
extern Datum *hms_arg_array(FunctionCallInfo fcinfo, int argno, const char *argname,
							Oid element_type, bool null_ok, int *n);

/* A jsonb argument that must not be null (22004). */
extern Jsonb *hms_arg_jsonb(FunctionCallInfo fcinfo, int argno, const char *argname);

/* Raise 25006 on a standby or in a read-only transaction; 'what' is the function's name. */
extern void hms_require_writable(const char *what);

/*
 * Raise 0A000 in a SERIALIZABLE transaction: the page locks that its index scans leave make
 * consumers fail each other for nothing.
 */
extern void hms_refuse_serializable(const char *what);

#endif							/* HMS_API_ARGS_H */
