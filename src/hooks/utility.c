/*-------------------------------------------------------------------------
 *
 * utility.c
 *	  Commands that concern the workers or leave traces of logs behind.
 *
 * Before CREATE DATABASE (for its template), ALTER DATABASE ... RENAME and SET
 * TABLESPACE, DROP DATABASE and DROP EXTENSION hotmesh_stream, the workers of
 * the database in question are stopped and held off: PostgreSQL counts them as
 * other users of the database, and a vacuum of theirs would delay the DROP
 * EXTENSION.  Only for who may run the command, so that nobody else can stop
 * workers with a command that is then refused.
 *
 * After DROP EXTENSION, DROP SCHEMA and DROP OWNED, rows of pg_partman that
 * describe logs which are gone are deleted in the same transaction; they would
 * stop pg_partman's own maintenance.
 *
 * What is noted here for the end of the transaction is done by one transaction
 * callback, at commit: after CREATE EXTENSION and CREATE DATABASE the launcher
 * is asked to look at the database, after DROP ROLE the housekeeper is asked to
 * forget the role's privileges, after DROP DATABASE shared memory forgets the
 * database, after DROP EXTENSION what it holds about this one.  A hold ends with the transaction, however that ends, termination
 * of the backend included.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/syscache.h"

#include "hms.h"
#include "hooks/utility.h"
#include "shmem/shmem.h"
#include "shmem/slots.h"
#include "storage/partman.h"
#include "storage/relset.h"

/* Longest wait for the workers of a database to leave. */
#define HOLD_TIMEOUT_MS		5000

/* What the end of this transaction owes. */
typedef struct Owed
{
	Oid			held;			/* release this database */
	Oid			dropped;		/* forget this database */
	Oid			probe;			/* have the launcher look at this one */
	bool		housekeeper;	/* start the housekeeper of this one */
	int			uninstalled;	/* nest level at which the extension was
								 * dropped from this one; 0 = it was not */
	bool		reinstalled;	/* and created again */
} Owed;

static Owed owed;
static ProcessUtility_hook_type prev_ProcessUtility_hook = NULL;

/* May the current user drop or alter the database (or, with 'as_template', copy it)? */
static bool
may_touch_database(Oid dboid, bool as_template)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(dboid));
	Form_pg_database database;
	bool		may;

	if (!HeapTupleIsValid(tuple))
		return false;
	database = (Form_pg_database) GETSTRUCT(tuple);
	may = has_privs_of_role(GetUserId(), database->datdba) ||
		(as_template && database->datistemplate);
	ReleaseSysCache(tuple);
	return may;
}

static bool
may_create_database(void)
{
	HeapTuple	tuple;
	bool		may;

	if (superuser())
		return true;
	tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
	if (!HeapTupleIsValid(tuple))
		return false;
	may = ((Form_pg_authid) GETSTRUCT(tuple))->rolcreatedb;
	ReleaseSysCache(tuple);
	return may;
}

/* The value of an option, NULL if the list does not have it. */
static char *
option_value(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, name) == 0 && option->arg != NULL)
			return defGetString(option);
	}
	return NULL;
}

/* The database whose workers must leave for CREATE DATABASE, InvalidOid if none. */
static Oid
template_of(const CreatedbStmt *command)
{
	char	   *template = option_value(command->options, "template");
	Oid			dboid = get_database_oid(template ? template : "template1", true);

	if (!OidIsValid(dboid) || !may_create_database() || !may_touch_database(dboid, true))
		return InvalidOid;
	return dboid;
}

/* The same for commands that name a database. */
static Oid
named_database(const char *name)
{
	Oid			dboid = get_database_oid(name, true);

	return OidIsValid(dboid) && may_touch_database(dboid, false) ? dboid : InvalidOid;
}

/* Does the command drop our extension by name? */
static bool
drops_extension(Node *command)
{
	ListCell   *lc;

	if (!IsA(command, DropStmt) || ((DropStmt *) command)->removeType != OBJECT_EXTENSION)
		return false;
	foreach(lc, ((DropStmt *) command)->objects)
	{
		if (strcmp(strVal(lfirst(lc)), HMS_EXTENSION) == 0)
			return true;
	}
	return false;
}

/* The database whose workers must leave before the command, InvalidOid if none. */
static Oid
database_to_hold(Node *command)
{
	switch (nodeTag(command))
	{
		case T_CreatedbStmt:
			return template_of((CreatedbStmt *) command);
		case T_DropdbStmt:
			return named_database(((DropdbStmt *) command)->dbname);
		case T_AlterDatabaseStmt:
			if (option_value(((AlterDatabaseStmt *) command)->options, "tablespace"))
				return named_database(((AlterDatabaseStmt *) command)->dbname);
			return InvalidOid;
		case T_RenameStmt:
			if (((RenameStmt *) command)->renameType == OBJECT_DATABASE)
				return named_database(((RenameStmt *) command)->subname);
			return InvalidOid;
		case T_DropStmt:
			if (drops_extension(command))
			{
				const HmsRelset *rels = hms_relset_or_null();

				if (rels != NULL && has_privs_of_role(GetUserId(), rels->owner))
					return MyDatabaseId;
			}
			return InvalidOid;
		default:
			return InvalidOid;
	}
}

