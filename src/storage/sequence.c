/*-------------------------------------------------------------------------
 *
 * sequence.c
 *	  Taking ids from our sequences and reading the last one allocated.
 *
 * nextval_internal() does the allocation.  The last value is read from the sequence's
 * page under its buffer lock: SQL's pg_sequence_last_value() checks the
 * caller's privileges on the sequence, which our users do not have.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "commands/sequence.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "storage/sequence.h"

int64
hms_sequence_next(Oid seqid)
{
	return nextval_internal(seqid, false);
}

int64
hms_sequence_last(Oid seqid)
{
	Relation	rel = relation_open(seqid, AccessShareLock);
	Buffer		buffer;
	Page		page;
	HeapTupleData tuple;
	ItemId		item;
	Form_pg_sequence_data data;
	int64		last;

	buffer = ReadBuffer(rel, 0);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	item = PageGetItemId(page, FirstOffsetNumber);
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	data = (Form_pg_sequence_data) GETSTRUCT(&tuple);
	last = data->is_called ? data->last_value : 0;
	UnlockReleaseBuffer(buffer);
	relation_close(rel, AccessShareLock);
	return last;
}
