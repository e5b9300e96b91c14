/*-------------------------------------------------------------------------
 *
 * xact.h
 *	  Our transaction callbacks.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_HOOKS_XACT_H
#define HMS_HOOKS_XACT_H

/* Registers the callbacks; call once, from _PG_init, when preloaded. */
extern void hms_xact_install_hooks(void);

#endif							/* HMS_HOOKS_XACT_H */
