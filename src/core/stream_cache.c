/*-------------------------------------------------------------------------
 *
 * stream_cache.c
 *	  Namespaces, streams and groups by name or id, cached per backend.
 *
 * Every publish and read begins here, so a hit costs one look at the
 * invalidation queue, one hash lookup and one copy.  Objects are read from
 * their tables when they are first asked for.  The whole cache is thrown away
 * when hms_config_generation() has moved, which happens as soon as another
 * session's change has committed or our own has been made or rolled back.
 * What is not found is not remembered, and neither is an object whose log is
 * missing, so that nothing has to announce the creation of either.
 *
 * An object that was read while an invalidation arrived is handed out (it was
 * true when the call began) but not kept.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "core/duration.h"
#include "core/rows.h"
#include "core/stream_cache.h"
#include "shmem/shmem.h"
#include "storage/config.h"
#include "storage/relset.h"
#include "storage/route.h"
#include "storage/scan.h"

typedef enum ObjectKind
{
	KIND_NAMESPACE,
	KIND_STREAM,
	KIND_GROUP
} ObjectKind;

/* What differs between the kinds; every object begins with its id. */
typedef struct KindInfo
{
	Size		size;
	Size		name_offset;
	HmsConfigVisitor read;		/* fills the object 'arg' points to, returns
								 * false */
	Size		rel_offset;		/* members of HmsRelset */
	Size		pkey_offset;
	Size		name_key_offset;
} KindInfo;

typedef struct NameKey
{
	ObjectKind	kind;
	int32		parent;			/* a group's stream, else 0 */
	const char *name;			/* in the cache: points into the object */
} NameKey;

typedef struct NameEntry
{
	NameKey		key;
	void	   *object;
} NameEntry;

typedef struct IdKey
{
	ObjectKind	kind;
	int32		id;
} IdKey;

typedef struct IdEntry
{
	IdKey		key;
	void	   *object;
} IdEntry;

static bool read_namespace(HeapTuple tuple, TupleDesc desc, void *arg);
static bool read_stream(HeapTuple tuple, TupleDesc desc, void *arg);
static bool read_group(HeapTuple tuple, TupleDesc desc, void *arg);

static const KindInfo kinds[] = {
	[KIND_NAMESPACE] = {
		sizeof(HmsNamespace), offsetof(HmsNamespace, name), read_namespace,
		offsetof(HmsRelset, namespace_rel), offsetof(HmsRelset, namespace_pkey),
		offsetof(HmsRelset, namespace_name_key)
	},
	[KIND_STREAM] = {
		sizeof(HmsStream), offsetof(HmsStream, name), read_stream,
		offsetof(HmsRelset, stream_rel), offsetof(HmsRelset, stream_pkey),
		offsetof(HmsRelset, stream_name_key)
	},
	[KIND_GROUP] = {
		sizeof(HmsGroup), offsetof(HmsGroup, name), read_group,
		offsetof(HmsRelset, group_rel), offsetof(HmsRelset, group_pkey),
		offsetof(HmsRelset, group_name_key)
	}
};

static MemoryContext cache_context = NULL;
static HTAB *by_name = NULL;
static HTAB *by_id = NULL;
static uint64 cache_generation = 0;

/* --- rows ------------------------------------------------------------------- */

static void
copy_name(char *name, Datum value)
{
	text_to_cstring_buffer(DatumGetTextPP(value), name, HMS_MAX_NAME_BYTES + 1);
}

static int64
interval_attr_us(HeapTuple tuple, TupleDesc desc, int attno)
{
	bool		isnull;

	return hms_duration_us(DatumGetIntervalP(hms_config_attr(tuple, desc, attno, &isnull)));
}

/* False when the column is null. */
static bool
read_interval(HeapTuple tuple, TupleDesc desc, int attno, Interval *out)
{
	bool		isnull;
	Datum		value = hms_config_attr(tuple, desc, attno, &isnull);

	if (!isnull)
		*out = *DatumGetIntervalP(value);
	return !isnull;
}

