#!/bin/sh
#
# sizes: at most 600 lines a .c or install SQL file, 200 a header, 120 a function

cd "$(dirname "$0")/../.." || exit 2

awk '
FNR == 1 { check_file(); file = FILENAME; start = 0; name = "" }
{ lines = FNR }
/^[A-Za-z_].*\(/ { name = $0; sub(/\(.*/, "", name) }
/^\{[ \t]*$/ { start = FNR }
/^\}[ \t]*$/ && start {
	if (FNR - start - 1 > 120) {
		print FILENAME ":" start ": function " name " has " FNR - start - 1 " lines, limit 120"
		bad = 1
	}
	start = 0
}
END { check_file(); exit bad }
function check_file(    limit) {
	limit = (file ~ /\.h$/) ? 200 : 600
	if (lines > limit) { print file ": " lines " lines, limit " limit; bad = 1 }
}
' src/*.[ch] src/*/*.[ch] sql/[0-9][0-9]_*.sql
