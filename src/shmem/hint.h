/*-------------------------------------------------------------------------
 *
 * hint.h
 *	  Low-water hints: the lowest due time that can still be live, per
 *	  (database, delivery table, incarnation, priority).
 *
 * A hint may be too low (costs time) but is never too high for longer than
 * the paced rescan takes.  The protocol stands at the head of hint.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_HINT_H
#define HMS_SHMEM_HINT_H

#include "hms.h"

typedef struct HmsHintKey
{
	Oid			dboid;
	Oid			relid;			/* OID of the delivery table */
	int64		incarnation;
	int32		priority;
	int32		unused;			/* zero: the key is hashed as bytes */
} HmsHintKey;

/* One claim's use of a hint; the caller's local variable. */
typedef struct HmsHintScan
{
	HmsHintKey	key;
	TimestampTz lo;				/* scan from here; DT_NOBEGIN = from the start */
	TimestampTz own_low;		/* as given to hms_hint_begin() */
	uint64		gen;			/* generation noted before the snapshot */
	bool		usable;			/* false: no entry, shared memory full */
	bool		rescan;			/* this scan starts at -infinity to check the
								 * hint */
	int64		started_us;		/* hms_monotonic_us() */
} HmsHintScan;

/* Fill a key, with all padding zeroed. */
extern void hms_hint_key(HmsHintKey *key, Oid relid, int64 incarnation, int priority);

/*
 * Note (lo, gen); must be called BEFORE the claim's snapshot is taken.  With
 * 'may_rescan', a scan from -infinity is asked for when its pace allows it.
 * own_low = hms_effects_own_low(key): the lowest due time among the rows that
 * this transaction wrote, and among those it updated or deleted (DT_NOEND if
 * none); the scan starts no later than it and does not raise the hint above it.
 */
extern void hms_hint_begin(HmsHintScan *scan, const HmsHintKey *key,
						   TimestampTz own_low, bool may_rescan);

/*
 * Tell what the scan met: first_due is the due time of the first visible index
 * row (claimable, locked or just updated, all three count), 'now' when the
 * scan met none up to 'now'.  Raises the hint when the protocol allows it.
 * Not to be called when the scan raised an error or ended early before its first row.
 */
extern void hms_hint_end(HmsHintScan *scan, TimestampTz first_due);

/* A committed transaction wrote a row due at 'due'.  Never fails, no palloc. */
extern void hms_hint_lower(const HmsHintKey *key, TimestampTz due);

/* The hint as it stands, DT_NOBEGIN if unknown.  For tests and health(). */
extern TimestampTz hms_hint_peek(const HmsHintKey *key);

/* Set the hint, right or wrong: for tests of the paced rescan only. */
extern void hms_hint_set_for_test(const HmsHintKey *key, TimestampTz lo);

/* How often the hint was checked by a scan from -infinity. */
extern int64 hms_hint_rescans(const HmsHintKey *key);

/* Number of entries in use and the size of the table, for health(). */
extern void hms_hint_usage(int *used, int *size);

/* --- for shmem.c ------------------------------------------------------------ */
extern Size hms_hint_size(void);
extern void hms_hint_init(void *ptr, bool found);
extern void hms_hint_forget_database(Oid dboid);

#endif							/* HMS_SHMEM_HINT_H */
