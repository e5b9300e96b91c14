/*-------------------------------------------------------------------------
 *
 * claim.c
 *	  Handing out deliveries that are due: lapsed leases, nacked, released,
 *	  delayed and ready ones.
 *
 * FOR UPDATE SKIP LOCKED at the level of the access methods: walk the claim
 * index from the low-water hint to now, lock each row without waiting, and
 * replace it by a leased one.  Rows that somebody else holds are skipped.  The snapshot
 * is taken after the hint was noted, as hint.c demands.
 *
 * A row whose last allowed attempt has lapsed is dead-lettered on the way, up to
 * MAX_BURIALS per call, the worker does the rest.  A row whose message is
 * gone is deleted and counted.
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
#include "core/read.h"
#include "debug/debug_point.h"
#include "shmem/effects.h"
#include "shmem/slots.h"
#include "storage/relset.h"

#define MAX_BURIALS		100

typedef struct Claim
{
	const HmsStream *stream;
	const HmsGroup *group;
	const HmsReadRequest *request;
	TimestampTz now;
	HmsMessages *out;
	Snapshot	snapshot;
	Relation	rel;			/* the delivery table */
	bool		writing;		/* the next three are open */
	HmsWriter	writer;
	TupleTableSlot *locked;		/* the row as locked */
	TupleTableSlot *fresh;		/* its replacement */
	text	   *consumer;
	HmsLogView	view;
	bool		view_open;
	int64		view_above;		/* the view has the messages with higher ids */
	int			burials;
	bool		full;
} Claim;

static void
close_view(Claim *claim)
{
	if (claim->view_open)
		hms_log_release(&claim->view);
	claim->view_open = false;
}

/* The message of a delivery; the log is opened at the first need, from there on upwards. */
static bool
fetch_message(Claim *claim, const HmsDelivery *delivery, HmsMessage *message)
{
	if (claim->view_open && delivery->id <= claim->view_above)
		close_view(claim);
	if (!claim->view_open)
	{
		claim->view_above = delivery->id - 1;
		hms_log_view(&claim->view, claim->stream->log_relid,
					 claim->stream->namespace_id, claim->view_above, PG_INT64_MAX);
		claim->view_open = true;
	}
	return hms_log_fetch(claim->stream, &claim->view, claim->snapshot,
						 delivery->priority, delivery->id, message);
}

/* The lease of 'delivery' to our consumer, written over the locked row. */
static void
lease_row(Claim *claim, HmsDelivery *delivery, HmsMessage *message)
{
	int64		ack_wait_us = claim->request->ack_wait_us >= 0 ?
	claim->request->ack_wait_us : claim->group->ack_wait_us;

	hms_delivery_lease(delivery, claim->group, claim->now, ack_wait_us,
					   (struct varlena *) claim->consumer);
	hms_delivery_fill(claim->fresh, delivery);
	hms_update_locked(&claim->writer, &claim->locked->tts_tid, claim->fresh, claim->snapshot);
	hms_delivery_note_due(claim->group->incarnation, delivery->priority, delivery->due_at);
	message->token = delivery->token;
	message->lease_until = delivery->lease_until;
}

/* Hand out one locked, due delivery. */
static void
hand_out(Claim *claim, HmsDelivery *delivery)
{
	const HmsReadRequest *request = claim->request;
	bool		expired = delivery->has_token;
	HmsMessage	message;

	if (!fetch_message(claim, delivery, &message))
	{
		hms_delete_locked(claim->rel, &claim->locked->tts_tid, claim->snapshot);
		hms_effects_count_group(claim->group->group_id, HMS_GROUP_MISSING, 1);
		return;
	}
	if (request->no_ack)
	{
		hms_delete_locked(claim->rel, &claim->locked->tts_tid, claim->snapshot);
		delivery->attempts++;
		if (TIMESTAMP_IS_NOBEGIN(delivery->first_delivered_at))
			delivery->first_delivered_at = claim->now;
	}
	else
		lease_row(claim, delivery, &message);

	message.attempts = delivery->attempts;
	message.retries = delivery->retries;
	message.first_delivered_at = delivery->first_delivered_at;
	message.delivered_at = claim->now;
	hms_messages_add(claim->out, &message);
	if (expired)
		hms_effects_count_group(claim->group->group_id, HMS_GROUP_EXPIRED, 1);
}

/* True when the message of a delivery still fits into the request. */
static bool
fits(Claim *claim, const HmsDelivery *delivery)
{
	HmsMessage	message;

	if (claim->request->max_bytes == 0 || claim->out->n == 0 ||
		!fetch_message(claim, delivery, &message))
		return true;
	return claim->out->bytes + hms_message_bytes(&message) <= claim->request->max_bytes;
}

