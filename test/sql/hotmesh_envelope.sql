-- The envelope of HotMesh: what is read of it, what is refused and how, and what is
-- written.  m() makes a message of further metadata and further keys.
\pset format unaligned
\pset tuples_only on
\set ECHO none
\getenv abs_srcdir PG_ABS_SRCDIR
\set prelude :abs_srcdir '/lib/prelude.sql'
\i :prelude
create schema hotmesh_envelope;
set search_path = hotmesh_envelope, public;

create function stream_data(message json, lenient boolean) returns text
language c as '$libdir/hotmesh_stream', 'hms_sql_debug_stream_data';
create function with_try(message json, try integer) returns text
language c as '$libdir/hotmesh_stream', 'hms_sql_debug_with_try';
create function stream_error(message json, guid text, code integer, error text) returns text
language c as '$libdir/hotmesh_stream', 'hms_sql_debug_stream_error';
create function retry_delays(message json, tries integer) returns text
language c as '$libdir/hotmesh_stream', 'hms_sql_debug_retry_delays';

create function m(metadata text, message text default '"data":{}') returns json language sql
return ('{"metadata":{' || concat_ws(',', '"guid":"g","aid":"a"', metadata) || '}' || ',' || message || '}')::json;
create function outcome(message json, lenient boolean default false) returns text language plpgsql as $$
begin
	return stream_data(message, lenient);
exception when others then
	return sqlstate || ' ' || sqlerrm;
end $$;

