/*-------------------------------------------------------------------------
 *
 * group.c
 *	  Creating, changing and dropping consumer groups.
 *
 * A group is one row of configuration and one cursor, found by the group's
 * incarnation.  Changes hold the stream's name shared and the group's own
 * lock exclusively until end of transaction, so that groups of one stream do not
 * wait for each other but a stream is never dropped under a new group.
 *
 * Dropping deletes the row and with it the incarnation: every receipt is void
 * at once, and the housekeeper clears the cursor, the deliveries and the
 * dead letters later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "core/config_json.h"
#include "core/cursor.h"
#include "core/duration.h"
#include "core/group.h"
#include "core/rows.h"
#include "core/stream.h"
#include "core/throttle.h"
#include "debug/debug_point.h"
#include "shmem/effects.h"
#include "storage/config.h"
#include "storage/relset.h"
#include "storage/scan.h"
#include "storage/sequence.h"

enum
{
	KEY_ACK_WAIT,
	KEY_MAX_DELIVER,
	KEY_BACKOFF,
	KEY_DEAD_LETTER_RETENTION,
	KEY_DELIVER_POLICY,
	KEY_START_ID,
	KEY_STREAM,
	KEY_CONSUMER_GROUP,
	NKEYS
};

static const HmsConfigKey group_keys[] = {
	[KEY_ACK_WAIT] = {"ack_wait", HMS_CONFIG_DURATION, false},
	[KEY_MAX_DELIVER] = {"max_deliver", HMS_CONFIG_INT, true, 1, PG_INT32_MAX},
	[KEY_BACKOFF] = {"backoff", HMS_CONFIG_DURATIONS, true},
	[KEY_DEAD_LETTER_RETENTION] = {"dead_letter_retention", HMS_CONFIG_DURATION, false},
	[KEY_DELIVER_POLICY] = {"deliver_policy", HMS_CONFIG_FIXED},
	[KEY_START_ID] = {"start_id", HMS_CONFIG_FIXED},
	[KEY_STREAM] = {"stream", HMS_CONFIG_FIXED},
	[KEY_CONSUMER_GROUP] = {"consumer_group", HMS_CONFIG_FIXED}
};

/* --- rules ------------------------------------------------------------------ */

/* Raise 22023 when options that are right one by one do not fit together. */
static void
check_options(const HmsGroupOptions *options)
{
	if (options->ack_wait_us <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"ack_wait\" of consumer group \"%s\" must be greater than zero",
						options->name)));
	if (options->max_deliver > 0 && options->nbackoff > options->max_deliver)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"backoff\" of consumer group \"%s\" has %d entries, but \"max_deliver\" is %d",
						options->name, options->nbackoff, options->max_deliver),
				 errhint("There is at most one pause per delivery.")));
}

static bool
same_backoff(const HmsGroup *group, const HmsGroupOptions *options)
{
	return group->nbackoff == options->nbackoff &&
		memcmp(group->backoff_us, options->backoff_us, group->nbackoff * sizeof(int64)) == 0;
}

static char *
limit_text(int32 max_deliver)
{
	return max_deliver == 0 ? pstrdup("null") : psprintf("%d", max_deliver);
}

static char *
backoff_text(int n, const int64 *backoff_us)
{
	StringInfoData text;

	if (n == 0)
		return pstrdup("null");
	initStringInfo(&text);
	for (int i = 0; i < n; i++)
		appendStringInfo(&text, "%s%s", i > 0 ? ", " : "{", hms_duration_text(backoff_us[i]));
	appendStringInfoChar(&text, '}');
	return text.data;
}

static void
refuse_mismatch(const HmsGroup *group, const char *option, const char *has, const char *asked)
{
	hms_config_mismatch("consumer group", group->name, "alter_group", option, has, asked);
}

/* Raise HMS_ERRCODE_CONFIG_MISMATCH unless an existing group has these options. */
static void
require_same(const HmsGroup *group, const HmsGroupOptions *options)
{
	if (group->deliver_policy != options->deliver_policy)
		refuse_mismatch(group, "deliver_policy",
						psprintf("\"%s\"", hms_deliver_policy_word(group->deliver_policy)),
						psprintf("\"%s\"", hms_deliver_policy_word(options->deliver_policy)));
	if (group->ack_wait_us != options->ack_wait_us)
		refuse_mismatch(group, "ack_wait", hms_duration_text(group->ack_wait_us),
						hms_duration_text(options->ack_wait_us));
	if (group->max_deliver != options->max_deliver)
		refuse_mismatch(group, "max_deliver", limit_text(group->max_deliver),
						limit_text(options->max_deliver));
	if (!same_backoff(group, options))
		refuse_mismatch(group, "backoff", backoff_text(group->nbackoff, group->backoff_us),
						backoff_text(options->nbackoff, options->backoff_us));
	if (group->dead_letter_retention_us != options->dead_letter_retention_us)
		refuse_mismatch(group, "dead_letter_retention",
						hms_duration_text(group->dead_letter_retention_us),
						hms_duration_text(options->dead_letter_retention_us));
}

