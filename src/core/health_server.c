/*-------------------------------------------------------------------------
 *
 * health_server.c
 *	  Health checks that look at the server: processes, snapshots, vacuum.
 *
 * Processes are read from the statistics collector's shared state as
 * pg_stat_activity does; what is read may be a moment old.  Nothing is locked
 * for longer than the copy of one entry.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/transam.h"
#include "access/twophase.h"
#include "access/xlog.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "postmaster/bgworker.h"
#include "replication/slot.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/spin.h"
#include "utils/backend_status.h"

#include "core/health.h"
#include "core/stream_cache.h"
#include "core/xid.h"
#include "guc.h"
#include "shmem/group_slot.h"
#include "shmem/slots.h"
#include "storage/relset.h"

#define LAUNCHER_TYPE	"hotmesh_stream launcher"

/* A horizon this far back, held by a transaction of this age, slows vacuum down. */
#define XMIN_AGE_LIMIT		100000
#define XMIN_HELD_LIMIT_S	600

/* Dead rows that the hot tables may have while vacuum keeps up. */
#define DEAD_ROWS_CURSOR	200000
#define DEAD_ROWS_STATE		1000000

/* --- workers ------------------------------------------------------------------- */

/* Count background workers, and look for our launcher among them. */
static int
count_bgworkers(bool *launcher)
{
	int			n = pgstat_fetch_stat_numbackends();
	int			workers = 0;

	*launcher = false;
	for (int i = 1; i <= n; i++)
	{
		LocalPgBackendStatus *entry = pgstat_fetch_stat_local_beentry(i);
		const char *bgw_type;

		if (entry == NULL || entry->backendStatus.st_backendType != B_BG_WORKER)
			continue;
		workers++;
		bgw_type = GetBackgroundWorkerTypeByPid(entry->backendStatus.st_procpid);
		if (bgw_type != NULL && strcmp(bgw_type, LAUNCHER_TYPE) == 0)
			*launcher = true;
	}
	return workers;
}

bool
hms_health_workers(HmsHealthDetail detail)
{
	bool		launcher;

	if (RecoveryInProgress())
	{
		appendStringInfoString(detail, "standby: workers start when it is promoted");
		return true;
	}
	if (!hms_workers_enabled)
	{
		appendStringInfoString(detail, "switched off: call hotmesh_stream.maintain() regularly");
		return true;
	}
	(void) count_bgworkers(&launcher);
	if (!launcher)
	{
		appendStringInfoString(detail, "the launcher does not run");
		return false;
	}
	if (!hms_xid_offset_known())
	{
		appendStringInfoString(detail, "the workers begin at the first use of this database");
		return true;
	}
	if (!hms_advancer_alive())
	{
		appendStringInfoString(detail, "the advancer of this database does not run");
		return false;
	}
	appendStringInfoString(detail, "launcher and advancer run");
	return true;
}

bool
hms_health_worker_slots(HmsHealthDetail detail)
{
	bool		launcher;
	int			used = count_bgworkers(&launcher);

	appendStringInfo(detail, "%d of %d background workers run", used, max_worker_processes);
	if (used < max_worker_processes)
		return true;
	appendStringInfo(detail, "; increase \"%s\"", "max_worker_processes");
	return false;
}

/* --- the xmin horizon ---------------------------------------------------------------- */

/* How far an xid lies behind the next one; 0 for no xid. */
static int64
xid_age(TransactionId xid, FullTransactionId next)
{
	if (!TransactionIdIsNormal(xid))
		return 0;
	return (int32) (XidFromFullTransactionId(next) - xid);
}

/* Replication slots that hold rows back. */
static int64
oldest_slot(FullTransactionId next, NameData *name)
{
	int64		oldest = 0;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		int64		age;

		if (!slot->in_use)
			continue;
		SpinLockAcquire(&slot->mutex);
		age = xid_age(slot->effective_xmin, next);
		SpinLockRelease(&slot->mutex);
		if (age > oldest)
		{
			oldest = age;
			*name = slot->data.name;
		}
	}
	LWLockRelease(ReplicationSlotControlLock);
	return oldest;
}

static int64
oldest_prepared(FullTransactionId next, TransactionId *xid)
{
	int64		oldest = 0;

	for (int i = 0; i < max_prepared_xacts; i++)
	{
		PGPROC	   *proc = &PreparedXactProcs[i];
		TransactionId proc_xid = *(volatile TransactionId *) &proc->xid;
		int64		age = xid_age(proc_xid, next);

		/* The entry keeps its xid after COMMIT PREPARED. */
		if (proc->databaseId == MyDatabaseId && age > oldest &&
			TransactionIdIsInProgress(proc_xid))
		{
			oldest = age;
			*xid = proc_xid;
		}
	}
	return oldest;
}

/* The process of this database that holds the oldest snapshot or xid. */
static int64
oldest_process(FullTransactionId next, PgBackendStatus **status)
{
	int			n = pgstat_fetch_stat_numbackends();
	int64		oldest = 0;

	for (int i = 1; i <= n; i++)
	{
		LocalPgBackendStatus *entry = pgstat_fetch_stat_local_beentry(i);
		int64		age;

		if (entry == NULL || entry->backendStatus.st_procpid == MyProcPid ||
			(entry->backendStatus.st_databaseid != MyDatabaseId &&
			 OidIsValid(entry->backendStatus.st_databaseid)))
			continue;
		age = Max(xid_age(entry->backend_xmin, next), xid_age(entry->backend_xid, next));
		if (age > oldest)
		{
			oldest = age;
			*status = &entry->backendStatus;
		}
	}
	return oldest;
}

