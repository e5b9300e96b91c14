/*-------------------------------------------------------------------------
 *
 * namespace.c
 *	  Creating, changing and dropping namespaces.
 *
 * A namespace is one row and one log.  Creating and dropping hold the lock of
 * its name exclusively until end of transaction, creating a stream in it holds
 * it shared.  The partition interval is fixed for life: bounds are computed
 * from it, and partitions of two widths would not join.
 *
 * Everything is transactional but the log's slot in shared memory, which is
 * given back when the drop is carried out; should that roll back, the slot's
 * next user loads it from the catalog.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "utils/builtins.h"

#include "core/config_json.h"
#include "core/duration.h"
#include "core/namespace.h"
#include "core/rows.h"
#include "core/sealing.h"
#include "core/stream_cache.h"
#include "core/xid.h"
#include "debug/debug_point.h"
#include "shmem/effects.h"
#include "storage/config.h"
#include "storage/partman.h"
#include "storage/relset.h"
#include "storage/route.h"
#include "storage/scan.h"
#include "storage/sequence.h"

#define MAX_WIDTH_MONTHS		1200
#define MAX_WIDTH_DAYS			36525
#define MAX_RETENTION_MONTHS	12000
#define MAX_RETENTION_DAYS		365250

static const struct
{
	const char *word;
	Interval	width;
}			width_words[] =

{
	{"hourly", {USECS_PER_HOUR, 0, 0}},
	{"daily", {0, 1, 0}},
	{"weekly", {0, 7, 0}},
	{"monthly", {0, 0, 1}}
};

enum
{
	KEY_RETENTION,
	KEY_RETENTION_HARD,
	KEY_PREMAKE,
	KEY_PARTITION_INTERVAL,
	KEY_NAMESPACE,
	NKEYS
};

static const HmsConfigKey namespace_keys[] = {
	[KEY_RETENTION] = {"retention", HMS_CONFIG_INTERVAL, true},
	[KEY_RETENTION_HARD] = {"retention_hard", HMS_CONFIG_INTERVAL, true},
	[KEY_PREMAKE] = {"premake", HMS_CONFIG_INT, false, HMS_MIN_PREMAKE, HMS_MAX_PREMAKE},
	[KEY_PARTITION_INTERVAL] = {"partition_interval", HMS_CONFIG_FIXED},
	[KEY_NAMESPACE] = {"namespace", HMS_CONFIG_FIXED}
};

/* --- checks ------------------------------------------------------------------- */

static void
refuse_argument(const char *argument, const char *must_be)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("argument \"%s\" must be %s", argument, must_be)));
}

/* A word or an interval as the width of partitions; days and hours in one form. */
static void
parse_width(const char *text, Interval *width)
{
	int64		us;

	for (int i = 0; i < lengthof(width_words); i++)
	{
		if (strcmp(text, width_words[i].word) == 0)
		{
			*width = width_words[i].width;
			return;
		}
	}

	if (!hms_config_decode_interval(text, width))
		refuse_argument("partition_interval",
						"hourly, daily, weekly, monthly or an interval");
	if (width->month != 0)
	{
		if (width->day != 0 || width->time != 0)
			refuse_argument("partition_interval",
							"either whole months or an interval without months");
		if (width->month < 0 || width->month > MAX_WIDTH_MONTHS)
			refuse_argument("partition_interval", "between one hour and 100 years");
		return;
	}

	/* Each part is bounded first, so that the sum cannot overflow. */
	if (Abs((int64) width->day) > MAX_WIDTH_DAYS ||
		width->time < -MAX_WIDTH_DAYS * USECS_PER_DAY ||
		width->time > MAX_WIDTH_DAYS * USECS_PER_DAY)
		refuse_argument("partition_interval", "between one hour and 100 years");
	us = hms_duration_us(width);
	if (us < USECS_PER_HOUR || us > MAX_WIDTH_DAYS * USECS_PER_DAY)
		refuse_argument("partition_interval", "between one hour and 100 years");
	hms_duration_interval(us, width);
}

/* A retention time: no part of it negative, not zero, and far from overflow. */
static bool
is_sane_retention(const Interval *age)
{
	return age->month >= 0 && age->month <= MAX_RETENTION_MONTHS &&
		age->day >= 0 && age->day <= MAX_RETENTION_DAYS &&
		age->time >= 0 && age->time <= MAX_RETENTION_DAYS * USECS_PER_DAY &&
		(age->month > 0 || age->day > 0 || age->time > 0);
}

static void
check_retention(const char *name, const Interval *age)
{
	if (!is_sane_retention(age))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must be a positive interval of at most 1000 years", name)));
}

static void
check_retentions(bool has_soft, const Interval *soft, bool has_hard, const Interval *hard)
{
	if (has_soft)
		check_retention("retention", soft);
	if (has_hard)
		check_retention("retention_hard", hard);
	if (has_soft && has_hard &&
		DatumGetBool(DirectFunctionCall2(interval_lt, IntervalPGetDatum(hard),
										 IntervalPGetDatum(soft))))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%s\" must not be less than \"%s\"", "retention_hard", "retention")));
}

/* --- creating ------------------------------------------------------------------- */

