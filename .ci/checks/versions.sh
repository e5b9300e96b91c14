#!/bin/sh
#
# versions: PG_VERSION_NUM in the compat header only; the control file's version is
# the newest of CHANGELOG.md; every SQL-callable symbol of the install SQL exists in C

cd "$(dirname "$0")/../.." || exit 2

if grep -n 'PG_VERSION_NUM' src/*.[ch] src/*/*.[ch] | grep -v '^src/hms_compat\.h:'; then
	echo 'PG_VERSION_NUM belongs into src/hms_compat.h'
	failed=1
fi

control=$(sed -n "s/^default_version *= *'\(.*\)'/\1/p" hotmesh_stream.control)
newest=$(sed -n 's/^## \([0-9][0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)
if [ -z "$control" ] || [ "$control" != "$newest" ]; then
	echo "hotmesh_stream.control says version \"$control\", CHANGELOG.md \"$newest\""
	failed=1
fi

called=$(sed -n "s/.*'MODULE_PATHNAME', *'\(hms_sql_[a-z0-9_]*\)'.*/\1/p" sql/[0-9][0-9]_*.sql | sort -u)
defined=$(sed -n 's/^PG_FUNCTION_INFO_V1(\(hms_sql_[a-z0-9_]*\)).*/\1/p' src/*/*.c | sort -u)
for symbol in $called; do
	echo "$defined" | grep -qx "$symbol" || { echo "$symbol is in sql/, not in src/"; failed=1; }
done
for symbol in $defined; do
	case $symbol in hms_sql_debug_*) continue ;; esac
	echo "$called" | grep -qx "$symbol" || { echo "$symbol is in src/, not in sql/"; failed=1; }
done

exit "${failed:-0}"
