-- A receipt settles the hand-out it was given for, once.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude

-- case 60: given m1 leased, when ack, then 1; ack again, then 0; unknown id, then 0
select create_stream('cs60');
select create_group('cs60', 'g', ack_wait => '1 hour');
select publish('cs60', '"m1"') as id \gset
select receipt from read('cs60', 'g', 'A') \gset
select ack('cs60', 'g', :'receipt');
select ack('cs60', 'g', :'receipt');
select ack('cs60', 'g', '9223372036854775807');
select ack('cs60', 'g', '9223372036854775807:0000000000000000');
select ack('cs60', 'g', :'receipt', :'receipt', :'id');

-- case 61: given two receipts, one malformed, when ack, then error and none is settled
select publish('cs60', '"m2"') > 0 as published;
select receipt from read('cs60', 'g', 'A') \gset
select fails(format($$ select ack('cs60', 'g', %L, 'x') $$, :'receipt'));
select fails(format($$ select ack('cs60', 'g', 'x', %L) $$, :'receipt'));
select left(fails(format($$ select ack('cs60', 'g', %L, %L) $$, :'receipt', :'receipt' || '0')), 5) as sqlstate;
select count(*) from pending('cs60', 'g');
select ack('cs60', 'g', :'receipt');

-- case 62: given m1-m3 leased, when ack m2, then ack_floor stays below m1; ack m1, then ack_floor is m2
select create_stream('cs62');
select create_group('cs62', 'g', ack_wait => '1 hour');
select min(i) as m1, max(i) as m3 from publish_many('cs62', array['1', '2', '3']::json[]) i \gset
create temporary table cs62 as select * from read('cs62', 'g', 'A', 10);
select ack('cs62', 'g', (select receipt from cs62 where payload::text = '2'));
select ack_floor < :m1 as below_m1 from group_info('cs62', 'g');
select ack('cs62', 'g', (select receipt from cs62 where payload::text = '1'));
select ack_floor >= (select id from cs62 where payload::text = '2') as reached_m2, ack_floor < :m3 as below_m3 from group_info('cs62', 'g');
select ack('cs62', 'g', (select receipt from cs62 where payload::text = '3'));
select ack_floor >= :m3 as reached_m3 from group_info('cs62', 'g');

-- case 64: given m1's lease expired and nobody received it, when A acks with its receipt, then 1 and no redelivery
select create_stream('cs64');
select create_group('cs64', 'g', ack_wait => '1 hour');
select publish('cs64', '"m1"') > 0 as published;
select receipt from read('cs64', 'g', 'A', ack_wait => '1 ms') \gset
call until($$ select bool_and(deadline < clock_timestamp()) from pending('cs64', 'g') $$);
select ack('cs64', 'g', :'receipt');
select count(*) from read('cs64', 'g', 'B', wait => '0.3 s');

-- case 66: given m1 leased to B, when ack by bare id, then 1
select publish('cs64', '"m2"') as id \gset
select payload from read('cs64', 'g', 'B');
select ack('cs64', 'g', :'id');
select count(*) from pending('cs64', 'g');

-- case 67: given ack in a transaction that rolls back, then m1 is still leased with the same deadline
select publish('cs64', '"m3"') > 0 as published;
select receipt, deadline from read('cs64', 'g', 'A') \gset
begin;
select ack('cs64', 'g', :'receipt');
rollback;
select payload, receipt = :'receipt' as same_receipt, deadline = :'deadline' as same_deadline from pending('cs64', 'g');
select count(*) from read('cs64', 'g', 'B');
select ack('cs64', 'g', :'receipt');

-- case 69: given no backoff, when nack, then the next read returns it, count 2
select create_stream('cs69');
select create_group('cs69', 'g', ack_wait => '1 hour');
select publish('cs69', '"m1"') > 0 as published;
select receipt from read('cs69', 'g', 'A') \gset
select nack('cs69', 'g', array[:'receipt']);
select payload, delivery_count, receipt <> :'receipt' as another_receipt from read('cs69', 'g', 'B');

