/*-------------------------------------------------------------------------
 *
 * write.h
 *	  Insert, lock, update and delete rows through the table access methods.
 *
 * The only place that knows TM_Result.  Nothing here waits for another
 * transaction: a row that somebody else holds is reported as busy.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_WRITE_H
#define HMS_STORAGE_WRITE_H

#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "nodes/lockoptions.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* Indexes of one relation, open for insertion for the time of a call. */
typedef struct HmsWriter
{
	Relation	rel;
	int			nindexes;
	Relation   *indexes;
	struct IndexInfo **infos;
	AttrNumber *not_null;		/* column c of an index "where c is not null",
								 * else 0 */
} HmsWriter;

typedef enum HmsRowResult
{
	HMS_ROW_OK,
	HMS_ROW_BUSY,				/* another transaction holds it */
	HMS_ROW_GONE				/* deleted, or updated since the snapshot */
} HmsRowResult;

/*
 * Open a relation and its indexes with RowExclusiveLock.  Raises 55000 for
 * a table with user triggers, expression indexes or partial indexes other than
 * "where column is not null", which direct writes would bypass.
 */
extern void hms_writer_open(HmsWriter *writer, Oid relid);

/* The same for a relation that the caller has opened; closing the writer closes it too. */
extern void hms_writer_attach(HmsWriter *writer, Relation rel);

/* Close; the table lock is kept until end of transaction unless 'release'. */
extern void hms_writer_close(HmsWriter *writer, bool release);

/* Insert one row, or several at once; index entries included.  Slots must be of the relation's row type. */
extern void hms_insert(HmsWriter *writer, TupleTableSlot *slot);
extern void hms_insert_many(HmsWriter *writer, TupleTableSlot **slots, int nslots);

/*
 * Lock the row at tid (seen by 'snapshot') without waiting and fetch it into
 * 'slot'.  With follow, a newer committed version is locked instead of reporting GONE.
 */
extern HmsRowResult hms_lock_row(Relation rel, ItemPointer tid, Snapshot snapshot,
								 TupleTableSlot *slot, LockTupleMode mode, bool follow);

/* Replace a row that hms_lock_row() has locked; 'slot' holds the new values, indexed columns may change. */
extern void hms_update_locked(HmsWriter *writer, ItemPointer tid, TupleTableSlot *slot, Snapshot snapshot);

/* Delete the row at tid without waiting. */
extern HmsRowResult hms_delete_row(Relation rel, ItemPointer tid, Snapshot snapshot);

/* Delete a row that hms_lock_row() has locked. */
extern void hms_delete_locked(Relation rel, ItemPointer tid, Snapshot snapshot);

#endif							/* HMS_STORAGE_WRITE_H */
