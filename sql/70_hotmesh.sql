-- HotMesh: the functions that its stream provider calls one to one.

create function hotmesh_stream.hotmesh_publish(
    stream   text,
    messages json,
    options  json default null
)
returns table (id text)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_publish';
comment on function hotmesh_stream.hotmesh_publish(text, json, json) is
'publishes a JSON array of HotMesh StreamData, all or none, and returns their ids in order; creates the stream (max_priority 6; needs manage on the database) and its group (ENGINE when the name ends with a colon, else WORKER) when they do not exist. Each envelope is checked and kept byte for byte; its type decides the priority (interrupt 6; timehook, webhook, signal 5; transition 4; result 3; response 2; worker 1; else 0) and metadata.jid becomes the key. options: delay (ms), retry ({"maximumAttempts", "backoffCoefficient", "maximumInterval", "initialInterval"}), lenient (boolean: take what HotMesh''s users may write beyond its types: unknown keys, nulls, other codes, data of any type). Errors: 22023 naming the key, as "messages[3].metadata.try", 22004, 42501, 54000';

create function hotmesh_stream.hotmesh_consume(
    stream         text,
    consumer_group text,
    consumer       text,
    options        json default null
)
returns table (id text, receipt text, data text, metadata json)
language c volatile parallel unsafe rows 10
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_consume';
comment on function hotmesh_stream.hotmesh_consume(text, text, text, json) is
'hands out messages as HotMesh StreamMessage: id, receipt for settling (null with autoAck), data (the envelope''s text, with the retries of hotmesh_complete() added to metadata.try) and StreamMessageMetadata (times in ms since 1970). Creates the stream and group when they do not exist. Obeys throttles and readonly. Higher priorities come first, but one call in eight begins with the lowest. options: batchSize (1..10000, default the group''s), reservationTimeout (seconds), autoAck (boolean), wait (ms, at most hotmesh_stream.max_wait), keepTry (boolean: leave metadata.try as published). Errors: 22023 naming the option, 42501, 0A000 as read()';

create function hotmesh_stream.hotmesh_reclaim(
    stream         text,
    consumer_group text,
    consumer       text,
    options        json default null
)
returns table (id text, receipt text, data text, metadata json, reclaimed json)
language c volatile parallel unsafe rows 10
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_reclaim';
comment on function hotmesh_stream.hotmesh_reclaim(text, text, text, json) is
'takes over hand-outs of other consumers under a new receipt: as hotmesh_consume(), and each as an element of HotMesh''s ReclaimedMessageType. options: minIdleTime (ms since the hand-out, default the group''s lease), limit (default 10), messageIds, keepTry. Errors: HM002, HM003, 22023, 42501';

