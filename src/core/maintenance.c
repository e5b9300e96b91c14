/*-------------------------------------------------------------------------
 *
 * maintenance.c
 *	  The table of maintenance tasks, and the order in which a run goes
 *	  through them.
 *
 * The housekeeper and the procedure maintain() make the same run.  Each step
 * happens inside a transaction of its caller, who commits before the next one,
 * so that no lock is held longer than one step takes.  A task goes through all
 * its objects before the next task begins: the runway of every namespace comes
 * before anything that takes long.  An object that is blocked by a lock, or
 * fails, is left to the next run.
 *
 * A run remembers ids only and looks each object up again in its step; one
 * that was dropped in between has nothing to do.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/cursor.h"
#include "core/maintenance.h"
#include "core/privilege.h"
#include "core/retention.h"
#include "core/stream_cache.h"
#include "core/tasks_core.h"
#include "core/xid.h"
#include "debug/debug_point.h"
#include "shmem/slots.h"
#include "storage/partman.h"
#include "storage/relset.h"

/* Rows that one step of a cleaning task looks at. */
#define STEP_ROWS		1000

/* Steps of one task on one object in one run. */
#define MAX_STEPS		10000

/* Exactly one of the functions is set. */
typedef struct Task
{
	const char *name;
	HmsStep		(*of_namespace) (const HmsNamespace *ns, TimestampTz now);
	bool		(*of_group) (const HmsStream *stream, const HmsGroup *group, TimestampTz now);
	bool		(*of_database) (TimestampTz now);
} Task;

struct HmsMaintenance
{
	int			task;			/* index into tasks */
	int			object;			/* index into the ids of the task's kind */
	int			steps;			/* done of this task on this object */
	int			nnamespaces;
	int32	   *namespace_ids;
	int			ngroups;
	int32	   *group_ids;
	char		description[NAMEDATALEN + HMS_MAX_NAME_BYTES];
};

static bool
bury_exhausted(const HmsStream *stream, const HmsGroup *group, TimestampTz now)
{
	int			buried;

	if (group->max_deliver == 0)
		return false;
	return hms_bury_exhausted(stream, group, now, STEP_ROWS, &buried);
}

static bool
expire_dead_letters(TimestampTz now)
{
	return hms_expire_dead_letters(now, STEP_ROWS);
}

static bool
flush_presence(TimestampTz now)
{
	hms_flush_presence();
	return false;
}

static bool
clear_voided(TimestampTz now)
{
	return hms_cursor_clear_voided(STEP_ROWS) >= STEP_ROWS;
}

static bool
forget_missing_roles(TimestampTz now)
{
	(void) hms_privilege_forget_missing_roles();
	return false;
}

static const Task tasks[] = {
	{.name = "making partitions ahead",.of_namespace = hms_retention_runway},
	{.name = "emptying the default partition",.of_namespace = hms_retention_heal},
	{.name = "sealing partitions",.of_namespace = hms_retention_seal},
	{.name = "dropping old partitions",.of_namespace = hms_retention_drop},
	{.name = "burying exhausted deliveries",.of_group = bury_exhausted},
	{.name = "expiring dead letters",.of_database = expire_dead_letters},
	{.name = "writing consumers",.of_database = flush_presence},
	{.name = "clearing voided incarnations",.of_database = clear_voided},
	{.name = "forgetting dropped roles",.of_database = forget_missing_roles},
};

/* Objects the task goes through. */
static int
object_count(const HmsMaintenance *run, const Task *task)
{
	if (task->of_namespace)
		return run->nnamespaces;
	if (task->of_group)
		return run->ngroups;
	return 1;
}

/* Move to the first task from the current one on that has an object left. */
static void
settle_position(HmsMaintenance *run)
{
	while (run->task < lengthof(tasks) &&
		   run->object >= object_count(run, &tasks[run->task]))
	{
		run->task++;
		run->object = 0;
		run->steps = 0;
	}
}

/*
 * hms_maintenance_begin
 *		Begin a run over what exists now.
 *
 * Needs a transaction; the result is allocated in 'context' and outlives it.
 */
