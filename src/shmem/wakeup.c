/*-------------------------------------------------------------------------
 *
 * wakeup.c
 *	  Blocked readers: who waits for which group, and whom a commit wakes.
 *
 * A backend that waits owns one slot of a pool, linked into the queue of its
 * group in order of arrival.  It keeps its place until it leaves, however
 * often it was signalled.  A waker marks the first 'count' waiters that carry
 * no signal and sets their latches; as it skips those marked already, each
 * further commit wakes further waiters.  A mark is taken back by its owner
 * before it looks for messages, so what is published after that look marks
 * it again.  A mark that its owner does not use goes to the next in line.
 *
 * The first of each queue also watches the clock for its group: it is told
 * when a lower due time was written, and when it becomes the first.
 *
 * No wake-up is lost: a waiter counts itself, then takes the snapshot of its
 * look; a publisher becomes visible, then reads the count.  One of the two
 * sees the other.
 *
 * Locks, in this order: the table's LWLock (shared to find a group, exclusive
 * to make one or sweep groups without waiters), a group's LWLock for its
 * queue and the marks in it, the spinlock of the pool.  A commit takes none
 * of them when nobody waits on the server, or on a stream with the same hash.
 * Latches are set under the group's lock, so their owner is still there.
 *
 * Slots are given back at abort, through the transaction callbacks, and at
 * process exit.  After a crash all are free.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/spin.h"

#include "guc.h"
#include "shmem/shmem.h"
#include "shmem/table.h"
#include "shmem/wakeup.h"

#define STREAM_BUCKETS	256

typedef struct WaitGroupKey
{
	Oid			dboid;
	int32		unused;			/* zero */
	int64		incarnation;
} WaitGroupKey;

typedef struct WaitGroup
{
	WaitGroupKey key;			/* table lock */
	int32		stream_id;		/* table lock */
	dlist_node	stream_node;	/* in its stream's bucket; table lock */
	pg_atomic_uint32 nwaiters;	/* the group stays while it is not 0 */
	LWLock		lock;
	dlist_head	queue;			/* of HmsWaiter; group lock */
} WaitGroup;

struct HmsWaiter
{
	dlist_node	node;			/* in the group's queue (group lock), or free
								 * (pool lock) */
	WaitGroup  *group;
	PGPROC	   *proc;
	bool		signalled;		/* group lock */
	bool		timer;			/* compute the timer again; group lock */
	TimestampTz timer_at;		/* DT_NOEND = not set; group lock */
	/* For its owner alone: */
	bool		taken;			/* looking because of a signal */
	int			nest_level;
	HmsWaiter  *next_own;
};

typedef struct WaitBucket
{
	dlist_head	groups;			/* table lock */
	pg_atomic_uint32 nwaiters;
} WaitBucket;

typedef struct WaitShared
{
	pg_atomic_uint32 nwaiters;	/* on the whole server */
	int			tranche_id;
	HmsTable   *table;
	slock_t		mutex;			/* protects the next two */
	dlist_head	free;
	int			nused;
	int			size;
	WaitBucket	buckets[STREAM_BUCKETS];	/* by database and stream */
} WaitShared;

static WaitShared *shared = NULL;
static HmsWaiter *own_waiters = NULL;
static bool exit_registered = false;

static int
pool_size(void)
{
	return hms_max_waiters > 0 ? hms_max_waiters : MaxBackends;
}

/*
 * hms_wait_size, hms_wait_init
 *		The shared memory item: buckets, the pool of waiters, the groups.
 */
Size
hms_wait_size(void)
{
	Size		size = CACHELINEALIGN(sizeof(WaitShared));

	size = add_size(size, CACHELINEALIGN(mul_size(pool_size(), sizeof(HmsWaiter))));
	return add_size(size, hms_table_size(Max(hms_max_groups, 1), sizeof(WaitGroup)));
}

void
hms_wait_init(void *ptr, bool found)
{
	char	   *pool = (char *) ptr + CACHELINEALIGN(sizeof(WaitShared));
	char	   *table = pool + CACHELINEALIGN(mul_size(pool_size(), sizeof(HmsWaiter)));

	shared = (WaitShared *) ptr;
	hms_shmem_tranche(&shared->tranche_id, found, "HotmeshStreamWaitQueue");
	shared->table = hms_table_init(table, found, Max(hms_max_groups, 1), sizeof(WaitGroupKey),
								   sizeof(WaitGroup), "HotmeshStreamWait");
	if (found)
		return;

	pg_atomic_init_u32(&shared->nwaiters, 0);
	SpinLockInit(&shared->mutex);
	dlist_init(&shared->free);
	shared->nused = 0;
	shared->size = pool_size();
	for (int i = 0; i < shared->size; i++)
		dlist_push_tail(&shared->free, &((HmsWaiter *) pool)[i].node);
	for (int i = 0; i < STREAM_BUCKETS; i++)
	{
		dlist_init(&shared->buckets[i].groups);
		pg_atomic_init_u32(&shared->buckets[i].nwaiters, 0);
	}
}

