/*-------------------------------------------------------------------------
 *
 * health.h
 *	  Checks that tell an operator what needs attention.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_HEALTH_H
#define HMS_CORE_HEALTH_H

/* Called once per check; detail is a short sentence, also when all is well. */
typedef void (*HmsHealthReport) (const char *check_name, bool ok, const char *detail, void *arg);

/*
 * Run all checks.  Only reads, takes no xid, works on a standby and without
 * shared_preload_libraries (with fewer checks then).
 */
extern void hms_health(HmsHealthReport report, void *arg);

/* The checks that look at the server and not at our tables, in health_server.c. */
typedef struct StringInfoData *HmsHealthDetail;

extern bool hms_health_workers(HmsHealthDetail detail);
extern bool hms_health_worker_slots(HmsHealthDetail detail);
extern bool hms_health_xmin(HmsHealthDetail detail);
extern bool hms_health_dead_rows(HmsHealthDetail detail);
extern bool hms_health_autovacuum(HmsHealthDetail detail);
extern bool hms_health_cursors(HmsHealthDetail detail);

#endif							/* HMS_CORE_HEALTH_H */
