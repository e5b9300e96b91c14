/*-------------------------------------------------------------------------
 *
 * dead_letter_admin.c
 *	  Listing and discarding a group's dead letters.
 *
 * Runs in the backend that calls.  Listing reads under the caller's snapshot;
 * discarding takes a fresh one and never waits for a row: what a concurrent
 * redrive or discard holds is skipped, so that each dead letter is counted once.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

#include "core/dead_letter.h"
#include "core/dead_letter_admin.h"
#include "core/log_merge.h"
#include "storage/relset.h"
#include "storage/scan.h"
#include "storage/write.h"

void
hms_dead_letter_each(const HmsGroup *group, Snapshot snapshot, int64 after_id, int max,
					 HmsDeadLetterVisitor visit, void *arg)
{
	Oid			index = hms_relset()->dead_letter_idx;
	Relation	rel = table_open(hms_relset()->dead_letter_rel, AccessShareLock);
	ScanKeyData keys[2];
	HmsScan		scan;

	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, group->group_id);
	hms_key_int8(&keys[1], 2, BTGreaterStrategyNumber, after_id);
	hms_scan_begin(&scan, rel, index, snapshot, lengthof(keys), keys);
	for (int i = 0; i < max && hms_scan_next(&scan, ForwardScanDirection); i++)
	{
		CHECK_FOR_INTERRUPTS();
		visit(scan.slot, arg);
	}
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
}

/* Delete what the scan meets and died before 'before'. */
static int
discard_scanned(Relation rel, HmsScan *scan, Snapshot snapshot, TimestampTz before)
{
	int			discarded = 0;

	while (hms_scan_next(scan, ForwardScanDirection))
	{
		CHECK_FOR_INTERRUPTS();
		if (before != DT_NOEND &&
			DatumGetTimestampTz(hms_log_column(scan->slot, HMS_DEAD_DEAD_AT)) >= before)
			continue;
		if (hms_delete_row(rel, &scan->slot->tts_tid, snapshot) == HMS_ROW_OK)
			discarded++;
	}
	return discarded;
}

int
hms_dead_letter_discard(const HmsGroup *group, const int64 *ids, int nids, TimestampTz before)
{
	Oid			index = hms_relset()->dead_letter_idx;
	Relation	rel = table_open(hms_relset()->dead_letter_rel, RowExclusiveLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	int			discarded = 0;
	ScanKeyData keys[2];
	HmsScan		scan;

	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, group->group_id);
	if (nids < 0)
	{
		hms_scan_begin(&scan, rel, index, snapshot, 1, keys);
		discarded = discard_scanned(rel, &scan, snapshot, before);
		hms_scan_end(&scan);
	}
	for (int i = 0; i < nids; i++)
	{
		hms_key_int8(&keys[1], 2, BTEqualStrategyNumber, ids[i]);
		hms_scan_begin(&scan, rel, index, snapshot, lengthof(keys), keys);
		discarded += discard_scanned(rel, &scan, snapshot, before);
		hms_scan_end(&scan);
	}

	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
	table_close(rel, NoLock);
	return discarded;
}