/* Open what only writing needs: most claims find nothing. */
static void
begin_writing(Claim *claim)
{
	if (claim->writing)
		return;
	hms_writer_open(&claim->writer, RelationGetRelid(claim->rel));
	claim->locked = table_slot_create(claim->rel, NULL);
	claim->fresh = MakeSingleTupleTableSlot(RelationGetDescr(claim->rel), &TTSOpsVirtual);
	claim->writing = true;
}

/*
 * One visible index row; it may be locked, exhausted or free.  A row that is
 * not wanted is not locked either: others may have it meanwhile.
 */
static void
visit(Claim *claim, TupleTableSlot *seen)
{
	HmsDelivery delivery;
	bool		exhausted;

	hms_delivery_read(seen, &delivery);
	exhausted = hms_delivery_exhausted(claim->group, &delivery);
	if (exhausted && claim->burials >= MAX_BURIALS)
		return;
	if (!exhausted && !fits(claim, &delivery))
	{
		claim->full = true;
		return;
	}

	begin_writing(claim);
	if (hms_lock_row(claim->rel, &seen->tts_tid, claim->snapshot,
					 claim->locked, LockTupleNoKeyExclusive, false) != HMS_ROW_OK)
		return;
	HMS_DEBUG_POINT("claim-locked");
	hms_delivery_read(claim->locked, &delivery);
	hms_delivery_note_replaced(&delivery);

	if (!exhausted)
		hand_out(claim, &delivery);
	else
	{
		HmsMessage	message;
		bool		found = fetch_message(claim, &delivery, &message);

		hms_bury_locked(claim->group, claim->rel, &claim->locked->tts_tid,
						claim->snapshot, &delivery, found ? &message : NULL,
						HMS_REASON_MAX_DELIVER, claim->now);
		claim->burials++;
	}
}

/* Walk one priority level. */
static void
claim_level(Claim *claim, int priority)
{
	HmsHintKey	key;
	HmsHintScan hint;
	ScanKeyData keys[4];
	HmsScan		scan;
	TimestampTz first_due = DT_NOEND;

	/* A scan that looks at nothing must not report that it met nothing. */
	if (claim->full || claim->out->n >= claim->request->max_messages)
		return;

	hms_hint_key(&key, hms_relset()->delivery_rel, claim->group->incarnation, priority);
	hms_hint_begin(&hint, &key, hms_effects_own_low(&key), !hms_advancer_alive());
	claim->snapshot = RegisterSnapshot(GetLatestSnapshot());

	hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, claim->group->incarnation);
	hms_key_int2(&keys[1], 2, BTEqualStrategyNumber, priority);
	hms_key_time(&keys[2], 3, BTGreaterEqualStrategyNumber, hint.lo);
	hms_key_time(&keys[3], 3, BTLessEqualStrategyNumber, claim->now);
	hms_scan_begin(&scan, claim->rel, hms_relset()->delivery_claim_idx,
				   claim->snapshot, 4, keys);
	while (!claim->full && claim->out->n < claim->request->max_messages &&
		   hms_scan_next(&scan, ForwardScanDirection))
	{
		CHECK_FOR_INTERRUPTS();
		if (TIMESTAMP_IS_NOEND(first_due))
		{
			bool		isnull;

			first_due = DatumGetTimestampTz(slot_getattr(scan.slot, HMS_DELIVERY_DUE_AT, &isnull));
		}
		visit(claim, scan.slot);
	}
	hms_scan_end(&scan);
	hms_hint_end(&hint, TIMESTAMP_IS_NOEND(first_due) ? claim->now : first_due);
	close_view(claim);
	UnregisterSnapshot(claim->snapshot);
}

/*
 * hms_claim_due
 *		Add due deliveries of a group to 'out', from the priority 'top' down to
 *		'bottom', up to the request's limits.
 *
 * Takes RowExclusiveLock on the delivery table, and tuple locks on what it hands
 * out.  The former is kept only if there was something to hand out: a reader
 * that sleeps must not stand in the way of DDL.  Never waits.
 */
void
hms_claim_due(const HmsStream *stream, const HmsGroup *group,
			  const HmsReadRequest *request, TimestampTz now, int top, int bottom,
			  HmsMessages *out)
{
	Claim		claim = {
		.stream = stream,
		.group = group,
		.request = request,
		.now = now,
		.out = out,
		.consumer = cstring_to_text(request->consumer)
	};

	claim.rel = table_open(hms_relset()->delivery_rel, RowExclusiveLock);
	for (int level = top; level >= bottom; level--)
		claim_level(&claim, level);
	if (claim.writing)
	{
		ExecDropSingleTupleTableSlot(claim.fresh);
		ExecDropSingleTupleTableSlot(claim.locked);
		hms_writer_close(&claim.writer, false);

		/* No-op unless something was written. */
		CommandCounterIncrement();
	}
	table_close(claim.rel, claim.writing ? NoLock : RowExclusiveLock);
	HMS_DEBUG_POINT("claim-end");
}
