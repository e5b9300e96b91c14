/*-------------------------------------------------------------------------
 *
 * table.c
 *	  Hash tables of fixed size in shared memory.
 *
 * A table is one block: this header, an array of buckets, an array of
 * entries.  Buckets hold the number of their first entry plus one and each
 * entry the number of the next plus one, 0 ends a chain.  Entries that were
 * never used are handed out in order, so that a large table costs memory
 * only as far as it is used; entries given back wait in a queue, so that a
 * stale pointer meets a new user as late as possible.
 *
 * One LWLock protects keys and chains: shared to find, exclusive to make and
 * remove.  What an entry holds behind its key is its owner's to protect.
 * The postmaster uses a table without the lock, while nobody else runs.
 * Nothing survives a crash.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#include "shmem/shmem.h"
#include "shmem/table.h"

/* How many entries hms_table_oldest() looks at. */
#define OLDEST_WINDOW	256

struct HmsTable
{
	LWLock		lock;
	int			tranche_id;
	int			capacity;
	int			nbuckets;		/* a power of two */
	Size		key_size;
	Size		stride;			/* from one entry to the next */
	int			nused;
	int			nfresh;			/* entries from here on were never used */
	int			free_head;		/* queue of entries given back, 0 = empty */
	int			free_tail;
	int			hand;			/* where hms_table_oldest() goes on */
	uint32		births;
};

/* Precedes each entry. */
typedef struct EntryHead
{
	pg_atomic_uint64 touched;
	uint32		hash;
	uint32		birth;
	int			next;			/* in its chain or in the free queue */
	bool		used;
} EntryHead;

#define HEAD_SIZE		MAXALIGN(sizeof(EntryHead))
#define HEAD_OF(entry)	((EntryHead *) ((char *) (entry) - HEAD_SIZE))
#define ENTRY_OF(head)	((void *) ((char *) (head) + HEAD_SIZE))

static int
bucket_count(int capacity)
{
	return (int) pg_nextpower2_32((uint32) capacity);
}

static Size
entry_stride(Size entry_size)
{
	return CACHELINEALIGN(HEAD_SIZE + entry_size);
}

/* Entries begin here; everything before is header and buckets. */
static Size
entries_offset(int nbuckets)
{
	return CACHELINEALIGN(add_size(MAXALIGN(sizeof(HmsTable)),
								   mul_size(nbuckets, sizeof(int))));
}

static int *
bucket_of(HmsTable *table, uint32 hash)
{
	int		   *buckets = (int *) ((char *) table + MAXALIGN(sizeof(HmsTable)));

	return &buckets[hash & (table->nbuckets - 1)];
}

/* By number plus one, as chains hold it. */
static EntryHead *
head_at(HmsTable *table, int link)
{
	return (EntryHead *) ((char *) table + entries_offset(table->nbuckets) +
						  (Size) (link - 1) * table->stride);
}

static int
link_of(HmsTable *table, EntryHead *head)
{
	return (int) (((char *) head - (char *) head_at(table, 1)) / table->stride) + 1;
}

static void *
find_hashed(HmsTable *table, const void *key, uint32 hash)
{
	int			link = *bucket_of(table, hash);

	while (link != 0)
	{
		EntryHead  *head = head_at(table, link);

		if (head->hash == hash && memcmp(ENTRY_OF(head), key, table->key_size) == 0)
			return ENTRY_OF(head);
		link = head->next;
	}
	return NULL;
}

static uint32
hash_key(HmsTable *table, const void *key)
{
	return hash_bytes((const unsigned char *) key, (int) table->key_size);
}

/*
 * hms_table_size
 *		Shared memory for 'capacity' entries of 'entry_size' bytes.
 */
Size
hms_table_size(int capacity, Size entry_size)
{
	return add_size(entries_offset(bucket_count(capacity)),
					mul_size(capacity, entry_stride(entry_size)));
}

/*
 * hms_table_init
 *		Set up a table in the hms_table_size() bytes at 'ptr'.
 */
HmsTable *
hms_table_init(void *ptr, bool found, int capacity, Size key_size,
			   Size entry_size, const char *tranche)
{
	HmsTable   *table = (HmsTable *) ptr;

	if (!found)
	{
		memset(table, 0, entries_offset(bucket_count(capacity)));
		table->capacity = capacity;
		table->nbuckets = bucket_count(capacity);
		table->key_size = key_size;
		table->stride = entry_stride(entry_size);
	}
	hms_shmem_tranche(&table->tranche_id, found, tranche);
	if (!found)
		LWLockInitialize(&table->lock, table->tranche_id);

	return table;
}

/*
 * hms_table_prepare
 *		Call 'prepare' on the memory of every entry.
 */
void
hms_table_prepare(HmsTable *table, void (*prepare) (void *entry))
{
	for (int link = 1; link <= table->capacity; link++)
		prepare(ENTRY_OF(head_at(table, link)));
}

