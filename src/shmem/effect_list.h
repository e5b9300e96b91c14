/*-------------------------------------------------------------------------
 *
 * effect_list.h
 *	  The lists behind effects.c: what was noted, by which subtransaction.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_SHMEM_EFFECT_LIST_H
#define HMS_SHMEM_EFFECT_LIST_H

#include "shmem/group_slot.h"
#include "shmem/hint.h"

typedef enum HmsEffectKind
{
	HMS_EFFECT_REFUSE_PREPARE,
	HMS_EFFECT_WAKE_STREAM,
	HMS_EFFECT_WAKE_STREAM_ALL,
	HMS_EFFECT_WAKE_GROUP,
	HMS_EFFECT_WAKE_GROUP_ALL,
	HMS_EFFECT_COUNT_STREAM,
	HMS_EFFECT_COUNT_GROUP,
	HMS_EFFECT_CURSOR,
	HMS_EFFECT_CURSOR_PLACE,
	HMS_EFFECT_LOG_DROPPED
} HmsEffectKind;

typedef struct HmsEffect
{
	int			level;			/* nest level of the subtransaction */
	HmsEffectKind kind;
	int			counter;		/* which, for the COUNT kinds */
	int64		id;				/* of the stream or group, an incarnation, or
								 * the log's OID */
	int64		amount;			/* summed when merged; CURSOR_PLACE: the last
								 * one stays */
	union
	{
		HmsGroupSlot *slot;		/* CURSOR (may be NULL), CURSOR_PLACE */
		const char *action;		/* REFUSE_PREPARE, may be NULL */
	}			u;
} HmsEffect;

typedef struct HmsLow
{
	HmsHintKey	key;
	TimestampTz written;		/* DT_NOEND = none */
	TimestampTz replaced;		/* DT_NOEND = none */
	int			nwritten;		/* rows */
} HmsLow;

/*
 * Note an effect at the current nest level (the record's own is ignored); it
 * may be merged with one that is alike.
 */
extern void hms_effect_note(const HmsEffect *effect);

/* All effects, in an order in which levels do not fall; valid until the next call of note. */
extern const HmsEffect *hms_effect_list(int *count);

/* The first record noted at nest_level or deeper; the list's tail begins there. */
extern int	hms_effect_first_of_level(int nest_level);

/* Cut the list off; hand the tail of a level to the level above. */
extern void hms_effect_truncate(int count);
extern void hms_effect_raise_level(int nest_level);

/* True when an effect of this kind and id, or of this kind, was noted. */
extern bool hms_effect_exists(HmsEffectKind kind, int64 id);
extern bool hms_effect_exists_kind(HmsEffectKind kind);

/* The lows of a key: NULL if none, or made; and all of them. */
extern HmsLow *hms_low_find(const HmsHintKey *key);
extern HmsLow *hms_low_enter(const HmsHintKey *key);
extern const HmsLow *hms_low_list(int *count);

/* The transaction is over: forget both lists. */
extern void hms_effect_list_reset(void);

#endif							/* HMS_SHMEM_EFFECT_LIST_H */
