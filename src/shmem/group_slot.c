/*-------------------------------------------------------------------------
 *
 * group_slot.c
 *	  Per group: who waits for its cursor, and requests to the advancer.
 *
 * The cursor itself is a row, locked by a tuple lock that nobody waits for.
 * A slot tells those who did not get it when to try again: the holder signals
 * one waiter at the end of its transaction.  All that a slot says is advice:
 * a lost signal costs a waiter its timeout, a spurious one a look.
 *
 * Requests to the advancer carry tickets.  Asking takes the next ticket and
 * puts the slot into a queue; the advancer takes the slot out together with
 * the highest ticket so far, passes over the group, and answers all tickets
 * up to that one.  So an answer always comes from a pass that began after
 * the question.
 *
 * Locks: the table's LWLock protects keys, the queue and everything about
 * requests (exclusive to change); a slot's spinlock its holder and waiters.
 * Slots in use - held, waited for, or asked - keep their memory; idle ones
 * give way when the table is full.  Condition variables are set up once, at
 * start, as somebody may still stand in one when its slot changes hands.
 *
 * A backend waits for one thing at a time, noted in my_wait; an error on the
 * way is undone by the transaction callbacks (hms_group_slot_at_abort), which
 * run at process exit as well.  After a crash all slots are empty.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"

#include "guc.h"
#include "shmem/group_slot.h"
#include "shmem/shmem.h"
#include "shmem/slots.h"
#include "shmem/table.h"

/* How often a request looks whether the advancer still lives. */
#define ALIVE_CHECK_MS	100
#define IDLE_US			INT64CONST(600000000)

typedef struct GroupSlotKey
{
	Oid			dboid;
	Oid			relid;
	int64		incarnation;
} GroupSlotKey;

struct HmsGroupSlot
{
	GroupSlotKey key;			/* table lock */

	slock_t		mutex;			/* protects the next three */
	int			holder_pid;		/* 0 = nobody */
	int			cursor_waiters;
	uint64		place;			/* of the cursor's row, 0 = unknown */
	ConditionVariable cursor_cv;

	pg_atomic_uint32 turns;		/* reads that share among priorities */

	/* Requests; table lock. */
	dlist_node	queue_node;
	bool		queued;			/* in the queue: asked > what a pass has taken */
	int			askers;			/* backends that wait for an answer */
	int32		stream_id;
	int32		group_id;
	int			wanted;			/* by requests that no pass has taken */
	uint64		asked;			/* last ticket given */
	uint64		answered;		/* last ticket answered */
	HmsAdvanceResult result;	/* of the last answer */
	ConditionVariable answer_cv;
};

typedef struct GroupSlotShared
{
	dlist_head	queue;			/* slots with requests, the oldest first;
								 * table lock */
	HmsTable   *table;
} GroupSlotShared;

typedef enum WaitKind
{
	WAIT_NONE,
	WAIT_CURSOR,
	WAIT_ANSWER
} WaitKind;

static GroupSlotShared *shared = NULL;

static struct
{
	WaitKind	kind;
	HmsGroupSlot *slot;
	int			nest_level;
}			my_wait = {WAIT_NONE};

static int
slot_capacity(void)
{
	return Max(hms_max_groups, 1);
}

/*
 * hms_group_slot_size, hms_group_slot_init
 *		The shared memory item: the queue and one slot per group.
 */
Size
hms_group_slot_size(void)
{
	return add_size(CACHELINEALIGN(sizeof(GroupSlotShared)),
					hms_table_size(slot_capacity(), sizeof(HmsGroupSlot)));
}

static void
init_slot_memory(void *entry)
{
	HmsGroupSlot *slot = (HmsGroupSlot *) entry;

	SpinLockInit(&slot->mutex);
	pg_atomic_init_u32(&slot->turns, 0);
	slot->cursor_waiters = 0;
	slot->askers = 0;
	slot->queued = false;
	slot->asked = 0;
	ConditionVariableInit(&slot->cursor_cv);
	ConditionVariableInit(&slot->answer_cv);
}

void
hms_group_slot_init(void *ptr, bool found)
{
	char	   *table = (char *) ptr + CACHELINEALIGN(sizeof(GroupSlotShared));

	shared = (GroupSlotShared *) ptr;
	shared->table = hms_table_init(table, found, slot_capacity(), sizeof(GroupSlotKey),
								   sizeof(HmsGroupSlot), "HotmeshStreamGroup");
	if (!found)
	{
		dlist_init(&shared->queue);
		hms_table_prepare(shared->table, init_slot_memory);
	}
}