static char *
interval_text(bool has, const Interval *interval)
{
	if (!has)
		return pstrdup("null");
	return DatumGetCString(DirectFunctionCall1(interval_out, IntervalPGetDatum(interval)));
}

static bool
same_interval(bool has_a, const Interval *a, bool has_b, const Interval *b)
{
	if (has_a != has_b)
		return false;
	return !has_a ||
		(a->month == b->month &&
		 a->day * USECS_PER_DAY + a->time == b->day * USECS_PER_DAY + b->time);
}

static void
refuse_mismatch(const char *name, const char *option, const char *has, const char *asked)
{
	ereport(ERROR,
			(errcode(HMS_ERRCODE_CONFIG_MISMATCH),
			 errmsg("namespace \"%s\" already exists with another configuration", name),
			 errdetail("Its option \"%s\" is %s, but %s was asked for.", option, has, asked),
			 errhint("What can be changed is changed with hotmesh_stream.%s().",
					 "alter_namespace")));
}

/* Raise HMS_ERRCODE_CONFIG_MISMATCH unless the namespace has these options. */
static void
require_same(const HmsNamespace *ns, const HmsNamespaceOptions *options, const Interval *width)
{
	if (!same_interval(true, &ns->partition_interval, true, width))
		refuse_mismatch(ns->name, "partition_interval",
						interval_text(true, &ns->partition_interval),
						interval_text(true, width));
	if (!same_interval(ns->has_retention, &ns->retention,
					   options->has_retention, &options->retention))
		refuse_mismatch(ns->name, "retention",
						interval_text(ns->has_retention, &ns->retention),
						interval_text(options->has_retention, &options->retention));
	if (!same_interval(ns->has_retention_hard, &ns->retention_hard,
					   options->has_retention_hard, &options->retention_hard))
		refuse_mismatch(ns->name, "retention_hard",
						interval_text(ns->has_retention_hard, &ns->retention_hard),
						interval_text(options->has_retention_hard, &options->retention_hard));
	if (ns->premake != options->premake)
		refuse_mismatch(ns->name, "premake", psprintf("%d", ns->premake),
						psprintf("%d", options->premake));
}

static void
insert_namespace(int32 namespace_id, const HmsNamespaceOptions *options,
				 const Interval *width, TimestampTz now)
{
	Datum		values[HMS_NAMESPACE_NCOLUMNS];
	bool		nulls[HMS_NAMESPACE_NCOLUMNS] = {false};

	values[HMS_NAMESPACE_COL_ID - 1] = Int32GetDatum(namespace_id);
	values[HMS_NAMESPACE_COL_NAME - 1] = CStringGetTextDatum(options->name);
	values[HMS_NAMESPACE_COL_PARTITION_INTERVAL - 1] = IntervalPGetDatum(width);
	values[HMS_NAMESPACE_COL_PREMAKE - 1] = Int32GetDatum(options->premake);
	values[HMS_NAMESPACE_COL_RETENTION - 1] = IntervalPGetDatum(&options->retention);
	nulls[HMS_NAMESPACE_COL_RETENTION - 1] = !options->has_retention;
	values[HMS_NAMESPACE_COL_RETENTION_HARD - 1] = IntervalPGetDatum(&options->retention_hard);
	nulls[HMS_NAMESPACE_COL_RETENTION_HARD - 1] = !options->has_retention_hard;
	values[HMS_NAMESPACE_COL_CREATED_AT - 1] = TimestampTzGetDatum(now);
	hms_config_insert(hms_relset()->namespace_rel, values, nulls);
}

/*
 * An id whose log does not exist.  A schema-only restore brings the logs, but
 * neither the namespaces nor the sequence's position.
 */
static int32
next_namespace_id(void)
{
	int32		namespace_id;

	do
		namespace_id = (int32) hms_sequence_next(hms_relset()->namespace_id_seq);
	while (OidIsValid(hms_route_log_relid(namespace_id)));
	return namespace_id;
}

/*
 * hms_namespace_create
 *		Create a namespace with its log; false when it exists with these options.
 */
bool
hms_namespace_create(const HmsNamespaceOptions *options)
{
	TimestampTz now = HMS_NOW();
	HmsNamespace existing;
	Interval	width;
	int32		namespace_id;

	parse_width(options->partition_interval, &width);
	check_retentions(options->has_retention, &options->retention,
					 options->has_retention_hard, &options->retention_hard);

	hms_config_lock(hms_relset()->namespace_rel, options->name);
	if (hms_namespace_find(options->name, &existing))
	{
		require_same(&existing, options, &width);
		return false;
	}

	/* Before the first log exists, so that a fresh database has its row. */
	(void) hms_xid_offset();

	namespace_id = next_namespace_id();
	insert_namespace(namespace_id, options, &width, now);
	hms_partman_create_log(namespace_id, &width, options->premake, now);
	hms_config_invalidate(hms_relset()->namespace_rel);
	return true;
}

/*
 * hms_namespace_ensure
 *		Make sure that a namespace exists, if need be by creating "default".
 */
