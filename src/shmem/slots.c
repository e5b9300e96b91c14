/*-------------------------------------------------------------------------
 *
 * slots.c
 *	  Worker slots in shared memory.
 *
 * One slot per database, with one entry per kind of worker.  All fields are
 * protected by one LWLock, which nobody holds across catalog access,
 * allocation or ereport.  hms_advancer_alive() alone reads without it.
 *
 * How a slot goes from start to exit, and who writes what, stands in
 * slot_life.c.  A slot without a running worker means that PostgreSQL counts no
 * worker in that database; that is what hms_workers_hold() waits for.
 *
 * A worker that dies by a signal makes the postmaster reset shared memory, all
 * slots included.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <signal.h>

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/wait_event.h"

#include "guc.h"
#include "shmem/slots_private.h"

/* A worker that has not left by itself after this time gets SIGTERM. */
#define POLITE_STOP_MS	200

HmsSlots   *hms_slots = NULL;

/* The database this backend holds, InvalidOid if none. */
static Oid	my_hold = InvalidOid;

/*
 * hms_slots_size
 *		Bytes of shared memory that the slots need.
 */
Size
hms_slots_size(void)
{
	return add_size(offsetof(HmsSlots, databases),
					mul_size(hms_max_databases, sizeof(HmsDatabaseSlot)));
}

/*
 * hms_slots_init
 *		Set up the slots in 'memory', or attach to them when 'found'.
 */
void
hms_slots_init(void *memory, bool found)
{
	hms_slots = memory;
	if (!found)
	{
		memset(hms_slots, 0, hms_slots_size());
		LWLockInitialize(&hms_slots->lock, LWLockNewTrancheId());
		ConditionVariableInit(&hms_slots->left);
		pg_atomic_init_u32(&hms_slots->layout, 1);
		hms_slots->ndatabases = hms_max_databases;
	}
	LWLockRegisterTranche(hms_slots->lock.tranche, "HotmeshStreamSlots");
}

/*
 * hms_slots_find
 *		Index of a database's slot, -1 if none; InvalidOid finds a free one.
 *
 * The lock is held, or the caller can bear a stale answer.
 */
int
hms_slots_find(Oid dboid)
{
	for (int i = 0; i < hms_slots->ndatabases; i++)
	{
		if (hms_slots->databases[i].dboid == dboid)
			return i;
	}
	return -1;
}

/* The same, taking a free slot when there is none; -1 when all are taken.  The lock is held exclusively. */
static int
find_or_take_slot(Oid dboid)
{
	int			index = hms_slots_find(dboid);

	if (index >= 0)
		return index;
	index = hms_slots_find(InvalidOid);
	if (index >= 0)
	{
		hms_slots->databases[index].dboid = dboid;
		pg_atomic_fetch_add_u32(&hms_slots->layout, 1);
	}
	return index;
}

/*
 * hms_slots_wake_launcher
 *		Set the launcher's latch, if there is one.  The lock is held.
 */
void
hms_slots_wake_launcher(void)
{
	if (hms_slots->launcher != NULL)
		SetLatch(&hms_slots->launcher->procLatch);
}

/*
 * hms_slots_ask_to_stop
 *		Ask a worker to leave at its next pause; no-op when none runs.  The
 *		lock is held exclusively.
 */
void
hms_slots_ask_to_stop(HmsWorkerSlot *worker)
{
	if (!HMS_WORKER_RUNS(worker->state))
		return;
	worker->stop = true;
	SetLatch(&worker->proc->procLatch);
}

/*
 * hms_advancer_alive
 *		True when an advancer of the current database takes requests.
 *
 * Reads without the lock: the answer can be outdated the moment it is given
 * anyway.  The slot's index is cached until some slot gets another database.
 */
bool
hms_advancer_alive(void)
{
	static uint32 known_layout = 0;
	static int	index = -1;
	uint32		layout;
	volatile HmsDatabaseSlot *slot;

	if (hms_slots == NULL)
		return false;
	layout = pg_atomic_read_u32(&hms_slots->layout);
	if (layout != known_layout)
	{
		pg_read_barrier();
		index = hms_slots_find(MyDatabaseId);
		known_layout = layout;
	}
	if (index < 0)
		return false;
	slot = &hms_slots->databases[index];
	return slot->dboid == MyDatabaseId &&
		slot->workers[HMS_ADVANCER].state == HMS_WORKER_READY;
}

/*
 * hms_advancer_wake
 *		Set the latch of the current database's advancer, if there is one.
 *
 * Never fails, so that commit callbacks can use it.
 */