/* Seconds since a process began its transaction. */
static long
seconds_in_transaction(const PgBackendStatus *status)
{
	if (status->st_xact_start_timestamp == 0)
		return 0;
	return (long) (Max(GetCurrentTimestamp() - status->st_xact_start_timestamp, 0) / USECS_PER_SEC);
}

bool
hms_health_xmin(HmsHealthDetail detail)
{
	FullTransactionId next = ReadNextFullTransactionId();
	PgBackendStatus *status = NULL;
	TransactionId prepared_xid = InvalidTransactionId;
	NameData	slot_name = {{0}};
	int64		process = oldest_process(next, &status);
	int64		prepared = oldest_prepared(next, &prepared_xid);
	int64		slot = oldest_slot(next, &slot_name);
	int64		oldest = Max(Max(process, prepared), slot);
	long		seconds;

	if (oldest == 0)
	{
		appendStringInfoString(detail, "nothing holds dead rows back");
		return true;
	}
	if (oldest == slot)
	{
		appendStringInfo(detail, "replication slot \"%s\" holds back %lld transactions",
						 NameStr(slot_name), (long long) oldest);
		return oldest < XMIN_AGE_LIMIT;
	}
	if (oldest == prepared)
	{
		appendStringInfo(detail, "prepared transaction %u holds back %lld transactions",
						 prepared_xid, (long long) oldest);
		return oldest < XMIN_AGE_LIMIT;
	}
	seconds = seconds_in_transaction(status);
	appendStringInfo(detail, "process %d holds back %lld transactions since %ld s",
					 status->st_procpid, (long long) oldest, seconds);
	return oldest < XMIN_AGE_LIMIT || seconds < XMIN_HELD_LIMIT_S;
}

/* --- vacuum ------------------------------------------------------------------------ */

static bool
add_dead_rows(HmsHealthDetail detail, const char *table, Oid relid, int64 limit)
{
	PgStat_StatTabEntry *entry = pgstat_fetch_stat_tabentry(relid);
	int64		dead = entry ? (int64) entry->n_dead_tuples : 0;

	appendStringInfo(detail, "%s%s %lld", detail->len > 0 ? ", " : "dead rows: ",
					 table, (long long) dead);
	return dead <= limit;
}

bool
hms_health_dead_rows(HmsHealthDetail detail)
{
	const HmsRelset *rels = hms_relset();
	bool		ok = true;

	ok &= add_dead_rows(detail, "cursor", rels->cursor_rel, DEAD_ROWS_CURSOR);
	ok &= add_dead_rows(detail, "cursor_spill", rels->spill_rel, DEAD_ROWS_CURSOR);
	ok &= add_dead_rows(detail, "delivery", rels->delivery_rel, DEAD_ROWS_STATE);
	ok &= add_dead_rows(detail, "dead_letter", rels->dead_letter_rel, DEAD_ROWS_STATE);
	return ok;
}

bool
hms_health_autovacuum(HmsHealthDetail detail)
{
	if (AutoVacuumingActive())
	{
		appendStringInfoString(detail, "on");
		return true;
	}
	appendStringInfo(detail, "switch on \"%s\" and \"%s\"", "autovacuum", "track_counts");
	return false;
}

/* --- cursors ------------------------------------------------------------------------- */

/* The status of a process, NULL when it is gone. */
static PgBackendStatus *
status_of(int pid)
{
	int			n = pgstat_fetch_stat_numbackends();

	for (int i = 1; i <= n; i++)
	{
		LocalPgBackendStatus *entry = pgstat_fetch_stat_local_beentry(i);

		if (entry != NULL && entry->backendStatus.st_procpid == pid)
			return &entry->backendStatus;
	}
	return NULL;
}

/* Report a cursor whose holder's transaction is older than readers are ready to wait. */
static bool
check_cursor(HmsHealthDetail detail, const HmsGroup *group, Oid delivery_rel)
{
	HmsGroupSlot *slot = hms_group_slot(delivery_rel, group->incarnation);
	int			pid = slot ? hms_cursor_holder(slot) : 0;
	PgBackendStatus *status = pid != 0 ? status_of(pid) : NULL;
	HmsStream	stream;
	int64		held_ms;

	if (status == NULL || status->st_xact_start_timestamp == 0)
		return true;
	held_ms = (GetCurrentTimestamp() - status->st_xact_start_timestamp) / 1000;
	if (held_ms <= hms_advance_wait_ms || !hms_stream_by_id(group->stream_id, &stream))
		return true;
	appendStringInfo(detail, "%sprocess %d, %lld ms in its transaction, holds the cursor of group \"%s\" of stream \"%s\"",
					 detail->len > 0 ? "; " : "", pid, (long long) held_ms,
					 group->name, stream.name);
	return false;
}

bool
hms_health_cursors(HmsHealthDetail detail)
{
	Oid			delivery_rel = hms_relset()->delivery_rel;
	HmsGroup   *groups;
	int			n = hms_list_groups(0, &groups);
	bool		ok = true;

	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!check_cursor(detail, &groups[i], delivery_rel))
			ok = false;
	}
	return ok;
}
