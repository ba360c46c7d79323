# SPDX-License-Identifier: BSD-2-Clause
#
# For the scripts of this folder, which are called with
#
#   SHIM COMPILER
#
# SHIM: the library to preload; "none" or "" for the bare kernel, where each script
# passes, too.  PCPA_PRELOAD_STRICT=1 in the environment is handed on.  Each sources this
# file, uses `under PROGRAM ...`, `fail TEXT`, and ends with `finish`.
set -u
shim=${1#none} cc=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
bad=0 did=0
limit=60 # seconds, for what takes one: a hang, not a slow machine

if [ -n "$shim" ] && [ ! -f "$shim" ]; then
	echo "no such library: '$shim'" >&2
	exit 2
fi

fail() {
	echo "FAILED: $*"
	bad=1
}

skip() {
	echo "skipped: $*"
	exit 77
}

# Runs a program with these preloaded, of which empty ones are left out.
preloaded() { # "A B ...", program...
	local libraries
	libraries=$(echo $1)
	shift
	if [ -n "$libraries" ]; then
		timeout $limit env LD_PRELOAD="$libraries" "$@"
	else
		timeout $limit "$@"
	fi
}

under() { # program...
	preloaded "$shim" "$@"
}

compile() { # output, arguments...
	local output=$1
	shift
	"$cc" -O2 -o "$work/$output" "$@" -lpthread >"$work/log" 2>&1
}

# The program says that all was whole.
whole() { # what, command...
	local what=$1
	shift
	did=$((did + 1))
	"$@" >"$work/out" 2>&1
	local status=$?
	if [ $status -ne 0 ] || ! grep -q '^churn: whole$' "$work/out"; then
		fail "$what: exit code $status"
		head -n 20 "$work/out"
	else
		echo "$what: whole"
	fi
}

finish() {
	[ $did -gt 0 ] || fail "nothing ran"
	exit $bad
}
