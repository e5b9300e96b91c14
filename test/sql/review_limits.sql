-- Limits of one call, and what it may keep locked.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude

-- max_bytes above inline_bytes, reached by a due delivery and new messages together
select create_stream('rl_bytes');
select create_group('rl_bytes', 'g');
select publish('rl_bytes', to_json(repeat('x', 50000))) > 0 as published;
select nack('rl_bytes', 'g', array_agg(receipt)) from read('rl_bytes', 'g', 'A');
select count(*) from publish_many('rl_bytes', array(select to_json(repeat('y', 4000)) from generate_series(1, 30)));
select count(*), sum(octet_length(payload::text)) <= 70000 as within from read('rl_bytes', 'g', 'A', 30, max_bytes => 70000);

-- the same delivery settled in every way by one statement: once
select create_stream('rl_once');
select create_group('rl_once', 'g');
select count(*) from publish_many('rl_once', array['1', '2', '3']::json[]);
select array_agg(receipt) as receipts from read('rl_once', 'g', 'A', 3) \gset
select ack('rl_once', 'g', r[1]), nack('rl_once', 'g', array[r[1]]), ack('rl_once', 'g', r[1], r[1]),
    nack('rl_once', 'g', array[r[2], r[2]], '1 hour'), ack('rl_once', 'g', r[2]), extend('rl_once', 'g', array[r[2]]),
    reject('rl_once', 'g', array[r[3], r[3]], 'no'), nack('rl_once', 'g', array[r[3]]), ack('rl_once', 'g', r[3])
from (select :'receipts'::text[] as r) x;
select ready, leased, delayed, dead from group_info('rl_once', 'g');

-- several reads in one statement, and one in a cursor that is fetched in parts
select create_stream('rl_join');
select create_group('rl_join', 'g');
select count(*) from publish_many('rl_join', array(select to_json(n) from generate_series(1, 8) n));
select count(*), count(distinct r.id) from generate_series(1, 3) n, lateral read('rl_join', 'g', 'c' || n, 1) r;
begin;
declare c cursor for select count(a.id) over () as a, count(b.id) over () as b from read('rl_join', 'g', 'A', 2) a full join read('rl_join', 'g', 'B', 2) b using (id);
fetch 1 from c;
select count(*) from read('rl_join', 'g', 'A', 1);
fetch all from c;
commit;
select count(*), count(distinct id) from pending('rl_join', 'g');

-- a message that is being redriven keeps its partition until the transaction ends
select create_stream('rl_pin');
select create_group('rl_pin', 'g');
select publish('rl_pin', '1') > 0 as published;
select reject('rl_pin', 'g', array_agg(receipt), 'no') from read('rl_pin', 'g', 'A');
begin;
select redrive('rl_pin', 'g');
select count(*) > 0 as pinned from pg_locks l join pg_inherits i on l.relation = i.inhrelid
where l.pid = pg_backend_pid() and l.mode = 'AccessShareLock' and i.inhparent in (select oid from pg_class where relnamespace = 'hotmesh_stream_data'::regnamespace and relkind = 'p');
commit;
