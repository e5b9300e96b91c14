/*-------------------------------------------------------------------------
 *
 * leaf.h
 *	  What stands in one partition of a log: its ids, its times, and what
 *	  groups are still owed in it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_LEAF_H
#define HMS_CORE_LEAF_H

#include "core/stream_cache.h"
#include "storage/route.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

/* Open a leaf with AccessShareLock, without waiting; NULL when it is locked or gone. */
extern Relation hms_leaf_open(const HmsLeaf *leaf);
extern void hms_leaf_close(Relation rel);

/* Lowest and highest id of the visible rows; 0 and 0 when there are none. */
extern void hms_leaf_id_range(const HmsLeaf *leaf, Relation rel, Snapshot snapshot,
							  int64 *min_id, int64 *max_id);

/* True when the newest visible row of some stream was published at or after 'since'. */
extern bool hms_leaf_published_since(const HmsLeaf *leaf, Relation rel,
									 Snapshot snapshot, TimestampTz since);

typedef enum HmsOwedReason
{
	HMS_OWED_NOTHING,
	HMS_OWED_UNREAD,			/* messages behind the group's position */
	HMS_OWED_LATE,				/* messages of transactions that committed
								 * late */
	HMS_OWED_DELIVERY,			/* deliveries not settled */
	HMS_OWED_UNKNOWN			/* the group is being changed */
} HmsOwedReason;

typedef struct HmsOwed
{
	HmsOwedReason reason;		/* the first one found */
	int64		id;				/* a message it is owed for, 0 if unknown */
	int64		messages;		/* how many, counted up to the limit */
} HmsOwed;

/*
 * What one group is owed in a sealed leaf.  Exact while the leaf is locked
 * against everybody and the snapshot was taken after that; a delivery of a
 * message with an id within the leaf's range counts, in whichever leaf it is.
 */
extern void hms_leaf_owed(const HmsLeaf *leaf, Relation rel, Snapshot snapshot,
						  const HmsStream *stream, const HmsGroup *group,
						  int64 limit, HmsOwed *owed);

#endif							/* HMS_CORE_LEAF_H */
