/*-------------------------------------------------------------------------
 *
 * hotmesh_stream.c
 *	  Loading of the library.
 *
 * The settings exist in every backend that loads the library.  Hooks, shared
 * memory and the launcher exist only when the server has preloaded it; without
 * them the functions that need shared memory raise 55000.  During pg_upgrade
 * nothing is done at all, so that no worker touches a half-built cluster.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"

#include "debug/debug_point.h"
#include "api/short_path.h"
#include "guc.h"
#include "hms.h"
#include "hooks/utility.h"
#include "hooks/xact.h"
#include "shmem/shmem.h"
#include "worker/launcher.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	if (IsBinaryUpgrade)
		return;

	hms_define_gucs();
#ifdef HMS_DEBUG_POINTS
	hms_debug_define_gucs();
#endif
	MarkGUCPrefixReserved(HMS_EXTENSION);

	if (!process_shared_preload_libraries_in_progress)
		return;

	hms_shmem_install_hooks();
	hms_xact_install_hooks();
	hms_utility_install_hooks();
	hms_short_path_install_hook();
	hms_launcher_register();
}