static bool
read_namespace(HeapTuple tuple, TupleDesc desc, void *arg)
{
	HmsNamespace *out = arg;
	bool		isnull;

	out->namespace_id =
		DatumGetInt32(hms_config_attr(tuple, desc, HMS_NAMESPACE_COL_ID, &isnull));
	copy_name(out->name, hms_config_attr(tuple, desc, HMS_NAMESPACE_COL_NAME, &isnull));
	(void) read_interval(tuple, desc, HMS_NAMESPACE_COL_PARTITION_INTERVAL,
						 &out->partition_interval);
	out->premake =
		DatumGetInt32(hms_config_attr(tuple, desc, HMS_NAMESPACE_COL_PREMAKE, &isnull));
	out->has_retention = read_interval(tuple, desc, HMS_NAMESPACE_COL_RETENTION,
									   &out->retention);
	out->has_retention_hard = read_interval(tuple, desc, HMS_NAMESPACE_COL_RETENTION_HARD,
											&out->retention_hard);
	out->log_relid = hms_route_log_relid(out->namespace_id);
	return false;
}

static bool
read_stream(HeapTuple tuple, TupleDesc desc, void *arg)
{
	HmsStream  *out = arg;
	bool		isnull;

	out->stream_id = DatumGetInt32(hms_config_attr(tuple, desc, HMS_STREAM_COL_ID, &isnull));
	out->namespace_id =
		DatumGetInt32(hms_config_attr(tuple, desc, HMS_STREAM_COL_NAMESPACE_ID, &isnull));
	copy_name(out->name, hms_config_attr(tuple, desc, HMS_STREAM_COL_NAME, &isnull));
	out->max_message_bytes =
		DatumGetInt32(hms_config_attr(tuple, desc, HMS_STREAM_COL_MAX_MESSAGE_BYTES, &isnull));
	out->levels =
		DatumGetInt32(hms_config_attr(tuple, desc, HMS_STREAM_COL_MAX_PRIORITY, &isnull)) + 1;
	out->delay_us = interval_attr_us(tuple, desc, HMS_STREAM_COL_DELAY);
	out->log_relid = hms_route_log_relid(out->namespace_id);
	return false;
}

static void
read_backoff(Datum value, HmsGroup *out)
{
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(value), INTERVALOID, sizeof(Interval), false,
					  TYPALIGN_DOUBLE, &elements, &nulls, &n);
	out->nbackoff = Min(n, HMS_MAX_BACKOFF);
	for (int i = 0; i < out->nbackoff; i++)
		out->backoff_us[i] = nulls[i] ? 0 : hms_duration_us(DatumGetIntervalP(elements[i]));
	pfree(elements);
	pfree(nulls);
}

static bool
read_group(HeapTuple tuple, TupleDesc desc, void *arg)
{
	HmsGroup   *out = arg;
	bool		isnull;
	Datum		value;
	char	   *policy;

	out->group_id = DatumGetInt32(hms_config_attr(tuple, desc, HMS_GROUP_COL_ID, &isnull));
	out->stream_id =
		DatumGetInt32(hms_config_attr(tuple, desc, HMS_GROUP_COL_STREAM_ID, &isnull));
	copy_name(out->name, hms_config_attr(tuple, desc, HMS_GROUP_COL_NAME, &isnull));
	out->incarnation =
		DatumGetInt64(hms_config_attr(tuple, desc, HMS_GROUP_COL_INCARNATION, &isnull));
	out->start_id = DatumGetInt64(hms_config_attr(tuple, desc, HMS_GROUP_COL_START_ID, &isnull));
	out->ack_wait_us = interval_attr_us(tuple, desc, HMS_GROUP_COL_ACK_WAIT);
	out->dead_letter_retention_us =
		interval_attr_us(tuple, desc, HMS_GROUP_COL_DEAD_LETTER_RETENTION);

	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_ERROR_STREAM, &isnull);
	if (!isnull)
		copy_name(out->error_stream, value);
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_DEFAULT_BATCH, &isnull);
	out->default_batch = isnull ? 1 : DatumGetInt32(value);
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_DEFAULT_WAIT, &isnull);
	out->default_wait_us = isnull ? 0 : hms_duration_us(DatumGetIntervalP(value));
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_MAX_DELIVER, &isnull);
	out->max_deliver = isnull ? 0 : DatumGetInt32(value);
	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_BACKOFF, &isnull);
	if (!isnull)
		read_backoff(value, out);

	value = hms_config_attr(tuple, desc, HMS_GROUP_COL_DELIVER_POLICY, &isnull);
	policy = TextDatumGetCString(value);
	if (!hms_deliver_policy_parse(policy, &out->deliver_policy))
		elog(ERROR, "unexpected deliver policy \"%s\" of consumer group %d",
			 policy, out->group_id);
	pfree(policy);
	return false;
}

