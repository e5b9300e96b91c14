/*-------------------------------------------------------------------------
 *
 * cursor_state.c
 *	  The cursor's rows: how positions and pending transactions are stored.
 *
 * The hot row is rewritten by every advance, so it must stay small: pending
 * entries are delta-coded, two or three bytes each, and when there are more than
 * HMS_HOT_PENDING, all of them move to a row of cursor_spill, which is
 * rewritten only when its set changes.  New transactions go to the hot row,
 * where most of them end; those that stay for long end up in the spill.
 *
 * Encoding of a list, sorted by 'from': one version byte, then per entry three
 * varints: from - previous to; to - from - 1; after - previous after (zigzag).
 *
 * Both rows are written under the tuple lock on the hot row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "core/cursor_state.h"
#include "storage/relset.h"

#define PENDING_VERSION		1
#define MAX_ENTRY_BYTES		30	/* three varints of ten bytes */

/* Wider runs of undecided xids become one range entry. */
#define WIDE_RANGE			64

enum
{
	CURSOR_INCARNATION = 1,
	CURSOR_POS0,
	CURSOR_SPILLED = CURSOR_POS0 + HMS_PRIORITY_LEVELS,
	CURSOR_PENDING
};

enum
{
	SPILL_INCARNATION = 1,
	SPILL_PENDING
};

static char *
put_varint(char *p, uint64 value)
{
	while (value >= 0x80)
	{
		*p++ = (char) (value | 0x80);
		value >>= 7;
	}
	*p++ = (char) value;
	return p;
}

static const char *
get_varint(const char *p, const char *end, uint64 *value)
{
	int			shift = 0;

	*value = 0;
	while (p < end && shift < 64)
	{
		uint8		byte = (uint8) *p++;

		*value |= (uint64) (byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return p;
		shift += 7;
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("pending list of a cursor is damaged")));
}

static uint64
zigzag(int64 value)
{
	return ((uint64) value << 1) ^ (uint64) (value >> 63);
}

static int64
unzigzag(uint64 value)
{
	return (int64) (value >> 1) ^ -(int64) (value & 1);
}

/* Encode the entries whose 'spilled' flag is as given. */
static bytea *
encode_pending(const HmsPending *pending, int npending, bool spilled)
{
	bytea	   *result = palloc(VARHDRSZ + 1 + (Size) npending * MAX_ENTRY_BYTES);
	char	   *p = VARDATA(result);
	HmsXid		to = 0;
	int64		after = 0;

	*p++ = PENDING_VERSION;
	for (int i = 0; i < npending; i++)
	{
		if (pending[i].spilled != spilled)
			continue;
		p = put_varint(p, (uint64) (pending[i].from - to));
		p = put_varint(p, (uint64) (pending[i].to - pending[i].from - 1));
		p = put_varint(p, zigzag(pending[i].after - after));
		to = pending[i].to;
		after = pending[i].after;
	}
	SET_VARSIZE(result, p - (char *) result);
	return result;
}

/* Append the decoded entries to cursor->pending. */
static void
decode_pending(HmsCursor *cursor, const struct varlena *encoded, bool spilled)
{
	const char *p = VARDATA_ANY(encoded);
	const char *end = p + VARSIZE_ANY_EXHDR(encoded);
	HmsXid		to = 0;
	int64		after = 0;
	Size		capacity = cursor->npending + (end - p) / 3 + 1;

	if (p == end || *p++ != PENDING_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("pending list of a cursor has an unknown format")));

	cursor->pending = cursor->pending == NULL ?
		palloc(sizeof(HmsPending) * capacity) :
		repalloc_huge(cursor->pending, sizeof(HmsPending) * capacity);
	while (p < end)
	{
		HmsPending *entry = &cursor->pending[cursor->npending++];
		uint64		gap;
		uint64		width;
		uint64		delta;

		p = get_varint(p, end, &gap);
		p = get_varint(p, end, &width);
		p = get_varint(p, end, &delta);
		entry->from = to + (HmsXid) gap;
		entry->to = entry->from + (HmsXid) width + 1;
		entry->after = after + unzigzag(delta);
		entry->spilled = spilled;
		to = entry->to;
		after = entry->after;
	}
}

