-- Hostile names round-trip through every function.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
create temporary table hostile (n int generated always as identity, name text);
insert into hostile (name) values
    ('a"b'), ('''; drop table hotmesh_stream.stream; --'), ('%I %s %L %%'), ('😀 emoji'), (repeat('x', 255)),
    (repeat('é', 127)), (E'line\nbreak\ttab'), ('$$'), ('\x00\'), ('{"a": 1}'), (' padded '), ('NULL'), ('pg_catalog.now()'), ('*'), ('>'), ('a:b'), ('A"B');

create procedure t.round_trip(name text)
language plpgsql
as $$
declare
    i     bigint;
    r     message;
    n     int;
begin
    assert create_stream(name), 'create_stream';
    assert not create_stream(name), 'create_stream again';
    assert create_group(name, name, ack_wait => '1 hour'), 'create_group';
    assert not create_group(name, name, ack_wait => '1 hour'), 'create_group again';
    perform alter_group(name, name, '{"ack_wait": "2 hours"}');
    perform alter_stream(name, '{"max_message_bytes": 5000}');
    i := publish(name, to_json(name), headers => jsonb_build_object('name', name, name, 1));
    perform publish_bytes(name, convert_to(name, 'UTF8'), content_type => 'text/plain');
    perform publish_many(name, array[to_json(name)]);
    select count(*) into n from publish_batch(name, json_build_array(json_build_object('payload', name)));
    assert n = 1, 'publish_batch';

    select * into r from read(name, name, name);
    assert r.id = i and r.payload #>> '{}' = name and r.headers ->> 'name' = name and r.headers ? name, 'read';
    assert (select count(*) from pending(name, name, name)) = 1, 'pending';
    assert extend(name, name, array[r.receipt], '1 hour') = 1, 'extend';
    assert nack(name, name, array[r.receipt], error => to_jsonb(name)) = 1, 'nack';
    select * into r from read(name, name, name);
    assert r.id = i and r.delivery_count = 2, 'read again';
    assert reject(name, name, array[r.receipt], name) = 1, 'reject';
    assert (select reason = name and last_consumer = name and last_error #>> '{}' = name from dead_letters(name, name)), 'dead_letters';
    assert redrive(name, name) = 1, 'redrive';
    select * into r from read(name, name, name);
    assert r.id = i and ack(name, name, r.receipt) = 1, 'ack';
    select * into r from read(name, name, name);
    assert convert_from(r.body, 'UTF8') = name and r.payload is null, 'body';
    assert complete(name, name, r.receipt, name, to_json(name)) > i, 'complete';
    assert (select count(*) from read(name, name, name, 10)) = 3, 'the rest';
    assert (select count(*) from claim(name, name, name || case when octet_length(name) < 250 then '2' else '' end)) = 3, 'claim';
    assert exists (select from consumer_info(name, name) where consumer = name), 'consumer_info';
    assert drop_consumer(name, name, name || case when octet_length(name) < 250 then '2' else '' end) = 3, 'drop_consumer';
    assert (select count(*) from messages(name)) = 5, 'messages';
    assert (select stream = name from stream_info(name)), 'stream_info';
    assert (select consumer_group = name from group_info(name, name)), 'group_info';
    perform grant_stream(name, 'publish', current_user::regrole);
    assert revoke_stream(name, 'publish', current_user::regrole) is not null, 'revoke_stream';
    assert drop_group(name, name), 'drop_group';
    assert drop_stream(name), 'drop_stream';
end
$$;

do $$
declare
    h record;
begin
    for h in select * from hostile order by n loop
        call round_trip(h.name);
    end loop;
end
$$;
select count(*) from stream s join hostile h using (name);
select count(*) > 0 as tables_stand from pg_class where oid = 'hotmesh_stream.stream'::regclass;

-- names are told apart by case and by every byte
select create_stream('nm'), create_stream('Nm'), create_stream('nm ');
select publish('Nm', '"of Nm"') > 0 as published;
select count(*) from messages('nm');
select count(*) from messages('nm ');
select payload from messages('Nm');
select drop_stream(s) from unnest(array['nm', 'Nm', 'nm ']) s;

-- error messages show the name as it is
select fails($q$ select publish('no "such" %s stream', '1') $q$);
select create_stream('nm');
select fails($q$ select * from read('nm', 'no "such" %s group', 'A') $q$);
select drop_stream('nm');

-- namespaces as well
select create_namespace('a"b '' %I 😀');
select create_stream('nm', namespace => 'a"b '' %I 😀');
select publish('nm', '1') > 0 as published;
select payload from messages('nm');
select drop_stream('nm');
select drop_namespace('a"b '' %I 😀');

drop procedure t.round_trip(text);
