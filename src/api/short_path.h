/*-------------------------------------------------------------------------
 *
 * short_path.h
 *	  Is this call of read() a statement of its own?
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_API_SHORT_PATH_H
#define HMS_API_SHORT_PATH_H

#include "fmgr.h"

/*
 * True when the running statement is an autocommit SELECT that does nothing but call read(), so
 * that its transaction ends as soon as its rows are sent.  *acks is set when an aggregate
 * above it calls ack().
 */
extern bool hms_short_path(FunctionCallInfo fcinfo, bool *acks);

/* Watch how many rows the executor is asked for; call from _PG_init. */
extern void hms_short_path_install_hook(void);

#endif							/* HMS_API_SHORT_PATH_H */
