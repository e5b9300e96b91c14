/*-------------------------------------------------------------------------
 *
 * args.c
 *	  Checks of SQL arguments.
 *
 * Our functions are not strict: a null argument gets an error that names it, not
 * a silent null result.  Nothing here touches shared state.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "api/args.h"

static void
null_argument(const char *argname)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
			 errmsg("argument \"%s\" must not be null", argname)));
}

const char *
hms_arg_name_or_null(FunctionCallInfo fcinfo, int argno, const char *argname)
{
	return PG_ARGISNULL(argno) ? NULL : hms_arg_name(fcinfo, argno, argname);
}

const char *
hms_arg_name(FunctionCallInfo fcinfo, int argno, const char *argname)
{
	char	   *name;
	size_t		len;

	if (PG_ARGISNULL(argno))
		null_argument(argname);
	name = text_to_cstring(PG_GETARG_TEXT_PP(argno));
	len = strlen(name);
	if (len == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be empty", argname)));
	if (len > HMS_MAX_NAME_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" of %zu bytes exceeds the limit of %d bytes",
						argname, len, HMS_MAX_NAME_BYTES)));
	return name;
}

int64
hms_interval_us(const Interval *interval, const char *argname)
{
	int64		us;

	if (interval->month != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not contain months or years", argname),
				 errhint("Use days, hours, minutes or seconds.")));

	/* Both parts are bounded first, so that the sum cannot overflow. */
	if (interval->day < -400 || interval->time < -HMS_MAX_INTERVAL_US)
		us = -1;
	else if (interval->day > 400 || interval->time > HMS_MAX_INTERVAL_US)
		us = HMS_MAX_INTERVAL_US + 1;
	else
		us = interval->day * USECS_PER_DAY + interval->time;

	if (us < 0 || us > HMS_MAX_INTERVAL_US)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be between 0 and 400 days", argname)));
	return us;
}

int64
hms_arg_interval_us(FunctionCallInfo fcinfo, int argno, const char *argname, int64 dflt)
{
	if (PG_ARGISNULL(argno))
	{
		if (dflt == HMS_ARG_REQUIRED)
			null_argument(argname);
		return dflt;
	}
	return hms_interval_us(PG_GETARG_INTERVAL_P(argno), argname);
}

int32
hms_arg_int(FunctionCallInfo fcinfo, int argno, const char *argname,
			int32 dflt, int32 min, int32 max)
{
	int32		value;

	if (PG_ARGISNULL(argno))
		return dflt;
	value = PG_GETARG_INT32(argno);
	if (value < min || value > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be between %d and %d", argname, min, max)));
	return value;
}

int64
hms_arg_int8(FunctionCallInfo fcinfo, int argno, const char *argname,
			 int64 dflt, int64 min, int64 max)
{
	int64		value;

	if (PG_ARGISNULL(argno))
		return dflt;
	value = PG_GETARG_INT64(argno);
	if (value < min || value > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be between %lld and %lld",
						argname, (long long) min, (long long) max)));
	return value;
}

bool
hms_arg_bool(FunctionCallInfo fcinfo, int argno, const char *argname, bool dflt)
{
	return PG_ARGISNULL(argno) ? dflt : PG_GETARG_BOOL(argno);
}

Datum *
hms_arg_array(FunctionCallInfo fcinfo, int argno, const char *argname,
			  Oid element_type, bool null_ok, int *n)
{
	ArrayType  *array;
	Datum	   *elements;
	bool	   *nulls;
	int16		typlen;
	bool		typbyval;
	char		typalign;

	*n = -1;
	if (PG_ARGISNULL(argno))
	{
		if (!null_ok)
			null_argument(argname);
		return NULL;
	}

	array = PG_GETARG_ARRAYTYPE_P(argno);
	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be a one-dimensional array", argname)));
	get_typlenbyvalalign(element_type, &typlen, &typbyval, &typalign);
	deconstruct_array(array, element_type, typlen, typbyval, typalign,
					  &elements, &nulls, n);
	if (*n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be an empty array", argname)));
	if (*n > HMS_MAX_BATCH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" has %d elements, the limit is %d",
						argname, *n, HMS_MAX_BATCH)));
	for (int i = 0; i < *n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("argument \"%s\" must not contain null (element %d)", argname, i + 1)));
	}
	return elements;
}

Jsonb *
hms_arg_jsonb(FunctionCallInfo fcinfo, int argno, const char *argname)
{
	if (PG_ARGISNULL(argno))
		null_argument(argname);
	return PG_GETARG_JSONB_P(argno);
}

void
hms_require_writable(const char *what)
{
	PreventCommandIfReadOnly(what);
	PreventCommandIfParallelMode(what);
	PreventCommandDuringRecovery(what);
}

void
hms_refuse_serializable(const char *what)
{
	if (IsolationIsSerializable())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot execute %s in a SERIALIZABLE transaction", what),
				 errdetail("Consumers of one group would fail each other with serialization errors."),
				 errhint("Use READ COMMITTED or REPEATABLE READ; a hand-out is exact in either.")));
}
