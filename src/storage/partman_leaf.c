/*-------------------------------------------------------------------------
 *
 * partman_leaf.c
 *	  Partitions of a log: their bounds, healing, locking and dropping.
 *
 * Each step that may meet a lock runs in a subtransaction with a short
 * lock_timeout, so that whoever queues behind us waits no longer than that, and
 * so that the caller's transaction survives.
 *
 * ATTACH PARTITION looks through the default partition and needs
 * ShareUpdateExclusiveLock on the parent, which stops no publisher or reader,
 * and AccessExclusiveLock on the default partition.  Both are taken here first:
 * pg_partman turns every error into P0001, so a lock timeout inside it could
 * not be told from a failure.  DROP of a leaf takes AccessExclusiveLock on the
 * parent at its very end; nobody holds the parent for longer than a look at
 * its catalog entries.
 *
 * Healing runs in one transaction: the rows of a range go from the default
 * partition to a plain table (a temporary one is refused in a restricted
 * context), the partition is created, the rows go into it.  A crash anywhere
 * undoes all of it.  Rows are deleted, not truncated: a reader whose snapshot
 * is older still finds them in the default partition.  What other transactions
 * have not yet committed there is not seen, neither by ATTACH, and is moved by
 * a later call into the partition that then exists.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#include "debug/debug_point.h"
#include "storage/partman.h"
#include "storage/partman_private.h"
#include "storage/route.h"

#define MONDAY_OFFSET		(INT64CONST(2) * USECS_PER_DAY) /* 2000-01-03 */
#define EXACT_DEFAULT_ROWS	10000

typedef struct HealStep
{
	int32		namespace_id;
	Oid			log_relid;
	const Interval *width;
	TimestampTz at;
	int64		moved;
} HealStep;

typedef void (*DdlStep) (void *arg);

/*
 * Run a step in a subtransaction; false, with nothing changed, when a lock was
 * not to be had in time.
 */
static bool
try_step(DdlStep step, void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		step(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;

	if (error == NULL)
		return true;
	if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
		ReThrowError(error);
	FreeErrorData(error);
	return false;
}

static char *
qualified_name(Oid relid)
{
	char	   *name = get_rel_name(relid);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("log partition with OID %u does not exist", relid)));
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  name);
}

