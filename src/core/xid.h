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

#endif							/* HMS_CORE_XID_H */
