/*-------------------------------------------------------------------------
 *
 * retention.h
 *	  The housekeeper's work on logs: runway, healing, sealing, retention.
 *
 * Each function does at most one step that takes a lock, inside the caller's
 * transaction, which then has to be committed before the next one.  Nothing
 * here waits for a lock longer than HMS_DDL_LOCK_TIMEOUT_MS.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_RETENTION_H
#define HMS_CORE_RETENTION_H

#include "core/stream_cache.h"

typedef enum HmsStep
{
	HMS_STEP_IDLE,				/* nothing to do */
	HMS_STEP_DONE,				/* one step done: commit and call again */
	HMS_STEP_BLOCKED			/* a lock was not to be had; try again later */
} HmsStep;

/* Create the next missing partition of now .. now + premake intervals. */
extern HmsStep hms_retention_runway(const HmsNamespace *ns, TimestampTz now);

/* Move one range of rows out of the default partition. */
extern HmsStep hms_retention_heal(const HmsNamespace *ns, TimestampTz now);

/*
 * Seal the oldest unsealed partition that can be, whose upper bound has passed
 * and that is older than the newest message's partition.
 */
extern HmsStep hms_retention_seal(const HmsNamespace *ns, TimestampTz now);

/* Drop the oldest partition that retention or retention_hard lets go; counts what groups lose. */
extern HmsStep hms_retention_drop(const HmsNamespace *ns, TimestampTz now);

/* Why the oldest expired partition is still there ("group g of stream s is at id 5"), NULL if nothing holds one. */
extern char *hms_retention_blocker(const HmsNamespace *ns, TimestampTz now);

/* Partitions ready ahead of 'now' without a gap; 0 also when that of now is missing. */
extern int	hms_retention_runway_left(const HmsNamespace *ns, TimestampTz now);

/* Rows in the default partition: estimated above 10000, 1 while they are being moved. */
extern int64 hms_retention_default_rows(const HmsNamespace *ns);

#endif							/* HMS_CORE_RETENTION_H */
