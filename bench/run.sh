#!/usr/bin/env bash
#
# run [--quick] [SECTION...]: the benchmarks of bench/README.md
#
# Called by "make bench" (.ci/enter bench); options: make bench BENCH="--quick ratios".

set -euo pipefail

cd "$(dirname "$0")/.."
# shellcheck source=.ci/server.sh
. .ci/server.sh

: "${PG_CONFIG:?start it with make bench}"
build_extension
${CC:-cc} -O2 -I"$("$PG_CONFIG" --includedir)" -o "$HMS_WORK/drive" bench/drive.c -lpq
start_server bench.data <<'END'
max_connections = 500
shared_buffers = 1GB
max_wal_size = 8GB
checkpoint_timeout = 1h
autovacuum = off
jit = off
hotmesh_stream.maintenance_naptime = 1d
END
sql=("$PSQL" -XAtq -v ON_ERROR_STOP=1)
"${sql[@]}" -c 'set client_min_messages = warning; create extension hotmesh_stream cascade' -f bench/setup.sql
echo "PostgreSQL $("${sql[@]}" -c 'show server_version'), $(nproc) processors, $(date +%F)"

# The section hotmesh runs on node, all others in measure.pl.
options=()
sections=()
hotmesh=false
for argument; do
	case $argument in
		--*) options+=("$argument") ;;
		hotmesh) hotmesh=true ;;
		*) sections+=("$argument") ;;
	esac
done
if [ ${#sections[@]} -gt 0 ] || ! $hotmesh; then
	DRIVE=$HMS_WORK/drive SERVER_PID=$(head -n 1 "$server_data/postmaster.pid") \
		bench/measure.pl "${options[@]}" "${sections[@]}" &
	wait $!
fi
if $hotmesh || [ ${#sections[@]} -eq 0 ]; then
	npm ci --prefix test/hotmesh --cache "$HMS_CACHE/npm" --prefer-offline --no-audit --no-fund >/dev/null
	node --no-deprecation bench/hotmesh.js "${options[@]}" &
	wait $!
fi
