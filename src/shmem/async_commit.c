/*-------------------------------------------------------------------------
 *
 * async_commit.c
 *	  Which of our transactions commit without waiting for the disk.
 *
 * Claim only: a transaction that has done nothing but hand out messages may
 * be lost in a crash; the messages are then handed out again.  It is one when
 * every WAL record of it lies between a begin and an end of a claim, which
 * XactLastRecEnd tells: 0 when the transaction starts, then the end of the
 * last record this backend wrote.  Any other record, be it from pruning a
 * page, makes the commit synchronous.
 *
 * Late flush: a transaction that must be durable, but whose row lock on a
 * cursor others wait for.  It commits asynchronously and flushes its commit
 * record after its locks are released, before the client hears of the
 * commit.  Others may act on it meanwhile, but what they commit lies behind
 * it in the WAL and cannot be durable without it.  Not done when a
 * synchronous standby would have to be waited for as well.
 *
 * Both set the variable synchronous_commit between XACT_EVENT_PRE_COMMIT and
 * the commit or abort callback.  All state is the backend's own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "replication/syncrep.h"
#include "replication/walsender.h"

#include "guc.h"
#include "shmem/async_commit.h"
#include "shmem/effects.h"

typedef enum ClaimState
{
	CLAIM_NONE,					/* no claim so far */
	CLAIM_ONLY,					/* no WAL but that of claims up to claim_end */
	CLAIM_MIXED					/* other WAL was written before or between */
} ClaimState;

static ClaimState claim_state = CLAIM_NONE;
static XLogRecPtr claim_end = InvalidXLogRecPtr;
static bool late_flush_asked = false;
static bool flush_pending = false;

static bool setting_saved = false;
static int	saved_synchronous_commit;

/*
 * hms_effects_claim_begin
 *		A claim is about to write its first WAL.
 */
void
hms_effects_claim_begin(void)
{
	if (XactLastRecEnd != claim_end)
		claim_state = CLAIM_MIXED;
}

/*
 * hms_effects_claim_end
 *		A claim has written its last WAL.
 */
void
hms_effects_claim_end(void)
{
	if (claim_state != CLAIM_MIXED)
		claim_state = CLAIM_ONLY;
	claim_end = XactLastRecEnd;
}

/*
 * hms_effects_late_flush
 *		This transaction may flush after it has released its locks.
 */
void
hms_effects_late_flush(void)
{
	late_flush_asked = true;
}

static void
switch_off(void)
{
	saved_synchronous_commit = synchronous_commit;
	setting_saved = true;
	synchronous_commit = SYNCHRONOUS_COMMIT_OFF;
}

static bool
waits_for_standby(void)
{
	return SyncRepRequested() &&
		SyncRepStandbyNames != NULL && SyncRepStandbyNames[0] != '\0';
}

/*
 * hms_async_commit_choose
 *		Turn synchronous_commit off for this commit where that is allowed.
 */
void
hms_async_commit_choose(void)
{
	if (synchronous_commit == SYNCHRONOUS_COMMIT_OFF)
		return;

	if (hms_async_claims && claim_state == CLAIM_ONLY && XactLastRecEnd == claim_end)
		switch_off();
	else if (late_flush_asked && !waits_for_standby())
	{
		switch_off();
		flush_pending = true;
	}
}

static void
restore_setting(void)
{
	if (setting_saved)
		synchronous_commit = saved_synchronous_commit;
	setting_saved = false;
	claim_state = CLAIM_NONE;
	claim_end = InvalidXLogRecPtr;
	late_flush_asked = false;
}

/*
 * hms_async_commit_committed
 *		The commit record is written.
 */
void
hms_async_commit_committed(void)
{
	restore_setting();
}

/*
 * hms_async_commit_reset
 *		The transaction ended in another way.
 */
void
hms_async_commit_reset(void)
{
	restore_setting();
	flush_pending = false;
}

/*
 * hms_async_commit_late_flush
 *		Flush the commit record, if that was put off.
 */
void
hms_async_commit_late_flush(void)
{
	if (!flush_pending)
		return;
	flush_pending = false;
	XLogFlush(XactLastCommitEnd);
}
