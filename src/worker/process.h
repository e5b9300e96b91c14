/*-------------------------------------------------------------------------
 *
 * process.h
 *	  What the workers of a database have in common: start, transactions, leaving.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_WORKER_PROCESS_H
#define HMS_WORKER_PROCESS_H

#include "hms.h"

/* Attach to the slot, connect and set up the session; does not return when there is nothing to attach to. */
extern void hms_process_start(void);

/* Between two tasks: interrupts, reload, and leaving when asked. */
extern void hms_process_pause(void);

/*
 * Bracket one task: a transaction, as the extension's owner in a security-restricted operation.
 * When the extension is gone, begin leaves the process.
 */
extern void hms_process_begin(const char *activity);
extern void hms_process_commit(void);

#endif							/* HMS_WORKER_PROCESS_H */
