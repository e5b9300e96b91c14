/*-------------------------------------------------------------------------
 *
 * throttle.c
 *	  When a HotMesh consumer may be handed messages.
 *
 * A throttle is a row of hotmesh_stream.throttle for a group, a stream or all of
 * them, and survives a restart; the narrowest row counts.  Where there is none, what the consumer
 * said when it registered does.  A consumer that was handed messages less than the pause ago
 * gets none; when that was is in shared memory (shmem/presence.c), and forgotten by a
 * restart.
 *
 * What holds for one (group, consumer) is cached until any configuration changes.
 * Changes are made under the lock of one name, as all of configuration.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "core/rows.h"
#include "core/throttle.h"
#include "debug/debug_point.h"
#include "shmem/counters.h"
#include "shmem/effects.h"
#include "storage/config.h"
#include "storage/relset.h"
#include "storage/scan.h"

/* The name under which all throttles are changed. */
#define LOCK_NAME	"throttle"

typedef struct PaceKey
{
	int32		group_id;
	char		name[HMS_MAX_NAME_BYTES + 1];
} PaceKey;

typedef struct PaceEntry
{
	PaceKey		key;
	int32		pause_ms;		/* HMS_PAUSED also when readonly */
} PaceEntry;

static HTAB *paces = NULL;
static uint64 paces_generation = 0;

/* --- throttle rows ------------------------------------------------------------ */

static bool
read_pause(HeapTuple tuple, TupleDesc desc, void *arg)
{
	bool		isnull;

	*(int32 *) arg = DatumGetInt32(hms_config_attr(tuple, desc, HMS_THROTTLE_COL_PAUSE_MS, &isnull));
	return false;
}

/* False when there is no such row. */
static bool
find_pause(int32 stream_id, int32 group_id, int32 *pause_ms)
{
	const HmsRelset *rels = hms_relset();
	ScanKeyData keys[2];

	*pause_ms = PG_INT32_MIN;
	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, stream_id);
	hms_key_int4(&keys[1], 2, BTEqualStrategyNumber, group_id);
	hms_config_each(rels->throttle_rel, rels->throttle_pkey, 2, keys, read_pause, pause_ms);
	return *pause_ms != PG_INT32_MIN;
}

/* Delete a group's row, or, with group_id 0, all rows of the stream; all rows for stream 0. */
static void
erase_pauses(int32 stream_id, int32 group_id)
{
	const HmsRelset *rels = hms_relset();
	ScanKeyData keys[2];
	int			nkeys = stream_id == 0 ? 0 : group_id == 0 ? 1 : 2;

	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, stream_id);
	hms_key_int4(&keys[1], 2, BTEqualStrategyNumber, group_id);
	(void) hms_config_delete_all(rels->throttle_rel, rels->throttle_pkey, nkeys, keys);
}

static void
insert_pause(int32 stream_id, int32 group_id, int32 pause_ms)
{
	Datum		values[HMS_THROTTLE_NCOLUMNS] = {
		Int32GetDatum(stream_id), Int32GetDatum(group_id), Int32GetDatum(pause_ms)
	};
	bool		nulls[HMS_THROTTLE_NCOLUMNS] = {false};

	hms_config_insert(hms_relset()->throttle_rel, values, nulls);
}

void
hms_throttle_set(const HmsStream *stream, const HmsGroup *group, int pause_ms)
{
	int32		stream_id = stream == NULL ? 0 : stream->stream_id;
	int32		group_id = group == NULL ? 0 : group->group_id;
	int32		wider;

	hms_config_lock(hms_relset()->throttle_rel, LOCK_NAME);
	erase_pauses(stream_id, group_id);

	/*
	 * Lifted here although a wider throttle is set: that needs a row that
	 * says so.
	 */
	if (pause_ms != 0 ||
		(stream_id != 0 && find_pause(0, 0, &wider)) ||
		(group_id != 0 && find_pause(stream_id, 0, &wider)))
		insert_pause(stream_id, group_id, pause_ms);
	hms_effects_wake_all(0, HMS_HELD_READERS);
}

/* --- registered consumers ------------------------------------------------------- */

/* Calls back for each row. */
typedef struct RegisteredWalk
{
	HmsRegistrationVisitor visit;
	void	   *arg;
} RegisteredWalk;

static bool
read_registered(HeapTuple tuple, TupleDesc desc, void *arg)
{
	RegisteredWalk *walk = arg;
	HmsRegistration row;
	bool		isnull;
	Datum		value;

	row.name = TextDatumGetCString(hms_config_attr(tuple, desc, HMS_REGISTERED_COL_NAME, &isnull));
	row.role = TextDatumGetCString(hms_config_attr(tuple, desc, HMS_REGISTERED_COL_ROLE, &isnull));
	value = hms_config_attr(tuple, desc, HMS_REGISTERED_COL_TOPIC, &isnull);
	row.topic = isnull ? NULL : TextDatumGetCString(value);
	row.readonly =
		DatumGetBool(hms_config_attr(tuple, desc, HMS_REGISTERED_COL_READONLY, &isnull));
	row.pause_ms =
		DatumGetInt32(hms_config_attr(tuple, desc, HMS_REGISTERED_COL_PAUSE_MS, &isnull));
	row.config = hms_config_attr(tuple, desc, HMS_REGISTERED_COL_CONFIG, &isnull);
	walk->visit(&row, walk->arg);
	return true;
}

static void
registered_keys(ScanKey keys, int32 group_id, const char *name)
{
	hms_key_int4(&keys[0], 1, BTEqualStrategyNumber, group_id);
	hms_key_text(&keys[1], 2, cstring_to_text(name));
}

