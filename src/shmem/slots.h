/*-------------------------------------------------------------------------
 *
 * slots.h
 *	  Worker slots: which database has which background worker, in which state.
 *
 * The state machine stands in docs/architecture.md; one LWLock protects all slots.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_SLOTS_H
#define HMS_SHMEM_SLOTS_H

#include "hms.h"

typedef enum HmsWorkerKind
{
	HMS_ADVANCER,
	HMS_HOUSEKEEPER
} HmsWorkerKind;

/* True when an advancer of the current database is attached and ready. Lock-free enough for every read. */
extern bool hms_advancer_alive(void);
/* Set its latch; no-op without one.  Safe in commit callbacks. */
extern void hms_advancer_wake(void);
/* Ask the launcher to start the housekeeper of the current database soon. */
extern void hms_housekeeper_request(void);
/* Ask the launcher to look at a database now (CREATE EXTENSION committed there). */
extern void hms_launcher_request(Oid dboid);

/*
 * Stop the workers of a database and keep them away until released: CREATE
 * DATABASE ... TEMPLATE, ALTER DATABASE, DROP DATABASE.  Waits up to timeout_ms.
 */
extern void hms_workers_hold(Oid dboid, int timeout_ms);
extern void hms_workers_release(Oid dboid);

/* --- for shmem.c ------------------------------------------------------------ */
extern Size hms_slots_size(void);
extern void hms_slots_init(void *ptr, bool found);

#endif							/* HMS_SHMEM_SLOTS_H */
