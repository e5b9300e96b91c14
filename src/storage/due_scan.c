/*-------------------------------------------------------------------------
 *
 * due_scan.c
 *	  The first due time of a delivery index behind a given one.
 *
 * Acked leases leave index entries whose due time lies ahead, and a pinned xmin
 * horizon keeps them: a search for the nearest due time could walk all of them
 * every second.  So the entries' own due time is fetched from the index, as an
 * index-only scan does, and the search ends after some dead entries with a time
 * that is at worst too early.  Reads only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/tableam.h"
#include "executor/tuptable.h"

#include "storage/due_scan.h"
#include "storage/scan.h"

#define DUE_ATTNO	3

TimestampTz
hms_due_scan(Relation heap, Oid index, Snapshot snapshot, int64 incarnation,
			 int priority, TimestampTz after, int max_dead)
{
	Relation	index_rel = index_open(index, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	TimestampTz due = DT_NOEND;
	ScanKeyData keys[3];
	IndexScanDesc scan;
	int			dead = 0;

	hms_key_int8(&keys[0], 1, BTEqualStrategyNumber, incarnation);
	hms_key_int2(&keys[1], 2, BTEqualStrategyNumber, priority);
	hms_key_time(&keys[2], DUE_ATTNO, BTGreaterStrategyNumber, after);
	scan = index_beginscan(heap, index_rel, snapshot, lengthof(keys), 0);
	scan->xs_want_itup = true;
	index_rescan(scan, keys, lengthof(keys), NULL, 0);
	while (index_getnext_tid(scan, ForwardScanDirection) != NULL)
	{
		bool		isnull;

		if (!index_fetch_heap(scan, slot) && ++dead < max_dead)
			continue;
		due = DatumGetTimestampTz(index_getattr(scan->xs_itup, DUE_ATTNO,
												scan->xs_itupdesc, &isnull));
		break;
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	index_close(index_rel, AccessShareLock);
	return due;
}
