/*-------------------------------------------------------------------------
 *
 * write.c
 *	  Insert, lock, update and delete rows through the table access methods.
 *
 * Direct writes skip what the executor would do for us: row triggers, checks,
 * row security, expression indexes and partial indexes but those on "column is
 * not null".  hms_writer_open() refuses tables that rely on them, so that nothing
 * is bypassed silently.  All TM_Results are
 * handled here; nothing waits for another transaction's row lock.
 *
 * Modelled on execReplication.c (PostgreSQL 15).  A row is locked with
 * table_tuple_lock() before it is updated: updating without the lock and
 * without waiting is refused by an assertion in heap_update().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "nodes/execnodes.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "debug/debug_point.h"
#include "hms_compat.h"
#include "storage/write.h"

/* heapam buffers that many tuples of one multi-insert well */
#define INSERT_CHUNK	1000

static void
refuse_bypassed(Relation rel, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has %s", RelationGetRelationName(rel), what),
			 errdetail("hotmesh_stream writes its tables directly and would bypass them."),
			 errhint("Drop them, or put them on a table that you fill from a consumer.")));
}

void
hms_writer_open(HmsWriter *writer, Oid relid)
{
	hms_writer_attach(writer, table_open(relid, RowExclusiveLock));
}

/* The column c of an index whose predicate is "c is not null"; 0 for any other index. */
static AttrNumber
not_null_column(const IndexInfo *info)
{
	NullTest   *test;

	if (list_length(info->ii_Predicate) != 1 || !IsA(linitial(info->ii_Predicate), NullTest))
		return 0;
	test = linitial_node(NullTest, info->ii_Predicate);
	if (test->nulltesttype != IS_NOT_NULL || test->argisrow || !IsA(test->arg, Var))
		return 0;
	return castNode(Var, test->arg)->varattno;
}

void
hms_writer_attach(HmsWriter *writer, Relation rel)
{
	List	   *index_oids = RelationGetIndexList(rel);
	ListCell   *lc;

	if (rel->trigdesc != NULL)
		refuse_bypassed(rel, "triggers");
	if (rel->rd_rel->relrowsecurity)
		refuse_bypassed(rel, "row security policies");

	writer->rel = rel;
	writer->nindexes = 0;
	writer->indexes = palloc(sizeof(Relation) * (list_length(index_oids) + 1));
	writer->infos = palloc(sizeof(IndexInfo *) * (list_length(index_oids) + 1));
	writer->not_null = palloc(sizeof(AttrNumber) * (list_length(index_oids) + 1));
	foreach(lc, index_oids)
	{
		Relation	index = index_open(lfirst_oid(lc), RowExclusiveLock);
		IndexInfo  *info = BuildIndexInfo(index);

		writer->not_null[writer->nindexes] = not_null_column(info);
		if (info->ii_Expressions != NIL ||
			(info->ii_Predicate != NIL && writer->not_null[writer->nindexes] == 0))
			refuse_bypassed(rel, "expression or partial indexes");
		writer->indexes[writer->nindexes] = index;
		writer->infos[writer->nindexes++] = info;
	}
	list_free(index_oids);
}

void
hms_writer_close(HmsWriter *writer, bool release)
{
	for (int i = 0; i < writer->nindexes; i++)
		index_close(writer->indexes[i], release ? RowExclusiveLock : NoLock);
	table_close(writer->rel, release ? RowExclusiveLock : NoLock);
}

/* Index entries for a row that stands at slot->tts_tid. */
static void
insert_index_entries(HmsWriter *writer, TupleTableSlot *slot, bool is_update)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	for (int i = 0; i < writer->nindexes; i++)
	{
		Relation	index = writer->indexes[i];

		if (!writer->infos[i]->ii_ReadyForInserts)
			continue;
		if (writer->not_null[i] != 0 && slot_attisnull(slot, writer->not_null[i]))
			continue;
		FormIndexDatum(writer->infos[i], slot, NULL, values, nulls);
		index_insert(index, values, nulls, &slot->tts_tid, writer->rel,
					 index->rd_index->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
					 is_update, writer->infos[i]);
	}
}

void
hms_insert(HmsWriter *writer, TupleTableSlot *slot)
{
	table_tuple_insert(writer->rel, slot, GetCurrentCommandId(true), 0, NULL);
	insert_index_entries(writer, slot, false);
}

