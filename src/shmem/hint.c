/*-------------------------------------------------------------------------
 *
 * hint.c
 *	  Low-water hints: where the claim's index scan may start.
 *
 * A group's deliveries are found by (incarnation, priority desc, due_at, id).
 * Rows leave from the low end of that index, and while any old snapshot is
 * held, their dead entries stay there and every claim would walk over all of
 * them.  A hint is a time 'lo' such that no live row of the group and
 * priority is due below it; the claim starts there.
 *
 * What is shared: per (database, delivery table, incarnation, priority) an
 * entry {lo, gen, ring[64]}, under the entry's spinlock.  ring[g % 64] is the
 * lowest due time that the commit numbered g wrote; gen is the next number.
 *
 * Protocol
 *	 1. An entry is born with lo = -infinity.
 *	 2. A scan notes (lo, gen) BEFORE it takes its snapshot S, walks due_at >=
 *		lo up to its clock's 'now', and takes as newlo the due time of the
 *		first row that S sees, whether it can claim it or not; 'now' if S
 *		sees none.
 *	 3. After it, under the spinlock: if at most 64 commits were recorded since
 *		gen was noted, newlo = min(newlo, what they recorded), and
 *		lo = max(lo, newlo).  If more, lo stays.
 *	 4. A transaction that wrote rows records its lowest due time d after it
 *		has become visible (XACT_EVENT_COMMIT comes after
 *		ProcArrayEndTransaction): lo = min(lo, d), ring[gen++ % 64] = d.
 *	 5. Within a transaction, own_low is the lowest due time of the rows that
 *		it wrote, and of those that it updated or deleted.  Its scans start at
 *		min(lo, own_low), and newlo never exceeds own_low.
 *
 * Why lo is never too high
 *	 Say the scan of backend B raised lo above a row r, due at d < newlo, that
 *	 is live: its inserting transaction T committed, or will, and no committed
 *	 transaction removed it.
 *	 (a) S sees r, and B's transaction has not replaced it.  If d >= the lo
 *		 where the scan started, the first row seen was due at d or before,
 *		 so newlo <= d.  If d is below it, lo was too high already; take the
 *		 first scan that raised it so.  This also covers rows that others
 *		 hold or have replaced without committing: S sees the old version.  So
 *		 an abort needs no action: what it brings back was seen by everybody
 *		 but the transaction itself.
 *	 (b) B's own transaction replaced r and may roll back: d >= own_low >=
 *		 newlo (5), for this and every later scan of it.  The scan that found
 *		 r to replace it is covered by (a).
 *	 (c) S does not see r because T ended after S was taken.  T records d
 *		 after that.  If this comes before B's step 3, d is in the ring,
 *		 between the gen noted before S and the present one, and newlo <= d;
 *		 or more than 64 came in, and lo was not raised.  If it comes after,
 *		 T's own step 4 lowers lo.  Between T's becoming visible and its step
 *		 4 lo may be too high, for the instant the callback takes; a backend
 *		 that dies there takes the server through crash recovery, hence to 1.
 *	 (d) T ended before S was taken, then S sees r: (a).
 *	 A step back of the clock, or a nack that makes a row due now, is no
 *	 special case: the new row version is a write like any other.  PREPARE
 *	 TRANSACTION would run step 4 in a backend that knows nothing, so a
 *	 transaction that wrote due rows cannot be prepared (effects.c).
 *	 "gen unchanged" instead of the ring would be as safe, but under load it
 *	 never holds, and lo would stand still.
 *
 * Entries that were forgotten start with a gen of their own, so that step 3 of
 * a scan that began on an earlier entry finds more than 64 commits.  A commit
 * that finds no entry records nothing: an entry born later has 1.
 *
 * Paced rescan: so that a mistake (in this file, or in who calls it) costs
 * time and not a message, whoever is willing is asked now and then to scan
 * from -infinity.  A rescan that took d lets the next begin after 100 d, at
 * least 1 s: 1 % of the time.  What it finds below lo is recorded like a
 * commit, or else a scan that began before it would raise lo again.
 *
 * Locks: the table's LWLock, shared, then an entry's spinlock.  Entries not
 * used for ten minutes give way when the table is full; without an entry a
 * claim scans from the start.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/spin.h"

#include "guc.h"
#include "shmem/hint.h"
#include "shmem/shmem.h"
#include "shmem/table.h"

#define RING_SIZE		64		/* commits that a scan can look back on */
#define RESCAN_MIN_US	INT64CONST(1000000)
#define RESCAN_SHARE	100		/* one part in so many of the time */
#define IDLE_US			INT64CONST(600000000)

