create function hotmesh_stream.stream_info(
    stream text default null
)
returns table (
    stream             text,
    namespace          text,
    messages           bigint,
    messages_estimated boolean,
    bytes              bigint,
    first_id           bigint,
    last_id            bigint,
    first_published_at timestamptz,
    last_published_at  timestamptz,
    groups             integer,
    publish_rate       double precision,
    created_at         timestamptz,
    config             jsonb
)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_stream_info';
comment on function hotmesh_stream.stream_info(text) is
'one row per stream (null: all that the caller may see): messages in the log (exact up to 100,000, then estimated and flagged), bytes of payload, body and headers, ids and publish times of the first and last message (null when empty), number of groups, publish_rate in messages per second on average since stat_stream.since, configuration; works on a standby; needs publish, consume, manage or pg_monitor; errors: HM002 unknown stream, 42501 no privilege';

create function hotmesh_stream.group_info(
    stream         text,
    consumer_group text default null
)
returns table (
    stream            text,
    consumer_group    text,
    lag               bigint,
    lag_estimated     boolean,
    ready             bigint,
    leased            bigint,
    delayed           bigint,
    dead              bigint,
    redelivered       bigint,
    ack_floor         bigint,
    last_delivered_id bigint,
    waiting           integer,
    oldest_age        interval,
    avg_processing    interval,
    last_error        jsonb,
    config            jsonb,
    created_at        timestamptz
)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_group_info';
comment on function hotmesh_stream.group_info(text, text) is
'one row per consumer group (null: all of the stream). lag: messages the group has not taken from the log yet, exact up to 100,000, then estimated and flagged. Of its open deliveries: leased = the lease has not ended, ready = nobody holds it and it is due, delayed = nobody holds it and it is due later; redelivered = those handed out more than once. dead: dead letters. ack_floor: highest message id in the log such that it and every earlier message of the group is settled, 0 if none. last_delivered_id: highest message id in the log that a consumer was given, 0 if none. waiting: blocked readers. oldest_age: age of the oldest message not settled, null if none. avg_processing: from hand-out to ack, on average since stat_group.since. last_error: of the latest attempt that reported one and is still open or dead; null without consume, as it may quote the message. Works on a standby; needs publish, consume, manage or pg_monitor; errors: HM002, HM003, 42501';

create function hotmesh_stream.consumer_info(
    stream         text,
    consumer_group text
)
returns table (
    consumer    text,
    leased      bigint,
    last_seen   timestamptz,
    last_active timestamptz,
    role        text,
    topic       text,
    readonly    boolean
)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_consumer_info';
comment on function hotmesh_stream.consumer_info(text, text) is
'consumers that hold a lease or were seen reading in the last seven days: leases that have not ended, the last read, and the last read that returned a message (null = never seen); role, topic and readonly are those of a registered HotMesh router (null = not registered); works on a standby; needs publish, consume, manage or pg_monitor; errors: HM002, HM003, 42501';

create function hotmesh_stream.health()
returns table (
    check_name text,
    ok         boolean,
    detail     text
)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_health';
comment on function hotmesh_stream.health() is
'what needs an operator''s attention: one row per check, ok = nothing to do, detail says what was found; reads only, works on a standby; needs pg_monitor or manage on the database; errors: 42501 no privilege';

create function hotmesh_stream.stat_stream_rows()
returns table (
    stream          text,
    published       bigint,
    published_bytes bigint,
    deleted         bigint,
    retired_unread  bigint,
    since           timestamptz
)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_stat_stream_rows';
comment on function hotmesh_stream.stat_stream_rows() is
'rows of view stat_stream; needs pg_monitor; errors: 42501 no privilege';

create function hotmesh_stream.stat_group_rows()
returns table (
    stream         text,
    consumer_group text,
    delivered      bigint,
    redelivered    bigint,
    acked          bigint,
    nacked         bigint,
    expired        bigint,
    dead           bigint,
    redriven       bigint,
    lost_settles   bigint,
    missing        bigint,
    stalled        bigint,
    processing     interval,
    since          timestamptz
)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_stat_group_rows';
comment on function hotmesh_stream.stat_group_rows() is
'rows of view stat_group; needs pg_monitor; errors: 42501 no privilege';

create view hotmesh_stream.stat_stream as
select
    s.stream,
    s.published,
    s.published_bytes,
    s.deleted,
    s.retired_unread,
    s.since
from hotmesh_stream.stat_stream_rows() as s;
comment on view hotmesh_stream.stat_stream is
'counters per stream, cumulative since "since"; kept in shared memory, saved at a clean stop, lost in a crash; readable by pg_monitor';
comment on column hotmesh_stream.stat_stream.published is 'messages published';
comment on column hotmesh_stream.stat_stream.published_bytes is 'payload, body and headers of these, in bytes';
comment on column hotmesh_stream.stat_stream.deleted is 'messages deleted by delete_messages()';
comment on column hotmesh_stream.stat_stream.retired_unread is 'messages dropped by retention_hard that a group still needed, summed over groups';
comment on column hotmesh_stream.stat_stream.since is 'when counting began; null = nothing counted yet';

create view hotmesh_stream.stat_group as
select
    g.stream,
    g.consumer_group,
    g.delivered,
    g.redelivered,
    g.acked,
    g.nacked,
    g.expired,
    g.dead,
    g.redriven,
    g.lost_settles,
    g.missing,
    g.stalled,
    g.processing,
    g.since
from hotmesh_stream.stat_group_rows() as g;
comment on view hotmesh_stream.stat_group is
'counters per consumer group, cumulative since "since"; kept in shared memory, saved at a clean stop, lost in a crash; readable by pg_monitor';
comment on column hotmesh_stream.stat_group.delivered is 'hand-outs, first and later ones';
comment on column hotmesh_stream.stat_group.redelivered is 'hand-outs that were not the first of their message';
comment on column hotmesh_stream.stat_group.acked is 'deliveries acked';
comment on column hotmesh_stream.stat_group.nacked is 'deliveries nacked';
comment on column hotmesh_stream.stat_group.expired is 'leases that lapsed and were handed out again or became dead letters';
comment on column hotmesh_stream.stat_group.dead is 'messages that became dead letters';
comment on column hotmesh_stream.stat_group.redriven is 'dead letters given back by redrive()';
comment on column hotmesh_stream.stat_group.lost_settles is 'receipts that settled nothing';
comment on column hotmesh_stream.stat_group.missing is 'deliveries whose message was gone from the log';
comment on column hotmesh_stream.stat_group.stalled is 'reads that gave up after hotmesh_stream.advance_wait';
comment on column hotmesh_stream.stat_group.processing is 'time from hand-out to ack, summed over acked';
comment on column hotmesh_stream.stat_group.since is 'when counting began; null = nothing counted yet';
