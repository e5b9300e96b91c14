/*-------------------------------------------------------------------------
 *
 * effect_list.c
 *	  The lists behind effects.c: what was noted, by which subtransaction.
 *
 * Two lists, in TopTransactionContext, private to the backend:
 *
 * effects: small records tagged with the nest level of the subtransaction
 * that noted them.  A record is noted at the current, hence deepest, level,
 * so levels never fall along the list: those of a subtransaction are its
 * tail.  Rolling it back cuts the tail off, releasing it notes the tail again
 * one level higher.  Like records of one level are merged with a recent one
 * where possible and all together when the list has to grow, so the list
 * stays as short as there are different things to do.
 *
 * lows: per hint, the lowest due time written and the lowest replaced.  These
 * stay when a subtransaction rolls back: too low a time only costs a look.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/int.h"
#include "utils/memutils.h"

#include "shmem/effect_list.h"

/* How many records back a like one is looked for. */
#define MERGE_WINDOW	16

static HmsEffect *effects = NULL;
static int	neffects = 0;
static int	max_effects = 0;

static HmsLow *lows = NULL;
static int	nlows = 0;
static int	max_lows = 0;
static int	last_low = 0;		/* the one used last, tried first */

static bool
alike(const HmsEffect *a, const HmsEffect *b)
{
	return a->level == b->level && a->kind == b->kind &&
		a->counter == b->counter && a->id == b->id;
}

static void
merge_into(HmsEffect *target, const HmsEffect *source)
{
	if (target->kind == HMS_EFFECT_CURSOR_PLACE)
	{
		target->amount = source->amount;
		return;
	}
	if (pg_add_s64_overflow(target->amount, source->amount, &target->amount))
		target->amount = PG_INT64_MAX;
	if (target->kind == HMS_EFFECT_REFUSE_PREPARE && target->u.action == NULL)
		target->u.action = source->u.action;
}

/* Level first: the order that the list always has. */
static int
compare_effects(const void *left, const void *right)
{
	const HmsEffect *a = (const HmsEffect *) left;
	const HmsEffect *b = (const HmsEffect *) right;

	if (a->level != b->level)
		return a->level < b->level ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	if (a->counter != b->counter)
		return a->counter < b->counter ? -1 : 1;
	return 0;
}

/* Merge all records that are alike; there is at least one. */
static void
compact_effects(void)
{
	int			last = 0;

	qsort(effects, neffects, sizeof(HmsEffect), compare_effects);
	for (int i = 1; i < neffects; i++)
	{
		if (alike(&effects[last], &effects[i]))
			merge_into(&effects[last], &effects[i]);
		else
			effects[++last] = effects[i];
	}
	neffects = last + 1;
}

/* Make room for one more record. */
static void
reserve_effect(void)
{
	if (neffects < max_effects)
		return;

	if (effects == NULL)
	{
		effects = MemoryContextAlloc(TopTransactionContext, 16 * sizeof(HmsEffect));
		max_effects = 16;
		return;
	}

	compact_effects();
	if (neffects > max_effects / 2)
	{
		effects = repalloc_huge(effects, (Size) max_effects * 2 * sizeof(HmsEffect));
		max_effects *= 2;
	}
}

/* Put a record at the end of the list, or into a recent one that is alike. */
static void
append_effect(const HmsEffect *effect)
{
	for (int i = neffects - 1; i >= 0 && i >= neffects - MERGE_WINDOW; i--)
	{
		if (alike(&effects[i], effect))
		{
			merge_into(&effects[i], effect);
			return;
		}
	}
	reserve_effect();
	effects[neffects++] = *effect;
}

/*
 * hms_effect_note
 *		Note an effect at the current nest level.
 */
void
hms_effect_note(const HmsEffect *effect)
{
	HmsEffect	noted = *effect;

	noted.level = GetCurrentTransactionNestLevel();
	append_effect(&noted);
}

/*
 * hms_effect_list
 *		All effects.
 */
const HmsEffect *
hms_effect_list(int *count)
{
	*count = neffects;
	return effects;
}

/*
 * hms_effect_first_of_level
 *		Where the records of a level and all deeper ones begin.
 */
int
hms_effect_first_of_level(int nest_level)
{
	int			i = neffects;

	while (i > 0 && effects[i - 1].level >= nest_level)
		i--;
	return i;
}

/*
 * hms_effect_truncate
 *		Keep the first 'count' records.
 */
void
hms_effect_truncate(int count)
{
	Assert(count <= neffects);
	neffects = count;
}

/*
 * hms_effect_raise_level
 *		Hand what a subtransaction noted to its parent.
 *
 * Allocates nothing: it never writes beyond where it reads.
 */
void
hms_effect_raise_level(int nest_level)
{
	int			first = hms_effect_first_of_level(nest_level);
	int			end = neffects;

	neffects = first;
	for (int i = first; i < end; i++)
	{
		HmsEffect	effect = effects[i];

		effect.level = nest_level - 1;
		append_effect(&effect);
	}
}

/*
 * hms_effect_exists, hms_effect_exists_kind
 *		Whether such an effect was noted and not rolled back.
 */
bool
hms_effect_exists(HmsEffectKind kind, int64 id)
{
	for (int i = neffects - 1; i >= 0; i--)
	{
		if (effects[i].kind == kind && effects[i].id == id)
			return true;
	}
	return false;
}

bool
hms_effect_exists_kind(HmsEffectKind kind)
{
	for (int i = neffects - 1; i >= 0; i--)
	{
		if (effects[i].kind == kind)
			return true;
	}
	return false;
}

/*
 * hms_low_find
 *		What was noted for a hint, NULL if nothing.
 */
HmsLow *
hms_low_find(const HmsHintKey *key)
{
	if (last_low < nlows && memcmp(&lows[last_low].key, key, sizeof(*key)) == 0)
		return &lows[last_low];

	for (int i = 0; i < nlows; i++)
	{
		if (memcmp(&lows[i].key, key, sizeof(*key)) == 0)
		{
			last_low = i;
			return &lows[i];
		}
	}
	return NULL;
}

/*
 * hms_low_enter
 *		The same, made if there is none; valid until the next call.
 */
HmsLow *
hms_low_enter(const HmsHintKey *key)
{
	HmsLow	   *low = hms_low_find(key);

	if (low)
		return low;

	if (lows == NULL)
	{
		lows = MemoryContextAlloc(TopTransactionContext, 4 * sizeof(HmsLow));
		max_lows = 4;
	}
	else if (nlows == max_lows)
	{
		lows = repalloc_huge(lows, (Size) max_lows * 2 * sizeof(HmsLow));
		max_lows *= 2;
	}

	last_low = nlows++;
	low = &lows[last_low];
	low->key = *key;
	low->written = DT_NOEND;
	low->replaced = DT_NOEND;
	low->nwritten = 0;
	return low;
}

/*
 * hms_low_list
 *		What was noted for all hints.
 */
const HmsLow *
hms_low_list(int *count)
{
	*count = nlows;
	return lows;
}

/*
 * hms_effect_list_reset
 *		Forget everything; the memory goes with TopTransactionContext.
 */
void
hms_effect_list_reset(void)
{
	effects = NULL;
	neffects = max_effects = 0;
	lows = NULL;
	nlows = max_lows = 0;
	last_low = 0;
}
