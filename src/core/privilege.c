/*-------------------------------------------------------------------------
 *
 * privilege.c
 *	  Who may publish to, consume from and manage a stream.
 *
 * Grants are rows (stream, role, privilege); stream 0 stands for the database
 * and covers every stream of it.  A role holds what was granted to it and to
 * the roles whose privileges it has; 'manage' includes the other two.
 * Superusers and those who have the privileges of the extension's owner may
 * do everything and need no rows.
 *
 * Every call of a data function asks, so the answer per (role, stream) is
 * cached in the backend.  It is void when a row of the configuration changes
 * (hms_config_generation) or a role or membership does (syscache callbacks).
 *
 * Changes of one stream's grants are serialised by the lock of its id.  Rows
 * are not in pg_shdepend: they are deleted by the housekeeper, which a DROP ROLE
 * in the same database starts, and cannot give anybody anything meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "core/privilege.h"
#include "core/rows.h"
#include "storage/config.h"
#include "storage/relset.h"
#include "storage/scan.h"

#define BIT(privilege)	(1 << (privilege))
#define ALL_BITS		(BIT(HMS_PRIV_PUBLISH) | BIT(HMS_PRIV_CONSUME) | BIT(HMS_PRIV_MANAGE))
#define MONITOR_BIT		(BIT(HMS_PRIV_MANAGE) << 1)

static const char *const words[] = {
	[HMS_PRIV_PUBLISH] = "publish",
	[HMS_PRIV_CONSUME] = "consume",
	[HMS_PRIV_MANAGE] = "manage"
};

typedef struct MaskKey
{
	Oid			role;
	int32		stream_id;
} MaskKey;

typedef struct MaskEntry
{
	MaskKey		key;
	int			mask;			/* BIT()s and MONITOR_BIT */
} MaskEntry;

static HTAB *masks = NULL;
static uint64 masks_generation = 0;
static bool roles_changed = false;
static bool callbacks_registered = false;

/* --- rows ------------------------------------------------------------------- */

typedef struct Grant
{
	int32		stream_id;
	Oid			role;
	char		word[16];
} Grant;

static void
read_grant(HeapTuple tuple, TupleDesc desc, Grant *out)
{
	bool		isnull;
	Datum		word = hms_config_attr(tuple, desc, HMS_PRIVILEGE_COL_PRIVILEGE, &isnull);

	out->stream_id =
		DatumGetInt32(hms_config_attr(tuple, desc, HMS_PRIVILEGE_COL_STREAM_ID, &isnull));
	out->role =
		DatumGetObjectId(hms_config_attr(tuple, desc, HMS_PRIVILEGE_COL_ROLE, &isnull));
	text_to_cstring_buffer(DatumGetTextPP(word), out->word, sizeof(out->word));
}

/* Visit the grants of one stream, or of the database (0). */
static void
each_grant(int32 stream_id, HmsConfigVisitor visit, void *arg)
{
	const HmsRelset *rels = hms_relset();
	ScanKeyData key;

	hms_key_int4(&key, 1, BTEqualStrategyNumber, stream_id);
	hms_config_each(rels->privilege_rel, rels->privilege_pkey, 1, &key, visit, arg);
}

/* Serialise changes of one stream's grants. */
static void
lock_grants(int32 stream_id)
{
	char		name[16];

	snprintf(name, sizeof(name), "%d", stream_id);
	hms_config_lock(hms_relset()->privilege_rel, name);
}

/* --- who may ----------------------------------------------------------------- */

static void
roles_invalidated(Datum arg, int cacheid, uint32 hashvalue)
{
	roles_changed = true;
}

/* The cache of masks, emptied if anything changed that they depend on. */
static HTAB *
current_masks(void)
{
	uint64		now = hms_config_generation();
	HASHCTL		ctl = {.keysize = sizeof(MaskKey),.entrysize = sizeof(MaskEntry)};

	if (likely(masks != NULL && now == masks_generation && !roles_changed))
		return masks;

	if (!callbacks_registered)
	{
		CacheRegisterSyscacheCallback(AUTHMEMROLEMEM, roles_invalidated, (Datum) 0);
		CacheRegisterSyscacheCallback(AUTHOID, roles_invalidated, (Datum) 0);
		callbacks_registered = true;
	}
	if (masks != NULL)
		hash_destroy(masks);
	masks = NULL;
	masks = hash_create("hotmesh_stream privileges", 32, &ctl, HASH_ELEM | HASH_BLOBS);
	masks_generation = now;
	roles_changed = false;
	return masks;
}

