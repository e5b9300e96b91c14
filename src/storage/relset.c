/*-------------------------------------------------------------------------
 *
 * relset.c
 *	  OIDs of our relations in the current database.
 *
 * Looked up by name and kept until one of them changes (relcache invalidation),
 * so that backends that live on notice DROP EXTENSION followed by CREATE
 * EXTENSION, and the new index that REINDEX CONCURRENTLY puts in the place of
 * an old one.  Nothing is shared.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "hms.h"
#include "storage/relset.h"

typedef struct RelationName
{
	const char *name;
	size_t		offset;
} RelationName;

#define RELATION(n, member)	{n, offsetof(HmsRelset, member)}

static const RelationName relation_names[] = {
	RELATION("namespace", namespace_rel),
	RELATION("namespace_pkey", namespace_pkey),
	RELATION("namespace_name_key", namespace_name_key),
	RELATION("log_partition", log_partition_rel),
	RELATION("log_partition_pkey", log_partition_pkey),
	RELATION("stream", stream_rel),
	RELATION("stream_pkey", stream_pkey),
	RELATION("stream_name_key", stream_name_key),
	RELATION("consumer_group", group_rel),
	RELATION("consumer_group_pkey", group_pkey),
	RELATION("consumer_group_name_key", group_name_key),
	RELATION("privilege", privilege_rel),
	RELATION("privilege_pkey", privilege_pkey),
	RELATION("throttle", throttle_rel),
	RELATION("throttle_pkey", throttle_pkey),
	RELATION("registered_consumer", registered_rel),
	RELATION("registered_consumer_pkey", registered_pkey),
	RELATION("cursor", cursor_rel),
	RELATION("cursor_incarnation_idx", cursor_idx),
	RELATION("cursor_spill", spill_rel),
	RELATION("cursor_spill_incarnation_idx", spill_idx),
	RELATION("delivery", delivery_rel),
	RELATION("delivery_claim_idx", delivery_claim_idx),
	RELATION("delivery_id_idx", delivery_id_idx),
	RELATION("dead_letter", dead_letter_rel),
	RELATION("dead_letter_idx", dead_letter_idx),
	RELATION("consumer", consumer_rel),
	RELATION("consumer_pkey", consumer_pkey),
	RELATION("xid_offset", xid_offset_rel),
	RELATION("namespace_id_seq", namespace_id_seq),
	RELATION("stream_id_seq", stream_id_seq),
	RELATION("group_id_seq", group_id_seq),
	RELATION("incarnation_seq", incarnation_seq),
	RELATION("message_id_seq", message_id_seq),
};

static HmsRelset relset;
static bool relset_valid = false;
static bool load_disturbed = false;
static bool callback_registered = false;

static void
relset_invalidated(Datum arg, Oid relid)
{
	load_disturbed = true;
	if (relid == InvalidOid)
		relset_valid = false;
	for (int i = 0; i < lengthof(relation_names) && relset_valid; i++)
	{
		if (relid == *(Oid *) ((char *) &relset + relation_names[i].offset))
			relset_valid = false;
	}
}

/* Owner of the extension; InvalidOid if it is not installed. */
static Oid
extension_owner(Oid extension)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	Oid			owner = InvalidOid;

	rel = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(extension));
	scan = systable_beginscan(rel, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return owner;
}

/* Fill 'relset'; false when something is missing. */
static bool
relset_load(void)
{
	HmsRelset	found = {0};

	found.extension = get_extension_oid(HMS_EXTENSION, true);
	if (!OidIsValid(found.extension))
		return false;
	found.owner = extension_owner(found.extension);
	found.schema = get_namespace_oid(HMS_SCHEMA, true);
	found.data_schema = get_namespace_oid(HMS_DATA_SCHEMA, true);
	if (!OidIsValid(found.schema) || !OidIsValid(found.data_schema))
		return false;

	for (int i = 0; i < lengthof(relation_names); i++)
	{
		Oid			relid = get_relname_relid(relation_names[i].name, found.schema);

		if (!OidIsValid(relid))
			return false;
		*(Oid *) ((char *) &found + relation_names[i].offset) = relid;
	}
	found.message_type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
										 CStringGetDatum("message"),
										 ObjectIdGetDatum(found.schema));
	found.log_row_type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
										 CStringGetDatum("log_row"),
										 ObjectIdGetDatum(found.schema));
	relset = found;
	return true;
}

/*
 * hms_relset_or_null
 *		The relations of the extension, or NULL when it is not installed here.
 *
 * An invalidation that arrives while we look makes the next call look again.
 */
const HmsRelset *
hms_relset_or_null(void)
{
	if (!callback_registered)
	{
		CacheRegisterRelcacheCallback(relset_invalidated, (Datum) 0);
		callback_registered = true;
	}
	if (relset_valid)
		return &relset;

	load_disturbed = false;
	if (!relset_load())
		return NULL;
	relset_valid = !load_disturbed;
	return &relset;
}

/*
 * hms_relset
 *		The relations of the extension; raises 55000 when it is not installed.
 */
const HmsRelset *
hms_relset(void)
{
	const HmsRelset *found = hms_relset_or_null();

	if (found == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" is not installed in this database", HMS_EXTENSION),
				 errhint("Run CREATE EXTENSION %s CASCADE.", HMS_EXTENSION)));
	return found;
}
