/*-------------------------------------------------------------------------
 *
 * table.h
 *	  Hash tables of fixed size in shared memory.
 *
 * Unlike dynahash they neither allocate nor raise errors, so that commit
 * callbacks may use them, and entries never move.  An entry is a struct that
 * begins with its key; the key has no padding, is compared as bytes, and
 * begins with the OID of a database.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_TABLE_H
#define HMS_SHMEM_TABLE_H

#include "storage/lwlock.h"

typedef struct HmsTable HmsTable;

/* Memory for a table of 'capacity' entries; a multiple of the cache line. */
extern Size hms_table_size(int capacity, Size entry_size);

/* Set up (or, when found, only attach) the table at 'ptr' and return it. */
extern HmsTable *hms_table_init(void *ptr, bool found, int capacity, Size key_size,
								Size entry_size, const char *tranche);

/*
 * Set up the memory of all entries, used or not, once: for what must outlive
 * their users.  Only in an init function that was told found = false.
 */
extern void hms_table_prepare(HmsTable *table, void (*prepare) (void *entry));

extern void hms_table_lock(HmsTable *table, LWLockMode mode);
extern void hms_table_unlock(HmsTable *table);

/* The entry with a key, NULL if none.  Lock held. */
extern void *hms_table_find(HmsTable *table, const void *key);

/*
 * Find or make an entry; NULL when the table is full.  A new one has its key
 * and is otherwise as the last user of its memory left it; *found tells.
 * Exclusive lock held.
 */
extern void *hms_table_enter(HmsTable *table, const void *key, bool *found);

/* Give an entry's memory back; the memory longest free is used again first.  Exclusive lock held. */
extern void hms_table_remove(HmsTable *table, void *entry);

/*
 * The entries in use, in no order: start with *position = 0; NULL at the
 * end.  The current one may be removed.  Lock held.
 */
extern void *hms_table_next(HmsTable *table, int *position);

/* Note when an entry was last used, in any unit that grows.  Lock held, shared is enough. */
extern void hms_table_touch(HmsTable *table, void *entry, uint64 when);

/*
 * The entry touched longest ago, of a few hundred; *touched says when.  Each
 * call looks at the next few hundred.  NULL if there is none.  Exclusive lock held.
 */
extern void *hms_table_oldest(HmsTable *table, uint64 *touched);

/* A number that no other entry of this table had or will have. */
extern uint32 hms_table_birth(HmsTable *table, void *entry);

/* Entries in use (no lock needed), and how many there can be. */
extern int	hms_table_used(HmsTable *table);
extern int	hms_table_capacity(HmsTable *table);

#endif							/* HMS_SHMEM_TABLE_H */
