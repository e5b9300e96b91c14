/*-------------------------------------------------------------------------
 *
 * route.c
 *	  The partitions of a log: a cache per backend of what the catalogs say.
 *
 * One entry per log, keyed by the parent's OID, holds the sorted bounds, the
 * two index OIDs of each leaf and the sealed bounds of log_partition.  The
 * parent's relcache invalidation (attach, drop, hms_route_invalidate) makes
 * the entry stale as a whole; that of a leaf (vacuum, REINDEX CONCURRENTLY)
 * makes its index OIDs stale.  Both are noticed before the entry is handed
 * out, so an answer is as new as the invalidations processed at the call.
 *
 * A rebuild holds AccessShareLock on the parent while it copies the bounds and
 * takes no lock on a leaf: index OIDs come from pg_index.  Whoever uses a leaf
 * locks it first and then calls again, to learn whether it is still one.
 * Nothing here is shared between processes, so nothing is left by a crash.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/partition.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "partitioning/partbounds.h"
#include "partitioning/partdesc.h"
#include "storage/lmgr.h"
#include "utils/fmgroids.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "storage/config.h"
#include "storage/relset.h"
#include "storage/route.h"
#include "storage/scan.h"

typedef struct LogEntry
{
	Oid			log_relid;		/* hash key */
	bool		stale;			/* the list must be built anew */
	bool		indexes_stale;	/* some leaf's index OIDs must be read anew */
	MemoryContext context;		/* holds 'leaves' and 'leaf_stale' */
	HmsLeaves	leaves;
	bool	   *leaf_stale;		/* per leaf, see indexes_stale */
} LogEntry;

/* Columns of hotmesh_stream.log_partition. */
enum
{
	SEALED_NAMESPACE_ID = 1,
	SEALED_LOWER_BOUND,
	SEALED_UPPER_BOUND,
	SEALED_MIN_ID,
	SEALED_MAX_ID
};

/* Columns of the three indexes: attribute numbers of hotmesh_stream.log_row. */
static const AttrNumber order_columns[] = {1, 2, 3};
static const AttrNumber xid_columns[] = {4, 1, 3};
static const AttrNumber key_columns[] = {8, 1, 3};

static HTAB *entries = NULL;
static LogEntry *last_entry = NULL;

static void
leaf_invalidated(LogEntry *entry, Oid relid)
{
	for (int i = 0; i < entry->leaves.nleaves; i++)
	{
		if (entry->leaves.leaves[i].relid == relid)
		{
			entry->leaf_stale[i] = true;
			entry->indexes_stale = true;
			return;
		}
	}
}

static void
relation_invalidated(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	LogEntry   *entry;

	hash_seq_init(&status, entries);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (relid == InvalidOid || relid == entry->log_relid)
			entry->stale = true;
		else if (!entry->stale)
			leaf_invalidated(entry, relid);
	}
}

static void
init_cache(void)
{
	HASHCTL		ctl;

	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(LogEntry);
	entries = hash_create("hotmesh_stream logs", 16, &ctl, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(relation_invalidated, (Datum) 0);
}

static LogEntry *
get_entry(Oid log_relid)
{
	LogEntry   *entry;
	bool		found;

	if (last_entry != NULL && last_entry->log_relid == log_relid)
		return last_entry;
	if (entries == NULL)
		init_cache();

	entry = hash_search(entries, &log_relid, HASH_ENTER, &found);
	if (!found)
	{
		entry->stale = true;
		entry->indexes_stale = false;
		entry->context = NULL;
		entry->leaf_stale = NULL;
		memset(&entry->leaves, 0, sizeof(HmsLeaves));
	}
	last_entry = entry;
	return entry;
}

static void
forget_entry(LogEntry *entry)
{
	Oid			log_relid = entry->log_relid;

	if (entry->context != NULL)
		MemoryContextDelete(entry->context);
	last_entry = NULL;
	hash_search(entries, &log_relid, HASH_REMOVE, NULL);
}

static bool
index_has_columns(Form_pg_index index, const AttrNumber *columns)
{
	if (index->indnkeyatts != 3)
		return false;
	for (int i = 0; i < 3; i++)
	{
		if (index->indkey.values[i] != columns[i])
			return false;
	}
	return true;
}

/* Find the three indexes of a leaf in pg_index, without locking the leaf. */
static void
find_indexes(HmsLeaf *leaf)
{
	Relation	catalog = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	leaf->order_idx = InvalidOid;
	leaf->xid_idx = InvalidOid;
	leaf->key_idx = InvalidOid;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(leaf->relid));
	scan = systable_beginscan(catalog, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);

		if (!index->indisvalid || !index->indislive)
			continue;

		/* What other predicate an index has, publish refuses (write.c). */
		if (!heap_attisnull(tuple, Anum_pg_index_indpred, NULL))
		{
			if (index_has_columns(index, key_columns))
				leaf->key_idx = index->indexrelid;
			continue;
		}
		if (index_has_columns(index, order_columns))
			leaf->order_idx = index->indexrelid;
		else if (index_has_columns(index, xid_columns))
			leaf->xid_idx = index->indexrelid;
	}
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
}

