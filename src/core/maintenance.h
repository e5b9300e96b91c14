/*-------------------------------------------------------------------------
 *
 * maintenance.h
 *	  One run of all maintenance tasks, step by step; and what else the workers
 *	  must know about the extension in their database.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_MAINTENANCE_H
#define HMS_CORE_MAINTENANCE_H

#include "hms.h"

typedef struct HmsMaintenance HmsMaintenance;

/* Begin a run: lists namespaces and groups; the result lives in 'context'. */
extern HmsMaintenance *hms_maintenance_begin(MemoryContext context);

/* False at the end of the run. */
extern bool hms_maintenance_more(HmsMaintenance *run);

/* What the next step does; valid until that step. */
extern const char *hms_maintenance_describe(HmsMaintenance *run);

/* Do the next step in the caller's transaction; commit after each. */
extern void hms_maintenance_step(HmsMaintenance *run);

/* The step raised an error: go on with the next object or task. */
extern void hms_maintenance_skip(HmsMaintenance *run);

/* A whole run for a CALL, committing after each step; raises 2D000 unless nonatomic. */
extern void hms_maintain(bool nonatomic);

/* Owner of the extension, InvalidOid when it is not installed in this database. */
extern Oid	hms_extension_owner(void);

/* The tables that need vacuum often; fills HMS_VACUUM_TABLES entries. */
extern void hms_hot_tables(Oid *relids);

#endif							/* HMS_CORE_MAINTENANCE_H */
