/*-------------------------------------------------------------------------
 *
 * monitor_group.c
 *	  Numbers about one consumer group.
 *
 * Cursor, deliveries and log are read under one snapshot, so that each message
 * is counted once: an advance moves messages from the lag to the deliveries in
 * one transaction.  Of an open delivery exactly one of these is true:
 *
 *	leased		its lease has not ended
 *	ready		nobody holds it and it is due; a lapsed lease counts here as
 *				soon as the pause after that attempt is over
 *	delayed		nobody holds it and it is due later
 *
 * ack_floor is the highest id of a message in the log, above the group's
 * starting position, such that it and every earlier message of the group is
 * settled (acked, rejected or dead); 0 when there is none.  A message that is
 * not yet read, or has an open delivery, stops it.
 *
 * last_delivered_id is the highest id in the log, above the starting position,
 * that was handed to a consumer; 0 when there is none.
 *
 * oldest_age is the age of the oldest message that the group has not settled,
 * read or not.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "core/dead_letter.h"
#include "core/delivery.h"
#include "core/log_count.h"
#include "core/log_merge.h"
#include "core/monitor.h"
#include "core/rows.h"
#include "shmem/counters.h"
#include "shmem/wakeup.h"
#include "storage/config.h"
#include "storage/relset.h"
#include "storage/scan.h"

/* What one group's numbers are computed from. */
typedef struct GroupReader
{
	const HmsStream *stream;
	const HmsGroup *group;
	TimestampTz now;
	Snapshot	snapshot;
	HmsCursor	cursor;
	HmsLogView	view;
	int64		lowest_open_id; /* of the deliveries; PG_INT64_MAX if none */
	int			lowest_open_priority;
	TimestampTz error_at;		/* of the error kept */
} GroupReader;

static TimestampTz
time_or(TupleTableSlot *slot, AttrNumber attno, TimestampTz otherwise)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, attno, &isnull);

	return isnull ? otherwise : DatumGetTimestampTz(value);
}

/* Keep the row's error if it is the newest so far. */
static void
note_error(GroupReader *reader, HmsGroupNumbers *out, TupleTableSlot *slot,
		   AttrNumber attno, TimestampTz at)
{
	bool		isnull;
	Datum		error = slot_getattr(slot, attno, &isnull);

	if (isnull || (out->last_error != NULL && at < reader->error_at))
		return;
	if (out->last_error != NULL)
		pfree(out->last_error);
	out->last_error = DatumGetJsonbPCopy(error);
	reader->error_at = at;
	out->last_error_at = at;
}

static void
count_deliveries(GroupReader *reader, HmsGroupNumbers *out)
{
	Relation	rel = table_open(hms_relset()->delivery_rel, AccessShareLock);
	ScanKeyData key;
	HmsScan		scan;

	reader->lowest_open_id = PG_INT64_MAX;
	hms_key_int8(&key, 1, BTEqualStrategyNumber, reader->group->incarnation);
	hms_scan_begin(&scan, rel, hms_relset()->delivery_id_idx, reader->snapshot, 1, &key);
	while (hms_scan_next(&scan, ForwardScanDirection))
	{
		TupleTableSlot *slot = scan.slot;
		int64		id = DatumGetInt64(hms_log_column(slot, HMS_DELIVERY_ID));

		CHECK_FOR_INTERRUPTS();
		if (id < reader->lowest_open_id)
		{
			reader->lowest_open_id = id;
			reader->lowest_open_priority = DatumGetInt16(hms_log_column(slot, HMS_DELIVERY_PRIORITY));
		}
		if (time_or(slot, HMS_DELIVERY_LEASE_UNTIL, DT_NOBEGIN) > reader->now)
			out->leased++;
		else if (DatumGetTimestampTz(hms_log_column(slot, HMS_DELIVERY_DUE_AT)) <= reader->now)
			out->ready++;
		else
			out->delayed++;
		if (DatumGetInt32(hms_log_column(slot, HMS_DELIVERY_ATTEMPTS)) > 1)
			out->redelivered++;
		note_error(reader, out, slot, HMS_DELIVERY_LAST_ERROR,
				   time_or(slot, HMS_DELIVERY_DELIVERED_AT, DT_NOBEGIN));
	}
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
}

