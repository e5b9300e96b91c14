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

#endif							/* HMS_SHMEM_SHMEM_H */
