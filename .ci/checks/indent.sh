#!/bin/sh
#
# indent: C is formatted as PostgreSQL core formats it; mend with .ci/indent FILE...

cd "$(dirname "$0")/../.." || exit 2

exec .ci/indent --check src/*.[ch] src/*/*.[ch]