/* Lock-free for a rough answer, exact under the exclusive table lock. */
static bool
slot_in_use(HmsGroupSlot *slot)
{
	bool		in_use;

	SpinLockAcquire(&slot->mutex);
	in_use = slot->holder_pid != 0 || slot->cursor_waiters > 0;
	SpinLockRelease(&slot->mutex);

	return in_use || slot->askers > 0;
}

/* Take an idle slot away; false when it is in use.  The exclusive lock is held. */
static bool
remove_slot(HmsGroupSlot *slot)
{
	if (slot_in_use(slot))
		return false;
	if (slot->queued)
		dlist_delete(&slot->queue_node);
	slot->queued = false;
	hms_table_remove(shared->table, slot);
	return true;
}

/* Make room in a full table; the exclusive lock is held. */
static bool
evict_idle(int64 now_us)
{
	uint64		touched;
	HmsGroupSlot *oldest = hms_table_oldest(shared->table, &touched);

	return oldest != NULL && (int64) touched <= now_us - IDLE_US && remove_slot(oldest);
}

/* Find or make a slot; NULL when the table is full.  The exclusive lock is held. */
static HmsGroupSlot *
enter_slot(const GroupSlotKey *key, int64 now_us)
{
	bool		found;
	HmsGroupSlot *slot = hms_table_enter(shared->table, key, &found);

	if (slot == NULL && evict_idle(now_us))
		slot = hms_table_enter(shared->table, key, &found);
	if (slot == NULL || found)
		return slot;

	/*
	 * Who looked the slot up before it changed hands may count itself in and
	 * out, or ask, after that: what it takes back itself is not reset.
	 */
	if (slot->queued)
		dlist_delete(&slot->queue_node);
	slot->queued = false;
	slot->holder_pid = 0;
	slot->place = 0;
	slot->stream_id = 0;
	slot->group_id = 0;
	slot->wanted = 0;
	slot->answered = slot->asked;
	slot->result = HMS_ADVANCE_MORE;
	return slot;
}

/*
 * hms_group_slot
 *		Find or make the slot of a group of the current database.
 *
 * NULL when the table is full of groups in use.
 */
HmsGroupSlot *
hms_group_slot(Oid relid, int64 incarnation)
{
	GroupSlotKey key = {MyDatabaseId, relid, incarnation};
	int64		now_us = hms_monotonic_us();
	HmsGroupSlot *slot;

	hms_table_lock(shared->table, LW_SHARED);
	slot = hms_table_find(shared->table, &key);
	if (slot == NULL)
	{
		hms_table_unlock(shared->table);
		hms_table_lock(shared->table, LW_EXCLUSIVE);
		slot = enter_slot(&key, now_us);
	}
	if (slot)
		hms_table_touch(shared->table, slot, (uint64) now_us);
	hms_table_unlock(shared->table);
	return slot;
}

/*
 * hms_group_slot_forget_database
 *		Release all idle slots of a database.
 */
void
hms_group_slot_forget_database(Oid dboid)
{
	int			position = 0;
	HmsGroupSlot *slot;

	hms_table_lock(shared->table, LW_EXCLUSIVE);
	while ((slot = hms_table_next(shared->table, &position)) != NULL)
	{
		if (slot->key.dboid == dboid)
			(void) remove_slot(slot);
	}
	hms_table_unlock(shared->table);
}

/*
 * hms_cursor_held
 *		Note that this backend has locked the cursor.
 */
void
hms_cursor_held(HmsGroupSlot *slot)
{
	SpinLockAcquire(&slot->mutex);
	slot->holder_pid = MyProcPid;
	SpinLockRelease(&slot->mutex);
}

/*
 * hms_cursor_released
 *		The cursor's row lock is gone: let one waiter try.
 *
 * Never fails: called in transaction callbacks.  Another backend may have
 * locked the row already; then it is the holder and stays noted.
 */
void
hms_cursor_released(HmsGroupSlot *slot)
{
	bool		waited_for;

	SpinLockAcquire(&slot->mutex);
	if (slot->holder_pid == MyProcPid)
		slot->holder_pid = 0;
	waited_for = slot->cursor_waiters > 0;
	SpinLockRelease(&slot->mutex);

	if (waited_for)
		ConditionVariableSignal(&slot->cursor_cv);
}

/*
 * hms_cursor_place_pack, hms_cursor_place, hms_cursor_set_place
 *		The hint where the cursor's row stands.
 */
