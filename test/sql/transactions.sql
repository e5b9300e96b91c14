-- Publish, read and settle obey the transaction they are called in.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select create_stream('tx');
select create_group('tx', 'g', ack_wait => '1 hour');

-- read and ack in one statement
select count(*) from publish_many('tx', array['1', '2', '3']::json[]);
select ack('tx', 'g', variadic array_agg(receipt)) from read('tx', 'g', 'A', 10);
select count(*) from pending('tx', 'g');
select ack('tx', 'g', variadic array_agg(receipt)) from (select * from read('tx', 'g', 'A', 10)) r having count(*) > 0;

-- read + work + ack in one transaction
create temporary table done (payload json);
select count(*) from publish_many('tx', array['4', '5']::json[]);
begin;
insert into done select payload from read('tx', 'g', 'A');
select ack('tx', 'g', receipt) from pending('tx', 'g', 'A');
insert into done select payload from read('tx', 'g', 'A');
select ack('tx', 'g', receipt) from pending('tx', 'g', 'A');
commit;
select payload from done;
select count(*) from read('tx', 'g', 'A', 10);

-- rolled back, everything is as it was
select count(*) from publish_many('tx', array['6']::json[]);
begin;
insert into done select payload from read('tx', 'g', 'A');
select ack('tx', 'g', receipt) from pending('tx', 'g', 'A');
rollback;
select payload from done;
select payload, delivery_count from read('tx', 'g', 'A');
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');

-- a transaction reads what it published itself
begin;
select publish('tx', '"own"') > 0 as published;
select payload, delivery_count from read('tx', 'g', 'A', 10);
select publish('tx', '"own too"') > 0 as published;
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');
select payload, delivery_count from read('tx', 'g', 'A', 10);
commit;
select payload, delivery_count from pending('tx', 'g');
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');
begin;
select publish('tx', '"never"') > 0 as published;
select payload from read('tx', 'g', 'A', 10);
rollback;
select count(*) from read('tx', 'g', 'A', 10);
select count(*) from pending('tx', 'g');

-- read in a savepoint, rolled back, read again
select count(*) from publish_many('tx', array['7', '8', '9']::json[]);
begin;
savepoint s;
select payload, delivery_count from read('tx', 'g', 'A', 2);
rollback to s;
select payload, delivery_count from read('tx', 'g', 'A', 2);
savepoint s2;
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');
rollback to s2;
select payload from pending('tx', 'g');
savepoint s3;
select nack('tx', 'g', array_agg(receipt)) from pending('tx', 'g');
release s3;
select payload, delivery_count from read('tx', 'g', 'B', 10);
commit;
select payload, delivery_count from pending('tx', 'g', 'B');
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');

-- PL/pgSQL: one message per turn of a loop
select count(*) from publish_many('tx', (select array_agg(to_json(i)) from generate_series(10, 19) i));
do $$
declare
    r message;
    n int := 0;
begin
    loop
        select * into r from read('tx', 'g', 'A');
        exit when not found;
        n := n + ack('tx', 'g', r.receipt);
        insert into done values (r.payload);
    end loop;
    raise notice 'settled %', n;
end
$$;
select string_agg(payload::text, ' ') from done;
select count(*) from pending('tx', 'g');

-- PL/pgSQL: FOR over read, with exception blocks that fail
select count(*) from publish_many('tx', (select array_agg(to_json(i)) from generate_series(20, 25) i));
do $$
declare
    r message;
begin
    for r in select * from read('tx', 'g', 'A', 10) loop
        begin
            perform ack('tx', 'g', r.receipt);
            if r.payload::text::int % 2 = 1 then
                raise exception 'odd';
            end if;
        exception when raise_exception then
            perform nack('tx', 'g', array[r.receipt], error => to_jsonb(sqlerrm));
        end;
    end loop;
end
$$;
select payload, delivery_count from read('tx', 'g', 'A', 10);
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');

-- a procedure that commits between messages
select count(*) from publish_many('tx', (select array_agg(to_json(i)) from generate_series(30, 32) i));
create procedure t.work()
language plpgsql
as $$
declare
    r message;
begin
    loop
        select * into r from read('tx', 'g', 'A');
        exit when not found;
        commit;
        insert into done values (r.payload);
        perform ack('tx', 'g', r.receipt);
        commit;
    end loop;
end
$$;
truncate done;
call work();
select payload from done;
drop procedure t.work();

-- CTEs: each call once, in any shape
select count(*) from publish_many('tx', array['40', '41', '42', '43']::json[]);
with r as materialized (select * from read('tx', 'g', 'A', 2))
select r.payload, ack('tx', 'g', r.receipt) from r;
with r as materialized (select * from read('tx', 'g', 'A', 2)),
     kept as (insert into done select payload from r returning payload)
select ack('tx', 'g', variadic array_agg(receipt)), (select count(*) from kept) from r;
select count(*) from pending('tx', 'g');

