/*-------------------------------------------------------------------------
 *
 * log_trim.h
 *	  Whether every group of a stream has done with a message.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_LOG_TRIM_H
#define HMS_CORE_LOG_TRIM_H

#include "core/log.h"

/* The groups of a stream, their cursors and deliveries, as one snapshot sees them. */
typedef struct HmsSettledView HmsSettledView;
extern HmsSettledView *hms_settled_view(const HmsStream *stream, Snapshot snapshot);

/* True when no group still owes or has in flight the log row in 'slot'. */
extern bool hms_settled(HmsSettledView *view, TupleTableSlot *slot, int64 id);
extern void hms_settled_view_end(HmsSettledView *view);

#endif							/* HMS_CORE_LOG_TRIM_H */
