/*-------------------------------------------------------------------------
 *
 * log_append.c
 *	  Appending messages to a log.
 *
 * The order of the steps is what readers rely on (see the proof in cursor.c and
 * the protocol of sealing in retention.c):
 *
 * 1. the top-level xid is assigned;
 * 2. ids are taken from the sequence;
 * 3. published_at = max(clock, closed bound) chooses the leaf;
 * 4. the slot's 'newest' (or 'default used') is raised;
 * 5. the leaf is locked, RowExclusiveLock to the end of the transaction (the default
 *	  partition only for the call, so that healing can go on beside us);
 * 6. bound and leaf are checked again: a partition that was sealed, healed or dropped
 *	  before we had the lock sends us back to 3;
 * 7. rows and index entries are written.
 *
 * The parent table is never locked, so that dropping one partition does not
 * wait for publishers into another.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

#include "core/log.h"
#include "core/xid.h"
#include "debug/debug_point.h"
#include "storage/relset.h"
#include "storage/sequence.h"
#include "storage/write.h"

/* Rows formed and inserted at a time. */
#define APPEND_CHUNK	128

/* The leaf for a time, and the bound that the time must not fall below. */
static HmsLeaf
find_leaf(const HmsStream *stream, TimestampTz clock, TimestampTz *published_at)
{
	HmsLogSlot *slot = hms_log_attach(stream->log_relid, stream->namespace_id);
	const HmsLeaves *leaves = hms_route_leaves(stream->log_relid, stream->namespace_id);
	HmsLeaf		leaf;
	int			i;

	*published_at = clock;
	if (slot != NULL)
		*published_at = Max(*published_at, hms_log_closed_bound(slot));
	i = hms_route_find(leaves, *published_at);

	/*
	 * Without a slot the log is never closed anew, but it may be closed from
	 * before.
	 */
	while (i >= 0 && leaves->leaves[i].sealed)
	{
		*published_at = leaves->leaves[i].upper;
		i = hms_route_find(leaves, *published_at);
	}
	if (i < 0)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("log of stream \"%s\" has no partition for new messages", stream->name),
				 errhint("Its default partition was dropped; create it again.")));
	leaf = leaves->leaves[i];

	if (slot != NULL && leaf.is_default)
		hms_log_set_default_used(slot);
	else if (slot != NULL)
		hms_log_raise_newest(slot, leaf.lower);
	return leaf;
}

/* Steps 3 to 6: the leaf's relation, locked; published_at is final. */
static Relation
lock_leaf(const HmsStream *stream, TimestampTz clock, TimestampTz *published_at,
		  bool *is_default)
{
	HmsLeaf		leaf = find_leaf(stream, clock, published_at);

	HMS_DEBUG_POINT("publish-before-insert");
	for (;;)
	{
		HmsLeaf		again;

		CHECK_FOR_INTERRUPTS();
		LockRelationOid(leaf.relid, RowExclusiveLock);
		again = find_leaf(stream, clock, published_at);
		*is_default = again.is_default;
		if (again.relid == leaf.relid)
			return table_open(leaf.relid, NoLock);
		UnlockRelationOid(leaf.relid, RowExclusiveLock);
		leaf = again;
	}
}

static void
set_varlena(TupleTableSlot *slot, int attno, Datum value)
{
	slot->tts_values[attno - 1] = value;
	slot->tts_isnull[attno - 1] = DatumGetPointer(value) == NULL;
}

/* One row of a log. */
static void
fill_slot(TupleTableSlot *slot, const HmsStream *stream, HmsXid xid,
		  TimestampTz published_at, const HmsNewMessage *message)
{
	ExecClearTuple(slot);
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts * sizeof(bool));

