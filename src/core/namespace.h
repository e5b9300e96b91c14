/*-------------------------------------------------------------------------
 *
 * namespace.h
 *	  Creating, changing and dropping namespaces.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_NAMESPACE_H
#define HMS_CORE_NAMESPACE_H

#include "hms.h"
#include "utils/jsonb.h"

#define HMS_DEFAULT_NAMESPACE	"default"
#define HMS_MIN_PREMAKE			1
#define HMS_MAX_PREMAKE			100
#define HMS_DEFAULT_PREMAKE		4

typedef struct HmsNamespaceOptions
{
	const char *name;
	const char *partition_interval; /* a word or an interval */
	int			premake;
	bool		has_retention;
	Interval	retention;
	bool		has_retention_hard;
	Interval	retention_hard;
} HmsNamespaceOptions;

/*
 * Create a namespace with its log; false when it exists with these options.
 * Raises HMS_ERRCODE_CONFIG_MISMATCH when it exists with others, 22023 for a
 * bad interval.
 */
extern bool hms_namespace_create(const HmsNamespaceOptions *options);

/* Change retention, retention_hard or premake; raises HMS_ERRCODE_UNKNOWN_NAMESPACE, 22023. */
extern void hms_namespace_alter(const char *name, Jsonb *config);

/* Drop a namespace and its log; false when unknown; 2BP01 while it has streams. */
extern bool hms_namespace_drop(const char *name);

/*
 * Create the namespace "default" when that is the name and it is missing;
 * raises HMS_ERRCODE_UNKNOWN_NAMESPACE for another one that is missing.
 */
extern void hms_namespace_ensure(const char *name);

#endif							/* HMS_CORE_NAMESPACE_H */
