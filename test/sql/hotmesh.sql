-- HotMesh's functions: publish, consume, settle, retry, give up, look, configure.
set search_path = hotmesh_stream, public;
\pset format unaligned
\pset tuples_only on
\set w '\'hmsh:app:x:t\''
\set e '\'hmsh:app:x:\''

create function envelope(guid text, jid text default null, type text default null, policies json default null, status text default null, code int default null)
returns json language sql as
$$ select json_strip_nulls(json_build_object('metadata', json_build_object('guid', guid, 'aid', 'a1', 'jid', jid), 'type', type,
                                             'data', json_build_object(), 'policies', policies, 'status', status, 'code', code)) $$;

-- publish creates what it names, keeps every byte, and returns ids in order
select count(*), min(id::int) < max(id::int) from hotmesh_publish(:w, '[{"metadata": {"guid":"g1","aid":"a","jid":"j1"} ,"data":{"n":9007199254740993,"e":1e400,"u":"\u0000","d":1,"d":2}}, {"metadata":{"guid":"g2","aid":"a"},"data":{}}]');
select data from hotmesh_consume(:w, 'WORKER', 'c', '{"batchSize": 10}');
select consumer_group.name, max_deliver, ack_wait, error_stream from consumer_group join stream using (stream_id) where stream.name = :w;
select * from hotmesh_publish(:w, '[]');
-- all or none, also inside a multi-statement query, with untyped literals
select id from hotmesh_publish(:w, '[{"metadata":{"guid":"g3","aid":"a"},"data":{}},{"metadata":{"guid":"g4","aid":"a","try":"1"},"data":{}}]');
begin\; select count(*) from hotmesh_publish('hmsh:app:x:u', E'[{"metadata":{"guid":"g","aid":"a"},"data":{"t":"it''s 100% $1 \\\\u0041"}}]')\; commit;
select data from hotmesh_consume('hmsh:app:x:u', 'WORKER', 'c');
select hotmesh_depth(:w);

-- the metadata of a message
select metadata ->> 'stream', metadata ->> 'groupName', metadata ->> 'consumerName', metadata ->> 'retryCount',
       metadata ->> 'originalMessageId' = id, (metadata ->> 'deliveryTime')::bigint >= (metadata ->> 'timestamp')::bigint
from hotmesh_reclaim(:w, 'WORKER', 'd', '{"minIdleTime": 0, "limit": 1}');
select reclaimed ->> 0 = id, reclaimed -> 1 ->> 0, reclaimed -> 1 ->> 1 = data from hotmesh_reclaim(:w, 'WORKER', 'd', '{"minIdleTime": 0}');

-- acks count what they settle: by id, by receipt, once
select hotmesh_ack(:w, 'WORKER', json_agg(json_build_object('id', id::text, 'receipt', receipt))),
       hotmesh_ack(:w, 'WORKER', json_agg(id::text)) from pending(:w, 'WORKER');
select hotmesh_ack(:w, 'WORKER', '["999999", {"id": "1", "receipt": "1:0123456789abcdef"}]');
select hotmesh_ack(:w, 'WORKER', '[{"id": "1", "receipt": "2:0123456789abcdef"}]');
select hotmesh_ack(:w, 'WORKER', '[7]');
select hotmesh_ack(:w, 'WORKER', '[{"id": "1", "ticket": "x"}]');

-- the order of types; one read in eight begins at the other end
select count(*) from (select hotmesh_publish('hmsh:app:x:p', json_build_array(envelope(t, type => t)))
                      from unnest(array['await', 'worker', 'response', 'result', 'transition', 'signal', 'interrupt']) t) p;
select string_agg((select data::json ->> 'type' from hotmesh_consume('hmsh:app:x:p', 'WORKER', 'c' || i)), ' ' order by i) from generate_series(1, 7) i;
select count(*) from (select hotmesh_publish('hmsh:app:x:p', json_build_array(envelope(t, type => t))) from unnest(array['await', 'interrupt']) t) p;
select data::json ->> 'type' from hotmesh_consume('hmsh:app:x:p', 'WORKER', 'c');

-- complete: an answer and its ack are one
select count(*) from hotmesh_publish(:w, json_build_array(envelope('ok', 'j2')));
select receipt from hotmesh_consume(:w, 'WORKER', 'c') \gset
select outcome, id is not null from hotmesh_complete(:w, 'WORKER', json_build_object('id', split_part(:'receipt', ':', 1), 'receipt', :'receipt'), :e, envelope('r', 'j2', 'response'));
select outcome, id from hotmesh_complete(:w, 'WORKER', to_json(:'receipt'::text), :e, envelope('r', 'j2', 'response'));
select data from hotmesh_consume(:e, 'ENGINE', 'e', '{"autoAck": true, "batchSize": 10}');

