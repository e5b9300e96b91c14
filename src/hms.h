/*-------------------------------------------------------------------------
 *
 * hms.h
 *	  Names, limits and small types that all layers share.
 *
 * Who may call whom (checked by .ci/checks/layers.sh):
 *	  api -> core -> storage;  worker -> core;  api, core, worker and hooks ->
 *	  shmem;  storage and shmem call only PostgreSQL.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_H
#define HMS_H

#include "utils/timestamp.h"

#define HMS_EXTENSION			"hotmesh_stream"
#define HMS_SCHEMA				"hotmesh_stream"
#define HMS_DATA_SCHEMA			"hotmesh_stream_data"

#define HMS_PRIORITY_LEVELS		10	/* 0..9, the highest is delivered first */
#define HMS_MAX_NAME_BYTES		255 /* names of streams, groups, consumers */
#define HMS_MAX_BACKOFF			32	/* entries of a group's backoff array */
#define HMS_MAX_BATCH			10000	/* messages in one call */
#define HMS_ADVANCE_ROWS		1000	/* log rows one advance looks at */
#define HMS_ADVANCE_MS			5	/* time one advance may hold the cursor */
#define HMS_DDL_LOCK_TIMEOUT_MS 50	/* for all DDL on log partitions */
#define HMS_MAX_INTERVAL_US		(INT64CONST(400) * USECS_PER_DAY)	/* leases, delays */

/* SQLSTATEs of our own, class HM; listed in README.md. */
#define HMS_ERRCODE_MALFORMED_RECEIPT	MAKE_SQLSTATE('H','M','0','0','1')
#define HMS_ERRCODE_UNKNOWN_STREAM		MAKE_SQLSTATE('H','M','0','0','2')
#define HMS_ERRCODE_UNKNOWN_GROUP		MAKE_SQLSTATE('H','M','0','0','3')
#define HMS_ERRCODE_UNKNOWN_NAMESPACE	MAKE_SQLSTATE('H','M','0','0','4')
#define HMS_ERRCODE_CONFIG_MISMATCH		MAKE_SQLSTATE('H','M','0','0','5')

/* A stored transaction id: 64-bit xid plus the database's offset. */
typedef int64 HmsXid;

#endif							/* HMS_H */
