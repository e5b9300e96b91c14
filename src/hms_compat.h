/*-------------------------------------------------------------------------
 *
 * hms_compat.h
 *	  Differences between PostgreSQL versions; the only file that says
 *	  PG_VERSION_NUM.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_COMPAT_H
#define HMS_COMPAT_H

#include "access/tableam.h"

#if PG_VERSION_NUM < 150000
#error "hotmesh_stream needs PostgreSQL 15 or later"
#endif

/* table_tuple_update() tells which indexes need entries: a bool before 16. */
#if PG_VERSION_NUM >= 160000
typedef TU_UpdateIndexes HmsUpdateIndexes;
#define HMS_NO_INDEX_NEEDED(u)	((u) == TU_None)
#else
typedef bool HmsUpdateIndexes;
#define HMS_NO_INDEX_NEEDED(u)	(!(u))
#endif

/* A JSON lexer that leaves escapes alone; makeJsonLexContext() got a first argument in 17. */
#if PG_VERSION_NUM >= 170000
#define hms_make_json_lex(json)	makeJsonLexContext(NULL, (json), false)
#else
#define hms_make_json_lex(json)	makeJsonLexContext((json), false)
#endif

/* ExecutorRun() lost its last argument in 18. */
#if PG_VERSION_NUM >= 180000
#define HMS_EXECUTE_ONCE_PARAM
#define HMS_EXECUTE_ONCE_ARG
#else
#define HMS_EXECUTE_ONCE_PARAM	, bool execute_once
#define HMS_EXECUTE_ONCE_ARG	, execute_once
#endif

#endif							/* HMS_COMPAT_H */
