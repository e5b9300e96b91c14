-- Consumer groups.

create function hotmesh_stream.create_group(
    stream                text,
    consumer_group        text,
    deliver_policy        text       default 'all',
    ack_wait              interval   default '30s',
    max_deliver           integer    default null,
    backoff               interval[] default null,
    dead_letter_retention interval   default '14 days'
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_create_group';
comment on function hotmesh_stream.create_group(text, text, text, interval, integer, interval[], interval) is
'creates a consumer group that starts with the oldest message (deliver_policy all) or with what commits after this call''s snapshot (new); '
'ack_wait is the length of a lease, max_deliver the number of hand-outs before a message becomes a dead letter (null = no limit), '
'backoff[i] the pause after attempt i (the last entry repeats), dead_letter_retention how long dead letters are kept; '
'returns true, or false when the group exists with this configuration; '
'raises HM005 when it exists with another one, HM002 for an unknown stream, 22004 or 22023 for a bad argument, 42501 without consume on the stream';

create function hotmesh_stream.alter_group(
    stream         text,
    consumer_group text,
    config         jsonb
)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_alter_group';
comment on function hotmesh_stream.alter_group(text, text, jsonb) is
'changes the keys ack_wait and dead_letter_retention (intervals as strings), max_deliver (number or null) and backoff (array of interval strings or null) of a group, '
'used from the next hand-out on; raises HM002 for an unknown stream, HM003 for an unknown group, 22023 naming an unknown or fixed key or a bad value, 42501 without consume on the stream';

create function hotmesh_stream.drop_group(
    stream         text,
    consumer_group text
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_drop_group';
comment on function hotmesh_stream.drop_group(text, text) is
'drops a consumer group with its deliveries and dead letters; blocked readers end with HM003, receipts are void at once; '
'returns false when the stream has no such group; raises HM002 for an unknown stream, 42501 without consume on the stream';

create function hotmesh_stream.grant_stream(
    stream    text,
    privilege text,
    role      regrole
)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_grant_stream';
comment on function hotmesh_stream.grant_stream(text, text, regrole) is
'grants publish, consume or manage on a stream, or on the whole database when stream is null, to a role; manage includes the other two; '
'raises HM002 for an unknown stream, 22023 for an unknown privilege, 42501 without manage on the same';

create function hotmesh_stream.revoke_stream(
    stream    text,
    privilege text,
    role      regrole
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_revoke_stream';
comment on function hotmesh_stream.revoke_stream(text, text, regrole) is
'takes back what grant_stream() granted; returns false when there was no such grant; '
'raises HM002 for an unknown stream, 22023 for an unknown privilege, 42501 without manage on the same';
