-- Nobody sees what messages say without consume: not publishers, not pg_monitor.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
set client_min_messages = warning;
create role hms_pub;
create role hms_con;
create role hms_mon in role pg_monitor;
reset client_min_messages;
grant usage on schema t to hms_pub, hms_con, hms_mon;
select create_stream('lk'), create_group('lk', 'g');
select grant_stream('lk', 'publish', 'hms_pub'), grant_stream('lk', 'consume', 'hms_con');
select publish('lk', '"secret"') > 0 as published;
select nack('lk', 'g', array_agg(receipt), error => '"secret"') from read('lk', 'g', 'c');
set role hms_con;
select last_error from group_info('lk', 'g');
set role hms_pub;
select last_error from group_info('lk', 'g');
select fails($$ select * from messages('lk') $$);
select fails($$ select * from pending('lk', 'g') $$);
set role hms_mon;
select last_error from group_info('lk');
select fails($$ select * from messages('lk') $$);
select fails($$ select * from dead_letters('lk', 'g') $$);
select stream, published from hotmesh_stream.stat_stream where stream = 'lk';
select count(*) > 5 as checks from health();
reset role;
select drop_stream('lk');
revoke usage on schema t from hms_pub, hms_con, hms_mon;
drop role hms_mon, hms_con, hms_pub;
