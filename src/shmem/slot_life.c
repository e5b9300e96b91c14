/*-------------------------------------------------------------------------
 *
 * slot_life.c
 *	  The life of a worker in its slot: started, attached, ready, exited.
 *
 *		STOPPED --launcher registers--> STARTING --process attaches--> ATTACHED
 *		ATTACHED <--advancer has work to do or not--> READY
 *		STARTING --held, or never attached--> EXITED
 *		ATTACHED, READY --process exits--> EXITED
 *		EXITED --launcher has looked at the end--> STOPPED
 *		STARTING --no room, or another launcher--> STOPPED
 *
 * The launcher writes STARTING and STOPPED, the worker's process everything
 * between.  All of it happens under the slots lock.
 *
 * Each start of a worker has a generation, written by the launcher when it
 * registers the process.  A process attaches only under the generation it was
 * started with, so that one that comes late, after the launcher gave up on it
 * or was replaced, leaves without having connected.  It attaches before it
 * connects, and its exit callback runs after it has left the list of backends:
 * a slot without a running worker means that PostgreSQL counts no worker in
 * that database.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"

#include "shmem/slots_private.h"

/* This process's own slot, when it is a worker. */
static HmsWorkerTicket my_ticket;
static bool my_no_extension = false;

/* --- the workers' side ------------------------------------------------------ */

/* My slot; the lock is held and the generation is still mine. */
static HmsWorkerSlot *
my_worker(void)
{
	return &hms_slots->databases[my_ticket.index].workers[my_ticket.kind];
}

/* Exit callback of a worker: tells why it left and wakes whoever waits for that. */
static void
worker_exit(int code, Datum arg)
{
	HmsWorkerSlot *worker = my_worker();

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	if (worker->generation == my_ticket.generation)
	{
		worker->state = HMS_WORKER_EXITED;
		worker->pid = 0;
		worker->proc = NULL;
		if (my_no_extension)
			worker->end = HMS_END_NO_EXTENSION;
		else if (worker->stop)
			worker->end = HMS_END_STOPPED;
		else
			worker->end = code == 0 ? HMS_END_DONE : HMS_END_FAILED;
		hms_slots_wake_launcher();
	}
	LWLockRelease(&hms_slots->lock);
	ConditionVariableBroadcast(&hms_slots->left);
}

/*
 * hms_worker_attach
 *		Occupy the slot that a start was registered for.
 *
 * Returns false when the start is void or the database is held; the process
 * then leaves with proc_exit(0).  Call before connecting: exit callbacks run
 * in reverse order, so the slot is given back after the process has left the
 * list of backends.
 */
bool
hms_worker_attach(const HmsWorkerTicket *ticket)
{
	HmsWorkerSlot *worker;
	bool		attached = false;

	my_ticket = *ticket;
	worker = my_worker();
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	if (worker->generation == ticket->generation &&
		worker->state == HMS_WORKER_STARTING)
	{
		attached = hms_slots->databases[ticket->index].holds == 0;
		worker->state = attached ? HMS_WORKER_ATTACHED : HMS_WORKER_EXITED;
		worker->end = HMS_END_STOPPED;
		if (attached)
		{
			worker->pid = MyProcPid;
			worker->proc = MyProc;
		}
		else
			hms_slots_wake_launcher();
	}
	LWLockRelease(&hms_slots->lock);

	if (attached)
		on_shmem_exit(worker_exit, (Datum) 0);
	return attached;
}

/*
 * hms_worker_stop_asked
 *		True when this worker was asked to leave.
 */
bool
hms_worker_stop_asked(void)
{
	bool		stop;

	LWLockAcquire(&hms_slots->lock, LW_SHARED);
	stop = my_worker()->stop;
	LWLockRelease(&hms_slots->lock);
	return stop;
}

/*
 * hms_worker_installed
 *		Note that the database has the extension, and whether this worker
 *		does its work or only waits.
 */
