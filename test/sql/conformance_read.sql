-- Who reads what, how often, and in which order.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude

-- case 34: given 3 available, when read(max 10, wait 5 s), then 3 return immediately
select create_stream('cr34');
select create_group('cr34', 'g');
select count(*) from publish_many('cr34', array['"m1"', '"m2"', '"m3"']::json[]);
select clock_timestamp() as began \gset
select payload from read('cr34', 'g', 'A', 10, wait => '30 s');
select clock_timestamp() - :'began' < interval '25 s' as did_not_wait;

-- case 35: given m1 leased to A, when B reads before the deadline, then nothing; after it, then m1 with a different receipt
select create_stream('cr35');
select create_group('cr35', 'g', ack_wait => '1 hour');
select publish('cr35', '"m1"') > 0 as published;
select receipt as long_lease from read('cr35', 'g', 'A') \gset
select count(*) from read('cr35', 'g', 'B');
select extend('cr35', 'g', array[:'long_lease'], '200 ms');
select deadline as deadline_a from pending('cr35', 'g') \gset
select receipt as receipt_b, payload, delivery_count, delivered_at >= :'deadline_a' as after_deadline
from read('cr35', 'g', 'B', wait => '20 s') \gset
\echo :payload :delivery_count :after_deadline
select :'receipt_b' <> :'long_lease' as another_receipt, split_part(:'receipt_b', ':', 1) = split_part(:'long_lease', ':', 1) as same_id;
select :'receipt_b' ~ '^[0-9]+:[0-9a-f]{16}$' as well_formed;

-- case 36: given m1-m3 expired and m4-m6 new, when read(max 6), then m1..m6 in id order, counts 2,2,2,1,1,1
select create_stream('cr36');
select create_group('cr36', 'g', ack_wait => '1 hour');
select count(*) from publish_many('cr36', array['"m1"', '"m2"', '"m3"']::json[]);
select count(*) from read('cr36', 'g', 'A', 3, ack_wait => '0.2 s');
select count(*) from publish_many('cr36', array['"m4"', '"m5"', '"m6"']::json[]);
-- nothing but the end of the leases is waited for: m4 to m6 are not asked for before
call t.until($$ select bool_and(deadline < clock_timestamp()) from pending('cr36', 'g') $$);
select payload, delivery_count from read('cr36', 'g', 'B', 6);

-- case 37: given repeated deliveries, then delivery_count is 1,2,3, first_delivered_at is constant, delivered_at moves
select create_stream('cr37');
select create_group('cr37', 'g', ack_wait => '0.2 s');
select publish('cr37', '"m1"') > 0 as published;
create temporary table cr37 as select * from read('cr37', 'g', 'A', wait => '20 s');
insert into cr37 select * from read('cr37', 'g', 'B', wait => '20 s');
insert into cr37 select * from read('cr37', 'g', 'A', wait => '20 s');
select delivery_count, first_delivered_at = min(delivered_at) over () as first_constant,
       delivered_at > lag(delivered_at, 1, '-infinity') over (order by delivery_count) as delivered_moves,
       deadline - delivered_at as lease, published_at < delivered_at as published_before
from cr37 order by delivery_count;

-- case 38: given read(no_ack), then nothing is pending and nothing is redelivered
select create_stream('cr38');
select create_group('cr38', 'g', ack_wait => '0.1 s');
select count(*) from publish_many('cr38', array['"m1"', '"m2"']::json[]);
select payload, receipt, delivery_count, deadline from read('cr38', 'g', 'A', 10, no_ack => true);
select count(*) from pending('cr38', 'g');
select count(*) from read('cr38', 'g', 'A', 10, wait => '0.5 s');
select lag, leased from group_info('cr38', 'g');

-- case 39: given m1 leased to A and m2 available, when B reads no_ack(max 10), then B gets only m2 and A's lease is untouched
select create_stream('cr39');
select create_group('cr39', 'g', ack_wait => '1 hour');
select count(*) from publish_many('cr39', array['"m1"', '"m2"']::json[]);
select receipt as receipt_a from read('cr39', 'g', 'A') \gset
select deadline as deadline_a from pending('cr39', 'g') \gset
select payload from read('cr39', 'g', 'B', 10, no_ack => true);
select payload, receipt = :'receipt_a' as same_receipt, deadline = :'deadline_a' as same_deadline from pending('cr39', 'g', 'A');
select ack('cr39', 'g', :'receipt_a');

-- case 40: given 3 messages of 100 bytes, when read(max_bytes 150), then 1; max_bytes 50, then still 1
select create_stream('cr40');
select create_group('cr40', 'g');
select count(*) from publish_many('cr40', (select array_agg(to_json(repeat(i::text, 98))) from generate_series(1, 3) i));
select left(payload::text, 3) as payload from read('cr40', 'g', 'A', 10, max_bytes => 150);
select left(payload::text, 3) as payload from read('cr40', 'g', 'A', 10, max_bytes => 50);
select left(payload::text, 3) as payload from read('cr40', 'g', 'A', 10, max_bytes => 150);
select count(*) from read('cr40', 'g', 'A', 10, max_bytes => 150);