-- policies.retry: exactly n retries, 10, 100, 1000, then 10000 ms; the same guid; try counts retries
create function fail(stream text, code int, n int, out outcome text, out pause interval, out try text) language plpgsql as
$$
declare
    m record;
    due timestamptz;
begin
    perform set_config('hotmesh_stream.debug_clock_offset', (n * 20000)::text, false);
    select * into strict m from hotmesh_stream.hotmesh_consume(stream, 'WORKER', 'c');
    try := coalesce(m.data::json -> 'metadata' ->> 'try', '0');
    select c.outcome into outcome from hotmesh_stream.hotmesh_complete(stream, 'WORKER', to_json(m.receipt), 'hmsh:app:x:',
        envelope('answer', 'j3', 'response', null, 'error', code)) c;
    select due_at into due from hotmesh_stream.delivery d where d.id = m.id::bigint;
    pause := date_trunc('milliseconds', due - (m.metadata ->> 'deliveryTime')::bigint * interval '1 ms' - 'epoch'::timestamptz);
    pause := case when pause > '9 s' then '10 s' when pause > '0.9 s' then '1 s' when pause > '90 ms' then '100 ms' when pause is not null then '10 ms' end;
end
$$;
select count(*) from hotmesh_publish('hmsh:app:x:r5', json_build_array(envelope('five', 'j3', null, '{"retry": {"500": [5, "x"], "429": [1]}}')));
select f.* from generate_series(1, 6) i, fail('hmsh:app:x:r5', 500, i) f;
reset hotmesh_stream.debug_clock_offset;
select hotmesh_depth('hmsh:app:x:r5');
select data::json -> 'metadata' ->> 'guid', data::json ->> 'status', data::json ->> 'code' from hotmesh_consume(:e, 'ENGINE', 'e', '{"autoAck": true}');
select count(*) from hotmesh_publish('hmsh:app:x:r1', json_build_array(envelope('one', 'j3', null, '{"retry": {"429": [1]}}')));
select f.* from fail('hmsh:app:x:r1', 500, 0) f;
select count(*) from hotmesh_consume(:e, 'ENGINE', 'e', '{"autoAck": true}');

-- a retry policy: attempts in all, whatever the code; intervals as text
select count(*) from hotmesh_publish('hmsh:app:x:rp', json_build_array(envelope('policy', 'j3')), '{"retry": {"maximumAttempts": 3, "backoffCoefficient": 2, "initialInterval": 0.5, "maximumInterval": "5 minutes"}}');
select f.* from generate_series(1, 3) i, fail('hmsh:app:x:rp', 500 + i, i) f;
reset hotmesh_stream.debug_clock_offset;
select count(*) from hotmesh_publish(:w, json_build_array(envelope('x')), '{"retry": {"maximumInterval": "soon"}}');
select count(*) from hotmesh_consume(:e, 'ENGINE', 'e', '{"autoAck": true, "batchSize": 10}');

-- three reclaims, then a dead letter and an answer with code 999 without topic
select count(*) from hotmesh_consume(:e, 'ENGINE', 'e', '{"autoAck": true, "batchSize": 10}');
select count(*) from hotmesh_publish('hmsh:app:x:dead', '[{"metadata":{"guid":"poison","aid":"a","jid":"j4","topic":"dead","dad":",0"},"data":{}}]');
do $$
begin
    for i in 1 .. 5 loop
        perform * from hotmesh_stream.hotmesh_consume('hmsh:app:x:dead', 'WORKER', 'c' || i, '{"reservationTimeout": 0.001}');
        perform set_config('hotmesh_stream.debug_clock_offset', (i * 1000)::text, false);
    end loop;
end $$;
reset hotmesh_stream.debug_clock_offset;
select id is not null, delivery_count, reason from dead_letters('hmsh:app:x:dead', 'WORKER');
select regexp_replace(data, '"guid":"[0-9a-f-]+"', '"guid":"new"') from hotmesh_consume(:e, 'ENGINE', 'e', '{"autoAck": true, "batchSize": 10}');
-- an answer with code 999 that nobody can handle is not answered again
select count(*) from hotmesh_publish(:e, json_build_array(envelope('unacked', 'j4', 'response', null, 'error', 999)));
do $$
begin
    for i in 1 .. 5 loop
        perform * from hotmesh_stream.hotmesh_consume('hmsh:app:x:', 'ENGINE', 'c' || i, '{"reservationTimeout": 0.001}');
        perform set_config('hotmesh_stream.debug_clock_offset', (i * 1000)::text, false);
    end loop;