static void
require_indexes(const HmsLeaf *leaf)
{
	if (OidIsValid(leaf->order_idx) && OidIsValid(leaf->xid_idx) && OidIsValid(leaf->key_idx))
		return;

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("log partition \"%s\" has no usable indexes",
					get_rel_name(leaf->relid)),
			 errhint("Create valid indexes on (stream_id, priority, id), on (xid, stream_id, id) and on (key, stream_id, id) where key is not null.")));
}

/* Bound 'i' of a partitioned table as a time. */
static TimestampTz
bound_value(PartitionBoundInfo bounds, int i)
{
	switch (bounds->kind[i][0])
	{
		case PARTITION_RANGE_DATUM_MINVALUE:
			return DT_NOBEGIN;
		case PARTITION_RANGE_DATUM_MAXVALUE:
			return DT_NOEND;
		default:
			return DatumGetTimestampTz(bounds->datums[i][0]);
	}
}

static void
add_leaf(HmsLeaves *out, Oid relid, TimestampTz lower, TimestampTz upper, bool is_default)
{
	HmsLeaf    *leaf = &out->leaves[out->nleaves++];

	memset(leaf, 0, sizeof(HmsLeaf));
	leaf->relid = relid;
	leaf->lower = lower;
	leaf->upper = upper;
	leaf->is_default = is_default;
}

/* Copy the bounds of an open log into 'out', sorted, the default partition last. */
static void
copy_bounds(Relation log, HmsLeaves *out)
{
	PartitionKey key = RelationGetPartitionKey(log);
	PartitionDesc desc = RelationGetPartitionDesc(log, true);
	PartitionBoundInfo bounds = desc->boundinfo;

	if (key == NULL || key->strategy != PARTITION_STRATEGY_RANGE ||
		key->partnatts != 1 || key->parttypid[0] != TIMESTAMPTZOID)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" is not partitioned as a log",
						RelationGetRelationName(log))));

	out->leaves = palloc(sizeof(HmsLeaf) * (desc->nparts + 1));
	out->nleaves = 0;
	out->default_index = -1;
	if (bounds == NULL)
		return;

	/* indexes[i] is the partition that ends at bound i; -1 for a gap. */
	for (int i = 1; i < bounds->ndatums; i++)
	{
		if (bounds->indexes[i] >= 0)
			add_leaf(out, desc->oids[bounds->indexes[i]],
					 bound_value(bounds, i - 1), bound_value(bounds, i), false);
	}
	if (bounds->default_index >= 0)
	{
		out->default_index = out->nleaves;
		add_leaf(out, desc->oids[bounds->default_index], DT_NOBEGIN, DT_NOEND, true);
	}
}

/* Note one row of log_partition in the leaf that begins at its lower bound. */
static bool
visit_sealed(HeapTuple tuple, TupleDesc desc, void *arg)
{
	HmsLeaves  *out = arg;
	bool		isnull;
	TimestampTz lower =
	DatumGetTimestampTz(heap_getattr(tuple, SEALED_LOWER_BOUND, desc, &isnull));
	int			i = hms_route_find(out, lower);

	if (i < 0 || out->leaves[i].is_default || out->leaves[i].lower != lower)
		return true;

	out->leaves[i].min_id =
		DatumGetInt64(heap_getattr(tuple, SEALED_MIN_ID, desc, &isnull));
	out->leaves[i].max_id =
		DatumGetInt64(heap_getattr(tuple, SEALED_MAX_ID, desc, &isnull));
	out->leaves[i].sealed = true;
	return true;
}