void
hms_advancer_wake(void)
{
	int			index;

	if (hms_slots == NULL)
		return;
	LWLockAcquire(&hms_slots->lock, LW_SHARED);
	index = hms_slots_find(MyDatabaseId);
	if (index >= 0)
	{
		HmsWorkerSlot *advancer = &hms_slots->databases[index].workers[HMS_ADVANCER];

		if (advancer->proc != NULL)
			SetLatch(&advancer->proc->procLatch);
	}
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_housekeeper_request
 *		Have the housekeeper of the current database started soon.
 *
 * Does nothing in a database without workers.  Never fails.
 */
void
hms_housekeeper_request(void)
{
	int			index;

	if (hms_slots == NULL)
		return;
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	index = hms_slots_find(MyDatabaseId);
	if (index >= 0)
	{
		hms_slots->databases[index].housekeeper_wanted = true;
		hms_slots_wake_launcher();
	}
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_launcher_request
 *		Have the launcher look at a database now.
 *
 * Does nothing when all slots are taken: the launcher's own rounds find the
 * database, and say what is missing.  Never fails.
 */
void
hms_launcher_request(Oid dboid)
{
	(void) hms_slot_probe(dboid);
}

/*
 * hms_slot_probe
 *		Mark a database to be looked at; false when all slots are taken.
 */
bool
hms_slot_probe(Oid dboid)
{
	int			index;

	if (hms_slots == NULL || !OidIsValid(dboid))
		return false;
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	index = find_or_take_slot(dboid);
	if (index >= 0)
	{
		hms_slots->databases[index].probe = true;
		hms_slots->databases[index].workers[HMS_ADVANCER].restart_at = DT_NOBEGIN;
		hms_slots_wake_launcher();
	}
	LWLockRelease(&hms_slots->lock);
	return index >= 0;
}

/* Does a worker of the database run?  With 'terminate', send it SIGTERM. */
static bool
workers_run(Oid dboid, bool terminate)
{
	int			index;
	bool		run = false;

	LWLockAcquire(&hms_slots->lock, LW_SHARED);
	index = hms_slots_find(dboid);
	for (int kind = 0; index >= 0 && kind < HMS_WORKER_KINDS; kind++)
	{
		HmsWorkerSlot *worker = &hms_slots->databases[index].workers[kind];

		if (!HMS_WORKER_RUNS(worker->state))
			continue;
		run = true;
		if (terminate)
			kill(worker->pid, SIGTERM);
	}
	LWLockRelease(&hms_slots->lock);
	return run;
}

/* Sleep until no worker of the database runs; false after timeout_ms. */
static bool
wait_until_left(Oid dboid, int timeout_ms, bool terminate)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), timeout_ms);
	bool		left = true;

	ConditionVariablePrepareToSleep(&hms_slots->left);
	while (workers_run(dboid, terminate))
	{
		long		rest_ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);

		terminate = false;
		if (rest_ms > 0)
			ConditionVariableTimedSleep(&hms_slots->left, rest_ms, PG_WAIT_EXTENSION);
		else
		{
			left = false;
			break;
		}
	}
	ConditionVariableCancelSleep();
	return left;
}

/*
 * hms_workers_hold
 *		Stop the workers of a database and keep them away until
 *		hms_workers_release().
 *
 * Waits until they have left the list of backends, at most timeout_ms; can be
 * interrupted.  The hold counts from the start of the call, whatever its end:
 * the caller releases it in its transaction callback, which also runs when the
 * backend is terminated.
 */
void
hms_workers_hold(Oid dboid, int timeout_ms)
{
	int			index;

	if (hms_slots == NULL)
		return;
	Assert(!OidIsValid(my_hold));

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	index = find_or_take_slot(dboid);
	if (index >= 0)
	{
		hms_slots->databases[index].holds++;
		my_hold = dboid;
		for (int kind = 0; kind < HMS_WORKER_KINDS; kind++)
			hms_slots_ask_to_stop(&hms_slots->databases[index].workers[kind]);
	}
	LWLockRelease(&hms_slots->lock);

	if (index >= 0 && !wait_until_left(dboid, POLITE_STOP_MS, false))
		(void) wait_until_left(dboid, timeout_ms, true);
}

/*
 * hms_workers_release
 *		End this backend's hold on a database.  Never fails.
 */
void
hms_workers_release(Oid dboid)
{
	int			index;

	if (hms_slots == NULL || my_hold != dboid)
		return;
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	index = hms_slots_find(dboid);
	if (index >= 0)
		hms_slots->databases[index].holds--;
	hms_slots->rescan = true;
	hms_slots_wake_launcher();
	LWLockRelease(&hms_slots->lock);
	my_hold = InvalidOid;
}

/*
 * hms_slot_of_database
 *		Copy the slot of a database; false when it has none.
 */
bool
hms_slot_of_database(Oid dboid, HmsDatabaseSlot *copy)
{
	int			index;

	if (hms_slots == NULL || !OidIsValid(dboid))
		return false;
	LWLockAcquire(&hms_slots->lock, LW_SHARED);
	index = hms_slots_find(dboid);
	if (index >= 0)
		*copy = hms_slots->databases[index];
	LWLockRelease(&hms_slots->lock);
	return index >= 0;
}

/*
 * hms_launcher_pid
 *		Process id of the launcher, 0 when none runs.
 *
 * *starved tells whether its latest attempt to start a worker found no
 * background worker slot.
 */
int
hms_launcher_pid(bool *starved)
{
	int			pid;

	*starved = false;
	if (hms_slots == NULL)
		return 0;
	LWLockAcquire(&hms_slots->lock, LW_SHARED);
	pid = hms_slots->launcher == NULL ? 0 : hms_slots->launcher->pid;
	*starved = hms_slots->starved;
	LWLockRelease(&hms_slots->lock);
	return pid;
}
