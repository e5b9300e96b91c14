/*-------------------------------------------------------------------------
 *
 * guc.c
 *	  Defines the settings hotmesh_stream.*.
 *
 * Every backend that loads the library has them, preloaded or not.  Sizes of
 * shared memory are fixed at server start; everything else follows a reload
 * or belongs to the session.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "miscadmin.h"
#include "utils/guc.h"

#include "guc.h"
#include "hms.h"

int			hms_advance_wait_ms = 1000;
bool		hms_async_claims = true;
int			hms_inline_bytes = 64 * 1024;
int			hms_maintenance_naptime_s = 10;
int			hms_max_consumers = 1024;
int			hms_max_databases = 64;
int			hms_max_groups = 4096;
int			hms_max_namespaces = 256;
int			hms_max_wait_ms = 30000;
int			hms_max_waiters = 0;
int			hms_naptime_ms = 1000;
int			hms_restart_delay_max_ms = 60000;
int			hms_restart_delay_min_ms = 1000;
bool		hms_workers_enabled = true;

/* Settings of the session. */
static void
define_session_gucs(void)
{
	DefineCustomIntVariable("hotmesh_stream.advance_wait",
							"Sets the maximum time a call waits for another reader or the advancer of its group.",
							"After that time a read returns what it has; stat_group.stalled counts such reads.",
							&hms_advance_wait_ms, 1000, 0, 60 * 1000,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("hotmesh_stream.async_claims",
							 "Sets whether transactions that only claim messages commit asynchronously.",
							 "A claim lost in a server crash is delivered again, with that attempt uncounted.",
							 &hms_async_claims, true,
							 PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.inline_bytes",
							"Sets the payload size up to which a read hands out messages while it holds its group's position.",
							"More is left as ready rows, which other readers may claim, too.",
							&hms_inline_bytes, 64 * 1024, 0, 64 * 1024 * 1024,
							PGC_USERSET, GUC_UNIT_BYTE, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.max_wait",
							"Sets the maximum time a read waits for messages.",
							"A waiting read holds back the removal of dead rows; longer waits are cut to this.",
							&hms_max_wait_ms, 30 * 1000, 0, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
}

/* Sizes of shared memory. */
static void
define_size_gucs(void)
{
	DefineCustomIntVariable("hotmesh_stream.max_consumers",
							"Sets the number of consumers whose presence is remembered in shared memory.",
							"When there are more, the one seen longest ago is forgotten.",
							&hms_max_consumers, 1024, 16, 1000 * 1000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.max_databases",
							"Sets the number of databases that can have stream workers.",
							"Streams of further databases work without workers, more slowly.",
							&hms_max_databases, 64, 1, 10000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.max_groups",
							"Sets the number of consumer groups that shared memory has room for.",
							"Further groups work, more slowly and without statistics.",
							&hms_max_groups, 4096, 16, 1000 * 1000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.max_namespaces",
							"Sets the number of namespaces that shared memory has room for.",
							"Retention drops nothing in further namespaces.",
							&hms_max_namespaces, 256, 4, 100 * 1000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.max_waiters",
							"Sets the number of sessions that can wait for messages at the same time.",
							"0 makes room for every possible session; without room a waiting read polls.",
							&hms_max_waiters, 0, 0, 262143,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
}

/* Settings of the workers. */
static void
define_worker_gucs(void)
{
	DefineCustomIntVariable("hotmesh_stream.maintenance_naptime",
							"Sets the time between two runs of the housekeeper of a database.",
							NULL,
							&hms_maintenance_naptime_s, 10, 1, 86400,
							PGC_SIGHUP, GUC_UNIT_S, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.naptime",
							"Sets the time between two rounds of the advancer of a database.",
							"Requests of readers are answered at once.",
							&hms_naptime_ms, 1000, 10, 3600 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.restart_delay_max",
							"Sets the longest delay before a failed stream worker is started again.",
							"A worker that has run this long counts as healthy.",
							&hms_restart_delay_max_ms, 60 * 1000, 10, 86400 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("hotmesh_stream.restart_delay_min",
							"Sets the delay before a stream worker is started again after its first failure.",
							"The delay doubles with each further failure in a row.",
							&hms_restart_delay_min_ms, 1000, 10, 3600 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("hotmesh_stream.workers",
							 "Sets whether stream workers run.",
							 "Without them reads are slower and retention needs \"call hotmesh_stream.maintain()\".",
							 &hms_workers_enabled, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

/*
 * hms_define_gucs
 *		Define all settings.  Call once, from _PG_init, before any use of them.
 */
void
hms_define_gucs(void)
{
	define_session_gucs();

	/*
	 * PostgreSQL refuses to define these later; without preloading nothing
	 * reads them.
	 */
	if (process_shared_preload_libraries_in_progress)
		define_size_gucs();
	define_worker_gucs();
}