void
hms_registered_each(int32 group_id, HmsRegistrationVisitor visit, void *arg)
{
	const HmsRelset *rels = hms_relset();
	RegisteredWalk walk = {visit, arg};
	ScanKeyData key;

	hms_key_int4(&key, 1, BTEqualStrategyNumber, group_id);
	hms_config_each(rels->registered_rel, rels->registered_pkey, 1, &key, read_registered, &walk);
}

void
hms_register_consumer(const HmsGroup *group, const HmsRegistration *registration)
{
	const HmsRelset *rels = hms_relset();
	Datum		values[HMS_REGISTERED_NCOLUMNS];
	bool		nulls[HMS_REGISTERED_NCOLUMNS] = {false};
	ScanKeyData keys[2];

	hms_config_lock(rels->registered_rel, psprintf("%d/%s", group->group_id, registration->name));
	registered_keys(keys, group->group_id, registration->name);
	(void) hms_config_delete_all(rels->registered_rel, rels->registered_pkey, 2, keys);

	values[HMS_REGISTERED_COL_GROUP_ID - 1] = Int32GetDatum(group->group_id);
	values[HMS_REGISTERED_COL_NAME - 1] = CStringGetTextDatum(registration->name);
	values[HMS_REGISTERED_COL_ROLE - 1] = CStringGetTextDatum(registration->role);
	nulls[HMS_REGISTERED_COL_TOPIC - 1] = registration->topic == NULL;
	if (registration->topic != NULL)
		values[HMS_REGISTERED_COL_TOPIC - 1] = CStringGetTextDatum(registration->topic);
	values[HMS_REGISTERED_COL_READONLY - 1] = BoolGetDatum(registration->readonly);
	values[HMS_REGISTERED_COL_PAUSE_MS - 1] = Int32GetDatum(registration->pause_ms);
	values[HMS_REGISTERED_COL_CONFIG - 1] = registration->config;
	values[HMS_REGISTERED_COL_REGISTERED_AT - 1] = TimestampTzGetDatum(HMS_NOW());
	hms_config_insert(hms_relset()->registered_rel, values, nulls);
	hms_effects_wake_all(0, HMS_HELD_READERS);
}

void
hms_throttle_forget_group(const HmsGroup *group)
{
	ScanKeyData key;

	hms_config_lock(hms_relset()->throttle_rel, LOCK_NAME);
	erase_pauses(group->stream_id, group->group_id);
	hms_key_int4(&key, 1, BTEqualStrategyNumber, group->group_id);
	(void) hms_config_delete_all(hms_relset()->registered_rel, hms_relset()->registered_pkey,
								 1, &key);
}

/* --- who may be handed messages ---------------------------------------------------- */

/* A consumer's own throttle; readonly is a pause that nothing lifts. */
typedef struct OwnPace
{
	bool		readonly;
	int32		pause_ms;
} OwnPace;

static void
note_own_pace(const HmsRegistration *registration, void *arg)
{
	OwnPace    *own = arg;

	own->readonly = registration->readonly;
	own->pause_ms = registration->pause_ms;
}

static int32
lookup_pause(const HmsGroup *group, const char *consumer)
{
	const HmsRelset *rels = hms_relset();
	OwnPace		own = {0};
	RegisteredWalk walk = {note_own_pace, &own};
	ScanKeyData keys[2];
	int32		pause_ms;

	registered_keys(keys, group->group_id, consumer);
	hms_config_each(rels->registered_rel, rels->registered_pkey, 2, keys, read_registered, &walk);
	if (own.readonly)
		return HMS_PAUSED;
	if (find_pause(group->stream_id, group->group_id, &pause_ms) ||
		find_pause(group->stream_id, 0, &pause_ms) ||
		find_pause(0, 0, &pause_ms))
		return pause_ms;
	return own.pause_ms;
}

static void
refresh_cache(void)
{
	uint64		now = hms_config_generation();
	HASHCTL		ctl = {.keysize = sizeof(PaceKey),.entrysize = sizeof(PaceEntry)};

	if (paces != NULL && now == paces_generation)
		return;
	if (paces != NULL)
		hash_destroy(paces);
	paces = hash_create("hotmesh_stream throttles", 16, &ctl, HASH_ELEM | HASH_BLOBS);
	paces_generation = now;
}

static int32
cached_pause(const HmsGroup *group, const char *consumer)
{
	PaceKey		key = {.group_id = group->group_id};
	PaceEntry  *entry;
	bool		found;
	int32		pause_ms;

	refresh_cache();
	strlcpy(key.name, consumer, sizeof(key.name));
	entry = hash_search(paces, &key, HASH_FIND, NULL);
	if (entry != NULL)
		return entry->pause_ms;

	/*
	 * The lookup may take in invalidations, after which its result is not
	 * kept.
	 */
	pause_ms = lookup_pause(group, consumer);
	if (hms_config_generation() == paces_generation)
	{
		entry = hash_search(paces, &key, HASH_ENTER, &found);
		entry->pause_ms = pause_ms;
	}
	return pause_ms;
}

TimestampTz
hms_throttle_until(const HmsGroup *group, const char *consumer)
{
	int32		pause_ms = cached_pause(group, consumer);
	TimestampTz last;

	if (pause_ms == 0)
		return DT_NOBEGIN;
	if (pause_ms == HMS_PAUSED)
		return DT_NOEND;
	last = hms_presence_last_active(group->group_id, consumer);
	return TIMESTAMP_IS_NOBEGIN(last) ? last : TimestampTzPlusMilliseconds(last, pause_ms);
}