/*
 * hms_table_lock, hms_table_unlock
 *		Take and release the table's lock.
 */
void
hms_table_lock(HmsTable *table, LWLockMode mode)
{
	LWLockAcquire(&table->lock, mode);
}

void
hms_table_unlock(HmsTable *table)
{
	LWLockRelease(&table->lock);
}

/*
 * hms_table_find
 *		The entry with 'key', or NULL.
 */
void *
hms_table_find(HmsTable *table, const void *key)
{
	Assert(!IsUnderPostmaster || LWLockHeldByMe(&table->lock));

	return find_hashed(table, key, hash_key(table, key));
}

/* Memory for one more entry, or NULL. */
static EntryHead *
take_free(HmsTable *table)
{
	EntryHead  *head;

	if (table->nfresh < table->capacity)
	{
		head = head_at(table, ++table->nfresh);
		pg_atomic_init_u64(&head->touched, 0);
		return head;
	}
	if (table->free_head == 0)
		return NULL;

	head = head_at(table, table->free_head);
	table->free_head = head->next;
	if (table->free_head == 0)
		table->free_tail = 0;
	return head;
}

/*
 * hms_table_enter
 *		Find or make the entry with 'key'; NULL when the table is full.
 */
void *
hms_table_enter(HmsTable *table, const void *key, bool *found)
{
	uint32		hash = hash_key(table, key);
	int		   *bucket = bucket_of(table, hash);
	EntryHead  *head;
	void	   *entry;

	Assert(!IsUnderPostmaster || LWLockHeldByMeInMode(&table->lock, LW_EXCLUSIVE));

	entry = find_hashed(table, key, hash);
	*found = entry != NULL;
	if (entry)
		return entry;

	head = take_free(table);
	if (head == NULL)
		return NULL;

	pg_atomic_write_u64(&head->touched, 0);
	head->hash = hash;
	head->birth = ++table->births;
	head->used = true;
	head->next = *bucket;
	*bucket = link_of(table, head);
	table->nused++;

	entry = ENTRY_OF(head);
	memcpy(entry, key, table->key_size);
	return entry;
}

/*
 * hms_table_remove
 *		Take an entry out of the table.
 */
void
hms_table_remove(HmsTable *table, void *entry)
{
	EntryHead  *head = HEAD_OF(entry);
	int			link = link_of(table, head);
	int		   *from = bucket_of(table, head->hash);

	Assert(LWLockHeldByMeInMode(&table->lock, LW_EXCLUSIVE));
	Assert(head->used);

	while (*from != link)
		from = &head_at(table, *from)->next;
	*from = head->next;

	head->used = false;
	head->next = 0;
	if (table->free_tail != 0)
		head_at(table, table->free_tail)->next = link;
	else
		table->free_head = link;
	table->free_tail = link;
	table->nused--;
}

/*
 * hms_table_next
 *		Walk over the entries in use.
 */
void *
hms_table_next(HmsTable *table, int *position)
{
	while (*position < table->nfresh)
	{
		EntryHead  *head = head_at(table, ++(*position));

		if (head->used)
			return ENTRY_OF(head);
	}
	return NULL;
}

/*
 * hms_table_touch
 *		Note that an entry was used at 'when'; an earlier time is ignored.
 */
void
hms_table_touch(HmsTable *table, void *entry, uint64 when)
{
	pg_atomic_uint64 *touched = &HEAD_OF(entry)->touched;

	/* Two backends that race here lose an instant of precision at most. */
	if (pg_atomic_read_u64(touched) < when)
		pg_atomic_write_u64(touched, when);
}

/*
 * hms_table_oldest
 *		A candidate for removal: the entry touched longest ago.
 *
 * Exact while the table has no more than OLDEST_WINDOW entries; of a larger
 * one a window that moves on with each call is looked at, to bound the time
 * that the lock is held.
 */
void *
hms_table_oldest(HmsTable *table, uint64 *touched)
{
	EntryHead  *oldest = NULL;

	for (int i = 0; i < Min(OLDEST_WINDOW, table->nfresh); i++)
	{
		EntryHead  *head;

		table->hand = table->hand % table->nfresh + 1;
		head = head_at(table, table->hand);
		if (head->used &&
			(oldest == NULL ||
			 pg_atomic_read_u64(&head->touched) < pg_atomic_read_u64(&oldest->touched)))
			oldest = head;
	}
	if (oldest == NULL)
		return NULL;

	*touched = pg_atomic_read_u64(&oldest->touched);
	return ENTRY_OF(oldest);
}

/*
 * hms_table_birth
 *		Tell apart entries that had the same key or the same memory.
 */
uint32
hms_table_birth(HmsTable *table, void *entry)
{
	return HEAD_OF(entry)->birth;
}

/*
 * hms_table_used, hms_table_capacity
 *		How full the table is.
 */
int
hms_table_used(HmsTable *table)
{
	return table->nused;
}

int
hms_table_capacity(HmsTable *table)
{
	return table->capacity;
}
