/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  Finds the databases that have the extension and keeps their workers
 *	  running.
 *
 * One process per server, connected to the shared catalogs only.  It cannot
 * see whether a database has the extension; it starts an advancer there, which
 * leaves at once when there is none.  All connectable databases are looked at
 * after start and again every PROBE_ROUNDS maintenance naptimes, one at a time;
 * between these rounds a database is looked at when a session asks for it
 * (hooks/utility.c).
 *
 * State shared with the workers stands in shmem/slots.h, under its lock.  The
 * launcher works on copies: it alone starts workers and frees slots, so that
 * what a copy says about a stopped worker stays true until the launcher
 * changes it; a hold or request that comes in between sets its latch.
 *
 * When the launcher dies, the postmaster starts another one, which replaces
 * the workers.  It runs after recovery only: on a standby it starts with the
 * promotion.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "common/pg_prng.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "guc.h"
#include "shmem/slots.h"
#include "worker/backoff.h"
#include "worker/launcher.h"

/* Databases without the extension are looked at again after so many maintenance naptimes. */
#define PROBE_ROUNDS			30

/* After so many failures a database that was never seen with the extension waits for the next round. */
#define PROBE_ATTEMPTS			5

/* The launcher itself is restarted by the postmaster after this time. */
#define LAUNCHER_RESTART_S		5

static const char *const kind_name[HMS_WORKER_KINDS] = {"advancer", "housekeeper"};
static const char *const kind_main[HMS_WORKER_KINDS] = {"hms_advancer_main", "hms_housekeeper_main"};

/* A registered start, per slot and kind; the handle is NULL when none is under way. */
typedef struct Start
{
	BackgroundWorkerHandle *handle;
	HmsWorkerTicket ticket;
} Start;

static Start *starts;

/* Databases still to be looked at in this round. */
static List *to_probe = NIL;
static TimestampTz next_round = DT_NOBEGIN;
static bool list_is_stale = false;
static bool warned_no_room = false;

/*
 * hms_launcher_register
 *		Register the launcher with the postmaster, from _PG_init.
 */
void
hms_launcher_register(void)
{
	BackgroundWorker worker = {
		.bgw_name = "hotmesh_stream launcher",
		.bgw_type = "hotmesh_stream launcher",
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = LAUNCHER_RESTART_S,
		.bgw_library_name = "hotmesh_stream",
		.bgw_function_name = "hms_launcher_main",
	};

	RegisterBackgroundWorker(&worker);
}

/* OIDs of the databases that accept connections, as a list in TopMemoryContext. */
static List *
connectable_databases(void)
{
	List	   *databases = NIL;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database database = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old;

		/* A limit below -1 marks the remains of an interrupted DROP DATABASE. */
		if (!database->datallowconn || database->datconnlimit < -1)
			continue;
		old = MemoryContextSwitchTo(TopMemoryContext);
		databases = lappend_oid(databases, database->oid);
		MemoryContextSwitchTo(old);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	return databases;
}

/* Forget databases that are gone; with 'probe', begin a new round. */
static void
list_databases(bool probe)
{
	List	   *databases = connectable_databases();

	for (int i = 0; i < hms_slot_count(); i++)
	{
		HmsDatabaseSlot slot;

		/* One that was asked for may be younger than the list. */
		if (hms_slot_copy(i, &slot) && !slot.probe &&
			!list_member_oid(databases, slot.dboid))
			hms_slot_forget(i);
	}
	list_is_stale = false;
	if (!probe)
	{
		list_free(databases);
		return;
	}
	list_free(to_probe);
	to_probe = databases;
	next_round = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
											 (int64) hms_maintenance_naptime_s * 1000 * PROBE_ROUNDS);
}

/* Register the process of a worker; false when the server has no room for it. */
static bool
register_worker(const HmsWorkerTicket *ticket, BackgroundWorkerHandle **handle)
{
	BackgroundWorker worker = {
		.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION,
		.bgw_start_time = BgWorkerStart_RecoveryFinished,
		.bgw_restart_time = BGW_NEVER_RESTART,
		.bgw_library_name = "hotmesh_stream",
		.bgw_notify_pid = MyProcPid,
	};
	MemoryContext old;
	bool		registered;

	StaticAssertStmt(sizeof(HmsWorkerTicket) <= BGW_EXTRALEN,
					 "a ticket fits into bgw_extra");
	snprintf(worker.bgw_name, BGW_MAXLEN, "hotmesh_stream %s for database %u",
			 kind_name[ticket->kind], ticket->dboid);
	snprintf(worker.bgw_type, BGW_MAXLEN, "hotmesh_stream %s", kind_name[ticket->kind]);
	strlcpy(worker.bgw_function_name, kind_main[ticket->kind], BGW_MAXLEN);
	memcpy(worker.bgw_extra, ticket, sizeof(HmsWorkerTicket));

	old = MemoryContextSwitchTo(TopMemoryContext);
	registered = RegisterDynamicBackgroundWorker(&worker, handle);
	MemoryContextSwitchTo(old);
	return registered;
}

