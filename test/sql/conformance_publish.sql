-- A publish is stored as it was given, once, in its own transaction.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude

-- case 1: given a stream, when publish(payload, headers), then it returns an id, and messages(id, id) yields the same payload and headers
select create_stream('cp1');
select publish('cp1', '{"b": 1, "a": [2, null]}', headers => '{"trace": "x1"}') as id \gset
select :id > 0 as has_id;
select payload, headers, id = :id as same_id from messages('cp1', :id, :id);

-- case 4: given publishes before and inside a savepoint, when the savepoint is rolled back and the transaction commits, then only the former exist
select create_stream('cp4');
select create_group('cp4', 'g');
begin;
select publish('cp4', '"before"') > 0 as published;
savepoint a;
select publish('cp4', '"inside"') > 0 as published;
savepoint b;
select publish('cp4', '"deeper"') > 0 as published;
release b;
rollback to a;
select publish('cp4', '"after"') > 0 as published;
commit;
select payload from messages('cp4');
select payload, delivery_count from read('cp4', 'g', 'A', 10);

-- case 5: given no such stream, when publish, then a distinct error and no stream is created
select fails($$ select publish('cp5', '1') $$);
select fails($$ select publish_bytes('cp5', 'x') $$);
select fails($$ select publish_many('cp5', array['1']::json[]) $$);
select fails($$ select publish_batch('cp5', '[{"payload": 1}]') $$);
select count(*) from stream where name = 'cp5';

-- case 6: given a batch whose 3rd entry is invalid, when publish_batch, then nothing is stored; a valid batch returns ids in array order
select create_stream('cp6');
select fails($$ select publish_batch('cp6', '[{"payload": 1}, {"payload": 2}, {"payload": 3, "delay": "-1 s"}]') $$);
select fails($$ select publish_batch('cp6', '[{"payload": 1}, {"payload": 2}, {"payload": 3, "unknown": 1}]') $$);
select fails($$ select publish_batch('cp6', '[{"payload": 1}, {"payload": 2}, {"headers": {}}]') $$);
select fails($$ select publish_batch('cp6', '[{"payload": 1}, {"payload": 2}, 3]') $$);
select count(*) from messages('cp6');
create temporary table cp6 as
    select * from publish_batch('cp6', '[{"payload": "a"}, {"payload": "b", "headers": {"h": 1}}, {"payload": "c"}]');
select ordinality, id - min(id) over () as id_from_first, duplicate from cp6 order by ordinality;
select m.payload, m.headers, b.ordinality from messages('cp6') m join cp6 b using (id) order by m.id;

-- case 7: given max_message_bytes = N, when payload + headers is N, then it is stored; N + 1 is an error and nothing is stored
select create_stream('cp7', max_message_bytes => 1000);
select publish('cp7', ('"' || repeat('x', 998) || '"')::json) > 0 as stored;
select split_part(fails($$ select publish('cp7', ('"' || repeat('x', 999) || '"')::json) $$), ' ', 1) as sqlstate;
select fails($$ select publish('cp7', ('"' || repeat('x', 999) || '"')::json) $$);
select publish_bytes('cp7', decode(repeat('00', 1000), 'hex')) > 0 as stored;
select fails($$ select publish_bytes('cp7', decode(repeat('00', 1001), 'hex')) $$);
select fails($$ select publish('cp7', ('"' || repeat('x', 998) || '"')::json, headers => '{"h": 1}') $$) ~ '^54000 ' as headers_count;
select fails($$ select publish_many('cp7', array['1', '"' || repeat('x', 999) || '"']::json[]) $$);
select fails($$ select publish_batch('cp7', ('[{"payload": 1}, {"payload": "' || repeat('x', 999) || '"}]')::json) $$);
select count(*) from messages('cp7');

-- case 14: given any session, when it publishes repeatedly, then ids strictly increase
select create_stream('cp14');
create temporary table cp14 (n int generated always as identity, id bigint);
insert into cp14 (id) select publish('cp14', '1');
insert into cp14 (id) select publish('cp14', '2');
insert into cp14 (id) select i from publish_many('cp14', array['3', '4', '5']::json[]) i;
insert into cp14 (id) select id from publish_batch('cp14', '[{"payload": 6}, {"payload": 7}]') order by ordinality;
insert into cp14 (id) select publish_bytes('cp14', '8');
select count(*), bool_and(id > previous) as rising
from (select id, lag(id, 1, 0::bigint) over (order by n) as previous from cp14) s;

-- case 15: given everything deleted, when publish, then the id exceeds every earlier id and delivery follows id order
select create_group('cp14', 'g');
select delete_messages('cp14', (select array_agg(id) from cp14)) as deleted;
select count(*) from messages('cp14');
select publish('cp14', '"next"') > (select max(id) from cp14) as exceeds;
select publish('cp14', '"last"') > (select max(id) from cp14) as exceeds;
select payload from read('cp14', 'g', 'A', 10);

-- case 17: given a transaction that took an id and rolled back, when G reads, then the gap delays nothing and is in no count
select create_stream('cp17');
select create_group('cp17', 'g');
select publish('cp17', '"m1"') > 0 as published;
begin;
select publish('cp17', '"gone"') > 0 as published;
rollback;
select publish('cp17', '"m2"') > 0 as published;
select messages from stream_info('cp17');
select lag from group_info('cp17', 'g');
select payload from read('cp17', 'g', 'A', 10);
select lag, leased from group_info('cp17', 'g');

select drop_stream(s) from unnest(array['cp1', 'cp4', 'cp6', 'cp7', 'cp14', 'cp17']) s;
