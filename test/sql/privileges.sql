-- Who may publish, consume and manage is decided by grant_stream alone.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
set client_min_messages = warning;
create role hms_pub;
create role hms_con;
create role hms_mgr;
create role hms_dba;
create role hms_nobody;
create role hms_member in role hms_con;
reset client_min_messages;
grant usage on schema t to public;
select create_stream('pv');
select create_group('pv', 'g', ack_wait => '1 hour');
select grant_stream('pv', 'publish', 'hms_pub');
select grant_stream('pv', 'consume', 'hms_con');
select grant_stream('pv', 'manage', 'hms_mgr');
select grant_stream(null, 'manage', 'hms_dba');
select publish('pv', '"m1"') > 0 as published;

-- everybody may execute, nobody may touch the tables
set role hms_nobody;
select fails($$ select publish('pv', '1') $$);
select fails($$ select publish_many('pv', array['1']::json[]) $$);
select fails($$ select publish_batch('pv', '[{"payload": 1}]') $$);
select fails($$ select publish_bytes('pv', 'x') $$);
select fails($$ select * from read('pv', 'g', 'A') $$);
select fails($$ select ack('pv', 'g', '1') $$);
select fails($$ select nack('pv', 'g', array['1']) $$);
select fails($$ select reject('pv', 'g', array['1'], 'r') $$);
select fails($$ select extend('pv', 'g', array['1']) $$);
select fails($$ select complete('pv', 'g', '1', 'pv', '1') $$);
select fails($$ select * from claim('pv', 'g', 'A') $$);
select fails($$ select * from pending('pv', 'g') $$);
select fails($$ select drop_consumer('pv', 'g', 'A') $$);
select fails($$ select * from dead_letters('pv', 'g') $$);
select fails($$ select redrive('pv', 'g') $$);
select fails($$ select discard_dead_letters('pv', 'g') $$);
select fails($$ select * from messages('pv') $$);
select fails($$ select delete_messages('pv', array[1]) $$);
select fails($$ select create_group('pv', 'g2') $$);
select fails($$ select alter_group('pv', 'g', '{"ack_wait": "1 s"}') $$);
select fails($$ select drop_group('pv', 'g') $$);
select fails($$ select create_stream('pv2') $$);
select fails($$ select alter_stream('pv', '{"delay": "1 s"}') $$);
select fails($$ select drop_stream('pv') $$);
select fails($$ select create_namespace('pv') $$);
select fails($$ select alter_namespace('default', '{"premake": 5}') $$);
select fails($$ select drop_namespace('default') $$);
select fails($$ select grant_stream('pv', 'publish', 'hms_nobody') $$);
select fails($$ select revoke_stream('pv', 'publish', 'hms_pub') $$);
select fails($$ select grant_stream(null, 'manage', 'hms_nobody') $$);
select fails($$ select * from stream_info('pv') $$);
select fails($$ select * from group_info('pv', 'g') $$);
select fails($$ select * from consumer_info('pv', 'g') $$);
call wait('pv', 'g', '0');
call maintain();
select fails($$ select * from hotmesh_stream.stream $$);
select fails($$ select * from hotmesh_stream.delivery $$);
select fails($$ insert into hotmesh_stream.privilege values (0, 'hms_nobody', 'manage') $$);
select fails($$ select nextval('hotmesh_stream.message_id_seq') $$);
select fails($$ select * from hotmesh_stream_data.log_1 $$);
reset role;

-- a publisher publishes and does nothing else
set role hms_pub;
select publish('pv', '"m2"') > 0 as published;
select fails($$ select * from read('pv', 'g', 'A') $$);
select fails($$ select alter_stream('pv', '{"delay": "1 s"}') $$);
select fails($$ select drop_stream('pv') $$);
select fails($$ select delete_messages('pv', array[1]) $$);
select stream, messages from stream_info('pv');
reset role;

-- a consumer reads and settles, also as a member of the role
set role hms_con;
select payload from read('pv', 'g', 'A');
select fails($$ select publish('pv', '1') $$);
select create_group('pv', 'g_con'), drop_group('pv', 'g_con');
select fails($$ select alter_stream('pv', '{"delay": "1 s"}') $$);
reset role;
set role hms_member;
select ack('pv', 'g', variadic array_agg(receipt)) from read('pv', 'g', 'B');
select payload from pending('pv', 'g');
select fails($$ select complete('pv', 'g', '1', 'pv', '1') $$);
reset role;

-- a manager does everything with its stream and nothing with others
select create_stream('pv_other');
set role hms_mgr;
select publish('pv', '"m3"') > 0 as published;
select count(*) from read('pv', 'g', 'A', 10);
select create_group('pv', 'g2');
select alter_stream('pv', '{"max_message_bytes": 5000}');
select grant_stream('pv', 'publish', 'hms_nobody');
select fails($$ select publish('pv_other', '1') $$);
select fails($$ select create_stream('pv2') $$);
select fails($$ select grant_stream('pv_other', 'publish', 'hms_mgr') $$);
reset role;
set role hms_nobody;
select publish('pv', '"m4"') > 0 as published;
reset role;
set role hms_mgr;
select revoke_stream('pv', 'publish', 'hms_nobody');
select revoke_stream('pv', 'publish', 'hms_nobody');
reset role;
set role hms_nobody;
select fails($$ select publish('pv', '1') $$);
reset role;

-- manage on the database: creates streams and namespaces, which are its own
set role hms_dba;
select create_stream('pv_dba');
select publish('pv_dba', '1') > 0 as published;
select publish('pv_other', '1') > 0 as published;
select create_namespace('pv_ns');
select drop_namespace('pv_ns');
select drop_stream('pv_dba');
reset role;

-- a security definer function acts with its owner's rights
create function t.publish_for_all(payload json) returns bigint
language sql security definer set search_path = pg_catalog, pg_temp
as $$ select hotmesh_stream.publish('pv', payload) $$;
set role hms_nobody;
select t.publish_for_all('"m5"') > 0 as published;
select fails($$ select publish('pv', '1') $$);
reset role;
alter function t.publish_for_all(json) owner to hms_con;
set role hms_nobody;
select fails($$ select t.publish_for_all('"m6"') $$);
reset role;
drop function t.publish_for_all(json);

-- a role that is dropped loses its grants
drop role hms_pub;
call until($$ select not exists (select from privilege where role::oid not in (select oid from pg_roles)) $$);

select drop_stream(s) from unnest(array['pv', 'pv_other']) s;
select count(*) from privilege where stream_id <> 0;
select revoke_stream(null, 'manage', 'hms_dba');
drop role hms_con, hms_mgr, hms_dba, hms_nobody, hms_member;
revoke usage on schema t from public;