/* Tell once that the server's table of background workers is full. */
static void
note_starved(bool starved, Oid dboid)
{
	static bool warned = false;

	if (starved != warned)
		hms_launcher_set_starved(starved);
	if (starved && !warned)
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("out of background worker slots"),
				 errdetail("No stream worker could be started for database %u.", dboid),
				 errhint("You might need to increase \"%s\".", "max_worker_processes")));
	warned = starved;
}

/* Start a worker; without room for it, try again after the shortest delay. */
static void
start_worker(int index, HmsWorkerKind kind, const HmsDatabaseSlot *slot, TimestampTz now)
{
	Start	   *start = &starts[index * HMS_WORKER_KINDS + kind];

	if (!hms_slot_start(index, kind, now, &start->ticket))
		return;
	if (!register_worker(&start->ticket, &start->handle))
	{
		start->handle = NULL;
		hms_slot_not_started(&start->ticket,
							 TimestampTzPlusMilliseconds(now, hms_restart_delay_min_ms));
		note_starved(true, slot->dboid);
		return;
	}
	note_starved(false, slot->dboid);
}

/* Forget the handle of a start whose process has attached or is gone. */
static void
follow_start(int index, HmsWorkerKind kind, HmsDatabaseSlot *slot)
{
	Start	   *start = &starts[index * HMS_WORKER_KINDS + kind];
	HmsWorkerSlot *worker = &slot->workers[kind];
	pid_t		pid;

	if (start->handle == NULL)
		return;
	if (worker->state == HMS_WORKER_STARTING &&
		worker->generation == start->ticket.generation)
	{
		if (GetBackgroundWorkerPid(start->handle, &pid) != BGWH_STOPPED)
			return;
		hms_slot_never_attached(&start->ticket);
		(void) hms_slot_copy(index, slot);
	}
	pfree(start->handle);
	start->handle = NULL;
}

/* Count a failure and set the time of the next attempt; log only what is new. */
static void
note_failure(int index, HmsWorkerKind kind, const HmsDatabaseSlot *slot, TimestampTz now)
{
	const HmsWorkerSlot *worker = &slot->workers[kind];
	bool		healthy = TimestampDifferenceExceeds(worker->started_at, now, hms_restart_delay_max_ms);
	int			failures = healthy ? 1 : worker->failures + 1;
	int			base_ms = hms_backoff_ms(failures, hms_restart_delay_min_ms,
										 hms_restart_delay_max_ms, 0.0);
	double		jitter = 0.24 * (pg_prng_double(&pg_global_prng_state) - 0.5);
	int			delay_ms = hms_backoff_ms(failures, hms_restart_delay_min_ms,
										  hms_restart_delay_max_ms, jitter);

	/* At shutdown everybody is terminated: that is no failure. */
	CHECK_FOR_INTERRUPTS();

	list_is_stale = true;
	if (!slot->installed && failures >= PROBE_ATTEMPTS)
	{
		hms_slot_stopped(index, kind, 0, DT_NOBEGIN);
		return;
	}
	hms_slot_stopped(index, kind, failures, TimestampTzPlusMilliseconds(now, delay_ms));
	if (failures == 1 ||
		base_ms != hms_backoff_ms(failures - 1, hms_restart_delay_min_ms,
								  hms_restart_delay_max_ms, 0.0))
		ereport(LOG,
				(errmsg("hotmesh_stream %s for database %u failed %d times in a row, next start in %d ms at the earliest",
						kind_name[kind], slot->dboid, failures, delay_ms)));
}

/* Look at the end of a worker whose process is gone. */
static void
reap_worker(int index, HmsWorkerKind kind, const HmsDatabaseSlot *slot, TimestampTz now)
{
	TimestampTz restart_at = DT_NOBEGIN;

	switch (slot->workers[kind].end)
	{
		case HMS_END_FAILED:
			note_failure(index, kind, slot, now);
			return;
		case HMS_END_DONE:

			/*
			 * An advancer does not end by itself: never restart it in a tight
			 * loop.
			 */
			if (kind == HMS_ADVANCER)
				restart_at = TimestampTzPlusMilliseconds(now, hms_restart_delay_min_ms);
			break;
		case HMS_END_STOPPED:
		case HMS_END_NO_EXTENSION:
			break;
	}
	hms_slot_stopped(index, kind, 0, restart_at);
	if (slot->workers[kind].end == HMS_END_NO_EXTENSION)
		hms_slot_forget(index);
}

