/*-------------------------------------------------------------------------
 *
 * due_scan.h
 *	  The first due time of a delivery index behind a given one, in bounded time.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_DUE_SCAN_H
#define HMS_STORAGE_DUE_SCAN_H

#include "utils/rel.h"
#include "utils/snapshot.h"
#include "utils/timestamp.h"

/*
 * The lowest due time > after of the rows of (incarnation, priority), DT_NOEND if there is none.
 * 'index' is ordered by (incarnation, priority, due time, ...).  After
 * max_dead entries that the snapshot does not see it gives up and returns the due time it
 * has come to: a time that may be too early, never too late.
 */
extern TimestampTz hms_due_scan(Relation heap, Oid index, Snapshot snapshot, int64 incarnation,
								int priority, TimestampTz after, int max_dead);

#endif							/* HMS_STORAGE_DUE_SCAN_H */