typedef struct MaskScan
{
	Oid			role;
	int			mask;
} MaskScan;

static bool
add_to_mask(HeapTuple tuple, TupleDesc desc, void *arg)
{
	MaskScan   *scan = arg;
	Grant		grant;

	read_grant(tuple, desc, &grant);
	if (!has_privs_of_role(scan->role, grant.role))
		return true;
	for (int i = 0; i < lengthof(words); i++)
	{
		if (strcmp(grant.word, words[i]) == 0)
			scan->mask |= (i == HMS_PRIV_MANAGE) ? ALL_BITS : BIT(i);
	}
	return true;
}

/* Superusers and the extension's owner. */
static bool
may_do_everything(Oid role)
{
	return superuser_arg(role) || has_privs_of_role(role, hms_relset()->owner);
}

static int
compute_mask(Oid role, int32 stream_id)
{
	MaskScan	scan = {.role = role};

	if (may_do_everything(role))
		return ALL_BITS | MONITOR_BIT;

	if (has_privs_of_role(role, ROLE_PG_MONITOR))
		scan.mask = MONITOR_BIT;
	each_grant(0, add_to_mask, &scan);
	if (stream_id != 0)
		each_grant(stream_id, add_to_mask, &scan);
	return scan.mask;
}

/* What the current user may do with a stream, or with the database (0). */
static int
current_mask(int32 stream_id)
{
	MaskKey		key = {GetUserId(), stream_id};
	MaskEntry  *entry = hash_search(current_masks(), &key, HASH_FIND, NULL);
	uint64		as_of;
	HTAB	   *table;
	int			mask;
	bool		found;

	if (likely(entry != NULL))
		return entry->mask;

	as_of = masks_generation;
	mask = compute_mask(key.role, stream_id);

	/* Keep it unless an invalidation arrived while we computed. */
	if (hms_config_generation() != as_of || roles_changed)
		return mask;
	table = current_masks();
	entry = hash_search(table, &key, HASH_ENTER, &found);
	entry->mask = mask;
	return mask;
}

bool
hms_privilege_has(HmsPrivilege privilege, int32 stream_id)
{
	return (current_mask(stream_id) & BIT(privilege)) != 0;
}

static void
deny(int32 stream_id, const char *stream_name, const char *needed)
{
	if (stream_id == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for streams of database \"%s\"",
						get_database_name(MyDatabaseId)),
				 errdetail("The privilege %s on the database is needed.", needed),
				 errhint("Grant it with hotmesh_stream.grant_stream(null, ...).")));
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for stream \"%s\"", stream_name),
			 errdetail("The privilege %s on the stream is needed.", needed),
			 errhint("Grant it with hotmesh_stream.grant_stream().")));
}

/*
 * hms_privilege_check
 *		Raise 42501 unless the current user holds a privilege.
 */
void
hms_privilege_check(HmsPrivilege privilege, int32 stream_id, const char *stream_name)
{
	if (unlikely(!hms_privilege_has(privilege, stream_id)))
		deny(stream_id, stream_name, psprintf("\"%s\"", words[privilege]));
}

/*
 * hms_privilege_check_info
 *		Raise 42501 unless the current user holds any privilege on the stream or
 *		those of pg_monitor.
 */
void
hms_privilege_check_info(int32 stream_id, const char *stream_name)
{
	if (current_mask(stream_id) == 0)
		deny(stream_id, stream_name, "\"publish\", \"consume\" or \"manage\"");
}

/* --- changes ---------------------------------------------------------------- */

typedef struct GrantSearch
{
	Oid			role;
	const char *word;
	HeapTuple	found;
} GrantSearch;

static bool
match_grant(HeapTuple tuple, TupleDesc desc, void *arg)
{
	GrantSearch *search = arg;
	Grant		grant;

	read_grant(tuple, desc, &grant);
	if (grant.role != search->role || strcmp(grant.word, search->word) != 0)
		return true;
	search->found = heap_copytuple(tuple);
	return false;
}

/* The row of one grant, copied; NULL if there is none. */
static HeapTuple
find_grant(int32 stream_id, Oid role, const char *word)
{
	GrantSearch search = {.role = role,.word = word};

	each_grant(stream_id, match_grant, &search);
	return search.found;
}

