/*-------------------------------------------------------------------------
 *
 * hotmesh_args.h
 *	  JSON arguments of HotMesh's functions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_API_HOTMESH_ARGS_H
#define HMS_API_HOTMESH_ARGS_H

#include "core/settle.h"

/* Options of hotmesh_consume() and hotmesh_reclaim(); what is absent is -1. */
typedef struct HmsConsumeOptions
{
	int32		batch_size;
	int64		reservation_us;
	int64		wait_us;
	bool		auto_ack;
	bool		keep_try;		/* leave metadata.try as it was published */
	int64		min_idle_us;	/* reclaim */
	int64	   *ids;			/* reclaim; NULL = any */
	int			nids;
} HmsConsumeOptions;

extern text *hms_arg_json_or_null(FunctionCallInfo fcinfo, int argno);
extern text *hms_arg_json(FunctionCallInfo fcinfo, int argno, const char *argname); /* 22004 */

/* Raise 22023 naming the option. */
extern void hms_consume_options_parse(text *json, HmsConsumeOptions *out);
extern void hms_reclaim_options_parse(text *json, HmsConsumeOptions *out);

/* An id or receipt as a JSON string, or {"id": ..., "receipt": ...}. */
extern void hms_item_parse(text *json, HmsReceipt *out);

/* An array of items; returns how many. */
extern int	hms_items_parse(text *json, HmsReceipt **out);

/* The names in an array of strings or of objects {"stream": ...}. */
extern int	hms_stream_names_parse(text *json, char ***out);

/* {"maxLen": n, "maxAge": ms, "exactLimit": boolean}; -1 = absent. */
extern void hms_trim_options_parse(text *json, int64 *max_len, int64 *max_age_ms);

#endif							/* HMS_API_HOTMESH_ARGS_H */
