-- A payload comes back byte for byte; a body as it was.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
create temporary table jb (n int generated always as identity, payload text);
insert into jb (payload) values
    ('{"b":1,"a":2}'), ('{ "b" : 1 ,   "a":2 }'), ('{"a":1,"a":2,"a":3}'), ('1e400'), ('-0'), ('1.50'), ('12345678901234567890.123456789'),
    ('"\u0000"'), ('"\ud83d\ude00"'), ('"é 😀"'), ('"\/"'), ('null'), ('true'), ('[]'), ('{}'), ('""'), (' 1 '), (E'{\n\t"x": 1\r\n}'),
    ('[[[[[[[[[[]]]]]]]]]]'), ('{"": {"": ""}}');
select create_stream('jb');
select create_group('jb', 'g');
select create_group('jb', 'batch');
select count(*) from (select publish('jb', payload::json) from jb order by n) s;
select n, r.payload::text = jb.payload as publish
from (select payload, row_number() over (order by id) as n from read('jb', 'g', 'A', 100)) r join jb using (n) order by n;

-- the same through publish_many, publish_batch, messages, pending, claim, dead letters and redrive
select count(*) from publish_many('jb', (select array_agg(payload::json order by n) from jb));
select bool_and(r.payload::text = jb.payload) as publish_many, count(*)
from (select payload, row_number() over (order by id) as n from read('jb', 'g', 'B', 100)) r join jb using (n);
select count(*) from publish_batch('jb', (select ('[' || string_agg('{"payload":' || payload || '}', ',' order by n) || ']')::json from jb));
select n, r.payload::text, trim(jb.payload) as sent
from (select payload, row_number() over (order by id) as n from read('jb', 'g', 'C', 100)) r join jb using (n)
where r.payload::text is distinct from trim(jb.payload) order by n;
select bool_and(r.payload::text = jb.payload) as pending, count(*)
from (select payload, row_number() over (order by id) as n from pending('jb', 'g', 'A')) r join jb using (n);
select bool_and(r.payload::text = jb.payload) as messages, count(*)
from (select payload, row_number() over (order by id) as n from messages('jb', max_messages => 20)) r join jb using (n);
select bool_and(r.payload::text = jb.payload) as claim, count(*)
from (select payload, row_number() over (order by id) as n from claim('jb', 'g', 'D', max_messages => 20)) r join jb using (n);
select reject('jb', 'g', array_agg(receipt), 'bad') from pending('jb', 'g', 'D');
select bool_and(r.payload::text = jb.payload) as dead_letters, count(*)
from (select payload, row_number() over (order by id) as n from dead_letters('jb', 'g')) r join jb using (n);
select redrive('jb', 'g', max_messages => 100);
select bool_and(r.payload::text = jb.payload) as redriven, count(*)
from (select payload, row_number() over (order by id) as n from read('jb', 'g', 'E', 100)) r join jb using (n);

-- what is not json is refused by the type
select publish('jb', '{"a": }');
select publish('jb', '');

-- bodies: any bytes, empty ones too; payload is null then, and body is null for a payload
select publish_bytes('jb', '\x00ff0001', content_type => 'application/octet-stream', headers => '{"k": "v"}') > 0 as published;
select publish_bytes('jb', '') > 0 as published;
select publish('jb', 'null') > 0 as published;
select payload, payload is null as no_payload, body, content_type, headers from read('jb', 'g', 'F', 10);
select receipt as r from pending('jb', 'g', 'F') where content_type is not null \gset
select reject('jb', 'g', array[:'r'], 'bad');
select payload, body, content_type, headers from dead_letters('jb', 'g');
select redrive('jb', 'g');
select payload, body, content_type, headers, delivery_count from read('jb', 'g', 'F');
select body, content_type from messages('jb', descending => true, max_messages => 3);

-- headers are jsonb
select publish('jb', '1', headers => '{"b": 1, "a": {"c": [1, 2]}, "b": 2}') > 0 as published;
select headers from read('jb', 'g', 'G');
select publish('jb', '1', headers => '{}') > 0 as published;
select headers from read('jb', 'g', 'G');

select drop_stream('jb');