/* When the worker should be started; DT_NOEND if it should not. */
static TimestampTz
start_time(HmsWorkerKind kind, const HmsDatabaseSlot *slot)
{
	const HmsWorkerSlot *worker = &slot->workers[kind];
	TimestampTz due;

	if (worker->state != HMS_WORKER_STOPPED || slot->holds > 0)
		return DT_NOEND;
	if (kind == HMS_ADVANCER)
		return slot->installed || slot->probe ? worker->restart_at : DT_NOEND;
	if (!slot->installed)
		return DT_NOEND;
	due = slot->housekeeper_wanted ? DT_NOBEGIN :
		TimestampTzPlusMilliseconds(worker->started_at,
									(int64) hms_maintenance_naptime_s * 1000);
	return Max(due, worker->restart_at);
}

/* Does anything of the slot still need it? */
static bool
slot_is_used(const HmsDatabaseSlot *slot)
{
	if (slot->installed || slot->probe || slot->holds > 0)
		return true;
	for (int kind = 0; kind < HMS_WORKER_KINDS; kind++)
	{
		if (slot->workers[kind].state != HMS_WORKER_STOPPED)
			return true;
	}
	return slot->workers[HMS_ADVANCER].failures > 0;
}

/* Bring one database's workers to where they should be; returns when to look again. */
static TimestampTz
manage_database(int index, TimestampTz now)
{
	HmsDatabaseSlot slot;
	TimestampTz next = DT_NOEND;

	if (!hms_slot_copy(index, &slot))
		return DT_NOEND;
	for (int kind = 0; kind < HMS_WORKER_KINDS; kind++)
	{
		follow_start(index, kind, &slot);
		if (slot.workers[kind].state == HMS_WORKER_EXITED)
			reap_worker(index, kind, &slot, now);
	}
	if (!hms_slot_copy(index, &slot))
		return DT_NOEND;
	if (!slot_is_used(&slot))
	{
		hms_slot_forget(index);
		return DT_NOEND;
	}
	for (int kind = 0; kind < HMS_WORKER_KINDS; kind++)
	{
		TimestampTz at = start_time(kind, &slot);

		if (!hms_workers_enabled)
			hms_slot_stop(index, kind);
		else if (at <= now)
			start_worker(index, kind, &slot, now);
		else
			next = Min(next, at);
	}
	return next;
}

/* Is a database being looked at for the first time? */
static bool
probe_under_way(void)
{
	for (int i = 0; i < hms_slot_count(); i++)
	{
		HmsDatabaseSlot slot;

		if (hms_slot_copy(i, &slot) && !slot.installed && slot.holds == 0 &&
			slot.workers[HMS_ADVANCER].failures == 0 &&
			(slot.probe || slot.workers[HMS_ADVANCER].state != HMS_WORKER_STOPPED))
			return true;
	}
	return false;
}

/* Take the next database of this round, unless one is being looked at. */
static void
probe_next(void)
{
	while (to_probe != NIL && !probe_under_way())
	{
		Oid			dboid = linitial_oid(to_probe);
		HmsDatabaseSlot slot;

		to_probe = list_delete_first(to_probe);
		if (hms_slot_of_database(dboid, &slot))
			continue;
		if (hms_slot_probe(dboid) || warned_no_room)
			continue;
		warned_no_room = true;
		ereport(WARNING,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("out of stream worker slots"),
				 errdetail("Whether database %u has streams could not be found out.", dboid),
				 errhint("You might need to increase \"%s\".", "hotmesh_stream.max_databases")));
	}
}

/* One round of the loop; returns how long to sleep in milliseconds. */
static long
launcher_round(void)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz next;
	bool		rescan = hms_launcher_take_rescan() || list_is_stale;

	if (hms_workers_enabled)
	{
		if (now >= next_round)
			list_databases(true);
		else if (rescan)
			list_databases(false);
		probe_next();
	}
	next = next_round;
	for (int i = 0; i < hms_slot_count(); i++)
		next = Min(next, manage_database(i, now));
	if (!hms_workers_enabled)
		next = DT_NOEND;
	if (to_probe != NIL && !probe_under_way())
		return 0;
	return Min(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), next), 60 * 1000L);
}

/*
 * hms_launcher_main
 *		Entry point of the launcher.
 */
void
hms_launcher_main(Datum main_arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/* Before connecting: the exit callback must not need a transaction. */
	hms_launcher_attach();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);

	starts = MemoryContextAllocZero(TopMemoryContext,
									sizeof(Start) * HMS_WORKER_KINDS * hms_slot_count());
	for (;;)
	{
		long		sleep_ms;

		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		pgstat_report_activity(STATE_RUNNING, "starting stream workers");
		sleep_ms = launcher_round();
		pgstat_report_activity(STATE_IDLE, NULL);

		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 sleep_ms, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}
