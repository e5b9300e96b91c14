-- An error about one message of many says which one.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select create_stream('be', max_message_bytes => 20);
select publish_batch('be', '[{"payload": 1}, {"payload": 2, "delay": "soon"}]');
select publish_batch('be', '[{"payload": 1}, {"payload": 2, "delay": "-1 s"}]');
select publish_batch('be', '[{"payload": 1}, {"payload": 2, "deliver_at": "soon"}]');
select publish_batch('be', '[{"payload": 1}, {"payload": 2, "headers": {"a": "\u0000"}}]');
select publish_batch('be', '[{"payload": 1}, {"payload": 2, "headers": 3}]');
select publish_batch('be', '[{"payload": 1}, {"payload": 2, "delay": "1 s", "deliver_at": "2030-01-01"}]');
select publish_batch('be', '[{"payload": 1, "delay": "1 s", "deliver_at": null}, {"payload": "123456789012345678901"}]');
select publish_many('be', array['1', '"123456789012345678901"']::json[]);
select publish('be', '"123456789012345678901"');
select count(*) from messages('be');
select drop_stream('be');
