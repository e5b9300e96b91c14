/*-------------------------------------------------------------------------
 *
 * config.h
 *	  Rows of the configuration tables: read by key, insert, replace, delete.
 *
 * Reads use the latest snapshot in any isolation level.  Changes are made under
 * hms_config_lock(), so that two sessions never meet on a unique key, and
 * invalidate every backend's caches of that table at commit.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_CONFIG_H
#define HMS_STORAGE_CONFIG_H

#include "access/htup.h"
#include "access/skey.h"
#include "utils/rel.h"

/*
 * Serialise changes of one named object until end of transaction: rel is the table, name the
 * object's name (hashed).  Waits; the deadlock detector sees it.
 */
extern void hms_config_lock(Oid rel, const char *name);

/*
 * Keep the object as it is until end of transaction: conflicts with
 * hms_config_lock() of the same object, not with itself.
 */
extern void hms_config_lock_shared(Oid rel, const char *name);

/*
 * A number that rises whenever a namespace, stream, group or privilege
 * changes.  Processes pending invalidations first; raises 55000 when the extension
 * is not installed.  Caches made under another number are void.
 */
extern uint64 hms_config_generation(void);

/*
 * The row found by index keys, copied into the current context; NULL if
 * none.  The attribute numbers in 'keys' are those of the index.
 */
extern HeapTuple hms_config_find(Oid relid, Oid index, int nkeys, ScanKey keys);

/*
 * Call 'visit' for each row (index order when index is valid, else heap
 * order), until it returns false.  The tuple is valid during the visit only.
 * With an index, the attribute numbers in 'keys' are those of the index, otherwise of the table.
 */
typedef bool (*HmsConfigVisitor) (HeapTuple tuple, TupleDesc desc, void *arg);
extern void hms_config_each(Oid relid, Oid index, int nkeys, ScanKey keys,
							HmsConfigVisitor visit, void *arg);

/* Each change is visible to what the caller does next. */
extern void hms_config_insert(Oid relid, const Datum *values, const bool *nulls);

/* Replace the columns whose 'replace' flag is set. */
extern void hms_config_update(Oid relid, HeapTuple old, const Datum *values, const bool *nulls, const bool *replace);
extern void hms_config_delete(Oid relid, HeapTuple old);

/* Delete the rows found by index keys; returns how many. */
extern int	hms_config_delete_all(Oid relid, Oid index, int nkeys, ScanKey keys);

/* Tell every backend, at commit, that this table changed. */
extern void hms_config_invalidate(Oid relid);

/* One attribute of a row, numbered as in sql/10_catalog.sql. */
extern Datum hms_config_attr(HeapTuple tuple, TupleDesc desc, int attno, bool *isnull);

#endif							/* HMS_STORAGE_CONFIG_H */
