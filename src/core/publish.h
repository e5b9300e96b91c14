/*-------------------------------------------------------------------------
 *
 * publish.h
 *	  The rules of publishing.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HMS_CORE_PUBLISH_H
#define HMS_CORE_PUBLISH_H

#include "core/log.h"

/*
 * Publish messages to one stream in the caller's transaction, all or none; their ids are
 * filled in, rising in order.  Checks the privilege (42501) and each
 * message's size (54000).  A message whose deliver_at is DT_NOEND gets the stream's delay.
 */
extern void hms_publish(const HmsStream *stream, HmsNewMessage *messages, int nmessages,
						TimestampTz now);

#endif							/* HMS_CORE_PUBLISH_H */