typedef struct Hint
{
	HmsHintKey	key;			/* table lock */
	slock_t		mutex;			/* protects the rest */
	TimestampTz lo;
	uint64		gen;
	int64		next_rescan_us; /* hms_monotonic_us(); no rescan before it */
	int64		rescan_took_us;
	int64		rescans;
	TimestampTz ring[RING_SIZE];
} Hint;

static HmsTable *hints = NULL;

static int
hint_capacity(void)
{
	return (int) Min((int64) Max(hms_max_groups, 1) * HMS_PRIORITY_LEVELS, PG_INT32_MAX / 2);
}

/*
 * hms_hint_size, hms_hint_init
 *		The shared memory item: one entry per group and priority.
 */
Size
hms_hint_size(void)
{
	return hms_table_size(hint_capacity(), sizeof(Hint));
}

void
hms_hint_init(void *ptr, bool found)
{
	hints = hms_table_init(ptr, found, hint_capacity(), sizeof(HmsHintKey),
						   sizeof(Hint), "HotmeshStreamHint");
}

/* Make room in a full table; the exclusive lock is held. */
static bool
evict_idle(int64 now_us)
{
	uint64		touched;
	Hint	   *oldest = hms_table_oldest(hints, &touched);

	if (oldest == NULL || (int64) touched > now_us - IDLE_US)
		return false;
	hms_table_remove(hints, oldest);
	return true;
}

/* Find or make a hint; NULL when the table is full.  The exclusive lock is held. */
static Hint *
enter_hint(const HmsHintKey *key, int64 now_us)
{
	bool		found;
	Hint	   *hint = hms_table_enter(hints, key, &found);

	if (hint == NULL && evict_idle(now_us))
		hint = hms_table_enter(hints, key, &found);
	if (hint == NULL || found)
		return hint;

	SpinLockInit(&hint->mutex);
	hint->lo = DT_NOBEGIN;
	/* More than RING_SIZE away from every gen of another birth. */
	hint->gen = (uint64) hms_table_birth(hints, hint) << 32;
	hint->next_rescan_us = 0;
	hint->rescan_took_us = 0;
	hint->rescans = 0;
	return hint;
}

/*
 * Lock the table and find or make a hint.  The caller unlocks, also when the
 * result is NULL because the table is full.
 */
static Hint *
attach_hint(const HmsHintKey *key, int64 now_us)
{
	Hint	   *hint;

	hms_table_lock(hints, LW_SHARED);
	hint = hms_table_find(hints, key);
	if (hint == NULL)
	{
		hms_table_unlock(hints);
		hms_table_lock(hints, LW_EXCLUSIVE);
		hint = enter_hint(key, now_us);
	}
	if (hint)
		hms_table_touch(hints, hint, (uint64) now_us);
	return hint;
}

/* Step 4 of the protocol; the spinlock is held. */
static void
record_due(Hint *hint, TimestampTz due)
{
	hint->lo = Min(hint->lo, due);
	hint->ring[hint->gen % RING_SIZE] = due;
	hint->gen++;
}

/*
 * hms_hint_key
 *		Fill a key for a delivery table of the current database.
 */
void
hms_hint_key(HmsHintKey *key, Oid relid, int64 incarnation, int priority)
{
	memset(key, 0, sizeof(*key));
	key->dboid = MyDatabaseId;
	key->relid = relid;
	key->incarnation = incarnation;
	key->priority = priority;
}

/*
 * hms_hint_begin
 *		Step 2 of the protocol, before the snapshot is taken.
 *
 * Fills *scan: the caller scans from scan->lo.  Makes the entry if there is
 * none.  When may_rescan is set and a rescan is due, the scan is asked to
 * start at -infinity; it counts as taken, so that others do not do the same
 * meanwhile, and if it dies, the next one comes after the usual pause.
 */
void
hms_hint_begin(HmsHintScan *scan, const HmsHintKey *key,
			   TimestampTz own_low, bool may_rescan)
{
	int64		now_us = hms_monotonic_us();
	Hint	   *hint = attach_hint(key, now_us);

	scan->key = *key;
	scan->own_low = own_low;
	scan->lo = DT_NOBEGIN;
	scan->gen = 0;
	scan->rescan = false;
	scan->started_us = now_us;
	scan->usable = hint != NULL;

	if (hint)
	{
		SpinLockAcquire(&hint->mutex);
		scan->gen = hint->gen;
		if (may_rescan && now_us >= hint->next_rescan_us)
		{
			scan->rescan = true;
			hint->next_rescan_us = now_us +
				Max(RESCAN_MIN_US, RESCAN_SHARE * hint->rescan_took_us);
		}
		else
			scan->lo = Min(hint->lo, own_low);
		SpinLockRelease(&hint->mutex);
	}
	hms_table_unlock(hints);
}

