/*-------------------------------------------------------------------------
 *
 * xid.h
 *	  Stored transaction ids: the database's offset, and which of them a snapshot sees decided.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_XID_H
#define HMS_CORE_XID_H

#include "access/transam.h"
#include "hms.h"
#include "utils/snapshot.h"

/*
 * This database's offset.  When the row is missing (fresh installation or logical
 * restore) it is computed and stored under a lock first: max(0, highest stored xid + 1).
 * Not on a standby.
 */
extern int64 hms_xid_offset(void);

/* True when the row exists (workers leave a database without it alone). */
extern bool hms_xid_offset_known(void);

/* Our own top-level transaction, assigned now, as stored. */
extern HmsXid hms_xid_own(void);

/*
 * Transactions as one snapshot sees them, in stored form.  A transaction is decided when it has
 * ended before the snapshot was taken, or stems from before a logical restore, or is our own (its rows are ours to see).
 */
typedef struct HmsXidView
{
	int64		offset;
	HmsXid		own;			/* 0 = none assigned */
	HmsXid		xmax;			/* not decided at or above, our own excepted */
	HmsXid		next;			/* first xid not yet assigned when we looked,
								 * after the snapshot */
	int			last_found;		/* where hms_xid_run() found its xid last */
	int			nrunning;
	HmsXid	   *running;		/* sorted, without duplicates and without our
								 * own */
} HmsXidView;

/* Analyse a snapshot that was taken just now; reads the next xid AFTER it. */
extern void hms_xid_view(HmsXidView *view, Snapshot snapshot);

/* Longest run [from, result) within [from, to) that is all decided or all undecided. */
extern HmsXid hms_xid_run(HmsXidView *view, HmsXid from, HmsXid to, bool *decided);

/* True when the stored xid is that of a subtransaction in [xmax, next). */
extern bool hms_xid_is_sub(const HmsXidView *view, HmsXid xid);

#endif							/* HMS_CORE_XID_H */
