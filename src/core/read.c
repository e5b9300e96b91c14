/*-------------------------------------------------------------------------
 *
 * read.c
 *	  Reading: due deliveries first, then the log.
 *
 * Two ways lead from the log to a consumer:
 *
 * - Inline: the reader advances the cursor itself and inserts its deliveries already
 *	 leased.  The cursor stays locked until its transaction ends, so this is
 *	 for bare autocommit reads (and for whoever published to the stream or
 *	 holds its cursor in this transaction already, and when no advancer runs).
 * - Through the advancer: it advances in its own short transaction and leaves ready
 *	 rows, which readers claim like any due delivery (claim.c).  Any number of
 *	 consumers can then hold read + work + ack in one long transaction.
 *
 * Where a stream has priorities, both are done for one priority after the other.
 *
 * A read looks first without a lock and leaves when there is nothing.  It does not
 * return empty while the log holds work that was committed before the call, except after
 * hotmesh_stream.advance_wait in all spent waiting for a cursor or the advancer; that is counted.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "core/cursor.h"
#include "core/delivery.h"
#include "core/privilege.h"
#include "core/read.h"
#include "core/throttle.h"
#include "core/xid.h"
#include "debug/debug_point.h"
#include "guc.h"
#include "shmem/effects.h"
#include "shmem/slots.h"
#include "storage/relset.h"

/* Ready rows left for each reader that waits for the cursor, per message it wants. */
#define READY_PER_WAITER	8
#define READY_MAX_WANT		4

/* One fair read in so many begins with the lowest priority. */
#define FAIR_TURN			8

/* One attempt to read. */
typedef struct Attempt
{
	HmsReadRequest request;		/* with what is still wanted */
	HmsStream	stream;
	HmsGroup	group;
	HmsGroupSlot *slot;			/* NULL when shared memory is full */
	int			level;			/* the priority that is being read */
	TimestampTz now;
	TimestampTz give_up_at;		/* advance_wait is over; DT_NOBEGIN = nothing
								 * was waited for */
	HmsMessages *out;
} Attempt;

/* The group that gave this backend messages last, and their mean size: no need to look first. */
static int64 busy_incarnation = 0;
static Size busy_bytes = 0;

void
hms_messages_add(HmsMessages *messages, const HmsMessage *message)
{
	if (messages->n == messages->capacity)
	{
		messages->capacity = Max(messages->capacity * 2, 16);
		messages->items = messages->items == NULL ?
			palloc(sizeof(HmsMessage) * messages->capacity) :
			repalloc_huge(messages->items, sizeof(HmsMessage) * messages->capacity);
	}
	messages->items[messages->n++] = *message;
	messages->bytes += hms_message_bytes(message);
}

long
hms_ms_until(TimestampTz when)
{
	return TimestampDifferenceMilliseconds(GetCurrentTimestamp(), when);
}

/* Insert the leases of what an inline advance handed to us. */
static void
write_leases(Attempt *at, HmsAdvance *adv)
{
	const HmsReadRequest *request = &at->request;
	HmsDeliveryBatch *batch = hms_delivery_batch(&at->group);
	struct varlena *consumer = (struct varlena *) cstring_to_text(request->consumer);
	TimestampTz lowest;

	for (int i = 0; i < adv->nmessages; i++)
	{
		HmsMessage *message = &adv->messages[i];
		HmsDelivery delivery = {
			.incarnation = at->group.incarnation,
			.id = message->id,
			.priority = message->priority,
			.first_delivered_at = DT_NOBEGIN
		};

		if (!request->no_ack)
		{
			hms_delivery_lease(&delivery, &at->group, at->now,
							   request->ack_wait_us >= 0 ? request->ack_wait_us : at->group.ack_wait_us,
							   consumer);
			message->token = delivery.token;
			message->lease_until = delivery.lease_until;
			hms_delivery_add(batch, &delivery);
		}
		message->attempts = 1;
		message->retries = 0;
		message->first_delivered_at = at->now;
		message->delivered_at = at->now;
		hms_messages_add(at->out, message);
	}
	hms_delivery_write(batch, &lowest);
	CommandCounterIncrement();
}

/* What this attempt may still take. */
static int
still_wanted(const Attempt *at)
{
	return at->request.max_messages - at->out->n;
}

/*
 * Wait until the cursor is released or our time is up; false when it is up.
 * The wait was prepared before the failed attempt, so no release is missed.
 */
static bool
wait_for_cursor(Attempt *at)
{
	long		left = hms_ms_until(at->give_up_at);

	if (left <= 0)
		return false;
	if (at->slot == NULL)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 1, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		return true;
	}
	(void) hms_cursor_wait_sleep(at->slot, left);
	return hms_ms_until(at->give_up_at) > 0;
}