void
hms_namespace_ensure(const char *name)
{
	HmsNamespaceOptions options = {
		.name = name,
		.partition_interval = "daily",
		.premake = HMS_DEFAULT_PREMAKE,
		.has_retention = true,
		.retention = {.day = 7}
	};
	HmsNamespace ns;

	if (hms_namespace_find(name, &ns))
		return;
	if (strcmp(name, HMS_DEFAULT_NAMESPACE) != 0)
		ereport(ERROR,
				(errcode(HMS_ERRCODE_UNKNOWN_NAMESPACE),
				 errmsg("namespace \"%s\" does not exist", name),
				 errhint("Create it with hotmesh_stream.create_namespace().")));

	/* Another session may create it first, with whatever configuration. */
	hms_config_lock(hms_relset()->namespace_rel, name);
	if (!hms_namespace_find(name, &ns))
		(void) hms_namespace_create(&options);
}

/* --- changing and dropping ---------------------------------------------------- */

/* The namespace's row, under the lock of its name; NULL when it does not exist. */
static HeapTuple
lock_namespace(const char *name, HmsNamespace *ns)
{
	const HmsRelset *relset = hms_relset();
	ScanKeyData key;

	hms_config_lock(relset->namespace_rel, name);
	if (!hms_namespace_find(name, ns))
		return NULL;
	hms_key_int4(&key, 1, BTEqualStrategyNumber, ns->namespace_id);
	return hms_config_find(relset->namespace_rel, relset->namespace_pkey, 1, &key);
}

/* What an interval is after the change. */
static void
merge_interval(const HmsConfigValue *value, bool *has, Interval *interval)
{
	if (!value->given)
		return;
	*has = !value->isnull;
	*interval = value->interval;
}

/*
 * hms_namespace_alter
 *		Change the keys that a JSON object names.
 */
void
hms_namespace_alter(const char *name, Jsonb *config)
{
	HmsConfigValue given[NKEYS];
	HmsNamespace ns;
	HeapTuple	tuple;
	Datum		values[HMS_NAMESPACE_NCOLUMNS] = {0};
	bool		nulls[HMS_NAMESPACE_NCOLUMNS] = {false};
	bool		replace[HMS_NAMESPACE_NCOLUMNS] = {false};

	hms_config_json_parse(config, namespace_keys, NKEYS, given);
	tuple = lock_namespace(name, &ns);
	if (tuple == NULL)
		ereport(ERROR,
				(errcode(HMS_ERRCODE_UNKNOWN_NAMESPACE),
				 errmsg("namespace \"%s\" does not exist", name)));

	merge_interval(&given[KEY_RETENTION], &ns.has_retention, &ns.retention);
	merge_interval(&given[KEY_RETENTION_HARD], &ns.has_retention_hard, &ns.retention_hard);
	check_retentions(ns.has_retention, &ns.retention, ns.has_retention_hard, &ns.retention_hard);
	if (given[KEY_PREMAKE].given && given[KEY_PREMAKE].integer != ns.premake)
	{
		ns.premake = given[KEY_PREMAKE].integer;
		hms_partman_set_premake(ns.namespace_id, ns.premake);
	}

	values[HMS_NAMESPACE_COL_PREMAKE - 1] = Int32GetDatum(ns.premake);
	replace[HMS_NAMESPACE_COL_PREMAKE - 1] = true;
	values[HMS_NAMESPACE_COL_RETENTION - 1] = IntervalPGetDatum(&ns.retention);
	nulls[HMS_NAMESPACE_COL_RETENTION - 1] = !ns.has_retention;
	replace[HMS_NAMESPACE_COL_RETENTION - 1] = true;
	values[HMS_NAMESPACE_COL_RETENTION_HARD - 1] = IntervalPGetDatum(&ns.retention_hard);
	nulls[HMS_NAMESPACE_COL_RETENTION_HARD - 1] = !ns.has_retention_hard;
	replace[HMS_NAMESPACE_COL_RETENTION_HARD - 1] = true;
	hms_config_update(hms_relset()->namespace_rel, tuple, values, nulls, replace);
}

static void
refuse_drop_with_streams(const HmsNamespace *ns)
{
	HmsStream  *streams;
	int			nstreams = hms_list_streams(ns->namespace_id, &streams);

	if (nstreams == 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			 errmsg("cannot drop namespace \"%s\" because it has streams", ns->name),
			 errdetail_plural("It has %d stream, \"%s\".",
							  "It has %d streams, one of them \"%s\".",
							  nstreams, nstreams, streams[0].name),
			 errhint("Drop the streams first.")));
}

/*
 * hms_namespace_drop
 *		Drop a namespace with its log; false when there is none.
 */
bool
hms_namespace_drop(const char *name)
{
	HmsNamespace ns;
	HeapTuple	tuple = lock_namespace(name, &ns);

	if (tuple == NULL)
		return false;
	refuse_drop_with_streams(&ns);

	hms_seal_forget_namespace(ns.namespace_id);
	hms_config_delete(hms_relset()->namespace_rel, tuple);
	hms_partman_drop_log(ns.namespace_id);
	if (OidIsValid(ns.log_relid))
		hms_effects_log_dropped(ns.log_relid);
	return true;
}
