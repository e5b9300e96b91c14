-- A group is altered for what comes next, dropped with its receipts, and born anew.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select create_stream('gr');
select create_group('gr', 'g', ack_wait => '1 hour');
select count(*) from publish_many('gr', array['1', '2', '3', '4', '5', '6']::json[]);

-- alter_group holds from the next delivery on
select deadline - delivered_at as lease from read('gr', 'g', 'A');
select alter_group('gr', 'g', '{"ack_wait": "10 min", "max_deliver": 3, "backoff": ["1 s", "2 s"], "dead_letter_retention": "1 day"}');
select deadline - delivered_at as lease from read('gr', 'g', 'A');
select payload, deadline - delivered_at as lease from pending('gr', 'g', 'A');
select ack_wait, max_deliver, backoff, dead_letter_retention from consumer_group where stream_id = (select stream_id from stream where name = 'gr');
select alter_group('gr', 'g', '{"max_deliver": null, "backoff": null}');
select ack_wait, max_deliver, backoff, dead_letter_retention from consumer_group where stream_id = (select stream_id from stream where name = 'gr');
select alter_group('gr', 'g', '{}');
select deadline - delivered_at as lease from read('gr', 'g', 'A', ack_wait => '5 min');

-- drop_group takes deliveries and dead letters; old receipts settle nothing in the new group
select receipt as r from pending('gr', 'g') limit 1 \gset
select reject('gr', 'g', array_agg(receipt), 'bad') from (select receipt from pending('gr', 'g') offset 2) s;
select count(*) from dead_letters('gr', 'g');
select drop_group('gr', 'g');
select drop_group('gr', 'g');
select create_group('gr', 'g', ack_wait => '1 hour');
select count(*) from dead_letters('gr', 'g');
select count(*) from pending('gr', 'g');
select payload, delivery_count from read('gr', 'g', 'A', 10);
select ack('gr', 'g', :'r');
select nack('gr', 'g', array[:'r']);
select reject('gr', 'g', array[:'r'], 'r');
select extend('gr', 'g', array[:'r'], '0');
select count(*) from pending('gr', 'g');

-- claim takes what is idle long enough, by id or in id order, and counts the hand-out
select count(*) from claim('gr', 'g', 'B', min_idle => '1 hour');
select payload, delivery_count from claim('gr', 'g', 'B', min_idle => '0', max_messages => 2);
select payload from pending('gr', 'g', 'B');
select payload from pending('gr', 'g', 'A');
select payload, delivery_count from claim('gr', 'g', 'B', ids => (select array_agg(id order by id desc) from pending('gr', 'g', 'A') where payload::text in ('4', '6')));
select payload, delivery_count, deadline - delivered_at as lease from pending('gr', 'g', 'B');

-- drop_consumer releases what the consumer holds
select drop_consumer('gr', 'g', 'B');
select drop_consumer('gr', 'g', 'B');
select payload, delivery_count from read('gr', 'g', 'C', 10);
select payload from pending('gr', 'g', 'A');

-- group_info counts what there is
select publish('gr', '7', delay => '1 hour') > 0 as published;
select publish('gr', '8') > 0 as published;
select count(*) from read('gr', 'g', 'D', 10);
select publish('gr', '9') > 0 as published;
select nack('gr', 'g', array_agg(receipt), delay => '1 hour') from pending('gr', 'g', 'A') having count(*) > 0;
select reject('gr', 'g', array_agg(receipt), 'bad') from pending('gr', 'g', 'D');
select lag, ready, leased, delayed, dead from group_info('gr', 'g');
select consumer, leased from consumer_info('gr', 'g') order by consumer collate "C";

-- delete_messages takes the delivery with it
select delete_messages('gr', array_agg(id)) from pending('gr', 'g', 'C') where payload::text = '1';
select payload from pending('gr', 'g', 'C');
select delete_messages('gr', (select array_agg(id) from messages('gr')), only_settled => true);
select payload from messages('gr');

-- wait returns when there is work, and after its timeout when there is none
call wait('gr', 'g', '20 s');
select payload from read('gr', 'g', 'C');
call wait('gr', 'g', '0.1 s');
call wait('gr', 'g', '0');
begin;
call wait('gr', 'g', '0.1 s');
rollback;

select drop_stream('gr');
