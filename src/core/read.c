/*-------------------------------------------------------------------------
 *
 * read.c
 *	  Reading: due deliveries first, then the log, perhaps waiting.
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
 * A read looks first without a lock and leaves when there is nothing.  It does not
 * return empty while the log holds work that was committed before the call, except after
 * hotmesh_stream.advance_wait in all spent waiting for a cursor or the advancer; that is counted.
 *
 * Waiting readers sleep on shmem/wakeup.c.  The first waiter of a group also
 * watches the clock for it: the nearest due time, and a probe each second for what no
 * callback announces (COMMIT PREPARED, a lost signal).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "core/cursor.h"
#include "core/delivery.h"
#include "core/privilege.h"
#include "core/read.h"
#include "core/tasks_core.h"
#include "core/xid.h"
#include "debug/debug_point.h"
#include "guc.h"
#include "shmem/effects.h"
#include "shmem/slots.h"
#include "shmem/wakeup.h"
#include "storage/relset.h"

/* Ready rows left for each reader that waits for the cursor, per message it wants. */
#define READY_PER_WAITER	8
#define READY_MAX_WANT		4
#define FALLBACK_TICK_MS	1000
#define NO_SLOT_POLL_MS		100

/* One attempt to read. */
typedef struct Attempt
{
	HmsReadRequest request;		/* with what is still wanted */
	HmsStream	stream;
	HmsGroup	group;
	HmsGroupSlot *slot;			/* NULL when shared memory is full */
	TimestampTz now;
	TimestampTz give_up_at;		/* advance_wait is over */
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

static long
ms_until(TimestampTz when)
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
	long		left = ms_until(at->give_up_at);

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
	return ms_until(at->give_up_at) > 0;
}

