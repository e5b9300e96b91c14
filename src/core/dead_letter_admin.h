/*-------------------------------------------------------------------------
 *
 * dead_letter_admin.h
 *	  Listing and discarding a group's dead letters.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_DEAD_LETTER_ADMIN_H
#define HMS_CORE_DEAD_LETTER_ADMIN_H

#include "core/stream_cache.h"
#include "executor/tuptable.h"
#include "utils/snapshot.h"

/* 'slot' holds a row of hotmesh_stream.dead_letter (core/rows.h), valid during the visit. */
typedef void (*HmsDeadLetterVisitor) (TupleTableSlot *slot, void *arg);

/* Visit up to 'max' dead letters with id > after_id, by id, as 'snapshot' sees them.  Works on a standby. */
extern void hms_dead_letter_each(const HmsGroup *group, Snapshot snapshot, int64 after_id, int max,
								 HmsDeadLetterVisitor visit, void *arg);

/*
 * Delete dead letters: those with one of 'ids' (nids = -1: any) that died before
 * 'before' (DT_NOEND: whenever).  Rows that another transaction holds stay.  Returns rows deleted.
 */
extern int	hms_dead_letter_discard(const HmsGroup *group, const int64 *ids, int nids, TimestampTz before);

#endif							/* HMS_CORE_DEAD_LETTER_ADMIN_H */
