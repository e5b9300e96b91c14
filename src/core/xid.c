/*-------------------------------------------------------------------------
 *
 * xid.c
 *	  Stored transaction ids.
 *
 * The log and the pending lists of cursors store 64-bit transaction ids.  They
 * do not survive a logical restore: another cluster counts from elsewhere.  So
 * each database has an offset that is added to every id it stores.  The one
 * row of hotmesh_stream.xid_offset is not dumped on purpose: physical copies carry
 * it, a logical restore never does.  A database without it is new or was
 * restored, and its first user stores max(0, highest stored xid + 1) under a
 * table lock.  Whatever is stored below the offset is then known to be over.
 *
 * On crash: the row is ordinary, committed data.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/subtrans.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/cursor.h"
#include "core/log.h"
#include "core/xid.h"
#include "storage/relset.h"
#include "storage/scan.h"
#include "storage/write.h"

/* The offset, once its row is committed; valid for one xid_offset table. */
static Oid	cached_relid = InvalidOid;
static int64 cached_offset = 0;

/*
 * Read the row; *foreign is set when another transaction wrote it, so that it
 * may be remembered beyond this one.
 */
static bool
read_offset(Oid relid, int64 *offset, bool *foreign)
{
	Relation	rel = table_open(relid, AccessShareLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	bool		found = table_scan_getnextslot(scan, ForwardScanDirection, slot);

	if (found)
	{
		bool		isnull;
		TransactionId xmin;

		*offset = DatumGetInt64(slot_getattr(slot, 1, &isnull));
		xmin = DatumGetTransactionId(slot_getsysattr(slot, MinTransactionIdAttributeNumber, &isnull));
		*foreign = !TransactionIdIsCurrentTransactionId(xmin);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	table_close(rel, AccessShareLock);
	return found;
}

/* The highest xid stored anywhere in this database; -1 if none. */
static HmsXid
highest_stored_xid(void)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	HmsNamespace *namespaces;
	int			n = hms_list_namespaces(&namespaces);
	HmsXid		highest = hms_cursor_highest_xid(snapshot);

	for (int i = 0; i < n; i++)
		highest = Max(highest, hms_log_highest_xid(&namespaces[i], snapshot));
	UnregisterSnapshot(snapshot);
	return highest;
}

/* First use of a new or restored database. */
static int64
store_offset(Oid relid)
{
	HmsWriter	writer;
	TupleTableSlot *slot;
	int64		offset;
	bool		foreign;

	PreventCommandDuringRecovery("the first use of hotmesh_stream in a database");

	/* Held to the end of the transaction: nobody computes a second one. */
	LockRelationOid(relid, ShareRowExclusiveLock);
	if (read_offset(relid, &offset, &foreign))
		return offset;

	offset = Max(0, highest_stored_xid() + 1);
	hms_writer_open(&writer, relid);
	slot = MakeSingleTupleTableSlot(RelationGetDescr(writer.rel), &TTSOpsVirtual);
	slot->tts_values[0] = Int64GetDatum(offset);
	slot->tts_isnull[0] = false;
	ExecStoreVirtualTuple(slot);
	hms_insert(&writer, slot);
	ExecDropSingleTupleTableSlot(slot);
	hms_writer_close(&writer, false);
	CommandCounterIncrement();
	return offset;
}

int64
hms_xid_offset(void)
{
	Oid			relid = hms_relset()->xid_offset_rel;
	int64		offset;
	bool		foreign;

	if (relid == cached_relid)
		return cached_offset;
	if (!read_offset(relid, &offset, &foreign))
		return store_offset(relid);
	if (foreign)
	{
		cached_relid = relid;
		cached_offset = offset;
	}
	return offset;
}

bool
hms_xid_offset_known(void)
{
	Oid			relid = hms_relset()->xid_offset_rel;
	int64		offset;
	bool		foreign;

	return relid == cached_relid || read_offset(relid, &offset, &foreign);
}

HmsXid
hms_xid_own(void)
{
	return (HmsXid) U64FromFullTransactionId(GetTopFullTransactionId()) + hms_xid_offset();
}

/* Sorting and searching of a small array of xids. */
static int
compare_xids(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return (x > y) - (x < y);
}

/* Index of the first element >= xid. */
static int
lower_bound(const HmsXid *xids, int n, HmsXid xid)
{
	int			lo = 0;
	int			hi = n;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (xids[mid] < xid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * The running xids of the last snapshot, sorted.  Between two reads of a backend
 * they are often the same, and with hundreds of idle transactions sorting them anew
 * would be most of a read.
 */
typedef struct SortedXids
{
	TransactionId *xip;			/* as the snapshot had them */
	uint32		xcnt;
	uint64		next64;			/* when they were widened */
	int			n;
	uint64	   *sorted;			/* without duplicates */
} SortedXids;

static SortedXids sorted_xids;

/* Widen, sort and remember the running xids of a snapshot. */
static void
sort_running(Snapshot snapshot, uint64 next64)
{
	SortedXids *cache = &sorted_xids;
	uint32		next32 = (uint32) next64;
	Size		xip_bytes = sizeof(TransactionId) * snapshot->xcnt;

	if (cache->xcnt == snapshot->xcnt && cache->sorted != NULL &&
		next64 - cache->next64 < PG_INT32_MAX &&
		memcmp(cache->xip, snapshot->xip, xip_bytes) == 0)
		return;

	/* Forgotten first: an error below leaves nothing half done. */
	cache->xcnt = 0;
	if (cache->sorted != NULL)
	{
		pfree(cache->sorted);
		pfree(cache->xip);
		cache->sorted = NULL;
	}
	cache->xip = MemoryContextAlloc(TopMemoryContext, xip_bytes + 1);
	cache->sorted = MemoryContextAlloc(TopMemoryContext, sizeof(uint64) * (snapshot->xcnt + 1));
	memcpy(cache->xip, snapshot->xip, xip_bytes);

	/* No running xid is more than 2^31 behind the next one. */
	for (uint32 i = 0; i < snapshot->xcnt; i++)
		cache->sorted[i] = next64 - (uint32) (next32 - snapshot->xip[i]);
	qsort(cache->sorted, snapshot->xcnt, sizeof(uint64), compare_xids);
	cache->n = 0;
	for (uint32 i = 0; i < snapshot->xcnt; i++)
	{
		if (cache->n == 0 || cache->sorted[cache->n - 1] != cache->sorted[i])
			cache->sorted[cache->n++] = cache->sorted[i];
	}
	cache->next64 = next64;
	cache->xcnt = snapshot->xcnt;
}

/*
 * hms_xid_view
 *		What a snapshot says of transactions, in stored form.
 *
 * Uses S.xip alone: it lists top-level transactions exactly, also when
 * subtransaction caches have overflowed, and the log stores top-level xids only.
 * During PREPARE a transaction stands in it twice; our own never does.
 */
void
hms_xid_view(HmsXidView *view, Snapshot snapshot)
{
	uint64		next64 = U64FromFullTransactionId(ReadNextFullTransactionId());
	FullTransactionId own = GetTopFullTransactionIdIfAny();

	view->offset = hms_xid_offset();
	view->own = FullTransactionIdIsValid(own) ?
		(HmsXid) U64FromFullTransactionId(own) + view->offset : 0;
	view->next = (HmsXid) next64 + view->offset;
	view->xmax = (HmsXid) (next64 - (uint32) ((uint32) next64 - snapshot->xmax)) + view->offset;

	sort_running(snapshot, next64);
	view->last_found = -1;
	view->nrunning = sorted_xids.n;
	view->running = palloc(sizeof(HmsXid) * (view->nrunning + 1));
	for (int i = 0; i < view->nrunning; i++)
		view->running[i] = (HmsXid) sorted_xids.sorted[i] + view->offset;
}

HmsXid
hms_xid_run(HmsXidView *view, HmsXid from, HmsXid to, bool *decided)
{
	HmsXid		end = to;
	int			i;

	if (from == view->own)
	{
		*decided = true;
		return from + 1;
	}
	if (view->own > from)
		end = Min(end, view->own);
	if (from < view->offset)
	{
		*decided = true;
		return Min(end, view->offset);
	}
	if (from >= view->xmax)
	{
		*decided = false;
		return end;
	}

	/* Callers ask in rising order: the next one is usually the next one. */
	i = view->last_found + 1;
	if (i >= view->nrunning || view->running[i] != from)
		i = lower_bound(view->running, view->nrunning, from);
	view->last_found = i;
	if (i < view->nrunning && view->running[i] == from)
	{
		*decided = false;
		return from + 1;
	}
	*decided = true;
	end = Min(end, view->xmax);
	if (i < view->nrunning)
		end = Min(end, view->running[i]);
	return end;
}

bool
hms_xid_is_sub(const HmsXidView *view, HmsXid xid)
{
	return TransactionIdIsValid(SubTransGetParent((TransactionId) (xid - view->offset)));
}
