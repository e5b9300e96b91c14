#!/bin/sh
#
# scripts: shellcheck for every shell script, perl -c for every Perl one

cd "$(dirname "$0")/../.." || exit 2

for file in .ci/run .ci/* .ci/checks/* demo/* bench/*; do
	[ -f "$file" ] || continue
	case $(head -n 1 "$file") in
		'#!/bin/sh' | '#!/usr/bin/env bash' | '#!/bin/bash')
			shellcheck -x "$file" || failed=1 ;;
		'#!/usr/bin/perl'*)
			perl -wc "$file" 2>&1 | grep -v 'syntax OK$' && failed=1 ;;
	esac
done

for file in test/lib/*.pm test/t/*.pl; do
	[ -f "$file" ] || continue
	perl -wc -I test/lib -I "$(dirname "$("${PG_CONFIG:-pg_config}" --pgxs)")/../test/perl" "$file" 2>&1 |
		grep -v 'syntax OK$' && failed=1
done

exit "${failed:-0}"
