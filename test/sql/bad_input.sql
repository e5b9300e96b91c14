-- Bad input gets a clear error or the documented result, and changes nothing.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
\pset format unaligned
\pset tuples_only on
select create_stream('bi', max_message_bytes => 1000);
select create_group('bi', 'g', ack_wait => '1 hour');
select count(*) from publish_many('bi', array['"m1"', '"m2"']::json[]);
select receipt as r, id from read('bi', 'g', 'A') \gset
create function t.try(variadic calls text[]) returns setof text
language sql
as $$ select call || E'\n    ' || t.fails(call) from unnest(calls) with ordinality u(call, n) order by n $$;

-- names: null, empty, 255 bytes, 256 bytes, by character and by byte
select try(
    $$select create_stream(null)$$,
    $$select create_stream('')$$,
    $$select create_stream(repeat('x', 256))$$,
    $$select create_stream(repeat('é', 128))$$,
    $$select create_stream('bi2', namespace => '')$$,
    $$select create_stream('bi2', namespace => repeat('x', 256))$$,
    $$select create_group('bi', '')$$,
    $$select create_group('bi', null)$$,
    $$select create_group(null, 'g')$$,
    $$select create_group('bi', repeat('x', 256))$$,
    $$select * from read('bi', 'g', '')$$,
    $$select * from read('bi', 'g', null)$$,
    $$select * from read('bi', 'g', repeat('x', 256))$$,
    $$select * from read(null, 'g', 'A')$$,
    $$select * from read('bi', null, 'A')$$,
    $$select create_namespace('')$$,
    $$select create_namespace(null)$$,
    $$select create_namespace(repeat('x', 256))$$);

-- unknown objects
select try(
    $$select alter_stream('none', '{"delay": "1 s"}')$$,
    $$select drop_stream('none')$$,
    $$select publish('none', '1')$$,
    $$select publish_many('none', array['1']::json[])$$,
    $$select publish_batch('none', '[{"payload": 1}]')$$,
    $$select publish_bytes('none', 'x')$$,
    $$select create_group('none', 'g')$$,
    $$select alter_group('none', 'g', '{"ack_wait": "1 s"}')$$,
    $$select alter_group('bi', 'none', '{"ack_wait": "1 s"}')$$,
    $$select drop_group('none', 'g')$$,
    $$select drop_group('bi', 'none')$$,
    $$select * from read('none', 'g', 'A')$$,
    $$select * from read('bi', 'none', 'A')$$,
    $$select ack('none', 'g', '1')$$,
    $$select ack('bi', 'none', '1')$$,
    $$select nack('bi', 'none', array['1'])$$,
    $$select reject('bi', 'none', array['1'], 'r')$$,
    $$select extend('bi', 'none', array['1'])$$,
    $$select complete('none', 'g', '1', 'bi', '1')$$,
    $$select complete('bi', 'none', '1', 'bi', '1')$$,
    $$select complete('bi', 'g', '1', 'none', '1')$$,
    $$select * from claim('bi', 'none', 'A')$$,
    $$select * from pending('bi', 'none')$$,
    $$select drop_consumer('bi', 'none', 'A')$$,
    $$select drop_consumer('bi', 'g', 'none')$$,
    $$select * from dead_letters('bi', 'none')$$,
    $$select redrive('bi', 'none')$$,
    $$select discard_dead_letters('bi', 'none')$$,
    $$select * from messages('none')$$,
    $$select delete_messages('none', array[1])$$,
    $$select * from stream_info('none')$$,
    $$select * from group_info('none', 'g')$$,
    $$select * from group_info('bi', 'none')$$,
    $$select * from consumer_info('none', 'g')$$,
    $$select * from consumer_info('bi', 'none')$$,
    $$select grant_stream('none', 'publish', current_user::regrole)$$,
    $$select revoke_stream('none', 'publish', current_user::regrole)$$,
    $$select create_stream('bi2', namespace => 'none')$$,
    $$select alter_namespace('none', '{"premake": 5}')$$,
    $$select drop_namespace('none')$$);

