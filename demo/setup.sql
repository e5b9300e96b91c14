-- Tables of the application, the stream and its two groups.

create table flight_source (line_no integer generated always as identity, line json not null);
comment on table flight_source is 'the file, line by line: what the results are checked against';

create table flight_log (flight_date text, origin text, destination text);
comment on table flight_log is 'an ordinary table, written in the transactions that publish';

create table delay_by_origin (origin text primary key, flights bigint not null, delay bigint not null);
comment on table delay_by_origin is 'what group delays computes';

create table handled (id bigint primary key, delay integer not null);
comment on table handled is 'what group handling has done; id = message id';

create table finished (at timestamptz not null);
create table repaired (at timestamptz not null);
create table stalled (pid integer not null, holding integer not null);

select hotmesh_stream.create_stream('flights');
select hotmesh_stream.create_group('flights', 'delays');
select hotmesh_stream.create_group('flights', 'handling',
    ack_wait => '2s', max_deliver => 3, backoff => array['100ms', '200ms']::interval[]);

-- Publishes the file in batches of 40; each batch is one transaction together with
-- rows of an ordinary table.  Every tenth batch is first rolled back and then
-- published again: the rolled back rows must leave no trace.
create procedure publish_flights()
language plpgsql
as $$
declare
    batch json[];
    batch_no integer := 0;
begin
    for batch in
        select array_agg(line order by line_no) from flight_source group by (line_no - 1) / 40 order by min(line_no)
    loop
        batch_no := batch_no + 1;
        if batch_no % 10 = 0 then
            perform hotmesh_stream.publish_many('flights', batch);
            rollback;
        end if;
        insert into flight_log
        select f ->> 'date', f ->> 'origin', f ->> 'destination' from unnest(batch) as f;
        perform hotmesh_stream.publish_many('flights', batch);
        commit;
    end loop;
    insert into finished values (clock_timestamp());
end
$$;
