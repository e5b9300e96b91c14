/*-------------------------------------------------------------------------
 *
 * delivery.h
 *	  Rows of hotmesh_stream.delivery: what a group was handed or owes later.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_DELIVERY_H
#define HMS_CORE_DELIVERY_H

#include "core/log.h"
#include "core/stream_cache.h"
#include "storage/write.h"

/* Columns of hotmesh_stream.delivery. */
enum
{
	HMS_DELIVERY_INCARNATION = 1,
	HMS_DELIVERY_ID,
	HMS_DELIVERY_DUE_AT,
	HMS_DELIVERY_ATTEMPTS,
	HMS_DELIVERY_PRIORITY,
	HMS_DELIVERY_LEASE_UNTIL,
	HMS_DELIVERY_TOKEN,
	HMS_DELIVERY_FIRST_DELIVERED_AT,
	HMS_DELIVERY_DELIVERED_AT,
	HMS_DELIVERY_CONSUMER,
	HMS_DELIVERY_LAST_ERROR,
	HMS_DELIVERY_RETRIES,
	HMS_DELIVERY_NCOLUMNS = HMS_DELIVERY_RETRIES
};

typedef struct HmsDelivery
{
	int64		incarnation;
	int64		id;
	TimestampTz due_at;
	int32		attempts;
	int32		priority;
	TimestampTz lease_until;	/* DT_NOBEGIN = null */
	bool		has_token;
	int64		token;
	TimestampTz first_delivered_at; /* DT_NOBEGIN = null, never handed out */
	TimestampTz delivered_at;	/* likewise */
	struct varlena *consumer;	/* NULL = null; points into the slot */
	struct varlena *last_error;
	int32		retries;		/* after an error answer */
} HmsDelivery;

extern void hms_delivery_read(TupleTableSlot *slot, HmsDelivery *delivery);
extern void hms_delivery_fill(TupleTableSlot *slot, const HmsDelivery *delivery);

/* A new lease of a message to 'consumer': counts the attempt, draws a token, sets all times. */
extern void hms_delivery_lease(HmsDelivery *delivery, const HmsGroup *group, TimestampTz now,
							   int64 ack_wait_us, struct varlena *consumer);

/* When the lease of a delivery makes the message due again. */
extern TimestampTz hms_delivery_due_after(const HmsGroup *group, const HmsDelivery *delivery);

/* True when the last allowed attempt was handed out; retries after an error answer do not count. */
extern bool hms_delivery_exhausted(const HmsGroup *group, const HmsDelivery *delivery);

/* Rows to insert together. */
typedef struct HmsDeliveryBatch HmsDeliveryBatch;
extern HmsDeliveryBatch *hms_delivery_batch(const HmsGroup *group);

/* The log message in 'slot' becomes due at 'due_at', never handed out yet. */
extern void hms_delivery_add_due(HmsDeliveryBatch *batch, TupleTableSlot *slot, TimestampTz due_at);
extern void hms_delivery_add(HmsDeliveryBatch *batch, const HmsDelivery *delivery);

/* Insert them; notes their due times as effects; *lowest_due is DT_NOEND without rows.  Returns the count. */
extern int	hms_delivery_write(HmsDeliveryBatch *batch, TimestampTz *lowest_due);

/* Note that a row due at 'due_at' was written. */
extern void hms_delivery_note_due(int64 incarnation, int priority, TimestampTz due_at);

/* Note that a row is about to be updated or deleted: it comes back when we roll back. */
extern void hms_delivery_note_replaced(const HmsDelivery *delivery);

#endif							/* HMS_CORE_DELIVERY_H */
