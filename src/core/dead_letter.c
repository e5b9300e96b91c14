/*-------------------------------------------------------------------------
 *
 * dead_letter.c
 *	  Ending deliveries that a group gave up, and bringing them back.
 *
 * A dead letter is written in the transaction that ends the delivery, under the
 * delivery's row lock, so that there is never both or neither.  It has its own
 * copy of the message: retention of the log does not touch it.  Redriving
 * deletes the dead letter under its row lock and makes the message due; when
 * the log has dropped the message it is put back under its id first.  Several
 * groups may do so at once: a lock on the stream, kept to the end of the
 * transaction, lets the second one see what the first one put back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "core/dead_letter.h"
#include "core/hotmesh.h"
#include "core/tasks_core.h"
#include "shmem/effects.h"
#include "storage/relset.h"

/* A dead letter's row. */
static void
fill_dead_letter(TupleTableSlot *slot, const HmsGroup *group, const HmsDelivery *delivery,
				 const HmsMessage *message, const char *reason, TimestampTz now)
{
	Datum	   *values = slot->tts_values;
	bool	   *nulls = slot->tts_isnull;

	memset(nulls, true, slot->tts_tupleDescriptor->natts * sizeof(bool));
#define SET(attno, value)	(values[(attno) - 1] = (value), nulls[(attno) - 1] = false)
#define SET_POINTER(attno, pointer) \
	do { if ((pointer) != NULL) SET(attno, PointerGetDatum(pointer)); } while (0)
#define SET_TIME(attno, time) \
	do { if (!TIMESTAMP_IS_NOBEGIN(time)) SET(attno, TimestampTzGetDatum(time)); } while (0)

	SET(HMS_DEAD_GROUP_ID, Int32GetDatum(group->group_id));
	SET(HMS_DEAD_ID, Int64GetDatum(message->id));
	SET(HMS_DEAD_PRIORITY, Int16GetDatum(message->priority));
	SET(HMS_DEAD_ATTEMPTS, Int32GetDatum(delivery->attempts));
	SET(HMS_DEAD_DEAD_AT, TimestampTzGetDatum(now));
	SET(HMS_DEAD_REASON, CStringGetTextDatum(reason));
	SET_TIME(HMS_DEAD_FIRST_DELIVERED_AT, delivery->first_delivered_at);
	SET_TIME(HMS_DEAD_LAST_DELIVERED_AT, delivery->delivered_at);
	SET_POINTER(HMS_DEAD_LAST_CONSUMER, delivery->consumer);
	SET_POINTER(HMS_DEAD_LAST_ERROR, delivery->last_error);
	SET(HMS_DEAD_PUBLISHED_AT, TimestampTzGetDatum(message->published_at));
	SET_POINTER(HMS_DEAD_KEY, message->key);
	SET_POINTER(HMS_DEAD_HEADERS, message->headers);
	SET_POINTER(HMS_DEAD_PAYLOAD, message->payload);
	SET_POINTER(HMS_DEAD_BODY, message->body);
	SET_POINTER(HMS_DEAD_CONTENT_TYPE, message->content_type);
#undef SET
#undef SET_POINTER
#undef SET_TIME
	ExecStoreVirtualTuple(slot);
}

bool
hms_bury_locked(const HmsGroup *group, Relation deliveries, ItemPointer tid,
				Snapshot snapshot, const HmsDelivery *delivery,
				const HmsMessage *message, const char *reason, TimestampTz now)
{
	HmsWriter	writer;
	TupleTableSlot *slot;

	if (message == NULL)
	{
		hms_delete_locked(deliveries, tid, snapshot);
		hms_effects_count_group(group->group_id, HMS_GROUP_MISSING, 1);
		return false;
	}

	hms_writer_open(&writer, hms_relset()->dead_letter_rel);
	slot = MakeSingleTupleTableSlot(RelationGetDescr(writer.rel), &TTSOpsVirtual);
	fill_dead_letter(slot, group, delivery, message, reason, now);
	hms_insert(&writer, slot);
	ExecDropSingleTupleTableSlot(slot);
	hms_writer_close(&writer, false);

	if (group->error_stream[0] != '\0' && strcmp(reason, HMS_REASON_MAX_DELIVER) == 0)
		hms_hotmesh_exhausted(group, message, now);

	/* Last: 'delivery' may point into the locked row. */
	hms_delete_locked(deliveries, tid, snapshot);
	hms_effects_count_group(group->group_id, HMS_GROUP_DEAD, 1);
	return true;
}