static int
compare_pending(const void *a, const void *b)
{
	const HmsPending *x = a;
	const HmsPending *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* The spill row of an incarnation, as the snapshot sees it; scan is left open. */
static bool
spill_find(Relation rel, int64 incarnation, Snapshot snapshot, HmsScan *scan)
{
	ScanKeyData key;

	hms_key_int8(&key, 1, BTEqualStrategyNumber, incarnation);
	hms_scan_begin(scan, rel, hms_relset()->spill_idx, snapshot, 1, &key);
	return hms_scan_next(scan, BackwardScanDirection);
}

static void
decode_spill(int64 incarnation, Snapshot snapshot, HmsCursor *cursor)
{
	Relation	rel = table_open(hms_relset()->spill_rel, AccessShareLock);
	HmsScan		scan;
	bool		isnull;

	if (!spill_find(rel, incarnation, snapshot, &scan))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("spilled pending list of cursor %lld is missing",
						(long long) incarnation)));
	decode_pending(cursor,
				   PG_DETOAST_DATUM(slot_getattr(scan.slot, SPILL_PENDING, &isnull)),
				   true);
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
}

bool
hms_cursor_is_of(TupleTableSlot *slot, int64 incarnation)
{
	bool		isnull;

	return DatumGetInt64(slot_getattr(slot, CURSOR_INCARNATION, &isnull)) == incarnation;
}

int64
hms_cursor_highest_pos(const HmsCursor *cursor)
{
	int64		pos = cursor->pos[0];

	for (int level = 1; level < HMS_PRIORITY_LEVELS; level++)
		pos = Max(pos, cursor->pos[level]);
	return pos;
}

bool
hms_cursor_find(Relation rel, int64 incarnation, Snapshot snapshot, HmsScan *scan)
{
	ScanKeyData key;

	hms_key_int8(&key, 1, BTEqualStrategyNumber, incarnation);
	hms_scan_begin(scan, rel, hms_relset()->cursor_idx, snapshot, 1, &key);
	return hms_scan_next(scan, BackwardScanDirection);
}

void
hms_cursor_decode(const HmsGroup *group, TupleTableSlot *slot,
				  Snapshot snapshot, HmsCursor *cursor)
{
	bool		isnull;

	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
	{
		Datum		pos = slot_getattr(slot, CURSOR_POS0 + level, &isnull);

		cursor->pos[level] = isnull ? group->start_id : DatumGetInt64(pos);
	}
	cursor->spilled = DatumGetBool(slot_getattr(slot, CURSOR_SPILLED, &isnull));
	cursor->npending = 0;
	cursor->pending = NULL;

	/*
	 * The spilled ones are the older ones: the list is mostly in order
	 * already.
	 */
	if (cursor->spilled)
		decode_spill(group->incarnation, snapshot, cursor);
	decode_pending(cursor,
				   PG_DETOAST_DATUM(slot_getattr(slot, CURSOR_PENDING, &isnull)),
				   false);
	if (cursor->spilled)
		qsort(cursor->pending, cursor->npending, sizeof(HmsPending), compare_pending);
}

HmsRowResult
hms_cursor_lock(Relation rel, int64 incarnation, HmsGroupSlot *group_slot, TupleTableSlot *slot)
{
	Snapshot	look = RegisterSnapshot(GetLatestSnapshot());
	HmsRowResult locked = HMS_ROW_GONE;
	ItemPointerData tid;

	if (group_slot != NULL && hms_cursor_place(group_slot, &tid) &&
		hms_fetch_at(rel, &tid, look, slot) && hms_cursor_is_of(slot, incarnation))
		locked = hms_lock_row(rel, &tid, look, slot, LockTupleNoKeyExclusive, true);
	else
	{
		HmsScan		scan;

		if (hms_cursor_find(rel, incarnation, look, &scan))
			locked = hms_lock_row(rel, &scan.slot->tts_tid, look, slot,
								  LockTupleNoKeyExclusive, true);
		hms_scan_end(&scan);
	}
	UnregisterSnapshot(look);
	return locked;
}

