/*-------------------------------------------------------------------------
 *
 * throttle.h
 *	  When a HotMesh consumer may be handed messages: throttles, and
 *	  registered consumers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_THROTTLE_H
#define HMS_CORE_THROTTLE_H

#include "core/stream_cache.h"
#include "utils/json.h"

#define HMS_PAUSED	(-1)

/* Readers that a throttle holds back wait in this queue instead of their group's. */
#define HMS_HELD_READERS	INT64CONST(-1)

/*
 * Set the pause between two hand-outs to one consumer, in ms, or HMS_PAUSED; 0 lifts it.  Without
 * a group it is for the stream, without a stream for all of them; narrower throttles
 * are erased.  Wakes who waits when the transaction commits.
 */
extern void hms_throttle_set(const HmsStream *stream, const HmsGroup *group, int pause_ms);

/* The first time at which a consumer may be handed messages: DT_NOBEGIN = now, DT_NOEND = paused or readonly. */
extern TimestampTz hms_throttle_until(const HmsGroup *group, const char *consumer);

typedef struct HmsRegistration
{
	const char *name;			/* guid */
	const char *role;
	const char *topic;			/* NULL = none */
	bool		readonly;
	int			pause_ms;
	Datum		config;			/* json, as given */
} HmsRegistration;

/* Register a consumer of a group, or replace its registration. */
extern void hms_register_consumer(const HmsGroup *group, const HmsRegistration *registration);

/* Visit the registered consumers of a group, by name; what they point to is valid during the visit only. */
typedef void (*HmsRegistrationVisitor) (const HmsRegistration *registration, void *arg);
extern void hms_registered_each(int32 group_id, HmsRegistrationVisitor visit, void *arg);

/* Delete throttles and registrations of a dropped group. */
extern void hms_throttle_forget_group(const HmsGroup *group);

#endif							/* HMS_CORE_THROTTLE_H */
