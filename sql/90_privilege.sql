-- Who may use what.  Functions are open to everybody and check the stream's
-- privileges themselves; tables and sequences are closed.

grant usage on schema hotmesh_stream to public;
revoke all on all tables in schema hotmesh_stream from public;
revoke all on all sequences in schema hotmesh_stream from public;
revoke all on schema hotmesh_stream_data from public;
-- a table of this type would have to be locked, and changed, by an upgrade that adds a column
revoke all on type hotmesh_stream.log_row from public;
grant select on hotmesh_stream.stat_stream, hotmesh_stream.stat_group to pg_monitor;
