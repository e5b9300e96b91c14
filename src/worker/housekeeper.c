/*-------------------------------------------------------------------------
 *
 * housekeeper.c
 *	  The worker that maintains logs and tables.
 *
 * The launcher starts it every hotmesh_stream.maintenance_naptime, and when a
 * session asks for it.  It makes one run through the tasks of
 * core/maintenance.c, a transaction per step, vacuums the hot tables where
 * that can remove something, and leaves.
 *
 * A step that raises an error is rolled back, reported as a warning and left
 * to the next run, so that one broken namespace does not stop the others.  The
 * process then ends as failed, and the launcher waits longer before the next
 * run.  Killed in the middle of a step, it leaves nothing half done.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/xact.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_node.h"
#include "pgstat.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "core/maintenance.h"
#include "core/xid.h"
#include "shmem/slots.h"
#include "worker/housekeeper.h"
#include "worker/process.h"

/* A table is vacuumed when it has more dead rows than this, and than a tenth of its live ones. */
#define VACUUM_DEAD_ROWS	1000

/* Roll back the failed step and report its error as a warning. */
static void
report_failed_step(const char *step)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	ErrorData  *error = CopyErrorData();

	FlushErrorState();
	AbortCurrentTransaction();
	MemoryContextSwitchTo(old);

	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("hotmesh_stream housekeeper failed at %s: %s", step, error->message),
			 error->detail ? errdetail("%s", error->detail) : 0,
			 error->hint ? errhint("%s", error->hint) : 0,
			 error->context ? errcontext("%s", error->context) : 0));
	FreeErrorData(error);
}

/* Do the next step in its own transaction; false when it failed. */
static bool
run_step(HmsMaintenance *run, const char *step)
{
	volatile bool done = true;

	PG_TRY();
	{
		hms_process_begin(step);
		hms_maintenance_step(run);
		hms_process_commit();
	}
	PG_CATCH();
	{
		report_failed_step(step);
		hms_maintenance_skip(run);
		done = false;
	}
	PG_END_TRY();
	return done;
}

/* Can a vacuum of the table remove enough rows?  Notes the horizon it would work with. */
static bool
vacuum_pays(int index, Oid relid)
{
	int64		dead = DatumGetInt64(DirectFunctionCall1(pg_stat_get_dead_tuples,
														 ObjectIdGetDatum(relid)));
	int64		live = DatumGetInt64(DirectFunctionCall1(pg_stat_get_live_tuples,
														 ObjectIdGetDatum(relid)));
	Relation	rel;
	TransactionId horizon;

	if (dead < VACUUM_DEAD_ROWS || dead < live / 10)
		return false;
	rel = try_table_open(relid, AccessShareLock);
	if (rel == NULL)
		return false;
	horizon = GetOldestNonRemovableTransactionId(rel);
	table_close(rel, AccessShareLock);

	/* A held snapshot keeps the horizon where it was: nothing new can go. */
	if (horizon == hms_worker_vacuum_horizon(index))
		return false;
	hms_worker_set_vacuum_horizon(index, horizon);
	return true;
}

/* Vacuum one table as a command of its own, without waiting for its lock. */
static void
vacuum_table(Oid relid)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext,
												  "hotmesh_stream vacuum",
												  ALLOCSET_DEFAULT_SIZES);
	VacuumStmt *command;

	SetCurrentStatementStartTimestamp();
	pgstat_report_activity(STATE_RUNNING, "vacuuming hot tables");
	StartTransactionCommand();

	/* VACUUM commits in between: what it needs must live longer. */
	PortalContext = context;
	MemoryContextSwitchTo(context);
	command = makeNode(VacuumStmt);
	command->is_vacuumcmd = true;
	command->rels = list_make1(makeVacuumRelation(NULL, relid, NIL));
	command->options = list_make3(makeDefElem("skip_locked", NULL, -1),
								  makeDefElem("truncate", (Node *) makeString("off"), -1),
								  makeDefElem("parallel", (Node *) makeInteger(0), -1));
	ExecVacuum(make_parsestate(NULL), command, true);

	CommitTransactionCommand();
	PortalContext = NULL;
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextDelete(context);
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* Vacuum those of the hot tables that need it. */
static void
vacuum_hot_tables(void)
{
	Oid			relids[HMS_VACUUM_TABLES];
	bool		pays[HMS_VACUUM_TABLES];

	hms_process_begin("looking for dead rows");
	hms_hot_tables(relids);
	for (int i = 0; i < HMS_VACUUM_TABLES; i++)
		pays[i] = vacuum_pays(i, relids[i]);
	hms_process_commit();

	for (int i = 0; i < HMS_VACUUM_TABLES; i++)
	{
		hms_process_pause();
		if (pays[i])
			vacuum_table(relids[i]);
	}
}

/* Begin a run; NULL when the database is to be left alone (advancer.c). */
static HmsMaintenance *
begin_run(void)
{
	HmsMaintenance *run = NULL;

	hms_process_begin("beginning maintenance");
	if (hms_xid_offset_known())
		run = hms_maintenance_begin(TopMemoryContext);
	hms_process_commit();
	return run;
}

/*
 * hms_housekeeper_main
 *		Entry point of the housekeeper.
 */
void
hms_housekeeper_main(Datum main_arg)
{
	HmsMaintenance *run;
	bool		failed = false;

	hms_process_start();
	run = begin_run();
	if (run == NULL)
		proc_exit(0);
	while (hms_maintenance_more(run))
	{
		hms_process_pause();
		if (!run_step(run, hms_maintenance_describe(run)))
			failed = true;
	}
	vacuum_hot_tables();
	proc_exit(failed ? 1 : 0);
}
