#!/usr/bin/env bash
#
# run: 2,000 real flights through a real server, checked exactly
#
# Called by "make demo" (.ci/enter demo) in a private copy of the tree.  README.md,
# section "The demo", explains each line that this prints.

set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=.ci/server.sh
. .ci/server.sh

: "${PG_CONFIG:?start it with make demo}"
demo=$PWD/demo
differences=0

sql()
{
	"$PSQL" -XAtq -v ON_ERROR_STOP=1 "$@"
}

table()
{
	"$PSQL" -Xq -v ON_ERROR_STOP=1 -P footer=off -c "$1"
}

# check FACT QUERY: QUERY must return no row
check()
{
	local rows
	rows=$(sql -c "$2")
	if [ -z "$rows" ]; then
		echo "  ok: $1"
	else
		printf '  DIFFERS: %s\n%s\n' "$1" "$rows"
		differences=$((differences + 1))
	fi
}

wait_until()
{
	local deadline=$((SECONDS + 60))
	until [ "$(sql -c "$1")" = t ]; do
		[ $SECONDS -lt $deadline ] || { echo "gave up waiting for: $1"; exit 1; }
		sleep 0.1
	done
}

build_extension
start_server demo.data <<'END'
max_connections = 30
END
echo "server: $(sql -c 'show server_version'), data directory $server_data"
sql -c 'set client_min_messages = warning; create extension hotmesh_stream cascade' \
	-f "$demo/setup.sql" >/dev/null
sql -c "\\copy flight_source (line) from '$demo/flights.jsonl' with (format csv, delimiter E'\\x01', quote E'\\x02')"
echo "stream flights: $(sql -c 'select count(*) from flight_source') flights to publish, groups delays and handling"

echo 'consume while publishing:'
for name in d1 d2; do "$demo/sum_delays.pl" $name & consumers+=($!); done
for name in h1 h2; do "$demo/handle_flights.pl" $name & consumers+=($!); done
"$demo/handle_flights.pl" doomed stall & doomed=$!
disown "$doomed"
sql -c 'call publish_flights()'
echo "  published $(sql -c 'select count(*) from flight_log') flights in transactions, the rolled back batches twice"

wait_until 'select exists (select from stalled)'
kill -9 "$(sql -c 'select pid from stalled')"
echo "  killed consumer doomed with SIGKILL while it held $(sql -c 'select holding from stalled') flights"
for pid in "${consumers[@]}"; do wait "$pid"; done

echo 'dead letters of group handling:'
sql -F ', ' -c "select count(*) || ' flights', reason, 'last error ' || max(last_error ->> 'reason'), 'after ' || max(delivery_count) || ' attempts'
	from hotmesh_stream.dead_letters('flights', 'handling', max_messages => 1000) group by reason" | sed 's/^/  /'
check 'the dead letters are the flights to DCA' "
	select line from (select line::text from flight_source where line ->> 'destination' = 'DCA') f
	full join (select payload::text as line from hotmesh_stream.dead_letters('flights', 'handling', max_messages => 1000)) d using (line)
	where f is null or d is null"

echo 'repair and redrive:'
sql -c 'insert into repaired values (clock_timestamp())'
echo "  redrove $(sql -c "select hotmesh_stream.redrive('flights', 'handling', max_messages => 1000)") dead letters"
"$demo/handle_flights.pl" h3

echo 'results against the file:'
check 'the ordinary table and the stream hold the same flights, and none of a rolled back batch' "
	select * from (select count(*) from flight_log) a (n), (select messages from hotmesh_stream.stream_info('flights')) b (n),
		(select count(*) from flight_source) c (n) where a.n <> c.n or b.n <> c.n"
check 'flights and delays per origin are exactly those of plain SQL over the file' "
	select * from delay_by_origin full join (select line ->> 'origin' as origin, count(*) as flights, sum((line ->> 'delay')::int) as delay
		from flight_source group by 1) plain using (origin)
	where delay_by_origin is distinct from row(plain.origin, plain.flights, plain.delay)::delay_by_origin"
check 'group handling handled every flight' "
	select * from (select count(*), sum(delay) from handled) h, (select count(*), sum((line ->> 'delay')::int) from flight_source) f
	where h is distinct from f"
check 'no dead letter is left' "select id from hotmesh_stream.dead_letters('flights', 'handling')"

echo 'stream_info:'
table "select stream, namespace, messages, bytes, first_id, last_id, groups from hotmesh_stream.stream_info('flights')" | sed 's/^/  /'
echo 'group_info:'
table "select consumer_group, lag, ready, leased, delayed, dead, redelivered, ack_floor, last_delivered_id from hotmesh_stream.group_info('flights')" | sed 's/^/  /'
echo 'stat_group:'
table "select consumer_group, delivered, redelivered, acked, nacked, expired, dead, redriven from hotmesh_stream.stat_group order by 1" | sed 's/^/  /'
echo 'latency of a blocking read:'
bench/latency.pl 200 | sed 's/^/  /'

if [ "$differences" -gt 0 ]; then
	echo "$differences results differ"
	exit 1
fi
echo OK
