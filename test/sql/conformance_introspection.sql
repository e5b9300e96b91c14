-- Looking changes nothing, and errors are told apart.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude

-- case 115: given ids 1..100 with holes, when messages() is iterated by 10 forwards, backwards or by time range, then every row once, and no lease or count changes
select create_stream('ci115');
select create_group('ci115', 'g', ack_wait => '1 hour');
create temporary table ci115 as
    select i as id from publish_many('ci115', (select array_agg(to_json(n)) from generate_series(1, 50) n)) i;
insert into ci115
    select i from publish_many('ci115', (select array_agg(to_json(n)) from generate_series(51, 100) n)) i;
create temporary table ci115_leased as select * from read('ci115', 'g', 'A', 20);
select delete_messages('ci115', (select array_agg(id) from (select id, row_number() over (order by id) n from ci115) s where n % 10 = 0));
create function t.walk(step int, backwards boolean) returns setof text
language plpgsql
as $$
declare
    page int[];
    last_id bigint;
begin
    loop
        if backwards then
            select array_agg(payload::text::int order by id desc), min(id) into page, last_id
            from messages('ci115', to_id => last_id - 1, max_messages => step, descending => true);
        else
            select array_agg(payload::text::int order by id), max(id) into page, last_id
            from messages('ci115', from_id => coalesce(last_id, 0) + 1, max_messages => step);
        end if;
        exit when page is null;
        return query select unnest(page)::text;
    end loop;
end
$$;
select count(*), count(distinct w), string_agg(w, ' ') like '1 2 3 4 5 6 7 8 9 11 12 % 99' as in_order from walk(10, false) w;
select count(*), count(distinct w), string_agg(w, ' ') like '99 98 97 % 11 9 8 7 6 5 4 3 2 1' as in_order from walk(10, true) w;
select payload from messages('ci115', max_messages => 3);
select payload from messages('ci115', max_messages => 3, descending => true);
select count(*), min(payload::text::int), max(payload::text::int)
from messages('ci115', from_id => (select min(id) + 4 from ci115), to_id => (select min(id) + 10 from ci115));
select count(*) from messages('ci115', from_time => '-infinity', to_time => 'infinity', max_messages => 1000);
select count(*) from messages('ci115', from_time => clock_timestamp() + '1 hour');
select count(*) from messages('ci115', to_time => clock_timestamp() - interval '1 hour');
select published_at as split from messages('ci115', from_id => (select min(id) + 50 from ci115), max_messages => 1) \gset
select count(*), min(payload::text::int), max(payload::text::int) from messages('ci115', to_time => :'split');
select count(*), min(payload::text::int), max(payload::text::int) from messages('ci115', from_time => :'split');
select count(*), min(payload::text::int), max(payload::text::int)
from messages('ci115', from_time => :'split', to_id => (select min(id) + 60 from ci115), max_messages => 5, descending => true);
select count(*) as unchanged, max(delivery_count) as delivery_count from pending('ci115', 'g') join ci115_leased using (id, receipt, delivery_count, deadline);
drop function t.walk(int, boolean);

-- case 118: given A's first read returned nothing, then A is listed; last_seen moves on every read, last_active only on success
select create_stream('ci118');
select create_group('ci118', 'g', ack_wait => '1 hour');
select count(*) from read('ci118', 'g', 'A');
select consumer, leased, last_active is null as never_active from consumer_info('ci118', 'g');
select last_seen from consumer_info('ci118', 'g') \gset
select count(*) from read('ci118', 'g', 'A');
select last_seen > :'last_seen' as seen_moves, last_active is null as never_active from consumer_info('ci118', 'g');
select publish('ci118', '1') > 0 as published;
select count(*) from read('ci118', 'g', 'A');
select consumer, leased, last_active = last_seen as active_now from consumer_info('ci118', 'g');
select last_seen, last_active from consumer_info('ci118', 'g') \gset
select count(*) from read('ci118', 'g', 'A');
select last_seen > :'last_seen' as seen_moves, last_active = :'last_active' as active_stays from consumer_info('ci118', 'g');
select drop_consumer('ci118', 'g', 'A');
select payload, delivery_count from read('ci118', 'g', 'B');
select consumer, leased from consumer_info('ci118', 'g');

-- case 120: given an unknown stream, unknown group, malformed receipt, max_messages 0, then each has its own SQLSTATE and no partial effect
select publish('ci118', '2') > 0 as published;
select receipt from pending('ci118', 'g') \gset
select fails($$ select * from read('none', 'g', 'B') $$);
select fails($$ select * from read('ci118', 'none', 'B') $$);
select fails($$ select * from read('ci118', 'g', 'B', 0) $$);
select fails(format($$ select ack('ci118', 'g', %L, '17:xyz') $$, :'receipt'));
select fails(format($$ select nack('ci118', 'g', array[%L, '17:xyz']) $$, :'receipt'));
select fails(format($$ select reject('ci118', 'g', array[%L, '17:xyz'], 'r') $$, :'receipt'));
select fails(format($$ select extend('ci118', 'g', array[%L, '17:xyz']) $$, :'receipt'));
select payload, receipt = :'receipt' as untouched, delivery_count from pending('ci118', 'g');
select payload, delivery_count from read('ci118', 'g', 'B');

select drop_stream(s) from unnest(array['ci115', 'ci118']) s;