/* One exhausted delivery found by the worker; true when it was buried. */
static bool
bury_found(const HmsStream *stream, const HmsGroup *group, HmsLogView *view,
		   Relation rel, TupleTableSlot *seen, TupleTableSlot *locked,
		   Snapshot snapshot, TimestampTz now)
{
	HmsDelivery delivery;
	HmsMessage	message;
	bool		found;

	hms_delivery_read(seen, &delivery);
	if (!hms_delivery_exhausted(group, &delivery) ||
		hms_lock_row(rel, &seen->tts_tid, snapshot, locked,
					 LockTupleNoKeyExclusive, false) != HMS_ROW_OK)
		return false;
	hms_delivery_read(locked, &delivery);
	hms_delivery_note_replaced(&delivery);
	found = hms_log_fetch(stream, view, snapshot, delivery.priority, delivery.id, &message);
	if (delivery.has_token)
		hms_effects_count_group(group->group_id, HMS_GROUP_EXPIRED, 1);
	return hms_bury_locked(group, rel, &locked->tts_tid, snapshot, &delivery,
						   found ? &message : NULL, HMS_REASON_MAX_DELIVER, now);
}

/* The worker's walk over what is due in a group. */
typedef struct Burial
{
	const HmsStream *stream;
	const HmsGroup *group;
	TimestampTz now;
	int			limit;
	int			buried;
	int			visited;
	Relation	rel;
	TupleTableSlot *locked;
	HmsLogView	view;
} Burial;

/* Bury at one priority; true when the limit is reached. */
static bool
bury_level(Burial *burial, int level)
{
	HmsHintKey	hint_key;
	HmsHintScan hint;
	Snapshot	snapshot;
	ScanKeyData keys[4];
	HmsScan		scan;
	bool		full = false;

	/* Read only: raising the hint is left to those who claim. */
	hms_hint_key(&hint_key, RelationGetRelid(burial->rel), burial->group->incarnation, level);
	hms_hint_begin(&hint, &hint_key, hms_effects_own_low(&hint_key), false);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	hms_log_view(&burial->view, burial->stream->log_relid, burial->stream->namespace_id,
				 0, PG_INT64_MAX);
	hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, burial->group->incarnation);
	hms_key_int2(&keys[1], 2, BTEqualStrategyNumber, level);
	hms_key_time(&keys[2], 3, BTGreaterEqualStrategyNumber, hint.lo);
	hms_key_time(&keys[3], 3, BTLessEqualStrategyNumber, burial->now);
	hms_scan_begin(&scan, burial->rel, hms_relset()->delivery_claim_idx, snapshot, 4, keys);
	while (!full && hms_scan_next(&scan, ForwardScanDirection))
	{
		CHECK_FOR_INTERRUPTS();
		full = burial->buried >= burial->limit || burial->visited++ >= burial->limit * 10;
		if (!full && bury_found(burial->stream, burial->group, &burial->view, burial->rel,
								scan.slot, burial->locked, snapshot, burial->now))
			burial->buried++;
	}
	hms_scan_end(&scan);
	hms_log_release(&burial->view);
	UnregisterSnapshot(snapshot);
	return full;
}

bool
hms_bury_exhausted(const HmsStream *stream, const HmsGroup *group, TimestampTz now,
				   int limit, int *buried)
{
	Burial		burial = {.stream = stream,.group = group,.now = now,.limit = limit};
	bool		full = false;

	*buried = 0;
	if (group->max_deliver == 0)
		return false;

	burial.rel = table_open(hms_relset()->delivery_rel, RowExclusiveLock);
	burial.locked = table_slot_create(burial.rel, NULL);
	for (int level = stream->levels - 1; level >= 0 && !full; level--)
		full = bury_level(&burial, level);
	ExecDropSingleTupleTableSlot(burial.locked);
	table_close(burial.rel, NoLock);
	if (burial.buried > 0)
		CommandCounterIncrement();
	*buried = burial.buried;
	return full && burial.buried >= limit;
}

/* The message inside a dead letter; pointers are copies. */
static void
read_message(TupleTableSlot *slot, HmsMessage *message)
{
	bool		isnull;

	memset(message, 0, sizeof(HmsMessage));
	message->id = DatumGetInt64(slot_getattr(slot, HMS_DEAD_ID, &isnull));
	message->priority = DatumGetInt16(slot_getattr(slot, HMS_DEAD_PRIORITY, &isnull));
	message->published_at = DatumGetTimestampTz(slot_getattr(slot, HMS_DEAD_PUBLISHED_AT, &isnull));
#define COPY(member, attno) \
	do { \
		Datum value = slot_getattr(slot, attno, &isnull); \
		message->member = isnull ? NULL : PG_DETOAST_DATUM_COPY(value); \
	} while (0)
	COPY(key, HMS_DEAD_KEY);
	COPY(headers, HMS_DEAD_HEADERS);
	COPY(payload, HMS_DEAD_PAYLOAD);
	COPY(body, HMS_DEAD_BODY);
	COPY(content_type, HMS_DEAD_CONTENT_TYPE);
#undef COPY
}

