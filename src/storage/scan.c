/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  Index scans through the access methods.
 *
 * A thin layer over index_beginscan() that also counts the index entries whose
 * row the snapshot does not see: they are what makes a queue slow, and
 * core/cursor.c decides by them when to jump over a stretch of the log.
 * Nothing is shared; locks on the heap are the caller's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/pg_collation.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"

#include "hms.h"
#include "storage/scan.h"

static uint64 entries_visited = 0;

void
hms_scan_begin(HmsScan *scan, Relation heap, Oid index_oid,
			   Snapshot snapshot, int nkeys, ScanKey keys)
{
	scan->heap = heap;
	scan->index = index_open(index_oid, AccessShareLock);
	scan->slot = table_slot_create(heap, NULL);
	scan->invisible = 0;
	scan->desc = index_beginscan(heap, scan->index, snapshot, nkeys, 0);
	index_rescan(scan->desc, keys, nkeys, NULL, 0);
}

void
hms_scan_restart(HmsScan *scan, int nkeys, ScanKey keys)
{
	ExecClearTuple(scan->slot);
	index_rescan(scan->desc, keys, nkeys, NULL, 0);
}

bool
hms_scan_next(HmsScan *scan, ScanDirection direction)
{
	while (index_getnext_tid(scan->desc, direction) != NULL)
	{
		entries_visited++;
		if (index_fetch_heap(scan->desc, scan->slot))
			return true;
		scan->invisible++;
	}
	ExecClearTuple(scan->slot);
	return false;
}

void
hms_scan_end(HmsScan *scan)
{
	ExecDropSingleTupleTableSlot(scan->slot);
	index_endscan(scan->desc);
	index_close(scan->index, AccessShareLock);
}

bool
hms_fetch_at(Relation heap, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot)
{
	return ItemPointerGetBlockNumber(tid) < RelationGetNumberOfBlocks(heap) &&
		table_tuple_fetch_row_version(heap, tid, snapshot, slot);
}

/* The comparison operator of one btree strategy, out of five. */
static RegProcedure
pick(StrategyNumber strategy, const RegProcedure *procs)
{
	Assert(strategy >= BTLessStrategyNumber && strategy <= BTGreaterStrategyNumber);
	return procs[strategy - 1];
}

void
hms_key_int8(ScanKey key, AttrNumber attno, StrategyNumber strategy, int64 value)
{
	static const RegProcedure procs[] = {F_INT8LT, F_INT8LE, F_INT8EQ, F_INT8GE, F_INT8GT};

	ScanKeyInit(key, attno, strategy, pick(strategy, procs), Int64GetDatum(value));
}

void
hms_key_int4(ScanKey key, AttrNumber attno, StrategyNumber strategy, int32 value)
{
	static const RegProcedure procs[] = {F_INT4LT, F_INT4LE, F_INT4EQ, F_INT4GE, F_INT4GT};

	ScanKeyInit(key, attno, strategy, pick(strategy, procs), Int32GetDatum(value));
}

void
hms_key_int2(ScanKey key, AttrNumber attno, StrategyNumber strategy, int16 value)
{
	static const RegProcedure procs[] = {F_INT2LT, F_INT2LE, F_INT2EQ, F_INT2GE, F_INT2GT};

	ScanKeyInit(key, attno, strategy, pick(strategy, procs), Int16GetDatum(value));
}

void
hms_key_time(ScanKey key, AttrNumber attno, StrategyNumber strategy, TimestampTz value)
{
	static const RegProcedure procs[] = {
		F_TIMESTAMPTZ_LT, F_TIMESTAMPTZ_LE, F_TIMESTAMPTZ_EQ,
		F_TIMESTAMPTZ_GE, F_TIMESTAMPTZ_GT
	};

	ScanKeyInit(key, attno, strategy, pick(strategy, procs), TimestampTzGetDatum(value));
}

void
hms_key_text(ScanKey key, AttrNumber attno, const text *value)
{
	ScanKeyEntryInitialize(key, 0, attno, BTEqualStrategyNumber, InvalidOid,
						   DEFAULT_COLLATION_OID, F_TEXTEQ, PointerGetDatum(value));
}

uint64
hms_scan_entries_visited(void)
{
	return entries_visited;
}
