-- Promise: every object of the extension is commented, pinned, private where it must
-- be, and where it belongs.
select current_database() as home \gset
create database hms_hygiene;
\c hms_hygiene
set client_min_messages = warning;
create extension hotmesh_stream cascade;
reset client_min_messages;

create temporary view member as
select d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) as name
from pg_depend d
join pg_extension e on e.oid = d.refobjid
where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e' and e.extname = 'hotmesh_stream';

-- members without a comment; row types and array types go with their table
select name as uncommented
from member
where obj_description(objid, classid::regclass::name) is null
    and not (classid = 'pg_type'::regclass and exists (
        select from pg_type t
        left join pg_class c on c.oid = t.typrelid
        where t.oid = member.objid and (t.typelem <> 0 or c.relkind <> 'c')))
order by name;

-- columns of views without a comment
select c.relname, a.attname as uncommented_column
from member
join pg_class c on c.oid = objid and c.relkind = 'v'
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
where classid = 'pg_class'::regclass and col_description(c.oid, a.attnum) is null
    and a.attname not in ('stream', 'consumer_group')
order by 1, 2;

-- members outside our schemas, the schemas themselves excepted
select name as misplaced
from member
where classid <> 'pg_namespace'::regclass
    and (pg_identify_object(classid, objid, 0)).schema is distinct from 'hotmesh_stream'
order by name;
select name from member where classid = 'pg_namespace'::regclass order by name;

-- SQL and PL/pgSQL functions that do not pin search_path; other languages than C
select p.oid::regprocedure as unpinned
from member
join pg_proc p on p.oid = objid and classid = 'pg_proc'::regclass
join pg_language l on l.oid = p.prolang
where l.lanname <> 'c'
    and not coalesce(p.proconfig @> array['search_path=pg_catalog, pg_temp'], false)
order by 1;

-- functions that run as their owner, are strict, or may run in parallel workers
select p.oid::regprocedure as unusual
from member
join pg_proc p on p.oid = objid and classid = 'pg_proc'::regclass
where p.prosecdef or p.proisstrict or p.proparallel <> 'u'
order by 1;

-- overloaded names, which drivers and code generators choke on
select p.proname as overloaded
from member
join pg_proc p on p.oid = objid and classid = 'pg_proc'::regclass
group by p.proname having count(*) > 1
order by 1;

-- functions that PUBLIC may not execute: none is open that should not be, because
-- every function checks its caller; the list of those that are closed
select p.oid::regprocedure as closed_function
from member
join pg_proc p on p.oid = objid and classid = 'pg_proc'::regclass
where not has_function_privilege('public', p.oid, 'execute')
order by 1;

-- functions open to PUBLIC, to be read when it changes
select p.proname as open_function
from member
join pg_proc p on p.oid = objid and classid = 'pg_proc'::regclass
where has_function_privilege('public', p.oid, 'execute') and p.proname not like 'debug\_%'
order by 1;

-- relations that PUBLIC or pg_monitor can touch
select c.relname, a.grantee::regrole::text as grantee, a.privilege_type
from member
join pg_class c on c.oid = objid and classid = 'pg_class'::regclass
cross join lateral aclexplode(c.relacl) a
where a.grantee <> c.relowner
order by 1, 2, 3;

-- what PUBLIC may do with the schemas
select n.nspname, has_schema_privilege('public', n.oid, 'usage') as usage,
    has_schema_privilege('public', n.oid, 'create') as "create"
from member
join pg_namespace n on n.oid = objid and classid = 'pg_namespace'::regclass
order by 1;

-- every table whose rows are dumped, and those that are not on purpose
select c.relname, c.oid = any (e.extconfig) as dumped
from member
join pg_class c on c.oid = objid and classid = 'pg_class'::regclass and c.relkind in ('r', 'S')
join pg_extension e on e.extname = 'hotmesh_stream'
order by c.relname;

-- every setting: unit, context, default
select name, unit, context, boot_val
from pg_settings
where name like 'hotmesh\_stream.%' and name not like 'hotmesh\_stream.debug%'
order by name;
select name as undescribed
from pg_settings
where name like 'hotmesh\_stream.%' and short_desc !~ '^(Sets|Maximum) .*\.$'
order by name;

drop extension hotmesh_stream;
select nspname from pg_namespace where nspname like 'hotmesh%';
\c :home
drop database hms_hygiene with (force);
