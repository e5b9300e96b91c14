/*-------------------------------------------------------------------------
 *
 * takeover.c
 *	  Hand-outs seen from outside: list them, take them over, release them.
 *
 * All walk the index (incarnation, id) in id order.  Listing changes nothing;
 * taking over and releasing lock each row without waiting and skip what
 * another transaction holds.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "core/dead_letter.h"
#include "core/delivery.h"
#include "core/settle.h"
#include "shmem/counters.h"
#include "shmem/effects.h"
#include "storage/relset.h"
#include "storage/scan.h"

typedef struct Takeover
{
	const HmsStream *stream;
	const HmsGroup *group;
	TimestampTz now;
	int64		min_idle_us;
	text	   *consumer;		/* claim: who takes over; else whose, NULL =
								 * all */
	Snapshot	snapshot;
	HmsWriter	writer;
	TupleTableSlot *locked;
	TupleTableSlot *fresh;
	HmsLogView	view;
	HmsMessages *out;
} Takeover;

static void
takeover_begin(Takeover *t)
{
	hms_writer_open(&t->writer, hms_relset()->delivery_rel);
	t->locked = table_slot_create(t->writer.rel, NULL);
	t->fresh = MakeSingleTupleTableSlot(RelationGetDescr(t->writer.rel), &TTSOpsVirtual);
	t->snapshot = RegisterSnapshot(GetLatestSnapshot());
	hms_log_view(&t->view, t->stream->log_relid, t->stream->namespace_id, 0, PG_INT64_MAX);
}

static void
takeover_end(Takeover *t)
{
	hms_log_release(&t->view);
	UnregisterSnapshot(t->snapshot);
	ExecDropSingleTupleTableSlot(t->fresh);
	ExecDropSingleTupleTableSlot(t->locked);
	hms_writer_close(&t->writer, false);
	CommandCounterIncrement();
}

/* Scan a group's deliveries with id > after_id, or the one with id = after_id. */
static void
scan_deliveries(HmsScan *scan, Relation rel, Snapshot snapshot, int64 incarnation,
				int64 id, bool equal)
{
	ScanKeyData keys[2];

	hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, incarnation);
	hms_key_int8(&keys[1], 2, equal ? BTEqualStrategyNumber : BTGreaterStrategyNumber, id);
	hms_scan_begin(scan, rel, hms_relset()->delivery_id_idx, snapshot, 2, keys);
}

/* Handed out, not settled, and for long enough. */
static bool
is_idle(const HmsDelivery *delivery, TimestampTz now, int64 min_idle_us)
{
	return delivery->has_token && now - delivery->delivered_at >= min_idle_us;
}

/* Take over the delivery in 'seen', if it may be. */
static void
claim_row(Takeover *t, TupleTableSlot *seen)
{
	HmsDelivery delivery;
	HmsMessage	message;

	hms_delivery_read(seen, &delivery);
	if (!is_idle(&delivery, t->now, t->min_idle_us))
		return;

	/* A live lease of the last allowed attempt stays where it is. */
	if (hms_delivery_exhausted(t->group, &delivery) && delivery.due_at > t->now)
		return;
	if (hms_lock_row(t->writer.rel, &seen->tts_tid, t->snapshot, t->locked,
					 LockTupleNoKeyExclusive, false) != HMS_ROW_OK)
		return;
	hms_delivery_read(t->locked, &delivery);
	hms_delivery_note_replaced(&delivery);

	if (!hms_log_fetch(t->stream, &t->view, t->snapshot, delivery.priority, delivery.id, &message))
	{
		hms_delete_locked(t->writer.rel, &t->locked->tts_tid, t->snapshot);
		hms_effects_count_group(t->group->group_id, HMS_GROUP_MISSING, 1);
		return;
	}
	if (hms_delivery_exhausted(t->group, &delivery))
	{
		hms_bury_locked(t->group, t->writer.rel, &t->locked->tts_tid, t->snapshot,
						&delivery, &message, HMS_REASON_MAX_DELIVER, t->now);
		return;
	}

	hms_delivery_lease(&delivery, t->group, t->now, t->group->ack_wait_us,
					   (struct varlena *) t->consumer);
	hms_delivery_fill(t->fresh, &delivery);
	hms_update_locked(&t->writer, &t->locked->tts_tid, t->fresh, t->snapshot);
	hms_delivery_note_due(t->group->incarnation, delivery.priority, delivery.due_at);
	message.token = delivery.token;
	message.lease_until = delivery.lease_until;
	message.attempts = delivery.attempts;
	message.retries = delivery.retries;
	message.first_delivered_at = delivery.first_delivered_at;
	message.delivered_at = delivery.delivered_at;
	hms_messages_add(t->out, &message);
}