HmsMaintenance *
hms_maintenance_begin(MemoryContext context)
{
	HmsMaintenance *run = MemoryContextAllocZero(context, sizeof(HmsMaintenance));
	HmsNamespace *namespaces;
	HmsGroup   *groups;

	run->nnamespaces = hms_list_namespaces(&namespaces);
	run->namespace_ids = MemoryContextAlloc(context, sizeof(int32) * (run->nnamespaces + 1));
	for (int i = 0; i < run->nnamespaces; i++)
		run->namespace_ids[i] = namespaces[i].namespace_id;

	run->ngroups = hms_list_groups(0, &groups);
	run->group_ids = MemoryContextAlloc(context, sizeof(int32) * (run->ngroups + 1));
	for (int i = 0; i < run->ngroups; i++)
		run->group_ids[i] = groups[i].group_id;

	settle_position(run);
	return run;
}

/*
 * hms_maintenance_more
 *		False when the run has done everything.
 */
bool
hms_maintenance_more(HmsMaintenance *run)
{
	return run->task < lengthof(tasks);
}

/*
 * hms_maintenance_describe
 *		What the next step does, in words; valid until that step.
 *
 * Objects appear by id: this is also called where no transaction runs.
 */
const char *
hms_maintenance_describe(HmsMaintenance *run)
{
	const Task *task = &tasks[run->task];

	if (task->of_namespace)
		snprintf(run->description, sizeof(run->description), "%s of namespace %d",
				 task->name, run->namespace_ids[run->object]);
	else if (task->of_group)
		snprintf(run->description, sizeof(run->description), "%s of group %d",
				 task->name, run->group_ids[run->object]);
	else
		strlcpy(run->description, task->name, sizeof(run->description));
	return run->description;
}

/* Do a step of a task on the current object; true when there may be another. */
static bool
do_step(const HmsMaintenance *run, const Task *task)
{
	TimestampTz now = HMS_NOW();
	HmsNamespace ns;
	HmsStream	stream;
	HmsGroup	group;

	if (task->of_namespace)
		return hms_namespace_by_id(run->namespace_ids[run->object], &ns) &&
			OidIsValid(ns.log_relid) &&
			task->of_namespace(&ns, now) == HMS_STEP_DONE;
	if (task->of_group)
		return hms_group_by_id(run->group_ids[run->object], &group) &&
			hms_stream_by_id(group.stream_id, &stream) &&
			task->of_group(&stream, &group, now);
	return task->of_database(now);
}

/*
 * hms_maintenance_step
 *		Do the next step in the caller's transaction.
 *
 * Waits for no lock longer than HMS_DDL_LOCK_TIMEOUT_MS.  What the step locked
 * stays locked until the caller commits, which it does before the next step.
 */
void
hms_maintenance_step(HmsMaintenance *run)
{
	bool		again;

	PushActiveSnapshot(GetTransactionSnapshot());
	again = do_step(run, &tasks[run->task]);
	PopActiveSnapshot();

	run->steps++;
	if (!again || run->steps >= MAX_STEPS)
		hms_maintenance_skip(run);
}

/*
 * hms_maintenance_skip
 *		Leave the rest of the current object to the next run.
 */
void
hms_maintenance_skip(HmsMaintenance *run)
{
	run->object++;
	run->steps = 0;
	settle_position(run);
}

/*
 * hms_maintain
 *		Make a whole run inside a CALL, committing after each step.
 *
 * Settles the database's xid offset first, as a read would.  Raises
 * invalid_transaction_termination when the CALL stands inside a transaction
 * block or function.  An error ends the run; what was committed stays.
 */
void
hms_maintain(bool nonatomic)
{
	HmsMaintenance *run;

	hms_procedure_begin(nonatomic);
	(void) hms_xid_offset();
	run = hms_maintenance_begin(PortalContext);
	hms_procedure_commit();
	while (hms_maintenance_more(run))
	{
		CHECK_FOR_INTERRUPTS();
		hms_maintenance_step(run);
		hms_procedure_commit();
	}
	hms_procedure_end();
}

/*
 * hms_extension_owner
 *		Owner of the extension, InvalidOid when this database does not have it.
 */
Oid
hms_extension_owner(void)
{
	const HmsRelset *rels = hms_relset_or_null();

	return rels == NULL ? InvalidOid : rels->owner;
}

/*
 * hms_hot_tables
 *		The tables whose rows come and go with every message, in the order of
 *		HmsDatabaseSlot.vacuum_horizon.
 */
void
hms_hot_tables(Oid *relids)
{
	const HmsRelset *rels = hms_relset();

	StaticAssertStmt(HMS_VACUUM_TABLES == 4, "every hot table has a horizon");
	relids[0] = rels->cursor_rel;
	relids[1] = rels->spill_rel;
	relids[2] = rels->delivery_rel;
	relids[3] = rels->dead_letter_rel;
}
