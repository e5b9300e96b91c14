/*-------------------------------------------------------------------------
 *
 * backoff.c
 *	  How long to wait before a failed worker is started again.
 *
 * A pure function: no state, no settings, no clock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "worker/backoff.h"

/*
 * hms_backoff_ms
 *		Delay in milliseconds after 'failures' failures in a row (at least 1).
 *
 * min_ms after the first, doubled by each further one, at most max_ms (or
 * min_ms, if that is larger), then lengthened by the share 'jitter', which may
 * be negative.
 */
int
hms_backoff_ms(int failures, int min_ms, int max_ms, double jitter)
{
	int			exponent = Min(Max(failures, 1) - 1, 30);
	double		delay_ms = Min(min_ms * pow(2.0, exponent), Max(min_ms, max_ms));

	return (int) (delay_ms * (1.0 + jitter));
}
