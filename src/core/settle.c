/*-------------------------------------------------------------------------
 *
 * settle.c
 *	  Ack, nack, reject and extend.
 *
 * Whoever settles compares the message id and the random token of the hand-out,
 * under the row's lock: after a redelivery, a redrive or a new incarnation the
 * old receipt finds another token, or no row.  A lapsed lease that nobody else
 * got still has its token and can be settled.  A bare id settles whatever hand-out
 * is current.
 *
 * No waiting: a row that another transaction holds counts as lost.  When that
 * transaction rolls back, the message is delivered again.
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
#include "shmem/effects.h"
#include "storage/relset.h"

#define TOKEN_DIGITS	16

/* Receipts whose ids differ by no more are looked for in one scan. */
#define MAX_GAP			64

/* One call. */
typedef struct Settling
{
	const HmsStream *stream;
	const HmsGroup *group;
	const HmsSettle *how;
	TimestampTz now;
	Relation	rel;			/* the delivery table */
	Snapshot	snapshot;
	HmsWriter	writer;			/* this and the slots not for an ack, which
								 * only deletes */
	TupleTableSlot *locked;
	TupleTableSlot *fresh;
} Settling;

static void
malformed_receipt(const char *text)
{
	ereport(ERROR,
			(errcode(HMS_ERRCODE_MALFORMED_RECEIPT),
			 errmsg("malformed receipt \"%s\"", text),
			 errhint("A receipt is what read() returned in its column \"receipt\", or a message id.")));
}

