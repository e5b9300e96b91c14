/*-------------------------------------------------------------------------
 *
 * guc.h
 *	  The settings, all named hotmesh_stream.*; defined in guc.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_GUC_H
#define HMS_GUC_H

extern int	hms_advance_wait_ms;
extern bool hms_async_claims;
extern int	hms_inline_bytes;
extern int	hms_maintenance_naptime_s;
extern int	hms_max_groups;
extern int	hms_max_namespaces;
extern int	hms_max_consumers;
extern int	hms_max_waiters;
extern int	hms_max_databases;
extern int	hms_max_wait_ms;
extern int	hms_naptime_ms;
extern int	hms_restart_delay_max_ms;
extern int	hms_restart_delay_min_ms;
extern bool hms_workers_enabled;

extern void hms_define_gucs(void);

#endif							/* HMS_GUC_H */
