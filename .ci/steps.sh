#!/bin/sh
#
# steps.sh: count what passed and failed, across scripts that call each other
#
# HMS_RESULTS names the file of counts; the script that finds it unset owns it and
# prints the sum.

if [ -z "${HMS_RESULTS:-}" ]; then
	HMS_RESULTS=$(mktemp)
	export HMS_RESULTS
	hms_owns_results=true
	trap 'rm -f "$HMS_RESULTS"' EXIT
else
	hms_owns_results=false
fi

# count PASSED FAILED
count()
{
	echo "$1 $2" >>"$HMS_RESULTS"
}

# step NAME COMMAND...: one check; its output is shown when it fails
step()
{
	name=$1
	shift
	if output=$("$@" 2>&1 </dev/null); then
		echo "ok - $name"
		count 1 0
	else
		printf 'not ok - %s\n%s\n' "$name" "$output"
		count 0 1
		return 1
	fi
}

# summary: print the sum where it belongs; status 1 when anything failed or nothing ran
summary()
{
	$hms_owns_results && awk '{ p += $1; f += $2 } END { print p + 0 " passed, " f + 0 " failed" }' "$HMS_RESULTS"
	awk '{ p += $1; f += $2 } END { exit f > 0 || p == 0 }' "$HMS_RESULTS"
}
