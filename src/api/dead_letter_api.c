/*-------------------------------------------------------------------------
 *
 * dead_letter_api.c
 *	  dead_letters(), discard_dead_letters() and redrive().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "api/args.h"
#include "api/srf.h"
#include "core/dead_letter.h"
#include "core/dead_letter_admin.h"
#include "core/privilege.h"
#include "core/stream_cache.h"
#include "debug/debug_point.h"

PG_FUNCTION_INFO_V1(hms_sql_dead_letters);
PG_FUNCTION_INFO_V1(hms_sql_discard_dead_letters);
PG_FUNCTION_INFO_V1(hms_sql_redrive);

/* Columns of the result, in order. */
static const struct
{
	AttrNumber	attno;
	bool		varlena;
	bool		int2;			/* stored as int2, returned as int4 */
}			columns[] =

{
	{HMS_DEAD_ID, false, false},
	{HMS_DEAD_PAYLOAD, true, false},
	{HMS_DEAD_BODY, true, false},
	{HMS_DEAD_CONTENT_TYPE, true, false},
	{HMS_DEAD_HEADERS, true, false},
	{HMS_DEAD_KEY, true, false},
	{HMS_DEAD_PRIORITY, false, true},
	{HMS_DEAD_ATTEMPTS, false, false},
	{HMS_DEAD_PUBLISHED_AT, false, false},
	{HMS_DEAD_FIRST_DELIVERED_AT, false, false},
	{HMS_DEAD_LAST_DELIVERED_AT, false, false},
	{HMS_DEAD_LAST_CONSUMER, true, false},
	{HMS_DEAD_LAST_ERROR, true, false},
	{HMS_DEAD_DEAD_AT, false, false},
	{HMS_DEAD_REASON, true, false},
};

typedef struct DeadLetterSink
{
	FunctionCallInfo fcinfo;
	MemoryContext per_row;
} DeadLetterSink;

static void
put_dead_letter(TupleTableSlot *slot, void *arg)
{
	DeadLetterSink *sink = arg;
	MemoryContext old = MemoryContextSwitchTo(sink->per_row);
	Datum		values[lengthof(columns)];
	bool		nulls[lengthof(columns)];

	for (int i = 0; i < lengthof(columns); i++)
	{
		values[i] = slot_getattr(slot, columns[i].attno, &nulls[i]);
		if (nulls[i])
			continue;
		if (columns[i].varlena)
			values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
		else if (columns[i].int2)
			values[i] = Int32GetDatum(DatumGetInt16(values[i]));
	}
	hms_srf_put(sink->fcinfo, values, nulls);
	MemoryContextSwitchTo(old);
	MemoryContextReset(sink->per_row);
}

/* The stream and group that arguments 0 and 1 name; the caller must be allowed to consume. */
static void
consume_arguments(FunctionCallInfo fcinfo, HmsStream *stream, HmsGroup *group)
{
	const char *stream_name = hms_arg_name(fcinfo, 0, "stream");
	const char *group_name = hms_arg_name(fcinfo, 1, "consumer_group");

	hms_stream_by_name(stream_name, stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream->stream_id, stream->name);
	hms_group_by_name(stream, group_name, group);
}

/* An optional array of message ids; *nids = -1 when it is null. */
static int64 *
ids_argument(FunctionCallInfo fcinfo, int argno, int *nids)
{
	Datum	   *elements = hms_arg_array(fcinfo, argno, "ids", INT8OID, true, nids);
	int64	   *ids;

	if (*nids < 0)
		return NULL;
	ids = palloc(sizeof(int64) * *nids);
	for (int i = 0; i < *nids; i++)
		ids[i] = DatumGetInt64(elements[i]);
	return ids;
}

/* dead_letters(stream, consumer_group, after_id, max_messages) */
Datum
hms_sql_dead_letters(PG_FUNCTION_ARGS)
{
	int64		after_id = hms_arg_int8(fcinfo, 2, "after_id", 0, PG_INT64_MIN, PG_INT64_MAX);
	int			max_messages = hms_arg_int(fcinfo, 3, "max_messages", 100, 1, HMS_MAX_BATCH);
	DeadLetterSink sink = {.fcinfo = fcinfo};
	HmsStream	stream;
	HmsGroup	group;

	consume_arguments(fcinfo, &stream, &group);
	hms_srf_begin(fcinfo);
	sink.per_row = AllocSetContextCreate(CurrentMemoryContext, "hotmesh_stream dead letter",
										 ALLOCSET_DEFAULT_SIZES);
	hms_dead_letter_each(&group, GetActiveSnapshot(), after_id, max_messages,
						 put_dead_letter, &sink);
	MemoryContextDelete(sink.per_row);
	PG_RETURN_NULL();
}

/* discard_dead_letters(stream, consumer_group, ids, older_than) */
Datum
hms_sql_discard_dead_letters(PG_FUNCTION_ARGS)
{
	TimestampTz before = DT_NOEND;
	HmsStream	stream;
	HmsGroup	group;
	int64	   *ids;
	int			nids;

	hms_require_writable("discard_dead_letters()");
	ids = ids_argument(fcinfo, 2, &nids);
	if (!PG_ARGISNULL(3))
		before = HMS_NOW() -
			hms_arg_interval_us(fcinfo, 3, "older_than", HMS_ARG_REQUIRED);
	consume_arguments(fcinfo, &stream, &group);
	PG_RETURN_INT32(hms_dead_letter_discard(&group, ids, nids, before));
}

/* redrive(stream, consumer_group, ids, max_messages, to_stream) */
Datum
hms_sql_redrive(PG_FUNCTION_ARGS)
{
	TimestampTz now = HMS_NOW();
	const char *to_name;
	HmsStream	stream;
	HmsStream	to_stream;
	HmsGroup	group;
	int64	   *ids;
	int			nids;
	int			max_messages;

	hms_require_writable("redrive()");
	ids = ids_argument(fcinfo, 2, &nids);
	max_messages = hms_arg_int(fcinfo, 3, "max_messages", 100, 1, HMS_MAX_BATCH);
	to_name = hms_arg_name_or_null(fcinfo, 4, "to_stream");
	consume_arguments(fcinfo, &stream, &group);
	if (to_name != NULL)
	{
		hms_stream_by_name(to_name, &to_stream);
		hms_privilege_check(HMS_PRIV_PUBLISH, to_stream.stream_id, to_stream.name);
	}
	PG_RETURN_INT32(hms_redrive(&stream, &group, ids, nids, max_messages,
								to_name != NULL ? &to_stream : NULL, now));
}
