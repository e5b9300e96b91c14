-- A dropped extension or namespace leaves nothing in shared memory, and one that is rolled back loses nothing.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select current_database() as home \gset
create database hms_recreate;
\c hms_recreate
\set ECHO none
\i :prelude

-- what one installation leaves behind
create procedure t.fill() language plpgsql as $$
begin
    perform create_stream('s');
    perform create_group('s', 'g');
    perform publish('s', '1');
    perform ack('s', 'g', variadic array_agg(receipt)) from read('s', 'g', 'old consumer');
end
$$;
create view t.seen as
select s.published, g.acked, c.consumer
from hotmesh_stream.stat_stream as s
cross join hotmesh_stream.stat_group as g
left join consumer_info('s', 'g') as c on true;
-- logs of all databases that have a slot
create function t.log_slots() returns int language sql as
$$ select (regexp_match(detail, 'logs (\d+)'))[1]::int from health() where check_name = 'shared_memory' $$;

call t.fill();
select * from t.seen;

-- rolled back
begin;
savepoint a;
set client_min_messages = warning;
drop extension hotmesh_stream cascade;
rollback to a;
commit;
select stat_stream.published, stat_group.acked from hotmesh_stream.stat_stream, hotmesh_stream.stat_group;

-- dropped and created again, at once and later
drop view if exists t.seen;
drop extension hotmesh_stream cascade;
create extension hotmesh_stream;
select create_stream('s'), create_group('s', 'g');
select * from hotmesh_stream.stat_group;
select consumer from consumer_info('s', 'g');
call t.fill();
begin;
drop extension hotmesh_stream cascade;
create extension hotmesh_stream;
select create_stream('s'), create_group('s', 'g');
select publish('s', '2') > 0 as published;
commit;
select published, acked from hotmesh_stream.stat_stream join hotmesh_stream.stat_group using (stream);
select consumer from consumer_info('s', 'g');
select payload from read('s', 'g', 'new consumer');

-- slots of logs are given back, too
select t.log_slots() as before \gset
drop extension hotmesh_stream cascade;
create extension hotmesh_stream;
select t.log_slots() < :before as given_back;
select create_namespace('n'), create_stream('s', namespace => 'n'), publish('s', '1') > 0;
select t.log_slots() as before \gset
begin;
select drop_stream('s'), drop_namespace('n');
select t.log_slots() = :before as still_there;
rollback;
select t.log_slots() = :before as still_there;
select drop_stream('s'), drop_namespace('n');
select t.log_slots() < :before as given_back;
\c :home
drop database hms_recreate with (force);
