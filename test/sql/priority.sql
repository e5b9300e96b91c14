-- Priorities: the highest first, redeliveries before new messages of their own
-- priority, messages that commit late in theirs; and keys.
set search_path = hotmesh_stream, public;
\pset format unaligned
\pset tuples_only on

select create_stream('prio', max_priority => 6), create_group('prio', 'g', backoff => array['0 s']::interval[]);
select create_stream('prio', max_priority => 6);
select create_stream('prio', max_priority => 5);
select alter_stream('prio', '{"max_priority": 5}');
select publish('prio', '1', priority => 7);
select publish('prio', '1', priority => -1);
select publish('prio', '1', key => '');

-- the rows of one call, and of several
select count(*) from (select publish('prio', to_json(i), priority => i % 7, key => 'k' || i % 2) from generate_series(1, 21) i) p;
select priority, payload, key from read('prio', 'g', 'c', 4);
select priority, payload from read('prio', 'g', 'c', 1);
select count(*) from (select publish('prio', to_json(i), priority => 6) from generate_series(100, 101) i) p;
select priority, payload from read('prio', 'g', 'c', 2);

-- a redelivery of a low priority waits for the log of a higher one
select nack('prio', 'g', array_agg(receipt)) from pending('prio', 'g');
select priority, payload::text, delivery_count from read('prio', 'g', 'c', 7);
select priority, payload::text, delivery_count from read('prio', 'g', 'c', 3);
select priority, count(*) from read('prio', 'g', 'c', 1000) group by 1 order by 1 desc;
select ack('prio', 'g', variadic array_agg(receipt)) from pending('prio', 'g');

-- in a transaction, by way of ready rows
select count(*) from (select publish('prio', to_json(i), priority => i % 7) from generate_series(1, 14) i) p;
begin;
select priority, payload from read('prio', 'g', 'c', 1);
select priority, payload from read('prio', 'g', 'c', 1);
commit;
select publish('prio', '"urgent"', priority => 6) > 0;
begin;
select priority, payload from read('prio', 'g', 'c', 2);
rollback;
select priority, payload from read('prio', 'g', 'c', 1);
select priority, count(*) from read('prio', 'g', 'c', 1000) group by 1 order by 1 desc;
select ack('prio', 'g', variadic array_agg(receipt)) from pending('prio', 'g');

-- delayed messages keep their priority
select publish('prio', '"later"', priority => 5, delay => '1 h') > 0, publish('prio', '"low"', priority => 1) > 0;
select priority, payload from read('prio', 'g', 'c', 10);

-- a stream whose priorities were raised later
select create_stream('raised'), create_group('raised', 'g');
select publish('raised', '"old"') > 0;
select payload from read('raised', 'g', 'c');
select publish('raised', '"low"') > 0, alter_stream('raised', '{"max_priority": 9}');
select publish('raised', '"high"', priority => 9) > 0;
select payload, priority from read('raised', 'g', 'c', 10);
select payload, priority from read('raised', 'g', 'c', 10);
select config ->> 'max_priority' from stream_info('raised');

select priority, key, payload from publish_batch('prio', '[{"payload": 1, "priority": 3, "key": "a"}]') p, messages('prio', from_id => p.id);
select drop_stream('prio'), drop_stream('raised');
