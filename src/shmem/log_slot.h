/*-------------------------------------------------------------------------
 *
 * log_slot.h
 *	  Per log (namespace): the closed bound and the newest partition in use.
 *
 * Found by (database, OID of the log's parent table).  Slots of living logs are never
 * evicted; a log without a slot is never closed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_LOG_SLOT_H
#define HMS_SHMEM_LOG_SLOT_H

#include "hms.h"

typedef struct HmsLogSlot HmsLogSlot;

/*
 * Find or make the slot.  *created is set until hms_log_set_base_newest() was
 * called: the caller then merges the catalog's closed bound, and after it the
 * newest partition that has blocks.  Several backends may do so at once.
 * NULL when the table is full.
 */
extern HmsLogSlot *hms_log_slot(Oid log_relid, bool *created);
extern void hms_log_slot_forget(Oid log_relid);

/* published_at is never below this. DT_NOBEGIN at first: load the slot before. */
extern TimestampTz hms_log_closed_bound(HmsLogSlot *slot);
extern void hms_log_raise_closed_bound(HmsLogSlot *slot, TimestampTz bound);	/* merge by maximum */

/*
 * Upper limit of the lower bounds of partitions that may hold rows; DT_NOEND
 * until hms_log_set_base_newest() was called.  A publisher raises it before it inserts.
 */
extern TimestampTz hms_log_newest(HmsLogSlot *slot);
extern void hms_log_raise_newest(HmsLogSlot *slot, TimestampTz lower_bound);
extern void hms_log_set_base_newest(HmsLogSlot *slot, TimestampTz lower_bound, bool default_used);

/* True when the default partition may hold rows, or nobody knows yet. */
extern bool hms_log_default_used(HmsLogSlot *slot);
extern void hms_log_set_default_used(HmsLogSlot *slot);

extern void hms_log_slot_usage(int *used, int *size);

/* --- for shmem.c ------------------------------------------------------------ */
extern Size hms_log_slot_size(void);
extern void hms_log_slot_init(void *ptr, bool found);
extern void hms_log_slot_forget_database(Oid dboid);

#endif							/* HMS_SHMEM_LOG_SLOT_H */
