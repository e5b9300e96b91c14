/*-------------------------------------------------------------------------
 *
 * delivery.c
 *	  Rows of hotmesh_stream.delivery.
 *
 * One row per (group incarnation, message) that the group was handed or owes
 * later.  Its states follow from its columns:
 *
 *		ready or due	due_at has passed; token is null, or its lease has lapsed
 *		leased			token and lease_until set, lease_until in the future
 *		delayed			due_at in the future, no token
 *
 * due_at of a leased row is the end of the lease plus the pause after this
 * attempt, so a lapsed lease needs nobody to become due again.  Rows are written through
 * the access methods; every due time written is noted for the hint (shmem/effects.h).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tableam.h"
#include "miscadmin.h"

#include "core/delivery.h"
#include "shmem/effects.h"
#include "storage/relset.h"

#define TOKENS_AT_A_TIME	128

/* Rows formed and inserted at a time. */
#define WRITE_CHUNK			64

struct HmsDeliveryBatch
{
	const HmsGroup *group;
	HmsDelivery *rows;
	int			nrows;
	int			capacity;
};

void
hms_delivery_read(TupleTableSlot *slot, HmsDelivery *delivery)
{
	bool		isnull;

#define GET(attno, to)	(to(slot_getattr(slot, attno, &isnull)))
	delivery->incarnation = GET(HMS_DELIVERY_INCARNATION, DatumGetInt64);
	delivery->id = GET(HMS_DELIVERY_ID, DatumGetInt64);
	delivery->due_at = GET(HMS_DELIVERY_DUE_AT, DatumGetTimestampTz);
	delivery->attempts = GET(HMS_DELIVERY_ATTEMPTS, DatumGetInt32);
	delivery->priority = GET(HMS_DELIVERY_PRIORITY, DatumGetInt16);
	delivery->lease_until = GET(HMS_DELIVERY_LEASE_UNTIL, DatumGetTimestampTz);
	if (isnull)
		delivery->lease_until = DT_NOBEGIN;
	delivery->token = GET(HMS_DELIVERY_TOKEN, DatumGetInt64);
	delivery->has_token = !isnull;
	delivery->first_delivered_at = GET(HMS_DELIVERY_FIRST_DELIVERED_AT, DatumGetTimestampTz);
	if (isnull)
		delivery->first_delivered_at = DT_NOBEGIN;
	delivery->delivered_at = GET(HMS_DELIVERY_DELIVERED_AT, DatumGetTimestampTz);
	if (isnull)
		delivery->delivered_at = DT_NOBEGIN;
	delivery->consumer = (struct varlena *) GET(HMS_DELIVERY_CONSUMER, DatumGetPointer);
	if (isnull)
		delivery->consumer = NULL;
	delivery->last_error = (struct varlena *) GET(HMS_DELIVERY_LAST_ERROR, DatumGetPointer);
	if (isnull)
		delivery->last_error = NULL;
	delivery->retries = GET(HMS_DELIVERY_RETRIES, DatumGetInt32);
	if (isnull)
		delivery->retries = 0;
#undef GET
}

void
hms_delivery_fill(TupleTableSlot *slot, const HmsDelivery *delivery)
{
	Datum	   *values = slot->tts_values;
	bool	   *nulls = slot->tts_isnull;

	ExecClearTuple(slot);
	memset(nulls, true, slot->tts_tupleDescriptor->natts * sizeof(bool));
#define SET(attno, value)	(values[(attno) - 1] = (value), nulls[(attno) - 1] = false)
	SET(HMS_DELIVERY_INCARNATION, Int64GetDatum(delivery->incarnation));
	SET(HMS_DELIVERY_ID, Int64GetDatum(delivery->id));
	SET(HMS_DELIVERY_DUE_AT, TimestampTzGetDatum(delivery->due_at));
	SET(HMS_DELIVERY_ATTEMPTS, Int32GetDatum(delivery->attempts));
	SET(HMS_DELIVERY_PRIORITY, Int16GetDatum(delivery->priority));
	if (!TIMESTAMP_IS_NOBEGIN(delivery->lease_until))
		SET(HMS_DELIVERY_LEASE_UNTIL, TimestampTzGetDatum(delivery->lease_until));
	if (delivery->has_token)
		SET(HMS_DELIVERY_TOKEN, Int64GetDatum(delivery->token));
	if (!TIMESTAMP_IS_NOBEGIN(delivery->first_delivered_at))
		SET(HMS_DELIVERY_FIRST_DELIVERED_AT, TimestampTzGetDatum(delivery->first_delivered_at));
	if (!TIMESTAMP_IS_NOBEGIN(delivery->delivered_at))
		SET(HMS_DELIVERY_DELIVERED_AT, TimestampTzGetDatum(delivery->delivered_at));
	if (delivery->consumer != NULL)
		SET(HMS_DELIVERY_CONSUMER, PointerGetDatum(delivery->consumer));
	if (delivery->last_error != NULL)
		SET(HMS_DELIVERY_LAST_ERROR, PointerGetDatum(delivery->last_error));
	if (delivery->retries > 0)
		SET(HMS_DELIVERY_RETRIES, Int32GetDatum(delivery->retries));
#undef SET
	ExecStoreVirtualTuple(slot);
}