static void
count_dead(GroupReader *reader, HmsGroupNumbers *out)
{
	Relation	rel = table_open(hms_relset()->dead_letter_rel, AccessShareLock);
	ScanKeyData key;
	HmsScan		scan;

	hms_key_int4(&key, 1, BTEqualStrategyNumber, reader->group->group_id);
	hms_scan_begin(&scan, rel, hms_relset()->dead_letter_idx, reader->snapshot, 1, &key);
	while (hms_scan_next(&scan, ForwardScanDirection))
	{
		CHECK_FOR_INTERRUPTS();
		out->dead++;
		note_error(reader, out, scan.slot, HMS_DEAD_LAST_ERROR,
				   time_or(scan.slot, HMS_DEAD_DEAD_AT, DT_NOBEGIN));
	}
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
}

/* Highest id of the log in (start_id, below); 0 if none. */
static int64
settled_below(GroupReader *reader, int64 below)
{
	int64		id = 0;
	int			priority;
	HmsLogMerge *merge;

	merge = hms_log_merge_range(reader->stream, &reader->view, reader->snapshot,
								reader->group->start_id,
								below == PG_INT64_MAX ? below : below - 1,
								BackwardScanDirection);
	(void) hms_log_merge_next(merge, &id, &priority);
	hms_log_merge_end(merge);
	return id;
}

/* True when the message was passed but no consumer has had it; 'scan' walks the deliveries backwards beside the log. */
static bool
never_handed_out(GroupReader *reader, TupleTableSlot *message, int priority, int64 id,
				 HmsScan *scan, bool *has_delivery)
{
	if (!hms_cursor_passed(&reader->cursor, priority, id,
						   DatumGetInt64(hms_log_column(message, HMS_LOG_XID))))
		return true;
	while (*has_delivery)
	{
		int64		delivery_id = DatumGetInt64(hms_log_column(scan->slot, HMS_DELIVERY_ID));

		if (delivery_id == id)
			return time_or(scan->slot, HMS_DELIVERY_FIRST_DELIVERED_AT, DT_NOBEGIN) == DT_NOBEGIN;
		if (delivery_id < id)
			break;
		*has_delivery = hms_scan_next(scan, BackwardScanDirection);
	}
	return false;
}

static int64
last_delivered(GroupReader *reader)
{
	Relation	rel = table_open(hms_relset()->delivery_rel, AccessShareLock);
	int64		after[HMS_PRIORITY_LEVELS];
	HmsLogMerge *merge;
	TupleTableSlot *slot;
	ScanKeyData key;
	HmsScan		scan;
	bool		has_delivery;
	int64		id;
	int			priority;

	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
		after[level] = reader->group->start_id;
	hms_key_int8(&key, 1, BTEqualStrategyNumber, reader->group->incarnation);
	hms_scan_begin(&scan, rel, hms_relset()->delivery_id_idx, reader->snapshot, 1, &key);
	has_delivery = hms_scan_next(&scan, BackwardScanDirection);
	merge = hms_log_merge_begin(reader->stream, &reader->view, reader->snapshot, after,
								reader->cursor.pos, BackwardScanDirection);
	while ((slot = hms_log_merge_next(merge, &id, &priority)) != NULL)
	{
		if (!never_handed_out(reader, slot, priority, id, &scan, &has_delivery))
			break;
	}
	hms_log_merge_end(merge);
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
	return slot == NULL ? 0 : id;
}

/* Microseconds since the oldest message owed was published; -1 when nothing is owed. */
static int64
oldest_age(GroupReader *reader, const HmsLogCount *lag)
{
	TimestampTz oldest = DT_NOEND;
	HmsMessage	message;

	if (lag->lowest_id != PG_INT64_MAX)
		oldest = lag->lowest_at;
	if (reader->lowest_open_id != PG_INT64_MAX &&
		hms_log_fetch(reader->stream, &reader->view, reader->snapshot,
					  reader->lowest_open_priority, reader->lowest_open_id, &message))
		oldest = Min(oldest, message.published_at);
	if (oldest == DT_NOEND)
		return -1;
	return Max(reader->now - oldest, 0);
}

