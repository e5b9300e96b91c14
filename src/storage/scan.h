/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  Index scans through the access methods, and the scan keys for them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_SCAN_H
#define HMS_STORAGE_SCAN_H

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

typedef struct HmsScan
{
	Relation	heap;
	Relation	index;
	IndexScanDesc desc;
	TupleTableSlot *slot;		/* the current row; owned by the scan */
	int64		invisible;		/* index entries met that the snapshot does
								 * not see */
} HmsScan;

/*
 * Scan 'heap' (open, locked by the caller) by an index, opened here with
 * AccessShareLock.  The snapshot must stay registered until hms_scan_end().  The index
 * attribute numbers in 'keys' are those of the index (1 = first column).
 */
extern void hms_scan_begin(HmsScan *scan, Relation heap, Oid index_oid,
						   Snapshot snapshot, int nkeys, ScanKey keys);

/* Restart with other key values; same number of keys. */
extern void hms_scan_restart(HmsScan *scan, int nkeys, ScanKey keys);

/* Next visible row into scan->slot; false at the end. */
extern bool hms_scan_next(HmsScan *scan, ScanDirection direction);
extern void hms_scan_end(HmsScan *scan);

/*
 * Fetch the row at a place that was remembered; false unless one is there that the snapshot
 * sees.  It may be any row of the table: check its key.
 */
extern bool hms_fetch_at(Relation heap, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot);

/* Scan keys; strategy is one of BT*StrategyNumber. */
extern void hms_key_int8(ScanKey key, AttrNumber attno, StrategyNumber strategy, int64 value);
extern void hms_key_int4(ScanKey key, AttrNumber attno, StrategyNumber strategy, int32 value);
extern void hms_key_int2(ScanKey key, AttrNumber attno, StrategyNumber strategy, int16 value);
extern void hms_key_time(ScanKey key, AttrNumber attno, StrategyNumber strategy, TimestampTz value);
extern void hms_key_text(ScanKey key, AttrNumber attno, const text *value); /* equality, C collation
																			 * rules of the column */

/* Index entries visited by all scans of this backend; for tests that count instead of timing. */
extern uint64 hms_scan_entries_visited(void);

#endif							/* HMS_STORAGE_SCAN_H */