/* Add a row unless it exists.  The grants of the stream are locked. */
static void
add_grant(int32 stream_id, HmsPrivilege privilege, Oid role)
{
	Datum		values[HMS_PRIVILEGE_NCOLUMNS];
	bool		nulls[HMS_PRIVILEGE_NCOLUMNS] = {false};

	if (find_grant(stream_id, role, words[privilege]) != NULL)
		return;
	values[HMS_PRIVILEGE_COL_STREAM_ID - 1] = Int32GetDatum(stream_id);
	values[HMS_PRIVILEGE_COL_ROLE - 1] = ObjectIdGetDatum(role);
	values[HMS_PRIVILEGE_COL_PRIVILEGE - 1] = CStringGetTextDatum(words[privilege]);
	hms_config_insert(hms_relset()->privilege_rel, values, nulls);
}

/*
 * hms_privilege_grant
 *		Grant a privilege to a role; nothing happens when it has it already.
 *
 * Raises 42704 for a role that does not exist.  The role cannot be dropped before our
 * transaction ends.
 */
void
hms_privilege_grant(int32 stream_id, HmsPrivilege privilege, Oid role)
{
	if (OidIsValid(role))
		LockSharedObject(AuthIdRelationId, role, 0, AccessShareLock);
	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(role)))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("role with OID %u does not exist", role)));
	lock_grants(stream_id);
	add_grant(stream_id, privilege, role);
}

/*
 * hms_privilege_revoke
 *		Take one grant back; false when the role did not have exactly this one.
 */
bool
hms_privilege_revoke(int32 stream_id, HmsPrivilege privilege, Oid role)
{
	HeapTuple	tuple;

	lock_grants(stream_id);
	tuple = find_grant(stream_id, role, words[privilege]);
	if (tuple == NULL)
		return false;
	hms_config_delete(hms_relset()->privilege_rel, tuple);
	return true;
}

/*
 * hms_privilege_grant_creator
 *		Grant everything on a new stream to the current user, unless it is one
 *		that needs no grants.
 */
void
hms_privilege_grant_creator(int32 stream_id)
{
	Oid			role = GetUserId();

	if (may_do_everything(role))
		return;
	lock_grants(stream_id);
	for (int i = 0; i < lengthof(words); i++)
		add_grant(stream_id, (HmsPrivilege) i, role);
}

/*
 * hms_privilege_forget_stream
 *		Delete the grants of a dropped stream.
 */
void
hms_privilege_forget_stream(int32 stream_id)
{
	const HmsRelset *rels = hms_relset();
	ScanKeyData key;

	lock_grants(stream_id);
	hms_key_int4(&key, 1, BTEqualStrategyNumber, stream_id);
	(void) hms_config_delete_all(rels->privilege_rel, rels->privilege_pkey, 1, &key);
}

/* --- roles that no longer exist ------------------------------------------------ */

static bool
collect_dangling(HeapTuple tuple, TupleDesc desc, void *arg)
{
	List	  **grants = arg;
	Grant	   *grant = palloc(sizeof(Grant));

	read_grant(tuple, desc, grant);
	if (SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(grant->role)))
		pfree(grant);
	else
		*grants = lappend(*grants, grant);
	return true;
}

static List *
dangling_grants(void)
{
	const HmsRelset *rels = hms_relset();
	List	   *grants = NIL;

	hms_config_each(rels->privilege_rel, rels->privilege_pkey, 0, NULL,
					collect_dangling, &grants);
	return grants;
}

/*
 * hms_privilege_forget_missing_roles
 *		Delete the grants of roles that no longer exist; returns how many.
 */
int
hms_privilege_forget_missing_roles(void)
{
	ListCell   *lc;
	int			deleted = 0;

	foreach(lc, dangling_grants())
	{
		const Grant *grant = lfirst(lc);
		HeapTuple	tuple;

		lock_grants(grant->stream_id);
		tuple = find_grant(grant->stream_id, grant->role, grant->word);
		if (tuple == NULL)
			continue;
		hms_config_delete(hms_relset()->privilege_rel, tuple);
		deleted++;
	}
	return deleted;
}

/*
 * hms_privilege_count_dangling
 *		How many grants name a role that no longer exists.
 */
int
hms_privilege_count_dangling(void)
{
	return list_length(dangling_grants());
}

/*
 * hms_privilege_parse
 *		"publish", "consume" or "manage"; raises 22023 for anything else.
 */
HmsPrivilege
hms_privilege_parse(const char *word)
{
	for (int i = 0; i < lengthof(words); i++)
	{
		if (strcmp(word, words[i]) == 0)
			return (HmsPrivilege) i;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized privilege \"%s\"", word),
			 errhint("The privileges are \"publish\", \"consume\" and \"manage\".")));
}
