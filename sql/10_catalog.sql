-- Configuration: small tables, dumped with their rows.

create sequence hotmesh_stream.namespace_id_seq as integer;
create sequence hotmesh_stream.stream_id_seq as integer;
create sequence hotmesh_stream.group_id_seq as integer;
create sequence hotmesh_stream.incarnation_seq;
create sequence hotmesh_stream.message_id_seq cache 1;
comment on sequence hotmesh_stream.namespace_id_seq is 'ids of namespaces; never used twice';
comment on sequence hotmesh_stream.stream_id_seq is 'ids of streams; never used twice, so that rows of a dropped stream stay unreachable';
comment on sequence hotmesh_stream.group_id_seq is 'ids of consumer groups; never used twice';
comment on sequence hotmesh_stream.incarnation_seq is 'keys of cursors and deliveries; a new one voids every older receipt';
comment on sequence hotmesh_stream.message_id_seq is
'message ids of this database; CACHE must stay 1 and setval must never go back: readers rely on ids rising in time of allocation';

create table hotmesh_stream.namespace (
    namespace_id       integer     not null,
    name               text        not null,
    partition_interval interval    not null,
    premake            integer     not null,
    retention          interval,
    retention_hard     interval,
    created_at         timestamptz not null,
    constraint namespace_pkey primary key (namespace_id),
    constraint namespace_name_key unique (name)
);
comment on table hotmesh_stream.namespace is 'storage units: one partitioned log each';
comment on column hotmesh_stream.namespace.partition_interval is 'width of a log partition, at least one hour';
comment on column hotmesh_stream.namespace.premake is 'partitions kept ready ahead of the current one';
comment on column hotmesh_stream.namespace.retention is 'age at which a partition that no group needs is dropped; null = never';
comment on column hotmesh_stream.namespace.retention_hard is 'age at which a partition is dropped although groups need it; null = never';

create table hotmesh_stream.log_partition (
    namespace_id integer     not null,
    lower_bound  timestamptz not null,
    upper_bound  timestamptz not null,
    min_id       bigint      not null,
    max_id       bigint      not null,
    constraint log_partition_pkey primary key (namespace_id, lower_bound)
);
comment on table hotmesh_stream.log_partition is
'sealed log partitions: nothing is ever added to them, and their message ids lie between min_id and max_id (0 and 0 when empty)';

create table hotmesh_stream.stream (
    stream_id         integer     not null,
    namespace_id      integer     not null,
    name              text        not null,
    max_message_bytes integer     not null,
    max_priority      integer     not null,
    delay             interval    not null,
    created_at        timestamptz not null,
    constraint stream_pkey primary key (stream_id),
    constraint stream_name_key unique (name)
);
create index stream_namespace_idx on hotmesh_stream.stream (namespace_id);
comment on table hotmesh_stream.stream is 'streams and their configuration';
comment on column hotmesh_stream.stream.max_priority is
'highest priority that messages may have (0..9); each priority in use costs a read one more look';

create table hotmesh_stream.consumer_group (
    group_id              integer     not null,
    stream_id             integer     not null,
    name                  text        not null,
    incarnation           bigint      not null,
    deliver_policy        text        not null,
    start_id              bigint      not null,
    ack_wait              interval    not null,
    max_deliver           integer,
    backoff               interval[],
    dead_letter_retention interval    not null,
    error_stream          text,
    default_batch         integer,
    default_wait          interval,
    created_at            timestamptz not null,
    constraint consumer_group_pkey primary key (group_id),
    constraint consumer_group_name_key unique (stream_id, name)
);
comment on table hotmesh_stream.consumer_group is 'consumer groups, their configuration and current incarnation';
comment on column hotmesh_stream.consumer_group.incarnation is 'key of the group''s cursor and deliveries';
comment on column hotmesh_stream.consumer_group.start_id is 'position of a priority level that the cursor has not reached yet: messages above it belong to the group';

comment on column hotmesh_stream.consumer_group.error_stream is
'HotMesh: stream that gets an error response (code 999) for each message that used up its deliveries; null = none';

comment on column hotmesh_stream.consumer_group.default_batch is 'HotMesh: messages per hotmesh_consume() that names no batchSize; null = 1';
comment on column hotmesh_stream.consumer_group.default_wait is 'HotMesh: how long hotmesh_consume() waits that names no wait; null = 0';

create table hotmesh_stream.throttle (
    stream_id integer not null,
    group_id  integer not null,
    pause_ms  integer not null,
    constraint throttle_pkey primary key (stream_id, group_id)
);
comment on table hotmesh_stream.throttle is
'pauses of hotmesh_consume(): stream_id 0 stands for all streams, group_id 0 for all groups of the stream; the most specific row counts';
comment on column hotmesh_stream.throttle.pause_ms is 'least time between two hand-outs to one consumer, in ms; -1 = nothing is handed out';

create table hotmesh_stream.registered_consumer (
    group_id integer not null,
    name     text    not null,
    role     text    not null,
    topic    text,
    readonly boolean not null,
    pause_ms integer not null,
    config   json    not null,
    registered_at timestamptz not null,
    constraint registered_consumer_pkey primary key (group_id, name)
);
comment on table hotmesh_stream.registered_consumer is 'HotMesh routers that registered themselves, name = guid';
comment on column hotmesh_stream.registered_consumer.readonly is 'true = nothing is handed out to it';
comment on column hotmesh_stream.registered_consumer.pause_ms is 'its own throttle, which counts where table throttle has no row for it';
comment on column hotmesh_stream.registered_consumer.config is 'the RouterConfig as it was given';

