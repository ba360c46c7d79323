# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash disable=SC2034,SC2154
#
# Part of bench/run: runs the steps of a measurement one after the other.
#
# A step is the replay, a workload or an experiment.  Workloads share a process
# of pcpbench, which starts every allocator once; one that fails is named, and
# the others go on in a new process.  $out/steps.tsv gets a line a step, name,
# status (done, failed, interrupted, left out), seconds and message, and at
# last `run complete` if nothing was cut off.
#
# A child is a process group of its own: a Ctrl-C is for this shell, which ends
# the child and goes on to the report.  A second one ends everything.
#
# From bench/run: out, plan, expected, quick.  For it: failed, interrupted.

interrupted='' failed='' child='' shown='' left=''

say() {
	line_clear
	printf '%s\n' "$*" >&2
}

fail() {
	say "bench/run: $*"
	exit 1
}

# One line on a terminal, written over; elsewhere nothing.
line_show() {
	[ -t 2 ] || return 0
	printf '\r\033[K%s' "$*" >&2
	shown=1
}

line_clear() {
	[ -z "$shown" ] || printf '\r\033[K' >&2
	shown=''
}

# ---- Children ---------------------------------------------------------------

child_start() { # file for what it says, command...
	local to=$1
	shift
	set -m
	"$@" 2>>"$to" >>"${child_out:-$to}" </dev/null &
	child=$!
	set +m
}

child_runs() {
	kill -0 "$child" 2>/dev/null
}

child_wait() {
	local status
	wait "$child" 2>/dev/null
	status=$?
	child=''
	return $status
}

child_end() {
	[ -z "$child" ] || kill -TERM -- "-$child" 2>/dev/null
}

interrupt() {
	child_end
	[ -z "$interrupted" ] || exit 130
	interrupted=1
}
trap interrupt INT TERM HUP
# Nobody reads on: what runs would go on by itself.
trap 'child_end; exit 141' PIPE

# ---- Progress ---------------------------------------------------------------

