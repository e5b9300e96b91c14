/*-------------------------------------------------------------------------
 *
 * housekeeper.h
 *	  The worker that maintains logs and tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_WORKER_HOUSEKEEPER_H
#define HMS_WORKER_HOUSEKEEPER_H

extern PGDLLEXPORT void hms_housekeeper_main(Datum main_arg);

#endif							/* HMS_WORKER_HOUSEKEEPER_H */