static void
read_sealed(HmsLeaves *out, int32 namespace_id)
{
	const HmsRelset *relset = hms_relset();
	ScanKeyData key;

	hms_key_int4(&key, SEALED_NAMESPACE_ID, BTEqualStrategyNumber, namespace_id);
	hms_config_each(relset->log_partition_rel, relset->log_partition_pkey,
					1, &key, visit_sealed, out);
}

/* Read the whole list into a new context; the parent is locked for the copy of its bounds only. */
static void
build_entry(LogEntry *entry, int32 namespace_id)
{
	MemoryContext context;
	MemoryContext old_context;
	Relation	log;
	HmsLeaves	leaves = {.log_relid = entry->log_relid};

	log = try_relation_open(entry->log_relid, AccessShareLock);
	if (log == NULL)
	{
		forget_entry(entry);
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the log of namespace %d does not exist", namespace_id),
				 errhint("Drop the namespace and create it again.")));
	}

	context = AllocSetContextCreate(CurrentMemoryContext, "hotmesh_stream log",
									ALLOCSET_SMALL_SIZES);
	old_context = MemoryContextSwitchTo(context);
	copy_bounds(log, &leaves);
	relation_close(log, AccessShareLock);

	for (int i = 0; i < leaves.nleaves; i++)
		find_indexes(&leaves.leaves[i]);
	read_sealed(&leaves, namespace_id);

	if (entry->context != NULL)
		MemoryContextDelete(entry->context);
	entry->leaves = leaves;
	entry->leaf_stale = palloc0(sizeof(bool) * (leaves.nleaves + 1));
	entry->context = context;
	MemoryContextSetParent(context, CacheMemoryContext);
	MemoryContextSwitchTo(old_context);
}

static void
refresh_indexes(LogEntry *entry)
{
	for (int i = 0; i < entry->leaves.nleaves && !entry->stale; i++)
	{
		if (!entry->leaf_stale[i])
			continue;
		entry->leaf_stale[i] = false;
		find_indexes(&entry->leaves.leaves[i]);
	}
}

/* Bring an entry up to date; repeats when an invalidation arrives meanwhile. */
static void
refresh_entry(LogEntry *entry, int32 namespace_id)
{
	while (entry->stale || entry->indexes_stale)
	{
		bool		rebuild = entry->stale;

		CHECK_FOR_INTERRUPTS();
		entry->stale = false;
		entry->indexes_stale = false;

		PG_TRY();
		{
			if (rebuild)
				build_entry(entry, namespace_id);
			else
				refresh_indexes(entry);
			for (int i = 0; i < entry->leaves.nleaves && !entry->stale; i++)
				require_indexes(&entry->leaves.leaves[i]);
		}
		PG_CATCH();
		{
			/* The entry itself may be gone, when the log is. */
			if (last_entry == entry)
				entry->stale = true;
			PG_RE_THROW();
		}
		PG_END_TRY();
	}
}

/*
 * hms_route_leaves
 *		The current leaves of a log; valid until the next call.
 */
const HmsLeaves *
hms_route_leaves(Oid log_relid, int32 namespace_id)
{
	LogEntry   *entry;

	AcceptInvalidationMessages();
	entry = get_entry(log_relid);
	if (entry->stale || entry->indexes_stale)
		refresh_entry(entry, namespace_id);
	return &entry->leaves;
}

/*
 * hms_route_invalidate
 *		Make every backend, this one at its next command, read the log anew.
 */
void
hms_route_invalidate(Oid log_relid)
{
	CacheInvalidateRelcacheByRelid(log_relid);
}

/*
 * hms_route_find
 *		Index into leaves of the partition for a time, or default_index.
 */
int
hms_route_find(const HmsLeaves *leaves, TimestampTz published_at)
{
	int			ranges = leaves->nleaves - (leaves->default_index >= 0 ? 1 : 0);
	int			low = 0;
	int			high = ranges;

	/*
	 * Publishers nearly always want one of the last few, but 400 take nine
	 * steps.
	 */
	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (leaves->leaves[middle].upper <= published_at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < ranges && leaves->leaves[low].lower <= published_at)
		return low;
	return leaves->default_index;
}

/*
 * hms_route_log_relid
 *		OID of a namespace's log, InvalidOid if missing.
 */
Oid
hms_route_log_relid(int32 namespace_id)
{
	char		name[NAMEDATALEN];

	snprintf(name, sizeof(name), "log_%d", namespace_id);
	return get_relname_relid(name, hms_relset()->data_schema);
}
