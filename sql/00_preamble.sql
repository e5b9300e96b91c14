\echo Use "CREATE EXTENSION hotmesh_stream" to load this file. \quit

create schema hotmesh_stream;
comment on schema hotmesh_stream is
'durable message streams with consumer groups: functions, types and views';

create schema hotmesh_stream_data;
comment on schema hotmesh_stream_data is
'message logs of hotmesh_stream, one partitioned table per namespace; written by hotmesh_stream.publish() only';

-- refuses the installation when the library was not loaded at server start
create function hotmesh_stream.require_preload()
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_require_preload';
comment on function hotmesh_stream.require_preload() is
'raises 55000 unless hotmesh_stream is in shared_preload_libraries; called by CREATE EXTENSION';
select hotmesh_stream.require_preload();
