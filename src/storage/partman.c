/*-------------------------------------------------------------------------
 *
 * partman.c
 *	  Logs as pg_partman sees them; the only user of pg_partman and of SPI.
 *
 * pg_partman 4.7 (p_type 'native') and 5.x ('range') are called by named
 * arguments only.  It creates a log's first partitions, each later one and the
 * default partition, and keeps the part_config row.  Which and when is decided
 * by core/retention.c: its own maintenance is off for our logs, and its
 * retention, which knows nothing of groups, stays null.
 *
 * Every statement runs as the extension's owner in a restricted context.  The
 * search_path is empty, not just pinned: pg_partman puts its own schema in
 * front of what it finds, and pg_catalog must still come first.  DateStyle and
 * IntervalStyle are fixed because pg_partman keeps intervals as text, and
 * TimeZone because it names and cuts partitions in the session's.
 *
 * Nothing is shared, and a crash undoes what was not committed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "tcop/pquery.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "storage/partman.h"
#include "storage/partman_private.h"
#include "storage/relset.h"

typedef struct Partman
{
	char	   *schema;			/* quoted */
	Oid			schema_oid;
	int			major;
	Oid			owner;
} Partman;

static const struct
{
	const char *name;
	const char *value;
}			settings[] =

{
	{"search_path", ""},
	{"TimeZone", "UTC"},
	{"DateStyle", "ISO, MDY"},
	{"IntervalStyle", "postgres"},
	{"client_min_messages", "warning"},
	{"default_tablespace", ""},
	{"default_table_access_method", "heap"},
};

/*
 * hms_ddl_set
 *		Change a setting until the current GUC nest level ends.
 */
void
hms_ddl_set(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Become 'owner' and connect to SPI.  An error in between needs no clean-up:
 * the end of the (sub)transaction restores the user and the settings.
 */
static void
begin_as_owner(HmsDdlScope *scope, Oid owner, bool short_locks)
{
	GetUserIdAndSecContext(&scope->user_id, &scope->sec_context);
	SetUserIdAndSecContext(owner, scope->sec_context |
						   SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	scope->guc_level = NewGUCNestLevel();

	for (int i = 0; i < lengthof(settings); i++)
		hms_ddl_set(settings[i].name, settings[i].value);
	if (short_locks)
		hms_ddl_set("lock_timeout", CppAsString2(HMS_DDL_LOCK_TIMEOUT_MS));

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

/*
 * hms_ddl_begin
 *		Become the extension's owner.
 */
void
hms_ddl_begin(HmsDdlScope *scope, bool short_locks)
{
	begin_as_owner(scope, hms_relset()->owner, short_locks);
}

/*
 * hms_ddl_end
 *		Become the caller again, with the caller's settings.
 */
void
hms_ddl_end(HmsDdlScope *scope)
{
	SPI_finish();
	AtEOXact_GUC(false, scope->guc_level);
	SetUserIdAndSecContext(scope->user_id, scope->sec_context);
}

/*
 * hms_ddl_run
 *		Run one statement; returns rows processed.
 */
uint64
hms_ddl_run(const char *sql, int nargs, Oid *types, Datum *values)
{
	int			result;

	result = SPI_execute_with_args(sql, nargs, types, values, NULL, false, 0);
	if (result < 0)
		elog(ERROR, "SPI_execute_with_args returned %d for: %s", result, sql);
	return SPI_processed;
}

/*
 * hms_ddl_execute
 *		Run a statement without parameters, built as psprintf() does.
 */
uint64
hms_ddl_execute(const char *format,...)
{
	StringInfoData sql;
	uint64		rows;

	initStringInfo(&sql);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, format);
		needed = appendStringInfoVA(&sql, format, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&sql, needed);
	}
	rows = hms_ddl_run(sql.data, 0, NULL, NULL);
	pfree(sql.data);
	return rows;
}

/*
 * hms_ddl_value
 *		First column of the first row of what hms_ddl_run() has just returned.
 */
Datum
hms_ddl_value(bool *isnull)
{
	*isnull = true;
	if (SPI_processed == 0)
		return (Datum) 0;
	return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, isnull);
}

/* Where pg_partman is, and which; false when it is not installed. */
static bool
find_partman(Partman *partman)
{
	Relation	catalog = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		found;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
				CStringGetDatum("pg_partman"));
	scan = systable_beginscan(catalog, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	found = HeapTupleIsValid(tuple);
	if (found)
	{
		Form_pg_extension form = (Form_pg_extension) GETSTRUCT(tuple);
		bool		isnull;
		Datum		version = heap_getattr(tuple, Anum_pg_extension_extversion,
										   RelationGetDescr(catalog), &isnull);

		partman->schema =
			pstrdup(quote_identifier(get_namespace_name(form->extnamespace)));
		partman->schema_oid = form->extnamespace;
		partman->major = isnull ? 0 : atoi(TextDatumGetCString(version));
		partman->owner = form->extowner;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	return found;
}

static void
require_partman(Partman *partman)
{
	if (!find_partman(partman))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" is not installed", "pg_partman")));
	if (partman->major < 4 || partman->major > 5)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" has unsupported version %d", "pg_partman",
						partman->major),
				 errhint("Use version 4.7 or a 5.x version.")));
}

