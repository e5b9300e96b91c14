/*-------------------------------------------------------------------------
 *
 * publish.c
 *	  The rules of publishing: privilege, size, delay.
 *
 * The order of the checks is part of the interface: privilege, then size, then the log.
 * Waiters are woken when the transaction commits (shmem/effects.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/detoast.h"

#include "core/privilege.h"
#include "core/publish.h"
#include "shmem/effects.h"

/* Bytes of a varlena without its header; the value is not detoasted. */
static Size
value_bytes(Datum value)
{
	return DatumGetPointer(value) == NULL ? 0 : toast_raw_datum_size(value) - VARHDRSZ;
}

static Size
checked_bytes(const HmsStream *stream, const HmsNewMessage *messages, int i, int nmessages)
{
	const HmsNewMessage *message = &messages[i];
	Size		bytes = value_bytes(message->payload) + value_bytes(message->body) +
	value_bytes(message->headers);

	if (bytes > stream->max_message_bytes)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("message of %zu bytes exceeds the limit of %d bytes of stream \"%s\"",
						bytes, stream->max_message_bytes, stream->name),
				 nmessages > 1 ? errdetail("It is message %d of %d.", i + 1, nmessages) : 0,
				 errhint("Store large data elsewhere and publish a reference, or raise \"max_message_bytes\" with alter_stream().")));
	return bytes;
}

static void
check_priority(const HmsStream *stream, const HmsNewMessage *message)
{
	if (message->priority >= stream->levels)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("priority %d exceeds the highest priority %d of stream \"%s\"",
						message->priority, stream->levels - 1, stream->name),
				 errhint("Raise \"max_priority\" with alter_stream().")));
}

void
hms_publish(const HmsStream *stream, HmsNewMessage *messages, int nmessages,
			TimestampTz now)
{
	int64		bytes = 0;

	hms_privilege_check(HMS_PRIV_PUBLISH, stream->stream_id, stream->name);
	for (int i = 0; i < nmessages; i++)
	{
		bytes += checked_bytes(stream, messages, i, nmessages);
		check_priority(stream, &messages[i]);
		if (TIMESTAMP_IS_NOEND(messages[i].deliver_at))
			messages[i].deliver_at = stream->delay_us > 0 ? now + stream->delay_us : DT_NOBEGIN;
	}
	hms_log_append(stream, messages, nmessages, now);
	hms_effects_published(stream->stream_id, nmessages, bytes);
}
