/*-------------------------------------------------------------------------
 *
 * effects.h
 *	  What the current transaction owes to shared memory at its end.
 *
 * Core notes effects while it works; hooks/xact.c calls the hms_effects_at_*
 * functions from the one pair of transaction callbacks.  Effects noted in a
 * subtransaction that rolls back are forgotten (wake-ups, counters) or kept where keeping is
 * harmless (due times).  After a PREPARE nobody is woken: the fallback tick finds the messages.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_EFFECTS_H
#define HMS_SHMEM_EFFECTS_H

#include "shmem/counters.h"
#include "shmem/group_slot.h"
#include "shmem/hint.h"

/* --- noted by core ---------------------------------------------------------- */

/*
 * 'count' messages of 'bytes' in all were published to a stream: at commit wake
 * as many waiters of each group, and add to the stream's counters.
 */
extern void hms_effects_published(int32 stream_id, int count, int64 bytes);

/* True when this transaction has published to the stream (and not rolled that back). */
extern bool hms_effects_has_published(int32 stream_id);

/*
 * A delivery row due at 'due' was written.  At commit: lowers the hint,
 * lets the group's first waiter compute its timer again, and if due <= now
 * wakes a waiter.  Makes PREPARE TRANSACTION fail (see hms_effects_refuse_prepare).
 */
extern void hms_effects_due(const HmsHintKey *key, TimestampTz due);

/*
 * A delivery row that was due at 'due' was updated or deleted: by a claim, an ack, any
 * settle.  Until this transaction ends, its scans do not see the row, but it is live again if the
 * transaction rolls back; so they must not raise the hint above it.  Does not forbid PREPARE.
 */
extern void hms_effects_replaced(const HmsHintKey *key, TimestampTz due);

/*
 * The lowest due time this transaction noted for the key, by either of the above; DT_NOEND if
 * none.  For hms_hint_begin().
 */
extern TimestampTz hms_effects_own_low(const HmsHintKey *key);

/* Wake waiters of a group at commit. */
extern void hms_effects_wake_group(int64 incarnation, int count);

/* At commit wake everybody who waits on a stream (incarnation = 0) or on a group. */
extern void hms_effects_wake_all(int32 stream_id, int64 incarnation);

/* PREPARE TRANSACTION will raise 0A000 naming 'action', e.g. "read". */
extern void hms_effects_refuse_prepare(const char *action);

/*
 * The cursor is locked by this transaction: calls hms_cursor_held(), and at the transaction's (or
 * rolled back subtransaction's) end hms_cursor_released().  slot = NULL when there is none.
 * Makes PREPARE TRANSACTION fail.
 */
extern void hms_effects_cursor_held(HmsGroupSlot *slot, int64 incarnation);
extern bool hms_effects_holds_cursor(int64 incarnation);

/* The cursor's new row version stands at 'tid': others look there first once we have committed. */
extern void hms_effects_cursor_place(HmsGroupSlot *slot, int64 incarnation, const ItemPointerData * tid);

/* The log was dropped: at commit its slot is given back, so that it stays if we roll back. */
extern void hms_effects_log_dropped(Oid log_relid);

/* Counters, added at commit. */
extern void hms_effects_count_group(int32 group_id, HmsGroupCounter counter, int64 n);
extern void hms_effects_count_stream(int32 stream_id, HmsStreamCounter counter, int64 n);

/*
 * Bracket a claim's own writes.  When everything this transaction wrote to WAL was
 * written between begin and end calls, and hotmesh_stream.async_claims is on, it commits asynchronously.
 * 'begin' must come before the first WAL of the claim.
 */
extern void hms_effects_claim_begin(void);
extern void hms_effects_claim_end(void);

/*
 * Commit without flushing under the locks and flush after they are released, before the
 * client hears of it: for an inline advance whose transaction is an autocommit
 * statement that touches our tables only.  Not with synchronous standbys.
 */
extern void hms_effects_late_flush(void);

/* --- called by hooks/xact.c ----------------------------------------------------- */
extern void hms_effects_pre_commit(void);
extern void hms_effects_pre_prepare(void);	/* raises when refused */
extern void hms_effects_at_commit(void);	/* never fails */
extern void hms_effects_at_abort(void);
extern void hms_effects_at_prepare(void);
extern void hms_effects_after_locks(void);	/* resource release, after locks,
											 * at top-level commit */
extern void hms_effects_at_subcommit(int nest_level);
extern void hms_effects_at_subabort(int nest_level);

#endif							/* HMS_SHMEM_EFFECTS_H */