-- namespaces
select try(
    $$select create_namespace('bin', partition_interval => 'yearlyish')$$,
    $$select create_namespace('bin', partition_interval => '30 minutes')$$,
    $$select create_namespace('bin', partition_interval => '-1 day')$$,
    $$select create_namespace('bin', partition_interval => '')$$,
    $$select create_namespace('bin', retention => '-1 day')$$,
    $$select create_namespace('bin', retention_hard => '-1 day')$$,
    $$select create_namespace('bin', retention => '7 days', retention_hard => '1 day')$$,
    $$select create_namespace('bin', premake => 0)$$,
    $$select create_namespace('bin', premake => -1)$$,
    $$select create_namespace('bin', premake => 2147483647)$$,
    $$select alter_namespace('default', null)$$,
    $$select alter_namespace('default', '[]')$$,
    $$select alter_namespace('default', '{"unknown": 1}')$$,
    $$select alter_namespace('default', '{"premake": "many"}')$$,
    $$select alter_namespace('default', '{"retention": "soon"}')$$,
    $$select alter_namespace('default', '{"partition_interval": "weekly"}')$$);

-- streams
select try(
    $$select create_stream('bi2', max_message_bytes => 0)$$,
    $$select create_stream('bi2', max_message_bytes => -1)$$,
    $$select create_stream('bi2', max_message_bytes => 2147483647)$$,
    $$select create_stream('bi2', delay => '-1 s')$$,
    $$select create_stream('bi2', delay => '1 month')$$,
    $$select create_stream('bi2', delay => '401 days')$$,
    $$select alter_stream('bi', null)$$,
    $$select alter_stream('bi', '1')$$,
    $$select alter_stream('bi', '{"unknown": 1}')$$,
    $$select alter_stream('bi', '{"delay": "-1 s"}')$$,
    $$select alter_stream('bi', '{"delay": 5}')$$,
    $$select alter_stream('bi', '{"max_message_bytes": 0}')$$,
    $$select alter_stream('bi', '{"max_message_bytes": "big"}')$$,
    $$select alter_stream('bi', '{"max_message_bytes": 500.5}')$$,
    $$select alter_stream('bi', '{"max_message_bytes": null}')$$,
    $$select alter_stream('bi', '{"namespace": "default"}')$$,
    $$select alter_stream(null, '{"delay": "1 s"}')$$,
    $$select drop_stream(null)$$);

-- publish
select try(
    $$select publish(null, '1')$$,
    $$select publish('bi', null)$$,
    $$select publish('bi', '{"a":')$$,
    $$select publish('bi', '1', headers => '[]')$$,
    $$select publish('bi', '1', headers => '1')$$,
    $$select publish('bi', '1', delay => '-1 s')$$,
    $$select publish('bi', '1', delay => '1 month')$$,
    $$select publish('bi', '1', delay => '401 days')$$,
    $$select publish('bi', '1', delay => '1 s', deliver_at => now())$$,
    $$select publish('bi', '1', deliver_at => 'infinity')$$,
    $$select publish('bi', '1', deliver_at => '-infinity')$$,
    $$select publish('bi', '1'::jsonb)$$,
    $$select publish('bi', '1'::text)$$,
    $$select publish_many('bi', null)$$,
    $$select publish_many('bi', '{}')$$,
    $$select publish_many('bi', array['1', null]::json[])$$,
    $$select publish_many('bi', array[['1', '2'], ['3', '4']]::json[])$$,
    $$select publish_many('bi', (select array_agg('1'::json) from generate_series(1, 10001)))$$,
    $$select publish_batch('bi', null)$$,
    $$select publish_batch('bi', '[]')$$,
    $$select publish_batch('bi', '{}')$$,
    $$select publish_batch('bi', '1')$$,
    $$select publish_batch('bi', '[null]')$$,
    $$select publish_batch('bi', '[{}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "delay": "-1 s"}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "delay": 5}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "delay": "soon"}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "deliver_at": "never"}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "headers": 5}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "dedup_id": "k"}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "key": ""}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "key": 7}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "priority": 10}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "priority": "1"}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "priority": 1}]')$$,
    $$select publish_batch('bi', '[{"payload": 1, "payload": 2}]')$$,
    $$select publish_bytes('bi', null)$$,
    $$select publish_bytes(null, 'x')$$,
    $$select publish_bytes('bi', 'x', content_type => '')$$,
    $$select publish_bytes('bi', 'x', content_type => repeat('x', 256))$$,
    $$select publish_bytes('bi', 'x', headers => '[]')$$);

