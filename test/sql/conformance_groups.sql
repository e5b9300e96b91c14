-- A group starts where it was told to and keeps its own position.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude

-- case 19: given G exists, when create_group with the same config, then no-op and position kept; with another config, then error
select create_stream('cg19');
select count(*) from publish_many('cg19', array['"m1"', '"m2"']::json[]);
select create_group('cg19', 'g', ack_wait => '1 hour', max_deliver => 3, backoff => array['1 s', '2 s']::interval[]);
select payload from read('cg19', 'g', 'A');
select create_group('cg19', 'g', ack_wait => '60 min', max_deliver => 3, backoff => array['1 s', '2 s']::interval[]);
select payload from pending('cg19', 'g');
select payload from read('cg19', 'g', 'A', 10);
select fails($$ select create_group('cg19', 'g') $$);
select fails($$ select create_group('cg19', 'g', ack_wait => '1 hour', max_deliver => 4, backoff => array['1 s', '2 s']::interval[]) $$);
select fails($$ select create_group('cg19', 'g', deliver_policy => 'new', ack_wait => '1 hour', max_deliver => 3, backoff => array['1 s', '2 s']::interval[]) $$);
select fails($$ select create_group('cg19', 'g', ack_wait => '1 hour', max_deliver => 3) $$);
select ack_wait, max_deliver, backoff from consumer_group where name = 'g' and stream_id = (select stream_id from stream where name = 'cg19');

-- case 20: given m1-m3, when G and G2 are created with deliver all, then each gets m1-m3; acks in G do not change G2
select create_stream('cg20');
select count(*) from publish_many('cg20', array['"m1"', '"m2"', '"m3"']::json[]);
select create_group('cg20', 'g');
select create_group('cg20', 'g2');
select ack('cg20', 'g', variadic array_agg(receipt)) from read('cg20', 'g', 'A', 10);
select payload from read('cg20', 'g', 'A', 10);
select lag from group_info('cg20', 'g2');
select payload, delivery_count from read('cg20', 'g2', 'A', 10);

-- case 21: given m1-m3, when G is created with deliver new and m4 is published, then G gets only m4
select create_stream('cg21');
select count(*) from publish_many('cg21', array['"m1"', '"m2"', '"m3"']::json[]);
select create_group('cg21', 'g', deliver_policy => 'new');
select lag from group_info('cg21', 'g');
select payload from read('cg21', 'g', 'A', 10);
select publish('cg21', '"m4"') > 0 as published;
select payload from read('cg21', 'g', 'A', 10);

-- case 27: given an unknown policy, backoff longer than max_deliver, or a negative interval, when create or alter, then error and nothing changed
select create_stream('cg27');
select fails($$ select create_group('cg27', 'g', deliver_policy => 'some') $$);
select fails($$ select create_group('cg27', 'g', max_deliver => 2, backoff => array['1 s', '2 s', '3 s']::interval[]) $$);
select fails($$ select create_group('cg27', 'g', ack_wait => '-1 s') $$);
select fails($$ select create_group('cg27', 'g', backoff => array['-1 s']::interval[]) $$);
select fails($$ select create_group('cg27', 'g', dead_letter_retention => '-1 s') $$);
select fails($$ select create_group('cg27', 'g', max_deliver => 0) $$);
select fails($$ select create_group('cg27', 'g', max_deliver => -1) $$);
select count(*) from group_info('cg27', null);
select create_group('cg27', 'g', ack_wait => '10 s', max_deliver => 2, backoff => array['1 s']::interval[]);
select fails($$ select alter_group('cg27', 'g', '{"ack_wait": "-1 s"}') $$);
select fails($$ select alter_group('cg27', 'g', '{"ack_wait": "20 s", "backoff": ["1 s", "2 s", "3 s"]}') $$);
select fails($$ select alter_group('cg27', 'g', '{"ack_wait": "20 s", "max_deliver": 0}') $$);
select fails($$ select alter_group('cg27', 'g', '{"ack_wait": "20 s", "unknown": 0}') $$);
select fails($$ select alter_group('cg27', 'g', '{"deliver_policy": "new"}') $$);
select ack_wait, max_deliver, backoff, dead_letter_retention
from consumer_group where name = 'g' and stream_id = (select stream_id from stream where name = 'cg27');

select drop_stream(s) from unnest(array['cg19', 'cg20', 'cg21', 'cg27']) s;
