/*-------------------------------------------------------------------------
 *
 * utility.h
 *	  Commands that concern the workers or leave traces of logs behind.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_HOOKS_UTILITY_H
#define HMS_HOOKS_UTILITY_H

/* Install the ProcessUtility hook and its transaction callback; from _PG_init. */
extern void hms_utility_install_hooks(void);

#endif							/* HMS_HOOKS_UTILITY_H */