create table hotmesh_stream.privilege (
    stream_id integer not null,
    role      regrole not null,
    privilege text    not null,
    constraint privilege_pkey primary key (stream_id, role, privilege)
);
comment on table hotmesh_stream.privilege is 'who may publish, consume or manage; stream_id 0 stands for the database';

-- State: written by the hot path, read and written through the access methods only.

create table hotmesh_stream.cursor (
    incarnation bigint  not null,
    pos0 bigint, pos1 bigint, pos2 bigint, pos3 bigint, pos4 bigint,
    pos5 bigint, pos6 bigint, pos7 bigint, pos8 bigint, pos9 bigint,
    spilled     boolean not null,
    pending     bytea   not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0);
alter table hotmesh_stream.cursor alter column pending set storage plain;
-- not unique: under a held snapshot a uniqueness check walks every dead version of the row
create index cursor_incarnation_idx on hotmesh_stream.cursor (incarnation);
comment on table hotmesh_stream.cursor is
'one row per consumer group incarnation: the position per priority level, and the transactions that were undecided when it passed them';
comment on column hotmesh_stream.cursor.spilled is 'true when older pending transactions stand in cursor_spill';

create table hotmesh_stream.cursor_spill (
    incarnation bigint not null,
    pending     bytea  not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
create index cursor_spill_incarnation_idx on hotmesh_stream.cursor_spill (incarnation);
comment on table hotmesh_stream.cursor_spill is
'pending transactions that a cursor has had for long, kept out of its hot row; rewritten only when the set changes';

create table hotmesh_stream.delivery (
    incarnation        bigint      not null,
    id                 bigint      not null,
    due_at             timestamptz not null,
    attempts           integer     not null,
    priority           smallint    not null,
    lease_until        timestamptz,
    token              bigint,
    first_delivered_at timestamptz,
    delivered_at       timestamptz,
    consumer           text,
    last_error         jsonb,
    retries            integer
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
create index delivery_claim_idx on hotmesh_stream.delivery (incarnation, priority desc, due_at, id);
create index delivery_id_idx on hotmesh_stream.delivery (incarnation, id);
comment on table hotmesh_stream.delivery is
'messages a group was handed or owes later: leased, due again or delayed; never one row per unread message';
comment on column hotmesh_stream.delivery.due_at is 'when the message may be handed out (again)';
comment on column hotmesh_stream.delivery.lease_until is 'end of the current lease; null while nobody holds one';
comment on column hotmesh_stream.delivery.retries is
'retries after an error answer, null = 0; they do not count towards max_deliver';
comment on column hotmesh_stream.delivery.token is 'random number of the current hand-out, the second half of its receipt';

create table hotmesh_stream.dead_letter (
    group_id           integer     not null,
    id                 bigint      not null,
    priority           smallint    not null,
    attempts           integer     not null,
    dead_at            timestamptz not null,
    reason             text        not null,
    first_delivered_at timestamptz,
    last_delivered_at  timestamptz,
    last_consumer      text,
    last_error         jsonb,
    published_at       timestamptz not null,
    key                text,
    headers            jsonb,
    payload            json,
    body               bytea,
    content_type       text
);
create index dead_letter_idx on hotmesh_stream.dead_letter (group_id, id);
comment on table hotmesh_stream.dead_letter is
'messages that a group gave up, with their own copy of the message, until discarded or older than the group''s dead_letter_retention';

create table hotmesh_stream.consumer (
    group_id    integer not null,
    name        text    not null,
    last_seen   timestamptz not null,
    last_active timestamptz,
    constraint consumer_pkey primary key (group_id, name)
);
comment on table hotmesh_stream.consumer is 'consumers that were seen reading; written by the worker from shared memory';

-- Not dumped on purpose: a database that has messages but not this row was restored logically.
create table hotmesh_stream.xid_offset (
    xid_offset bigint not null
);
comment on table hotmesh_stream.xid_offset is
'added to every transaction id that is stored; absent after a logical restore, whose first use computes a new one';

-- The row type of every log.
create type hotmesh_stream.log_row as (
    stream_id    integer,
    priority     smallint,
    id           bigint,
    xid          bigint,
    published_at timestamptz,
    deliver_at   timestamptz,
    expires_at   timestamptz,
    key          text,
    headers      jsonb,
    payload      json,
    body         bytea,
    content_type text,
    dedup_id     text
);
comment on type hotmesh_stream.log_row is 'one message of a log; every log table is of this type';

-- What read(), claim() and pending() return.
create type hotmesh_stream.message as (
    id                 bigint,
    receipt            text,
    payload            json,
    body               bytea,
    content_type       text,
    headers            jsonb,
    key                text,
    priority           integer,
    delivery_count     integer,
    published_at       timestamptz,
    first_delivered_at timestamptz,
    delivered_at       timestamptz,
    deadline           timestamptz
);
comment on type hotmesh_stream.message is
'a message as a consumer receives it: receipt settles this hand-out, delivery_count counts hand-outs, deadline is the end of the lease (null without a lease)';

select pg_catalog.pg_extension_config_dump('hotmesh_stream.namespace_id_seq', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.stream_id_seq', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.group_id_seq', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.incarnation_seq', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.message_id_seq', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.namespace', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.log_partition', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.stream', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.consumer_group', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.privilege', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.throttle', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.registered_consumer', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.cursor', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.cursor_spill', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.delivery', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.dead_letter', '');
select pg_catalog.pg_extension_config_dump('hotmesh_stream.consumer', '');