end $$;
reset hotmesh_stream.debug_clock_offset;
select hotmesh_depth(:e), count(*) from dead_letters(:e, 'ENGINE');

-- dead_letter, extend, expire_job
select count(*) from hotmesh_publish('hmsh:app:x:x', json_build_array(envelope('x1', 'j5'), envelope('x2', 'j6'), envelope('x3', 'j5')));
select id, receipt from hotmesh_consume('hmsh:app:x:x', 'WORKER', 'c') \gset
select hotmesh_extend('hmsh:app:x:x', 'WORKER', to_json(:'id'::text), 'other', 60), hotmesh_extend('hmsh:app:x:x', 'WORKER', to_json(:'id'::text), 'c', 60);
select hotmesh_dead_letter('hmsh:app:x:x', 'WORKER', json_build_array(:'receipt'::text), 'cannot be read'), hotmesh_dead_letter('hmsh:app:x:x', 'WORKER', json_build_array(:'receipt'::text));
select reason from dead_letters('hmsh:app:x:x', 'WORKER');
begin;
select hotmesh_expire_job('hmsh:app:x:', 'j5');
rollback;
select hotmesh_expire_job('hmsh:app:x:', 'j5'), hotmesh_expire_job('hmsh:app:x:', 'j5'), hotmesh_expire_job('hmsh:other:', 'j6');
select data::json -> 'metadata' ->> 'guid' from hotmesh_consume('hmsh:app:x:x', 'WORKER', 'c', '{"batchSize": 10}');

-- throttle and readonly; a pause lets go at once
select hotmesh_register_consumer('{"namespace":"hmsh","appId":"app","guid":"router-1","role":"worker","topic":"th","throttle":0,"readonly":true,"reclaimDelay":1000,"reclaimCount":2}');
select hotmesh_register_consumer('{"namespace":"hmsh","appId":"app","guid":"router-2","role":"worker","topic":"th","throttle":0}');
select consumer, role, topic, readonly from consumer_info('hmsh:app:x:th', 'WORKER');
select hotmesh_register_consumer('{"namespace":"hmsh","appId":"app","guid":"g","role":"worker","throttle":0,"reclaimCount":4}');
select count(*) from hotmesh_publish('hmsh:app:x:th', json_build_array(envelope('t1'), envelope('t2'), envelope('t3')));
select count(*) from hotmesh_consume('hmsh:app:x:th', 'WORKER', 'router-1');
select hotmesh_set_throttle(null, null, -1);
select count(*) from hotmesh_consume('hmsh:app:x:th', 'WORKER', 'router-2', '{"wait": 20}');
select hotmesh_set_throttle('hmsh:app:x:th', 'WORKER', 0);
select count(*) from hotmesh_consume('hmsh:app:x:th', 'WORKER', 'router-2');
select hotmesh_set_throttle(null, null, 0), hotmesh_set_throttle('hmsh:app:x:th', null, 3600000);
select count(*) from hotmesh_consume('hmsh:app:x:th', 'WORKER', 'router-2');
select count(*) from hotmesh_consume('hmsh:app:x:th', 'WORKER', 'router-3');
select hotmesh_set_throttle(null, 'WORKER', 1);
select hotmesh_set_throttle('hmsh:app:x:th', null, -2);

-- figures: every field, and one row per position
select count(*) from hotmesh_publish('hmsh:app:x:s', json_build_array(envelope('s1'), envelope('s2'), envelope('s3'), envelope('s4', null, null, '{"retry": {"500": [1]}}')));
select hotmesh_ack('hmsh:app:x:s', 'WORKER', json_build_array(receipt)) from hotmesh_consume('hmsh:app:x:s', 'WORKER', 'c');
select hotmesh_dead_letter('hmsh:app:x:s', 'WORKER', json_build_array(receipt)) from hotmesh_consume('hmsh:app:x:s', 'WORKER', 'c');
select count(*) from hotmesh_consume('hmsh:app:x:s', 'WORKER', 'c');
select outcome from hotmesh_consume('hmsh:app:x:s', 'WORKER', 'd') m, hotmesh_complete('hmsh:app:x:s', 'WORKER', to_json(m.receipt), :e,
  '{"metadata":{"guid":"r","aid":"a"},"status":"error","code":500,"data":{"message":"out of paper","code":500}}');