/* Store 'encoded' in a slot's bytea column, to be materialised soon. */
static void
set_value(TupleTableSlot *slot, int attno, Datum value)
{
	slot->tts_values[attno - 1] = value;
	slot->tts_isnull[attno - 1] = false;
}

/* Replace, insert or delete the spill row. */
static void
save_spill(int64 incarnation, Snapshot snapshot, const HmsCursor *cursor, bool had_spill)
{
	HmsWriter	writer;
	HmsScan		scan;
	TupleTableSlot *slot;

	hms_writer_open(&writer, hms_relset()->spill_rel);
	slot = table_slot_create(writer.rel, NULL);
	if (had_spill)
	{
		if (!spill_find(writer.rel, incarnation, snapshot, &scan) ||
			hms_lock_row(writer.rel, &scan.slot->tts_tid, snapshot, slot,
						 LockTupleExclusive, true) != HMS_ROW_OK)
			elog(ERROR, "could not lock the spill row of cursor %lld", (long long) incarnation);
		hms_delete_locked(writer.rel, &slot->tts_tid, snapshot);
		hms_scan_end(&scan);
	}
	if (cursor->spilled)
	{
		TupleTableSlot *row = MakeSingleTupleTableSlot(RelationGetDescr(writer.rel),
													   &TTSOpsVirtual);

		set_value(row, SPILL_INCARNATION, Int64GetDatum(incarnation));
		set_value(row, SPILL_PENDING,
				  PointerGetDatum(encode_pending(cursor->pending, cursor->npending, true)));
		ExecStoreVirtualTuple(row);
		hms_insert(&writer, row);
		ExecDropSingleTupleTableSlot(row);
	}
	ExecDropSingleTupleTableSlot(slot);
	hms_writer_close(&writer, false);
}

/* Decide which entries are hot; true when the spill row has to be rewritten. */
static bool
place_pending(HmsCursor *cursor, bool spill_changed)
{
	int			nhot = 0;
	int			nspilled = 0;

	for (int i = 0; i < cursor->npending; i++)
	{
		if (cursor->pending[i].spilled)
			nspilled++;
		else
			nhot++;
	}
	if (nhot > HMS_HOT_PENDING)
	{
		for (int i = 0; i < cursor->npending; i++)
			cursor->pending[i].spilled = true;
		nspilled = cursor->npending;
		spill_changed = true;
	}
	cursor->spilled = nspilled > 0;
	return spill_changed;
}

void
hms_cursor_save(HmsWriter *writer, ItemPointer tid, Snapshot snapshot,
				const HmsGroup *group, HmsCursor *cursor, bool spill_changed)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(writer->rel),
													&TTSOpsVirtual);
	bool		had_spill = cursor->spilled;

	if (place_pending(cursor, spill_changed))
		save_spill(group->incarnation, snapshot, cursor, had_spill);

	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts * sizeof(bool));
	set_value(slot, CURSOR_INCARNATION, Int64GetDatum(group->incarnation));
	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
	{
		if (cursor->pos[level] != group->start_id)
			set_value(slot, CURSOR_POS0 + level, Int64GetDatum(cursor->pos[level]));
	}
	set_value(slot, CURSOR_SPILLED, BoolGetDatum(cursor->spilled));
	set_value(slot, CURSOR_PENDING,
			  PointerGetDatum(encode_pending(cursor->pending, cursor->npending, false)));
	ExecStoreVirtualTuple(slot);
	hms_update_locked(writer, tid, slot, snapshot);
	*tid = slot->tts_tid;
	ExecDropSingleTupleTableSlot(slot);
}

void
hms_cursor_insert(int64 incarnation, HmsPending *pending, int npending)
{
	HmsWriter	writer;
	TupleTableSlot *slot;
	HmsCursor	cursor = {.npending = npending,.pending = pending};

	if (place_pending(&cursor, false))
		save_spill(incarnation, NULL, &cursor, false);

	hms_writer_open(&writer, hms_relset()->cursor_rel);
	slot = MakeSingleTupleTableSlot(RelationGetDescr(writer.rel), &TTSOpsVirtual);
	memset(slot->tts_isnull, true, slot->tts_tupleDescriptor->natts * sizeof(bool));
	set_value(slot, CURSOR_INCARNATION, Int64GetDatum(incarnation));
	set_value(slot, CURSOR_SPILLED, BoolGetDatum(cursor.spilled));
	set_value(slot, CURSOR_PENDING,
			  PointerGetDatum(encode_pending(pending, npending, false)));
	ExecStoreVirtualTuple(slot);
	hms_insert(&writer, slot);
	ExecDropSingleTupleTableSlot(slot);
	hms_writer_close(&writer, false);
	CommandCounterIncrement();
}