/* --- rows ------------------------------------------------------------------- */

static void
lock_group(int32 stream_id, const char *name)
{
	char	   *key = psprintf("%d/%s", stream_id, name);

	hms_config_lock(hms_relset()->group_rel, key);
	pfree(key);
}

static Datum
duration_datum(int64 us)
{
	Interval   *interval = palloc(sizeof(Interval));

	hms_duration_interval(us, interval);
	return IntervalPGetDatum(interval);
}

static Datum
backoff_datum(int n, const int64 *backoff_us)
{
	Datum		elements[HMS_MAX_BACKOFF];

	for (int i = 0; i < n; i++)
		elements[i] = duration_datum(backoff_us[i]);
	return PointerGetDatum(construct_array(elements, n, INTERVALOID, sizeof(Interval),
										   false, TYPALIGN_DOUBLE));
}

/* The columns that alter_group() can change, and error_stream. */
static void
form_options(const HmsGroupOptions *options, Datum *values, bool *nulls)
{
	values[HMS_GROUP_COL_ACK_WAIT - 1] = duration_datum(options->ack_wait_us);
	values[HMS_GROUP_COL_DEAD_LETTER_RETENTION - 1] =
		duration_datum(options->dead_letter_retention_us);
	nulls[HMS_GROUP_COL_MAX_DELIVER - 1] = (options->max_deliver == 0);
	values[HMS_GROUP_COL_MAX_DELIVER - 1] = Int32GetDatum(options->max_deliver);
	nulls[HMS_GROUP_COL_ERROR_STREAM - 1] = options->error_stream == NULL;
	if (options->error_stream != NULL)
		values[HMS_GROUP_COL_ERROR_STREAM - 1] = CStringGetTextDatum(options->error_stream);
	nulls[HMS_GROUP_COL_BACKOFF - 1] = (options->nbackoff == 0);
	if (options->nbackoff > 0)
		values[HMS_GROUP_COL_BACKOFF - 1] =
			backoff_datum(options->nbackoff, options->backoff_us);
}

static void
insert_group(const HmsStream *stream, const HmsGroupOptions *options)
{
	const HmsRelset *rels = hms_relset();
	int32		group_id = (int32) hms_sequence_next(rels->group_id_seq);
	int64		incarnation = hms_sequence_next(rels->incarnation_seq);
	int64		start_id = hms_cursor_create(stream, incarnation,
											 options->deliver_policy == HMS_DELIVER_NEW);
	Datum		values[HMS_GROUP_NCOLUMNS] = {0};
	bool		nulls[HMS_GROUP_NCOLUMNS] = {false};

	form_options(options, values, nulls);
	values[HMS_GROUP_COL_ID - 1] = Int32GetDatum(group_id);
	values[HMS_GROUP_COL_STREAM_ID - 1] = Int32GetDatum(stream->stream_id);
	values[HMS_GROUP_COL_NAME - 1] = CStringGetTextDatum(options->name);
	values[HMS_GROUP_COL_INCARNATION - 1] = Int64GetDatum(incarnation);
	values[HMS_GROUP_COL_DELIVER_POLICY - 1] =
		CStringGetTextDatum(hms_deliver_policy_word(options->deliver_policy));
	nulls[HMS_GROUP_COL_DEFAULT_BATCH - 1] = true;
	nulls[HMS_GROUP_COL_DEFAULT_WAIT - 1] = true;
	values[HMS_GROUP_COL_START_ID - 1] = Int64GetDatum(start_id);
	values[HMS_GROUP_COL_CREATED_AT - 1] = TimestampTzGetDatum(HMS_NOW());
	hms_config_insert(hms_relset()->group_rel, values, nulls);
}

static HeapTuple
find_row(int32 group_id)
{
	const HmsRelset *rels = hms_relset();
	ScanKeyData key;
	HeapTuple	tuple;

	hms_key_int4(&key, 1, BTEqualStrategyNumber, group_id);
	tuple = hms_config_find(rels->group_rel, rels->group_pkey, 1, &key);
	if (tuple == NULL)
		elog(ERROR, "consumer group %d has no row", group_id);
	return tuple;
}

/* --- changes ---------------------------------------------------------------- */

/*
 * hms_group_create
 *		Create a group; false when it exists with these options.
 *
 * The usual case of a group that exists takes no lock and writes nothing.
 */
bool
hms_group_create(const char *stream_name, const HmsGroupOptions *options)
{
	HmsStream	stream;
	HmsGroup	group;
	bool		exists;

	check_options(options);
	hms_stream_by_name(stream_name, &stream);
	hms_privilege_check(HMS_PRIV_CONSUME, stream.stream_id, stream.name);

	exists = hms_group_find(stream.stream_id, options->name, &group);
	if (!exists)
	{
		hms_stream_hold(stream_name, HMS_PRIV_CONSUME, &stream);
		lock_group(stream.stream_id, options->name);
		exists = hms_group_find(stream.stream_id, options->name, &group);
	}
	if (exists)
	{
		require_same(&group, options);
		return false;
	}
	insert_group(&stream, options);
	return true;
}

