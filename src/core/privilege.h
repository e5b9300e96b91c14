/*-------------------------------------------------------------------------
 *
 * privilege.h
 *	  Who may publish to, consume from and manage a stream.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_PRIVILEGE_H
#define HMS_CORE_PRIVILEGE_H

#include "hms.h"

typedef enum HmsPrivilege
{
	HMS_PRIV_PUBLISH,
	HMS_PRIV_CONSUME,
	HMS_PRIV_MANAGE
} HmsPrivilege;

/*
 * Raise 42501 naming the stream unless GetUserId() may do it: superusers, members of the
 * extension's owner, and roles (or roles whose privileges they have) that were granted the
 * privilege or 'manage' on the stream or on the database.  stream_id 0 = the database; name is for the message.
 */
extern void hms_privilege_check(HmsPrivilege privilege, int32 stream_id, const char *stream_name);
extern bool hms_privilege_has(HmsPrivilege privilege, int32 stream_id);

/* Info functions: also open to members of pg_monitor and to whoever may consume or publish. */
extern void hms_privilege_check_info(int32 stream_id, const char *stream_name);

extern void hms_privilege_grant(int32 stream_id, HmsPrivilege privilege, Oid role);
extern bool hms_privilege_revoke(int32 stream_id, HmsPrivilege privilege, Oid role);

/* The creator of a stream gets all three, unless it may do everything anyway. */
extern void hms_privilege_grant_creator(int32 stream_id);

/* Delete the rows of a dropped stream / of roles that no longer exist. */
extern void hms_privilege_forget_stream(int32 stream_id);
extern int	hms_privilege_forget_missing_roles(void);
extern int	hms_privilege_count_dangling(void);

extern HmsPrivilege hms_privilege_parse(const char *word);	/* raises 22023 */

#endif							/* HMS_CORE_PRIVILEGE_H */