uint64
hms_cursor_place_pack(const ItemPointerData * tid)
{
	return (uint64) ItemPointerGetBlockNumber(tid) << 16 | ItemPointerGetOffsetNumber(tid);
}

bool
hms_cursor_place(HmsGroupSlot *slot, ItemPointerData * tid)
{
	uint64		place;

	SpinLockAcquire(&slot->mutex);
	place = slot->place;
	SpinLockRelease(&slot->mutex);
	if (place == 0)
		return false;
	ItemPointerSet(tid, (BlockNumber) (place >> 16), (OffsetNumber) (place & 0xffff));
	return true;
}

void
hms_cursor_set_place(HmsGroupSlot *slot, uint64 place)
{
	SpinLockAcquire(&slot->mutex);
	slot->place = place;
	SpinLockRelease(&slot->mutex);
}

/*
 * hms_cursor_holder
 *		The pid of the backend that holds the cursor, 0 if none.
 */
int
hms_cursor_holder(HmsGroupSlot *slot)
{
	int			pid;

	SpinLockAcquire(&slot->mutex);
	pid = slot->holder_pid;
	SpinLockRelease(&slot->mutex);
	return pid;
}

/*
 * hms_cursor_wait_prepare
 *		Become a waiter; try to lock the cursor again before sleeping.
 */
void
hms_cursor_wait_prepare(HmsGroupSlot *slot)
{
	Assert(my_wait.kind == WAIT_NONE);

	ConditionVariablePrepareToSleep(&slot->cursor_cv);
	SpinLockAcquire(&slot->mutex);
	slot->cursor_waiters++;
	SpinLockRelease(&slot->mutex);

	my_wait.kind = WAIT_CURSOR;
	my_wait.slot = slot;
	my_wait.nest_level = GetCurrentTransactionNestLevel();
}

/*
 * hms_cursor_wait_sleep
 *		Sleep until signalled; true when timeout_ms went by instead.
 *
 * May return early for no reason.  Serves interrupts.
 */
bool
hms_cursor_wait_sleep(HmsGroupSlot *slot, long timeout_ms)
{
	return ConditionVariableTimedSleep(&slot->cursor_cv, Max(timeout_ms, 0),
									   PG_WAIT_EXTENSION);
}

/*
 * hms_cursor_wait_cancel
 *		Stop waiting, with the cursor or without.
 *
 * A signal that came after our last try is passed on by the condition
 * variable.
 */
void
hms_cursor_wait_cancel(HmsGroupSlot *slot)
{
	Assert(my_wait.kind == WAIT_CURSOR && my_wait.slot == slot);

	my_wait.kind = WAIT_NONE;
	ConditionVariableCancelSleep();
	SpinLockAcquire(&slot->mutex);
	slot->cursor_waiters--;
	SpinLockRelease(&slot->mutex);
}

/*
 * hms_cursor_waiters
 *		How many backends wait for this cursor.
 */
uint32
hms_group_next_turn(HmsGroupSlot *slot)
{
	return pg_atomic_add_fetch_u32(&slot->turns, 1);
}

int
hms_cursor_waiters(HmsGroupSlot *slot)
{
	int			count;

	SpinLockAcquire(&slot->mutex);
	count = slot->cursor_waiters;
	SpinLockRelease(&slot->mutex);
	return count;
}

/* Queue a request and return its ticket. */
static uint64
ask(HmsGroupSlot *slot, int32 stream_id, int32 group_id, int wanted)
{
	uint64		ticket;

	hms_table_lock(shared->table, LW_EXCLUSIVE);
	slot->stream_id = stream_id;
	slot->group_id = group_id;
	slot->wanted = Min(slot->wanted + wanted, HMS_MAX_BATCH);
	slot->askers++;
	ticket = ++slot->asked;
	if (!slot->queued)
	{
		dlist_push_tail(&shared->queue, &slot->queue_node);
		slot->queued = true;
	}
	hms_table_unlock(shared->table);

	my_wait.kind = WAIT_ANSWER;
	my_wait.slot = slot;
	my_wait.nest_level = GetCurrentTransactionNestLevel();
	return ticket;
}

static bool
answered(HmsGroupSlot *slot, uint64 ticket, HmsAdvanceResult *result)
{
	bool		done;

	hms_table_lock(shared->table, LW_SHARED);
	done = slot->answered >= ticket;
	if (done)
		*result = slot->result;
	hms_table_unlock(shared->table);
	return done;
}

