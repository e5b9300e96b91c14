/*-------------------------------------------------------------------------
 *
 * config.c
 *	  Rows of the configuration tables: read by key, insert, replace, delete.
 *
 * Namespaces, streams, groups and privileges are few and change rarely, so
 * they are treated as PostgreSQL treats its catalogs: rows are written with
 * CatalogTupleInsert() and its siblings, and each change queues a relcache
 * invalidation of its table.  That invalidation reaches every backend after
 * our commit, our own backend at the next command, and undoes itself at
 * abort; hms_config_generation() counts what arrives, and caches built on
 * these tables compare that number.
 *
 * Reads take AccessShareLock for the time of the call and see the latest
 * committed state in any isolation level, as catalog reads do.  Writers hold
 * RowExclusiveLock on the table until end of transaction, and before that the
 * lock of the object's name, which is what serialises them: a plain update
 * here raises an error if it meets a concurrent one.  Nothing lives in shared
 * memory but the locks, and a crash leaves nothing behind.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "common/hashfn.h"
#include "nodes/pg_list.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

#include "storage/config.h"
#include "storage/relset.h"
#include "storage/scan.h"

/* The tables whose invalidations raise the generation; InvalidOid until known. */
static Oid	watched_namespace = InvalidOid;
static Oid	watched_stream = InvalidOid;
static Oid	watched_group = InvalidOid;
static Oid	watched_privilege = InvalidOid;
static Oid	watched_throttle = InvalidOid;
static Oid	watched_registered = InvalidOid;

static uint64 generation = 1;
static bool callback_registered = false;

static void
lock_name(Oid rel, const char *name, LOCKMODE mode)
{
	uint32		hash = DatumGetUInt32(hash_any((const unsigned char *) name, strlen(name)));

	LockDatabaseObject(rel, hash, 0, mode);
}

void
hms_config_lock(Oid rel, const char *name)
{
	lock_name(rel, name, ExclusiveLock);
}

void
hms_config_lock_shared(Oid rel, const char *name)
{
	lock_name(rel, name, ShareLock);
}

static void
config_invalidated(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == watched_stream || relid == watched_group ||
		relid == watched_namespace || relid == watched_privilege ||
		relid == watched_throttle || relid == watched_registered)
		generation++;
}

/*
 * hms_config_generation
 *		A number that rises whenever a namespace, stream, group or privilege changes.
 *
 * Costs a look at the invalidation queue's flag when nothing has changed.
 */
uint64
hms_config_generation(void)
{
	const HmsRelset *rels;

	if (!callback_registered)
	{
		CacheRegisterRelcacheCallback(config_invalidated, (Datum) 0);
		callback_registered = true;
	}
	AcceptInvalidationMessages();
	rels = hms_relset();

	/* The tables of a re-created extension have other OIDs. */
	if (rels->stream_rel != watched_stream)
	{
		watched_namespace = rels->namespace_rel;
		watched_stream = rels->stream_rel;
		watched_group = rels->group_rel;
		watched_privilege = rels->privilege_rel;
		watched_throttle = rels->throttle_rel;
		watched_registered = rels->registered_rel;
		generation++;
	}
	return generation;
}

static void
each_by_index(Relation rel, Oid index, Snapshot snapshot, int nkeys, ScanKey keys,
			  HmsConfigVisitor visit, void *arg)
{
	HmsScan		scan;
	bool		more = true;

	hms_scan_begin(&scan, rel, index, snapshot, nkeys, keys);
	while (more && hms_scan_next(&scan, ForwardScanDirection))
	{
		bool		should_free;
		HeapTuple	tuple = ExecFetchSlotHeapTuple(scan.slot, false, &should_free);

		more = visit(tuple, RelationGetDescr(rel), arg);
		if (should_free)
			heap_freetuple(tuple);
	}
	hms_scan_end(&scan);
}

