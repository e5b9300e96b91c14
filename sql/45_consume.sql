-- Consuming.

create function hotmesh_stream.read(
    stream         text,
    consumer_group text,
    consumer       text,
    max_messages   integer  default 1,
    wait           interval default '0',
    ack_wait       interval default null,
    max_bytes      integer  default null,
    no_ack         boolean  default false
)
returns setof hotmesh_stream.message
language c volatile parallel unsafe rows 10
as 'MODULE_PATHNAME', 'hms_sql_read';
comment on function hotmesh_stream.read(text, text, text, integer, interval, interval, integer, boolean) is
'hands out up to max_messages (1..10000) to a consumer, each under a lease of ack_wait (default: the group''s): first deliveries that are due, the longest due first, then new messages by id; the rows come sorted by priority and id. wait (at most hotmesh_stream.max_wait) sleeps until there is something; max_bytes bounds the sum of payloads, but one message is always handed out; no_ack settles at once. May return fewer than there are, never none while there is work, except after hotmesh_stream.advance_wait behind another reader. Errors: HM002 unknown stream, HM003 unknown group, 42501 no consume privilege, 0A000 in SERIALIZABLE or waiting in REPEATABLE READ, 22004, 22023';

create function hotmesh_stream.ack(
    stream         text,
    consumer_group text,
    variadic receipts text[]
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_ack';
comment on function hotmesh_stream.ack(text, text, text[]) is
'acknowledges deliveries and returns how many were really settled: a receipt whose hand-out is over counts 0. A bare message id settles the current delivery; a null array settles nothing, as array_agg() gives it for an empty read. Errors: HM001 malformed receipt (none is settled), HM002, HM003, 42501, 0A000 in SERIALIZABLE, 22023 empty array, 22004 null element';

create function hotmesh_stream.nack(
    stream         text,
    consumer_group text,
    receipts       text[],
    delay          interval default null,
    error          jsonb    default null,
    count_attempt  boolean  default true
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_nack';
comment on function hotmesh_stream.nack(text, text, text[], interval, jsonb, boolean) is
'returns deliveries to the group, due after delay (default: the group''s backoff for this attempt), with an error that group_info() and the dead letter show; the last allowed attempt makes a dead letter at once. count_attempt => false gives the attempt back. Returns how many were settled. Errors as ack()';

create function hotmesh_stream.reject(
    stream         text,
    consumer_group text,
    receipts       text[],
    reason         text
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_reject';
comment on function hotmesh_stream.reject(text, text, text[], text) is
'turns deliveries into dead letters now, with a reason; returns how many were settled. Errors as ack()';

create function hotmesh_stream.extend(
    stream         text,
    consumer_group text,
    receipts       text[],
    ack_wait       interval default null
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_extend';
comment on function hotmesh_stream.extend(text, text, text[], interval) is
'makes leases end ack_wait from now (default: the group''s); 0 releases them at once and ends the receipt, which otherwise stays valid; delivery_count does not change. Returns how many leases were still held. Errors as ack()';

create function hotmesh_stream.claim(
    stream         text,
    consumer_group text,
    consumer       text,
    min_idle       interval default '0',
    ids            bigint[] default null,
    after_id       bigint   default 0,
    max_messages   integer  default 100
)
returns setof hotmesh_stream.message
language c volatile parallel unsafe rows 10
as 'MODULE_PATHNAME', 'hms_sql_claim';
comment on function hotmesh_stream.claim(text, text, text, interval, bigint[], bigint, integer) is
'takes over hand-outs that are at least min_idle old, of the given ids or any above after_id, in id order, under a new lease and receipt; what is settled, unknown, never handed out or held by another transaction is left out. Errors as read()';

create function hotmesh_stream.pending(
    stream         text,
    consumer_group text,
    consumer       text     default null,
    min_idle       interval default null,
    after_id       bigint   default 0,
    max_messages   integer  default 100
)
returns setof hotmesh_stream.message
language c volatile parallel unsafe rows 100
as 'MODULE_PATHNAME', 'hms_sql_pending';
comment on function hotmesh_stream.pending(text, text, text, interval, bigint, integer) is
'shows hand-outs that are not settled, with payload and receipt, of one consumer or all, in id order; changes nothing. Errors: HM002, HM003, 42501, 22023';

create function hotmesh_stream.drop_consumer(
    stream         text,
    consumer_group text,
    consumer       text
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_drop_consumer';
comment on function hotmesh_stream.drop_consumer(text, text, text) is
'forgets a consumer and releases what it holds, which is due at once; returns how many deliveries were released. Errors as ack()';

create procedure hotmesh_stream.wait(
    stream         text,
    consumer_group text,
    timeout        interval
)
language c
as 'MODULE_PATHNAME', 'hms_sql_wait';
comment on procedure hotmesh_stream.wait(text, text, interval) is
'returns when there may be work for the group, or after timeout (at most hotmesh_stream.max_wait). Commits before it sleeps, so it holds no snapshot: call it outside a transaction block (2D000). Errors: HM002, HM003, 42501, 22023';
