/*-------------------------------------------------------------------------
 *
 * slots_private.h
 *	  The slots' memory, for slots.c and slot_life.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_SLOTS_PRIVATE_H
#define HMS_SHMEM_SLOTS_PRIVATE_H

#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

#include "shmem/slots.h"

typedef struct HmsSlots
{
	LWLock		lock;
	ConditionVariable left;		/* broadcast when a worker has left */
	pg_atomic_uint32 layout;	/* raised when a slot gets a database */
	uint64		generation;		/* of the latest start */
	PGPROC	   *launcher;		/* NULL while none runs */
	bool		rescan;			/* databases may have vanished */
	bool		starved;		/* background worker slots ran out */
	int			ndatabases;
	HmsDatabaseSlot databases[FLEXIBLE_ARRAY_MEMBER];
} HmsSlots;

extern HmsSlots *hms_slots;		/* NULL unless preloaded */

/* The lock is held for all of these, exclusively for the last two. */
extern int	hms_slots_find(Oid dboid);	/* -1 if none */
extern void hms_slots_wake_launcher(void);
extern void hms_slots_ask_to_stop(HmsWorkerSlot *worker);

#endif							/* HMS_SHMEM_SLOTS_PRIVATE_H */