create function hotmesh_stream.hotmesh_ack(
    stream         text,
    consumer_group text,
    items          json
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_ack';
comment on function hotmesh_stream.hotmesh_ack(text, text, json) is
'acknowledges an array of ids, receipts, or {"id", "receipt"} and returns how many were really settled: a receipt counts only for its own hand-out, a bare id for the current one. Errors: HM001 malformed receipt, HM002, HM003, 22023, 42501';

create function hotmesh_stream.hotmesh_complete(
    stream          text,
    consumer_group  text,
    item            json,
    response_stream text,
    response        json,
    options         json default null
)
returns table (outcome text, id text)
language c volatile parallel unsafe rows 1
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_complete';
comment on function hotmesh_stream.hotmesh_complete(text, text, json, text, json, json) is
'answers a message: acknowledges it and publishes the response envelope to response_stream in one transaction (outcome completed, id of the response); but a response with status error whose code the message''s policies.retry allows (10, 100, 1000, 10000 ms, exactly so many retries), or that its retry policy allows (attempts in all, whatever the code), makes the message due again instead (retrying). lost: the receipt settles nothing, and nothing was published. options as hotmesh_publish(). Errors: HM001, HM002, HM003, 22023 naming the key, 42501';

create function hotmesh_stream.hotmesh_dead_letter(
    stream         text,
    consumer_group text,
    items          json,
    reason         text default 'rejected'
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_dead_letter';
comment on function hotmesh_stream.hotmesh_dead_letter(text, text, json, text) is
'makes hand-outs dead letters now (see dead_letters() and redrive()), items as hotmesh_ack(); returns how many. Errors: HM001, HM002, HM003, 22004, 22023, 42501';

create function hotmesh_stream.hotmesh_extend(
    stream         text,
    consumer_group text,
    item           json,
    consumer       text             default null,
    seconds        double precision default 30
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_extend';
comment on function hotmesh_stream.hotmesh_extend(text, text, json, text, double precision) is
'lets a lease end seconds from now (0 releases it); returns 1, or 0 when the item is not the current hand-out: an id without receipt must be held by the consumer, when one is named. Errors: HM001, HM002, HM003, 22023, 42501';

create function hotmesh_stream.hotmesh_expire_job(
    prefix text,
    jid    text
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_expire_job';
comment on function hotmesh_stream.hotmesh_expire_job(text, text) is
'deletes the messages of a job from all streams whose names begin with prefix (as "hmsh:app:x:"), with their deliveries, in the caller''s transaction; returns how many. What another transaction is settling stays with it. Errors: 22004, 22023, 42501 without manage on a stream';

create function hotmesh_stream.hotmesh_create_group(
    stream         text,
    consumer_group text
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_create_group';
comment on function hotmesh_stream.hotmesh_create_group(text, text) is
'creates the stream and group if they do not exist: everything published is delivered, leases last 30 s, three reclaims (4 deliveries) are allowed, after which an error response with code 999 goes to the engine''s stream; returns true. Errors: 22004, 22023, 42501';

create function hotmesh_stream.hotmesh_drop_group(
    stream         text,
    consumer_group text
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_drop_group';
comment on function hotmesh_stream.hotmesh_drop_group(text, text) is
'drops a group, and the stream''s messages when it was the last one, so that a group that is created again does not get them; returns false when there was none. Errors: 22004, 22023, 42501 without consume, and manage for the messages';

create function hotmesh_stream.hotmesh_drop_stream(stream text)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_drop_stream';
comment on function hotmesh_stream.hotmesh_drop_stream(text) is
'drops a stream, or all whose names begin with what stands before a final *; returns false when there was none. Errors: 22004, 22023, 42501 without manage on a stream';

create function hotmesh_stream.hotmesh_stats(stream text)
returns json
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_stats';
comment on function hotmesh_stream.hotmesh_stats(text) is
'HotMesh StreamStats: messageCount (of the group that is furthest behind), consumerCount, bytesInMemory (payload bytes in the log), pendingMessages (live leases), deadLetterQueueMessageCount, oldestMessageTimestamp and lastErrorTimestamp (ms since 1970), averageProcessingTime (ms), lastErrorMessage; null = none. All zero for a stream that does not exist. Errors: 22004, 42501';

create function hotmesh_stream.hotmesh_depth(stream text)
returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_depth';
comment on function hotmesh_stream.hotmesh_depth(text) is
'messages that the group which is furthest behind has not settled; 0 for a stream that does not exist or has no group. Errors: 22004, 42501';

create function hotmesh_stream.hotmesh_depths(streams json)
returns table (stream text, depth bigint)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_depths';
comment on function hotmesh_stream.hotmesh_depths(json) is
'hotmesh_depth() for an array of names or of objects with a key stream: one row per element, in order, duplicates included. Errors: 22004, 22023, 42501';

create function hotmesh_stream.hotmesh_trim(
    stream  text,
    options json
)
returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_trim';
comment on function hotmesh_stream.hotmesh_trim(text, json) is
'deletes the oldest messages: all but the newest maxLen that are not settled, and what was published more than maxAge ms ago; always exact (exactLimit is accepted); returns how many unsettled messages went. 0 for a stream that does not exist. Errors: 22004, 22023 naming the option, 42501 without manage';

create function hotmesh_stream.hotmesh_features()
returns json
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_features';
comment on function hotmesh_stream.hotmesh_features() is
'what HotMesh asks a provider for; supportsRetry is false because expired leases are handed out without being reclaimed';

create function hotmesh_stream.hotmesh_configure(
    stream         text,
    consumer_group text,
    config         json
)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_configure';
comment on function hotmesh_stream.hotmesh_configure(text, text, json) is
'applies a HotMesh StreamConfig to a stream and group, created if need be: maxRetries, batchSize, timeout, redis.claimTimeout, minIdleTime and blockingTimeout, nats.ackWait, sqs.visibilityTimeout and waitTimeSeconds set the group''s number of deliveries, batch, lease and wait; what only names how things are (namespace, appId, nats.jetstream, durableName, deliverPolicy, postgres.partitionInterval) must be so. Errors: 0A000 naming an option that cannot be set here, 22023 naming an unknown key, a bad value or a contradiction, 22004, 42501';

create function hotmesh_stream.hotmesh_register_consumer(config json)
returns text
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_register_consumer';
comment on function hotmesh_stream.hotmesh_register_consumer(json) is
'registers a HotMesh RouterConfig: its guid is the consumer, seen with role, topic and readonly in consumer_info(); throttle (ms, -1 = paused) counts where hotmesh_set_throttle() says nothing; readonly consumers are handed nothing; reclaimDelay sets the group''s lease (ms), reclaimCount (0..3) the deliveries after the first. Returns the name of its stream. Errors: 22023 naming the key, 22004, 42501';

create function hotmesh_stream.hotmesh_set_throttle(
    stream         text,
    consumer_group text,
    ms             integer
)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_hotmesh_set_throttle';
comment on function hotmesh_stream.hotmesh_set_throttle(text, text, integer) is
'sets the least time between two hand-outs by hotmesh_consume() to one consumer of a group, of all groups of a stream (consumer_group null), or of all streams (both null): 0 lifts it, -1 pauses. Narrower throttles are erased. Survives a restart; consumers that wait notice at commit. Errors: HM002, HM003, 22004, 22023, 42501 without manage';