static WaitBucket *
bucket_of(Oid dboid, int32 stream_id)
{
	uint32		hash = hash_combine(murmurhash32(dboid), murmurhash32((uint32) stream_id));

	return &shared->buckets[hash % STREAM_BUCKETS];
}

/* --- queues ----------------------------------------------------------------- */

/*
 * Mark up to 'count' waiters that carry no mark yet; at least one.
 *
 * The group stays: the caller holds the table's lock or waits in it.
 */
static void
signal_waiters(WaitGroup *group, int count)
{
	dlist_iter	iter;

	LWLockAcquire(&group->lock, LW_EXCLUSIVE);
	dlist_foreach(iter, &group->queue)
	{
		HmsWaiter  *waiter = dlist_container(HmsWaiter, node, iter.cur);

		if (waiter->signalled)
			continue;
		waiter->signalled = true;
		SetLatch(&waiter->proc->procLatch);
		if (--count <= 0)
			break;
	}
	LWLockRelease(&group->lock);
}

/*
 * Tell the first waiter to compute its timer again, unless it will wake up by
 * 'due' anyway.  The group's lock is held.
 */
static void
alert_first(WaitGroup *group, TimestampTz due)
{
	HmsWaiter  *first;

	if (dlist_is_empty(&group->queue))
		return;
	first = dlist_container(HmsWaiter, node, dlist_head_node(&group->queue));
	if (due >= first->timer_at)
		return;
	first->timer = true;
	SetLatch(&first->proc->procLatch);
}

/* Give back the groups without waiters; the exclusive table lock is held. */
static void
sweep_groups(void)
{
	int			position = 0;
	WaitGroup  *group;

	while ((group = hms_table_next(shared->table, &position)) != NULL)
	{
		if (pg_atomic_read_u32(&group->nwaiters) > 0)
			continue;
		dlist_delete(&group->stream_node);
		hms_table_remove(shared->table, group);
	}
}

/* Find or make a group; NULL when the table is full.  The exclusive lock is held. */
static WaitGroup *
enter_group(const WaitGroupKey *key, int32 stream_id)
{
	bool		found;
	WaitGroup  *group = hms_table_enter(shared->table, key, &found);

	if (group == NULL)
	{
		sweep_groups();
		group = hms_table_enter(shared->table, key, &found);
	}
	if (group == NULL || found)
		return group;

	group->stream_id = stream_id;
	pg_atomic_init_u32(&group->nwaiters, 0);
	LWLockInitialize(&group->lock, shared->tranche_id);
	dlist_init(&group->queue);
	dlist_push_tail(&bucket_of(key->dboid, stream_id)->groups, &group->stream_node);
	return group;
}

/* Put a waiter at the end of its group's queue; false when there is no room for the group. */
static bool
join_group(HmsWaiter *waiter, int32 stream_id, int64 incarnation)
{
	WaitGroupKey key = {MyDatabaseId, 0, incarnation};
	WaitGroup  *group;

	hms_table_lock(shared->table, LW_SHARED);
	group = hms_table_find(shared->table, &key);
	if (group == NULL)
	{
		hms_table_unlock(shared->table);
		hms_table_lock(shared->table, LW_EXCLUSIVE);
		group = enter_group(&key, stream_id);
	}
	if (group)
	{
		waiter->group = group;
		LWLockAcquire(&group->lock, LW_EXCLUSIVE);
		dlist_push_tail(&group->queue, &waiter->node);
		LWLockRelease(&group->lock);
		pg_atomic_fetch_add_u32(&group->nwaiters, 1);
		pg_atomic_fetch_add_u32(&bucket_of(MyDatabaseId, stream_id)->nwaiters, 1);
		pg_atomic_fetch_add_u32(&shared->nwaiters, 1);
	}
	hms_table_unlock(shared->table);
	return group != NULL;
}

/* --- the pool --------------------------------------------------------------- */