# Writes into `left` how much time is left: the estimates of what is to come,
# corrected by how the steps so far compare with theirs.  Starts no process,
# since something is being measured.
time_left() { # seconds in the step that runs
	local rest=0 i spent=$((SECONDS - begun - $1)) all=0
	for ((i = 0; i < ${#plan[@]}; i++)); do
		if [ $i -lt $position ]; then
			all=$((all + ${expected[${plan[i]}]:-10}))
		else
			rest=$((rest + ${expected[${plan[i]}]:-10}))
		fi
	done
	# A quick run has a quarter of the repetitions.
	[ -z "$quick" ] || { rest=$((rest / 4)) all=$((all / 4)); }
	[ $all -lt 10 ] || [ $spent -le 0 ] || rest=$((rest * spent / all))
	rest=$((rest - $1))
	[ $rest -ge 5 ] || rest=5
	left="about $(((rest + 4) / 5 * 5)) s left"
	[ $rest -lt 90 ] || left="about $(((rest + 30) / 60)) min left"
}

progress_show() { # seconds in the step that runs
	[ -t 2 ] || return 0
	time_left "$1"
	line_show "[$((position + 1))/${#plan[@]}] ${plan[position]}: $1 s, $left"
}

# A file gets a line when a step begins.
progress_begin() {
	step_begun=$SECONDS
	[ -t 2 ] && return
	time_left 0
	printf '[%d/%d] %s: %s\n' $((position + 1)) ${#plan[@]} \
		"${plan[position]}" "$left" >&2
}

# ---- Steps ------------------------------------------------------------------

steps_begin() {
	begun=$SECONDS position=0
	logs=$out/logs
	mkdir -p "$logs" || fail "can't write to '$logs'"
	: >"$out/steps.tsv"
	[ -z "$interrupted" ] || exit 130
	time_left 0
	say "measuring: ${#plan[@]} steps, $left; Ctrl-C ends it and reports" \
		"what there is"
}

step_note() { # status [message]
	printf '%s\t%s\t%d\t%s\n' "${plan[position]}" "$1" \
		$((SECONDS - step_begun)) "${2:-}" >>"$out/steps.tsv"
	if [ "$1" = failed ]; then
		failed=1
		say "bench/run: ${plan[position]} failed: ${2:-}"
	fi
	position=$((position + 1))
}

steps_end() {
	local name
	line_clear
	for name in "${plan[@]:position}"; do
		printf '%s\tleft out\t0\t\n' "$name" >>"$out/steps.tsv"
	done
	[ -n "$interrupted" ] || printf 'run\tcomplete\n' >>"$out/steps.tsv"
}

# What the child said last, on one line.
last_words() { # file
	tr '\r\t' '\n ' <"$1" | grep -v '^ *$' | tail -n 1 | cut -c 1-300
}

# A child without a result for so long hangs.
silence_check() {
	local most=300
	[ -z "$quick" ] || most=120
	if [ $((SECONDS - step_begun)) -gt $most ] && [ -z "$hangs" ]; then
		hangs="no result after $most s"
		child_end
	fi
}

# Runs the child to its end, with `after` each time it was looked at.
child_follow() { # after...
	hangs=''
	while child_runs; do
		"$@"
		silence_check
		progress_show $((SECONDS - step_begun))
		# Seldom: the measured program has these processors, too.
		[ $((SECONDS - step_begun)) -lt 1 ] && sleep 0.1 || sleep 0.7
	done
	child_wait
}

# The last step of a child that ended: done, or why not.
step_settle() { # status, what it said
	if [ -n "$interrupted" ]; then
		step_note interrupted
	elif [ "$1" -eq 0 ]; then
		step_note 'done'
	else
		step_note failed "${hangs:-$(last_words "$2")}"
	fi
}

step_replay() { # command...
	local said=$logs/replay.log part=$logs/replay.json status
	[ -z "$interrupted" ] || return 0
	progress_begin
	child_out=$part child_start "$said" "$@"
	child_follow :
	status=$?
	if [ $status -eq 0 ]; then
		printf '{"replay":%s}\n' "$(cat "$part")" >>"$out/results.jsonl"
	fi
	step_settle $status "$said"
}

# Where a process has results of a step, those before it are through, too.  Not
# the last one, which is when the process has ended.
steps_through() { # kind, end, file
	local i
	for ((i = $2 - 1; i >= position; i--)); do
		grep -qF "\"$1\":\"${plan[i]}\"" "$3" || continue
		[ $i -lt $(($2 - 1)) ] || i=$(($2 - 2))
		[ $i -ge $position ] || return 0
		while [ $position -le $i ]; do
			step_note 'done'
			step_begun=$SECONDS
		done
		progress_begin
	done
}

# What pcpbench is asked for steps of that name.
step_arguments() { # names...
	arguments=("$@")
	[ "$1" != rings-simulated ] || arguments=(rings --simulate)
}

# The next steps of the plan in one process, up to the first that fails.  When the
# command line was refused, each is to have its own: which one can't be?
process_run() { # kind, how many, command...
	local kind=$1 end=$((position + $2)) status
	local said=$logs/${plan[position]}.log part=$logs/${plan[position]}.json
	shift 2
	: >"$part"
	progress_begin
	step_arguments "${plan[@]:position:end-position}"
	child_out=$part child_start "$said" "$@" "${arguments[@]}"
	child_follow steps_through "$kind" $end "$part"
	status=$?
	if [ $status -eq 2 ] && [ $((end - position)) -gt 1 ]; then
		share=1
		return
	fi
	steps_through "$kind" $end "$part"
	# Whole lines only: a child that was ended may leave part of one.
	head -n "$(wc -l <"$part")" "$part" >>"$out/results.jsonl"
	while [ $status -eq 0 ] && [ $position -lt $((end - 1)) ]; do
		step_note 'done' # nothing that could do it
	done
	step_settle $status "$said"
}

steps_take() { # kind, how many share a process, how many, command...
	local kind=$1 share=$2 last=$((position + $3)) n
	shift 3
	while [ $position -lt $last ] && [ -z "$interrupted" ]; do
		n=$((last - position))
		process_run "$kind" $((n < share ? n : share)) "$@"
	done
}

step_compare() { # command...
	[ -z "$interrupted" ] || return 0
	progress_begin
	child_out=$out/compare.txt child_start "$logs/compare.log" "$@"
	child_follow :
	step_settle $? "$logs/compare.log"
}