/*
 * hms_partman_distrust
 *		Who may run code of their own as the extension's owner, NULL if nobody.
 */
char *
hms_partman_distrust(void)
{
	Partman		partman;
	Oid			intruder;

	if (!find_partman(&partman))
		return NULL;
	if (!superuser_arg(partman.owner) && partman.owner != hms_relset()->owner)
		return psprintf("role \"%s\", which owns extension pg_partman, is not superuser",
						GetUserNameFromId(partman.owner, false));
	if (!hms_schema_intruder(partman.schema_oid, &intruder))
		return NULL;
	if (intruder == ACL_ID_PUBLIC)
		return psprintf("everybody may create objects in schema %s of pg_partman",
						partman.schema);
	return psprintf("role \"%s\", which is not superuser, may create objects in schema %s of pg_partman",
					GetUserNameFromId(intruder, false), partman.schema);
}

/* pg_partman's functions run as superuser, so nobody else may stand in their way. */
static void
require_trust(void)
{
	char	   *distrust = hms_partman_distrust();

	if (distrust == NULL)
		return;
	distrust[0] = pg_toupper((unsigned char) distrust[0]);
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("cannot create a log with a pg_partman that others can change"),
			 errdetail("%s.", distrust),
			 errhint("Install pg_partman into a schema in which only superusers may create objects.")));
}

/* The log's name as pg_partman keeps it. */
static Datum
parent_name(int32 namespace_id)
{
	return CStringGetTextDatum(psprintf(HMS_DATA_SCHEMA ".log_%d", namespace_id));
}

/* --- creating and dropping a log -------------------------------------------- */

/*
 * Insert-only tables: vacuumed for the sake of freezing when they have doubled,
 * and never analyzed in vain, since nothing of ours asks the planner.
 */
static void
create_tables(int32 namespace_id)
{
	hms_ddl_execute("create table " HMS_DATA_SCHEMA ".log_%d of " HMS_SCHEMA ".log_row ("
					" stream_id with options not null,"
					" priority with options not null,"
					" id with options not null,"
					" xid with options not null,"
					" published_at with options not null,"
					" constraint log_%d_priority_check check (priority between 0 and 9)"
					") partition by range (published_at)", namespace_id, namespace_id);
	hms_ddl_execute("comment on table " HMS_DATA_SCHEMA ".log_%d is"
					" 'messages of namespace %d of hotmesh_stream; written by publish() only'",
					namespace_id, namespace_id);
	hms_ddl_execute("create index log_%d_order_idx on " HMS_DATA_SCHEMA ".log_%d"
					" (stream_id, priority, id)", namespace_id, namespace_id);
	hms_ddl_execute("create index log_%d_xid_idx on " HMS_DATA_SCHEMA ".log_%d"
					" (xid, stream_id, id)", namespace_id, namespace_id);
	hms_ddl_execute("create index log_%d_key_idx on " HMS_DATA_SCHEMA ".log_%d"
					" (key, stream_id, id) where key is not null", namespace_id, namespace_id);

	hms_ddl_execute("create table " HMS_DATA_SCHEMA ".log_%d_template of " HMS_SCHEMA ".log_row"
					" with (autovacuum_vacuum_insert_threshold = 100000,"
					" autovacuum_vacuum_insert_scale_factor = 1,"
					" autovacuum_analyze_scale_factor = 1)", namespace_id);
	hms_ddl_execute("comment on table " HMS_DATA_SCHEMA ".log_%d_template is"
					" 'storage options of new partitions of log_%d; always empty'",
					namespace_id, namespace_id);
}

static void
create_first_partitions(const Partman *partman, int32 namespace_id,
						const Interval *width, int premake, TimestampTz now)
{
	Oid			types[] = {TEXTOID, TEXTOID, INT4OID, TEXTOID, TEXTOID};
	Datum		values[5];
	TimestampTz lower;
	TimestampTz upper;

	hms_partman_bounds(width, now, &lower, &upper);
	hms_partman_bounds(width, lower - 1, &lower, &upper);

	values[0] = parent_name(namespace_id);
	values[1] = CStringGetTextDatum(DatumGetCString(DirectFunctionCall1(interval_out,
																		IntervalPGetDatum(width))));
	values[2] = Int32GetDatum(premake);
	values[3] = CStringGetTextDatum(DatumGetCString(DirectFunctionCall1(timestamptz_out,
																		TimestampTzGetDatum(lower))));
	values[4] = CStringGetTextDatum(psprintf(HMS_DATA_SCHEMA ".log_%d_template",
											 namespace_id));

	/* Truncating to microseconds keeps the start as we have cut it. */
	hms_ddl_run(psprintf("select %s.create_parent("
						 " p_parent_table => $1, p_control => 'published_at', p_type => '%s',"
						 " p_interval => $2, p_premake => $3, p_automatic_maintenance => 'off',"
						 " p_start_partition => $4, p_template_table => $5, p_jobmon => false,"
						 " p_date_trunc_interval => 'microseconds')",
						 partman->schema, partman->major >= 5 ? "range" : "native"),
				5, types, values);
}