select s ->> 'messageCount', s ->> 'consumerCount', (s ->> 'bytesInMemory')::int > 100, s ->> 'pendingMessages', s ->> 'deadLetterQueueMessageCount',
       s ->> 'lastErrorMessage', (s ->> 'oldestMessageTimestamp')::bigint between 1.7e12 and 1e13, (s ->> 'lastErrorTimestamp')::bigint between 1.7e12 and 1e13,
       s ->> 'averageProcessingTime' is not null
from hotmesh_stats('hmsh:app:x:s') s;
select * from hotmesh_stats('hmsh:app:x:none');
select * from hotmesh_depths('["hmsh:app:x:s", "hmsh:app:x:none", {"stream": "hmsh:app:x:s", "app_id": "app"}]');
select * from hotmesh_depths('[1]');

-- trim keeps the newest of what is not settled
select count(*) from hotmesh_publish('hmsh:app:x:tr', (select json_agg(envelope('m' || i)) from generate_series(1, 6) i));
select hotmesh_ack('hmsh:app:x:tr', 'WORKER', json_agg(id)) from hotmesh_consume('hmsh:app:x:tr', 'WORKER', 'c', '{"batchSize": 2}');
select hotmesh_trim('hmsh:app:x:tr', '{"maxLen": 3}'), hotmesh_depth('hmsh:app:x:tr');
select data::json -> 'metadata' ->> 'guid' from hotmesh_consume('hmsh:app:x:tr', 'WORKER', 'c', '{"batchSize": 10}');
select hotmesh_trim('hmsh:app:x:tr', '{"maxAge": 3600000}'), hotmesh_trim('hmsh:app:x:none', '{"maxLen": 1}');
select hotmesh_trim('hmsh:app:x:tr', '{}');

-- a group that is dropped takes its messages along
select hotmesh_drop_group('hmsh:app:x:tr', 'WORKER'), hotmesh_drop_group('hmsh:app:x:tr', 'WORKER'), hotmesh_drop_group('hmsh:app:x:none', 'WORKER');
select count(*) from hotmesh_consume('hmsh:app:x:tr', 'WORKER', 'c');

-- configure: done, or refused by name
select hotmesh_configure(:w, 'WORKER', '{"provider": "postgres", "namespace": "hmsh", "appId": "app", "maxRetries": 2, "batchSize": 5, "timeout": 10000, "redis": {"blockingTimeout": 0}, "nats": {"jetstream": true, "durableName": "WORKER", "deliverPolicy": "all", "ackWait": 10000}, "sqs": {"visibilityTimeout": 10, "waitTimeSeconds": 0}, "postgres": {"partitionInterval": "daily"}}');
select max_deliver, ack_wait, default_batch, default_wait from consumer_group join stream using (stream_id) where stream.name = :w;
create function refused(config json) returns text language plpgsql as
$$ begin perform hotmesh_stream.hotmesh_configure('hmsh:app:x:t', 'WORKER', config); return 'done'; exception when others then return sqlstate || ' ' || sqlerrm; end $$;
select refused(c::json) from unnest(array[
    '{"provider": "kafka"}', '{"namespace": "other"}', '{"appId": "other"}', '{"timeout": 1, "nats": {"ackWait": 2}}', '{"timeout": 0}',
    '{"postgres": {"pollInterval": 1}}', '{"postgres": {"vacuumInterval": 1}}', '{"postgres": {"cleanupInterval": 1}}', '{"postgres": {"partitionInterval": "weekly"}}',
    '{"nats": {"jetstream": false}}', '{"nats": {"durableName": "other"}}', '{"nats": {"deliverPolicy": "byStartTime"}}',
    '{"sqs": {"deadLetterQueue": "q"}}', '{"sqs": {"dlqArn": "q"}}', '{"sqs": {"messageRetentionPeriod": 60}}', '{"redis": {"claim": 1}}', '{"retries": 1}', '[]']) c;

-- generic: trim and purge
select create_stream('tp'), create_group('tp', 'g');
select count(*) from (select publish('tp', to_json(i), key => 'k' || i % 2) from generate_series(1, 10) i) p;
select purge_stream('tp', 'k0', keep => 1), purge_stream('tp', 'none');
select string_agg(payload::text, ' ' order by id) from messages('tp');
select trim_stream('tp', max_len => 4);
select string_agg(payload::text, ' ' order by id) from read('tp', 'g', 'c', 2);
select trim_stream('tp', before_id => (select max(id) from messages('tp')), only_settled => true), trim_stream('tp', max_age => '1 hour');
select trim_stream('tp');
select purge_stream('tp'), (select count(*) from pending('tp', 'g'));

select hotmesh_drop_stream('hmsh:app:*'), hotmesh_drop_stream('hmsh:app:*'), drop_stream('tp');
drop function envelope, fail, refused;
