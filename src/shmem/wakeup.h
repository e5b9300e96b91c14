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
 * The first waiter's timer.  take: true when, since the last call, a due time below the one
 * last set was committed, or we became the first.  Then find the nearest due time
 * of the group, and set it: commits with later ones leave us alone.
 */
extern bool hms_wait_take_timer(HmsWaiter *waiter);
extern void hms_wait_set_timer(HmsWaiter *waiter, TimestampTz due);

/*
 * Leave.  A signal we did not take, or took without finding anything
 * (satisfied = false), is passed to the next waiter of the group.  Also run
 * for every waiter of this backend at process exit and transaction abort
 * (hms_wait_leave_all).
 */
extern void hms_wait_leave(HmsWaiter *waiter, bool satisfied);
extern void hms_wait_leave_all(void);

/* The same for those entered at 'nest_level' or deeper, for a rolled back subtransaction. */
extern void hms_wait_leave_level(int nest_level);

/* Wake up to 'count' waiters of each group of a stream / of one group; set latches. */
extern void hms_wake_stream(Oid dboid, int32 stream_id, int count);
extern void hms_wake_group(Oid dboid, int64 incarnation, int count);

/* Wake every waiter of a stream or group, because it was dropped or changed. */
extern void hms_wake_stream_all(Oid dboid, int32 stream_id);
extern void hms_wake_group_all(Oid dboid, int64 incarnation);

/* A row due at 'due' was committed: when that is below its timer, the group's first waiter is told. */
extern void hms_wake_timer(Oid dboid, int64 incarnation, TimestampTz due);

/* Waiters of a group now; cheap. */
extern int	hms_waiters_of_group(Oid dboid, int64 incarnation);
extern void hms_waiter_usage(int *used, int *size);

/* --- for shmem.c ------------------------------------------------------------ */
extern Size hms_wait_size(void);
extern void hms_wait_init(void *ptr, bool found);

#endif							/* HMS_SHMEM_WAKEUP_H */