#define SET(attno, value) \
	(slot->tts_values[(attno) - 1] = (value), slot->tts_isnull[(attno) - 1] = false)
	SET(HMS_LOG_STREAM_ID, Int32GetDatum(stream->stream_id));
	SET(HMS_LOG_PRIORITY, Int16GetDatum(message->priority));
	SET(HMS_LOG_ID, Int64GetDatum(message->id));
	SET(HMS_LOG_XID, Int64GetDatum(xid));
	SET(HMS_LOG_PUBLISHED_AT, TimestampTzGetDatum(published_at));
	if (!TIMESTAMP_IS_NOBEGIN(message->deliver_at))
		SET(HMS_LOG_DELIVER_AT, TimestampTzGetDatum(message->deliver_at));
#undef SET
	set_varlena(slot, HMS_LOG_KEY, message->key);
	set_varlena(slot, HMS_LOG_HEADERS, message->headers);
	set_varlena(slot, HMS_LOG_PAYLOAD, message->payload);
	set_varlena(slot, HMS_LOG_BODY, message->body);
	set_varlena(slot, HMS_LOG_CONTENT_TYPE, message->content_type);
	ExecStoreVirtualTuple(slot);
}

/* Step 7, in chunks that reuse their slots. */
static void
write_rows(Relation rel, bool is_default, const HmsStream *stream, HmsXid xid,
		   TimestampTz published_at, const HmsNewMessage *messages, int nmessages)
{
	TupleTableSlot *slots[APPEND_CHUNK];
	int			nslots = Min(APPEND_CHUNK, nmessages);
	HmsWriter	writer;

	hms_writer_attach(&writer, rel);
	for (int i = 0; i < nslots; i++)
		slots[i] = MakeSingleTupleTableSlot(RelationGetDescr(rel), &TTSOpsVirtual);

	for (int done = 0; done < nmessages; done += APPEND_CHUNK)
	{
		int			n = Min(APPEND_CHUNK, nmessages - done);

		for (int i = 0; i < n; i++)
			fill_slot(slots[i], stream, xid, published_at, &messages[done + i]);
		hms_insert_many(&writer, slots, n);
	}
	for (int i = 0; i < nslots; i++)
		ExecDropSingleTupleTableSlot(slots[i]);
	hms_writer_close(&writer, is_default);

	/* Our own reads in this transaction see them. */
	CommandCounterIncrement();
}

/*
 * hms_log_append
 *		Append messages in the caller's transaction; fills their ids, in order.
 *
 * 'clock' is the call's time.  Takes RowExclusiveLock on one leaf and keeps it.
 */
void
hms_log_append(const HmsStream *stream, HmsNewMessage *messages, int nmessages,
			   TimestampTz clock)
{
	HmsXid		xid = hms_xid_own();	/* before the ids: see cursor.c */
	Oid			sequence = hms_relset()->message_id_seq;
	TimestampTz published_at;
	bool		is_default;
	Relation	rel;

	for (int i = 0; i < nmessages; i++)
		messages[i].id = hms_sequence_next(sequence);
	HMS_DEBUG_POINT("publish-after-ids");

	rel = lock_leaf(stream, clock, &published_at, &is_default);
	write_rows(rel, is_default, stream, xid, published_at, messages, nmessages);
}

/*
 * hms_log_restore
 *		Put a message back under its old id.
 *
 * Groups whose position is past the id do not see it again: a pending entry that
 * this transaction gets in their cursors starts above it.
 */
void
hms_log_restore(const HmsStream *stream, const HmsMessage *message, TimestampTz clock)
{
	HmsXid		xid = hms_xid_own();
	HmsNewMessage copy = {
		.id = message->id,
		.deliver_at = DT_NOBEGIN,
		.priority = message->priority,
		.headers = PointerGetDatum(message->headers),
		.payload = PointerGetDatum(message->payload),
		.body = PointerGetDatum(message->body),
		.content_type = PointerGetDatum(message->content_type),
		.key = PointerGetDatum(message->key)
	};
	TimestampTz published_at;
	bool		is_default;
	Relation	rel = lock_leaf(stream, clock, &published_at, &is_default);

	write_rows(rel, is_default, stream, xid, published_at, &copy, 1);
}