void
hms_receipt_parse(const char *text, HmsReceipt *receipt)
{
	const char *p = text;
	uint64		id = 0;
	uint64		token = 0;
	int			digits = 0;

	for (; *p >= '0' && *p <= '9'; p++)
	{
		if (id > (PG_INT64_MAX - (*p - '0')) / 10)
			malformed_receipt(text);
		id = id * 10 + (*p - '0');
	}
	if (p == text)
		malformed_receipt(text);
	receipt->id = (int64) id;
	receipt->has_token = *p == ':';
	receipt->token = 0;
	if (*p == '\0')
		return;
	if (*p++ != ':')
		malformed_receipt(text);

	for (; digits < TOKEN_DIGITS && *p != '\0'; p++, digits++)
	{
		if (*p >= '0' && *p <= '9')
			token = token << 4 | (uint64) (*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			token = token << 4 | (uint64) (*p - 'a' + 10);
		else
			malformed_receipt(text);
	}
	if (digits != TOKEN_DIGITS || *p != '\0')
		malformed_receipt(text);
	receipt->token = (int64) token;
}

char *
hms_receipt_format(int64 id, int64 token)
{
	return psprintf("%lld:%016llx", (long long) id, (unsigned long long) token);
}

/* True when the receipt addresses the hand-out in 'delivery'. */
static bool
receipt_fits(const HmsReceipt *receipt, const HmsDelivery *delivery)
{
	if (receipt->has_token)
		return delivery->has_token && delivery->token == receipt->token;

	/* A bare id needs a message that was handed out at least once. */
	return !TIMESTAMP_IS_NOBEGIN(delivery->delivered_at);
}

/* Delete: the whole of an ack. */
static bool
ack_row(Settling *s, TupleTableSlot *seen, const HmsDelivery *delivery)
{
	if (hms_delete_row(s->rel, &seen->tts_tid, s->snapshot) != HMS_ROW_OK)
		return false;
	hms_delivery_note_replaced(delivery);
	hms_effects_count_group(s->group->group_id, HMS_GROUP_ACKED, 1);
	if (s->now > delivery->delivered_at)
		hms_effects_count_group(s->group->group_id, HMS_GROUP_PROCESSING_US,
								s->now - delivery->delivered_at);
	return true;
}

/* The dead letter of a locked delivery. */
static void
bury(Settling *s, const HmsDelivery *delivery, const char *reason)
{
	HmsLogView	view;
	HmsMessage	message;
	bool		found;

	hms_log_view(&view, s->stream->log_relid, s->stream->namespace_id,
				 delivery->id - 1, delivery->id);
	found = hms_log_fetch(s->stream, &view, s->snapshot, delivery->priority,
						  delivery->id, &message);
	hms_log_release(&view);
	(void) hms_bury_locked(s->group, s->rel, &s->locked->tts_tid, s->snapshot,
						   delivery, found ? &message : NULL, reason, s->now);

	/*
	 * Prepared or not must not depend on which attempt it was: as for any
	 * other nack.
	 */
	hms_effects_refuse_prepare(s->how->verb == HMS_REJECT ? "reject" : "nack");
}

/* Write the changed delivery over the locked row. */
static void
rewrite(Settling *s, HmsDelivery *delivery)
{
	hms_delivery_fill(s->fresh, delivery);
	hms_update_locked(&s->writer, &s->locked->tts_tid, s->fresh, s->snapshot);
	hms_delivery_note_due(s->group->incarnation, delivery->priority, delivery->due_at);
}

/* Nobody holds it any longer. */
static void
release(HmsDelivery *delivery, TimestampTz due_at)
{
	delivery->has_token = false;
	delivery->lease_until = DT_NOBEGIN;
	delivery->due_at = due_at;
}

static void
nack_row(Settling *s, HmsDelivery *delivery)
{
	const HmsSettle *how = s->how;
	TimestampTz due_at = s->now;

	if (how->error != NULL)
		delivery->last_error = how->error;
	hms_effects_count_group(s->group->group_id, HMS_GROUP_NACKED, 1);
	if (how->retry)
		delivery->retries++;
	else if (how->count_attempt && hms_delivery_exhausted(s->group, delivery))
	{
		bury(s, delivery, HMS_REASON_MAX_DELIVER);
		return;
	}
	if (how->delay_us >= 0)
		due_at += how->delay_us;
	else
		due_at += hms_group_backoff_us(s->group, delivery->attempts);
	if (!how->count_attempt && !how->retry)
		delivery->attempts = Max(delivery->attempts - 1, 0);
	release(delivery, due_at);
	rewrite(s, delivery);
}

static void
extend_row(Settling *s, HmsDelivery *delivery)
{
	int64		lease_us = s->how->delay_us >= 0 ? s->how->delay_us : s->group->ack_wait_us;

	if (lease_us == 0)
		release(delivery, s->now);
	else
	{
		delivery->lease_until = s->now + lease_us;
		delivery->due_at = hms_delivery_due_after(s->group, delivery);
	}
	rewrite(s, delivery);
}

/* Settle the delivery in 'seen'; false when it is lost. */
static bool
settle_row(Settling *s, TupleTableSlot *seen, const HmsReceipt *receipt)
{
	HmsDelivery delivery;

	hms_delivery_read(seen, &delivery);
	if (!receipt_fits(receipt, &delivery))
		return false;
	if (s->how->verb == HMS_ACK)
		return ack_row(s, seen, &delivery);

	/* A bare id of a released delivery: there is no lease to extend. */
	if (s->how->verb == HMS_EXTEND && !delivery.has_token)
		return false;

	if (hms_lock_row(s->rel, &seen->tts_tid, s->snapshot, s->locked,
					 LockTupleNoKeyExclusive, false) != HMS_ROW_OK)
		return false;
	hms_delivery_read(s->locked, &delivery);
	hms_delivery_note_replaced(&delivery);
	switch (s->how->verb)
	{
		case HMS_NACK:
			nack_row(s, &delivery);
			break;
		case HMS_REJECT:
			bury(s, &delivery, s->how->reason);
			break;
		case HMS_EXTEND:
			extend_row(s, &delivery);
			break;
		case HMS_ACK:
			break;
	}
	return true;
}

/* Next visible delivery and its id; false at the end of the scan. */
static bool
next_row(HmsScan *scan, int64 *id)
{
	bool		isnull;

	if (!hms_scan_next(scan, ForwardScanDirection))
		return false;
	*id = DatumGetInt64(slot_getattr(scan->slot, HMS_DELIVERY_ID, &isnull));
	return true;
}

static int
compare_receipts(const void *a, const void *b)
{
	const HmsReceipt *x = a;
	const HmsReceipt *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Position the scan on the deliveries of a group with first_id <= id <= last_id. */
static void
scan_run(Settling *s, HmsScan *scan, bool *open, int64 first_id, int64 last_id)
{
	ScanKeyData keys[3];

	hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, s->group->incarnation);
	hms_key_int8(&keys[1], 2, BTGreaterEqualStrategyNumber, first_id);
	hms_key_int8(&keys[2], 2, BTLessEqualStrategyNumber, last_id);
	if (*open)
		hms_scan_restart(scan, 3, keys);
	else
		hms_scan_begin(scan, s->rel, hms_relset()->delivery_id_idx,
					   s->snapshot, 3, keys);
	*open = true;
}

/* The last id of the run of neighbours that begins with the first receipt. */
static int64
end_of_run(const HmsReceipt *receipts, int n)
{
	int			i = 0;

	while (i + 1 < n && receipts[i + 1].id - receipts[i].id <= MAX_GAP)
		i++;
	return receipts[i].id;
}

/*
 * Settle sorted receipts in few passes over the index: the hand-outs of a batch
 * mostly stand side by side.  Each run of neighbours is a scan with both ends
 * bounded, as what was settled between two runs may have left any number of
 * dead entries.
 */
static int
settle_sorted(Settling *s, const HmsReceipt *receipts, int n)
{
	HmsScan		scan;
	bool		open = false;
	bool		have_row = false;
	int64		row_id = 0;
	int64		run_end = -1;
	int			settled = 0;

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (receipts[i].id > run_end)
		{
			run_end = end_of_run(&receipts[i], n - i);
			scan_run(s, &scan, &open, receipts[i].id, run_end);
			have_row = next_row(&scan, &row_id);
		}
		while (have_row && row_id < receipts[i].id)
			have_row = next_row(&scan, &row_id);

		/*
		 * A receipt given twice finds its row changed by ourselves: settled
		 * once.
		 */
		if (have_row && row_id == receipts[i].id && settle_row(s, scan.slot, &receipts[i]))
			settled++;
	}
	if (open)
		hms_scan_end(&scan);
	return settled;
}