/* Delete the part_config row of a log. */
static void
forget_log(const Partman *partman, int32 namespace_id)
{
	Oid			types[] = {TEXTOID};
	Datum		values[] = {parent_name(namespace_id)};

	hms_ddl_run(psprintf("delete from %s.part_config where parent_table = $1", partman->schema),
				1, types, values);
}

/*
 * hms_partman_create_log
 *		Create the log of a namespace, with template, indexes and partitions.
 */
void
hms_partman_create_log(int32 namespace_id, const Interval *partition_interval,
					   int premake, TimestampTz now)
{
	HmsDdlScope scope;
	Partman		partman;

	if (creating_extension)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot create a namespace in the script of an extension"),
				 errhint("Create it after CREATE EXTENSION.")));

	hms_ddl_begin(&scope, false);
	require_partman(&partman);
	require_trust();

	/* What a DROP EXTENSION has left where the library was not preloaded. */
	forget_log(&partman, namespace_id);
	create_tables(namespace_id);
	create_first_partitions(&partman, namespace_id, partition_interval, premake, now);
	hms_ddl_end(&scope);
}

/*
 * hms_partman_drop_log
 *		Drop the log of a namespace with all that belongs to it.
 */
void
hms_partman_drop_log(int32 namespace_id)
{
	HmsDdlScope scope;
	Partman		partman;

	hms_ddl_begin(&scope, false);
	require_partman(&partman);
	hms_ddl_execute("drop table if exists " HMS_DATA_SCHEMA ".log_%d, "
					HMS_DATA_SCHEMA ".log_%d_template", namespace_id, namespace_id);
	forget_log(&partman, namespace_id);
	hms_ddl_end(&scope);
}

/*
 * hms_partman_forget_missing_logs
 *		Delete part_config rows of logs that are gone.
 *
 * Our extension may be gone too, so this runs as the owner of pg_partman.
 */
void
hms_partman_forget_missing_logs(void)
{
	HmsDdlScope scope;
	Partman		partman;

	if (!find_partman(&partman))
		return;

	begin_as_owner(&scope, partman.owner, false);
	hms_ddl_execute("delete from %s.part_config"
					" where pg_catalog.starts_with(parent_table, '" HMS_DATA_SCHEMA ".log_')"
					" and pg_catalog.to_regclass(parent_table) is null", partman.schema);
	hms_ddl_end(&scope);
}

/*
 * hms_partman_set_premake
 *		Keep pg_partman's idea of the runway equal to ours.
 */
void
hms_partman_set_premake(int32 namespace_id, int premake)
{
	HmsDdlScope scope;
	Partman		partman;
	Oid			types[] = {TEXTOID, INT4OID};
	Datum		values[2];

	hms_ddl_begin(&scope, false);
	require_partman(&partman);
	values[0] = parent_name(namespace_id);
	values[1] = Int32GetDatum(premake);
	hms_ddl_run(psprintf("update %s.part_config set premake = $2 where parent_table = $1",
						 partman.schema), 2, types, values);
	hms_ddl_end(&scope);
}

/*
 * hms_ddl_create_partition
 *		Let pg_partman create and attach one partition.
 */
void
hms_ddl_create_partition(int32 namespace_id, TimestampTz lower)
{
	Partman		partman;
	Oid			types[] = {TEXTOID, TIMESTAMPTZOID};
	Datum		values[2];
	bool		isnull;
	bool		created;

	require_partman(&partman);
	values[0] = parent_name(namespace_id);
	values[1] = TimestampTzGetDatum(lower);
	hms_ddl_run(psprintf("select %s.create_partition_time(p_parent_table => $1,"
						 " p_partition_times => array[$2]%s)", partman.schema,
						 partman.major >= 5 ? "" : ", p_analyze => false"), 2, types, values);

	created = DatumGetBool(hms_ddl_value(&isnull));
	if (isnull || !created)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_partman did not create the partition of log_%d that begins at %s",
						namespace_id, timestamptz_to_str(lower)),
				 errhint("A table with the partition's name may exist.")));
}

/* --- procedures ------------------------------------------------------------- */

/*
 * hms_procedure_begin
 *		Prepare a procedure that commits; every exit but an error goes through
 *		hms_procedure_end().
 */
void
hms_procedure_begin(bool nonatomic)
{
	if (!nonatomic)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_TERMINATION),
				 errmsg("the procedure commits and cannot run inside a transaction"),
				 errhint("CALL it outside of BEGIN and of functions.")));
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect_ext failed");
}

/*
 * hms_procedure_commit
 *		Commit, and start the next transaction.
 */
void
hms_procedure_commit(void)
{
	SPI_commit();
}

/*
 * hms_procedure_snapshot
 *		Give the current transaction the active snapshot that a statement has.
 */
void
hms_procedure_snapshot(void)
{
	EnsurePortalSnapshotExists();
}

/*
 * hms_procedure_end
 *		Leave the procedure.
 */
void
hms_procedure_end(void)
{
	SPI_finish();
}
