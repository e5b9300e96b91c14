/*-------------------------------------------------------------------------
 *
 * shmem.c
 *	  Requests and attaches our shared memory.
 *
 * Each module of this folder owns one item: how much memory it needs and how
 * to set it up.  The postmaster runs both hooks at start and again after a
 * crash, with memory that was found = false; so every item starts from
 * nothing.  An item's init function also keeps the pointer for the process,
 * and backends inherit it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "hms.h"
#include "shmem/counters.h"
#include "shmem/group_slot.h"
#include "shmem/hint.h"
#include "shmem/log_slot.h"
#include "shmem/shmem.h"
#include "shmem/slots.h"
#include "shmem/wakeup.h"

typedef struct HmsShmemItem
{
	const char *name;
	Size		(*size) (void);
	void		(*init) (void *ptr, bool found);
	void		(*forget_database) (Oid dboid); /* NULL: nothing per database */
} HmsShmemItem;

static const HmsShmemItem items[] = {
	{"hotmesh_stream hints", hms_hint_size, hms_hint_init, hms_hint_forget_database},
	{"hotmesh_stream groups", hms_group_slot_size, hms_group_slot_init, hms_group_slot_forget_database},
	{"hotmesh_stream waiters", hms_wait_size, hms_wait_init, NULL},
	{"hotmesh_stream logs", hms_log_slot_size, hms_log_slot_init, hms_log_slot_forget_database},
	{"hotmesh_stream counters", hms_counters_size, hms_counters_init, hms_counters_forget_database},
	{"hotmesh_stream consumers", hms_presence_size, hms_presence_init, hms_presence_forget_database},
	{"hotmesh_stream workers", hms_slots_size, hms_slots_init, NULL},
};

static bool attached = false;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void
shmem_request(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	for (int i = 0; i < lengthof(items); i++)
		RequestAddinShmemSpace(items[i].size());
}

static void
shmem_startup(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (int i = 0; i < lengthof(items); i++)
	{
		bool		found;
		void	   *ptr = ShmemInitStruct(items[i].name, items[i].size(), &found);

		items[i].init(ptr, found);
	}
	LWLockRelease(AddinShmemInitLock);

	attached = true;
}

/*
 * hms_shmem_install_hooks
 *		Have our shared memory requested and attached.
 *
 * Does nothing when the library was not preloaded, as it is then too late,
 * and in the servers that pg_upgrade starts.
 */
void
hms_shmem_install_hooks(void)
{
	if (!process_shared_preload_libraries_in_progress || IsBinaryUpgrade)
		return;

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = shmem_request;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
}

/*
 * hms_shmem_ready
 *		True once the shared memory of this server is attached.
 */
bool
hms_shmem_ready(void)
{
	return attached;
}

/*
 * hms_shmem_require
 *		Raise object_not_in_prerequisite_state unless we were preloaded.
 */
void
hms_shmem_require(void)
{
	if (attached)
		return;

	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("%s is not loaded via \"%s\"", HMS_EXTENSION, "shared_preload_libraries"),
			 errhint("Add %s to \"%s\" and restart the server.",
					 HMS_EXTENSION, "shared_preload_libraries")));
}

/*
 * hms_shmem_forget_database
 *		Forget what shared memory holds about a database.
 *
 * What is in use by a backend at this moment stays until it is idle.
 */
void
hms_shmem_forget_database(Oid dboid)
{
	if (!attached)
		return;

	for (int i = 0; i < lengthof(items); i++)
	{
		if (items[i].forget_database)
			items[i].forget_database(dboid);
	}
}

/*
 * hms_shmem_forget_statistics
 *		Forget the counters and consumers of a database.
 *
 * They are kept by ids that a new installation of the extension uses again;
 * everything else is kept by OIDs.
 */
void
hms_shmem_forget_statistics(Oid dboid)
{
	if (!attached)
		return;

	hms_counters_forget_database(dboid);
	hms_presence_forget_database(dboid);
}

/*
 * hms_shmem_tranche
 *		Make or look up the tranche of an item's locks and register its name.
 */
void
hms_shmem_tranche(int *tranche_id, bool found, const char *name)
{
	if (!found)
		*tranche_id = LWLockNewTrancheId();
	LWLockRegisterTranche(*tranche_id, name);
}

/*
 * hms_monotonic_us
 *		Microseconds since some moment in the past, for measuring durations.
 */
int64
hms_monotonic_us(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return (int64) INSTR_TIME_GET_MICROSEC(now);
}