static HmsWaiter *
take_slot(void)
{
	HmsWaiter  *waiter = NULL;

	SpinLockAcquire(&shared->mutex);
	if (!dlist_is_empty(&shared->free))
	{
		waiter = dlist_container(HmsWaiter, node, dlist_pop_head_node(&shared->free));
		shared->nused++;
	}
	SpinLockRelease(&shared->mutex);
	return waiter;
}

static void
give_back_slot(HmsWaiter *waiter)
{
	SpinLockAcquire(&shared->mutex);
	dlist_push_head(&shared->free, &waiter->node);
	shared->nused--;
	SpinLockRelease(&shared->mutex);
}

static void
leave_at_exit(int code, Datum arg)
{
	hms_wait_leave_all();
}

/*
 * hms_wait_enter
 *		Become the last waiter of a group; NULL when there is no room.
 */
HmsWaiter *
hms_wait_enter(int32 stream_id, int64 incarnation)
{
	HmsWaiter  *waiter;

	if (!exit_registered)
	{
		before_shmem_exit(leave_at_exit, (Datum) 0);
		exit_registered = true;
	}

	waiter = take_slot();
	if (waiter == NULL)
		return NULL;

	waiter->proc = MyProc;
	waiter->signalled = false;
	waiter->timer = false;
	waiter->timer_at = DT_NOEND;
	waiter->taken = false;
	waiter->nest_level = GetCurrentTransactionNestLevel();
	if (!join_group(waiter, stream_id, incarnation))
	{
		give_back_slot(waiter);
		return NULL;
	}
	waiter->next_own = own_waiters;
	own_waiters = waiter;
	return waiter;
}

/*
 * hms_wait_is_first
 *		True when nobody who waits for the group came before us.
 */
bool
hms_wait_is_first(HmsWaiter *waiter)
{
	WaitGroup  *group = waiter->group;
	bool		first;

	LWLockAcquire(&group->lock, LW_SHARED);
	first = dlist_head_node(&group->queue) == &waiter->node;
	LWLockRelease(&group->lock);
	return first;
}

/*
 * hms_wait_take_signal
 *		Take our mark off; true when there was one.
 *
 * To be called after resetting the latch and before looking.  A call that
 * finds no mark also says that the look after the last one is over.
 */
bool
hms_wait_take_signal(HmsWaiter *waiter)
{
	LWLockAcquire(&waiter->group->lock, LW_EXCLUSIVE);
	waiter->taken = waiter->signalled;
	waiter->signalled = false;
	LWLockRelease(&waiter->group->lock);
	return waiter->taken;
}

/*
 * hms_wait_take_timer
 *		True when the timer has to be computed again.
 *
 * Unsets it as well: until it is set again, every commit that might concern
 * it is told, so that none is missed between computing and setting.
 */
bool
hms_wait_take_timer(HmsWaiter *waiter)
{
	bool		timer;

	LWLockAcquire(&waiter->group->lock, LW_EXCLUSIVE);
	timer = waiter->timer;
	waiter->timer = false;
	if (timer)
		waiter->timer_at = DT_NOEND;
	LWLockRelease(&waiter->group->lock);
	return timer;
}

/*
 * hms_wait_set_timer
 *		Say when we shall wake up by ourselves.
 */
void
hms_wait_set_timer(HmsWaiter *waiter, TimestampTz due)
{
	LWLockAcquire(&waiter->group->lock, LW_EXCLUSIVE);
	waiter->timer_at = due;
	LWLockRelease(&waiter->group->lock);
}

static void
unlink_own(HmsWaiter *waiter)
{
	HmsWaiter **from = &own_waiters;

	while (*from != waiter)
		from = &(*from)->next_own;
	*from = waiter->next_own;
}

/*
 * hms_wait_leave
 *		Give up our place; an unused signal goes to the next in line.
 *
 * Never fails: called in transaction callbacks and at exit.
 */
void
hms_wait_leave(HmsWaiter *waiter, bool satisfied)
{
	WaitGroup  *group = waiter->group;
	bool		was_first;
	bool		unused;

	unlink_own(waiter);

	LWLockAcquire(&group->lock, LW_EXCLUSIVE);
	was_first = dlist_head_node(&group->queue) == &waiter->node;
	unused = waiter->signalled || (waiter->taken && !satisfied);
	dlist_delete(&waiter->node);
	if (was_first)
		alert_first(group, DT_NOBEGIN);
	LWLockRelease(&group->lock);

	if (unused)
		signal_waiters(group, 1);

	pg_atomic_fetch_sub_u32(&shared->nwaiters, 1);
	pg_atomic_fetch_sub_u32(&bucket_of(group->key.dboid, group->stream_id)->nwaiters, 1);
	/* From here on the group may be swept. */
	pg_atomic_fetch_sub_u32(&group->nwaiters, 1);
	give_back_slot(waiter);
}

