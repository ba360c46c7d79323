# SPDX-License-Identifier: BSD-2-Clause
#
# The kernel's pool of huge pages, for scripts that need it with many, few or no pages.
# Whoever sources this calls pool_restore at its end.  One of them, or of tests/sys, runs
# at a time, whoever started it (tests/support/hugepool.h): what another has set for the
# moment isn't what to put back.
pool=/sys/kernel/mm/hugepages/hugepages-2048kB
if [ -r $pool/nr_hugepages ]; then
	exec {pool_lock}<$pool/nr_hugepages
	flock -w 600 "$pool_lock" # held until the end, or longer by what was left running
fi
pool_before=$(cat $pool/nr_hugepages 2>/dev/null)

pool_free() {
	cat $pool/free_hugepages 2>/dev/null || echo 0
}

# So many free pages, if they are to be had and may be asked for; false: they aren't.
pool_set() { # pages
	local used
	[ -w $pool/nr_hugepages ] || return
	used=$(($(cat $pool/nr_hugepages) - $(pool_free)))
	echo $((used + $1)) 2>/dev/null >$pool/nr_hugepages
	[ "$(pool_free)" -eq "$1" ]
}

pool_restore() {
	[ -w $pool/nr_hugepages ] && echo "${pool_before:-0}" >$pool/nr_hugepages
}
