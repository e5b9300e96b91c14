/*-------------------------------------------------------------------------
 *
 * wait.c
 *	  Waiting for messages: read(wait => ...) and the procedure wait.
 *
 * Waiting readers sleep on shmem/wakeup.c: they enter first, then look, then
 * sleep, so that a commit between look and sleep sets their latch.  The first
 * waiter of a group also watches the clock for all of them: the nearest due
 * time, and a probe each second for what no callback announces (COMMIT
 * PREPARED, a lost signal).  The deadline is fixed when the call starts.
 *
 * A waiting SELECT keeps its statement's snapshot and so the xmin horizon; the
 * procedure commits before it sleeps and holds none.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/memutils.h"

#include "core/privilege.h"
#include "core/read.h"
#include "core/tasks_core.h"
#include "core/throttle.h"
#include "debug/debug_point.h"
#include "shmem/wakeup.h"
#include "storage/partman.h"

#define FALLBACK_TICK_MS	1000
#define NO_SLOT_POLL_MS		100

/* A reader that waits. */
typedef struct Sleeper
{
	const HmsStream *stream;
	HmsWaiter  *waiter;			/* NULL when the table is full: it polls */
	const HmsGroup *group;
	TimestampTz deadline;
	TimestampTz held_until;		/* a throttle holds us: not in the group's
								 * queue; DT_NOBEGIN = none does */
	TimestampTz due;			/* nearest due time of the group, for its
								 * first waiter */
} Sleeper;

static bool
is_held(const Sleeper *sleeper)
{
	return !TIMESTAMP_IS_NOBEGIN(sleeper->held_until);
}

/* How long to sleep; the first waiter of a group watches the clock for all. */
static long
sleep_ms(Sleeper *sleeper)
{
	long		ms = hms_ms_until(sleeper->deadline);

	if (sleeper->waiter == NULL)
		return Min(ms, NO_SLOT_POLL_MS);
	if (is_held(sleeper))
		return TIMESTAMP_IS_NOEND(sleeper->held_until) ? ms :
			Min(ms, hms_ms_until(sleeper->held_until));
	if (hms_wait_is_first(sleeper->waiter))
	{
		if (hms_wait_take_timer(sleeper->waiter))
		{
			sleeper->due = hms_group_next_due(sleeper->stream, sleeper->group, HMS_NOW());
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
	bool		was_first = sleeper->waiter != NULL && !is_held(sleeper) &&
	hms_wait_is_first(sleeper->waiter);

	/*
	 * The look before may have changed what is due next.  The timer is unset
	 * first, so that what commits after our search is not taken for later
	 * than a time that has passed.
	 */
	sleeper->due = DT_NOEND;
	if (was_first)
	{
		hms_wait_set_timer(sleeper->waiter, DT_NOEND);
		sleeper->due = hms_group_next_due(sleeper->stream, sleeper->group, HMS_NOW());
		hms_wait_set_timer(sleeper->waiter, sleeper->due);
	}
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
		if (!was_first && !is_held(sleeper) && hms_wait_is_first(sleeper->waiter))
			return;
	}
}

/* One look of many: what it allocates is freed unless it found messages. */
static void
read_again(const HmsReadRequest *request, HmsMessages *out)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hotmesh_stream look",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);

	hms_read_once(request, out);
	MemoryContextSwitchTo(old_context);
	if (out->n == 0)
		MemoryContextDelete(context);
}

/*
 * Enter the queue that fits what the last look said; true when it is another one than
 * before, so that a look is due.  A signal that we had taken goes to the next in the old queue.
 */
static bool
change_queue(Sleeper *sleeper, const HmsMessages *out)
{
	bool		was_held = is_held(sleeper);
	bool		hold = out->held_until > HMS_NOW();

	sleeper->held_until = hold ? out->held_until : DT_NOBEGIN;
	if (hold == was_held)
		return false;
	if (sleeper->waiter != NULL)
		hms_wait_leave(sleeper->waiter, false);
	sleeper->waiter = hold ? hms_wait_enter(0, HMS_HELD_READERS) :
		hms_wait_enter(sleeper->stream->stream_id, sleeper->group->incarnation);
	return true;
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
	Sleeper		sleeper = {.stream = &stream,.group = &group,.deadline = deadline,.held_until = DT_NOBEGIN};
	int64		incarnation;

	hms_stream_by_name(request->stream, &stream);
	hms_group_by_name(&stream, request->group, &group);
	incarnation = group.incarnation;
	sleeper.waiter = hms_wait_enter(stream.stream_id, incarnation);
	for (;;)
	{
		read_again(request, out);
		if (out->n > 0 || hms_ms_until(deadline) <= 0)
			break;
		if (change_queue(&sleeper, out))
			continue;
		sleep_until_reason(&sleeper);

		/*
		 * Dropped: an error.  Dropped and created again: not what we waited
		 * for either.
		 */
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

	hms_read_once(request, out);
	if (out->n == 0 && request->wait_us > 0)
		read_waiting(request, deadline, out);
}

/* One look of wait(): raises when the stream or group is gone. */
static bool
look(const char *stream_name, const char *group_name, HmsStream *stream, HmsGroup *group)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hotmesh_stream look",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old_context = MemoryContextSwitchTo(context);
	bool		found;

	hms_stream_by_name(stream_name, stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream->stream_id, stream->name);
	hms_group_by_name(stream, group_name, group);
	found = hms_group_has_work(stream, group, HMS_NOW());
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	return found;
}

/*
 * hms_wait_for_work
 *		The procedure wait: true when there may be work.
 */
bool
hms_wait_for_work(const char *stream_name, const char *group_name, int64 timeout_us,
				  bool nonatomic)
{
	HmsStream	stream;
	HmsGroup	group;
	Sleeper		sleeper = {.stream = &stream,.group = &group,.held_until = DT_NOBEGIN};
	bool		found;

	sleeper.deadline = GetCurrentTimestamp() + timeout_us;
	hms_procedure_begin(nonatomic);
	found = look(stream_name, group_name, &stream, &group);
	sleeper.waiter = hms_wait_enter(stream.stream_id, group.incarnation);
	for (;;)
	{
		found = found || look(stream_name, group_name, &stream, &group);
		if (found || hms_ms_until(sleeper.deadline) <= 0)
			break;
		hms_procedure_commit();
		sleep_until_reason(&sleeper);
	}
	if (sleeper.waiter != NULL)
		hms_wait_leave(sleeper.waiter, found);
	hms_procedure_end();
	return found;
}