static void
each_by_heap(Relation rel, Snapshot snapshot, int nkeys, ScanKey keys,
			 HmsConfigVisitor visit, void *arg)
{
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan(rel, snapshot, nkeys, keys);
	bool		more = true;

	while (more && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		should_free;
		HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, &should_free);

		more = visit(tuple, RelationGetDescr(rel), arg);
		if (should_free)
			heap_freetuple(tuple);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * hms_config_each
 *		Visit rows of a table until the visitor returns false.
 *
 * The visitor must not change the table: rows it wrote could be visited or
 * not.  Collect first, as hms_config_delete_all() does.
 */
void
hms_config_each(Oid relid, Oid index, int nkeys, ScanKey keys,
				HmsConfigVisitor visit, void *arg)
{
	Relation	rel = table_open(relid, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());

	if (OidIsValid(index))
		each_by_index(rel, index, snapshot, nkeys, keys, visit, arg);
	else
		each_by_heap(rel, snapshot, nkeys, keys, visit, arg);

	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
}

static bool
copy_first(HeapTuple tuple, TupleDesc desc, void *arg)
{
	*(HeapTuple *) arg = heap_copytuple(tuple);
	return false;
}

/*
 * hms_config_find
 *		The first row found by index keys, copied; NULL if there is none.
 */
HeapTuple
hms_config_find(Oid relid, Oid index, int nkeys, ScanKey keys)
{
	HeapTuple	found = NULL;

	hms_config_each(relid, index, nkeys, keys, copy_first, &found);
	return found;
}

Datum
hms_config_attr(HeapTuple tuple, TupleDesc desc, int attno, bool *isnull)
{
	return heap_getattr(tuple, attno, desc, isnull);
}

/*
 * hms_config_invalidate
 *		Void every backend's caches of this table: here after the running
 *		command, elsewhere at our commit.
 */
void
hms_config_invalidate(Oid relid)
{
	CacheInvalidateRelcacheByRelid(relid);
}

/* End a change: caches are voided, the row becomes visible, the table stays locked. */
static void
finish_change(Relation rel)
{
	CacheInvalidateRelcache(rel);
	table_close(rel, NoLock);
	CommandCounterIncrement();
}

/*
 * hms_config_insert
 *		Insert one row.
 *
 * Constraints other than unique indexes are the caller's to keep.
 */
void
hms_config_insert(Oid relid, const Datum *values, const bool *nulls)
{
	Relation	rel = table_open(relid, RowExclusiveLock);
	HeapTuple	tuple = heap_form_tuple(RelationGetDescr(rel),
										unconstify(Datum *, values),
										unconstify(bool *, nulls));

	CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);
	finish_change(rel);
}

/*
 * hms_config_update
 *		Replace some columns of a row that hms_config_find() has returned.
 *
 * The caller has held the object's lock since before it found the row.
 */
void
hms_config_update(Oid relid, HeapTuple old, const Datum *values,
				  const bool *nulls, const bool *replace)
{
	Relation	rel = table_open(relid, RowExclusiveLock);
	HeapTuple	tuple = heap_modify_tuple(old, RelationGetDescr(rel),
										  unconstify(Datum *, values),
										  unconstify(bool *, nulls),
										  unconstify(bool *, replace));

	CatalogTupleUpdate(rel, &old->t_self, tuple);
	heap_freetuple(tuple);
	finish_change(rel);
}

/*
 * hms_config_delete
 *		Delete a row that hms_config_find() has returned, under the object's lock.
 */
void
hms_config_delete(Oid relid, HeapTuple old)
{
	Relation	rel = table_open(relid, RowExclusiveLock);

	CatalogTupleDelete(rel, &old->t_self);
	finish_change(rel);
}

static bool
collect_copy(HeapTuple tuple, TupleDesc desc, void *arg)
{
	List	  **tuples = arg;

	*tuples = lappend(*tuples, heap_copytuple(tuple));
	return true;
}

/*
 * hms_config_delete_all
 *		Delete the rows found by index keys, under the lock of the object they
 *		belong to; returns how many.
 */
int
hms_config_delete_all(Oid relid, Oid index, int nkeys, ScanKey keys)
{
	List	   *tuples = NIL;
	ListCell   *lc;
	int			deleted;

	hms_config_each(relid, index, nkeys, keys, collect_copy, &tuples);
	foreach(lc, tuples)
		hms_config_delete(relid, (HeapTuple) lfirst(lc));
	deleted = list_length(tuples);
	list_free_deep(tuples);
	return deleted;
}
