-- An administrator may rewrite and reindex every table while sessions that have used them go on.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select create_stream('rw'), create_group('rw', 'g', ack_wait => '1 hour', max_deliver => 1);
select count(publish('rw', to_json(i))) from generate_series(1, 100) as i;

-- one round through every table
create function t.round() returns table (delivered text, acked int, dead bigint)
language plpgsql as $$
begin
    select string_agg(payload::text, ' ' order by id) into delivered from read('rw', 'g', 'c', 4);
    select ack('rw', 'g', variadic array_agg(receipt)) into acked
    from (select receipt from pending('rw', 'g') order by id limit 3) as m;
    perform nack('rw', 'g', array_agg(receipt)) from pending('rw', 'g');
    select count(*) into dead from dead_letters('rw', 'g');
    return next;
end
$$;
select * from t.round();

reindex table concurrently hotmesh_stream.delivery;
select * from t.round();
reindex table concurrently hotmesh_stream.cursor;
reindex table concurrently hotmesh_stream.cursor_spill;
reindex table concurrently hotmesh_stream.dead_letter;
select * from t.round();
reindex table concurrently hotmesh_stream.stream;
reindex table concurrently hotmesh_stream.consumer_group;
reindex table concurrently hotmesh_stream.namespace;
reindex table concurrently hotmesh_stream.log_partition;
reindex table concurrently hotmesh_stream.privilege;
reindex table concurrently hotmesh_stream.consumer;
select * from t.round();
select create_stream('rw2'), create_group('rw2', 'g'), drop_stream('rw2');
select namespace_id as ns from namespace where name = 'default' \gset
reindex table concurrently hotmesh_stream_data.log_:ns;
select * from t.round();
vacuum full hotmesh_stream.delivery;
vacuum full hotmesh_stream.cursor;
cluster hotmesh_stream.dead_letter using dead_letter_idx;
select * from t.round();
vacuum full hotmesh_stream_data.log_:ns;
select * from t.round();
alter table hotmesh_stream.delivery set unlogged;
alter table hotmesh_stream.delivery set logged;
select * from t.round();
select lag, leased, dead from group_info('rw', 'g');
drop function t.round();
select drop_stream('rw');
