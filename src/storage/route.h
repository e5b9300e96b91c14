/*-------------------------------------------------------------------------
 *
 * route.h
 *	  The partitions of a log, as the catalogs show them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_ROUTE_H
#define HMS_STORAGE_ROUTE_H

#include "hms.h"

typedef struct HmsLeaf
{
	Oid			relid;
	Oid			order_idx;		/* (stream_id, priority, id) */
	Oid			xid_idx;		/* (xid, stream_id, id) */
	Oid			key_idx;		/* (key, stream_id, id) where key is not null */
	TimestampTz lower;			/* DT_NOBEGIN for the default partition */
	TimestampTz upper;			/* DT_NOEND for the default partition */
	bool		is_default;
	bool		sealed;			/* nothing will be added; ids within
								 * min_id..max_id */
	int64		min_id;
	int64		max_id;			/* 0 and 0: sealed and empty */
} HmsLeaf;

/* All leaves of one log; sorted by lower bound, the default partition is last. */
typedef struct HmsLeaves
{
	Oid			log_relid;
	int			nleaves;
	HmsLeaf    *leaves;
	int			default_index;	/* -1 if there is none */
} HmsLeaves;

/*
 * The current leaves of a log, from a per-backend cache that relcache
 * invalidations of the parent empty.  Processes pending invalidations first.  Sealed
 * bounds come from log_partition; whoever changes that table invalidates the
 * parent (hms_route_invalidate).  Takes AccessShareLock on the parent only to
 * rebuild, and releases it.  Valid until the next call.  Raises 55000 when the log is missing
 * or has no usable indexes.
 */
extern const HmsLeaves *hms_route_leaves(Oid log_relid, int32 namespace_id);

/* Make every backend rebuild the cache of this log after our commit. */
extern void hms_route_invalidate(Oid log_relid);

/* Index into leaves of the partition for a time, or default_index. */
extern int	hms_route_find(const HmsLeaves *leaves, TimestampTz published_at);

/* OID of hotmesh_stream_data.log_<namespace_id>, InvalidOid if missing. */
extern Oid	hms_route_log_relid(int32 namespace_id);

#endif							/* HMS_STORAGE_ROUTE_H */