void
hms_worker_installed(bool ready)
{
	HmsDatabaseSlot *slot = &hms_slots->databases[my_ticket.index];

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	if (!slot->installed)
	{
		/* From now on the database needs a housekeeper, too. */
		slot->installed = true;
		hms_slots_wake_launcher();
	}
	my_worker()->state = ready ? HMS_WORKER_READY : HMS_WORKER_ATTACHED;
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_worker_no_extension
 *		Note that the database has no extension; the process exits next.
 */
void
hms_worker_no_extension(void)
{
	my_no_extension = true;
}

/*
 * hms_worker_vacuum_horizon
 *		The horizon of the latest vacuum of one of the hot tables.
 */
uint32
hms_worker_vacuum_horizon(int table)
{
	uint32		horizon;

	LWLockAcquire(&hms_slots->lock, LW_SHARED);
	horizon = hms_slots->databases[my_ticket.index].vacuum_horizon[table];
	LWLockRelease(&hms_slots->lock);
	return horizon;
}

/*
 * hms_worker_set_vacuum_horizon
 *		Note the horizon that a vacuum is about to use.
 */
void
hms_worker_set_vacuum_horizon(int table, uint32 horizon)
{
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	hms_slots->databases[my_ticket.index].vacuum_horizon[table] = horizon;
	LWLockRelease(&hms_slots->lock);
}

/* --- the launcher's side ----------------------------------------------------- */

static void
launcher_exit(int code, Datum arg)
{
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	hms_slots->launcher = NULL;
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_launcher_attach
 *		Become the launcher.
 *
 * What a previous launcher left is ended: starts that have not attached are
 * void, its workers are asked to leave and are started anew.
 */
void
hms_launcher_attach(void)
{
	on_shmem_exit(launcher_exit, (Datum) 0);
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	hms_slots->launcher = MyProc;
	hms_slots->starved = false;
	for (int i = 0; i < hms_slots->ndatabases; i++)
	{
		for (int kind = 0; kind < HMS_WORKER_KINDS; kind++)
		{
			HmsWorkerSlot *worker = &hms_slots->databases[i].workers[kind];

			if (worker->state == HMS_WORKER_STARTING)
			{
				worker->state = HMS_WORKER_STOPPED;
				worker->generation = ++hms_slots->generation;
			}
			hms_slots_ask_to_stop(worker);
		}
	}
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_launcher_take_rescan
 *		True when databases may have vanished since the last call.
 */
bool
hms_launcher_take_rescan(void)
{
	bool		rescan;

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	rescan = hms_slots->rescan;
	hms_slots->rescan = false;
	LWLockRelease(&hms_slots->lock);
	return rescan;
}

/*
 * hms_launcher_set_starved
 *		Note whether background worker slots have run out.
 */
void
hms_launcher_set_starved(bool starved)
{
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	hms_slots->starved = starved;
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_slot_count
 *		Number of slots, free ones included.
 */
int
hms_slot_count(void)
{
	return hms_slots->ndatabases;
}

/*
 * hms_slot_copy
 *		Copy a slot by index; false when it is free.
 */
bool
hms_slot_copy(int index, HmsDatabaseSlot *copy)
{
	LWLockAcquire(&hms_slots->lock, LW_SHARED);
	*copy = hms_slots->databases[index];
	LWLockRelease(&hms_slots->lock);
	return OidIsValid(copy->dboid);
}

/*
 * hms_slot_start
 *		Note that a worker is about to be registered, and fill its ticket.
 *
 * Returns false when the slot is free or held, or has such a worker.
 */
bool
hms_slot_start(int index, HmsWorkerKind kind, TimestampTz now, HmsWorkerTicket *ticket)
{
	HmsDatabaseSlot *slot = &hms_slots->databases[index];
	HmsWorkerSlot *worker = &slot->workers[kind];
	bool		start;

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	start = OidIsValid(slot->dboid) && slot->holds == 0 &&
		worker->state == HMS_WORKER_STOPPED;
	if (start)
	{
		worker->state = HMS_WORKER_STARTING;
		worker->stop = false;
		worker->generation = ++hms_slots->generation;
		worker->started_at = now;
		if (kind == HMS_ADVANCER)
			slot->probe = false;
		else
			slot->housekeeper_wanted = false;
		ticket->index = index;
		ticket->kind = kind;
		ticket->dboid = slot->dboid;
		ticket->generation = worker->generation;
	}
	LWLockRelease(&hms_slots->lock);
	return start;
}

/*
 * hms_slot_not_started
 *		The process of a start could not be registered: it may be tried again
 *		from restart_at on.
 */
void
hms_slot_not_started(const HmsWorkerTicket *ticket, TimestampTz restart_at)
{
	HmsDatabaseSlot *slot = &hms_slots->databases[ticket->index];
	HmsWorkerSlot *worker = &slot->workers[ticket->kind];

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	worker->state = HMS_WORKER_STOPPED;
	worker->restart_at = restart_at;
	if (ticket->kind == HMS_ADVANCER)
		slot->probe = !slot->installed;
	else
		slot->housekeeper_wanted = true;
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_slot_never_attached
 *		Note that the process of a start is gone.
 *
 * Counts as a failure when it had not attached.  A process that attached has
 * said itself how it ended, and is left as it is.
 */
void
hms_slot_never_attached(const HmsWorkerTicket *ticket)
{
	HmsWorkerSlot *worker = &hms_slots->databases[ticket->index].workers[ticket->kind];

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	if (worker->generation == ticket->generation &&
		worker->state == HMS_WORKER_STARTING)
	{
		worker->state = HMS_WORKER_EXITED;
		worker->end = HMS_END_FAILED;
		worker->generation = ++hms_slots->generation;
	}
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_slot_stopped
 *		The launcher has looked at a worker's end: it may be started again
 *		from restart_at on.
 *
 * An advancer that failed before it could see whether the extension is there
 * leaves the question open.
 */
void
hms_slot_stopped(int index, HmsWorkerKind kind, int failures, TimestampTz restart_at)
{
	HmsDatabaseSlot *slot = &hms_slots->databases[index];
	HmsWorkerSlot *worker = &slot->workers[kind];

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	worker->state = HMS_WORKER_STOPPED;
	worker->failures = failures;
	worker->restart_at = restart_at;
	if (kind == HMS_ADVANCER && failures > 0 && !slot->installed)
		slot->probe = true;
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_slot_stop
 *		Ask a worker to leave; no-op when none runs.
 */
void
hms_slot_stop(int index, HmsWorkerKind kind)
{
	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	hms_slots_ask_to_stop(&hms_slots->databases[index].workers[kind]);
	LWLockRelease(&hms_slots->lock);
}

/*
 * hms_slot_forget
 *		The database is gone or has no extension.
 *
 * Its workers are asked to leave.  The slot becomes free when none is left,
 * unless somebody holds it or has asked to look at the database.
 */
void
hms_slot_forget(int index)
{
	HmsDatabaseSlot *slot = &hms_slots->databases[index];
	bool		busy;

	LWLockAcquire(&hms_slots->lock, LW_EXCLUSIVE);
	slot->installed = false;
	slot->housekeeper_wanted = false;
	busy = slot->holds > 0 || slot->probe;
	for (int kind = 0; kind < HMS_WORKER_KINDS; kind++)
	{
		hms_slots_ask_to_stop(&slot->workers[kind]);
		if (slot->workers[kind].state != HMS_WORKER_STOPPED)
			busy = true;
	}
	if (!busy)
		memset(slot, 0, sizeof(HmsDatabaseSlot));
	LWLockRelease(&hms_slots->lock);
}
