/*-------------------------------------------------------------------------
 *
 * advancer.h
 *	  The worker that advances groups for readers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_WORKER_ADVANCER_H
#define HMS_WORKER_ADVANCER_H

extern PGDLLEXPORT void hms_advancer_main(Datum main_arg);

#endif							/* HMS_WORKER_ADVANCER_H */
