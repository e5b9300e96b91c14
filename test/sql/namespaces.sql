-- A namespace is one partitioned log with an interval and a retention.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select create_namespace('ns_daily');
select create_namespace('ns_daily');
select create_namespace('ns_weekly', partition_interval => 'weekly', retention => '30 days', retention_hard => '90 days', premake => 2);
select create_namespace('ns_monthly', partition_interval => 'monthly', retention => null);
select create_namespace('ns_hour', partition_interval => '1 hour');
select create_namespace('ns_six', partition_interval => '6 hours', premake => 8);
select create_namespace('ns_ten', partition_interval => '10 days');
select create_namespace('ns_daily', partition_interval => '1 day');
select fails($$ select create_namespace('ns_daily', partition_interval => 'weekly') $$);
select fails($$ select create_namespace('ns_daily', retention => '8 days') $$);
select fails($$ select create_namespace('ns_daily', premake => 5) $$);
select name, partition_interval, premake, retention, retention_hard from namespace where name like 'ns\_%' order by name;

-- each has a log with partitions for now and for what comes, and an empty default
select n.name, count(*) filter (where pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT') as defaults,
       count(*) filter (where pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT') >= n.premake as runway
from namespace n
join pg_inherits i on i.inhparent = ('hotmesh_stream_data.log_' || n.namespace_id)::regclass
join pg_class c on c.oid = i.inhrelid
where n.name like 'ns\_%'
group by n.name, n.premake order by n.name;
select count(*) from pg_depend d join namespace n on d.objid = ('hotmesh_stream_data.log_' || n.namespace_id)::regclass
where d.deptype = 'e';

-- a publish lands in a partition, never in the default one, whatever the session's time zone
set timezone = 'Pacific/Kiritimati';
select create_stream('ns_s' || i, namespace => ns)
from unnest(array['ns_daily', 'ns_weekly', 'ns_monthly', 'ns_hour', 'ns_six', 'ns_ten']) with ordinality u(ns, i);
select count(*) from generate_series(1, 6) i, lateral publish('ns_s' || i, to_json(i));
set timezone = 'Pacific/Niue';
select count(*) from generate_series(1, 6) i, lateral publish('ns_s' || i, to_json(i));
select count(*) from generate_series(1, 6) i, lateral messages('ns_s' || i);
create function t.default_rows(namespace text) returns bigint
language plpgsql
as $$
declare
    leaf regclass;
    n bigint;
begin
    select c.oid into leaf
    from namespace s join pg_inherits i on i.inhparent = ('hotmesh_stream_data.log_' || s.namespace_id)::regclass
    join pg_class c on c.oid = i.inhrelid
    where s.name = $1 and pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT';
    execute format('select count(*) from %s', leaf) into n;
    return n;
end
$$;
select name, default_rows(name) from namespace where name like 'ns\_%' order by name;
reset timezone;

-- alter_namespace changes what can be changed
select alter_namespace('ns_daily', '{"retention": "3 days", "retention_hard": "10 days", "premake": 6}');
select alter_namespace('ns_daily', '{"retention_hard": null}');
select fails($$ select alter_namespace('ns_daily', '{"premake": 3, "partition_interval": "1 hour"}') $$);
select fails($$ select alter_namespace('ns_daily', '{"retention": "-1 day"}') $$);
select fails($$ select alter_namespace('ns_daily', '{"retention": "10 days", "retention_hard": "5 days"}') $$);
select name, partition_interval, premake, retention, retention_hard from namespace where name = 'ns_daily';
call maintain();
select count(*) filter (where pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT') >= 7 as runway
from namespace n
join pg_inherits i on i.inhparent = ('hotmesh_stream_data.log_' || n.namespace_id)::regclass
join pg_class c on c.oid = i.inhrelid
where n.name = 'ns_daily';

-- streams of one namespace share a log and nothing else
select create_stream('ns_a', namespace => 'ns_daily');
select create_group('ns_a', 'g'), create_group('ns_s1', 'g');
select publish('ns_a', '"a"') > 0 as published;
select payload from read('ns_a', 'g', 'A', 10);
select payload from read('ns_s1', 'g', 'A', 10);

-- drop_namespace refuses while streams stand in it, then leaves nothing
select fails($$ select drop_namespace('ns_daily') $$);
select drop_stream('ns_a');
select drop_stream('ns_s' || i) from generate_series(1, 6) i;
select namespace_id as id from namespace where name = 'ns_daily' \gset
select drop_namespace('ns_daily');
select drop_namespace('ns_daily');
select relname from pg_class where relname like 'log\_' || :id or relname like 'log\_' || :id || '\_%';
select drop_namespace(name) from namespace where name like 'ns\_%' order by name;
select count(*) from pg_inherits i where i.inhparent::regclass::text like 'hotmesh\_stream\_data.%' and i.inhparent not in
    (select ('hotmesh_stream_data.log_' || namespace_id)::regclass from namespace
     union all select x.indexrelid from pg_index x join namespace n on x.indrelid = ('hotmesh_stream_data.log_' || n.namespace_id)::regclass);
select count(*) from log_partition where namespace_id not in (select namespace_id from namespace);

-- a new namespace of the same name is a new log
select create_namespace('ns_daily');
select namespace_id > :id as new_id from namespace where name = 'ns_daily';
select create_stream('ns_s1', namespace => 'ns_daily');
select count(*) from messages('ns_s1');
select drop_stream('ns_s1');
begin;
select drop_namespace('ns_daily');
rollback;
select create_stream('ns_s1', namespace => 'ns_daily');
select publish('ns_s1', '1') > 0 as published;
select payload from messages('ns_s1');
select drop_stream('ns_s1'), drop_namespace('ns_daily');
drop function t.default_rows(text);
