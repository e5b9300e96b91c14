/*-------------------------------------------------------------------------
 *
 * tasks_core.h
 *	  Periodic work on groups and state tables, used by the workers and by maintain().
 *
 * Each runs inside the caller's transaction, does a bounded amount of work and returns
 * true when there may be more.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_TASKS_CORE_H
#define HMS_CORE_TASKS_CORE_H

#include "core/stream_cache.h"

/* Dead-letter deliveries of a group whose last allowed attempt has lapsed (at most 'limit'). */
extern bool hms_bury_exhausted(const HmsStream *stream, const HmsGroup *group, TimestampTz now, int limit, int *buried);

/*
 * Delete dead letters older than their group's retention, and those of dropped
 * groups, at most 'limit'.  The next call goes on where this one stopped.
 */
extern bool hms_expire_dead_letters(TimestampTz now, int limit);

/*
 * Write presence to the consumer table; delete rows of dropped groups and of
 * consumers not seen for seven days.  Takes no xid when nothing changed; does nothing while
 * somebody else writes or vacuums the table.
 */
extern void hms_flush_presence(void);

/* True when something of the group is due now (delivery or log).  Takes no lock and no xid. */
extern bool hms_group_has_work(const HmsStream *stream, const HmsGroup *group, TimestampTz now);

/*
 * The nearest due time after 'now' of a group's deliveries; DT_NOEND if none.  Behind many
 * dead index entries it may be too early, never too late.
 */
extern TimestampTz hms_group_next_due(const HmsStream *stream, const HmsGroup *group,
									  TimestampTz now);

#endif							/* HMS_CORE_TASKS_CORE_H */
