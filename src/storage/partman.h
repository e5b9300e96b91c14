/*-------------------------------------------------------------------------
 *
 * partman.h
 *	  DDL on logs: creating, extending, healing and dropping; the only user of
 *	  pg_partman and of SPI.
 *
 * Everything runs as the extension's owner under SECURITY_RESTRICTED_OPERATION,
 * with TimeZone = UTC and a pinned search_path, restored afterwards.  Functions
 * that return bool wait at most HMS_DDL_LOCK_TIMEOUT_MS for each lock and return
 * false when one could not be had (nothing changed: they use an internal
 * subtransaction); other errors are raised.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_PARTMAN_H
#define HMS_STORAGE_PARTMAN_H

#include "hms.h"
#include "utils/timestamp.h"

/*
 * Create hotmesh_stream_data.log_<id> (typed table, partitioned), its two
 * indexes, its template and its first partitions: one before now, now, and
 * premake ahead.  Works inside any transaction, but not inside CREATE
 * EXTENSION (0A000): the log must never be a member of an extension.
 */
extern void hms_partman_create_log(int32 namespace_id, const Interval *partition_interval,
								   int premake, TimestampTz now);

/*
 * Who may run code of their own as the extension's owner, because pg_partman or
 * its schema is theirs: a palloc'd sentence, NULL if nobody.  hms_partman_create_log()
 * refuses then, with 42501.
 */
extern char *hms_partman_distrust(void);

/* Drop a log with its template and part_config row.  Waits for locks as DROP TABLE does. */
extern void hms_partman_drop_log(int32 namespace_id);

/*
 * Bounds [lower, upper) of the partition of the given width that 'at' belongs
 * to.  Cut in UTC: months from January of the year 0, everything else from a
 * Monday, so partitions always join, whatever was missed in between.  A width
 * of months has no days or time.
 */
extern void hms_partman_bounds(const Interval *width, TimestampTz at,
							   TimestampTz *lower, TimestampTz *upper);

/*
 * Make sure that the partition 'at' belongs to exists, and move the rows of
 * its range out of the default partition into it; *moved = rows.  Rows that
 * others have not committed yet stay behind, for the next call.
 */
extern bool hms_partman_heal_partition(int32 namespace_id, const Interval *width,
									   TimestampTz at, int64 *moved);

/* The oldest published_at in the default partition; false when that is empty. */
extern bool hms_partman_default_oldest(Oid default_relid, TimestampTz *oldest);

/* Rows of the default partition, estimated above 10,000. */
extern int64 hms_partman_default_rows(Oid default_relid);

/* AccessExclusiveLock on a leaf, kept until end of transaction; false also when it is gone. */
extern bool hms_partman_lock_leaf(Oid leaf_relid);

/* Drop a leaf locked so. */
extern bool hms_partman_drop_locked_leaf(Oid leaf_relid);

/* Delete part_config rows of logs that no longer exist (after DROP EXTENSION / SCHEMA / OWNED). */
extern void hms_partman_forget_missing_logs(void);

/* Tell pg_partman how many partitions we keep ahead; it does not act on it. */
extern void hms_partman_set_premake(int32 namespace_id, int premake);

/*
 * Transaction control of our procedures.  begin raises 2D000 when the CALL
 * stands in an atomic context.  commit ends the transaction and starts the
 * next one, which has no snapshot until something needs one:
 * hms_procedure_snapshot() gives the portal one again.
 */
extern void hms_procedure_begin(bool nonatomic);
extern void hms_procedure_commit(void);
extern void hms_procedure_snapshot(void);
extern void hms_procedure_end(void);

#endif							/* HMS_STORAGE_PARTMAN_H */
