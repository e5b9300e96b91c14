/*-------------------------------------------------------------------------
 *
 * duration.h
 *	  Intervals without months as microseconds, and back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_DURATION_H
#define HMS_CORE_DURATION_H

#include "datatype/timestamp.h"

/* Within HMS_MAX_INTERVAL_US the sum cannot overflow; a month counts 30 days. */
static inline int64
hms_duration_us(const Interval *interval)
{
	return (interval->month * (int64) DAYS_PER_MONTH + interval->day) * USECS_PER_DAY +
		interval->time;
}

static inline void
hms_duration_interval(int64 us, Interval *interval)
{
	interval->month = 0;
	interval->day = (int32) (us / USECS_PER_DAY);
	interval->time = us % USECS_PER_DAY;
}

#endif							/* HMS_CORE_DURATION_H */