/* Set the pace of the next rescan; the spinlock is held. */
static void
finish_rescan(Hint *hint, int64 started_us, int64 now_us)
{
	hint->rescans++;
	hint->rescan_took_us = Max(now_us - started_us, 0);
	hint->next_rescan_us = now_us +
		Max(RESCAN_MIN_US, RESCAN_SHARE * hint->rescan_took_us);
}

/*
 * hms_hint_end
 *		Step 3 of the protocol, after the scan.
 *
 * 'first_due' is the due time of the first row that the snapshot saw, or the
 * scan's upper end if it saw none.
 */
void
hms_hint_end(HmsHintScan *scan, TimestampTz first_due)
{
	int64		now_us;
	TimestampTz newlo = Min(first_due, scan->own_low);
	Hint	   *hint;

	if (!scan->usable)
		return;

	now_us = scan->rescan ? hms_monotonic_us() : 0;
	hms_table_lock(hints, LW_SHARED);
	hint = hms_table_find(hints, &scan->key);
	if (hint)
	{
		SpinLockAcquire(&hint->mutex);
		if (scan->rescan && newlo < hint->lo)
			record_due(hint, newlo);
		else if (hint->gen - scan->gen <= RING_SIZE)
		{
			for (uint64 g = scan->gen; g != hint->gen; g++)
				newlo = Min(newlo, hint->ring[g % RING_SIZE]);
			hint->lo = Max(hint->lo, newlo);
		}
		if (scan->rescan)
			finish_rescan(hint, scan->started_us, now_us);
		SpinLockRelease(&hint->mutex);
	}
	hms_table_unlock(hints);
}

/*
 * hms_hint_lower
 *		Step 4 of the protocol, after the transaction became visible.
 *
 * Never fails and allocates nothing: called in XACT_EVENT_COMMIT.
 */
void
hms_hint_lower(const HmsHintKey *key, TimestampTz due)
{
	Hint	   *hint;

	hms_table_lock(hints, LW_SHARED);
	hint = hms_table_find(hints, key);
	if (hint)
	{
		SpinLockAcquire(&hint->mutex);
		record_due(hint, due);
		SpinLockRelease(&hint->mutex);
	}
	hms_table_unlock(hints);
}

/* Copy an entry's fields under its locks; false and nothing copied if none. */
static bool
peek_hint(const HmsHintKey *key, TimestampTz *lo, int64 *rescans)
{
	Hint	   *hint;

	hms_table_lock(hints, LW_SHARED);
	hint = hms_table_find(hints, key);
	if (hint)
	{
		SpinLockAcquire(&hint->mutex);
		*lo = hint->lo;
		*rescans = hint->rescans;
		SpinLockRelease(&hint->mutex);
	}
	hms_table_unlock(hints);
	return hint != NULL;
}

/*
 * hms_hint_peek
 *		The hint as it stands; DT_NOBEGIN if there is none.
 */
TimestampTz
hms_hint_peek(const HmsHintKey *key)
{
	TimestampTz lo = DT_NOBEGIN;
	int64		rescans;

	(void) peek_hint(key, &lo, &rescans);
	return lo;
}

/*
 * hms_hint_rescans
 *		How many rescans the entry has seen; 0 if there is none.
 */
int64
hms_hint_rescans(const HmsHintKey *key)
{
	TimestampTz lo;
	int64		rescans = 0;

	(void) peek_hint(key, &lo, &rescans);
	return rescans;
}

/*
 * hms_hint_set_for_test
 *		Set the hint, also where the protocol would never put it.
 */
void
hms_hint_set_for_test(const HmsHintKey *key, TimestampTz lo)
{
	Hint	   *hint = attach_hint(key, hms_monotonic_us());

	if (hint)
	{
		SpinLockAcquire(&hint->mutex);
		hint->lo = lo;
		SpinLockRelease(&hint->mutex);
	}
	hms_table_unlock(hints);
}

/*
 * hms_hint_forget_database
 *		Give back all entries of a database.
 */
void
hms_hint_forget_database(Oid dboid)
{
	int			position = 0;
	Hint	   *hint;

	hms_table_lock(hints, LW_EXCLUSIVE);
	while ((hint = hms_table_next(hints, &position)) != NULL)
	{
		if (hint->key.dboid == dboid)
			hms_table_remove(hints, hint);
	}
	hms_table_unlock(hints);
}

/*
 * hms_hint_usage
 *		How full the table is.
 */
void
hms_hint_usage(int *used, int *size)
{
	*used = hms_table_used(hints);
	*size = hms_table_capacity(hints);
}
