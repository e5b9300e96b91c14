-- RouterConfig and StreamConfig of HotMesh: every option is read, every other thing refused.
\pset format unaligned
\pset tuples_only on
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
create schema hotmesh_config;
set search_path = hotmesh_config, public;

create function router_config(config json) returns text
language c as '$libdir/hotmesh_stream', 'hms_sql_debug_router_config';
create function stream_config(config json) returns text
language c as '$libdir/hotmesh_stream', 'hms_sql_debug_stream_config';
create function outcome(config json, router boolean) returns text language plpgsql as $$
begin
	return case when router then router_config(config) else stream_config(config) end;
exception when others then
	return sqlstate || ' ' || sqlerrm;
end $$;

-- router
select outcome(('{"namespace":"n","appId":"a","guid":"g","role":"worker","throttle":0' || more || '}')::json, true)
from unnest(array['', ',"topic":"t","reclaimDelay":60000,"reclaimCount":3,"readonly":true', ',"reclaimCount":0,"readonly":false',
	',"reclaimCount":4', ',"reclaimCount":-1', ',"reclaimCount":"3"', ',"reclaimDelay":-1', ',"readonly":1', ',"topic":""', ',"topic":null', ',"foo":1', ',"gu\u0069d":"h"']) more;
select outcome(('{"namespace":"n","appId":"a","guid":"g","role":' || role || ',"throttle":' || throttle || '}')::json, true)
from (values ('"engine"', '-1'), ('"system"', '2147483647'), ('"boss"', '0'), ('"engine"', '-2'), ('"engine"', '2147483648'), ('"engine"', '0.5'), ('"engine"', '"0"')) router (role, throttle);
select outcome(config::json, true) from unnest(array['[]', '{}', '{"namespace":"n"}', '{"namespace":"n","appId":"a","guid":"g","role":"worker"}',
	'{"namespace":"' || repeat('x', 256) || '"}', '{"appId":"\ud800"}']) config;

-- stream
select outcome(config::json, false) from unnest(array['{}',
	'{"provider":"redis","namespace":"n","appId":"a","maxRetries":0,"batchSize":10000,"timeout":30000,"redis":{"claimTimeout":1,"blockingTimeout":2,"minIdleTime":3}}',
	'{"provider":"ioredis","postgres":{"pollInterval":1,"vacuumInterval":2,"partitionInterval":"daily","cleanupInterval":3}}',
	'{"provider":"nats","nats":{"jetstream":false,"durableName":"d","deliverPolicy":"all","ackWait":30000}}',
	'{"provider":"sqs","sqs":{"deadLetterQueue":"q","visibilityTimeout":43200,"waitTimeSeconds":20,"messageRetentionPeriod":1209600,"dlqArn":"arn:aws:sqs:eu-west-1:1:q"}}',
	'{"provider":"postgres","redis":{},"postgres":{},"nats":{},"sqs":{}}']) config;
select outcome(('{"nats":{"deliverPolicy":"' || policy || '"}}')::json, false) from unnest(array['last', 'new', 'byStartSequence', 'byStartTime', 'ALL']) policy;
select outcome(('{"postgres":{"partitionInterval":"' || partition || '"}}')::json, false) from unnest(array['weekly', 'monthly', 'hourly']) partition;
select outcome(('{"' || provider || '":{"foo":1}}')::json, false) from unnest(array['redis', 'postgres', 'nats', 'sqs', 'ioredis']) provider;
select outcome(config::json, false) from unnest(array['[]', '{"provider":"kafka"}', '{"provider":1}', '{"batchSize":0}', '{"batchSize":10001}', '{"maxRetries":-1}', '{"maxRetries":2147483647}',
	'{"timeout":-1}', '{"timeout":1e300}', '{"timeout":null}', '{"redis":[]}', '{"redis":{"claimTimeout":"1"}}', '{"nats":{"jetstream":"true"}}', '{"nats":{"ackWait":1,"ackWait":1}}',
	'{"sqs":{"visibilityTimeout":43201}}', '{"sqs":{"waitTimeSeconds":21}}', '{"sqs":{"messageRetentionPeriod":59}}', '{"sqs":{"messageRetentionPeriod":1209601}}', '{"sqs":{"dlqArn":""}}']) config;