-- everything there is
select outcome(m('"topic":"t","jid":"j","gid":"i","dad":",0","trc":"x","spn":"y","wfn":"w","try":2,"await":false',
	'"data":{"a":1},"type":"response","status":"error","code":500,"stack":"at","policies":{"retry":{"500":[3],"404":[9,"x"],"1":[0]}},
	"_streamRetryConfig":{"maximumAttempts":5,"backoffCoefficient":2.5,"maximumInterval":"5 minutes","initialInterval":0.25},
	"_visibilityDelayMs":500,"_retryAttempt":4'));
select outcome('{"metadata":{"guid":"g","aid":"a"}}');
select outcome(' { "m\u0065tadata" :	{ "guid" : "\u00e9\ud83d\ude00\"\\u0000" , "a\u0069d" : "" } , "data" : { } } ');
select outcome(m(null, '"type":"' || type || '"')) from unnest(array['timehook', 'webhook', 'await', 'result', 'worker',
	'response', 'transition', 'signal', 'interrupt']) type;
select outcome(m(null, '"status":"' || status || '"')) from unnest(array['success', 'error', 'pending']) status;

-- keys that are unknown, missing, or there twice
select outcome(message::json) from unnest(array['[]', '"x"', 'null', '{}', '{"metadata":[]}', '{"metadata":{"aid":"a"}}', '{"metadata":{"guid":"g"}}']) message;
select outcome(message) from unnest(array[
	m('"foo":1'), m('"Try":1'), m('"f\u00f6o":1'), m(null, '"Data":{}'), m(null, '"policies":{"x":1}'), m(null, '"_streamRetryConfig":{"x":1}'), m('"' || repeat('x', 100) || '":1'),
	m(null, '"data":{},"data":{}'), m(null, '"data":{},"da\u0074a":{}'), m('"gu\u0069d":"h"'), m(null, '"policies":{"retry":{"500":[1],"5\u00300":[1]}}')]) message;

-- values of the wrong type
select outcome(m(format('"%s":%s', key, value))) from unnest(array['topic', 'jid', 'gid', 'dad', 'trc', 'spn', 'wfn']) key, unnest(array['1', 'null']) value
order by key, value;
select outcome(m(format('"try":%s', value))) from unnest(array['"1"', '1.5', '-1', '2147483648', '1e400', 'true', 'null', '2.0']) value;
select outcome(m(format('"await":%s', value))) from unnest(array['"true"', '0', 'null', 'true']) value;
select outcome(m(null, format('"%s":%s', key, value)))
from (values ('data', '[]'), ('data', '"{}"'), ('data', 'null'), ('type', '1'), ('type', '"Webhook"'), ('type', '""'), ('status', '"ok"'), ('status', 'null'),
	('code', '"500"'), ('code', '0'), ('code', '1000'), ('code', '200.5'), ('code', 'null'), ('stack', '[]'),
	('policies', '[]'), ('policies', '{"retry":[]}'), ('policies', '{"retry":{"500":2}}'), ('policies', '{"retry":{"500":[]}}'), ('policies', '{"retry":{"500":["2"]}}'),
	('policies', '{"retry":{"500":[1.5]}}'), ('policies', '{"retry":{"500":[-1]}}'), ('policies', '{"retry":{"500":[2,"y"]}}'), ('policies', '{"retry":{"500":[2,"x",1]}}'),
	('policies', '{"retry":{"abc":[2]}}'), ('policies', '{"retry":{"0500":[2]}}'), ('policies', '{"retry":{"1000":[2]}}'), ('policies', '{"retry":{"":[2]}}'),
	('_streamRetryConfig', '1'), ('_streamRetryConfig', '{"maximumAttempts":-1}'), ('_streamRetryConfig', '{"backoffCoefficient":0}'), ('_streamRetryConfig', '{"backoffCoefficient":1e400}'),
	('_streamRetryConfig', '{"maximumInterval":-1}'), ('_streamRetryConfig', '{"maximumInterval":"soon"}'), ('_streamRetryConfig', '{"maximumInterval":"1 month"}'),
	('_streamRetryConfig', '{"initialInterval":true}'), ('_visibilityDelayMs', '-1'), ('_visibilityDelayMs', '1e300'), ('_retryAttempt', '"1"')) wrong (key, value);

-- escapes that are no characters, only where they are read
select outcome(m(metadata, message)) from (values ('"topic":"\ud800"', '"data":{}'), ('"topic":"\udc00\ud800"', '"data":{}'), ('"topic":"\u0000"', '"data":{}'), ('"\u0000":1', '"data":{}'),
	('"\ud800":1', '"data":{}'), (null, '"type":"\ud800"'), (null, '"stack":"\u0000"'), (null, '"data":{"\ud800":"\u0000","\ud800":1e400}')) escapes (metadata, message);

-- what the client writes beyond its types is read leniently
select outcome(m(metadata, message), true)
from (values ('"foo":1', '"foo":1'), ('"jid":12.5', '"data":[]'), ('"topic":null,"trc":null', '"data":null,"status":null,"code":null,"stack":null,"policies":null,"type":null'),
	(null, '"code":"ENOENT"'), (null, '"code":"500"'), (null, '"code":1000'), (null, '"stack":{}'), (null, '"policies":{"retry":{"abc":[1],"500":2,"404":[1]}}'),
	('"try":"1"', '"data":{}'), (null, '"type":"other"'), (null, '"data":1,"data":1')) lenient (metadata, message);

-- data may be large, and deeper than any parser; so may what is refused
select outcome(m(null, '"data":{"a":"' || repeat('\\\"', 300000) || '"}'));
select outcome(m(null, '"data":{"a":' || repeat('[', 5000) || repeat(']', 5000) || '}'));
select outcome(m(null, '"code":' || repeat('[', 5000) || repeat(']', 5000)));

-- durations
select split_part(outcome(m(null, format('"_streamRetryConfig":{"maximumInterval":%s}', value))), ' ', 4)
from unnest(array['0', '120', '0.5', '"120s"', '"2m"', '"5 minutes"', '"PT1H"', '"10"', '34560000']) value;

-- pauses: by code always the four, by policy up to its maximum, without overflow
select retry_delays(m(null, '"_streamRetryConfig":' || policy), tries)
from unnest(array['{}', '{"backoffCoefficient":2,"initialInterval":3,"maximumInterval":"1h"}', '{"initialInterval":0}', '{"backoffCoefficient":0.5}']) policy,
	unnest(array[0, 1, 2, 3, 4, 2147483647]) tries
order by policy, tries;

-- the try count is set and nothing else is touched
select with_try(message::json, 3) from unnest(array['{"metadata":{}}', ' { "metadata" : { } , "data":{"try":1}}', '{"data":{"metadata":{"try":1}},"metadata":{"a":"}","b":[{"try":1}] } }',
	'{"metadata":{"try":2,"guid":"g"},"x":"\u0000"}', '{"metadata":{"guid":"g", "tr\u0079" : 1e0 }}']) message;
select with_try('{"data":{}}', 3);
select with_try('{"metadata":[]}', 3);
select with_try('[]', 3);

-- the answer to a message that failed for good
select stream_error(m('"topic":"t","jid":"j","gid":"i","dad":",0","trc":"x","spn":"y","wfn":"w","try":2,"await":false'), 'new', 999, E'it said "no"\n\u00e9');
select stream_error(m('"jid":7'), 'new', 500, '');
