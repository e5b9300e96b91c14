-- DROP EXTENSION refuses while logs exist; CASCADE leaves nothing.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select current_database() as home \gset
create database hms_drop;
\c hms_drop
set client_min_messages = warning;
create schema partman;
create extension pg_partman schema partman;
create extension hotmesh_stream;
reset client_min_messages;
\dx hotmesh_stream

-- without a log it goes
drop extension hotmesh_stream;
select count(*) from pg_namespace where nspname like 'hotmesh%';
create extension hotmesh_stream;

-- with a log it does not
select hotmesh_stream.create_stream('s');
select hotmesh_stream.create_namespace('second', partition_interval => 'weekly');
select hotmesh_stream.create_stream('s2', namespace => 'second');
select hotmesh_stream.create_group('s', 'g');
select hotmesh_stream.publish('s', '1') > 0 as published;
\set VERBOSITY terse
drop extension hotmesh_stream;
drop type hotmesh_stream.log_row;
\set VERBOSITY default
select payload from hotmesh_stream.read('s', 'g', 'A');
select count(*) from partman.part_config;

-- CASCADE takes tables, templates and their part_config rows
set client_min_messages = warning;
drop extension hotmesh_stream cascade;
reset client_min_messages;
select count(*) from partman.part_config;
select relname from pg_class where relname like '%log\_%' and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace);
select relname from pg_class where relname like 'template%';
select nspname from pg_namespace where nspname like 'hotmesh%';
select proname from pg_proc where proname like 'hms%';

-- and everything can be had again
create extension hotmesh_stream;
select hotmesh_stream.create_stream('s');
select hotmesh_stream.create_group('s', 'g');
select hotmesh_stream.publish('s', '2') > 0 as published;
select payload from hotmesh_stream.read('s', 'g', 'A');

-- DROP SCHEMA of the data
set client_min_messages = warning;
drop extension hotmesh_stream cascade;
create extension hotmesh_stream;
select hotmesh_stream.create_stream('s');
drop schema hotmesh_stream_data cascade;
drop extension hotmesh_stream cascade;
reset client_min_messages;
select count(*) from partman.part_config;

-- DROP OWNED of the owner
create role hms_owner superuser;
set role hms_owner;
set client_min_messages = warning;
create extension hotmesh_stream;
select hotmesh_stream.create_stream('s');
reset role;
drop owned by hms_owner cascade;
reset client_min_messages;
select count(*) from partman.part_config;
select nspname from pg_namespace where nspname like 'hotmesh%';
\c :home
drop database hms_drop with (force);
drop role hms_owner;