-- groups
select try(
    $$select create_group('bi', 'g2', ack_wait => '0')$$,
    $$select create_group('bi', 'g2', ack_wait => '1 month')$$,
    $$select create_group('bi', 'g2', ack_wait => '401 days')$$,
    $$select create_group('bi', 'g2', backoff => '{}')$$,
    $$select create_group('bi', 'g2', backoff => array['1 s', null]::interval[])$$,
    $$select create_group('bi', 'g2', backoff => array['1 month']::interval[])$$,
    $$select create_group('bi', 'g2', backoff => array_fill('1 s'::interval, array[33]))$$,
    $$select create_group('bi', 'g2', backoff => array[['1 s'], ['2 s']]::interval[])$$,
    $$select create_group('bi', 'g2', dead_letter_retention => '1 month')$$,
    $$select alter_group('bi', 'g', null)$$,
    $$select alter_group('bi', 'g', '[]')$$,
    $$select alter_group('bi', 'g', '{"ack_wait": null}')$$,
    $$select alter_group('bi', 'g', '{"backoff": "1 s"}')$$,
    $$select alter_group('bi', 'g', '{"backoff": []}')$$,
    $$select alter_group('bi', 'g', '{"backoff": [null]}')$$,
    $$select alter_group('bi', 'g', '{"max_deliver": "two"}')$$);

-- read
select try(
    $$select * from read('bi', 'g', 'A', 0)$$,
    $$select * from read('bi', 'g', 'A', -1)$$,
    $$select * from read('bi', 'g', 'A', 2147483647)$$,
    $$select * from read('bi', 'g', 'A', ack_wait => '0')$$,
    $$select * from read('bi', 'g', 'A', wait => '1 month')$$,
    $$select * from read('bi', 'g', 'A', max_bytes => 0)$$,
    $$select * from read('bi', 'g', 'A', max_bytes => -1)$$);

-- receipts
select try(
    $$select ack('bi', 'g', null)$$,
    $$select ack('bi', 'g', variadic null)$$,
    $$select ack('bi', 'g', variadic '{}')$$,
    $$select ack('bi', 'g', '')$$,
    $$select ack('bi', 'g', ' 1')$$,
    $$select ack('bi', 'g', '-1')$$,
    $$select ack('bi', 'g', '0x1')$$,
    $$select ack('bi', 'g', '1:')$$,
    $$select ack('bi', 'g', ':0000000000000000')$$,
    $$select ack('bi', 'g', '1:000000000000000')$$,
    $$select ack('bi', 'g', '1:00000000000000000')$$,
    $$select ack('bi', 'g', '1:000000000000000g')$$,
    $$select ack('bi', 'g', '1:0000000000000000 ')$$,
    $$select ack('bi', 'g', '9223372036854775808')$$,
    $$select ack('bi', 'g', '1', null)$$,
    $$select nack('bi', 'g', null)$$,
    $$select nack('bi', 'g', '{}')$$,
    $$select nack('bi', 'g', array['9000000000000000000', null])$$,
    $$select nack('bi', 'g', array[['1'], ['2']])$$,
    $$select nack('bi', 'g', array['9000000000000000000'], count_attempt => null)$$,
    $$select reject('bi', 'g', null, 'r')$$,
    $$select reject('bi', 'g', '{}', 'r')$$,
    $$select reject('bi', 'g', array['9000000000000000000'], null)$$,
    $$select reject('bi', 'g', array['9000000000000000000'], '')$$,
    $$select extend('bi', 'g', null)$$,
    $$select extend('bi', 'g', '{}')$$,
    $$select extend('bi', 'g', array['x'])$$,
    $$select complete('bi', 'g', null, 'bi', '1')$$,
    $$select complete('bi', 'g', 'x', 'bi', '1')$$,
    $$select complete('bi', 'g', '9000000000000000000', 'bi', null)$$,
    $$select complete('bi', 'g', '1', null, '1')$$,
    $$select complete('bi', 'g', '9000000000000000000', 'bi', '1', headers => '[]')$$);

