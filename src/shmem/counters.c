/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  Cumulative statistics of streams and groups.
 *
 * Two tables, by (database, stream id) and (database, group id), of atomic
 * counters.  Committing transactions add to them under the table's LWLock in
 * shared mode; the exclusive mode is for making an entry, where in a full
 * table the one counted longest ago gives way.
 *
 * The postmaster writes both tables to a file when it stops cleanly, and
 * reads and removes the file when it starts.  So the counters survive a
 * restart, and start from zero after a crash, as PostgreSQL's own.  A file
 * that does not look as this version writes it is ignored with a LOG message.
 * The file: a header, stream records, group records, the CRC of it all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/stat.h>
#include <unistd.h>

#include "access/xact.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "port/pg_crc32c.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

#include "guc.h"
#include "shmem/counters.h"
#include "shmem/table.h"

#define STAT_FILE			PGSTAT_STAT_PERMANENT_DIRECTORY "/hotmesh_stream.stat"
#define STAT_TMP_FILE		STAT_FILE ".tmp"
#define STAT_FILE_MAGIC		0x484d5331	/* change it with the format */
#define MAX_COUNTERS		Max((int) HMS_STREAM_NCOUNTERS, (int) HMS_GROUP_NCOUNTERS)

typedef struct CounterKey
{
	Oid			dboid;
	int32		id;				/* of a stream or a group */
} CounterKey;

typedef struct CounterEntry
{
	CounterKey	key;			/* table lock */
	TimestampTz since;			/* set once, under the exclusive lock */
	pg_atomic_uint64 values[FLEXIBLE_ARRAY_MEMBER];
} CounterEntry;

typedef struct StatFileHeader
{
	uint32		magic;
	int32		stream_counters;	/* per record */
	int32		group_counters;
	int32		nstreams;		/* records */
	int32		ngroups;
	int32		unused;			/* zero */
} StatFileHeader;

/* In the file each record is followed by its counters. */
typedef struct StatFileRecord
{
	CounterKey	key;
	TimestampTz since;
} StatFileRecord;

static HmsTable *streams = NULL;
static HmsTable *groups = NULL;

static void load_stat_file(void);
static void save_stat_file(int code, Datum arg);

static int
capacity(void)
{
	return Max(hms_max_groups, 1);
}

static Size
entry_size(int ncounters)
{
	return offsetof(CounterEntry, values) + ncounters * sizeof(pg_atomic_uint64);
}

/*
 * hms_counters_size, hms_counters_init
 *		The shared memory item: a table for streams and one for groups.
 */
Size
hms_counters_size(void)
{
	return add_size(hms_table_size(capacity(), entry_size(HMS_STREAM_NCOUNTERS)),
					hms_table_size(capacity(), entry_size(HMS_GROUP_NCOUNTERS)));
}

void
hms_counters_init(void *ptr, bool found)
{
	char	   *second = (char *) ptr +
	hms_table_size(capacity(), entry_size(HMS_STREAM_NCOUNTERS));

	streams = hms_table_init(ptr, found, capacity(), sizeof(CounterKey),
							 entry_size(HMS_STREAM_NCOUNTERS), "HotmeshStreamCounter");
	groups = hms_table_init(second, found, capacity(), sizeof(CounterKey),
							entry_size(HMS_GROUP_NCOUNTERS), "HotmeshStreamCounter");
	if (!IsUnderPostmaster)
		on_shmem_exit(save_stat_file, (Datum) 0);
	if (!found)
		load_stat_file();
}

/* Find or make an entry, if need be in place of the oldest.  Exclusive lock. */
static CounterEntry *
enter_entry(HmsTable *table, const CounterKey *key, TimestampTz since, int ncounters)
{
	bool		found;
	CounterEntry *entry = hms_table_enter(table, key, &found);

	if (entry == NULL)
	{
		uint64		touched;

		hms_table_remove(table, hms_table_oldest(table, &touched));
		entry = hms_table_enter(table, key, &found);
	}
	if (found)
		return entry;

	entry->since = since;
	for (int i = 0; i < ncounters; i++)
		pg_atomic_init_u64(&entry->values[i], 0);
	return entry;
}

static void
count(HmsTable *table, const CounterKey *key, const int64 *delta, int ncounters)
{
	TimestampTz now = GetCurrentTransactionStopTimestamp();
	CounterEntry *entry;

	hms_table_lock(table, LW_SHARED);
	entry = hms_table_find(table, key);
	if (entry == NULL)
	{
		hms_table_unlock(table);
		hms_table_lock(table, LW_EXCLUSIVE);
		entry = enter_entry(table, key, now, ncounters);
	}
	hms_table_touch(table, entry, (uint64) now);
	for (int i = 0; i < ncounters; i++)
	{
		if (delta[i] != 0)
			pg_atomic_fetch_add_u64(&entry->values[i], delta[i]);
	}
	hms_table_unlock(table);
}

