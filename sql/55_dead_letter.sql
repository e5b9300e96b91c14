create function hotmesh_stream.dead_letters(
    stream         text,
    consumer_group text,
    after_id       bigint default 0,
    max_messages   integer default 100
)
returns table (
    id                 bigint,
    payload            json,
    body               bytea,
    content_type       text,
    headers            jsonb,
    key                text,
    priority           integer,
    delivery_count     integer,
    published_at       timestamptz,
    first_delivered_at timestamptz,
    last_delivered_at  timestamptz,
    last_consumer      text,
    last_error         jsonb,
    dead_at            timestamptz,
    reason             text
)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_dead_letters';
comment on function hotmesh_stream.dead_letters(text, text, bigint, integer) is
'messages that a consumer group gave up, by id, with their own copy of the message and why they died; page with after_id; max_messages 1 to 10000; needs consume; errors: HM002 unknown stream, HM003 unknown group, 22023 bad argument, 42501 no privilege';

create function hotmesh_stream.redrive(
    stream         text,
    consumer_group text,
    ids            bigint[] default null,
    max_messages   integer default 100,
    to_stream      text default null
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_redrive';
comment on function hotmesh_stream.redrive(text, text, bigint[], integer, text) is
'gives dead letters back: due at once for their group with a fresh delivery count, or published to another stream; ids null = the oldest ones; max_messages 1 to 10000; returns how many; dead letters that another transaction holds are skipped; needs consume, and publish on to_stream; errors: HM002, HM003, 22004, 22023, 42501, 25006 on a standby';

create function hotmesh_stream.discard_dead_letters(
    stream         text,
    consumer_group text,
    ids            bigint[] default null,
    older_than     interval default null
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_discard_dead_letters';
comment on function hotmesh_stream.discard_dead_letters(text, text, bigint[], interval) is
'deletes dead letters: those with these ids that died longer ago than older_than; null = any id, any age; returns how many; needs consume; errors: HM002, HM003, 22004, 22023, 42501, 25006 on a standby';