void
hms_claim(const HmsStream *stream, const HmsGroup *group, const char *consumer,
		  int64 min_idle_us, const int64 *ids, int nids, int64 after_id,
		  int max_messages, TimestampTz now, HmsMessages *out)
{
	Takeover	t = {
		.stream = stream,
		.group = group,
		.now = now,
		.min_idle_us = min_idle_us,
		.consumer = cstring_to_text(consumer),
		.out = out
	};
	HmsScan		scan;

	takeover_begin(&t);
	if (nids < 0)
	{
		scan_deliveries(&scan, t.writer.rel, t.snapshot, group->incarnation, after_id, false);
		while (out->n < max_messages && hms_scan_next(&scan, ForwardScanDirection))
		{
			CHECK_FOR_INTERRUPTS();
			claim_row(&t, scan.slot);
		}
		hms_scan_end(&scan);
	}
	else
	{
		int64	   *sorted;
		int			n = hms_sorted_ids(ids, nids, &sorted);

		for (int i = 0; i < n && out->n < max_messages; i++)
		{
			if (sorted[i] <= after_id)
				continue;
			scan_deliveries(&scan, t.writer.rel, t.snapshot, group->incarnation, sorted[i], true);
			if (hms_scan_next(&scan, BackwardScanDirection))
				claim_row(&t, scan.slot);
			hms_scan_end(&scan);
		}
	}
	takeover_end(&t);
	hms_effects_count_group(group->group_id, HMS_GROUP_DELIVERED, out->n);
	hms_effects_count_group(group->group_id, HMS_GROUP_REDELIVERED, out->n);
}

/* True when 'consumer' (NULL = anybody) holds the delivery. */
static bool
held_by(const HmsDelivery *delivery, const text *consumer)
{
	if (consumer == NULL)
		return true;
	if (delivery->consumer == NULL)
		return false;
	return VARSIZE_ANY_EXHDR(delivery->consumer) == VARSIZE_ANY_EXHDR(consumer) &&
		memcmp(VARDATA_ANY(delivery->consumer), VARDATA_ANY(consumer),
			   VARSIZE_ANY_EXHDR(consumer)) == 0;
}

int
hms_list_pending(const HmsStream *stream, const HmsGroup *group, const char *consumer,
				 int64 min_idle_us, int64 after_id, int max_messages,
				 TimestampTz now, HmsMessages *out)
{
	Relation	rel = table_open(hms_relset()->delivery_rel, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	const text *whose = consumer == NULL ? NULL : cstring_to_text(consumer);
	HmsLogView	view;
	HmsScan		scan;

	hms_log_view(&view, stream->log_relid, stream->namespace_id, after_id, PG_INT64_MAX);
	scan_deliveries(&scan, rel, snapshot, group->incarnation, after_id, false);
	while (out->n < max_messages && hms_scan_next(&scan, ForwardScanDirection))
	{
		HmsDelivery delivery;
		HmsMessage	message;

		CHECK_FOR_INTERRUPTS();
		hms_delivery_read(scan.slot, &delivery);
		if (!is_idle(&delivery, now, min_idle_us) || !held_by(&delivery, whose) ||
			!hms_log_fetch(stream, &view, snapshot, delivery.priority, delivery.id, &message))
			continue;
		message.token = delivery.token;
		message.lease_until = delivery.lease_until;
		message.attempts = delivery.attempts;
		message.retries = delivery.retries;
		message.first_delivered_at = delivery.first_delivered_at;
		message.delivered_at = delivery.delivered_at;
		hms_messages_add(out, &message);
	}
	hms_scan_end(&scan);
	hms_log_release(&view);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return out->n;
}

int
hms_release_consumer(const HmsGroup *group, const char *consumer, TimestampTz now)
{
	const text *whose = cstring_to_text(consumer);
	HmsWriter	writer;
	Snapshot	snapshot;
	TupleTableSlot *locked;
	TupleTableSlot *fresh;
	HmsScan		scan;
	int			released = 0;

	hms_writer_open(&writer, hms_relset()->delivery_rel);
	locked = table_slot_create(writer.rel, NULL);
	fresh = MakeSingleTupleTableSlot(RelationGetDescr(writer.rel), &TTSOpsVirtual);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan_deliveries(&scan, writer.rel, snapshot, group->incarnation, 0, false);
	while (hms_scan_next(&scan, ForwardScanDirection))
	{
		HmsDelivery delivery;

		CHECK_FOR_INTERRUPTS();
		hms_delivery_read(scan.slot, &delivery);
		if (!delivery.has_token || !held_by(&delivery, whose) ||
			hms_lock_row(writer.rel, &scan.slot->tts_tid, snapshot, locked,
						 LockTupleNoKeyExclusive, false) != HMS_ROW_OK)
			continue;
		hms_delivery_read(locked, &delivery);
		hms_delivery_note_replaced(&delivery);
		delivery.has_token = false;
		delivery.lease_until = DT_NOBEGIN;
		delivery.due_at = now;
		hms_delivery_fill(fresh, &delivery);
		hms_update_locked(&writer, &locked->tts_tid, fresh, snapshot);
		hms_delivery_note_due(group->incarnation, delivery.priority, now);
		released++;
	}
	hms_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	ExecDropSingleTupleTableSlot(fresh);
	ExecDropSingleTupleTableSlot(locked);
	hms_writer_close(&writer, false);
	CommandCounterIncrement();
	return released;
}

void
hms_forget_consumer(const HmsGroup *group, const char *consumer)
{
	const HmsRelset *relset = hms_relset();
	Oid			index = relset->consumer_pkey;
	Relation	rel = table_open(relset->consumer_rel, RowExclusiveLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData keys[2];
	HmsScan		scan;

	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, group->group_id);
	hms_key_text(&keys[1], 2, cstring_to_text(consumer));
	hms_scan_begin(&scan, rel, index, snapshot, 2, keys);

	/* Somebody else may be deleting or rewriting it: no reason to wait. */
	if (hms_scan_next(&scan, ForwardScanDirection))
		(void) hms_delete_row(rel, &scan.slot->tts_tid, snapshot);
	hms_scan_end(&scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	CommandCounterIncrement();
	hms_presence_forget(group->group_id, consumer);
}
