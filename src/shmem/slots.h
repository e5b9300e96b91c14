/*-------------------------------------------------------------------------
 *
 * slots.h
 *	  Worker slots: which database has which background worker, in which state.
 *
 * The state machine stands in slot_life.c; one LWLock protects all slots.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_SLOTS_H
#define HMS_SHMEM_SLOTS_H

#include "hms.h"

typedef enum HmsWorkerKind
{
	HMS_ADVANCER,
	HMS_HOUSEKEEPER
} HmsWorkerKind;

#define HMS_WORKER_KINDS	2

/* --- for everybody ---------------------------------------------------------- */

/* True when an advancer of the current database is attached and ready. Lock-free enough for every read. */
extern bool hms_advancer_alive(void);

/* Set its latch; no-op without one.  Safe in commit callbacks. */
extern void hms_advancer_wake(void);

/* Ask the launcher to start the housekeeper of the current database soon. */
extern void hms_housekeeper_request(void);

/* Ask the launcher to look at a database now (CREATE EXTENSION committed there). */
extern void hms_launcher_request(Oid dboid);

/*
 * Stop the workers of a database and keep them away until released: CREATE
 * DATABASE ... TEMPLATE, ALTER DATABASE, DROP DATABASE.  Waits up to timeout_ms.
 * A backend has at most one hold.  Release is safe in transaction callbacks.
 */
extern void hms_workers_hold(Oid dboid, int timeout_ms);
extern void hms_workers_release(Oid dboid);

/* --- states ----------------------------------------------------------------- */

typedef enum HmsWorkerState
{
	HMS_WORKER_STOPPED,			/* no process */
	HMS_WORKER_STARTING,		/* registered, not yet attached */
	HMS_WORKER_ATTACHED,		/* its process runs */
	HMS_WORKER_READY,			/* and does its work */
	HMS_WORKER_EXITED			/* its process is gone, the launcher has not
								 * looked */
} HmsWorkerState;

#define HMS_WORKER_RUNS(s)	((s) == HMS_WORKER_ATTACHED || (s) == HMS_WORKER_READY)

/* Why a process left. */
typedef enum HmsWorkerEnd
{
	HMS_END_DONE,
	HMS_END_FAILED,
	HMS_END_STOPPED,			/* it was asked to */
	HMS_END_NO_EXTENSION		/* the database has no extension (any more) */
} HmsWorkerEnd;

/* Everything under the slots lock. */
typedef struct HmsWorkerSlot
{
	HmsWorkerState state;
	HmsWorkerEnd end;			/* meaningful in HMS_WORKER_EXITED */
	bool		stop;			/* asked to leave */
	int			pid;			/* 0 unless it runs */
	struct PGPROC *proc;		/* NULL unless it runs */
	uint64		generation;		/* of the latest start; a process of an older
								 * one leaves */
	int			failures;		/* in a row */
	TimestampTz started_at;
	TimestampTz restart_at;		/* no start before */
} HmsWorkerSlot;

/* Tables that the housekeeper vacuums. */
#define HMS_VACUUM_TABLES	4

typedef struct HmsDatabaseSlot
{
	Oid			dboid;			/* InvalidOid = free */
	int			holds;			/* no worker may connect while above 0 */
	bool		installed;		/* an advancer has found the extension */
	bool		probe;			/* to be looked at */
	bool		housekeeper_wanted; /* sooner than maintenance_naptime says */
	uint32		vacuum_horizon[HMS_VACUUM_TABLES];	/* xid horizon of the
													 * latest vacuum */
	HmsWorkerSlot workers[HMS_WORKER_KINDS];
} HmsDatabaseSlot;

/* Copy the slot of a database; false when it has none. */
extern bool hms_slot_of_database(Oid dboid, HmsDatabaseSlot *copy);

/* pid of the launcher, 0 when none runs; *starved: background worker slots ran out. */
extern int	hms_launcher_pid(bool *starved);

/* --- for shmem.c ------------------------------------------------------------ */

extern Size hms_slots_size(void);
extern void hms_slots_init(void *memory, bool found);

/* --- for the workers ---------------------------------------------------------- */

/* Names one start of a worker; travels in bgw_extra. */
typedef struct HmsWorkerTicket
{
	int			index;
	HmsWorkerKind kind;
	Oid			dboid;
	uint64		generation;
} HmsWorkerTicket;

/*
 * Occupy the slot before connecting; false: leave with proc_exit(0).  An exit
 * callback gives the slot back after the process has left the list of backends.
 */
extern bool hms_worker_attach(const HmsWorkerTicket *ticket);

/* True when the worker was asked to leave: proc_exit(0) between two tasks. */
extern bool hms_worker_stop_asked(void);

/* The extension is here; 'ready': an advancer takes requests. */
extern void hms_worker_installed(bool ready);

/* The extension is not here: call before proc_exit(0). */
extern void hms_worker_no_extension(void);
extern uint32 hms_worker_vacuum_horizon(int table);
extern void hms_worker_set_vacuum_horizon(int table, uint32 horizon);

/* --- for the launcher --------------------------------------------------------- */

/* Become the launcher: voids starts of a previous one, stops its workers, registers an exit callback. */
extern void hms_launcher_attach(void);

/* True once after databases may have vanished. */
extern bool hms_launcher_take_rescan(void);
extern void hms_launcher_set_starved(bool starved);

extern int	hms_slot_count(void);

/* Copy a slot; false when it is free. */
extern bool hms_slot_copy(int index, HmsDatabaseSlot *copy);

/* STOPPED -> STARTING; false when held or not stopped. */
extern bool hms_slot_start(int index, HmsWorkerKind kind, TimestampTz now, HmsWorkerTicket *ticket);

/* STARTING -> STOPPED: there was no room for the process. */
extern void hms_slot_not_started(const HmsWorkerTicket *ticket, TimestampTz restart_at);

/* STARTING -> EXITED (failed) unless the worker has attached. */
extern void hms_slot_never_attached(const HmsWorkerTicket *ticket);

/* EXITED -> STOPPED. */
extern void hms_slot_stopped(int index, HmsWorkerKind kind, int failures, TimestampTz restart_at);

/* Ask a running worker to leave. */
extern void hms_slot_stop(int index, HmsWorkerKind kind);

/* The database has no extension; frees the slot when nothing runs and nobody holds it or asked for it. */
extern void hms_slot_forget(int index);

/* Mark a database to be looked at; false when there is no room. */
extern bool hms_slot_probe(Oid dboid);

#endif							/* HMS_SHMEM_SLOTS_H */