-- case 70: given nack(delay), when read before the delay is over, then nothing; after it, then the message
select create_stream('cs70');
select create_group('cs70', 'g', ack_wait => '1 hour');
select publish('cs70', '"m1"') > 0 as published;
select receipt from read('cs70', 'g', 'A') \gset
select nack('cs70', 'g', array[:'receipt'], delay => '1 hour');
select count(*) from read('cs70', 'g', 'B', wait => '0.2 s');
select leased, delayed from group_info('cs70', 'g');
select publish('cs70', '"m2"') > 0 as published;
select receipt from read('cs70', 'g', 'A') \gset
select clock_timestamp() as nacked \gset
select nack('cs70', 'g', array[:'receipt'], delay => '500 ms');
select payload, delivery_count, delivered_at - :'nacked' >= interval '500 ms' as after_delay from read('cs70', 'g', 'B', wait => '20 s');

-- case 72: given backoff {a, b}, when nacked three times without delay, then pauses are a, b, b
select create_stream('cs72');
select create_group('cs72', 'g', ack_wait => '1 hour', backoff => array['0.1 s', '0.3 s']::interval[]);
select publish('cs72', '"m1"') > 0 as published;
select receipt from read('cs72', 'g', 'A') \gset
select clock_timestamp() as began \gset
select nack('cs72', 'g', array[:'receipt']);
select due_at between :'began'::timestamptz + '0.1 s' and clock_timestamp() + '0.1 s' as pause_a from delivery where id = split_part(:'receipt', ':', 1)::bigint;
select receipt, delivered_at >= :'began'::timestamptz + '0.1 s' as kept from read('cs72', 'g', 'A', wait => '20 s') \gset
select :'kept'::boolean as pause_kept;
select clock_timestamp() as began \gset
select nack('cs72', 'g', array[:'receipt']);
select due_at between :'began'::timestamptz + '0.3 s' and clock_timestamp() + '0.3 s' as pause_b from delivery where id = split_part(:'receipt', ':', 1)::bigint;
select receipt, delivered_at >= :'began'::timestamptz + '0.3 s' as kept from read('cs72', 'g', 'A', wait => '20 s') \gset
select :'kept'::boolean as pause_kept;
select clock_timestamp() as began \gset
select nack('cs72', 'g', array[:'receipt']);
select due_at between :'began'::timestamptz + '0.3 s' and clock_timestamp() + '0.3 s' as pause_b from delivery where id = split_part(:'receipt', ':', 1)::bigint;
select payload, delivery_count, delivered_at >= :'began'::timestamptz + '0.3 s' as pause_kept from read('cs72', 'g', 'A', wait => '20 s');

-- case 73: given the same group, when leases expire instead, then redelivery i comes ack_wait + backoff[i] after hand-out; another message starts its own count at a
select create_stream('cs73');
select create_group('cs73', 'g', ack_wait => '0.2 s', backoff => array['0.1 s', '0.3 s']::interval[]);
select publish('cs73', '"m1"') > 0 as published;
create temporary table cs73 (payload json, delivery_count int, delivered_at timestamptz, deadline timestamptz, due_at timestamptz);
create procedure t.note_cs73()
language sql
as $$
    with r as materialized (select * from read('cs73', 'g', 'A', wait => '20 s')),
         noted as (insert into cs73 (payload, delivery_count, delivered_at, deadline)
                   select payload, delivery_count, delivered_at, deadline from r)
    select 1;
    update cs73 set due_at = (select max(d.due_at) from delivery d where d.lease_until = cs73.deadline) where cs73.due_at is null;
$$;
call note_cs73();
call note_cs73();
call note_cs73();
select publish('cs73', '"m2"') > 0 as published;
create temporary table cs73_m2 as select * from read('cs73', 'g', 'A', 1, wait => '20 s');
select payload, deadline - delivered_at as lease,
       (select d.due_at - r.delivered_at from delivery d where d.id = r.id) as due_after
