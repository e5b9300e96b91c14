#!/bin/sh
#
# server.sh: build the extension and run one private server for a script
#
# Sourced by scripts that .ci/enter runs: expects PG_CONFIG and HMS_WORK.

# Build the release library and install it into the private copy of PostgreSQL.
build_extension()
{
	make -s -j "$(nproc)" with_llvm=no all install >"$HMS_WORK/build.log" 2>&1 ||
		{ cat "$HMS_WORK/build.log"; return 1; }
}

# start_server NAME: a new cluster with the settings on standard input; sets PGHOST etc.
start_server()
{
	bindir=$("$PG_CONFIG" --bindir)
	server_data=$HMS_WORK/$1
	PGHOST=$(mktemp -d /tmp/hotmesh.XXXXXX)
	PGPORT=5432
	PGDATABASE=postgres
	PGUSER=postgres
	PSQL=$bindir/psql
	PATH=$bindir:$PATH
	export PGHOST PGPORT PGDATABASE PGUSER PSQL PATH
	trap stop_server EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	rm -rf "$server_data"
	initdb -D "$server_data" -U postgres -A trust -E UTF8 --no-sync >"$HMS_WORK/$1.initdb.log" 2>&1 ||
		{ cat "$HMS_WORK/$1.initdb.log"; return 1; }
	{
		echo "shared_preload_libraries = 'hotmesh_stream'"
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$PGHOST'"
		cat
	} >>"$server_data/postgresql.conf"
	pg_ctl -D "$server_data" -l "$HMS_WORK/$1.log" -w start >/dev/null ||
		{ tail -n 30 "$HMS_WORK/$1.log"; return 1; }
}

stop_server()
{
	[ ! -f "$server_data/postmaster.pid" ] || pg_ctl -D "$server_data" -m immediate -w stop >/dev/null
	rm -rf "$PGHOST"
}
