/*-------------------------------------------------------------------------
 *
 * async_commit.h
 *	  Which of our transactions commit without waiting for the disk.
 *
 * Core marks claims through effects.h; effects.c calls these functions at
 * the transaction's end.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_ASYNC_COMMIT_H
#define HMS_SHMEM_ASYNC_COMMIT_H

/* Before commit: turn synchronous_commit off where that is allowed. */
extern void hms_async_commit_choose(void);

/* After commit: restore the setting.  Never fails. */
extern void hms_async_commit_committed(void);

/* After abort or PREPARE: restore the setting and forget everything. */
extern void hms_async_commit_reset(void);

/* After the locks are released: flush, if that was put off. */
extern void hms_async_commit_late_flush(void);

#endif							/* HMS_SHMEM_ASYNC_COMMIT_H */