static void
stop_asking(HmsGroupSlot *slot)
{
	my_wait.kind = WAIT_NONE;
	hms_table_lock(shared->table, LW_EXCLUSIVE);
	slot->askers--;
	hms_table_unlock(shared->table);
}

/*
 * hms_advance_request
 *		Ask the advancer for 'wanted' ready rows and wait for its answer.
 *
 * Gives up after timeout_ms, and within ALIVE_CHECK_MS after the advancer
 * died.  The request itself stays queued.  Serves interrupts.
 */
HmsAdvanceResult
hms_advance_request(HmsGroupSlot *slot, int32 stream_id, int32 group_id,
					int wanted, long timeout_ms)
{
	int64		deadline_us = hms_monotonic_us() + timeout_ms * INT64CONST(1000);
	HmsAdvanceResult result;
	uint64		ticket;

	Assert(my_wait.kind == WAIT_NONE);
	if (slot == NULL || !hms_advancer_alive())
		return HMS_ADVANCE_NO_ADVANCER;

	ConditionVariablePrepareToSleep(&slot->answer_cv);
	ticket = ask(slot, stream_id, group_id, wanted);
	hms_advancer_wake();

	while (!answered(slot, ticket, &result))
	{
		int64		left_ms = (deadline_us - hms_monotonic_us() + 999) / 1000;

		if (left_ms <= 0)
		{
			result = HMS_ADVANCE_TIMEOUT;
			break;
		}
		if (!hms_advancer_alive())
		{
			result = HMS_ADVANCE_NO_ADVANCER;
			break;
		}
		(void) ConditionVariableTimedSleep(&slot->answer_cv,
										   (long) Min(left_ms, ALIVE_CHECK_MS),
										   PG_WAIT_EXTENSION);
	}
	ConditionVariableCancelSleep();
	stop_asking(slot);
	return result;
}

/*
 * hms_advance_next_job
 *		Take the group of this database whose requests are the oldest.
 */
bool
hms_advance_next_job(HmsAdvanceJob *job)
{
	dlist_iter	iter;
	HmsGroupSlot *slot = NULL;

	hms_table_lock(shared->table, LW_EXCLUSIVE);
	dlist_foreach(iter, &shared->queue)
	{
		HmsGroupSlot *candidate = dlist_container(HmsGroupSlot, queue_node, iter.cur);

		if (candidate->key.dboid == MyDatabaseId)
		{
			slot = candidate;
			break;
		}
	}
	if (slot)
	{
		dlist_delete(&slot->queue_node);
		slot->queued = false;
		job->slot = slot;
		job->stream_id = slot->stream_id;
		job->group_id = slot->group_id;
		job->incarnation = slot->key.incarnation;
		job->wanted = slot->wanted;
		job->ticket = slot->asked;
		slot->wanted = 0;
	}
	hms_table_unlock(shared->table);
	return slot != NULL;
}

/*
 * hms_advance_answer
 *		Answer all requests that were there when the job was taken.
 */
void
hms_advance_answer(const HmsAdvanceJob *job, HmsAdvanceResult result)
{
	HmsGroupSlot *slot = job->slot;

	hms_table_lock(shared->table, LW_EXCLUSIVE);
	/* Nobody may have waited, and the slot be another group's by now. */
	if (slot->key.dboid == MyDatabaseId && slot->key.incarnation == job->incarnation &&
		job->ticket <= slot->asked)
	{
		slot->answered = Max(slot->answered, job->ticket);
		slot->result = result;
	}
	hms_table_unlock(shared->table);

	ConditionVariableBroadcast(&slot->answer_cv);
}

/*
 * hms_group_slot_at_abort
 *		Undo our wait, if an error ended it at 'nest_level' or deeper.
 *
 * The condition variable has been left by the transaction machinery.  We may
 * have consumed a signal and not acted on it, so somebody else gets one.
 */
void
hms_group_slot_at_abort(int nest_level)
{
	WaitKind	kind = my_wait.kind;

	if (kind == WAIT_NONE || my_wait.nest_level < nest_level)
		return;

	if (kind == WAIT_ANSWER)
	{
		stop_asking(my_wait.slot);
		return;
	}
	hms_cursor_wait_cancel(my_wait.slot);
	ConditionVariableSignal(&my_wait.slot->cursor_cv);
}

/*
 * hms_group_slot_usage
 *		How full the table is.
 */
void
hms_group_slot_usage(int *used, int *size)
{
	*used = hms_table_used(shared->table);
	*size = hms_table_capacity(shared->table);
}
