/*-------------------------------------------------------------------------
 *
 * batch_json.h
 *	  The JSON array that publish_batch() takes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_API_BATCH_JSON_H
#define HMS_API_BATCH_JSON_H

#include "core/log.h"

/*
 * Parse an array of {"payload": ..., "headers": {...}, "delay": "...", "deliver_at": "..."}
 * into a palloc'd array of messages; payloads keep their bytes.  Raises 22023 naming the
 * element's number for anything else.
 */
extern int	hms_batch_parse(text *json, TimestampTz now, HmsNewMessage **messages);

#endif							/* HMS_API_BATCH_JSON_H */