bool
hms_delivery_exhausted(const HmsGroup *group, const HmsDelivery *delivery)
{
	return group->max_deliver > 0 &&
		delivery->attempts - delivery->retries >= group->max_deliver;
}

TimestampTz
hms_delivery_due_after(const HmsGroup *group, const HmsDelivery *delivery)
{
	/* The last attempt is followed by death, not by a pause. */
	if (hms_delivery_exhausted(group, delivery))
		return delivery->lease_until;
	return delivery->lease_until + hms_group_backoff_us(group, delivery->attempts);
}

/*
 * 64 random bits.  The generator is asked for many at a time: a call costs more
 * than the bits.
 */
static int64
random_token(void)
{
	static int64 tokens[TOKENS_AT_A_TIME];
	static int	left = 0;

	if (left == 0)
	{
		if (!pg_strong_random(tokens, sizeof(tokens)))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate a random receipt")));
		left = TOKENS_AT_A_TIME;
	}
	return tokens[--left];
}

void
hms_delivery_lease(HmsDelivery *delivery, const HmsGroup *group, TimestampTz now,
				   int64 ack_wait_us, struct varlena *consumer)
{
	delivery->token = random_token();
	delivery->has_token = true;
	delivery->attempts++;
	delivery->lease_until = now + ack_wait_us;
	delivery->due_at = hms_delivery_due_after(group, delivery);
	delivery->delivered_at = now;
	if (TIMESTAMP_IS_NOBEGIN(delivery->first_delivered_at))
		delivery->first_delivered_at = now;
	delivery->consumer = consumer;
}

HmsDeliveryBatch *
hms_delivery_batch(const HmsGroup *group)
{
	HmsDeliveryBatch *batch = palloc0(sizeof(HmsDeliveryBatch));

	batch->group = group;
	return batch;
}

void
hms_delivery_add(HmsDeliveryBatch *batch, const HmsDelivery *delivery)
{
	if (batch->nrows == batch->capacity)
	{
		batch->capacity = Max(batch->capacity * 2, 16);
		batch->rows = batch->rows == NULL ?
			palloc(sizeof(HmsDelivery) * batch->capacity) :
			repalloc(batch->rows, sizeof(HmsDelivery) * batch->capacity);
	}
	batch->rows[batch->nrows++] = *delivery;
}

void
hms_delivery_add_due(HmsDeliveryBatch *batch, TupleTableSlot *slot, TimestampTz due_at)
{
	bool		isnull;
	HmsDelivery delivery = {
		.incarnation = batch->group->incarnation,
		.id = DatumGetInt64(slot_getattr(slot, HMS_LOG_ID, &isnull)),
		.priority = DatumGetInt16(slot_getattr(slot, HMS_LOG_PRIORITY, &isnull)),
		.due_at = due_at,
		.lease_until = DT_NOBEGIN,
		.first_delivered_at = DT_NOBEGIN,
		.delivered_at = DT_NOBEGIN
	};

	hms_delivery_add(batch, &delivery);
}

static void
note_lowest(TimestampTz *lowest, const HmsDelivery *delivery)
{
	lowest[delivery->priority] = Min(lowest[delivery->priority], delivery->due_at);
}

int
hms_delivery_write(HmsDeliveryBatch *batch, TimestampTz *lowest_due)
{
	TupleTableSlot *slots[WRITE_CHUNK];
	TimestampTz lowest[HMS_PRIORITY_LEVELS];
	int			nslots = Min(WRITE_CHUNK, batch->nrows);
	HmsWriter	writer;

	*lowest_due = DT_NOEND;
	if (batch->nrows == 0)
		return 0;

	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
		lowest[level] = DT_NOEND;
	hms_writer_open(&writer, hms_relset()->delivery_rel);
	for (int i = 0; i < nslots; i++)
		slots[i] = MakeSingleTupleTableSlot(RelationGetDescr(writer.rel), &TTSOpsVirtual);
	for (int done = 0; done < batch->nrows; done += WRITE_CHUNK)
	{
		int			n = Min(WRITE_CHUNK, batch->nrows - done);

		for (int i = 0; i < n; i++)
		{
			hms_delivery_fill(slots[i], &batch->rows[done + i]);
			note_lowest(lowest, &batch->rows[done + i]);
		}
		hms_insert_many(&writer, slots, n);
	}
	for (int i = 0; i < nslots; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
	hms_writer_close(&writer, false);

	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
	{
		if (TIMESTAMP_IS_NOEND(lowest[level]))
			continue;
		hms_delivery_note_due(batch->group->incarnation, level, lowest[level]);
		*lowest_due = Min(*lowest_due, lowest[level]);
	}
	return batch->nrows;
}

void
hms_delivery_note_due(int64 incarnation, int priority, TimestampTz due_at)
{
	HmsHintKey	key;

	hms_hint_key(&key, hms_relset()->delivery_rel, incarnation, priority);
	hms_effects_due(&key, due_at);
}

void
hms_delivery_note_replaced(const HmsDelivery *delivery)
{
	HmsHintKey	key;

	hms_hint_key(&key, hms_relset()->delivery_rel, delivery->incarnation, delivery->priority);
	hms_effects_replaced(&key, delivery->due_at);
}
