/*-------------------------------------------------------------------------
 *
 * partman_trust.c
 *	  Who could put code in the way of pg_partman.
 *
 * pg_partman's functions run as the extension's owner, a superuser, and find
 * functions and operators in pg_partman's own schema.  Whoever may create
 * objects there, by owning the schema or by a grant, can give them an operator
 * that fits better than the one of pg_catalog and so becomes superuser.  The
 * schema "public", where CREATE EXTENSION ... CASCADE puts pg_partman, belongs
 * to the owner of the database.
 *
 * Looks at catalogs only; shares nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/syscache.h"

#include "storage/partman_private.h"
#include "storage/relset.h"

static Oid
database_owner(void)
{
	HeapTuple	tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for database %u", MyDatabaseId);
	owner = ((Form_pg_database) GETSTRUCT(tuple))->datdba;
	ReleaseSysCache(tuple);
	return owner;
}

/* Would the role gain by it?  *intruder is then the role, or ACL_ID_PUBLIC. */
static bool
would_gain(Oid role, Oid *intruder)
{
	if (role == ROLE_PG_DATABASE_OWNER)
		role = database_owner();
	*intruder = role;
	return role == ACL_ID_PUBLIC ||
		(!superuser_arg(role) && role != hms_relset()->owner);
}

/* The first who was granted CREATE and would gain by it. */
static bool
find_in_acl(const Acl *acl, Oid *intruder)
{
	const AclItem *items = ACL_DAT(acl);

	for (int i = 0; i < ACL_NUM(acl); i++)
	{
		if ((ACLITEM_GET_PRIVS(items[i]) & ACL_CREATE) != 0 &&
			would_gain(items[i].ai_grantee, intruder))
			return true;
	}
	return false;
}

/*
 * hms_schema_intruder
 *		Is there a role, neither superuser nor the extension's owner, that may
 *		create objects in a schema?  *intruder is then one, or ACL_ID_PUBLIC.
 */
bool
hms_schema_intruder(Oid schema, Oid *intruder)
{
	HeapTuple	tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
	Oid			owner;
	Datum		acl;
	bool		isnull;
	bool		found;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for schema %u", schema);
	owner = ((Form_pg_namespace) GETSTRUCT(tuple))->nspowner;
	acl = SysCacheGetAttr(NAMESPACEOID, tuple, Anum_pg_namespace_nspacl, &isnull);
	found = would_gain(owner, intruder) ||
		(!isnull && find_in_acl(DatumGetAclP(acl), intruder));
	ReleaseSysCache(tuple);
	return found;
}