void
hms_insert_many(HmsWriter *writer, TupleTableSlot **slots, int nslots)
{
	CommandId	cid = GetCurrentCommandId(true);

	if (nslots == 1)
	{
		hms_insert(writer, slots[0]);
		return;
	}
	for (int done = 0; done < nslots; done += INSERT_CHUNK)
	{
		int			n = Min(INSERT_CHUNK, nslots - done);

		table_multi_insert(writer->rel, slots + done, n, cid, 0, NULL);
		for (int i = done; i < done + n; i++)
			insert_index_entries(writer, slots[i], false);
	}
}

HmsRowResult
hms_lock_row(Relation rel, ItemPointer tid, Snapshot snapshot,
			 TupleTableSlot *slot, LockTupleMode mode, bool follow)
{
	TM_FailureData failure;
	ItemPointerData target = *tid;	/* tid may live in 'slot', which is
									 * cleared */
	TM_Result	result;

	result = table_tuple_lock(rel, &target, snapshot, slot,
							  GetCurrentCommandId(true), mode, LockWaitSkip,
							  follow ? TUPLE_LOCK_FLAG_FIND_LAST_VERSION : 0,
							  &failure);
	switch (result)
	{
		case TM_Ok:
			return HMS_ROW_OK;
		case TM_WouldBlock:
		case TM_BeingModified:
			return HMS_ROW_BUSY;
		case TM_Updated:
		case TM_Deleted:
		case TM_SelfModified:
			return HMS_ROW_GONE;
		case TM_Invisible:
			elog(ERROR, "attempted to lock an invisible row of table \"%s\"",
				 RelationGetRelationName(rel));
	}
	elog(ERROR, "unexpected table_tuple_lock status %d", result);
}

void
hms_update_locked(HmsWriter *writer, ItemPointer tid, TupleTableSlot *slot, Snapshot snapshot)
{
	TM_FailureData failure;
	ItemPointerData target = *tid;
	LockTupleMode mode;
	HmsUpdateIndexes update_indexes;
	TM_Result	result;

	/* The row is locked by us: nothing to wait for. */
	result = table_tuple_update(writer->rel, &target, slot, GetCurrentCommandId(true),
								snapshot, InvalidSnapshot, true, &failure,
								&mode, &update_indexes);
	if (result != TM_Ok)
		elog(ERROR, "could not update a locked row of table \"%s\": status %d",
			 RelationGetRelationName(writer->rel), result);
	if (!HMS_NO_INDEX_NEEDED(update_indexes))
		insert_index_entries(writer, slot, true);
}

HmsRowResult
hms_delete_row(Relation rel, ItemPointer tid, Snapshot snapshot)
{
	TM_FailureData failure;
	TM_Result	result;

	HMS_DEBUG_POINT("settle-before-delete");
	result = table_tuple_delete(rel, tid, GetCurrentCommandId(true), snapshot,
								InvalidSnapshot, false, &failure, false);

	/*
	 * A row that we locked or claimed ourselves counts as being modified,
	 * too: nothing to wait for.
	 */
	if (result == TM_BeingModified && TransactionIdIsCurrentTransactionId(failure.xmax))
		result = table_tuple_delete(rel, tid, GetCurrentCommandId(true), snapshot,
									InvalidSnapshot, true, &failure, false);
	switch (result)
	{
		case TM_Ok:
			return HMS_ROW_OK;
		case TM_WouldBlock:
		case TM_BeingModified:
			return HMS_ROW_BUSY;
		case TM_Updated:
		case TM_Deleted:
		case TM_SelfModified:
			return HMS_ROW_GONE;
		case TM_Invisible:
			elog(ERROR, "attempted to delete an invisible row of table \"%s\"",
				 RelationGetRelationName(rel));
	}
	elog(ERROR, "unexpected table_tuple_delete status %d", result);
}

void
hms_delete_locked(Relation rel, ItemPointer tid, Snapshot snapshot)
{
	TM_FailureData failure;
	TM_Result	result;

	result = table_tuple_delete(rel, tid, GetCurrentCommandId(true), snapshot,
								InvalidSnapshot, true, &failure, false);
	if (result != TM_Ok)
		elog(ERROR, "could not delete a locked row of table \"%s\": status %d",
			 RelationGetRelationName(rel), result);
}
