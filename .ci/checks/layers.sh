#!/bin/sh
#
# layers: who may include whom (docs/architecture.md), and what only one layer does

cd "$(dirname "$0")/../.." || exit 2

awk '
BEGIN {
	allowed["api"]     = "api core shmem debug"
	allowed["core"]    = "core storage shmem debug"
	allowed["storage"] = "storage debug"
	allowed["shmem"]   = "shmem debug"
	allowed["worker"]  = "worker core shmem debug"
	allowed["hooks"]   = "hooks storage shmem debug"
	allowed["debug"]   = "debug core storage shmem"
}
FNR == 1 {
	split(FILENAME, part, "/")
	layer = (part[3] == "") ? "" : part[2]
	if (layer != "" && !(layer in allowed)) { print FILENAME ": unknown layer " layer; bad = 1 }
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
	split($0, quoted, "\"")
	header = quoted[2]
	if (layer == "" || header !~ /\// || system("test -f src/" header) != 0)
		next
	split(header, target, "/")
	if (index(" " allowed[layer] " ", " " target[1] " ") == 0) {
		print FILENAME ":" FNR ": " layer " must not include " header
		bad = 1
	}
}
END { exit bad }
' src/*.[ch] src/*/*.[ch] || failed=1

# only PATTERN FILES-THAT-MAY: nobody else may contain PATTERN
only()
{
	# shellcheck disable=SC2046
	found=$(grep -nE "$2" $(find src -name '*.[ch]' | grep -vE "$3" | sort) | grep -vE ':[0-9]+:[	 ]*/?\*')
	[ -n "$found" ] || return 0
	printf '%s\n%s\n' "$1:" "$found"
	failed=1
}

only 'SPI outside storage/partman.c' 'SPI_[a-z]|executor/spi\.h' '^src/storage/partman\.c$'
only 'transaction control outside worker/' '\b(Start|Commit)TransactionCommand\(|AbortCurrentTransaction\(' \
	'^src/(worker/.*|api/wait_api\.c|api/maintain_api\.c)$'
only 'relations opened outside storage/ and core/' '\b(table|index|relation)_open(rv)?\(' '^src/(storage|core|worker|hooks)/'
only 'tuple access outside storage/' '\b(heap|table)_(tuple_)?(insert|update|delete|lock|multi_insert)\(' '^src/storage/'
only 'fmgr arguments below api/' '\bPG_GETARG_|\bPG_FUNCTION_INFO_V1\(' '^src/(api|debug)/'
only 'cJSON outside its two users' 'cJSON' '^src/core/(json_read|stream_data_write)\.c$'

exit "${failed:-0}"
