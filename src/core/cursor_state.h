/*-------------------------------------------------------------------------
 *
 * cursor_state.h
 *	  The cursor's rows: how positions and pending transactions are stored.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_CURSOR_STATE_H
#define HMS_CORE_CURSOR_STATE_H

#include "core/cursor.h"
#include "core/xid.h"
#include "storage/scan.h"
#include "storage/write.h"

/* Pending entries kept in the hot row; more go to cursor_spill. */
#define HMS_HOT_PENDING		32

/* Read a cursor from the row in 'slot'; spilled entries are read with 'snapshot'. */
extern void hms_cursor_decode(const HmsGroup *group, TupleTableSlot *slot,
							  Snapshot snapshot, HmsCursor *cursor);

/* Insert the row of a new incarnation, at the group's start_id. */
extern void hms_cursor_insert(int64 incarnation, HmsPending *pending, int npending);

/*
 * Replace the row at tid, locked by us, and its spill when the set of spilled
 * entries changed.  'spill_changed' = a spilled entry was removed or changed.  On
 * return tid is that of the new version.
 */
extern void hms_cursor_save(HmsWriter *writer, ItemPointer tid, Snapshot snapshot,
							const HmsGroup *group, HmsCursor *cursor, bool spill_changed);

/* The highest pos of any priority. */
extern int64 hms_cursor_highest_pos(const HmsCursor *cursor);

/* True when the row in 'slot' is the cursor of this incarnation. */
extern bool hms_cursor_is_of(TupleTableSlot *slot, int64 incarnation);

/* Find the newest version of a cursor row: backward over a plain index. */
extern bool hms_cursor_find(Relation rel, int64 incarnation, Snapshot snapshot, HmsScan *scan);

/*
 * Lock the cursor's row into 'slot' without waiting: at the place where it was
 * written last, or else through the index, whose newest entry comes first.
 */
extern HmsRowResult hms_cursor_lock(Relation rel, int64 incarnation, HmsGroupSlot *group_slot,
									TupleTableSlot *slot);

/*
 * Add the transactions that 'view' sees undecided to a pending list sorted by
 * 'from', with the given 'after'; those listed already keep their entry.
 */
extern void hms_pending_add_undecided(HmsCursor *cursor, const HmsXidView *view, int64 after);

#endif							/* HMS_CORE_CURSOR_STATE_H */