/* Advance once; true when the cursor was ours, whatever it gave. */
static bool
advance_inline(Attempt *at, bool waiting, HmsAdvanceResult *result)
{
	HmsAdvance	adv = {.level = at->level,.want = still_wanted(at),.have = at->out->n};
	MemoryContext context;
	MemoryContext old_context;
	int			waiters = 0;

	if (at->slot != NULL)
		waiters = hms_cursor_waiters(at->slot) - (waiting ? 1 : 0);

	if (waiters > 0 && adv.want <= READY_MAX_WANT && !at->request.no_ack)
		adv.ready = READY_PER_WAITER * waiters * adv.want;
	if (at->request.max_bytes > 0)
		adv.max_bytes = Max(at->request.max_bytes - at->out->bytes, 1);

	/* A read that meets delayed messages only advances many times. */
	context = AllocSetContextCreate(CurrentMemoryContext, "hotmesh_stream advance",
									ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);
	hms_cursor_advance(&at->stream, &at->group, at->now, &adv);
	MemoryContextSwitchTo(old_context);
	if (adv.nmessages == 0)
		MemoryContextDelete(context);

	*result = adv.result;
	if (adv.result == HMS_ADVANCE_BUSY)
		return false;

	hms_effects_refuse_prepare("read");
	if (adv.nmessages > 0)
		write_leases(at, &adv);
	if (adv.nready > 0)
		hms_effects_wake_group(at->group.incarnation, adv.nready);
	return true;
}

/* Claim ready and due rows of a range of priorities; true when there were any. */
static bool
claim_range(Attempt *at, int top, int bottom)
{
	int			before = at->out->n;

	at->now = HMS_NOW();
	hms_claim_due(&at->stream, &at->group, &at->request, at->now, top, bottom, at->out);
	return at->out->n > before;
}

/* The same for the priority that is being read, and those above. */
static bool
claim_more(Attempt *at)
{
	return claim_range(at, at->stream.levels - 1, at->level);
}

/* True when the log has something of the priority that is being read, or of one above. */
static bool
log_has_more(const Attempt *at)
{
	HmsCursorWork work;

	return hms_cursor_look(&at->stream, &at->group, &work) &&
		(work.pending || work.levels >> at->level != 0);
}

/*
 * The inline way.  Returns when something was handed out, nothing is left, or
 * time is up.  Nobody queues for the cursor before a first attempt has failed.
 */
static void
read_inline(Attempt *at)
{
	HmsAdvanceResult result;
	bool		waiting = false;
	bool		took_cursor = false;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (advance_inline(at, waiting, &result))
		{
			took_cursor = true;
			if (at->out->n > 0 || result == HMS_ADVANCE_NOTHING_LEFT)
				break;

			/*
			 * It met delayed messages only, or left the late ones of all
			 * priorities as ready rows.
			 */
			if (at->stream.levels > 1 && claim_more(at))
				break;
			continue;
		}
		if (!waiting && at->slot != NULL)
		{
			hms_cursor_wait_prepare(at->slot);
			waiting = true;
			continue;
		}
		if (!wait_for_cursor(at))
		{
			hms_effects_count_group(at->group.group_id, HMS_GROUP_STALLED, 1);
			break;
		}

		/* The holder may have left ready rows for us, or nothing at all. */
		if (claim_more(at) || !log_has_more(at))
			break;
	}
	if (!waiting)
		return;
	hms_cursor_wait_cancel(at->slot);

	/*
	 * The release that woke us was for one waiter: the next one may have our
	 * turn.
	 */
	if (!took_cursor)
		hms_cursor_released(at->slot);
}

/* The way through the advancer; false when there is none and inline must do. */
static bool
read_through_advancer(Attempt *at)
{
	for (;;)
	{
		long		left = hms_ms_until(at->give_up_at);
		HmsAdvanceResult result;

		if (left <= 0)
			break;
		result = hms_advance_request(at->slot, at->stream.stream_id, at->group.group_id,
									 still_wanted(at), left);
		if (result == HMS_ADVANCE_NO_ADVANCER)
			return false;
		if (claim_more(at) || result == HMS_ADVANCE_NOTHING_LEFT)
			return true;
		if (result == HMS_ADVANCE_BUSY)
		{
			hms_cursor_wait_prepare(at->slot);
			if (hms_cursor_holder(at->slot) != 0)
				(void) hms_cursor_wait_sleep(at->slot, Min(hms_ms_until(at->give_up_at), 100));
			hms_cursor_wait_cancel(at->slot);
		}
		if (!log_has_more(at) && !claim_more(at))
			return true;
		if (at->out->n > 0)
			return true;
	}
	hms_effects_count_group(at->group.group_id, HMS_GROUP_STALLED, 1);
	return true;
}

/* True when this transaction has to advance by itself. */
static bool
must_be_inline(const Attempt *at)
{
	return hms_effects_holds_cursor(at->group.incarnation) ||
		hms_effects_has_published(at->stream.stream_id);
}

