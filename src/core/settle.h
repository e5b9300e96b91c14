/*-------------------------------------------------------------------------
 *
 * settle.h
 *	  Ending or changing hand-outs: ack, nack, reject, extend, claim, release.
 *
 * Nothing here waits: a delivery held by another transaction counts as lost.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_SETTLE_H
#define HMS_CORE_SETTLE_H

#include "core/read.h"

typedef struct HmsReceipt
{
	int64		id;
	bool		has_token;		/* false: a bare id, addresses the current
								 * delivery */
	int64		token;
} HmsReceipt;

/* Parse 'id' or 'id:16 hex digits'; raises HMS_ERRCODE_MALFORMED_RECEIPT. */
extern void hms_receipt_parse(const char *text, HmsReceipt *receipt);

/* The receipt of a hand-out; palloc'd. */
extern char *hms_receipt_format(int64 id, int64 token);

typedef enum HmsSettleVerb
{
	HMS_ACK,
	HMS_NACK,
	HMS_REJECT,
	HMS_EXTEND
} HmsSettleVerb;

typedef struct HmsSettle
{
	HmsSettleVerb verb;
	int64		delay_us;		/* nack: -1 = the group's backoff; extend: the
								 * new lease, -1 = the group's */
	struct varlena *error;		/* nack: jsonb or NULL */
	bool		count_attempt;	/* nack */
	bool		retry;			/* nack: it is one after an error answer,
								 * which no number of deliveries limits */
	const char *reason;			/* reject */
} HmsSettle;

/* Settle deliveries by receipt; returns how many were really settled. */
extern int	hms_settle(const HmsStream *stream, const HmsGroup *group,
					   const HmsReceipt *receipts, int nreceipts,
					   const HmsSettle *how, TimestampTz now);

/*
 * The message of a delivery, with its retries and attempts; false when the receipt would settle nothing
 * or the message is gone.
 */
extern bool hms_settle_peek(const HmsStream *stream, const HmsGroup *group,
							const HmsReceipt *receipt, HmsMessage *message);

/* True when the delivery that a bare id addresses is leased to this consumer. */
extern bool hms_held_by(const HmsGroup *group, const HmsReceipt *receipt, const char *consumer);

/*
 * Take over hand-outs that are at least min_idle_us old, by ids (nids = -1: any) above
 * after_id, in id order.
 */
extern void hms_claim(const HmsStream *stream, const HmsGroup *group, const char *consumer,
					  int64 min_idle_us, const int64 *ids, int nids, int64 after_id,
					  int max_messages, TimestampTz now, HmsMessages *out);

/* Hand-outs that are not settled, in id order; nothing changes. */
extern int	hms_list_pending(const HmsStream *stream, const HmsGroup *group, const char *consumer,
							 int64 min_idle_us, int64 after_id, int max_messages,
							 TimestampTz now, HmsMessages *out);

/* Release everything a consumer holds; returns how many. */
extern int	hms_release_consumer(const HmsGroup *group, const char *consumer, TimestampTz now);

/* Forget that a consumer was ever seen. */
extern void hms_forget_consumer(const HmsGroup *group, const char *consumer);

#endif							/* HMS_CORE_SETTLE_H */
