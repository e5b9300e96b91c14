/*-------------------------------------------------------------------------
 *
 * advancer.c
 *	  The worker that advances groups on behalf of readers, checks hints and
 *	  buries exhausted deliveries.
 *
 * One process per database that has the extension.  A reader that must not
 * hold its group's cursor until its own transaction ends asks for ready rows
 * (shmem/group_slot.h) and waits for the answer; the advancer advances the
 * cursor in a transaction of its own and answers after the commit.  It never
 * waits for a cursor: one that is held is answered with BUSY.
 *
 * Requests come first: they are answered before and after every other task,
 * and no task takes longer than TASK_MS, short of waiting for the disk.
 *
 * While it lives, readers leave the paced rescan of the low-water hints to it
 * (shmem/hint.h): looking whether a group has work does that.
 *
 * An error ends the process.  Its requests stay unanswered; the readers see
 * that no advancer lives and advance themselves, until the launcher has
 * started another one.
 *
 * A database without the xid_offset row was never used or is being restored:
 * it is left alone until a session has settled the offset.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/memutils.h"

#include "core/cursor.h"
#include "core/stream_cache.h"
#include "core/tasks_core.h"
#include "core/xid.h"
#include "debug/debug_point.h"
#include "guc.h"
#include "shmem/effects.h"
#include "shmem/group_slot.h"
#include "shmem/slots.h"
#include "worker/advancer.h"
#include "worker/process.h"

/* Ready rows left for each row that a reader asked for. */
#define READY_AHEAD			4

/* Longest time one task keeps requests waiting. */
#define TASK_MS				10

/* A task that has more to do rests this many times as long as it ran. */
#define REST_FACTOR			9

/* Deliveries buried in one call. */
#define BURY_ROWS			100

typedef struct AdvancerTask
{
	TimestampTz (*run) (TimestampTz now);	/* returns when it is due again */
	TimestampTz due_at;
} AdvancerTask;

/* False in a database that has no xid_offset row. */
static bool ready = false;

static TimestampTz
next_round(TimestampTz now)
{
	return TimestampTzPlusMilliseconds(now, hms_naptime_ms);
}

/* See whether the database still has the extension and may be worked on. */
static TimestampTz
look_at_database(TimestampTz now)
{
	hms_process_begin("looking at the extension");
	ready = hms_xid_offset_known();
	hms_process_commit();
	hms_worker_installed(ready);
	return next_round(now);
}

/* Advance a group as a reader asked; the caller has a transaction. */
static HmsAdvanceResult
advance_group(const HmsAdvanceJob *job)
{
	HmsAdvance	advance = {.level = HMS_ALL_LEVELS};
	HmsStream	stream;
	HmsGroup	group;

	if (!hms_group_by_id(job->group_id, &group) ||
		group.incarnation != job->incarnation ||
		!hms_stream_by_id(job->stream_id, &stream))
		return HMS_ADVANCE_NOTHING_LEFT;

	/* More than was asked for: the next readers find theirs without asking. */
	advance.ready = Min(job->wanted, HMS_ADVANCE_ROWS / READY_AHEAD) * READY_AHEAD;
	hms_effects_claim_begin();
	hms_cursor_advance(&stream, &group, HMS_NOW(), &advance);
	hms_effects_claim_end();
	return advance.result;
}

/* Answer all requests that wait. */
static void
answer_requests(void)
{
	HmsAdvanceJob job;

	while (ready && hms_advance_next_job(&job))
	{
		HmsAdvanceResult result;

		hms_process_begin("advancing a group");
		result = advance_group(&job);
		HMS_DEBUG_POINT("advancer-before-commit");
		hms_process_commit();

		/* After the commit: who is woken must see the rows. */
		hms_advance_answer(&job, result);
		hms_process_pause();
	}
}

/*
 * Look at one group: check its hints, and bury what has used up its attempts.
 * True when there may be more to bury.
 */
static bool
look_at_group(const HmsGroup *group)
{
	HmsStream	stream;
	TimestampTz now = HMS_NOW();
	int			buried;

	return hms_stream_by_id(group->stream_id, &stream) &&
		hms_group_has_work(&stream, group, now) &&
		group->max_deliver > 0 &&
		hms_bury_exhausted(&stream, group, now, BURY_ROWS, &buried);
}

/*
 * Look at all groups.  A round may take several calls; the next one starts one
 * naptime after its end.
 */
static TimestampTz
look_at_groups(TimestampTz now)
{
	static int32 last_group_id = 0; /* done in this round */
	TimestampTz end = TimestampTzPlusMilliseconds(now, TASK_MS);
	HmsGroup   *groups;
	int			ngroups;
	int			i = 0;

	if (!ready)
		return next_round(now);

	hms_process_begin("looking at consumer groups");
	ngroups = hms_list_groups(0, &groups);
	while (i < ngroups && groups[i].group_id <= last_group_id)
		i++;
	while (i < ngroups && GetCurrentTimestamp() < end)
	{
		if (!look_at_group(&groups[i]))
			last_group_id = groups[i++].group_id;
	}
	hms_process_commit();

	now = GetCurrentTimestamp();
	if (i < ngroups)
		return TimestampTzPlusMilliseconds(now, TASK_MS * REST_FACTOR);
	last_group_id = 0;
	return next_round(now);
}

/* Run what is due; returns for how long to sleep in milliseconds. */
static long
run_due_tasks(AdvancerTask *tasks, int ntasks)
{
	TimestampTz next = DT_NOEND;

	for (int i = 0; i < ntasks; i++)
	{
		TimestampTz now = GetCurrentTimestamp();

		if (tasks[i].due_at <= now)
			tasks[i].due_at = tasks[i].run(now);
		answer_requests();
		next = Min(next, tasks[i].due_at);
	}
	return TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next);
}

/*
 * hms_advancer_main
 *		Entry point of the advancer.
 */
void
hms_advancer_main(Datum main_arg)
{
	AdvancerTask tasks[] = {
		{look_at_database, DT_NOBEGIN},
		{look_at_groups, DT_NOBEGIN},
	};

	hms_process_start();
	for (;;)
	{
		long		sleep_ms;

		hms_process_pause();
		sleep_ms = run_due_tasks(tasks, lengthof(tasks));

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 sleep_ms, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}
