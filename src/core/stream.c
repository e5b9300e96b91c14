/*-------------------------------------------------------------------------
 *
 * stream.c
 *	  Creating, changing and dropping streams.
 *
 * A stream is one row; its messages lie in the log of its namespace.  Changes
 * of a stream hold the lock of its name exclusively, changes of its groups
 * and grants hold it shared, both until end of transaction.  Publishers and
 * readers take neither: they meet a change at their next lookup.
 *
 * Dropping deletes the rows of the stream, its groups and its grants.  What
 * lies in the log, and what open publishers still commit, is out of reach
 * from then on, because ids are never used twice, and leaves with its partitions;
 * cursors and deliveries are cleared by the housekeeper.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/builtins.h"

#include "core/config_json.h"
#include "core/duration.h"
#include "core/namespace.h"
#include "core/rows.h"
#include "core/stream.h"
#include "core/throttle.h"
#include "debug/debug_point.h"
#include "shmem/counters.h"
#include "shmem/effects.h"
#include "storage/config.h"
#include "storage/relset.h"
#include "storage/scan.h"
#include "storage/sequence.h"

enum
{
	KEY_MAX_MESSAGE_BYTES,
	KEY_MAX_PRIORITY,
	KEY_DELAY,
	KEY_NAMESPACE,
	KEY_STREAM,
	NKEYS
};

static const HmsConfigKey stream_keys[] = {
	[KEY_MAX_MESSAGE_BYTES] = {"max_message_bytes", HMS_CONFIG_INT, false, 1, HMS_MAX_MESSAGE_BYTES},
	[KEY_MAX_PRIORITY] = {"max_priority", HMS_CONFIG_INT, false, 0, HMS_PRIORITY_LEVELS - 1},
	[KEY_DELAY] = {"delay", HMS_CONFIG_DURATION, false},
	[KEY_NAMESPACE] = {"namespace", HMS_CONFIG_FIXED},
	[KEY_STREAM] = {"stream", HMS_CONFIG_FIXED}
};

static void
refuse_mismatch(const HmsStream *stream, const char *option, const char *has, const char *asked)
{
	hms_config_mismatch("stream", stream->name, "alter_stream", option, has, asked);
}

/* Raise HMS_ERRCODE_CONFIG_MISMATCH unless an existing stream has these options. */
static void
require_same(const HmsStream *stream, const HmsStreamOptions *options)
{
	HmsNamespace ns;

	if (!hms_namespace_by_id(stream->namespace_id, &ns))
		elog(ERROR, "namespace %d of stream \"%s\" is missing",
			 stream->namespace_id, stream->name);
	if (strcmp(ns.name, options->namespace_name) != 0)
		refuse_mismatch(stream, "namespace", psprintf("\"%s\"", ns.name),
						psprintf("\"%s\"", options->namespace_name));
	if (stream->max_message_bytes != options->max_message_bytes)
		refuse_mismatch(stream, "max_message_bytes",
						psprintf("%d", stream->max_message_bytes),
						psprintf("%d", options->max_message_bytes));
	if (stream->levels != options->max_priority + 1)
		refuse_mismatch(stream, "max_priority", psprintf("%d", stream->levels - 1),
						psprintf("%d", options->max_priority));
	if (stream->delay_us != options->delay_us)
		refuse_mismatch(stream, "delay", hms_duration_text(stream->delay_us),
						hms_duration_text(options->delay_us));
}

/*
 * Find or create the namespace and keep it from being dropped until end of transaction.
 * The shared lock comes last: two sessions that both held it could not create.
 */
static int32
hold_namespace(const char *name)
{
	HmsNamespace ns;

	hms_namespace_ensure(name);
	hms_config_lock_shared(hms_relset()->namespace_rel, name);
	if (!hms_namespace_find(name, &ns))
		ereport(ERROR,
				(errcode(HMS_ERRCODE_UNKNOWN_NAMESPACE),
				 errmsg("namespace \"%s\" does not exist", name),
				 errdetail("It was dropped by a concurrent transaction.")));
	return ns.namespace_id;
}

static int32
insert_stream(const HmsStreamOptions *options, int32 namespace_id)
{
	int32		stream_id = (int32) hms_sequence_next(hms_relset()->stream_id_seq);
	Datum		values[HMS_STREAM_NCOLUMNS];
	bool		nulls[HMS_STREAM_NCOLUMNS] = {false};
	Interval	delay;

	hms_duration_interval(options->delay_us, &delay);
	values[HMS_STREAM_COL_ID - 1] = Int32GetDatum(stream_id);
	values[HMS_STREAM_COL_NAMESPACE_ID - 1] = Int32GetDatum(namespace_id);
	values[HMS_STREAM_COL_NAME - 1] = CStringGetTextDatum(options->name);
	values[HMS_STREAM_COL_MAX_MESSAGE_BYTES - 1] = Int32GetDatum(options->max_message_bytes);
	values[HMS_STREAM_COL_MAX_PRIORITY - 1] = Int32GetDatum(options->max_priority);
	values[HMS_STREAM_COL_DELAY - 1] = IntervalPGetDatum(&delay);
	values[HMS_STREAM_COL_CREATED_AT - 1] = TimestampTzGetDatum(HMS_NOW());
	hms_config_insert(hms_relset()->stream_rel, values, nulls);
	return stream_id;
}

/*
 * hms_stream_create
 *		Create a stream; false when it exists with these options.
 *
 * The usual case of a stream that exists takes no lock and writes nothing.
 */