-- INSERT ... SELECT, CREATE TABLE AS, joins, LIMIT, lateral calls, the select list
select count(*) from publish_many('tx', (select array_agg(to_json(i)) from generate_series(50, 57) i));
create temporary table tx1 as select payload from read('tx', 'g', 'A');
insert into tx1 select payload from read('tx', 'g', 'A');
insert into tx1 select payload from read('tx', 'g', 'A') cross join generate_series(1, 2);
insert into tx1 select (read('tx', 'g', 'A')).payload;
insert into tx1 select r.payload from (values ('tx')) s(name), lateral read(s.name, 'g', 'A') r;
select payload from read('tx', 'g', 'A', 3) limit 1;
select payload::text, count(*) from tx1 group by 1 order by 1;
select payload from pending('tx', 'g');
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');

-- cursors: what was fetched or not fetched, read has leased
select count(*) from publish_many('tx', array['60', '61', '62', '63']::json[]);
begin;
declare c cursor for select payload from read('tx', 'g', 'A', 2);
fetch 1 from c;
close c;
commit;
select payload from pending('tx', 'g');
begin;
declare c cursor with hold for select payload from read('tx', 'g', 'A', 2);
commit;
fetch all from c;
close c;
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');
begin;
declare c cursor for select payload from read('tx', 'g', 'A', 2);
close c;
commit;
select count(*) from pending('tx', 'g');

-- EXPLAIN ANALYZE runs the read
select publish('tx', '70') > 0 as published;
create function t.explained() returns boolean
language plpgsql
as $$
declare
    line text;
    seen boolean := false;
begin
    for line in explain (analyze, costs off, timing off, summary off) select * from read('tx', 'g', 'A') loop
        seen := seen or line like '%Function Scan%';
    end loop;
    return seen;
end
$$;
select explained();
drop function t.explained();
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');

-- prepared statements, run often enough for a generic plan
prepare r as select payload from read('tx', 'g', 'A', $1);
select count(*) from publish_many('tx', (select array_agg(to_json(i)) from generate_series(80, 86) i));
execute r(1);
execute r(1);
execute r(1);
execute r(1);
execute r(1);
execute r(1);
execute r(1);
execute r(1);
deallocate r;
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');

-- REPEATABLE READ works; what others commit after its snapshot is read as well (race_two_readers)
begin isolation level repeatable read;
select count(*) from done where false;
select publish('tx', '90') > 0 as published;
select payload from read('tx', 'g', 'A');
commit;
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');

-- SERIALIZABLE is refused, for what hands out and settles
select publish('tx', '91') > 0 as published;
begin isolation level serializable;
select fails($$ select * from read('tx', 'g', 'A') $$);
select fails($$ select ack('tx', 'g', '1') $$);
select fails($$ select nack('tx', 'g', array['1']) $$);
select fails($$ select * from claim('tx', 'g', 'A') $$);
commit;
select payload from read('tx', 'g', 'A');
select ack('tx', 'g', variadic array_agg(receipt)) from pending('tx', 'g');

-- READ ONLY transactions look, and do nothing else
begin read only;
select count(*) from messages('tx', max_messages => 1);
select lag from group_info('tx', 'g');
select count(*) from pending('tx', 'g');
select fails($$ select publish('tx', '1') $$);
select fails($$ select * from read('tx', 'g', 'A') $$);
select fails($$ select ack('tx', 'g', '1') $$);
select fails($$ select create_stream('tx2') $$);
commit;

-- triggers publish in the transaction of the row
create table t.orders (id int);
create function t.on_order() returns trigger
language plpgsql
as $$
begin
    perform hotmesh_stream.publish('tx', to_json(new.id));
    return new;
end
$$;
create trigger on_order after insert on t.orders for each row execute function t.on_order();
insert into t.orders values (100), (101);
begin;
insert into t.orders values (102);
rollback;
select payload from read('tx', 'g', 'A', 10);
drop table t.orders;
drop function t.on_order();

-- complete acks and publishes in one step, once
select create_stream('tx_out');
select receipt as r from pending('tx', 'g') limit 1 \gset
select complete('tx', 'g', :'r', 'tx_out', '"result"', headers => '{"from": "tx"}') > 0 as completed;
select complete('tx', 'g', :'r', 'tx_out', '"result"') is null as lost;
select payload, headers from messages('tx_out');
select payload from pending('tx', 'g');

-- ordinary statements after ours in one transaction, in any order
begin;
select publish('tx', '110') > 0 as published;
create temporary table tx2 on commit drop as select 1 as one;
select payload from read('tx', 'g', 'A', 10);
select drop_group('tx', 'g');
select fails($$ select * from read('tx', 'g', 'A') $$);
rollback;
select payload from read('tx', 'g', 'A', 10);

-- objects created and used in one transaction
begin;
select create_stream('tx3');
select create_group('tx3', 'g');
select publish('tx3', '1') > 0 as published;
select payload from read('tx3', 'g', 'A');
select ack('tx3', 'g', receipt) from pending('tx3', 'g');
rollback;
select fails($$ select publish('tx3', '1') $$);
begin;
select create_stream('tx3');
select create_group('tx3', 'g');
select publish('tx3', '1') > 0 as published;
commit;
select payload from read('tx3', 'g', 'A');
begin;
select drop_stream('tx3');
rollback;
select payload from pending('tx3', 'g');

select drop_stream(s) from unnest(array['tx', 'tx_out', 'tx3']) s;
