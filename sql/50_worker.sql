-- What the workers do, for servers without them.
create procedure hotmesh_stream.maintain()
language c
as 'MODULE_PATHNAME', 'hms_sql_maintain';
comment on procedure hotmesh_stream.maintain() is
'makes partitions ahead, empties the default partition, drops what retention lets go, buries exhausted deliveries, expires dead letters and clears up, once, as the workers do; commits between steps, waits for no lock longer than 50 ms, vacuums nothing; needs manage on the database (42501); not inside a transaction block (2D000), not on a standby (25006)';
