/*-------------------------------------------------------------------------
 *
 * partman.h
 *	  DDL on logs: creating, extending, healing and dropping; the only user of
 *	  pg_partman and of SPI.
 *
 * Everything runs as the extension's owner under SECURITY_RESTRICTED_OPERATION, with
 * TimeZone = UTC, a pinned search_path and lock_timeout = HMS_DDL_LOCK_TIMEOUT_MS,
 * all restored afterwards.  Functions that return bool return false when a lock could not be had in that time (nothing
 * changed: they use an internal subtransaction); other errors are raised.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_PARTMAN_H
#define HMS_STORAGE_PARTMAN_H

#include "hms.h"
#include "utils/timestamp.h"

/*
 * Create hotmesh_stream_data.log_<id> (typed table, partitioned), its two
 * indexes, its template and its first partitions (one before now, now, premake ahead).  Works inside
 * any transaction.
 */
extern void hms_partman_create_log(int32 namespace_id, const Interval *partition_interval, int premake);

/* Drop a log with its template and part_config row.  Waits for locks as DROP TABLE does. */
extern void hms_partman_drop_log(int32 namespace_id);

/* Bounds [lower, upper) of the partition that 'at' belongs to, as pg_partman would cut it (UTC). */
extern void hms_partman_bounds(int32 namespace_id, TimestampTz at, TimestampTz *lower, TimestampTz *upper);

/* Create and attach the partition that 'at' belongs to; no rows of it may be in the default partition. */
extern bool hms_partman_add_partition(int32 namespace_id, TimestampTz at);

/* Move the rows of one partition's range out of the default partition into a new partition; *moved = rows. */
extern bool hms_partman_heal_partition(int32 namespace_id, TimestampTz at, int64 *moved);

/* published_at of the oldest row of the default partition; false when it is empty. */
extern bool hms_partman_default_oldest(int32 namespace_id, TimestampTz *oldest);

/*
 * AccessExclusiveLock on a leaf within the lock timeout, kept until end of transaction; then
 * drop it with hms_partman_drop_locked_leaf().  false: not granted.
 */
extern bool hms_partman_lock_leaf(Oid leaf_relid);
extern bool hms_partman_drop_locked_leaf(Oid leaf_relid);

/* Delete part_config rows of logs that no longer exist (after DROP EXTENSION / SCHEMA / OWNED). */
extern void hms_partman_forget_missing_logs(void);

/* premake / interval changes. */
extern void hms_partman_set_premake(int32 namespace_id, int premake);

/*
 * Commit the transaction of a non-atomic CALL and start the next one; raises
 * 2D000 when the CALL stands in an atomic context.
 */
extern void hms_procedure_begin(bool nonatomic);
extern void hms_procedure_commit(void);
extern void hms_procedure_end(void);

#endif							/* HMS_STORAGE_PARTMAN_H */