/* Start of the period of 'months' months that a time lies in. */
static TimestampTz
truncate_to_months(int months, TimestampTz at)
{
	struct pg_tm tm;
	fsec_t		fsec;
	Timestamp	result;
	int			month;

	/* As timestamp without time zone, whose calendar is that of UTC. */
	if (timestamp2tm(at, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));

	month = tm.tm_year * MONTHS_PER_YEAR + tm.tm_mon - 1;
	month -= month % months;
	memset(&tm, 0, sizeof(tm));
	tm.tm_year = month / MONTHS_PER_YEAR;
	tm.tm_mon = month % MONTHS_PER_YEAR + 1;
	tm.tm_mday = 1;
	if (tm2timestamp(&tm, 0, NULL, &result) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	return (TimestampTz) result;
}

/*
 * hms_partman_bounds
 *		Bounds of the partition that a time belongs to.
 */
void
hms_partman_bounds(const Interval *width, TimestampTz at,
				   TimestampTz *lower, TimestampTz *upper)
{
	int64		width_us;
	int64		past;

	if (width->month > 0)
	{
		*lower = truncate_to_months(width->month, at);
		*upper = DatumGetTimestamp(DirectFunctionCall2(timestamp_pl_interval,
													   TimestampGetDatum(*lower),
													   IntervalPGetDatum(width)));
		return;
	}

	width_us = width->day * USECS_PER_DAY + width->time;
	past = (at - MONDAY_OFFSET) % width_us;
	if (past < 0)
		past += width_us;
	*lower = at - past;
	*upper = *lower + width_us;
}

/* Move a range of rows from the default partition to a plain table. */
static int64
set_rows_aside(const char *from, const char *aside, const char *log,
			   Oid *types, Datum *range)
{
	bool		isnull;

	hms_ddl_run(psprintf("select 1 from %s where published_at >= $1 and published_at < $2 limit 1",
						 from), 2, types, range);
	(void) hms_ddl_value(&isnull);
	if (isnull)
		return 0;

	hms_ddl_execute("create unlogged table %s (like %s)", aside, log);
	return hms_ddl_run(psprintf("with moved as (delete from %s"
								" where published_at >= $1 and published_at < $2 returning *)"
								" insert into %s select * from moved", from, aside),
					   2, types, range);
}

/* A debug point may hold us for long, although locks may not. */
static void
pause_at(const char *name)
{
#ifdef HMS_DEBUG_POINTS
	int			lock_timeout = LockTimeout;

	LockTimeout = 0;
	HMS_DEBUG_POINT(name);
	LockTimeout = lock_timeout;
#endif
}

/* See hms_partman_heal_partition(). */
static void
heal_step(void *arg)
{
	HealStep   *step = arg;
	HmsDdlScope scope;
	const HmsLeaves *leaves;
	Oid			default_relid = InvalidOid;
	Oid			target = InvalidOid;
	Oid			types[] = {TIMESTAMPTZOID, TIMESTAMPTZOID};
	Datum		range[2];
	TimestampTz lower;
	TimestampTz upper;
	char	   *aside;
	int			i;

	hms_ddl_begin(&scope, true);
	LockRelationOid(step->log_relid, ShareUpdateExclusiveLock);
	leaves = hms_route_leaves(step->log_relid, step->namespace_id);
	if (leaves->default_index >= 0)
	{
		default_relid = leaves->leaves[leaves->default_index].relid;
		LockRelationOid(default_relid, AccessExclusiveLock);
	}

	/* No partition comes or goes now. */
	leaves = hms_route_leaves(step->log_relid, step->namespace_id);
	i = hms_route_find(leaves, step->at);
	if (i >= 0 && i != leaves->default_index)
	{
		target = leaves->leaves[i].relid;
		lower = leaves->leaves[i].lower;
		upper = leaves->leaves[i].upper;
	}
	else
		hms_partman_bounds(step->width, step->at, &lower, &upper);

	aside = psprintf(HMS_DATA_SCHEMA ".log_%d_moving", step->namespace_id);
	range[0] = TimestampTzGetDatum(lower);
	range[1] = TimestampTzGetDatum(upper);
	if (OidIsValid(default_relid))
		step->moved = set_rows_aside(qualified_name(default_relid), aside,
									 qualified_name(step->log_relid), types, range);
	pause_at("heal-moved");

	if (!OidIsValid(target))
	{
		hms_ddl_create_partition(step->namespace_id, lower);
		leaves = hms_route_leaves(step->log_relid, step->namespace_id);
		i = hms_route_find(leaves, step->at);
		if (i < 0 || i == leaves->default_index)
			elog(ERROR, "new partition of log_%d does not cover its range",
				 step->namespace_id);
		target = leaves->leaves[i].relid;
		pause_at("partition-created");
	}

	if (step->moved > 0)
	{
		hms_ddl_execute("insert into %s select * from %s", qualified_name(target), aside);
		hms_ddl_execute("drop table %s", aside);
	}
	hms_ddl_end(&scope);
}

/*
 * hms_partman_heal_partition
 *		Make a partition exist, with the rows of its range that were in the
 *		default partition.
 */
bool
hms_partman_heal_partition(int32 namespace_id, const Interval *width,
						   TimestampTz at, int64 *moved)
{
	HealStep	step = {
		.namespace_id = namespace_id,
		.log_relid = hms_route_log_relid(namespace_id),
		.width = width,
		.at = at
	};

	*moved = 0;
	if (!OidIsValid(step.log_relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the log of namespace %d does not exist", namespace_id)));
	if (!try_step(heal_step, &step))
		return false;
	*moved = step.moved;
	return true;
}

/*
 * hms_partman_default_oldest
 *		When the oldest message of the default partition was published.
 *
 * The caller holds a lock on it.
 */
bool
hms_partman_default_oldest(Oid default_relid, TimestampTz *oldest)
{
	HmsDdlScope scope;
	Datum		value;
	bool		isnull;

	hms_ddl_begin(&scope, false);
	hms_ddl_execute("select pg_catalog.min(published_at) from %s",
					qualified_name(default_relid));
	value = hms_ddl_value(&isnull);
	if (!isnull)
		*oldest = DatumGetTimestampTz(value);
	hms_ddl_end(&scope);
	return !isnull;
}

/*
 * hms_partman_default_rows
 *		Rows of the default partition; above EXACT_DEFAULT_ROWS the estimate of
 *		the last vacuum, but not less than that.
 *
 * The caller holds a lock on it.
 */
int64
hms_partman_default_rows(Oid default_relid)
{
	HmsDdlScope scope;
	int64		rows;
	bool		isnull;
	HeapTuple	tuple;

	hms_ddl_begin(&scope, false);
	hms_ddl_execute("select pg_catalog.count(*) from (select 1 from %s limit %d) as sample",
					qualified_name(default_relid), EXACT_DEFAULT_ROWS + 1);
	rows = DatumGetInt64(hms_ddl_value(&isnull));
	hms_ddl_end(&scope);

	if (isnull)
		return 0;
	if (rows <= EXACT_DEFAULT_ROWS)
		return rows;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(default_relid));
	if (HeapTupleIsValid(tuple))
	{
		rows = Max(rows, (int64) ((Form_pg_class) GETSTRUCT(tuple))->reltuples);
		ReleaseSysCache(tuple);
	}
	return rows;
}

static void
lock_leaf_step(void *arg)
{
	Oid			leaf_relid = *(Oid *) arg;
	int			guc_level = NewGUCNestLevel();

	hms_ddl_set("lock_timeout", CppAsString2(HMS_DDL_LOCK_TIMEOUT_MS));
	LockRelationOid(leaf_relid, AccessExclusiveLock);
	AtEOXact_GUC(false, guc_level);
}

/*
 * hms_partman_lock_leaf
 *		Keep everybody else out of a leaf until the end of the transaction.
 */
bool
hms_partman_lock_leaf(Oid leaf_relid)
{
	return try_step(lock_leaf_step, &leaf_relid) &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(leaf_relid));
}

static void
drop_leaf_step(void *arg)
{
	Oid			leaf_relid = *(Oid *) arg;
	HmsDdlScope scope;

	hms_ddl_begin(&scope, true);
	hms_ddl_execute("drop table %s", qualified_name(leaf_relid));
	hms_ddl_end(&scope);
}

/*
 * hms_partman_drop_locked_leaf
 *		Drop a leaf that hms_partman_lock_leaf() has locked.
 */
bool
hms_partman_drop_locked_leaf(Oid leaf_relid)
{
	return try_step(drop_leaf_step, &leaf_relid);
}
