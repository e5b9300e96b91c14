/*-------------------------------------------------------------------------
 *
 * debug_point.h
 *	  Named places where a test can make a backend wait, and a clock that a
 *	  test can set.
 *
 * Compiled in with -DHMS_DEBUG_POINTS only.  A process whose setting
 * hotmesh_stream.debug_points lists the name waits there until nobody holds
 * pg_advisory_lock(hashtext('hms:' || name)).  HMS_NOW() is the server's clock plus
 * hotmesh_stream.debug_clock_offset.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_DEBUG_DEBUG_POINT_H
#define HMS_DEBUG_DEBUG_POINT_H

#include "utils/timestamp.h"

#ifdef HMS_DEBUG_POINTS
extern void hms_debug_define_gucs(void);
extern void hms_debug_point(const char *name);
extern TimestampTz hms_debug_now(void);
#define HMS_DEBUG_POINT(name)	hms_debug_point(name)
#define HMS_NOW()				hms_debug_now()
#else
#define HMS_DEBUG_POINT(name)	((void) 0)
#define HMS_NOW()				GetCurrentTimestamp()
#endif

#endif							/* HMS_DEBUG_DEBUG_POINT_H */
