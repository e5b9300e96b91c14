-- Streams.

create function hotmesh_stream.create_stream(
    stream            text,
    namespace         text     default 'default',
    max_message_bytes integer  default 1048576,
    delay             interval default '0',
    max_priority      integer  default 0
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_create_stream';
comment on function hotmesh_stream.create_stream(text, text, integer, interval, integer) is
'creates a stream in a namespace (the namespace default is created with it); messages larger than max_message_bytes '
'(payload and headers) are refused, and become available delay after their publish; their priority may be 0 to max_priority (at most 9), and the highest is delivered first; returns true, or false when it exists with this configuration; '
'raises HM005 when it exists with another one, HM004 for an unknown namespace, 22004 or 22023 for a bad argument, 42501 without manage on the database, or while others than superusers can change pg_partman';

create function hotmesh_stream.alter_stream(
    stream text,
    config jsonb
)
returns void
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_alter_stream';
comment on function hotmesh_stream.alter_stream(text, jsonb) is
'changes the keys max_message_bytes (bytes), max_priority (0..9, never lower than it is) and delay (interval as a string) of a stream, for messages published from now on; '
'raises HM002 for an unknown stream, 22023 naming an unknown key or a bad value, 42501 without manage on the stream';

create function hotmesh_stream.drop_stream(
    stream text
)
returns boolean
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_drop_stream';
comment on function hotmesh_stream.drop_stream(text) is
'drops a stream with its groups and grants, without waiting for publishers or readers; its messages are unreachable at once '
'and leave with their partitions; returns false when there is no such stream; raises 42501 without manage on the stream';
