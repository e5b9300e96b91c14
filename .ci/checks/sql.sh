#!/bin/sh
#
# sql: house rules of the install SQL (docs/style.md) that need no parser

cd "$(dirname "$0")/../.." || exit 2

# refuse WHY PATTERN
refuse()
{
	if grep -nE "$2" sql/[0-9][0-9]_*.sql | grep -vE ':[0-9]+:(--|\\echo)'; then
		echo "^ $1"
		failed=1
	fi
}

refuse 'install files create, they never replace' 'create or replace'
refuse 'keywords are lower case' '^ *(CREATE|ALTER|DROP|COMMENT|GRANT|REVOKE|SELECT|INSERT|RETURNS|LANGUAGE|AS|SET)\b'
refuse 'order: language c volatile parallel unsafe (procedures: language c)' '^language c( .*)? (strict|parallel (safe|restricted)|stable|immutable)|^language c (parallel unsafe|volatile)$'
refuse 'security definer needs a sentence in 90_privilege.sql' 'security definer'
refuse 'no tabs' '	'
refuse 'no strict functions: a null argument gets an error that names it' '\bstrict\b'

exit "${failed:-0}"