/*
 * The undecided xids as sorted entries: each running one, and [xmax, next)
 * without our own transaction and without subtransactions, whose top-level
 * transactions are older and listed.  A wide stretch stays one range.
 */
static HmsPending *
undecided_entries(const HmsXidView *view, int64 after, int *n)
{
	HmsPending *entries = palloc(sizeof(HmsPending) * (view->nrunning + WIDE_RANGE + 2));
	bool		wide = view->next - view->xmax > WIDE_RANGE;

	*n = 0;
#define ADD(f, t) \
	(entries[*n].from = (f), entries[*n].to = (t), entries[*n].after = after, \
	 entries[*n].spilled = false, (*n)++)

	for (int i = 0; i < view->nrunning; i++)
	{
		if (view->running[i] < view->xmax)
			ADD(view->running[i], view->running[i] + 1);
	}
	if (wide && view->own >= view->xmax)
	{
		if (view->own > view->xmax)
			ADD(view->xmax, view->own);
		if (view->own + 1 < view->next)
			ADD(view->own + 1, view->next);
	}
	else if (wide)
		ADD(view->xmax, view->next);
	else
	{
		for (HmsXid xid = view->xmax; xid < view->next; xid++)
		{
			if (xid != view->own && !hms_xid_is_sub(view, xid))
				ADD(xid, xid + 1);
		}
	}
#undef ADD
	return entries;
}

/* True when the list covers xid; *p walks along with rising xids. */
static bool
is_listed(const HmsCursor *cursor, HmsXid xid, int *p)
{
	while (*p < cursor->npending && cursor->pending[*p].to <= xid)
		(*p)++;
	return *p < cursor->npending && cursor->pending[*p].from <= xid;
}

/* True when every undecided transaction is listed: the usual case beside idle ones. */
static bool
all_listed(const HmsCursor *cursor, const HmsXidView *view)
{
	int			p = 0;

	if (view->next - view->xmax > WIDE_RANGE)
		return false;
	for (int i = 0; i < view->nrunning; i++)
	{
		if (!is_listed(cursor, view->running[i], &p))
			return false;
	}
	for (HmsXid xid = view->xmax; xid < view->next; xid++)
	{
		if (xid != view->own && !is_listed(cursor, xid, &p) && !hms_xid_is_sub(view, xid))
			return false;
	}
	return true;
}

void
hms_pending_add_undecided(HmsCursor *cursor, const HmsXidView *view, int64 after)
{
	HmsPending *fresh;
	HmsPending *merged;
	const HmsPending *old = cursor->pending;
	int			nold = cursor->npending;
	int			nnew;
	int			n = 0;
	int			o = 0;

	if (all_listed(cursor, view))
		return;
	fresh = undecided_entries(view, after, &nnew);
	merged = palloc_extended(sizeof(HmsPending) * (2 * (Size) nold + nnew + 1),
							 MCXT_ALLOC_HUGE);
	for (int i = 0; i < nnew; i++)
	{
		HmsPending	piece = fresh[i];

		/* Old entries that end before this piece. */
		while (o < nold && old[o].to <= piece.from)
			merged[n++] = old[o++];

		/*
		 * Old entries within it: they keep their 'after'; what lies between
		 * is new.
		 */
		while (o < nold && old[o].from < piece.to)
		{
			if (old[o].from > piece.from)
			{
				merged[n] = piece;
				merged[n++].to = old[o].from;
			}
			piece.from = Max(piece.from, old[o].to);
			if (old[o].to > piece.to)
				break;			/* reaches into the next piece */
			merged[n++] = old[o++];
		}
		if (piece.from < piece.to)
			merged[n++] = piece;
	}
	while (o < nold)
		merged[n++] = old[o++];

	cursor->pending = merged;
	cursor->npending = n;
}
