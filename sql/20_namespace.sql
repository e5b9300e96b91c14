-- Namespaces: storage units with one partitioned log each.

create function hotmesh_stream.create_namespace(
    namespace          text,
    partition_interval text default 'daily',
    retention          interval default '7 days',
    retention_hard     interval default null,
    premake            integer default 4
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_create_namespace';
comment on function hotmesh_stream.create_namespace(text, text, interval, interval, integer) is
'creates a namespace with its message log, partitioned by publish time into hourly, daily, weekly, monthly or any interval '
'of whole months or of at least one hour, with premake partitions (1 to 100) kept ready ahead; '
'a partition older than retention is dropped once no group needs it, one older than retention_hard in any case (null = never); '
'returns true, or false when it exists with this configuration; '
'raises HM005 when it exists with another one, 22004 or 22023 for a bad argument, 42501 without manage on the database, or while others than superusers can change pg_partman';

create function hotmesh_stream.alter_namespace(
    namespace text,
    config    jsonb
)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_alter_namespace';
comment on function hotmesh_stream.alter_namespace(text, jsonb) is
'changes the keys retention and retention_hard (intervals as strings, null = never) and premake (1 to 100) of a namespace; '
'raises HM004 for an unknown namespace, 22023 naming an unknown key or a bad value, 42501 without manage on the database';

create function hotmesh_stream.drop_namespace(
    namespace text
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_drop_namespace';
comment on function hotmesh_stream.drop_namespace(text) is
'drops a namespace with its message log; returns false when there is none; '
'raises 2BP01 while it has streams, 42501 without manage on the database';
