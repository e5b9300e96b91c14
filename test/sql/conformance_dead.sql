-- A message that a group gives up is kept, shown and can be brought back.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude

-- case 85: given max_deliver 1 expired and no reader, when maintain(), then it is listed in dead_letters and not counted as leased
select create_stream('cd85');
select create_group('cd85', 'g', max_deliver => 1);
select publish('cd85', '"m1"') > 0 as published;
select payload from read('cd85', 'g', 'A', ack_wait => '1 ms');
call until($$ select coalesce(bool_and(deadline < clock_timestamp()), true) from pending('cd85', 'g') $$);
call maintain();
select payload, delivery_count from dead_letters('cd85', 'g');
select leased, delayed, dead from group_info('cd85', 'g');
select count(*) from read('cd85', 'g', 'B');

-- case 89: given max_deliver 3 and silent consumers, then exactly 3 deliveries, then dead
select create_stream('cd89');
select create_group('cd89', 'g', ack_wait => '50 ms', max_deliver => 3);
select publish('cd89', '"m1"') > 0 as published;
select payload, delivery_count from read('cd89', 'g', 'A', wait => '20 s');
select payload, delivery_count from read('cd89', 'g', 'B', wait => '20 s');
select payload, delivery_count from read('cd89', 'g', 'C', wait => '20 s');
select payload, delivery_count from read('cd89', 'g', 'D', wait => '0.5 s');
select payload, delivery_count, last_consumer from dead_letters('cd89', 'g');

-- case 90: given a dead letter, then id, payload, headers, delivery_count, first and last delivery, last consumer and reason are readable
select create_stream('cd90');
select create_group('cd90', 'g', ack_wait => '1 hour');
select publish('cd90', '{"z": 1, "a": 2}', headers => '{"h": "v"}') as id \gset
select receipt, first_delivered_at from read('cd90', 'g', 'A') \gset
select nack('cd90', 'g', array[:'receipt'], error => '{"code": 1}');
select receipt, delivered_at from read('cd90', 'g', 'B') \gset
select reject('cd90', 'g', array[:'receipt'], 'too odd');
select id = :id as id, payload, headers, delivery_count, first_delivered_at = :'first_delivered_at' as first_delivery,
       last_delivered_at = :'delivered_at' as last_delivery, last_consumer, reason, last_error,
       dead_at >= last_delivered_at as died_after, published_at <= first_delivered_at as published_before
from dead_letters('cd90', 'g');
select delete_messages('cd90', array[:id]);
select payload, headers from dead_letters('cd90', 'g');

-- case 91: given m1 dead in G, then G2 still gets m1
select create_stream('cd91');
select create_group('cd91', 'g');
select create_group('cd91', 'g2');
select publish('cd91', '"m1"') > 0 as published;
select reject('cd91', 'g', array_agg(receipt), 'bad') from read('cd91', 'g', 'A');
select payload, delivery_count from read('cd91', 'g2', 'A');

-- case 93: given 4 dead, when redrive(max 2), then the 2 oldest are available with delivery_count restarting at 1; returns 2
select create_stream('cd93');
select create_group('cd93', 'g', ack_wait => '1 hour');
select count(*) from publish_many('cd93', array['"m1"', '"m2"', '"m3"', '"m4"']::json[]);
create temporary table cd93 as select * from read('cd93', 'g', 'A', 10);
select reject('cd93', 'g', array_agg(receipt), 'bad') from cd93;
select payload from dead_letters('cd93', 'g');
select payload from dead_letters('cd93', 'g', max_messages => 2);
select payload from dead_letters('cd93', 'g', after_id => (select id from cd93 where payload::text = '"m2"'));
select redrive('cd93', 'g', max_messages => 2);
select payload, delivery_count, first_delivered_at >= (select max(delivered_at) from cd93) as starts_again from read('cd93', 'g', 'A', 10);
select payload from dead_letters('cd93', 'g');
select redrive('cd93', 'g', ids => (select array_agg(id) from cd93 where payload::text in ('"m1"', '"m4"')));
select payload, delivery_count from read('cd93', 'g', 'A', 10);

-- case 94: given redrive rolled back, then still dead
begin;
select redrive('cd93', 'g');
select count(*) from dead_letters('cd93', 'g');
rollback;
select payload from dead_letters('cd93', 'g');
select count(*) from read('cd93', 'g', 'A', 10);
select redrive('cd93', 'g');
select redrive('cd93', 'g');
select payload, delivery_count from read('cd93', 'g', 'A', 10);

-- case 95: given A holds the last attempt and it was dead-lettered, when A acks or nacks, then 0 and it stays dead
select create_stream('cd95');
select create_group('cd95', 'g', max_deliver => 1);
select publish('cd95', '"m1"') as id \gset
select receipt from read('cd95', 'g', 'A', ack_wait => '1 ms') \gset
call until($$ select coalesce(bool_and(deadline < clock_timestamp()), true) from pending('cd95', 'g') $$);
call maintain();
select ack('cd95', 'g', :'receipt');
select nack('cd95', 'g', array[:'receipt']);
select ack('cd95', 'g', :'id');
select payload from dead_letters('cd95', 'g');

-- case 96: given dead letters, when max_deliver is raised, then they stay dead
select alter_group('cd95', 'g', '{"max_deliver": 5}');
call maintain();
select payload from dead_letters('cd95', 'g');
select count(*) from read('cd95', 'g', 'A');

-- discard_dead_letters takes what it is told and returns how many
select discard_dead_letters('cd93', 'g', ids => array[1]::bigint[]);
select reject('cd93', 'g', array_agg(receipt), 'again') from pending('cd93', 'g');
select discard_dead_letters('cd93', 'g', ids => (select array_agg(id) from cd93 where payload::text = '"m2"'));
select payload, reason from dead_letters('cd93', 'g');
select discard_dead_letters('cd93', 'g', older_than => '1 day');
select discard_dead_letters('cd93', 'g', older_than => '0');
select count(*) from dead_letters('cd93', 'g');

select drop_stream(s) from unnest(array['cd85', 'cd89', 'cd90', 'cd91', 'cd93', 'cd95']) s;