-- claim, pending, consumers, wait
select try(
    $$select * from claim('bi', 'g', null)$$,
    $$select * from claim('bi', 'g', '')$$,
    $$select * from claim('bi', 'g', 'B', min_idle => '-1 s')$$,
    $$select * from claim('bi', 'g', 'B', min_idle => '1 month')$$,
    $$select * from claim('bi', 'g', 'B', ids => '{}')$$,
    $$select * from claim('bi', 'g', 'B', ids => array[1, null])$$,
    $$select * from claim('bi', 'g', 'B', after_id => -1)$$,
    $$select * from claim('bi', 'g', 'B', max_messages => 0)$$,
    $$select * from claim('bi', 'g', 'B', max_messages => -1)$$,
    $$select * from pending('bi', 'g', '')$$,
    $$select * from pending('bi', 'g', min_idle => '-1 s')$$,
    $$select * from pending('bi', 'g', after_id => -1)$$,
    $$select * from pending('bi', 'g', max_messages => 0)$$,
    $$select * from pending('bi', 'g', max_messages => 2147483647)$$,
    $$select drop_consumer('bi', 'g', '')$$,
    $$select drop_consumer('bi', 'g', null)$$);
call wait('none', 'g', '0');
call wait('bi', 'none', '0');
call wait('bi', 'g', null);
call wait('bi', 'g', '-1 s');
call wait('bi', 'g', '1 month');
call wait(null, 'g', '1 s');
call wait('bi', null, '1 s');

-- dead letters
select try(
    $$select * from dead_letters('bi', null)$$,
    $$select * from dead_letters('bi', 'g', max_messages => 0)$$,
    $$select * from dead_letters('bi', 'g', max_messages => -1)$$,
    $$select redrive('bi', 'g', ids => '{}')$$,
    $$select redrive('bi', 'g', ids => array[1, null])$$,
    $$select redrive('bi', 'g', max_messages => 0)$$,
    $$select redrive('bi', 'g', max_messages => -1)$$,
    $$select redrive('bi', 'g', to_stream => 'none')$$,
    $$select discard_dead_letters('bi', 'g', ids => '{}')$$,
    $$select discard_dead_letters('bi', 'g', older_than => '-1 s')$$,
    $$select discard_dead_letters('bi', 'g', older_than => '1 month')$$);

-- the log
select try(
    $$select * from messages(null)$$,
    $$select * from messages('bi', max_messages => 0)$$,
    $$select * from messages('bi', max_messages => -1)$$,
    $$select * from messages('bi', max_messages => 2147483647)$$,
    $$select count(*) from messages('bi', from_id => 9223372036854775807, to_id => 0)$$,
    $$select count(*) from messages('bi', from_id => -9223372036854775808)$$,
    $$select delete_messages('bi', null)$$,
    $$select delete_messages('bi', '{}')$$,
    $$select delete_messages('bi', array[1, null])$$,
    $$select delete_messages('bi', array[-1, 0, 9223372036854775807])$$);

-- privileges
select try(
    $$select grant_stream('bi', 'read', current_user::regrole)$$,
    $$select grant_stream('bi', null, current_user::regrole)$$,
    $$select grant_stream('bi', 'publish', null)$$,
    $$select grant_stream('', 'publish', current_user::regrole)$$,
    $$select grant_stream('bi', 'publish', 0::regrole)$$,
    $$select revoke_stream('bi', 'read', current_user::regrole)$$,
    $$select revoke_stream('bi', 'publish', null)$$);

-- settings
select try(
    $$set hotmesh_stream.max_wait = '-1'$$,
    $$set hotmesh_stream.advance_wait = '-1'$$,
    $$set hotmesh_stream.inline_bytes = '-1'$$,
    $$set hotmesh_stream.unknown = '1'$$);

-- nothing of all this was stored or changed
select payload from messages('bi');
select payload, delivery_count, receipt = :'r' as same_receipt from pending('bi', 'g');
select name, max_message_bytes, delay from stream where name like 'bi%';
select name, ack_wait, max_deliver, backoff from consumer_group where stream_id = (select stream_id from stream where name = 'bi');
select count(*) from namespace where name like 'bin%';
select count(*) from dead_letters('bi', 'g');

-- null for an argument that has a default is the default
select create_stream('bi2', null, null, null), create_stream('bi2');
select create_group('bi2', 'g', null, null, null, null, null), create_group('bi2', 'g');
select create_namespace('bin', partition_interval => null, premake => null), create_namespace('bin');
select create_namespace('bin', retention => null);

drop function t.try(text[]);
select drop_stream('bi'), drop_stream('bi2'), drop_namespace('bin');