/*
 * hms_count_stream, hms_count_group
 *		Add a transaction's counts.
 *
 * Never fail: called in XACT_EVENT_COMMIT.
 */
void
hms_count_stream(Oid dboid, int32 stream_id, const int64 *delta)
{
	CounterKey	key = {dboid, stream_id};

	count(streams, &key, delta, HMS_STREAM_NCOUNTERS);
}

void
hms_count_group(Oid dboid, int32 group_id, const int64 *delta)
{
	CounterKey	key = {dboid, group_id};

	count(groups, &key, delta, HMS_GROUP_NCOUNTERS);
}

static bool
read_entry(HmsTable *table, const CounterKey *key, int64 *values, int ncounters,
		   TimestampTz *since)
{
	CounterEntry *entry;

	memset(values, 0, ncounters * sizeof(int64));
	*since = 0;

	hms_table_lock(table, LW_SHARED);
	entry = hms_table_find(table, key);
	if (entry)
	{
		*since = entry->since;
		for (int i = 0; i < ncounters; i++)
			values[i] = (int64) pg_atomic_read_u64(&entry->values[i]);
	}
	hms_table_unlock(table);
	return entry != NULL;
}

/*
 * hms_stream_counters, hms_group_counters
 *		Read an entry; false and zeroes when there is none.
 */
bool
hms_stream_counters(Oid dboid, int32 stream_id, int64 *values, TimestampTz *since)
{
	CounterKey	key = {dboid, stream_id};

	return read_entry(streams, &key, values, HMS_STREAM_NCOUNTERS, since);
}

bool
hms_group_counters(Oid dboid, int32 group_id, int64 *values, TimestampTz *since)
{
	CounterKey	key = {dboid, group_id};

	return read_entry(groups, &key, values, HMS_GROUP_NCOUNTERS, since);
}

static void
forget_entry(HmsTable *table, const CounterKey *key)
{
	CounterEntry *entry;

	hms_table_lock(table, LW_EXCLUSIVE);
	entry = hms_table_find(table, key);
	if (entry)
		hms_table_remove(table, entry);
	hms_table_unlock(table);
}

/*
 * hms_counters_forget_stream, hms_counters_forget_group
 *		Give back the entry of something that was dropped.
 */
void
hms_counters_forget_stream(Oid dboid, int32 stream_id)
{
	CounterKey	key = {dboid, stream_id};

	forget_entry(streams, &key);
}

void
hms_counters_forget_group(Oid dboid, int32 group_id)
{
	CounterKey	key = {dboid, group_id};

	forget_entry(groups, &key);
}

static void
forget_database(HmsTable *table, Oid dboid)
{
	int			position = 0;
	CounterEntry *entry;

	hms_table_lock(table, LW_EXCLUSIVE);
	while ((entry = hms_table_next(table, &position)) != NULL)
	{
		if (entry->key.dboid == dboid)
			hms_table_remove(table, entry);
	}
	hms_table_unlock(table);
}

/*
 * hms_counters_forget_database
 *		Give back all entries of a database.
 */
void
hms_counters_forget_database(Oid dboid)
{
	forget_database(streams, dboid);
	forget_database(groups, dboid);
}

/* --- the file; nobody else runs, so no locks ---------------------------------- */

static void
append_table(StringInfo buf, HmsTable *table, int ncounters)
{
	int			position = 0;
	CounterEntry *entry;

	while ((entry = hms_table_next(table, &position)) != NULL)
	{
		StatFileRecord record = {entry->key, entry->since};

		appendBinaryStringInfo(buf, (char *) &record, sizeof(record));
		for (int i = 0; i < ncounters; i++)
		{
			uint64		value = pg_atomic_read_u64(&entry->values[i]);

			appendBinaryStringInfo(buf, (char *) &value, sizeof(value));
		}
	}
}

static void
append_file_image(StringInfo buf)
{
	StatFileHeader header = {
		.magic = STAT_FILE_MAGIC,
		.stream_counters = HMS_STREAM_NCOUNTERS,
		.group_counters = HMS_GROUP_NCOUNTERS,
		.nstreams = hms_table_used(streams),
		.ngroups = hms_table_used(groups),
	};
	pg_crc32c	crc;

	appendBinaryStringInfo(buf, (char *) &header, sizeof(header));
	append_table(buf, streams, HMS_STREAM_NCOUNTERS);
	append_table(buf, groups, HMS_GROUP_NCOUNTERS);

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, buf->data, buf->len);
	FIN_CRC32C(crc);
	appendBinaryStringInfo(buf, (char *) &crc, sizeof(crc));
}

