/*-------------------------------------------------------------------------
 *
 * cursor.h
 *	  A group's position in the log, and handing out what lies behind it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_CURSOR_H
#define HMS_CORE_CURSOR_H

#include "core/stream_cache.h"
#include "core/log.h"
#include "shmem/group_slot.h"
#include "utils/snapshot.h"

/* [from, to) were undecided when the cursor passed their ids; those above 'after' are still owed. */
typedef struct HmsPending
{
	HmsXid		from;
	HmsXid		to;
	int64		after;
	bool		spilled;		/* stands in cursor_spill */
} HmsPending;

typedef struct HmsCursor
{
	int64		pos[HMS_PRIORITY_LEVELS];	/* the group's start_id where the
											 * row has null */
	bool		spilled;
	int			npending;
	HmsPending *pending;		/* sorted by from; spilled ones included */
} HmsCursor;

/* Create the cursor of a new incarnation: from 'start_id', or, with from_now, everything that commits after this call's snapshot. */
extern int64 hms_cursor_create(const HmsStream *stream, int64 incarnation, bool from_now);	/* returns start_id */

/* Read without a lock, as 'snapshot' sees it; false when there is no row. */
extern bool hms_cursor_peek(const HmsGroup *group, Snapshot snapshot, HmsCursor *cursor);

/* What the log may hold for a group. */
typedef struct HmsCursorWork
{
	uint32		levels;			/* bit n: a visible row of priority n behind
								 * pos */
	bool		pending;		/* a message of a pending transaction that has
								 * finished */
	Size		first_bytes;	/* size of the first message behind pos, of
								 * the highest priority; 0 = none */
} HmsCursorWork;

/*
 * Look for work that was committed before this call.  Takes no lock and no xid.  Returns
 * true when there is any.  Pending transactions are looked at only when the levels do not answer, or the
 * stream has several.
 */
extern bool hms_cursor_look(const HmsStream *stream, const HmsGroup *group, HmsCursorWork *work);

/* The same, without asking what it is. */
extern bool hms_cursor_has_work(const HmsStream *stream, const HmsGroup *group);

/* True when the message (id, stored xid) was handed out: not behind pos, nor owed through 'pending'. */
extern bool hms_cursor_passed(const HmsCursor *cursor, int priority, int64 id, HmsXid xid);

#define HMS_ALL_LEVELS	(-1)

/* What an advance handed out. */
typedef struct HmsAdvance
{
	/* in */
	int			level;			/* priority to hand out, or HMS_ALL_LEVELS:
								 * from the highest on */
	int			want;			/* messages to lease to the caller */
	int			ready;			/* further messages to leave as ready rows */
	int			have;			/* messages the caller has already */
	int64		max_bytes;		/* payload bytes, 0 = no limit; a caller that
								 * has none gets one */
	/* out */
	HmsMessage *messages;		/* of the caller, palloc'd array of
								 * 'nmessages' */
	int			nmessages;
	int			nready;			/* ready and delayed rows written */
	TimestampTz lowest_due;		/* of the rows written, DT_NOEND if none */
	HmsAdvanceResult result;	/* NOTHING_LEFT or MORE, BUSY when the cursor
								 * is held */
} HmsAdvance;

/*
 * Advance under the cursor's row lock, without waiting for it: BUSY when another
 * transaction holds it.  Writes the cursor and ready/delayed delivery rows; leases of
 * adv->messages are the caller's to write.  See the proof at the head of cursor.c.
 */
extern void hms_cursor_advance(const HmsStream *stream, const HmsGroup *group, TimestampTz now, HmsAdvance *adv);

/*
 * True when the group is still owed a message that stands in one leaf of the log (open): one
 * behind pos, or one of a pending transaction.  Deliveries are not looked at.
 */
extern bool hms_cursor_owes_leaf(const HmsStream *stream, const HmsCursor *cursor,
								 HmsLogView *one_leaf, Snapshot snapshot);

/* The highest xid in any pending list; -1 if none. */
extern HmsXid hms_cursor_highest_xid(Snapshot snapshot);

/* Delete cursors, spills and deliveries of incarnations that no group has (at most 'limit' rows); returns rows deleted. */
extern int64 hms_cursor_clear_voided(int limit);

#endif							/* HMS_CORE_CURSOR_H */
