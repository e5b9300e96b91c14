/*-------------------------------------------------------------------------
 *
 * debug_point.c
 *	  Named places where a test can make a backend wait, and a clock that a
 *	  test can set.
 *
 * Empty unless compiled with -DHMS_DEBUG_POINTS.  A debug point takes and releases
 * one advisory lock of the current database in exclusive mode: a test that
 * holds that lock stops whoever lists the point, and sees the waiter in pg_locks.  The
 * list is a plain setting: a session sets it for itself, ALTER SYSTEM reaches the
 * background workers.  Nothing is shared beyond the lock, which dies with its holder.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef HMS_DEBUG_POINTS

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/guc.h"

#include "debug/debug_point.h"

static char *debug_points = NULL;
static double debug_clock_offset_ms = 0;

/*
 * hms_debug_define_gucs
 *		Define the two settings; called by _PG_init only.
 */
void
hms_debug_define_gucs(void)
{
	DefineCustomStringVariable("hotmesh_stream.debug_points",
							   "Sets the debug points at which this process waits.",
							   NULL, &debug_points, "", PGC_USERSET,
							   GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomRealVariable("hotmesh_stream.debug_clock_offset",
							 "Sets how far this process's clock is ahead of the server's.",
							 NULL, &debug_clock_offset_ms, 0, -1e13, 1e13, PGC_USERSET,
							 GUC_UNIT_MS | GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
}

/* Is 'name' one of the comma-separated words of the setting? */
static bool
is_listed(const char *name)
{
	const char *separators = ", \t";
	const char *word = debug_points;
	size_t		name_len = strlen(name);

	while (word != NULL && *word != '\0')
	{
		size_t		word_len = strcspn(word, separators);

		if (word_len == name_len && strncmp(word, name, name_len) == 0)
			return true;
		word += word_len;
		word += strspn(word, separators);
	}
	return false;
}

/*
 * hms_debug_point
 *		Wait while somebody holds pg_advisory_lock(hashtext('hms:' || name)).
 *
 * Does nothing unless hotmesh_stream.debug_points lists the name.  The caller must be connected
 * to a database, inside a transaction, and hold no LWLock.  Can be cancelled.
 */
void
hms_debug_point(const char *name)
{
	LOCKTAG		tag;
	char		lock_name[NAMEDATALEN + 4];
	int64		key;

	if (debug_points == NULL || debug_points[0] == '\0' || !is_listed(name))
		return;

	snprintf(lock_name, sizeof(lock_name), "hms:%s", name);
	key = (int32) DatumGetUInt32(hash_any((unsigned char *) lock_name, strlen(lock_name)));
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (key >> 32), (uint32) key, 1);
	(void) LockAcquire(&tag, ExclusiveLock, true, false);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

/*
 * hms_debug_now
 *		The server's clock plus hotmesh_stream.debug_clock_offset.
 */
TimestampTz
hms_debug_now(void)
{
	return GetCurrentTimestamp() + (TimestampTz) (debug_clock_offset_ms * 1000.0);
}

#endif							/* HMS_DEBUG_POINTS */
