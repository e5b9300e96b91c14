/*-------------------------------------------------------------------------
 *
 * debug_point.h
 *	  Named places where a test can make a backend wait.
 *
 * Compiled in with -DHMS_DEBUG_POINTS only.  A backend whose setting
 * hotmesh_stream.debug_points lists the name waits there until nobody holds the advisory lock
 * pg_advisory_lock(hashtext('hms:' || name)).
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_DEBUG_DEBUG_POINT_H
#define HMS_DEBUG_DEBUG_POINT_H

#ifdef HMS_DEBUG_POINTS
extern void hms_debug_define_gucs(void);
extern void hms_debug_point(const char *name);
#define HMS_DEBUG_POINT(name)	hms_debug_point(name)
#else
#define HMS_DEBUG_POINT(name)	((void) 0)
#endif

#endif							/* HMS_DEBUG_DEBUG_POINT_H */