bool
hms_stream_create(const HmsStreamOptions *options)
{
	HmsStream	stream;
	bool		exists;

	hms_privilege_check(HMS_PRIV_MANAGE, 0, NULL);

	exists = hms_stream_find(options->name, &stream);
	if (!exists)
	{
		hms_config_lock(hms_relset()->stream_rel, options->name);
		exists = hms_stream_find(options->name, &stream);
	}
	if (exists)
	{
		require_same(&stream, options);
		return false;
	}
	hms_privilege_grant_creator(insert_stream(options, hold_namespace(options->namespace_name)));
	return true;
}

/*
 * Lock a stream's name and find it by it; false when it does not exist.  The
 * privilege is checked before, so that nobody locks what is not theirs, and
 * again after: the name may have got another stream meanwhile.
 */
static bool
lock_stream(const char *name, bool exclusive, HmsPrivilege privilege, HmsStream *out)
{
	if (!hms_stream_find(name, out))
		return false;
	hms_privilege_check(privilege, out->stream_id, name);
	if (exclusive)
		hms_config_lock(hms_relset()->stream_rel, name);
	else
		hms_config_lock_shared(hms_relset()->stream_rel, name);
	if (!hms_stream_find(name, out))
		return false;
	hms_privilege_check(privilege, out->stream_id, name);
	return true;
}

/*
 * hms_stream_hold
 *		The stream, checked for a privilege and kept until end of transaction.
 */
void
hms_stream_hold(const char *name, HmsPrivilege privilege, HmsStream *out)
{
	/* Raises, unless the stream was created this instant. */
	while (!lock_stream(name, false, privilege, out))
		hms_stream_by_name(name, out);
}

static HeapTuple
find_row(int32 stream_id)
{
	const HmsRelset *rels = hms_relset();
	ScanKeyData key;
	HeapTuple	tuple;

	hms_key_int4(&key, 1, BTEqualStrategyNumber, stream_id);
	tuple = hms_config_find(rels->stream_rel, rels->stream_pkey, 1, &key);
	if (tuple == NULL)
		elog(ERROR, "stream %d has no row", stream_id);
	return tuple;
}

/* Messages above a lowered limit would never be read. */
static void
refuse_lower_priority(const HmsStream *stream, int max_priority)
{
	if (max_priority < stream->levels - 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"max_priority\" of stream \"%s\" cannot be lowered from %d to %d",
						stream->name, stream->levels - 1, max_priority)));
}

/*
 * hms_stream_alter
 *		Change the options that a configuration object names; all or none.
 */
void
hms_stream_alter(const char *name, Jsonb *config)
{
	HmsConfigValue given[NKEYS];
	Datum		values[HMS_STREAM_NCOLUMNS] = {0};
	bool		nulls[HMS_STREAM_NCOLUMNS] = {false};
	bool		replace[HMS_STREAM_NCOLUMNS] = {false};
	HmsStream	stream;

	while (!lock_stream(name, true, HMS_PRIV_MANAGE, &stream))
		hms_stream_by_name(name, &stream);
	hms_config_json_parse(config, stream_keys, NKEYS, given);

	replace[HMS_STREAM_COL_MAX_MESSAGE_BYTES - 1] = given[KEY_MAX_MESSAGE_BYTES].given;
	values[HMS_STREAM_COL_MAX_MESSAGE_BYTES - 1] =
		Int32GetDatum(given[KEY_MAX_MESSAGE_BYTES].integer);
	if (given[KEY_MAX_PRIORITY].given)
		refuse_lower_priority(&stream, given[KEY_MAX_PRIORITY].integer);
	replace[HMS_STREAM_COL_MAX_PRIORITY - 1] = given[KEY_MAX_PRIORITY].given;
	values[HMS_STREAM_COL_MAX_PRIORITY - 1] = Int32GetDatum(given[KEY_MAX_PRIORITY].integer);
	replace[HMS_STREAM_COL_DELAY - 1] = given[KEY_DELAY].given;
	values[HMS_STREAM_COL_DELAY - 1] = IntervalPGetDatum(&given[KEY_DELAY].interval);
	hms_config_update(hms_relset()->stream_rel, find_row(stream.stream_id),
					  values, nulls, replace);
}

static void
delete_groups(int32 stream_id)
{
	const HmsRelset *rels = hms_relset();
	HmsGroup   *groups;
	int			ngroups = hms_list_groups(stream_id, &groups);
	ScanKeyData key;

	for (int i = 0; i < ngroups; i++)
	{
		hms_counters_forget_group(MyDatabaseId, groups[i].group_id);
		hms_throttle_forget_group(&groups[i]);
	}
	hms_key_int4(&key, 1, BTEqualStrategyNumber, stream_id);
	(void) hms_config_delete_all(rels->group_rel, rels->group_name_key, 1, &key);
}

/*
 * hms_stream_drop
 *		Drop a stream with its groups and grants; false when there is none.
 *
 * Its counters go at once, and do not come back if the transaction fails.
 */
bool
hms_stream_drop(const char *name)
{
	HmsStream	stream;

	if (!lock_stream(name, true, HMS_PRIV_MANAGE, &stream))
		return false;

	delete_groups(stream.stream_id);
	hms_privilege_forget_stream(stream.stream_id);
	hms_config_delete(hms_relset()->stream_rel, find_row(stream.stream_id));
	hms_counters_forget_stream(MyDatabaseId, stream.stream_id);
	hms_effects_wake_all(stream.stream_id, 0);
	return true;
}
