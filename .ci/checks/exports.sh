#!/bin/sh
#
# exports LIBRARY: the release library exports only what exports.txt allows, calls
# no symbol of ours that it lacks, and holds no debugging code

library=$1
[ -f "$library" ] || { echo "usage: exports.sh LIBRARY"; exit 2; }

extra=$(nm -D --defined-only "$library" | awk '{ print $3 }' |
	grep -vE '^(Pg_magic_func|_PG_init|pg_finfo_hms_sql_[a-z0-9_]+|hms_sql_[a-z0-9_]+|hms_[a-z0-9_]+_main)$')
missing=$(nm -D --undefined-only "$library" | awk '$2 ~ /^hms_/ { print $2 }')
debug=$(nm "$library" | awk '{ print $NF }' | grep -E '^(pg_finfo_)?hms_(sql_)?debug_')

[ -z "$extra" ] || printf 'exported, but not in exports.txt:\n%s\n' "$extra"
[ -z "$missing" ] || printf 'used, but defined nowhere:\n%s\n' "$missing"
[ -z "$debug" ] || printf 'debugging code in the release library:\n%s\n' "$debug"
[ -z "$extra$missing$debug" ]
