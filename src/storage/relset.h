/*-------------------------------------------------------------------------
 *
 * relset.h
 *	  OIDs of our relations in the current database, found once per backend.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_RELSET_H
#define HMS_STORAGE_RELSET_H

typedef struct HmsRelset
{
	Oid			extension;
	Oid			owner;			/* the extension's owner: DDL and workers run
								 * as it */
	Oid			schema;
	Oid			data_schema;
	/* configuration */
	Oid			namespace_rel;
	Oid			namespace_pkey;
	Oid			namespace_name_key;
	Oid			log_partition_rel;
	Oid			log_partition_pkey;
	Oid			stream_rel;
	Oid			stream_pkey;
	Oid			stream_name_key;
	Oid			group_rel;
	Oid			group_pkey;
	Oid			group_name_key;
	Oid			privilege_rel;
	Oid			privilege_pkey;
	Oid			throttle_rel;
	Oid			throttle_pkey;
	Oid			registered_rel;
	Oid			registered_pkey;
	/* state */
	Oid			cursor_rel;
	Oid			cursor_idx;
	Oid			spill_rel;
	Oid			spill_idx;
	Oid			delivery_rel;
	Oid			delivery_claim_idx;
	Oid			delivery_id_idx;
	Oid			dead_letter_rel;
	Oid			dead_letter_idx;
	Oid			consumer_rel;
	Oid			consumer_pkey;
	Oid			xid_offset_rel;
	/* sequences */
	Oid			namespace_id_seq;
	Oid			stream_id_seq;
	Oid			group_id_seq;
	Oid			incarnation_seq;
	Oid			message_id_seq;
	/* types */
	Oid			message_type;
	Oid			log_row_type;
} HmsRelset;

/*
 * The relations of the extension in this database.  Raises 55000 when the
 * extension is not installed here.  The pointer is valid until the next call.
 */
extern const HmsRelset *hms_relset(void);

/* The same, NULL when the extension is not (or no longer) installed. */
extern const HmsRelset *hms_relset_or_null(void);

#endif							/* HMS_STORAGE_RELSET_H */
