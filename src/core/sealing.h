/*-------------------------------------------------------------------------
 *
 * sealing.h
 *	  Rows of log_partition: which leaves are sealed.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_SEALING_H
#define HMS_CORE_SEALING_H

#include "core/stream_cache.h"
#include "storage/route.h"

/* Forget that a leaf is sealed; at commit for everybody. */
extern void hms_seal_break(const HmsNamespace *ns, const HmsLeaf *leaf);

/* The same for all leaves of a namespace that is going away. */
extern void hms_seal_forget_namespace(int32 namespace_id);

#endif							/* HMS_CORE_SEALING_H */
