#!/bin/sh
#
# words: nothing left open, no paths of one machine, no trailing blanks, no misspellings

cd "$(dirname "$0")/../.." || exit 2

files=$(if [ -d .git ] || [ -f .git ]; then git ls-files; else find . -type f -not -path './build/*' | sed 's,^\./,,'; fi |
	grep -vE '^(demo/flights\.jsonl|\.ci/checks/words\.sh|sql/hotmesh_stream--.*)$' | grep -vE '\.(o|so|bc)$')

# refuse WHY PATTERN FILES
refuse()
{
	# shellcheck disable=SC2086
	if grep -nIE "$2" $3; then
		echo "^ $1"
		failed=1
	fi
}

refuse 'left open' '\b(TODO|FIXME|XXX|HACK)\b' "$files"
refuse 'a path of one machine' '(^|[^A-Za-z0-9_.$}*])/(home|work|opt|Users|farm)/[a-z]' "$files"
refuse 'trailing blanks' '[ 	]+$' "$(echo "$files" | grep -vE '^expected/|\.out$')"
refuse 'a sleep instead of a wait for a condition' 'pg_sleep|\busleep\(|\bsleep\(' "$(echo "$files" | grep -E '^test/(sql|specs)/')"

# shellcheck disable=SC2086
codespell --skip 'build,expected' --ignore-words-list 'upto,ans,nd,ba,te,fo,ro' $files || failed=1

exit "${failed:-0}"