/* Can the command drop logs?  Only those that reach what depends on the dropped object are asked. */
static bool
may_drop_logs(Node *command)
{
	if (IsA(command, DropOwnedStmt))
		return true;
	if (!IsA(command, DropStmt))
		return false;
	return ((DropStmt *) command)->removeType == OBJECT_EXTENSION ||
		((DropStmt *) command)->removeType == OBJECT_SCHEMA;
}

/* Delete what pg_partman remembers about logs that the command has dropped. */
static void
clean_after_drop(Node *command)
{
	bool		installed;

	CommandCounterIncrement();
	installed = OidIsValid(get_extension_oid(HMS_EXTENSION, true));
	if (!installed)
	{
		owed.uninstalled = GetCurrentTransactionNestLevel();
		owed.reinstalled = false;
	}
	if (!OidIsValid(get_extension_oid("pg_partman", true)))
		return;
	if (IsA(command, DropOwnedStmt) || !installed)
		hms_partman_forget_missing_logs();
}

/* Note what the end of the transaction owes for a command that has succeeded. */
static void
note_effects(Node *command, Oid held)
{
	switch (nodeTag(command))
	{
		case T_CreateExtensionStmt:
			if (strcmp(((CreateExtensionStmt *) command)->extname, HMS_EXTENSION) == 0)
			{
				owed.probe = MyDatabaseId;
				owed.reinstalled = true;
			}
			break;
		case T_CreatedbStmt:
			owed.probe = get_database_oid(((CreatedbStmt *) command)->dbname, true);
			break;
		case T_DropdbStmt:
			owed.dropped = held;
			break;
		case T_DropRoleStmt:
			owed.housekeeper = true;
			break;
		default:
			break;
	}
}

/* Does the command interest us at all? */
static bool
concerns_us(Node *command)
{
	switch (nodeTag(command))
	{
		case T_AlterDatabaseStmt:
		case T_CreateExtensionStmt:
		case T_CreatedbStmt:
		case T_DropOwnedStmt:
		case T_DropRoleStmt:
		case T_DropStmt:
		case T_DropdbStmt:
		case T_RenameStmt:
			return hms_shmem_ready() && IsTransactionState();
		default:
			return false;
	}
}

static void
run_command(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			ProcessUtilityContext context, ParamListInfo params,
			QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	if (prev_ProcessUtility_hook)
		prev_ProcessUtility_hook(pstmt, query, read_only_tree, context, params,
								 environment, dest, completion);
	else
		standard_ProcessUtility(pstmt, query, read_only_tree, context, params,
								environment, dest, completion);
}

static void
utility_hook(PlannedStmt *pstmt, const char *query, bool read_only_tree,
			 ProcessUtilityContext context, ParamListInfo params,
			 QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	Node	   *command = pstmt->utilityStmt;
	bool		had_logs;
	Oid			hold;

	if (!concerns_us(command))
	{
		run_command(pstmt, query, read_only_tree, context, params, environment, dest, completion);
		return;
	}

	had_logs = may_drop_logs(command) && hms_relset_or_null() != NULL;
	hold = database_to_hold(command);
	if (OidIsValid(hold) && !OidIsValid(owed.held))
	{
		owed.held = hold;
		hms_workers_hold(hold, HOLD_TIMEOUT_MS);
	}

	run_command(pstmt, query, read_only_tree, context, params, environment, dest, completion);

	if (had_logs)
		clean_after_drop(command);
	note_effects(command, hold);
}

/*
 * Forget what shared memory holds about an extension that was dropped.  Where
 * the same transaction created it again, others may by now use what is kept by
 * the OIDs of its new relations, so that stays, with what is left of the old.
 */
static void
forget_extension(bool reinstalled)
{
	if (reinstalled)
		hms_shmem_forget_statistics(MyDatabaseId);
	else
		hms_shmem_forget_database(MyDatabaseId);
}

/* Pay what is owed, at the end of the transaction.  Nothing here can fail. */
static void
utility_xact_callback(XactEvent event, void *arg)
{
	Owed		now = owed;

	if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
		return;
	memset(&owed, 0, sizeof(owed));
	if (OidIsValid(now.held))
		hms_workers_release(now.held);
	if (event != XACT_EVENT_COMMIT)
		return;
	if (now.uninstalled > 0)
		forget_extension(now.reinstalled);
	if (OidIsValid(now.dropped))
		hms_shmem_forget_database(now.dropped);
	if (OidIsValid(now.probe))
		hms_launcher_request(now.probe);
	if (now.housekeeper)
		hms_housekeeper_request();
}

/* A subtransaction's DROP EXTENSION becomes its parent's, or never happened. */
static void
utility_subxact_callback(SubXactEvent event, SubTransactionId mine,
						 SubTransactionId parent, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	if (owed.uninstalled < level)
		return;
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		owed.uninstalled = level - 1;
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		owed.uninstalled = 0;
}

/*
 * hms_utility_install_hooks
 *		Install the hook, in front of those that are there, and its
 *		transaction callbacks.
 */
void
hms_utility_install_hooks(void)
{
	prev_ProcessUtility_hook = ProcessUtility_hook;
	ProcessUtility_hook = utility_hook;
	RegisterXactCallback(utility_xact_callback, NULL);
	RegisterSubXactCallback(utility_subxact_callback, NULL);
}
