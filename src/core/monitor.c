/*-------------------------------------------------------------------------
 *
 * monitor.c
 *	  Numbers about streams and consumers.
 *
 * Runs in the backend that asks and only reads: the log and the state tables
 * under one fresh snapshot, counters and presence from shared memory.  Fresh
 * also in REPEATABLE READ, as everything else of ours: a number that is an hour
 * old helps nobody.  Counters start anew after a crash; the rest is exact then too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/numeric.h"
#include "utils/snapmgr.h"

#include "core/delivery.h"
#include "core/log_count.h"
#include "core/log_merge.h"
#include "core/monitor.h"
#include "core/privilege.h"
#include "core/rows.h"
#include "core/throttle.h"
#include "shmem/counters.h"
#include "storage/config.h"
#include "storage/relset.h"
#include "storage/scan.h"

bool
hms_monitor_allowed(int32 stream_id)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_MONITOR) ||
		hms_privilege_has(HMS_PRIV_CONSUME, stream_id) ||
		hms_privilege_has(HMS_PRIV_PUBLISH, stream_id);
}

/* --- json --------------------------------------------------------------------- */

void
hms_json_begin(JsonbParseState **state)
{
	*state = NULL;
	(void) pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
}

static void
push_key(JsonbParseState **state, const char *key)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = pstrdup(key);
	value.val.string.len = strlen(key);
	(void) pushJsonbValue(state, WJB_KEY, &value);
}

void
hms_json_text(JsonbParseState **state, const char *key, const char *str)
{
	JsonbValue	value = {.type = jbvNull};

	push_key(state, key);
	if (str != NULL)
	{
		value.type = jbvString;
		value.val.string.val = pstrdup(str);
		value.val.string.len = strlen(str);
	}
	(void) pushJsonbValue(state, WJB_VALUE, &value);
}

void
hms_json_int(JsonbParseState **state, const char *key, int64 number)
{
	JsonbValue	value = {.type = jbvNumeric};

	push_key(state, key);
	value.val.numeric = int64_to_numeric(number);
	(void) pushJsonbValue(state, WJB_VALUE, &value);
}

Jsonb *
hms_json_end(JsonbParseState **state)
{
	return JsonbValueToJsonb(pushJsonbValue(state, WJB_END_OBJECT, NULL));
}

/* --- streams ------------------------------------------------------------------ */

static bool
read_stream_row(HeapTuple tuple, TupleDesc desc, void *arg)
{
	HmsStreamNumbers *out = arg;
	JsonbParseState *state;
	HmsNamespace ns;
	bool		isnull;
	Datum		delay = hms_config_attr(tuple, desc, HMS_STREAM_COL_DELAY, &isnull);
	int32		namespace_id = DatumGetInt32(hms_config_attr(tuple, desc, HMS_STREAM_COL_NAMESPACE_ID, &isnull));

	out->created_at = DatumGetTimestampTz(hms_config_attr(tuple, desc, HMS_STREAM_COL_CREATED_AT, &isnull));
	hms_json_begin(&state);
	hms_json_text(&state, "namespace",
				  hms_namespace_by_id(namespace_id, &ns) ? ns.name : NULL);
	hms_json_int(&state, "max_message_bytes",
				 DatumGetInt32(hms_config_attr(tuple, desc, HMS_STREAM_COL_MAX_MESSAGE_BYTES, &isnull)));
	hms_json_int(&state, "max_priority",
				 DatumGetInt32(hms_config_attr(tuple, desc, HMS_STREAM_COL_MAX_PRIORITY, &isnull)));
	hms_json_text(&state, "delay", DatumGetCString(DirectFunctionCall1(interval_out, delay)));
	out->config = hms_json_end(&state);
	return false;
}

