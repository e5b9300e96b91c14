-- The floor: a plain table with the columns and partitions of a log, and one index.
create sequence floor_id_seq;
create table floor (
    stream_id    integer     not null,
    priority     smallint    not null,
    id           bigint      not null,
    xid          bigint      not null,
    published_at timestamptz not null,
    deliver_at   timestamptz,
    expires_at   timestamptz,
    key          text,
    headers      jsonb,
    payload      json,
    body         bytea,
    content_type text,
    dedup_id     text
) partition by range (published_at);
create index on floor (stream_id, priority, id);
select format('create table floor_%s partition of floor for values from (%L) to (%L)',
    n, current_date + n - 4, current_date + n - 3)
from generate_series(0, 8) as n
\gexec

-- A queue in one table, claimed with a CTE of SELECT ... FOR UPDATE SKIP LOCKED and
-- UPDATE ... RETURNING, acked by a soft delete: the shape of HotMesh's own statements.
create table claim_queue (
    id          bigint generated always as identity,
    stream      text        not null,
    message     text        not null,
    created_at  timestamptz not null default now(),
    reserved_at timestamptz,
    reserved_by text,
    expired_at  timestamptz,
    primary key (stream, id)
);
create index on claim_queue (stream, id) where expired_at is null;
