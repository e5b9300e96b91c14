-- publish_batch and publish_many: all or nothing, in order, with their options.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select create_stream('ba', max_message_bytes => 10000);
select create_group('ba', 'g', ack_wait => '1 hour');

-- publish_batch returns one row per entry, in array order
create temporary table ba as select * from publish_batch('ba', '[
    {"payload": {"b": 1, "a": 2}},
    {"payload": null},
    {"payload": [1, 2]},
    {"headers": {"h": "x"}, "payload": "with headers"},
    {"payload": "delayed", "delay": "1 hour"},
    {"payload": "at", "deliver_at": "2000-01-01 00:00:00+00"},
    {"payload": "null options", "headers": null, "delay": null, "deliver_at": null}]');
select ordinality, id - first_value(id) over (order by ordinality) as step, duplicate from ba;
select payload, headers from messages('ba');
select payload, headers from read('ba', 'g', 'A', 10);
select delayed from group_info('ba', 'g');
select ack('ba', 'g', variadic array_agg(receipt)) from pending('ba', 'g');

-- the bytes of each payload are kept
select count(*) from publish_batch('ba', '[{"payload":   {"z" : 1,  "a":1e400, "a": "\u0000"}  } , {"payload":"\u00e9\u0000" }]');
select payload::text from read('ba', 'g', 'A', 10);

-- publish_many: ids in the order of the array, with payloads of every kind
select string_agg(i, ' ') from collect($$
    select i - min(i) over () from publish_many('ba', array['1', '"two"', 'null', '[4]', '{"five": 5}']::json[]) i $$) i;
select payload from read('ba', 'g', 'A', 10);
select array_agg(i) = array_agg(i order by i) as rising, count(*)
from publish_many('ba', (select array_agg(to_json(n)) from generate_series(1, 10000) n)) i;
select count(*), sum(payload::text::int) from messages('ba', max_messages => 10000, from_id => (select max(id) - 9999 from messages('ba', descending => true, max_messages => 1)));

-- a backlog is handed out in order, whatever the batch
create temporary table ba_read (n int generated always as identity, v int);
insert into ba_read (v) select payload::text::int from read('ba', 'g', 'A', 1);
insert into ba_read (v) select payload::text::int from read('ba', 'g', 'A', 100);
do $$
begin
    loop
        insert into ba_read (v) select payload::text::int from read('ba', 'g', 'A', 1000);
        exit when not found;
    end loop;
end
$$;
select count(*), count(distinct v), bool_and(v = n) as in_order from ba_read;
select leased, lag from group_info('ba', 'g');

-- a batch obeys the transaction
begin;
select count(*) from publish_batch('ba', '[{"payload": 1}, {"payload": 2}]');
rollback;
select count(*) from read('ba', 'g', 'A', 10);

-- payloads near a page, above a page and compressed come back whole
select count(*) from publish_many('ba', array[to_json(repeat('x', 8000)), to_json((select string_agg(md5(i::text), '') from generate_series(1, 300) i))]);
select length(payload::text), md5(payload::text) = md5(case when length(payload::text) = 8002 then '"' || repeat('x', 8000) || '"'
    else '"' || (select string_agg(md5(i::text), '') from generate_series(1, 300) i) || '"' end) as whole
from read('ba', 'g', 'A', 10);

-- more than inline_bytes in one read
select create_stream('ba_big');
select create_group('ba_big', 'g');
select count(*) from publish_many('ba_big', (select array_agg(to_json(repeat(i::text, 50000))) from generate_series(1, 8) i));
select left(payload::text, 2) as payload, length(payload::text) from read('ba_big', 'g', 'A', 10);
select drop_stream(s) from unnest(array['ba', 'ba_big']) s;