static char *
backoff_text(Datum array)
{
	Oid			output;
	bool		is_varlena;

	getTypeOutputInfo(INTERVALARRAYOID, &output, &is_varlena);
	return OidOutputFunctionCall(output, array);
}

static bool
read_group_row(HeapTuple tuple, TupleDesc desc, void *arg)
{
	HmsGroupNumbers *out = arg;
	JsonbParseState *state;
	bool		isnull;
	Datum		value;

	out->created_at = DatumGetTimestampTz(hms_config_attr(tuple, desc, HMS_GROUP_COL_CREATED_AT, &isnull));
	hms_json_begin(&state);
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_DELIVER_POLICY, &isnull);
	hms_json_text(&state, "deliver_policy", TextDatumGetCString(value));
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_START_ID, &isnull);
	hms_json_int(&state, "start_id", DatumGetInt64(value));
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_ACK_WAIT, &isnull);
	hms_json_text(&state, "ack_wait", DatumGetCString(DirectFunctionCall1(interval_out, value)));
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_MAX_DELIVER, &isnull);
	if (isnull)
		hms_json_text(&state, "max_deliver", NULL);
	else
		hms_json_int(&state, "max_deliver", DatumGetInt32(value));
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_BACKOFF, &isnull);
	hms_json_text(&state, "backoff", isnull ? NULL : backoff_text(value));
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_DEAD_LETTER_RETENTION, &isnull);
	hms_json_text(&state, "dead_letter_retention",
				  DatumGetCString(DirectFunctionCall1(interval_out, value)));
	out->config = hms_json_end(&state);
	return false;
}

static int64
average_processing(const HmsGroup *group)
{
	int64		counters[HMS_GROUP_NCOUNTERS];
	TimestampTz since;

	if (!hms_group_counters(MyDatabaseId, group->group_id, counters, &since) ||
		counters[HMS_GROUP_ACKED] <= 0)
		return -1;
	return counters[HMS_GROUP_PROCESSING_US] / counters[HMS_GROUP_ACKED];
}

static void
read_cursor(GroupReader *reader)
{
	if (hms_cursor_peek(reader->group, reader->snapshot, &reader->cursor))
		return;
	memset(&reader->cursor, 0, sizeof(reader->cursor));
	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
		reader->cursor.pos[level] = reader->group->start_id;
}

void
hms_monitor_group(const HmsStream *stream, const HmsGroup *group, TimestampTz now,
				  HmsGroupNumbers *out)
{
	GroupReader reader = {.stream = stream,.group = group,.now = now};
	ScanKeyData key;
	HmsLogCount lag;

	memset(out, 0, sizeof(*out));
	hms_key_int4(&key, 1, BTEqualStrategyNumber, group->group_id);
	hms_config_each(hms_relset()->group_rel, hms_relset()->group_pkey, 1, &key,
					read_group_row, out);

	reader.snapshot = RegisterSnapshot(GetLatestSnapshot());
	read_cursor(&reader);
	hms_log_view(&reader.view, stream->log_relid, stream->namespace_id, 0, PG_INT64_MAX);
	hms_log_count_init(&lag, false);
	hms_log_count_pending(&lag, stream, &reader.view, reader.snapshot, &reader.cursor);
	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
		hms_log_count_level(&lag, stream, &reader.view, reader.snapshot, level,
							reader.cursor.pos[level], PG_INT64_MAX);
	count_deliveries(&reader, out);
	count_dead(&reader, out);
	out->ack_floor = settled_below(&reader, Min(lag.lowest_id, reader.lowest_open_id));
	out->last_delivered_id = last_delivered(&reader);
	out->oldest_age_us = oldest_age(&reader, &lag);
	hms_log_release(&reader.view);
	UnregisterSnapshot(reader.snapshot);

	out->lag = lag.rows;
	out->lag_estimated = lag.estimated;
	out->waiting = hms_waiters_of_group(MyDatabaseId, group->incarnation);
	out->avg_processing_us = average_processing(group);
}