/* Messages of one priority from the log, which has some; the first of about 'first_bytes'. */
static void
read_log(Attempt *at, int level, Size first_bytes)
{
	bool		advancer = at->slot != NULL && hms_advancer_alive();

	at->level = level;

	/* Looking for due deliveries is no waiting, however long it took. */
	if (TIMESTAMP_IS_NOBEGIN(at->give_up_at))
		at->give_up_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), hms_advance_wait_ms);

	if (must_be_inline(at) || !advancer)
	{
		read_inline(at);
		return;
	}

	/*
	 * The short path keeps the cursor until the client has taken the rows, so
	 * it hands out no more than a socket swallows.
	 */
	if (at->request.short_path &&
		first_bytes * still_wanted(at) <= (Size) hms_inline_bytes)
	{
		int64		limit = at->out->bytes + hms_inline_bytes;

		if (at->request.max_bytes == 0 || at->request.max_bytes > limit)
			at->request.max_bytes = limit;
		read_inline(at);
		return;
	}
	if (!read_through_advancer(at))
		read_inline(at);
}

/* True when the request has room for more than was found so far. */
static bool
wants_more(const Attempt *at)
{
	const HmsReadRequest *request = &at->request;

	return at->out->n == 0 ||
		(still_wanted(at) > 0 &&
		 (request->max_bytes == 0 || at->out->bytes < request->max_bytes));
}

/* A stream without priorities: the due ones, then the log. */
static void
read_plain(Attempt *at)
{
	HmsCursorWork work = {.first_bytes = busy_bytes};

	(void) claim_range(at, 0, 0);
	if (wants_more(at) &&
		(busy_incarnation == at->group.incarnation ||
		 hms_cursor_look(&at->stream, &at->group, &work)))
		read_log(at, 0, work.first_bytes);
}

/* From the highest priority to the lowest: the due ones of each, then its log. */
static void
read_by_priority(Attempt *at)
{
	HmsCursorWork work;
	int			top = at->stream.levels - 1;

	(void) hms_cursor_look(&at->stream, &at->group, &work);

	/* Late messages may be of any priority: they become ready rows first. */
	if (work.pending)
		work.levels |= 1 << top;
	while (top >= 0 && wants_more(at))
	{
		int			bottom = work.levels == 0 ? 0 : pg_leftmost_one_pos32(work.levels);

		(void) claim_range(at, top, bottom);
		if ((work.levels & (1 << bottom)) != 0 && wants_more(at))
			read_log(at, bottom, work.first_bytes);
		work.levels &= ~(1 << bottom);
		top = bottom - 1;
	}
}

/* The other way round, so that the lower priorities get on under any load. */
static void
read_lowest_first(Attempt *at)
{
	HmsCursorWork work;

	(void) hms_cursor_look(&at->stream, &at->group, &work);
	for (int level = 0; level < at->stream.levels && wants_more(at); level++)
	{
		(void) claim_range(at, level, level);
		if ((work.levels & (1 << level)) != 0 && wants_more(at))
			read_log(at, level, work.first_bytes);
	}
}

/* One read in FAIR_TURN begins with the lowest priority, if the request is a fair one. */
static bool
is_fair_turn(const Attempt *at)
{
	return at->request.fair && at->slot != NULL &&
		hms_group_next_turn(at->slot) % FAIR_TURN == 0;
}

static int
compare_messages(const void *a, const void *b)
{
	const HmsMessage *x = a;
	const HmsMessage *y = b;

	if (x->priority != y->priority)
		return y->priority - x->priority;
	return (x->id > y->id) - (x->id < y->id);
}

/*
 * hms_read_once
 *		One attempt to read, not sleeping for new messages.
 */
void
hms_read_once(const HmsReadRequest *request, HmsMessages *out)
{
	Attempt		at = {.request = *request,.out = out};
	bool		asynchronous = !request->no_ack;

	hms_stream_by_name(request->stream, &at.stream);
	hms_privilege_check(HMS_PRIV_CONSUME, at.stream.stream_id, at.stream.name);
	hms_group_by_name(&at.stream, request->group, &at.group);
	out->held_until = request->throttled ?
		hms_throttle_until(&at.group, request->consumer) : DT_NOBEGIN;
	if (out->held_until > HMS_NOW())
		return;
	(void) hms_xid_offset();
	at.slot = hms_group_slot(hms_relset()->delivery_rel, at.group.incarnation);
	at.now = HMS_NOW();
	at.give_up_at = DT_NOBEGIN;

	if (asynchronous)
		hms_effects_claim_begin();
	if (at.stream.levels == 1)
		read_plain(&at);
	else if (is_fair_turn(&at))
		read_lowest_first(&at);
	else
		read_by_priority(&at);
	if (asynchronous)
		hms_effects_claim_end();

	busy_incarnation = out->n > 0 ? at.group.incarnation : 0;
	busy_bytes = out->n > 0 ? out->bytes / out->n : 0;
	hms_presence_note(at.group.group_id, request->consumer, at.now, out->n > 0);
	if (out->n == 0)
		return;
	if (out->n > 1)
		qsort(out->items, out->n, sizeof(HmsMessage), compare_messages);
	hms_effects_count_group(at.group.group_id, HMS_GROUP_DELIVERED, out->n);
	for (int i = 0; i < out->n; i++)
	{
		if (out->items[i].attempts > 1)
			hms_effects_count_group(at.group.group_id, HMS_GROUP_REDELIVERED, 1);
	}
	if (request->acks && request->short_path)
		hms_effects_late_flush();
}