/* --- the cache -------------------------------------------------------------- */

static uint32
hash_name_key(const void *key, Size keysize)
{
	const NameKey *k = key;
	uint32		hash = hash_bytes((const unsigned char *) k->name, strlen(k->name));

	return hash_combine(hash, (uint32) k->parent * 4 + k->kind);
}

static int
match_name_keys(const void *left, const void *right, Size keysize)
{
	const NameKey *a = left;
	const NameKey *b = right;

	if (a->kind != b->kind || a->parent != b->parent)
		return 1;
	return strcmp(a->name, b->name);
}

static void
create_tables(void)
{
	HASHCTL		name_ctl = {
		.keysize = sizeof(NameKey),.entrysize = sizeof(NameEntry),
		.hash = hash_name_key,.match = match_name_keys,.hcxt = cache_context
	};
	HASHCTL		id_ctl = {
		.keysize = sizeof(IdKey),.entrysize = sizeof(IdEntry),.hcxt = cache_context
	};

	by_name = hash_create("hotmesh_stream objects by name", 64, &name_ctl,
						  HASH_ELEM | HASH_FUNCTION | HASH_COMPARE | HASH_CONTEXT);
	by_id = hash_create("hotmesh_stream objects by id", 64, &id_ctl,
						HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Throw away what is out of date; returns the generation that the cache now has. */
static uint64
refresh_cache(void)
{
	uint64		now = hms_config_generation();

	if (likely(now == cache_generation && by_id != NULL))
		return now;

	/*
	 * Whatever concerns a stream comes by here, and needs shared memory
	 * later.
	 */
	hms_shmem_require();
	if (cache_context == NULL)
		cache_context = AllocSetContextCreate(TopMemoryContext, "hotmesh_stream objects",
											  ALLOCSET_DEFAULT_SIZES);
	by_name = NULL;
	by_id = NULL;
	MemoryContextReset(cache_context);
	create_tables();
	cache_generation = now;
	return now;
}

static Oid
object_log_relid(ObjectKind kind, const void *object)
{
	if (kind == KIND_NAMESPACE)
		return ((const HmsNamespace *) object)->log_relid;
	return ((const HmsStream *) object)->log_relid;
}

static void
remember(ObjectKind kind, const void *object)
{
	NameKey		name_key = {.kind = kind};
	IdKey		id_key = {kind, *(const int32 *) object};
	NameEntry  *name_entry;
	IdEntry    *id_entry;
	char	   *copy;
	bool		found;

	if (kind != KIND_GROUP && !OidIsValid(object_log_relid(kind, object)))
		return;

	copy = MemoryContextAlloc(cache_context, kinds[kind].size);
	memcpy(copy, object, kinds[kind].size);
	name_key.name = copy + kinds[kind].name_offset;
	if (kind == KIND_GROUP)
		name_key.parent = ((const HmsGroup *) object)->stream_id;

	name_entry = hash_search(by_name, &name_key, HASH_ENTER, &found);
	name_entry->key = name_key;
	name_entry->object = copy;
	id_entry = hash_search(by_id, &id_key, HASH_ENTER, &found);
	id_entry->object = copy;
}

static Oid
relset_member(Size offset)
{
	return *(const Oid *) ((const char *) hms_relset() + offset);
}

/* Read an object from its table, and keep it unless something changed meanwhile. */
static bool
load(ObjectKind kind, Size index_offset, int nkeys, ScanKey keys, uint64 as_of, void *out)
{
	const KindInfo *info = &kinds[kind];

	memset(out, 0, info->size);
	hms_config_each(relset_member(info->rel_offset), relset_member(index_offset),
					nkeys, keys, info->read, out);
	if (*(int32 *) out == 0)
		return false;
	if (refresh_cache() == as_of)
		remember(kind, out);
	return true;
}

static bool
find_by_name(ObjectKind kind, int32 parent, const char *name, void *out)
{
	uint64		as_of = refresh_cache();
	NameKey		key = {kind, parent, name};
	NameEntry  *entry = hash_search(by_name, &key, HASH_FIND, NULL);
	ScanKeyData keys[2];
	int			nkeys = 0;

	if (likely(entry != NULL))
	{
		memcpy(out, entry->object, kinds[kind].size);
		return true;
	}

	if (kind == KIND_GROUP)
	{
		hms_key_int4(&keys[nkeys], nkeys + 1, BTEqualStrategyNumber, parent);
		nkeys++;
	}
	hms_key_text(&keys[nkeys], nkeys + 1, cstring_to_text(name));
	nkeys++;
	return load(kind, kinds[kind].name_key_offset, nkeys, keys, as_of, out);
}

static bool
find_by_id(ObjectKind kind, int32 id, void *out)
{
	uint64		as_of = refresh_cache();
	IdKey		key = {kind, id};
	IdEntry    *entry = hash_search(by_id, &key, HASH_FIND, NULL);
	ScanKeyData scan_key;

	if (likely(entry != NULL))
	{
		memcpy(out, entry->object, kinds[kind].size);
		return true;
	}

	hms_key_int4(&scan_key, 1, BTEqualStrategyNumber, id);
	return load(kind, kinds[kind].pkey_offset, 1, &scan_key, as_of, out);
}

/* --- lookups ---------------------------------------------------------------- */

bool
hms_stream_find(const char *name, HmsStream *out)
{
	return find_by_name(KIND_STREAM, 0, name, out);
}

bool
hms_stream_by_id(int32 stream_id, HmsStream *out)
{
	return find_by_id(KIND_STREAM, stream_id, out);
}

bool
hms_group_find(int32 stream_id, const char *name, HmsGroup *out)
{
	return find_by_name(KIND_GROUP, stream_id, name, out);
}

bool
hms_group_by_id(int32 group_id, HmsGroup *out)
{
	return find_by_id(KIND_GROUP, group_id, out);
}

bool
hms_namespace_find(const char *name, HmsNamespace *out)
{
	return find_by_name(KIND_NAMESPACE, 0, name, out);
}

bool
hms_namespace_by_id(int32 namespace_id, HmsNamespace *out)
{
	return find_by_id(KIND_NAMESPACE, namespace_id, out);
}

/*
 * hms_stream_by_name
 *		The stream; raises HMS_ERRCODE_UNKNOWN_STREAM when there is none.
 */
void
hms_stream_by_name(const char *name, HmsStream *out)
{
	if (!hms_stream_find(name, out))
		ereport(ERROR,
				(errcode(HMS_ERRCODE_UNKNOWN_STREAM),
				 errmsg("stream \"%s\" does not exist", name)));
}

/*
 * hms_group_by_name
 *		The group of a stream; raises HMS_ERRCODE_UNKNOWN_GROUP when there is none.
 */
void
hms_group_by_name(const HmsStream *stream, const char *name, HmsGroup *out)
{
	if (!hms_group_find(stream->stream_id, name, out))
		ereport(ERROR,
				(errcode(HMS_ERRCODE_UNKNOWN_GROUP),
				 errmsg("consumer group \"%s\" of stream \"%s\" does not exist",
						name, stream->name)));
}

/* --- lists ------------------------------------------------------------------ */

typedef struct ListState
{
	ObjectKind	kind;
	int32		parent;			/* 0 = all */
	char	   *objects;
	int			n;
	int			allocated;
} ListState;

static int32
object_parent(ObjectKind kind, const void *object)
{
	switch (kind)
	{
		case KIND_STREAM:
			return ((const HmsStream *) object)->namespace_id;
		case KIND_GROUP:
			return ((const HmsGroup *) object)->stream_id;
		case KIND_NAMESPACE:
			break;
	}
	return 0;
}

static bool
collect_object(HeapTuple tuple, TupleDesc desc, void *arg)
{
	ListState  *state = arg;
	Size		size = kinds[state->kind].size;
	char	   *object;

	if (state->n == state->allocated)
	{
		state->allocated *= 2;
		state->objects = repalloc_huge(state->objects, state->allocated * size);
	}
	object = state->objects + state->n * size;
	memset(object, 0, size);
	(void) kinds[state->kind].read(tuple, desc, object);
	if (state->parent == 0 || object_parent(state->kind, object) == state->parent)
		state->n++;
	return true;
}

static int
compare_ids(const void *left, const void *right)
{
	int32		a = *(const int32 *) left;
	int32		b = *(const int32 *) right;

	return (a > b) - (a < b);
}

static int
list_objects(ObjectKind kind, int32 parent, void *out)
{
	const KindInfo *info = &kinds[kind];
	ListState	state = {.kind = kind,.parent = parent,.allocated = 16};
	Size		index_offset = info->pkey_offset;
	ScanKeyData key;
	int			nkeys = 0;

	if (kind == KIND_GROUP && parent != 0)
	{
		index_offset = info->name_key_offset;
		hms_key_int4(&key, 1, BTEqualStrategyNumber, parent);
		nkeys = 1;
	}
	state.objects = palloc(state.allocated * info->size);
	(void) hms_config_generation();
	hms_config_each(relset_member(info->rel_offset), relset_member(index_offset),
					nkeys, &key, collect_object, &state);
	qsort(state.objects, state.n, info->size, compare_ids);
	*(char **) out = state.objects;
	return state.n;
}

int
hms_list_namespaces(HmsNamespace **out)
{
	return list_objects(KIND_NAMESPACE, 0, out);
}

int
hms_list_streams(int32 namespace_id, HmsStream **out)
{
	return list_objects(KIND_STREAM, namespace_id, out);
}

int
hms_list_groups(int32 stream_id, HmsGroup **out)
{
	return list_objects(KIND_GROUP, stream_id, out);
}

/* --- small rules ------------------------------------------------------------ */

bool
hms_deliver_policy_parse(const char *word, HmsDeliverPolicy *out)
{
	if (strcmp(word, "all") == 0)
		*out = HMS_DELIVER_ALL;
	else if (strcmp(word, "new") == 0)
		*out = HMS_DELIVER_NEW;
	else
		return false;
	return true;
}

const char *
hms_deliver_policy_word(HmsDeliverPolicy policy)
{
	return policy == HMS_DELIVER_NEW ? "new" : "all";
}

/*
 * hms_group_backoff_us
 *		Pause after an attempt; the last entry repeats.
 */
int64
hms_group_backoff_us(const HmsGroup *group, int attempt)
{
	if (group->nbackoff == 0)
		return 0;
	return group->backoff_us[Max(Min(attempt, group->nbackoff), 1) - 1];
}
