-- Publishing.

create function hotmesh_stream.publish(
    stream     text,
    payload    json,
    key        text        default null,
    headers    jsonb       default null,
    priority   integer     default 0,
    delay      interval    default null,
    deliver_at timestamptz default null
)
returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_publish';
comment on function hotmesh_stream.publish(text, json, text, jsonb, integer, interval, timestamptz) is
'publishes one message in the caller''s transaction and returns its id; the payload keeps its bytes (a jsonb or text value needs ::json); key (1 to 255 bytes) groups messages for purge_stream(); priority, from 0 to the stream''s max_priority, 9 first; delay or deliver_at, at most one of them, override the stream''s delay. Errors: HM002 unknown stream, 42501 no publish privilege, 54000 larger than max_message_bytes, 22004 null, 22023 bad argument';

create function hotmesh_stream.publish_bytes(
    stream       text,
    body         bytea,
    content_type text        default null,
    key          text        default null,
    headers      jsonb       default null,
    priority     integer     default 0,
    delay        interval    default null,
    deliver_at   timestamptz default null
)
returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_publish_bytes';
comment on function hotmesh_stream.publish_bytes(text, bytea, text, text, jsonb, integer, interval, timestamptz) is
'publishes one message whose body is bytes, with a content type of at most 255 bytes, and returns its id. Errors as publish()';

create function hotmesh_stream.publish_many(
    stream   text,
    payloads json[]
)
returns setof bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_publish_many';
comment on function hotmesh_stream.publish_many(text, json[]) is
'publishes up to 10000 payloads, all or none, and returns their ids in the order of the array: the fast path. Errors as publish(); 22023 for an empty array, 22004 for a null element';

create function hotmesh_stream.publish_batch(
    stream   text,
    messages json
)
returns table (ordinality integer, id bigint, duplicate boolean)
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_publish_batch';
comment on function hotmesh_stream.publish_batch(text, json) is
'publishes a JSON array of up to 10000 objects {"payload": any, "key": string, "headers": object, "priority": 0..9, "delay": interval text, "deliver_at": timestamp text}, all or none, and returns one row per element in order; duplicate is true when an earlier message was returned instead. An empty array publishes nothing. Errors as publish(), 22007 for what is no interval or time; each names the element that is not valid';

create function hotmesh_stream.complete(
    stream         text,
    consumer_group text,
    receipt        text,
    to_stream      text,
    payload        json,
    headers        jsonb default null
)
returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'hms_sql_complete';
comment on function hotmesh_stream.complete(text, text, text, text, json, jsonb) is
'acknowledges one delivery and publishes its result to to_stream in one step; returns the id of the result, or null when the receipt settles nothing (then nothing is published). Needs consume on stream and publish on to_stream. Errors: HM001 malformed receipt, HM002 unknown stream, HM003 unknown group, 0A000 in a SERIALIZABLE transaction, and those of publish()';
