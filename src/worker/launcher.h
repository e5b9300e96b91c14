/*-------------------------------------------------------------------------
 *
 * launcher.h
 *	  The process that starts the workers of all databases.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_WORKER_LAUNCHER_H
#define HMS_WORKER_LAUNCHER_H

/* Register the launcher with the postmaster; only while libraries are preloaded. */
extern void hms_launcher_register(void);

extern PGDLLEXPORT void hms_launcher_main(Datum main_arg);

#endif							/* HMS_WORKER_LAUNCHER_H */