static bool
write_image(FILE *file, StringInfo image)
{
	bool		written = fwrite(image->data, 1, image->len, file) == (size_t) image->len;

	/* FreeFile() reports what is found only when the buffer is flushed. */
	return FreeFile(file) == 0 && written;
}

static void
save_stat_file(int code, Datum arg)
{
	StringInfoData image;
	FILE	   *file;

	/* After a crash, what is in memory is not to be trusted. */
	if (code != 0)
		return;

	initStringInfo(&image);
	append_file_image(&image);

	file = AllocateFile(STAT_TMP_FILE, PG_BINARY_W);
	if (file == NULL || !write_image(file, &image))
	{
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not write file \"%s\": %m", STAT_TMP_FILE)));
		unlink(STAT_TMP_FILE);
		return;
	}
	(void) durable_rename(STAT_TMP_FILE, STAT_FILE, LOG);
}

/* True when the image is one that append_file_image() has made. */
static bool
image_is_sound(const char *image, Size size)
{
	const StatFileHeader *header = (const StatFileHeader *) image;
	Size		expected = sizeof(StatFileHeader);
	pg_crc32c	crc;

	if (size < sizeof(StatFileHeader) + sizeof(crc) ||
		header->magic != STAT_FILE_MAGIC ||
		header->stream_counters != HMS_STREAM_NCOUNTERS ||
		header->group_counters != HMS_GROUP_NCOUNTERS ||
		header->nstreams < 0 || header->ngroups < 0)
		return false;

	expected += header->nstreams *
		(sizeof(StatFileRecord) + HMS_STREAM_NCOUNTERS * sizeof(uint64));
	expected += header->ngroups *
		(sizeof(StatFileRecord) + HMS_GROUP_NCOUNTERS * sizeof(uint64));
	if (size != expected + sizeof(crc))
		return false;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, image, expected);
	FIN_CRC32C(crc);
	return memcmp(&crc, image + expected, sizeof(crc)) == 0;
}

/* Fill a table from its records and return where they end. */
static const char *
load_table(HmsTable *table, const char *at, int nrecords, int ncounters)
{
	for (int i = 0; i < nrecords; i++)
	{
		StatFileRecord record;
		uint64		values[MAX_COUNTERS];
		bool		found;
		CounterEntry *entry;

		memcpy(&record, at, sizeof(record));
		at += sizeof(record);
		memcpy(values, at, ncounters * sizeof(uint64));
		at += ncounters * sizeof(uint64);

		/* The table may have been larger before the restart. */
		entry = hms_table_enter(table, &record.key, &found);
		if (entry == NULL)
			continue;
		hms_table_touch(table, entry, (uint64) record.since);
		entry->since = record.since;
		for (int c = 0; c < ncounters; c++)
			pg_atomic_init_u64(&entry->values[c], values[c]);
	}
	return at;
}

static void
load_image(const char *image)
{
	const StatFileHeader *header = (const StatFileHeader *) image;
	const char *at = image + sizeof(StatFileHeader);

	at = load_table(streams, at, header->nstreams, HMS_STREAM_NCOUNTERS);
	(void) load_table(groups, at, header->ngroups, HMS_GROUP_NCOUNTERS);
}

/* Read a whole file into palloc'd memory; NULL and errno when that fails. */
static char *
read_image(FILE *file, Size *size)
{
	struct stat st;
	char	   *image;

	if (fstat(fileno(file), &st) != 0)
		return NULL;
	if (st.st_size <= 0 || st.st_size >= MaxAllocSize)
	{
		*size = 0;
		return palloc(1);
	}
	image = palloc(st.st_size);
	*size = fread(image, 1, st.st_size, file);
	if (ferror(file))
	{
		pfree(image);
		return NULL;
	}
	return image;
}

static void
load_stat_file(void)
{
	FILE	   *file = AllocateFile(STAT_FILE, PG_BINARY_R);
	char	   *image;
	Size		size;

	if (file == NULL && errno == ENOENT)
		return;

	image = file ? read_image(file, &size) : NULL;
	if (image == NULL)
		ereport(LOG,
				(errcode_for_file_access(),
				 errmsg("could not read file \"%s\": %m", STAT_FILE)));
	else if (!image_is_sound(image, size))
		ereport(LOG,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("ignoring invalid data in file \"%s\"", STAT_FILE)));
	else
		load_image(image);

	if (image)
		pfree(image);
	if (file)
		FreeFile(file);

	/* Not to be found again after a crash, when it is out of date. */
	unlink(STAT_FILE);
}