from cs73_m2 r;
select payload, delivery_count, deadline - delivered_at as lease, due_at - delivered_at as due_after,
       delivered_at >= lag(due_at, 1, '-infinity') over (order by delivery_count) as not_early
from cs73 order by delivery_count;
drop procedure t.note_cs73();

-- case 74: given m1 redelivered to B, when A nacks its old receipt, then 0 and no third delivery
select create_stream('cs74');
select create_group('cs74', 'g', ack_wait => '1 hour');
select publish('cs74', '"m1"') > 0 as published;
select receipt as receipt_a from read('cs74', 'g', 'A', ack_wait => '1 ms') \gset
select receipt as receipt_b, delivery_count from read('cs74', 'g', 'B', wait => '20 s') \gset
\echo :delivery_count
select nack('cs74', 'g', array[:'receipt_a']);
select ack('cs74', 'g', :'receipt_a');
select reject('cs74', 'g', array[:'receipt_a'], 'late');
select extend('cs74', 'g', array[:'receipt_a'], '0');
select count(*) from read('cs74', 'g', 'C');
select payload, delivery_count, receipt = :'receipt_b' as same_receipt from pending('cs74', 'g', 'B');
select ack('cs74', 'g', :'receipt_b');

-- case 75: given max_deliver 2, when A nacks twice with count_attempt false, then it is still delivered
select create_stream('cs75');
select create_group('cs75', 'g', ack_wait => '1 hour', max_deliver => 2);
select publish('cs75', '"m1"') > 0 as published;
select receipt, delivery_count from read('cs75', 'g', 'A') \gset
select nack('cs75', 'g', array[:'receipt'], count_attempt => false);
select receipt, delivery_count from read('cs75', 'g', 'A') \gset
\echo :delivery_count
select nack('cs75', 'g', array[:'receipt'], count_attempt => false);
select receipt, delivery_count from read('cs75', 'g', 'A') \gset
\echo :delivery_count
select nack('cs75', 'g', array[:'receipt']);
select receipt, delivery_count from read('cs75', 'g', 'A') \gset
\echo :delivery_count
select nack('cs75', 'g', array[:'receipt'], count_attempt => false);
select payload, delivery_count from read('cs75', 'g', 'A');
select count(*) from dead_letters('cs75', 'g');

-- case 76: given m1 acked, when nack, extend or reject, then 0
select create_stream('cs76');
select create_group('cs76', 'g', ack_wait => '1 hour');
select publish('cs76', '"m1"') as id \gset
select receipt from read('cs76', 'g', 'A') \gset
select ack('cs76', 'g', :'receipt');
select nack('cs76', 'g', array[:'receipt']);
select extend('cs76', 'g', array[:'receipt']);
select reject('cs76', 'g', array[:'receipt'], 'late');
select nack('cs76', 'g', array[:'id']), extend('cs76', 'g', array[:'id']), reject('cs76', 'g', array[:'id'], 'late'), ack('cs76', 'g', :'id');
select complete('cs76', 'g', :'receipt', 'cs76', '"result"');
select count(*) from read('cs76', 'g', 'A');
select count(*) from dead_letters('cs76', 'g');

-- case 77: given the last allowed attempt, when nack, then it is dead at once
select create_stream('cs77');
select create_group('cs77', 'g', ack_wait => '1 hour', max_deliver => 2);
select publish('cs77', '"m1"') > 0 as published;
select receipt from read('cs77', 'g', 'A') \gset
select nack('cs77', 'g', array[:'receipt']);
select receipt from read('cs77', 'g', 'A') \gset
select nack('cs77', 'g', array[:'receipt'], error => '{"code": 7}');
select payload, delivery_count, last_error from dead_letters('cs77', 'g');
select count(*) from read('cs77', 'g', 'A');
select leased, delayed, dead from group_info('cs77', 'g');

