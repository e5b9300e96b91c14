/*-------------------------------------------------------------------------
 *
 * presence.c
 *	  When consumers were last seen.
 *
 * One table by (database, group, name) of two times.  A read notes itself
 * under the table's LWLock in shared mode, so that an empty read takes no
 * transaction id and many backends with one consumer name do not wait for
 * each other.  When the table is full, the consumer seen longest ago gives
 * way.  The worker of each database saves what is here to the catalog; a
 * crash loses what it has not saved.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"

#include "guc.h"
#include "shmem/counters.h"
#include "shmem/table.h"

typedef struct PresenceKey
{
	Oid			dboid;
	int32		group_id;
	char		name[HMS_MAX_NAME_BYTES + 1];	/* zero padded */
} PresenceKey;

typedef struct PresenceEntry
{
	PresenceKey key;			/* table lock */
	pg_atomic_uint64 last_seen; /* TimestampTz */
	pg_atomic_uint64 last_active;	/* TimestampTz; DT_NOBEGIN = never */
} PresenceEntry;

static HmsTable *consumers = NULL;

/*
 * hms_presence_size, hms_presence_init
 *		The shared memory item: one table.
 */
Size
hms_presence_size(void)
{
	return hms_table_size(Max(hms_max_consumers, 1), sizeof(PresenceEntry));
}

void
hms_presence_init(void *ptr, bool found)
{
	consumers = hms_table_init(ptr, found, Max(hms_max_consumers, 1), sizeof(PresenceKey),
							   sizeof(PresenceEntry), "HotmeshStreamConsumer");
}

static void
fill_key(PresenceKey *key, int32 group_id, const char *consumer)
{
	memset(key, 0, sizeof(*key));
	key->dboid = MyDatabaseId;
	key->group_id = group_id;
	strlcpy(key->name, consumer, sizeof(key->name));
}

/* Find or make an entry, if need be in place of the oldest.  Exclusive lock. */
static PresenceEntry *
enter_entry(const PresenceKey *key)
{
	bool		found;
	PresenceEntry *entry = hms_table_enter(consumers, key, &found);

	if (entry == NULL)
	{
		uint64		touched;

		hms_table_remove(consumers, hms_table_oldest(consumers, &touched));
		entry = hms_table_enter(consumers, key, &found);
	}
	if (!found)
	{
		pg_atomic_init_u64(&entry->last_seen, (uint64) DT_NOBEGIN);
		pg_atomic_init_u64(&entry->last_active, (uint64) DT_NOBEGIN);
	}
	return entry;
}

/* Backends that race here differ by the time between two reads of one clock. */
static void
raise_time(pg_atomic_uint64 *target, TimestampTz t)
{
	if ((TimestampTz) pg_atomic_read_u64(target) < t)
		pg_atomic_write_u64(target, (uint64) t);
}

/*
 * hms_presence_note
 *		A consumer of the current database called read() at 'now'.
 */
void
hms_presence_note(int32 group_id, const char *consumer, TimestampTz now, bool active)
{
	PresenceKey key;
	PresenceEntry *entry;

	fill_key(&key, group_id, consumer);
	hms_table_lock(consumers, LW_SHARED);
	entry = hms_table_find(consumers, &key);
	if (entry == NULL)
	{
		hms_table_unlock(consumers);
		hms_table_lock(consumers, LW_EXCLUSIVE);
		entry = enter_entry(&key);
	}
	hms_table_touch(consumers, entry, (uint64) now);
	raise_time(&entry->last_seen, now);
	if (active)
		raise_time(&entry->last_active, now);
	hms_table_unlock(consumers);
}

/*
 * hms_presence_last_active
 *		When a consumer of the current database was handed messages last.
 */
TimestampTz
hms_presence_last_active(int32 group_id, const char *consumer)
{
	TimestampTz last_active = DT_NOBEGIN;
	PresenceKey key;
	PresenceEntry *entry;

	fill_key(&key, group_id, consumer);
	hms_table_lock(consumers, LW_SHARED);
	entry = hms_table_find(consumers, &key);
	if (entry != NULL)
		last_active = (TimestampTz) pg_atomic_read_u64(&entry->last_active);
	hms_table_unlock(consumers);
	return last_active;
}

/*
 * hms_presence_forget
 *		Forget one consumer of a group, or all (consumer = NULL).
 */
void
hms_presence_forget(int32 group_id, const char *consumer)
{
	int			position = 0;
	PresenceEntry *entry;

	hms_table_lock(consumers, LW_EXCLUSIVE);
	while ((entry = hms_table_next(consumers, &position)) != NULL)
	{
		if (entry->key.dboid == MyDatabaseId && entry->key.group_id == group_id &&
			(consumer == NULL || strcmp(entry->key.name, consumer) == 0))
			hms_table_remove(consumers, entry);
	}
	hms_table_unlock(consumers);
}

/*
 * hms_presence_forget_database
 *		Forget all consumers of a database.
 */
void
hms_presence_forget_database(Oid dboid)
{
	int			position = 0;
	PresenceEntry *entry;

	hms_table_lock(consumers, LW_EXCLUSIVE);
	while ((entry = hms_table_next(consumers, &position)) != NULL)
	{
		if (entry->key.dboid == dboid)
			hms_table_remove(consumers, entry);
	}
	hms_table_unlock(consumers);
}

/*
 * Copy the entries of this database seen since 'since', as many as fit, and
 * return how many there are.
 */
static int
copy_entries(TimestampTz since, HmsPresence *out, int room)
{
	int			position = 0;
	int			n = 0;
	PresenceEntry *entry;

	hms_table_lock(consumers, LW_SHARED);
	while ((entry = hms_table_next(consumers, &position)) != NULL)
	{
		TimestampTz last_seen = (TimestampTz) pg_atomic_read_u64(&entry->last_seen);

		if (entry->key.dboid != MyDatabaseId || last_seen < since)
			continue;
		if (n < room)
		{
			out[n].group_id = entry->key.group_id;
			memcpy(out[n].name, entry->key.name, sizeof(out[n].name));
			out[n].last_seen = last_seen;
			out[n].last_active = (TimestampTz) pg_atomic_read_u64(&entry->last_active);
		}
		n++;
	}
	hms_table_unlock(consumers);
	return n;
}

/*
 * hms_presence_list
 *		Consumers of the current database seen since 'since', in no order.
 *
 * Returns how many, and a palloc'd array of them in *out.
 */
int
hms_presence_list(TimestampTz since, HmsPresence **out)
{
	int			room = 64;
	int			n;

	/* Memory is not allocated under the lock; so count, and try again. */
	for (;;)
	{
		*out = palloc(room * sizeof(HmsPresence));
		n = copy_entries(since, *out, room);
		if (n <= room)
			return n;
		pfree(*out);
		room = n + n / 8;
	}
}
