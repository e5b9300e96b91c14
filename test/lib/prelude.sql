-- Common start of the regression tests: the extension, short names, and t.fails().
set client_min_messages = warning;
create extension if not exists hotmesh_stream cascade;
create schema if not exists t;

-- runs a statement; tells the SQLSTATE and message it fails with, or 'no error'
create or replace function t.fails(call text)
returns text
language plpgsql
as $$
begin
    execute call;
    return 'no error';
exception when others then
    return sqlstate || ' ' || sqlerrm;
end
$$;

-- rows a statement returns, as one array of its first column
create or replace function t.collect(call text)
returns text
language plpgsql
as $$
declare
    item   text;
    result text := '';
begin
    for item in execute call loop
        result := result || case when result = '' then '' else ' ' end || coalesce(item, 'null');
    end loop;
    return result;
end
$$;

-- returns when a query says true; gives up after a minute
create or replace procedure t.until(condition text)
language plpgsql
as $$
declare
    reached boolean;
begin
    for i in 1..6000 loop
        execute condition into reached;
        exit when reached;
        commit;
        perform pg_sleep(0.01);
    end loop;
    if reached is distinct from true then
        raise exception 'gave up waiting for: %', condition;
    end if;
end
$$;

set search_path = hotmesh_stream, t, public;

-- a busy machine may be slow: no read gives up early
set hotmesh_stream.advance_wait = '20 s';
reset client_min_messages;
\set ECHO all