/* Publish the message of a dead letter to another stream. */
static void
publish_to(const HmsStream *to, const HmsMessage *message, TimestampTz now)
{
	HmsNewMessage copy = {
		.deliver_at = DT_NOBEGIN,
		.priority = message->priority,
		.key = PointerGetDatum(message->key),
		.headers = PointerGetDatum(message->headers),
		.payload = PointerGetDatum(message->payload),
		.body = PointerGetDatum(message->body),
		.content_type = PointerGetDatum(message->content_type)
	};

	hms_log_append(to, &copy, 1, now);
	hms_effects_published(to->stream_id, 1, hms_message_bytes(message));
}

/*
 * Look for a message in the log and keep it there to the end of the transaction:
 * retention does not see our delivery before we commit.
 */
static bool
pin_in_log(const HmsStream *stream, const HmsMessage *message, Snapshot snapshot)
{
	HmsMessage	in_log;
	HmsLogView	view;
	bool		found;

	hms_log_view(&view, stream->log_relid, stream->namespace_id, message->id - 1, message->id);
	found = hms_log_fetch(stream, &view, snapshot, message->priority, message->id, &in_log);
	if (found)
		hms_log_pin(&view);
	hms_log_release(&view);
	return found;
}

/*
 * Put a message back that the log has dropped, unless another group's redrive has
 * done so.  One lock for all messages of the stream: the order in which two
 * transactions redrive them does not matter.
 */
static void
restore_once(const HmsStream *stream, const HmsMessage *message, TimestampTz now)
{
	Snapshot	snapshot;
	bool		found;

	LockDatabaseObject(hms_relset()->stream_rel, (Oid) stream->stream_id, 0, ExclusiveLock);

	/* Look again: whoever held the lock has ended, one way or the other. */
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	found = pin_in_log(stream, message, snapshot);
	UnregisterSnapshot(snapshot);
	if (!found)
		hms_log_restore(stream, message, now);
}

/* Make the message of a dead letter due again in its own group. */
static void
make_due(const HmsStream *stream, const HmsGroup *group, HmsMessage *message,
		 Snapshot snapshot, TimestampTz now)
{
	HmsDeliveryBatch *batch = hms_delivery_batch(group);
	HmsDelivery delivery = {
		.incarnation = group->incarnation,
		.id = message->id,
		.priority = message->priority,
		.due_at = now,
		.lease_until = DT_NOBEGIN,
		.first_delivered_at = DT_NOBEGIN,
		.delivered_at = DT_NOBEGIN
	};
	TimestampTz lowest;

	if (!pin_in_log(stream, message, snapshot))
		restore_once(stream, message, now);
	hms_delivery_add(batch, &delivery);
	hms_delivery_write(batch, &lowest);
}

/* Redrive the dead letters of one scan position; returns how many. */
static int
redrive_scan(const HmsStream *stream, const HmsGroup *group, Relation rel, HmsScan *scan,
			 Snapshot snapshot, int limit, const HmsStream *to_stream, TimestampTz now)
{
	int			redriven = 0;

	while (redriven < limit && hms_scan_next(scan, ForwardScanDirection))
	{
		HmsMessage	message;

		CHECK_FOR_INTERRUPTS();
		read_message(scan->slot, &message);
		if (hms_delete_row(rel, &scan->slot->tts_tid, snapshot) != HMS_ROW_OK)
			continue;
		if (to_stream != NULL)
			publish_to(to_stream, &message, now);
		else
			make_due(stream, group, &message, snapshot, now);
		redriven++;
	}
	return redriven;
}

int
hms_redrive(const HmsStream *stream, const HmsGroup *group, const int64 *ids, int nids,
			int max_messages, const HmsStream *to_stream, TimestampTz now)
{
	Relation	rel = table_open(hms_relset()->dead_letter_rel, RowExclusiveLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64	   *sorted = NULL;
	int			redriven = 0;
	ScanKeyData keys[2];
	HmsScan		scan;

	if (nids > 0)
		nids = hms_sorted_ids(ids, nids, &sorted);
	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, group->group_id);
	if (nids < 0)
	{
		hms_scan_begin(&scan, rel, hms_relset()->dead_letter_idx, snapshot, 1, keys);
		redriven = redrive_scan(stream, group, rel, &scan, snapshot, max_messages, to_stream, now);
		hms_scan_end(&scan);
	}
	for (int i = 0; i < nids && redriven < max_messages; i++)
	{
		hms_key_int8(&keys[1], 2, BTEqualStrategyNumber, sorted[i]);
		hms_scan_begin(&scan, rel, hms_relset()->dead_letter_idx, snapshot, 2, keys);
		redriven += redrive_scan(stream, group, rel, &scan, snapshot,
								 max_messages - redriven, to_stream, now);
		hms_scan_end(&scan);
	}
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	if (redriven > 0)
	{
		hms_effects_count_group(group->group_id, HMS_GROUP_REDRIVEN, redriven);
		CommandCounterIncrement();
	}
	return redriven;
}