/* The options of a group after a change. */
static void
merge_options(const HmsGroup *group, const HmsConfigValue *given, HmsGroupOptions *out)
{
	memset(out, 0, sizeof(*out));
	out->name = group->name;
	out->deliver_policy = group->deliver_policy;
	out->ack_wait_us = given[KEY_ACK_WAIT].given ?
		given[KEY_ACK_WAIT].duration_us : group->ack_wait_us;
	out->max_deliver = given[KEY_MAX_DELIVER].given ?
		given[KEY_MAX_DELIVER].integer : group->max_deliver;
	out->dead_letter_retention_us = given[KEY_DEAD_LETTER_RETENTION].given ?
		given[KEY_DEAD_LETTER_RETENTION].duration_us : group->dead_letter_retention_us;

	if (given[KEY_BACKOFF].given)
	{
		out->nbackoff = given[KEY_BACKOFF].ndurations;
		memcpy(out->backoff_us, given[KEY_BACKOFF].durations_us, sizeof(out->backoff_us));
	}
	else
	{
		out->nbackoff = group->nbackoff;
		memcpy(out->backoff_us, group->backoff_us, sizeof(out->backoff_us));
	}
}

/*
 * hms_group_alter
 *		Change the options that a configuration object names; all or none.
 */
void
hms_group_alter(const char *stream_name, const char *name, Jsonb *config)
{
	HmsConfigValue given[NKEYS];
	HmsGroupOptions options;
	Datum		values[HMS_GROUP_NCOLUMNS] = {0};
	bool		nulls[HMS_GROUP_NCOLUMNS] = {false};
	bool		replace[HMS_GROUP_NCOLUMNS] = {false};
	HmsStream	stream;
	HmsGroup	group;

	hms_stream_hold(stream_name, HMS_PRIV_CONSUME, &stream);
	lock_group(stream.stream_id, name);
	hms_group_by_name(&stream, name, &group);

	hms_config_json_parse(config, group_keys, NKEYS, given);
	merge_options(&group, given, &options);
	check_options(&options);

	form_options(&options, values, nulls);
	replace[HMS_GROUP_COL_ACK_WAIT - 1] = true;
	replace[HMS_GROUP_COL_MAX_DELIVER - 1] = true;
	replace[HMS_GROUP_COL_BACKOFF - 1] = true;
	replace[HMS_GROUP_COL_DEAD_LETTER_RETENTION - 1] = true;
	hms_config_update(hms_relset()->group_rel, find_row(group.group_id),
					  values, nulls, replace);
}

/*
 * hms_group_tune
 *		Change what HotMesh's configurations say about a group.
 */
void
hms_group_tune(const HmsStream *stream, const HmsGroup *group, const HmsGroupTuning *tuning)
{
	Datum		values[HMS_GROUP_NCOLUMNS] = {0};
	bool		nulls[HMS_GROUP_NCOLUMNS] = {false};
	bool		replace[HMS_GROUP_NCOLUMNS] = {false};
	HmsStream	held;

	hms_stream_hold(stream->name, HMS_PRIV_CONSUME, &held);
	lock_group(held.stream_id, group->name);
	replace[HMS_GROUP_COL_ACK_WAIT - 1] = tuning->ack_wait_us > 0;
	values[HMS_GROUP_COL_ACK_WAIT - 1] = duration_datum(tuning->ack_wait_us);
	replace[HMS_GROUP_COL_MAX_DELIVER - 1] = tuning->max_deliver > 0;
	values[HMS_GROUP_COL_MAX_DELIVER - 1] = Int32GetDatum(tuning->max_deliver);
	replace[HMS_GROUP_COL_DEFAULT_BATCH - 1] = tuning->default_batch > 0;
	values[HMS_GROUP_COL_DEFAULT_BATCH - 1] = Int32GetDatum(tuning->default_batch);
	replace[HMS_GROUP_COL_DEFAULT_WAIT - 1] = tuning->default_wait_us >= 0;
	values[HMS_GROUP_COL_DEFAULT_WAIT - 1] = duration_datum(Max(tuning->default_wait_us, 0));
	hms_config_update(hms_relset()->group_rel, find_row(group->group_id), values, nulls, replace);
}

/*
 * hms_group_drop
 *		Drop a group; false when the stream has none of that name.
 */
bool
hms_group_drop(const char *stream_name, const char *name)
{
	HmsStream	stream;
	HmsGroup	group;

	hms_stream_hold(stream_name, HMS_PRIV_CONSUME, &stream);
	lock_group(stream.stream_id, name);
	if (!hms_group_find(stream.stream_id, name, &group))
		return false;

	hms_throttle_forget_group(&group);
	hms_config_delete(hms_relset()->group_rel, find_row(group.group_id));
	hms_effects_wake_all(0, group.incarnation);
	return true;
}
