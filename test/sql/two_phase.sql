-- PREPARE TRANSACTION after publish or ack works; after a claim it is refused.
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
select create_stream('tp');
select create_group('tp', 'g', ack_wait => '1 hour', max_deliver => 5);
select count(*) from publish_many('tp', array['1', '2', '3']::json[]);
create temporary table tp as select * from read('tp', 'g', 'A', 3);
select receipt as r1 from tp where payload::text = '1' \gset
select receipt as r2 from tp where payload::text = '2' \gset
select receipt as r3 from tp where payload::text = '3' \gset

-- publish, prepared and committed: later messages do not wait for it, and it comes
begin;
select publish('tp', '"prepared"') > 0 as published;
prepare transaction 'tp1';
select publish('tp', '"later"') > 0 as published;
select payload from read('tp', 'g', 'A', 10);
commit prepared 'tp1';
select payload from read('tp', 'g', 'A', 10, wait => '20 s');

-- publish, prepared and rolled back
begin;
select publish('tp', '"never"') > 0 as published;
prepare transaction 'tp2';
select count(*) from read('tp', 'g', 'A', 10);
rollback prepared 'tp2';
select count(*) from read('tp', 'g', 'A', 10);

-- a publish in a rolled back savepoint of a prepared transaction
begin;
select publish('tp', '"kept"') > 0 as published;
savepoint s;
select publish('tp', '"undone"') > 0 as published;
rollback to s;
prepare transaction 'tp3';
commit prepared 'tp3';
select payload from read('tp', 'g', 'A', 10, wait => '20 s');

-- ack, prepared: nobody else settles or receives the message meanwhile
begin;
select ack('tp', 'g', :'r1');
prepare transaction 'tp4';
select ack('tp', 'g', :'r1') as held;
select nack('tp', 'g', array[:'r1']) as held;
commit prepared 'tp4';
select ack('tp', 'g', :'r1') as settled;
begin;
select ack('tp', 'g', :'r2');
prepare transaction 'tp5';
rollback prepared 'tp5';
select ack('tp', 'g', :'r2') as still_leased;

-- complete is ack and publish
begin;
select complete('tp', 'g', :'r3', 'tp', '"completed"') > 0 as completed;
prepare transaction 'tp6';
commit prepared 'tp6';
select payload from read('tp', 'g', 'A', 10, wait => '20 s');

-- whatever writes a due time is refused, and undone
select receipt as r from pending('tp', 'g') where payload::text = '"completed"' \gset
select publish('tp', '"fresh"') > 0 as published;
begin;
select payload from read('tp', 'g', 'A');
prepare transaction 'tp7';
begin;
select nack('tp', 'g', array[:'r']);
prepare transaction 'tp7';
begin;
select extend('tp', 'g', array[:'r'], '1 hour');
prepare transaction 'tp7';
begin;
select count(*) from claim('tp', 'g', 'B', ids => array[split_part(:'r', ':', 1)::bigint]);
prepare transaction 'tp7';
begin;
select drop_consumer('tp', 'g', 'A') > 0 as released;
prepare transaction 'tp7';
begin;
select reject('tp', 'g', array[:'r'], 'bad');
prepare transaction 'tp7';
select reject('tp', 'g', array[:'r'], 'bad');
begin;
select redrive('tp', 'g');
prepare transaction 'tp7';
select count(*) from dead_letters('tp', 'g');
select payload, delivery_count from read('tp', 'g', 'A');
begin;
select publish('tp', '"own"') > 0 as published;
select payload from read('tp', 'g', 'A');
prepare transaction 'tp7';
select count(*) from read('tp', 'g', 'A', 10);

-- a claim in a rolled back savepoint leaves nothing to refuse
select publish('tp', '"again"') > 0 as published;
begin;
savepoint s;
select payload from read('tp', 'g', 'A');
rollback to s;
prepare transaction 'tp8';
commit prepared 'tp8';
select payload, delivery_count from read('tp', 'g', 'A');
select count(*) from pg_prepared_xacts;

select drop_stream('tp');
