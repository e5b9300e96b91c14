/*-------------------------------------------------------------------------
 *
 * health.c
 *	  The table of health checks, and those that look at our own tables.
 *
 * Each check appends one or more sentences to its detail and returns whether
 * all is well.  The checks run in the backend that asks, one after the other,
 * in a memory context that is reset in between.  What looks at the server is in
 * health_server.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xlog.h"
#include "catalog/pg_sequence.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "core/health.h"
#include "core/log_merge.h"
#include "core/privilege.h"
#include "core/retention.h"
#include "debug/debug_point.h"
#include "shmem/group_slot.h"
#include "shmem/hint.h"
#include "shmem/log_slot.h"
#include "shmem/shmem.h"
#include "shmem/wakeup.h"
#include "storage/partman.h"
#include "storage/relset.h"
#include "storage/sequence.h"

/* Partitions ahead that a namespace should have, if its premake allows it. */
#define RUNWAY_WANTED	2

static bool
check_preload(HmsHealthDetail detail)
{
	if (hms_shmem_ready())
	{
		appendStringInfoString(detail, "the library was loaded at server start");
		return true;
	}
	appendStringInfo(detail, "add hotmesh_stream to \"%s\" and restart the server",
					 "shared_preload_libraries");
	return false;
}

/* Start a new entry of a detail that lists several things. */
static void
next_entry(HmsHealthDetail detail)
{
	if (detail->len > 0)
		appendStringInfoString(detail, "; ");
}

static bool
check_runway(HmsHealthDetail detail)
{
	HmsNamespace *namespaces;
	int			n = hms_list_namespaces(&namespaces);
	TimestampTz now = HMS_NOW();
	bool		ok = true;

	for (int i = 0; i < n; i++)
	{
		int			left;

		next_entry(detail);
		if (!OidIsValid(namespaces[i].log_relid))
		{
			appendStringInfo(detail, "the log of namespace \"%s\" is missing", namespaces[i].name);
			ok = false;
			continue;
		}
		left = hms_retention_runway_left(&namespaces[i], now);
		appendStringInfo(detail, "namespace \"%s\" has %d of %d partitions ahead",
						 namespaces[i].name, left, namespaces[i].premake);
		if (left < Min(RUNWAY_WANTED, namespaces[i].premake))
			ok = false;
	}
	return ok;
}

static bool
check_default_rows(HmsHealthDetail detail)
{
	HmsNamespace *namespaces;
	int			n = hms_list_namespaces(&namespaces);
	bool		ok = true;

	for (int i = 0; i < n; i++)
	{
		int64		rows;

		if (!OidIsValid(namespaces[i].log_relid))
			continue;
		rows = hms_retention_default_rows(&namespaces[i]);
		if (rows == 0)
			continue;
		next_entry(detail);
		appendStringInfo(detail, "namespace \"%s\" has %lld messages in its default partition, to be moved by the housekeeper",
						 namespaces[i].name, (long long) rows);
		ok = false;
	}
	return ok;
}

static bool
check_retention(HmsHealthDetail detail)
{
	HmsNamespace *namespaces;
	int			n = hms_list_namespaces(&namespaces);
	TimestampTz now = HMS_NOW();
	bool		ok = true;

	for (int i = 0; i < n; i++)
	{
		char	   *blocker;

		if (!OidIsValid(namespaces[i].log_relid))
			continue;
		blocker = hms_retention_blocker(&namespaces[i], now);
		if (blocker == NULL)
			continue;
		next_entry(detail);
		appendStringInfo(detail, "namespace \"%s\" keeps an expired partition: %s",
						 namespaces[i].name, blocker);
		ok = false;
	}
	return ok;
}

static bool
add_usage(HmsHealthDetail detail, const char *what, const char *setting, int used, int size)
{
	next_entry(detail);
	appendStringInfo(detail, "%s %d of %d", what, used, size);
	if (used < size)
		return true;
	appendStringInfo(detail, " (full: increase \"%s\")", setting);
	return false;
}

static bool
check_shared_memory(HmsHealthDetail detail)
{
	int			used;
	int			size;
	bool		ok = true;

	hms_group_slot_usage(&used, &size);
	ok &= add_usage(detail, "groups", "hotmesh_stream.max_groups", used, size);
	hms_hint_usage(&used, &size);
	ok &= add_usage(detail, "hints", "hotmesh_stream.max_groups", used, size);
	hms_log_slot_usage(&used, &size);
	ok &= add_usage(detail, "logs", "hotmesh_stream.max_namespaces", used, size);
	hms_waiter_usage(&used, &size);
	ok &= add_usage(detail, "waiters", "hotmesh_stream.max_waiters", used, size);
	return ok;
}

