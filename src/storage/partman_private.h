/*-------------------------------------------------------------------------
 *
 * partman_private.h
 *	  What the files of partman.h share: statements as the extension's owner,
 *	  so that SPI stays in one file, and whether pg_partman is to be trusted.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_PARTMAN_PRIVATE_H
#define HMS_STORAGE_PARTMAN_PRIVATE_H

#include "hms.h"

/* What must be put back after statements as another user. */
typedef struct HmsDdlScope
{
	Oid			user_id;
	int			sec_context;
	int			guc_level;
} HmsDdlScope;

/*
 * Become the extension's owner, with the settings at the head of partman.c;
 * with short_locks, lock_timeout is HMS_DDL_LOCK_TIMEOUT_MS.  An error before
 * the end needs no clean-up: the end of the (sub)transaction does it.
 */
extern void hms_ddl_begin(HmsDdlScope *scope, bool short_locks);
extern void hms_ddl_end(HmsDdlScope *scope);

/* Run one statement; returns rows processed. */
extern uint64 hms_ddl_run(const char *sql, int nargs, Oid *types, Datum *values);

/* The same without parameters, built as psprintf() does. */
extern uint64 hms_ddl_execute(const char *format,...) pg_attribute_printf(1, 2);

/* First column of the first row of the last statement, null when it had none; valid until hms_ddl_end(). */
extern Datum hms_ddl_value(bool *isnull);

/* Change a setting until the current GUC nest level ends. */
extern void hms_ddl_set(const char *name, const char *value);

/* Let pg_partman create the partition that begins at 'lower'; all locks are held. */
extern void hms_ddl_create_partition(int32 namespace_id, TimestampTz lower);

/*
 * A role that may create objects in a schema although it is neither superuser
 * nor the extension's owner; ACL_ID_PUBLIC for everybody.  False if there is none.
 */
extern bool hms_schema_intruder(Oid schema, Oid *intruder);

#endif							/* HMS_STORAGE_PARTMAN_PRIVATE_H */