-- case 44: given ids that are acked, deleted, unknown or never delivered, when claim, then they are absent from the result, no error
select create_stream('cr44');
select create_group('cr44', 'g', ack_wait => '1 hour');
create temporary table cr44 as
    select * from publish_batch('cr44', '[{"payload": "acked"}, {"payload": "deleted"}, {"payload": "leased"}, {"payload": "new"}]');
select array_agg(id order by id) as ids from cr44 \gset
create temporary table cr44_leased as select * from read('cr44', 'g', 'A', 3);
select ack('cr44', 'g', (select receipt from cr44_leased where payload::text = '"acked"'));
select delete_messages('cr44', array[(select id from cr44 where ordinality = 2)]);
select payload, delivery_count from claim('cr44', 'g', 'B', ids => :'ids'::bigint[] || 9223372036854775807);
select payload from read('cr44', 'g', 'A', 10);

-- case 45: given 5 leased, when claim(after_id, max 2) is iterated, then every row is returned exactly once
select create_stream('cr45');
select create_group('cr45', 'g', ack_wait => '1 hour');
select count(*) from publish_many('cr45', array['1', '2', '3', '4', '5']::json[]);
select count(*) from read('cr45', 'g', 'A', 10);
create temporary table cr45 (round int, payload json, id bigint, delivery_count int);
insert into cr45 select 1, payload, id, delivery_count from claim('cr45', 'g', 'B', after_id => 0, max_messages => 2);
insert into cr45 select 2, payload, id, delivery_count from claim('cr45', 'g', 'B', after_id => (select max(id) from cr45), max_messages => 2);
insert into cr45 select 3, payload, id, delivery_count from claim('cr45', 'g', 'B', after_id => (select max(id) from cr45), max_messages => 2);
insert into cr45 select 4, payload, id, delivery_count from claim('cr45', 'g', 'B', after_id => (select max(id) from cr45), max_messages => 2);
select round, payload, delivery_count from cr45 order by round, id;
select count(*) from pending('cr45', 'g', 'A');
select count(*) from pending('cr45', 'g', 'B');

-- case 46: given A holds m1, m2, when pending(A), then both with payload, and no count, deadline or owner changed
select create_stream('cr46');
select create_group('cr46', 'g', ack_wait => '1 hour');
select count(*) from publish_many('cr46', array['"m1"', '"m2"', '"m3"']::json[]);
create temporary table cr46 as select * from read('cr46', 'g', 'A', 2);
select payload from read('cr46', 'g', 'B');
select payload, delivery_count from pending('cr46', 'g', 'A');
select count(*) as unchanged from pending('cr46', 'g', 'A') p join cr46 r using (id, receipt, delivery_count, first_delivered_at, delivered_at, deadline, published_at);
select payload from pending('cr46', 'g');
select payload from pending('cr46', 'g', max_messages => 1);
select payload from pending('cr46', 'g', after_id => (select min(id) from cr46));
select count(*) from pending('cr46', 'g', min_idle => '1 hour');
select count(*) from pending('cr46', 'g', min_idle => '0');

-- case 47: given read in a transaction, when it rolls back, then the message is available at once
select create_stream('cr47');
select create_group('cr47', 'g', ack_wait => '1 hour');
select publish('cr47', '"m1"') > 0 as published;
begin;
select payload, delivery_count from read('cr47', 'g', 'A');
rollback;
select payload, delivery_count from read('cr47', 'g', 'B');

-- case 50: given an empty stream, when read(wait 0), then empty at once; with data and wait 5 s, at once
select create_stream('cr50');
select create_group('cr50', 'g');
select count(*) from read('cr50', 'g', 'A', wait => '0');
select publish('cr50', '"m1"') > 0 as published;
select payload from read('cr50', 'g', 'A', wait => '5 s');

-- case 52: given wait 1 s and no message, then it returns empty after at least 1 s
select clock_timestamp() as began \gset
select count(*) from read('cr50', 'g', 'A', wait => '1 s');
select clock_timestamp() - :'began' >= interval '1 s' as waited;

-- case 59: given REPEATABLE READ, or wait above the documented maximum, when read(wait > 0), then error
begin isolation level repeatable read;
select fails($$ select * from read('cr50', 'g', 'A', wait => '1 s') $$);
commit;
select current_setting('hotmesh_stream.max_wait') as max_wait;
select fails($$ select * from read('cr50', 'g', 'A', wait => '31 s') $$);
select publish('cr50', '"m2"') > 0 as published;
begin isolation level repeatable read;
select payload from read('cr50', 'g', 'A');
commit;

-- case 84: given A died, when B reads after ack_wait, then B gets A's messages; no reaper has to run
select create_stream('cr84');
select create_group('cr84', 'g', ack_wait => '0.2 s');
select count(*) from publish_many('cr84', array['"m1"', '"m2"']::json[]);
select count(*) from read('cr84', 'g', 'A', 10);
call t.until($$ select bool_and(deadline < clock_timestamp()) from pending('cr84', 'g') $$);
select payload, delivery_count from read('cr84', 'g', 'B', 10);

select drop_stream(s) from unnest(array['cr34', 'cr35', 'cr36', 'cr37', 'cr38', 'cr39', 'cr40', 'cr44', 'cr45', 'cr46', 'cr47', 'cr50', 'cr84']) s;