/*
 * hms_wait_leave_level, hms_wait_leave_all
 *		Leave wherever this backend waits, from a nest level on.
 */
void
hms_wait_leave_level(int nest_level)
{
	/* Later ones come first, and were entered at the same level or deeper. */
	while (own_waiters != NULL && own_waiters->nest_level >= nest_level)
		hms_wait_leave(own_waiters, false);
}

void
hms_wait_leave_all(void)
{
	while (own_waiters != NULL)
		hms_wait_leave(own_waiters, false);
}

/* --- waking ----------------------------------------------------------------- */

/* True when somebody waits; orders what the caller did before against it. */
static bool
anybody_waits(void)
{
	pg_memory_barrier();
	return pg_atomic_read_u32(&shared->nwaiters) > 0;
}

/*
 * hms_wake_stream
 *		Signal up to 'count' waiters of each group of a stream.
 *
 * Never fails: called in transaction callbacks, as are all that follow.
 */
void
hms_wake_stream(Oid dboid, int32 stream_id, int count)
{
	WaitBucket *bucket = bucket_of(dboid, stream_id);
	dlist_iter	iter;

	if (!anybody_waits() || pg_atomic_read_u32(&bucket->nwaiters) == 0)
		return;

	hms_table_lock(shared->table, LW_SHARED);
	dlist_foreach(iter, &bucket->groups)
	{
		WaitGroup  *group = dlist_container(WaitGroup, stream_node, iter.cur);

		if (group->stream_id == stream_id && group->key.dboid == dboid &&
			pg_atomic_read_u32(&group->nwaiters) > 0)
			signal_waiters(group, count);
	}
	hms_table_unlock(shared->table);
}

/*
 * hms_wake_group
 *		Signal up to 'count' waiters of a group.
 */
void
hms_wake_group(Oid dboid, int64 incarnation, int count)
{
	WaitGroupKey key = {dboid, 0, incarnation};
	WaitGroup  *group;

	if (!anybody_waits())
		return;

	hms_table_lock(shared->table, LW_SHARED);
	group = hms_table_find(shared->table, &key);
	if (group && pg_atomic_read_u32(&group->nwaiters) > 0)
		signal_waiters(group, count);
	hms_table_unlock(shared->table);
}

/*
 * hms_wake_stream_all, hms_wake_group_all
 *		Signal every waiter of a stream, of a group.
 */
void
hms_wake_stream_all(Oid dboid, int32 stream_id)
{
	hms_wake_stream(dboid, stream_id, PG_INT32_MAX);
}

void
hms_wake_group_all(Oid dboid, int64 incarnation)
{
	hms_wake_group(dboid, incarnation, PG_INT32_MAX);
}

/*
 * hms_wake_timer
 *		A row due at 'due' was committed: the group's first waiter shall know.
 */
void
hms_wake_timer(Oid dboid, int64 incarnation, TimestampTz due)
{
	WaitGroupKey key = {dboid, 0, incarnation};
	WaitGroup  *group;

	if (!anybody_waits())
		return;

	hms_table_lock(shared->table, LW_SHARED);
	group = hms_table_find(shared->table, &key);
	if (group && pg_atomic_read_u32(&group->nwaiters) > 0)
	{
		LWLockAcquire(&group->lock, LW_EXCLUSIVE);
		alert_first(group, due);
		LWLockRelease(&group->lock);
	}
	hms_table_unlock(shared->table);
}

/*
 * hms_waiters_of_group
 *		How many backends wait for a group.
 */
int
hms_waiters_of_group(Oid dboid, int64 incarnation)
{
	WaitGroupKey key = {dboid, 0, incarnation};
	WaitGroup  *group;
	int			count = 0;

	if (!anybody_waits())
		return 0;

	hms_table_lock(shared->table, LW_SHARED);
	group = hms_table_find(shared->table, &key);
	if (group)
		count = (int) pg_atomic_read_u32(&group->nwaiters);
	hms_table_unlock(shared->table);
	return count;
}

/*
 * hms_waiter_usage
 *		How full the pool is.
 */
void
hms_waiter_usage(int *used, int *size)
{
	*used = shared->nused;
	*size = shared->size;
}
