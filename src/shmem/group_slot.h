/*-------------------------------------------------------------------------
 *
 * group_slot.h
 *	  Per group: who waits for its cursor, and requests to the advancer.
 *
 * A slot is found by (database, delivery table, incarnation), made at first use and
 * never moved.  Look it up once per call and do not keep the pointer: an idle slot may
 * get another group.  When the table is full the functions below say so and their
 * callers poll instead.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_GROUP_SLOT_H
#define HMS_SHMEM_GROUP_SLOT_H

#include "hms.h"
#include "storage/itemptr.h"

typedef struct HmsGroupSlot HmsGroupSlot;

typedef enum HmsAdvanceResult
{
	HMS_ADVANCE_NOTHING_LEFT,	/* the pass saw the end of the log */
	HMS_ADVANCE_MORE,			/* ready rows were left, or the budget ended */
	HMS_ADVANCE_BUSY,			/* somebody else holds the cursor */
	HMS_ADVANCE_TIMEOUT,		/* no answer in time (only for waiters) */
	HMS_ADVANCE_NO_ADVANCER		/* no advancer runs for this database */
} HmsAdvanceResult;

/* Find or make the slot of a group of the current database; NULL when full. */
extern HmsGroupSlot *hms_group_slot(Oid relid, int64 incarnation);

/* --- the cursor ---------------------------------------------------------- */

/* The holder notes itself (pid shown by health()) and is cleared at end of transaction. */
extern void hms_cursor_held(HmsGroupSlot *slot);

/* Called at commit or abort: clears the holder and signals one waiter.  Never fails. */
extern void hms_cursor_released(HmsGroupSlot *slot);

/* pid of the holder or 0. */
extern int	hms_cursor_holder(HmsGroupSlot *slot);

/*
 * Wait until the holder signals or timeout_ms is over.  Usage, as with a
 * condition variable: prepare, try to lock, sleep, try again, ..., cancel.
 */
extern void hms_cursor_wait_prepare(HmsGroupSlot *slot);
extern bool hms_cursor_wait_sleep(HmsGroupSlot *slot, long timeout_ms); /* true = timed out */
extern void hms_cursor_wait_cancel(HmsGroupSlot *slot);

/*
 * Where the newest committed version of the cursor's row was seen last: a hint that spares the
 * walk over dead versions.  Packed as block << 16 | offset, 0 = unknown; check what stands there.
 */
extern uint64 hms_cursor_place_pack(const ItemPointerData * tid);
extern bool hms_cursor_place(HmsGroupSlot *slot, ItemPointerData * tid);
extern void hms_cursor_set_place(HmsGroupSlot *slot, uint64 place);

/* How many backends wait for this cursor now. */
extern int	hms_cursor_waiters(HmsGroupSlot *slot);

/* Count a read of the group: 1, 2, ... since the slot was made. */
extern uint32 hms_group_next_turn(HmsGroupSlot *slot);

/* --- requests to the advancer -------------------------------------------- */

/*
 * Ask the advancer of this database for 'wanted' ready rows and wait for a pass that
 * BEGAN after this call, at most timeout_ms.  'slot' may be NULL (-> NO_ADVANCER).
 */
extern HmsAdvanceResult hms_advance_request(HmsGroupSlot *slot, int32 stream_id, int32 group_id,
											int wanted, long timeout_ms);

/* The advancer's side. */
typedef struct HmsAdvanceJob
{
	HmsGroupSlot *slot;
	int32		stream_id;
	int32		group_id;
	int64		incarnation;
	int			wanted;
	uint64		ticket;			/* answers every request up to this one */
} HmsAdvanceJob;

/* Take the next group of this database that has unanswered requests; false if none. */
extern bool hms_advance_next_job(HmsAdvanceJob *job);

/* Answer a job; wakes those who asked. */
extern void hms_advance_answer(const HmsAdvanceJob *job, HmsAdvanceResult result);

extern void hms_group_slot_usage(int *used, int *size);

/* --- for effects.c and shmem.c ------------------------------------------------ */

/* Undo a wait that an error cut short, if it began at 'nest_level' or deeper. */
extern void hms_group_slot_at_abort(int nest_level);

extern Size hms_group_slot_size(void);
extern void hms_group_slot_init(void *ptr, bool found);
extern void hms_group_slot_forget_database(Oid dboid);

#endif							/* HMS_SHMEM_GROUP_SLOT_H */