-- case 78: given any attempt, when reject('bad'), then dead now with reason 'bad', never redelivered
select create_stream('cs78');
select create_group('cs78', 'g', ack_wait => '1 hour');
select publish('cs78', '"m1"') > 0 as published;
select receipt from read('cs78', 'g', 'A') \gset
select reject('cs78', 'g', array[:'receipt'], 'bad');
select payload, reason, delivery_count from dead_letters('cs78', 'g');
select count(*) from read('cs78', 'g', 'A', wait => '0.2 s');
select count(*) from pending('cs78', 'g');

-- case 79: given an extended lease, then nobody else gets it; after silence it returns; the count did not grow meanwhile
select create_stream('cs79');
select create_group('cs79', 'g', ack_wait => '1 hour');
select publish('cs79', '"m1"') > 0 as published;
select receipt, deadline from read('cs79', 'g', 'A') \gset
select extend('cs79', 'g', array[:'receipt'], '2 hours');
select deadline > :'deadline' as moved, delivery_count, receipt = :'receipt' as same_receipt from pending('cs79', 'g');
select extend('cs79', 'g', array[:'receipt'], '3 hours');
select extend('cs79', 'g', array[:'receipt']);
select count(*) from read('cs79', 'g', 'B');
select deadline between clock_timestamp() + '59 min' and clock_timestamp() + '1 hour' as group_lease from pending('cs79', 'g');
select extend('cs79', 'g', array[:'receipt'], '0.2 s');
select payload, delivery_count from read('cs79', 'g', 'B', wait => '20 s');
select extend('cs79', 'g', array[:'receipt'], '2 hours');

-- case 80: given extend(0), then it is available at once, and the next delivery has the group's normal ack_wait
select create_stream('cs80');
select create_group('cs80', 'g', ack_wait => '1 hour');
select publish('cs80', '"m1"') > 0 as published;
select receipt from read('cs80', 'g', 'A') \gset
select extend('cs80', 'g', array[:'receipt'], '0');
select payload, delivery_count, deadline - delivered_at as lease from read('cs80', 'g', 'B');

-- case 81: given a lost, settled or foreign lease, when extend, then 0
select create_group('cs80', 'g2', ack_wait => '1 hour');
select extend('cs80', 'g', array[:'receipt'], '1 hour') as lost;
select receipt from pending('cs80', 'g', 'B') \gset
select extend('cs80', 'g2', array[:'receipt'], '1 hour') as foreign_group;
select ack('cs80', 'g', :'receipt');
select extend('cs80', 'g', array[:'receipt'], '1 hour') as settled;

-- case 83: given a negative or over-maximum interval, when read, extend or nack, then error
select publish('cs80', '"m2"') > 0 as published;
select receipt, deadline from read('cs80', 'g', 'A') \gset
select fails($$ select * from read('cs80', 'g', 'A', ack_wait => '-1 s') $$);
select fails($$ select * from read('cs80', 'g', 'A', ack_wait => '401 days') $$);
select fails($$ select * from read('cs80', 'g', 'A', ack_wait => '1 month') $$);
select fails($$ select * from read('cs80', 'g', 'A', wait => '-1 s') $$);
select fails(format($$ select extend('cs80', 'g', array[%L], '-1 s') $$, :'receipt'));
select fails(format($$ select extend('cs80', 'g', array[%L], '401 days') $$, :'receipt'));
select fails(format($$ select nack('cs80', 'g', array[%L], '-1 s') $$, :'receipt'));
select fails(format($$ select nack('cs80', 'g', array[%L], '401 days') $$, :'receipt'));
select fails(format($$ select nack('cs80', 'g', array[%L], '1 year') $$, :'receipt'));
select receipt = :'receipt' as untouched, deadline = :'deadline' as same_deadline from pending('cs80', 'g');

select drop_stream(s) from unnest(array['cs60', 'cs62', 'cs64', 'cs69', 'cs70', 'cs72', 'cs73', 'cs74', 'cs75', 'cs76', 'cs77', 'cs78', 'cs79', 'cs80']) s;