/* Advance once; true when the cursor was ours, whatever it gave. */
static bool
advance_inline(Attempt *at, bool waiting, HmsAdvanceResult *result)
{
	HmsAdvance	adv = {.want = still_wanted(at),.have = at->out->n};
	int			waiters = 0;

	if (at->slot != NULL)
		waiters = hms_cursor_waiters(at->slot) - (waiting ? 1 : 0);

	if (waiters > 0 && adv.want <= READY_MAX_WANT && !at->request.no_ack)
		adv.ready = READY_PER_WAITER * waiters * adv.want;
	if (at->request.max_bytes > 0)
		adv.max_bytes = Max(at->request.max_bytes - at->out->bytes, 1);
	hms_cursor_advance(&at->stream, &at->group, at->now, &adv);
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

/* Claim ready and due rows; true when there were any. */
static bool
claim_more(Attempt *at)
{
	int			before = at->out->n;

	at->now = HMS_NOW();
	hms_claim_due(&at->stream, &at->group, &at->request, at->now, at->out);
	return at->out->n > before;
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

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (advance_inline(at, waiting, &result))
		{
			if (at->out->n > 0 || result == HMS_ADVANCE_NOTHING_LEFT)
				break;
			continue;			/* it met delayed messages only: go on */
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
		if (claim_more(at) || !hms_cursor_has_work(&at->stream, &at->group, NULL))
			break;
	}
	if (waiting)
		hms_cursor_wait_cancel(at->slot);
}

/* The way through the advancer; false when there is none and inline must do. */
static bool
read_through_advancer(Attempt *at)
{
	for (;;)
	{
		long		left = ms_until(at->give_up_at);
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
				(void) hms_cursor_wait_sleep(at->slot, Min(ms_until(at->give_up_at), 100));
			hms_cursor_wait_cancel(at->slot);
		}
		if (!hms_cursor_has_work(&at->stream, &at->group, NULL) && !claim_more(at))
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

/* Messages from the log, after the due ones did not suffice. */
static void
read_log(Attempt *at)
{
	Size		first_bytes = busy_bytes;
	bool		advancer = at->slot != NULL && hms_advancer_alive();

	if (busy_incarnation != at->group.incarnation &&
		!hms_cursor_has_work(&at->stream, &at->group, &first_bytes))
		return;

	if (must_be_inline(at) || !advancer)
	{
		read_inline(at);
		return;
	}

	/*
	 * The short path keeps the cursor until the client has taken the rows, so it
	 * hands out no more than a socket swallows.
	 */
	if (at->request.short_path &&
		first_bytes * still_wanted(at) <= (Size) hms_inline_bytes)
	{
		if (at->request.max_bytes == 0 || at->request.max_bytes > hms_inline_bytes)
			at->request.max_bytes = at->out->bytes + hms_inline_bytes;
		read_inline(at);
		return;
	}
	if (!read_through_advancer(at))
		read_inline(at);
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

/* One attempt, not sleeping for new messages. */
static void
read_once(const HmsReadRequest *request, HmsMessages *out)
{
	Attempt		at = {.request = *request,.out = out};
	bool		asynchronous = !request->no_ack;

	hms_stream_by_name(request->stream, &at.stream);
	hms_privilege_check(HMS_PRIV_CONSUME, at.stream.stream_id, at.stream.name);
	hms_group_by_name(&at.stream, request->group, &at.group);
	(void) hms_xid_offset();
	at.slot = hms_group_slot(hms_relset()->delivery_rel, at.group.incarnation);
	at.now = HMS_NOW();
	at.give_up_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), hms_advance_wait_ms);

	if (asynchronous)
		hms_effects_claim_begin();
	hms_claim_due(&at.stream, &at.group, &at.request, at.now, out);
	if (out->n == 0 || (still_wanted(&at) > 0 && request->max_bytes == 0) ||
		(still_wanted(&at) > 0 && out->bytes < request->max_bytes))
		read_log(&at);
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

/* A reader that waits. */
typedef struct Sleeper
{
	HmsWaiter  *waiter;			/* NULL when the table is full: it polls */
	const HmsGroup *group;
	TimestampTz deadline;
	TimestampTz due;			/* nearest due time of the group, for its first waiter */
} Sleeper;

/* How long to sleep; the first waiter of a group watches the clock for all. */
static long
sleep_ms(Sleeper *sleeper)
{
	long		ms = ms_until(sleeper->deadline);

	if (sleeper->waiter == NULL)
		return Min(ms, NO_SLOT_POLL_MS);
	if (hms_wait_is_first(sleeper->waiter))
	{
		if (hms_wait_take_timer(sleeper->waiter))
		{
			sleeper->due = hms_group_next_due(sleeper->group, HMS_NOW());
			hms_wait_set_timer(sleeper->waiter, sleeper->due);
		}
		ms = Min(ms, FALLBACK_TICK_MS);
		if (!TIMESTAMP_IS_NOEND(sleeper->due))
			ms = Min(ms, TimestampDifferenceMilliseconds(HMS_NOW(), sleeper->due));
	}
	return Max(ms, 0);
}

/*
 * Sleep until there is a reason to look again or the deadline has passed: a
 * signal for us, the timer, or that we became the first waiter.
 */
static void
sleep_until_reason(Sleeper *sleeper)
{
	bool		was_first = sleeper->waiter != NULL && hms_wait_is_first(sleeper->waiter);

	/* The look before may have changed what is due next. */
	sleeper->due = hms_group_next_due(sleeper->group, HMS_NOW());
	if (sleeper->waiter != NULL)
		hms_wait_set_timer(sleeper->waiter, sleeper->due);
	for (;;)
	{
		int			rc;

		rc = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					   sleep_ms(sleeper), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if ((rc & WL_TIMEOUT) != 0 || sleeper->waiter == NULL ||
			hms_wait_take_signal(sleeper->waiter))
			return;
		if (!was_first && hms_wait_is_first(sleeper->waiter))
			return;
	}
}

/*
 * Read, and sleep while there is nothing, until the deadline.  The waiter is entered before the
 * look, so that a commit between look and sleep finds it.
 */
static void
read_waiting(const HmsReadRequest *request, TimestampTz deadline, HmsMessages *out)
{
	HmsStream	stream;
	HmsGroup	group;
	Sleeper		sleeper = {.group = &group,.deadline = deadline};
	int64		incarnation;

	hms_stream_by_name(request->stream, &stream);
	hms_group_by_name(&stream, request->group, &group);
	incarnation = group.incarnation;
	sleeper.waiter = hms_wait_enter(stream.stream_id, incarnation);
	for (;;)
	{
		read_once(request, out);
		if (out->n > 0 || ms_until(deadline) <= 0)
			break;
		sleep_until_reason(&sleeper);

		/* Dropped: an error.  Dropped and created again: not what we waited for either. */
		hms_stream_by_name(request->stream, &stream);
		hms_group_by_name(&stream, request->group, &group);
		if (group.incarnation != incarnation)
			ereport(ERROR,
					(errcode(HMS_ERRCODE_UNKNOWN_GROUP),
					 errmsg("consumer group \"%s\" of stream \"%s\" was dropped",
							request->group, request->stream)));
	}
	if (sleeper.waiter != NULL)
		hms_wait_leave(sleeper.waiter, out->n > 0);
}

void
hms_read(const HmsReadRequest *request, HmsMessages *out)
{
	TimestampTz deadline = GetCurrentTimestamp() + request->wait_us;

	read_once(request, out);
	if (out->n == 0 && request->wait_us > 0)
		read_waiting(request, deadline, out);
}

/* One look of wait(): raises when the stream or group is gone. */
static bool
look(const char *stream_name, const char *group_name, HmsStream *stream, HmsGroup *group)
{
	hms_stream_by_name(stream_name, stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream->stream_id, stream->name);
	hms_group_by_name(stream, group_name, group);
	return hms_group_has_work(stream, group, HMS_NOW());
}

bool
hms_wait_for_work(const char *stream_name, const char *group_name, int64 timeout_us,
				  void (*commit) (void))
{
	HmsStream	stream;
	HmsGroup	group;
	Sleeper		sleeper = {.group = &group};
	bool		found;

	sleeper.deadline = GetCurrentTimestamp() + timeout_us;
	found = look(stream_name, group_name, &stream, &group);
	sleeper.waiter = hms_wait_enter(stream.stream_id, group.incarnation);
	for (;;)
	{
		found = found || look(stream_name, group_name, &stream, &group);
		if (found || ms_until(sleeper.deadline) <= 0)
			break;
		commit();
		sleep_until_reason(&sleeper);
	}
	if (sleeper.waiter != NULL)
		hms_wait_leave(sleeper.waiter, found);
	return found;
}
