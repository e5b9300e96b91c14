/*-------------------------------------------------------------------------
 *
 * xact.c
 *	  Our transaction callbacks.
 *
 * They run in every backend for every transaction and only tell shmem/
 * effects.c where in its life the transaction is.  XACT_EVENT_COMMIT and
 * XACT_EVENT_ABORT come when others see the transaction as ended
 * (ProcArrayEndTransaction) and before its locks are released.  Nothing may
 * fail in XACT_EVENT_COMMIT, that would be a PANIC.
 *
 * Parallel workers have no effects of their own: all our functions are
 * parallel unsafe.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/resowner.h"

#include "hooks/xact.h"
#include "shmem/effects.h"

static void
on_xact_event(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			hms_effects_pre_commit();
			break;
		case XACT_EVENT_PRE_PREPARE:
			hms_effects_pre_prepare();
			break;
		case XACT_EVENT_COMMIT:
			hms_effects_at_commit();
			break;
		case XACT_EVENT_ABORT:
			hms_effects_at_abort();
			break;
		case XACT_EVENT_PREPARE:
			hms_effects_at_prepare();
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			break;
	}
}

static void
on_subxact_event(SubXactEvent event, SubTransactionId mySubid,
				 SubTransactionId parentSubid, void *arg)
{
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		hms_effects_at_subcommit(GetCurrentTransactionNestLevel());
	else if (event == SUBXACT_EVENT_ABORT_SUB)
		hms_effects_at_subabort(GetCurrentTransactionNestLevel());
}

/* Runs for every resource owner; the first after a top-level commit's locks counts. */
static void
on_resource_release(ResourceReleasePhase phase, bool isCommit, bool isTopLevel, void *arg)
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && isCommit && isTopLevel)
		hms_effects_after_locks();
}

/*
 * hms_xact_install_hooks
 *		Register the callbacks, once per server or session.
 */
void
hms_xact_install_hooks(void)
{
	RegisterXactCallback(on_xact_event, NULL);
	RegisterSubXactCallback(on_subxact_event, NULL);
	RegisterResourceReleaseCallback(on_resource_release, NULL);
}
