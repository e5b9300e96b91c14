/*-------------------------------------------------------------------------
 *
 * log_slot.c
 *	  Per log: the closed bound and the newest partition in use.
 *
 * A slot is {closed bound, newest, default used, loaded}, all atomic and all
 * moving one way only, so that publishers read it without a lock and several
 * backends may load it at once: whatever the order, the maximum wins.  The
 * catalog's closed bound is merged before 'loaded' is set, so whoever finds a
 * loaded slot reads a bound that has it.
 *
 * The table's LWLock protects which log has which slot.  Slots go only with
 * their log or database.  After a crash or restart all slots are gone, and
 * their first users load them from the catalog and the partitions' sizes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/atomics.h"

#include "guc.h"
#include "shmem/log_slot.h"
#include "shmem/table.h"

typedef struct LogSlotKey
{
	Oid			dboid;
	Oid			log_relid;
} LogSlotKey;

/* Times are kept as TimestampTz plus 2^63, so that they compare as unsigned. */
struct HmsLogSlot
{
	LogSlotKey	key;			/* table lock */
	pg_atomic_uint64 closed_bound;
	pg_atomic_uint64 newest;
	pg_atomic_uint32 default_used;
	pg_atomic_uint32 loaded;
};

static HmsTable *logs = NULL;

static inline uint64
encode_time(TimestampTz t)
{
	return (uint64) t ^ (UINT64CONST(1) << 63);
}

static inline TimestampTz
decode_time(uint64 t)
{
	return (TimestampTz) (t ^ (UINT64CONST(1) << 63));
}

/* Merge by maximum. */
static void
raise_time(pg_atomic_uint64 *target, TimestampTz t)
{
	uint64		raised = encode_time(t);
	uint64		current = pg_atomic_read_u64(target);

	while (current < raised)
	{
		if (pg_atomic_compare_exchange_u64(target, &current, raised))
			break;
	}
}

/*
 * hms_log_slot_size, hms_log_slot_init
 *		The shared memory item: one slot per namespace.
 */
Size
hms_log_slot_size(void)
{
	return hms_table_size(Max(hms_max_namespaces, 1), sizeof(HmsLogSlot));
}

void
hms_log_slot_init(void *ptr, bool found)
{
	logs = hms_table_init(ptr, found, Max(hms_max_namespaces, 1), sizeof(LogSlotKey),
						  sizeof(HmsLogSlot), "HotmeshStreamLog");
}

/* Find or make a slot; NULL when the table is full.  The exclusive lock is held. */
static HmsLogSlot *
enter_slot(const LogSlotKey *key)
{
	bool		found;
	HmsLogSlot *slot = hms_table_enter(logs, key, &found);

	if (slot == NULL || found)
		return slot;

	pg_atomic_init_u64(&slot->closed_bound, encode_time(DT_NOBEGIN));
	pg_atomic_init_u64(&slot->newest, encode_time(DT_NOBEGIN));
	pg_atomic_init_u32(&slot->default_used, 0);
	pg_atomic_init_u32(&slot->loaded, 0);
	return slot;
}

/*
 * hms_log_slot
 *		Find or make the slot of a log of the current database.
 */
HmsLogSlot *
hms_log_slot(Oid log_relid, bool *created)
{
	LogSlotKey	key = {MyDatabaseId, log_relid};
	HmsLogSlot *slot;

	hms_table_lock(logs, LW_SHARED);
	slot = hms_table_find(logs, &key);
	if (slot == NULL)
	{
		hms_table_unlock(logs);
		hms_table_lock(logs, LW_EXCLUSIVE);
		slot = enter_slot(&key);
	}
	hms_table_unlock(logs);

	*created = slot != NULL && pg_atomic_read_u32(&slot->loaded) == 0;
	pg_read_barrier();			/* 'loaded' before what it vouches for */
	return slot;
}

/*
 * hms_log_slot_forget
 *		Give back the slot of a dropped log.
 */
void
hms_log_slot_forget(Oid log_relid)
{
	LogSlotKey	key = {MyDatabaseId, log_relid};
	HmsLogSlot *slot;

	hms_table_lock(logs, LW_EXCLUSIVE);
	slot = hms_table_find(logs, &key);
	if (slot)
		hms_table_remove(logs, slot);
	hms_table_unlock(logs);
}

/*
 * hms_log_closed_bound
 *		No message is published before this time.
 */
TimestampTz
hms_log_closed_bound(HmsLogSlot *slot)
{
	return decode_time(pg_atomic_read_u64(&slot->closed_bound));
}

/*
 * hms_log_raise_closed_bound
 *		Raise the bound; a full barrier when it moves.
 */
void
hms_log_raise_closed_bound(HmsLogSlot *slot, TimestampTz bound)
{
	raise_time(&slot->closed_bound, bound);
}

/*
 * hms_log_newest
 *		Upper limit of the lower bounds of partitions that may hold rows;
 *		DT_NOEND while the slot is not loaded.
 */
TimestampTz
hms_log_newest(HmsLogSlot *slot)
{
	if (pg_atomic_read_u32(&slot->loaded) == 0)
		return DT_NOEND;
	pg_read_barrier();
	return decode_time(pg_atomic_read_u64(&slot->newest));
}

/*
 * hms_log_raise_newest
 *		A publisher is about to insert into the partition that begins here.
 */
void
hms_log_raise_newest(HmsLogSlot *slot, TimestampTz lower_bound)
{
	raise_time(&slot->newest, lower_bound);
}

/*
 * hms_log_set_base_newest
 *		What the partitions' sizes say; the slot is loaded with it.
 */
void
hms_log_set_base_newest(HmsLogSlot *slot, TimestampTz lower_bound, bool default_used)
{
	raise_time(&slot->newest, lower_bound);
	if (default_used)
		pg_atomic_write_u32(&slot->default_used, 1);
	pg_write_barrier();
	pg_atomic_write_u32(&slot->loaded, 1);
}

/*
 * hms_log_default_used
 *		True when the default partition may hold rows, or nobody knows yet.
 */
bool
hms_log_default_used(HmsLogSlot *slot)
{
	if (pg_atomic_read_u32(&slot->loaded) == 0)
		return true;
	pg_read_barrier();
	return pg_atomic_read_u32(&slot->default_used) != 0;
}

/*
 * hms_log_set_default_used
 *		A publisher is about to insert into the default partition.
 */
void
hms_log_set_default_used(HmsLogSlot *slot)
{
	/* An exchange, for its barrier: the mark comes before the row. */
	(void) pg_atomic_exchange_u32(&slot->default_used, 1);
}

/*
 * hms_log_slot_forget_database
 *		Give back all slots of a database.
 */
void
hms_log_slot_forget_database(Oid dboid)
{
	int			position = 0;
	HmsLogSlot *slot;

	hms_table_lock(logs, LW_EXCLUSIVE);
	while ((slot = hms_table_next(logs, &position)) != NULL)
	{
		if (slot->key.dboid == dboid)
			hms_table_remove(logs, slot);
	}
	hms_table_unlock(logs);
}

/*
 * hms_log_slot_usage
 *		How full the table is.
 */
void
hms_log_slot_usage(int *used, int *size)
{
	*used = hms_table_used(logs);
	*size = hms_table_capacity(logs);
}