/* Id and publish time of the first message in a direction; 0 when the stream is empty. */
static int64
end_of_stream(const HmsStream *stream, HmsLogView *view, Snapshot snapshot,
			  ScanDirection direction, TimestampTz *published_at)
{
	HmsLogMerge *merge = hms_log_merge_range(stream, view, snapshot, 0, PG_INT64_MAX, direction);
	TupleTableSlot *slot;
	int			priority;
	int64		id = 0;

	slot = hms_log_merge_next(merge, &id, &priority);
	if (slot != NULL)
		*published_at = DatumGetTimestampTz(hms_log_column(slot, HMS_LOG_PUBLISHED_AT));
	hms_log_merge_end(merge);
	return id;
}

static double
publish_rate(const HmsStream *stream, TimestampTz now)
{
	int64		counters[HMS_STREAM_NCOUNTERS];
	TimestampTz since;
	int64		counted_us;

	if (!hms_stream_counters(MyDatabaseId, stream->stream_id, counters, &since))
		return -1;
	/* Less than a second of counting says nothing about a rate. */
	counted_us = Max(now - since, USECS_PER_SEC);
	return counters[HMS_STREAM_PUBLISHED] / ((double) counted_us / USECS_PER_SEC);
}

void
hms_monitor_stream(const HmsStream *stream, TimestampTz now, HmsStreamNumbers *out)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	ScanKeyData key;
	HmsLogView	view;
	HmsLogCount count;
	HmsGroup   *groups;

	memset(out, 0, sizeof(*out));
	hms_key_int4(&key, 1, BTEqualStrategyNumber, stream->stream_id);
	hms_config_each(hms_relset()->stream_rel, hms_relset()->stream_pkey, 1, &key,
					read_stream_row, out);

	hms_log_view(&view, stream->log_relid, stream->namespace_id, 0, PG_INT64_MAX);
	hms_log_count_init(&count, true);
	for (int level = 0; level < HMS_PRIORITY_LEVELS; level++)
		hms_log_count_level(&count, stream, &view, snapshot, level, 0, PG_INT64_MAX);
	out->first_id = end_of_stream(stream, &view, snapshot, ForwardScanDirection, &out->first_at);
	out->last_id = end_of_stream(stream, &view, snapshot, BackwardScanDirection, &out->last_at);
	hms_log_release(&view);
	UnregisterSnapshot(snapshot);

	out->messages = count.rows;
	out->messages_estimated = count.estimated;
	out->bytes = count.bytes;
	out->ngroups = hms_list_groups(stream->stream_id, &groups);
	out->publish_rate = publish_rate(stream, now);
}

/* --- consumers ------------------------------------------------------------------ */

/* Find or make the entry of a consumer and raise its times. */
static HmsConsumerNumbers *
note_consumer(HTAB *consumers, const char *name, TimestampTz seen, TimestampTz active)
{
	HmsConsumerNumbers *entry;
	bool		found;

	entry = hash_search(consumers, name, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) entry + offsetof(HmsConsumerNumbers, leased), 0,
			   sizeof(*entry) - offsetof(HmsConsumerNumbers, leased));
		entry->last_seen = DT_NOBEGIN;
		entry->last_active = DT_NOBEGIN;
	}
	entry->last_seen = Max(entry->last_seen, seen);
	entry->last_active = Max(entry->last_active, active);
	return entry;
}

static void
note_presence(HTAB *consumers, const HmsGroup *group)
{
	HmsPresence *presence;
	int			n = hms_presence_list(DT_NOBEGIN, &presence);

	for (int i = 0; i < n; i++)
	{
		if (presence[i].group_id == group->group_id)
			(void) note_consumer(consumers, presence[i].name,
								 presence[i].last_seen, presence[i].last_active);
	}
}

