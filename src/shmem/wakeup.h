/*-------------------------------------------------------------------------
 *
 * wakeup.h
 *	  Blocked readers: who waits for which group, and whom a commit wakes.
 *
 * First come, first served per group.  A signal is a permission to look, not
 * a message: whoever leaves with an unused signal passes it to the next.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_WAKEUP_H
#define HMS_SHMEM_WAKEUP_H

#include "hms.h"

typedef struct HmsWaiter HmsWaiter;

/*
 * Register this backend as a waiter of a group of the current database.  NULL
 * when the table is full: the caller then polls.  Enter first, then look for
 * messages, then sleep: a commit between look and sleep sets our latch.
 */
extern HmsWaiter *hms_wait_enter(int32 stream_id, int64 incarnation);

/* True when no other waiter of the group came before us and is still there. */
extern bool hms_wait_is_first(HmsWaiter *waiter);

/* Consume our signal: true when a wake-up was meant for us since the last call. */
extern bool hms_wait_take_signal(HmsWaiter *waiter);

/*
 * Leave.  A signal we did not take, or took without finding anything
 * (satisfied = false), is passed to the next waiter of the group.  Also run
 * for every waiter of this backend at process exit and transaction abort
 * (hms_wait_leave_all).
 */
extern void hms_wait_leave(HmsWaiter *waiter, bool satisfied);
extern void hms_wait_leave_all(void);

/* Wake up to 'count' waiters of each group of a stream / of one group; set latches. */
extern void hms_wake_stream(Oid dboid, int32 stream_id, int count);
extern void hms_wake_group(Oid dboid, int64 incarnation, int count);

/* Wake every waiter of a stream or group, because it was dropped or changed. */
extern void hms_wake_stream_all(Oid dboid, int32 stream_id);
extern void hms_wake_group_all(Oid dboid, int64 incarnation);

/* Make the group's first waiter compute its timer again (a lower due time was written). */
extern void hms_wake_timer(Oid dboid, int64 incarnation);

/* Waiters of a group now; cheap. */
extern int	hms_waiters_of_group(Oid dboid, int64 incarnation);
extern void hms_waiter_usage(int *used, int *size);

#endif							/* HMS_SHMEM_WAKEUP_H */
