/*-------------------------------------------------------------------------
 *
 * shmem.h
 *	  The table of our shared memory items, and whether we were preloaded.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_SHMEM_H
#define HMS_SHMEM_SHMEM_H

/* Installs the shmem_request and shmem_startup hooks; call from _PG_init. */
extern void hms_shmem_install_hooks(void);

/* True once the shared memory of this server is attached (preloaded). */
extern bool hms_shmem_ready(void);

/* Raises 55000 with a hint unless hms_shmem_ready(). */
extern void hms_shmem_require(void);

/*
 * Forget all that is kept about a database: after DROP DATABASE, and when
 * the extension is created or dropped in it, as ids then start again.  Takes
 * LWLocks, never fails.
 */
extern void hms_shmem_forget_statistics(Oid dboid);
extern void hms_shmem_forget_database(Oid dboid);

/*
 * For the items' init functions: give their locks a tranche.  The id is kept
 * in shared memory, in *tranche_id; 'found' as the init function got it.
 */
extern void hms_shmem_tranche(int *tranche_id, bool found, const char *name);

/* Microseconds of a clock that is never set back; the same in all backends. */
extern int64 hms_monotonic_us(void);

#endif							/* HMS_SHMEM_SHMEM_H */
