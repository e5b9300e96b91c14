create function hotmesh_stream.messages(
    stream       text,
    from_id      bigint default null,
    to_id        bigint default null,
    from_time    timestamptz default null,
    to_time      timestamptz default null,
    max_messages integer default 100,
    descending   boolean default false
)
returns table (
    id           bigint,
    payload      json,
    body         bytea,
    content_type text,
    headers      jsonb,
    key          text,
    priority     integer,
    published_at timestamptz
)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_messages';
comment on function hotmesh_stream.messages(text, bigint, bigint, timestamptz, timestamptz, integer, boolean) is
'messages of a stream by id, whoever has consumed them; from_id and to_id are inclusive, published_at lies in [from_time, to_time); null = no bound; max_messages 1 to 10000; changes nothing, works on a standby; needs consume; errors: HM002 unknown stream, 22023 bad argument, 42501 no privilege';

create function hotmesh_stream.delete_messages(
    stream       text,
    ids          bigint[],
    only_settled boolean default false
)
returns integer
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_delete_messages';
comment on function hotmesh_stream.delete_messages(text, bigint[], boolean) is
'deletes messages and the deliveries that groups have of them; with only_settled those that some group has not settled stay; never waits: a message that another transaction deletes is not counted; dead letters keep their own copy; returns how many messages were deleted; needs manage; errors: HM002, 22004, 22023, 42501, 25006 on a standby';

create function hotmesh_stream.trim_stream(
    stream       text,
    max_len      bigint   default null,
    before_id    bigint   default null,
    max_age      interval default null,
    only_settled boolean  default false
)
returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_trim_stream';
comment on function hotmesh_stream.trim_stream(text, bigint, bigint, interval, boolean) is
'deletes the oldest messages of a stream with their deliveries: all but the newest max_len, those below before_id, and those published more than max_age ago; at least one must be given; with only_settled those that some group has not settled stay; returns how many; needs manage; errors: HM002, 22023, 42501, 25006';

create function hotmesh_stream.purge_stream(
    stream text,
    key    text    default null,
    keep   integer default 0
)
returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_purge_stream';
comment on function hotmesh_stream.purge_stream(text, text, integer) is
'deletes all messages of a stream, or those of one key, but for the newest keep, with their deliveries; dead letters stay; returns how many; needs manage; errors: HM002, 22023, 42501, 25006';
