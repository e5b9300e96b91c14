-- Nobody becomes superuser through pg_partman's schema: no log is made while others may create objects there.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select current_database() as home \gset
set client_min_messages = warning;
create role hms_dbowner;
create role hms_other;
create database hms_trust owner hms_dbowner;
\c hms_trust
set client_min_messages = warning;
create extension hotmesh_stream cascade;
\set ECHO none
\i :prelude

-- the owner of the database owns schema public
select grant_stream(null, 'manage', 'hms_dbowner');
grant usage on schema t to public;
set role hms_dbowner;
select t.fails($$ select hotmesh_stream.create_stream('s') $$);
select t.fails($$ select hotmesh_stream.create_namespace('n') $$);
reset role;
select hotmesh_stream.create_stream('s');
select ok, detail from health() where check_name = 'pg_partman';

-- a schema of its own
set client_min_messages = warning;
drop extension hotmesh_stream;
drop extension pg_partman;
create schema partman;
create extension pg_partman schema partman;
create extension hotmesh_stream;
reset client_min_messages;
select ok, detail from health() where check_name = 'pg_partman';
select grant_stream(null, 'manage', 'hms_dbowner');
set role hms_dbowner;
select create_stream('s');
reset role;

-- nobody else makes tables of the log's type
set role hms_dbowner;
select t.fails($$ create table public.mine of hotmesh_stream.log_row $$);
reset role;

-- that is opened later: a new log is refused, what exists goes on
grant usage, create on schema partman to hms_other;
select ok, detail from health() where check_name = 'pg_partman';
select fails($$ select create_namespace('n') $$);
select publish('s', '1') > 0 as published;
revoke create on schema partman from hms_other;
grant create on schema partman to public;
select ok, detail from health() where check_name = 'pg_partman';
revoke create on schema partman from public;
select create_namespace('n');
alter schema partman owner to hms_other;
select ok, detail from health() where check_name = 'pg_partman';
\c :home
drop database hms_trust with (force);
drop role hms_dbowner, hms_other;
