-- A stream is created once, altered by what it is told, and gone when dropped.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select create_stream('st');
select create_stream('st');
select create_stream('st', max_message_bytes => 1048576, delay => '0', namespace => 'default');
select fails($$ select create_stream('st', max_message_bytes => 5000) $$);
select fails($$ select create_stream('st', delay => '1 s') $$);
select create_namespace('st_ns');
select fails($$ select create_stream('st', namespace => 'st_ns') $$);
select stream, namespace, messages from stream_info('st');

-- alter_stream changes the named fields and no other
select alter_stream('st', '{"max_message_bytes": 2000}');
select max_message_bytes, delay from stream where name = 'st';
select alter_stream('st', '{"delay": "1 hour"}');
select max_message_bytes, delay from stream where name = 'st';
select alter_stream('st', '{}');
select create_stream('st', max_message_bytes => 2000, delay => '60 min');

-- the stream's delay holds for a publish that says nothing; an explicit 0 overrides it
select create_group('st', 'g', ack_wait => '1 hour');
select publish('st', '"delayed"') > 0 as published;
select publish('st', '"now"', delay => '0') > 0 as published;
select publish_bytes('st', 'now', delay => '0') > 0 as published;
select payload, convert_from(body, 'UTF8') as body from read('st', 'g', 'A', 10);
select leased, delayed, lag from group_info('st', 'g');
select alter_stream('st', '{"delay": "0"}');
select publish('st', '"soon"', delay => '0.2 s') > 0 as published;
select publish('st', '"at"', deliver_at => clock_timestamp() + interval '0.4 s') > 0 as published;
select publish('st', '"past"', deliver_at => clock_timestamp() - interval '1 hour') > 0 as published;
select payload from read('st', 'g', 'A', 10, wait => '20 s');
select payload from read('st', 'g', 'A', 10, wait => '20 s');
select payload from read('st', 'g', 'A', 10, wait => '20 s');

-- drop_stream: everything is unreachable at once, and a new stream of that name is empty
select drop_stream('st');
select drop_stream('st');
select fails($$ select publish('st', '1') $$);
select fails($$ select * from messages('st') $$);
select create_stream('st');
select create_group('st', 'g');
select count(*) from messages('st');
select count(*) from read('st', 'g', 'A', 10);
select count(*) from consumer_info('st', 'g');
select drop_stream('st');
call maintain();
select count(*) from delivery where incarnation not in (select incarnation from consumer_group);
select count(*) from cursor where incarnation not in (select incarnation from consumer_group);
select count(*) from consumer_group where stream_id not in (select stream_id from stream);
select drop_namespace('st_ns');
select count(*) from stream_info(null) where stream like 'st%';