static bool
check_privileges(HmsHealthDetail detail)
{
	int			dangling = hms_privilege_count_dangling();

	if (dangling > 0)
		appendStringInfo(detail, "privileges of roles that do not exist: %d", dangling);
	return dangling == 0;
}

/* pg_partman's functions run as the extension's owner. */
static bool
check_partman(HmsHealthDetail detail)
{
	char	   *distrust = hms_partman_distrust();

	if (distrust != NULL)
		appendStringInfo(detail, "%s, and could so become superuser", distrust);
	return distrust == NULL;
}

/* The highest id above 'last' that a stream has; 0 if none. */
static int64
highest_above(const HmsStream *stream, Snapshot snapshot, int64 last)
{
	HmsLogView	view;
	HmsLogMerge *merge;
	int64		id = 0;
	int			priority;

	hms_log_view(&view, stream->log_relid, stream->namespace_id, last, PG_INT64_MAX);
	merge = hms_log_merge_range(stream, &view, snapshot, last, PG_INT64_MAX, BackwardScanDirection);
	(void) hms_log_merge_next(merge, &id, &priority);
	hms_log_merge_end(merge);
	hms_log_release(&view);
	return id;
}

static bool
sequence_cache_is_one(Oid seqid)
{
	HeapTuple	tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(seqid));
	bool		is_one;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for sequence %u", seqid);
	is_one = ((Form_pg_sequence) GETSTRUCT(tuple))->seqcache == 1;
	ReleaseSysCache(tuple);
	return is_one;
}

/* Readers rely on ids that rise in time of allocation. */
static bool
check_sequence(HmsHealthDetail detail)
{
	Oid			seqid = hms_relset()->message_id_seq;
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64		last = hms_sequence_last(seqid);	/* after the snapshot */
	HmsStream  *streams;
	int			n = hms_list_streams(0, &streams);
	bool		ok = true;

	appendStringInfo(detail, "last message id is %lld", (long long) last);
	if (!sequence_cache_is_one(seqid))
	{
		appendStringInfoString(detail, "; the sequence must have CACHE 1");
		ok = false;
	}
	for (int i = 0; i < n; i++)
	{
		int64		highest;

		CHECK_FOR_INTERRUPTS();
		if (!OidIsValid(streams[i].log_relid))
			continue;
		highest = highest_above(&streams[i], snapshot, last);
		if (highest == 0)
			continue;
		appendStringInfo(detail, "; stream \"%s\" has message %lld: the sequence was set back",
						 streams[i].name, (long long) highest);
		ok = false;
	}
	UnregisterSnapshot(snapshot);
	return ok;
}

static const struct
{
	const char *name;
	bool		(*check) (HmsHealthDetail detail);
	bool		needs_shmem;
	const char *fine;			/* detail when the check has nothing to say */
}			checks[] =

{
	{"preload", check_preload, false, NULL},
	{"workers", hms_health_workers, true, NULL},
	{"worker_slots", hms_health_worker_slots, false, NULL},
	{"partition_runway", check_runway, true, "no namespace yet"},
	{"default_partition", check_default_rows, true, "default partitions are empty"},
	{"retention", check_retention, true, "no expired partition is held back"},
	{"xmin_horizon", hms_health_xmin, false, NULL},
	{"dead_rows", hms_health_dead_rows, false, NULL},
	{"autovacuum", hms_health_autovacuum, false, NULL},
	{"shared_memory", check_shared_memory, true, NULL},
	{"cursors", hms_health_cursors, true, "no cursor is held for long"},
	{"privileges", check_privileges, false, "no privilege is left over"},
	{"pg_partman", check_partman, false, "only superusers can change it"},
	{"message_ids", check_sequence, true, NULL},
};

void
hms_health(HmsHealthReport report, void *arg)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "hotmesh_stream health",
												  ALLOCSET_DEFAULT_SIZES);

	for (int i = 0; i < lengthof(checks); i++)
	{
		MemoryContext old;
		StringInfoData detail;
		bool		ok;

		CHECK_FOR_INTERRUPTS();
		if (checks[i].needs_shmem && !hms_shmem_ready())
			continue;
		old = MemoryContextSwitchTo(context);
		initStringInfo(&detail);
		ok = checks[i].check(&detail);
		if (detail.len == 0 && checks[i].fine != NULL)
			appendStringInfoString(&detail, checks[i].fine);
		report(checks[i].name, ok, detail.data, arg);
		MemoryContextSwitchTo(old);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
}
