/*-------------------------------------------------------------------------
 *
 * process.c
 *	  What the workers of a database have in common.
 *
 * A worker connects as the bootstrap superuser and runs each task in its own
 * transaction as the owner of the extension, under
 * SECURITY_RESTRICTED_OPERATION, with an empty search_path.  Between two tasks
 * it holds no lock and no snapshot, so that DROP EXTENSION waits for one task
 * at most.  It leaves when its slot says so (shmem/slots.h), when the extension
 * is gone, or with an error, which the launcher counts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

#include "core/maintenance.h"
#include "shmem/slots.h"
#include "worker/process.h"

/* Whom to become again at the end of the task. */
static Oid	session_user;
static int	session_context;

/* Settings of the database or cluster that must not reach a worker. */
static void
set_up_session(void)
{
	static const struct
	{
		const char *name;
		const char *value;
	}			settings[] = {
		{"search_path", ""},
		{"statement_timeout", "0"},
		{"lock_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"default_transaction_deferrable", "off"},
		{"session_replication_role", "origin"},
		{"row_security", "off"},
	};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i].name, settings[i].value, PGC_SUSET, PGC_S_OVERRIDE);

	/* A missing synchronous standby must not stop the workers. */
	if (synchronous_commit > SYNCHRONOUS_COMMIT_LOCAL_FLUSH)
		SetConfigOption("synchronous_commit", "local", PGC_SUSET, PGC_S_OVERRIDE);
}

/*
 * hms_process_start
 *		Become the worker that bgw_extra names.
 *
 * Attaches before it connects: exit callbacks run in reverse order, and the
 * slot must be given back last (shmem/slot_life.c).
 */
void
hms_process_start(void)
{
	HmsWorkerTicket ticket;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	memcpy(&ticket, MyBgworkerEntry->bgw_extra, sizeof(ticket));
	if (!hms_worker_attach(&ticket))
		proc_exit(0);
	BackgroundWorkerInitializeConnectionByOid(ticket.dboid, InvalidOid, 0);
	set_up_session();
}

/*
 * hms_process_pause
 *		What is due between two tasks, while no transaction is open.
 *
 * Does not return when the worker was asked to leave.
 */
void
hms_process_pause(void)
{
	CHECK_FOR_INTERRUPTS();
	if (hms_worker_stop_asked())
		proc_exit(0);
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/*
 * hms_process_begin
 *		Begin the transaction of one task, shown as 'activity' in
 *		pg_stat_activity.
 *
 * Does not return when the extension is gone.
 */
void
hms_process_begin(const char *activity)
{
	Oid			owner;

	SetCurrentStatementStartTimestamp();
	pgstat_report_activity(STATE_RUNNING, activity);
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());

	owner = hms_extension_owner();
	if (!OidIsValid(owner))
	{
		PopActiveSnapshot();
		CommitTransactionCommand();
		hms_worker_no_extension();
		proc_exit(0);
	}
	GetUserIdAndSecContext(&session_user, &session_context);
	SetUserIdAndSecContext(owner, session_context | SECURITY_RESTRICTED_OPERATION);
}

/*
 * hms_process_commit
 *		Commit the transaction of a task.
 */
void
hms_process_commit(void)
{
	SetUserIdAndSecContext(session_user, session_context);
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
}