static void
note_stored(HTAB *consumers, const HmsGroup *group, Snapshot snapshot)
{
	Relation	rel = table_open(hms_relset()->consumer_rel, AccessShareLock);
	ScanKeyData key;
	HmsScan		scan;

	hms_key_int4(&key, 1, BTEqualStrategyNumber, group->group_id);
	hms_scan_begin(&scan, rel, hms_relset()->consumer_pkey, snapshot, 1, &key);
	while (hms_scan_next(&scan, ForwardScanDirection))
	{
		char	   *name = TextDatumGetCString(hms_log_column(scan.slot, HMS_CONSUMER_COL_NAME));
		TimestampTz seen = DatumGetTimestampTz(hms_log_column(scan.slot, HMS_CONSUMER_COL_LAST_SEEN));
		bool		isnull;
		Datum		active = slot_getattr(scan.slot, HMS_CONSUMER_COL_LAST_ACTIVE, &isnull);

		CHECK_FOR_INTERRUPTS();
		(void) note_consumer(consumers, name, seen,
							 isnull ? DT_NOBEGIN : DatumGetTimestampTz(active));
	}
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
}

/* Whoever holds a lease was there when it was handed out. */
static void
note_leases(HTAB *consumers, const HmsGroup *group, Snapshot snapshot, TimestampTz now)
{
	Relation	rel = table_open(hms_relset()->delivery_rel, AccessShareLock);
	ScanKeyData key;
	HmsScan		scan;

	hms_key_int8(&key, 1, BTEqualStrategyNumber, group->incarnation);
	hms_scan_begin(&scan, rel, hms_relset()->delivery_id_idx, snapshot, 1, &key);
	while (hms_scan_next(&scan, ForwardScanDirection))
	{
		bool		no_lease;
		bool		no_consumer;
		bool		no_time;
		Datum		lease_until = slot_getattr(scan.slot, HMS_DELIVERY_LEASE_UNTIL, &no_lease);
		Datum		consumer = slot_getattr(scan.slot, HMS_DELIVERY_CONSUMER, &no_consumer);
		Datum		delivered = slot_getattr(scan.slot, HMS_DELIVERY_DELIVERED_AT, &no_time);
		TimestampTz at;
		char	   *name;

		CHECK_FOR_INTERRUPTS();
		if (no_lease || no_consumer || DatumGetTimestampTz(lease_until) <= now)
			continue;
		at = no_time ? DT_NOBEGIN : DatumGetTimestampTz(delivered);
		name = TextDatumGetCString(consumer);
		note_consumer(consumers, name, at, at)->leased++;
		pfree(name);
	}
	hms_scan_end(&scan);
	table_close(rel, AccessShareLock);
}

static void
note_registered(const HmsRegistration *registration, void *arg)
{
	HmsConsumerNumbers *entry = note_consumer(arg, registration->name, DT_NOBEGIN, DT_NOBEGIN);

	entry->registered = true;
	entry->role = pstrdup(registration->role);
	entry->topic = registration->topic == NULL ? NULL : pstrdup(registration->topic);
	entry->readonly = registration->readonly;
}

static int
compare_consumers(const void *a, const void *b)
{
	return strcmp(((const HmsConsumerNumbers *) a)->name, ((const HmsConsumerNumbers *) b)->name);
}

int
hms_monitor_consumers(const HmsGroup *group, TimestampTz now, HmsConsumerNumbers **out)
{
	HASHCTL		ctl = {.keysize = HMS_MAX_NAME_BYTES + 1,.entrysize = sizeof(HmsConsumerNumbers)};
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	HASH_SEQ_STATUS seq;
	HmsConsumerNumbers *entry;
	HTAB	   *consumers;
	int			n = 0;

	ctl.hcxt = CurrentMemoryContext;
	consumers = hash_create("hotmesh_stream consumers", 64, &ctl,
							HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
	note_presence(consumers, group);
	note_stored(consumers, group, snapshot);
	note_leases(consumers, group, snapshot, now);
	hms_registered_each(group->group_id, note_registered, consumers);
	UnregisterSnapshot(snapshot);

	*out = palloc(sizeof(HmsConsumerNumbers) * Max(hash_get_num_entries(consumers), 1));
	hash_seq_init(&seq, consumers);
	while ((entry = hash_seq_search(&seq)) != NULL)
		(*out)[n++] = *entry;
	hash_destroy(consumers);
	qsort(*out, n, sizeof(HmsConsumerNumbers), compare_consumers);
	return n;
}
