/*-------------------------------------------------------------------------
 *
 * sequence.h
 *	  Taking ids from our sequences and reading the last one allocated.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_STORAGE_SEQUENCE_H
#define HMS_STORAGE_SEQUENCE_H

/*
 * Next value.  For message ids the caller must have assigned its top-level xid BEFORE
 * (the proof in core/cursor.c rests on it).
 */
extern int64 hms_sequence_next(Oid seqid);

/* The last value handed out to anybody, committed or not; 0 if none yet. */
extern int64 hms_sequence_last(Oid seqid);

#endif							/* HMS_STORAGE_SEQUENCE_H */