static void
begin_writing(Settling *s)
{
	hms_writer_open(&s->writer, RelationGetRelid(s->rel));
	s->locked = table_slot_create(s->rel, NULL);
	s->fresh = MakeSingleTupleTableSlot(RelationGetDescr(s->rel), &TTSOpsVirtual);
}

static void
end_writing(Settling *s)
{
	ExecDropSingleTupleTableSlot(s->fresh);
	ExecDropSingleTupleTableSlot(s->locked);
	hms_writer_close(&s->writer, false);
}

int
hms_settle(const HmsStream *stream, const HmsGroup *group,
		   const HmsReceipt *receipts, int nreceipts,
		   const HmsSettle *how, TimestampTz now)
{
	Settling	s = {.stream = stream,.group = group,.how = how,.now = now};
	HmsReceipt *sorted = palloc(sizeof(HmsReceipt) * nreceipts);
	int			settled;

	memcpy(sorted, receipts, sizeof(HmsReceipt) * nreceipts);
	qsort(sorted, nreceipts, sizeof(HmsReceipt), compare_receipts);

	s.rel = table_open(hms_relset()->delivery_rel, RowExclusiveLock);
	if (how->verb != HMS_ACK)
		begin_writing(&s);
	s.snapshot = RegisterSnapshot(GetLatestSnapshot());
	settled = settle_sorted(&s, sorted, nreceipts);
	UnregisterSnapshot(s.snapshot);
	if (how->verb != HMS_ACK)
		end_writing(&s);
	table_close(s.rel, NoLock);

	if (settled < nreceipts)
		hms_effects_count_group(group->group_id, HMS_GROUP_LOST_SETTLES, nreceipts - settled);
	if (settled > 0)
		CommandCounterIncrement();
	pfree(sorted);
	return settled;
}

/* The delivery that a receipt addresses, copied but for its pointers; false when there is none. */
static bool
find_delivery(Settling *s, const HmsReceipt *receipt, HmsDelivery *delivery, HmsScan *scan)
{
	bool		open = false;

	s->rel = table_open(hms_relset()->delivery_rel, AccessShareLock);
	s->snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan_run(s, scan, &open, receipt->id, receipt->id);
	if (!hms_scan_next(scan, ForwardScanDirection))
		return false;
	hms_delivery_read(scan->slot, delivery);
	return receipt_fits(receipt, delivery);
}

static void
end_finding(Settling *s, HmsScan *scan)
{
	hms_scan_end(scan);
	UnregisterSnapshot(s->snapshot);
	table_close(s->rel, AccessShareLock);
}

bool
hms_settle_peek(const HmsStream *stream, const HmsGroup *group, const HmsReceipt *receipt,
				HmsMessage *message)
{
	Settling	s = {.stream = stream,.group = group};
	HmsDelivery delivery;
	HmsLogView	view;
	HmsScan		scan;
	bool		found = find_delivery(&s, receipt, &delivery, &scan);

	if (found)
	{
		hms_log_view(&view, stream->log_relid, stream->namespace_id, receipt->id - 1, receipt->id);
		found = hms_log_fetch(stream, &view, s.snapshot, delivery.priority, delivery.id, message);
		hms_log_release(&view);
	}
	if (found)
	{
		message->attempts = delivery.attempts;
		message->retries = delivery.retries;
	}
	end_finding(&s, &scan);
	return found;
}

bool
hms_held_by(const HmsGroup *group, const HmsReceipt *receipt, const char *consumer)
{
	Settling	s = {.group = group};
	HmsDelivery delivery;
	HmsScan		scan;
	bool		held = find_delivery(&s, receipt, &delivery, &scan) && delivery.has_token &&
	delivery.consumer != NULL &&
	strcmp(text_to_cstring((text *) delivery.consumer), consumer) == 0;

	end_finding(&s, &scan);
	return held;
}
