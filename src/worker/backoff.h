/*-------------------------------------------------------------------------
 *
 * backoff.h
 *	  How long to wait before a failed worker is started again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_WORKER_BACKOFF_H
#define HMS_WORKER_BACKOFF_H

extern int	hms_backoff_ms(int failures, int min_ms, int max_ms, double jitter);

#endif							/* HMS_WORKER_BACKOFF_H */
