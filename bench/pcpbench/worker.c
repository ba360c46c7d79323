/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * worker.c - one allocator's process: does what pcpbench asks through a socket.
 *
 * One process per allocator, because several of them replace malloc and free
 * for the whole process.  The main thread is pinned to the first CPU, the peer
 * to the second; both sleep while other workers have their turn.
 *
 * Failure: a request that fails is answered with the reason; running out of
 * blocks in the middle of a loop ends the process, which pcpbench reports.
 */
#include "lane.h"

#include <string.h>

#include "tsc.h"

static struct bench_worker worker;

_Noreturn void bench_die(const char *why)
{
	fprintf(stderr, "pcpbench: %s: %s\n", BENCH_NAME, why);
	exit(1);
}

static void peer_attach(void *arg)
{
	bench_lane_open(arg, &worker.shared, 0x2545f4914f6cdd1du);
}

static void peer_detach(void *arg)
{
	bench_lane_close(arg);
}

/* Not before a workload needs it: some allocators are faster in a process of
 * one thread, and may show that. */
static void peer_need(void)
{
	static bool started;
	int err;

	if (started)
		return;
	err = bench_peer_start(&worker.peer, worker.cpu[1]);
	if (err)
		bench_die("the second CPU can't be used");
	bench_peer_run(&worker.peer, peer_attach, &worker.lane[1]);
	bench_peer_wait(&worker.peer);
	started = true;
}

static void worker_setup(const struct wire_request *q, struct wire_reply *r)
{
	int err;

	worker.ticks_per_ns = q->ticks_per_ns;
	/* Before pinning: a heap is populated by several threads. */
	if (ops_open(&worker.shared, q->heap_mib, r->text, sizeof(r->text))) {
		r->status = WIRE_FAILED;
		return;
	}
	err = bench_pin(q->cpu[0]);
	if (err) {
		r->status = WIRE_FAILED;
		snprintf(r->text, sizeof(r->text), "pinning to CPU %d: %s",
			 q->cpu[0], strerror(err));
		return;
	}
	worker.cpu[0] = q->cpu[0];
	worker.cpu[1] = q->cpu[1];
	bench_lane_open(&worker.lane[0], &worker.shared, 0x9e3779b97f4a7c15u);
}

/* ---- Two threads, each with its own blocks ---- */

struct parallel_side {
	struct bench_gate *gate;
	struct bench_lane *lane;
	struct bench_plan plan;
	struct bench_outcome out;
};

static void side_plan(void *arg)
{
	struct parallel_side *s = arg;

	bench_gate_pass(s->gate);
	s->plan = bench_local_plan(s->lane, BENCH_PARALLEL, worker.ticks_per_ns);
}

/* Made with both at work: alone, chunks may be ten times as fast. */
static struct bench_plan parallel_plan(void)
{
	struct bench_gate gate = {0};
	struct parallel_side side[2] = {
		{.gate = &gate, .lane = &worker.lane[0]},
		{.gate = &gate, .lane = &worker.lane[1]},
	};
	struct bench_plan plan;

	bench_peer_run(&worker.peer, side_plan, &side[1]);
	side_plan(&side[0]);
	bench_peer_wait(&worker.peer);
	plan = side[0].plan;
	if (side[1].plan.limit_ticks > plan.limit_ticks)
		plan.limit_ticks = side[1].plan.limit_ticks;
	return plan;
}

static void side_run(void *arg)
{
	struct parallel_side *s = arg;

	bench_gate_pass(s->gate);
	s->out = bench_local_run(s->lane, BENCH_PARALLEL, &worker.plan);
}

/* Alone first, then both.  Each side's time is its own. */
static struct bench_outcome parallel_run(struct bench_outcome *alone)
{
	struct bench_gate gate = {0};
	struct parallel_side side[2] = {
		{.gate = &gate, .lane = &worker.lane[0]},
		{.gate = &gate, .lane = &worker.lane[1]},
	};
	struct bench_outcome out;

	/* The allocator sees two threads here too. */
	*alone = bench_local_run(&worker.lane[0], BENCH_PARALLEL, &worker.plan);
	bench_peer_run(&worker.peer, side_run, &side[1]);
	side_run(&side[0]);
	bench_peer_wait(&worker.peer);
	out = side[0].out;
	out.ticks += side[1].out.ticks;
	out.pages += side[1].out.pages;
	out.losses += side[1].out.losses + alone->losses;
	if (side[1].out.longest > out.longest)
		out.longest = side[1].out.longest;
	if (alone->longest > out.longest)
		out.longest = alone->longest;
	return out;
}

/* ---- Requests ---- */

static bool workload_applies(unsigned workload)
{
	if (bench_is_mapping(workload))
		return false;
	switch (workload) {
	case BENCH_BULK8:
	case BENCH_BULK32:
	case BENCH_BULK64:
		return OPS_BULK;
	case BENCH_REMOTE:
		return OPS_REMOTE;
	case BENCH_REMOTE_TOUCH:
		return OPS_REMOTE && OPS_TOUCH;
	case BENCH_CHURN:
	case BENCH_LATENCY_CHURN:
		return OPS_MIXED;
	case BENCH_LATENCY_REMOTE2:
		/* An allocator of whole bursts has no single calls there. */
		return OPS_REMOTE && !OPS_STREAM;
	case BENCH_LATENCY_REMOTE8:
		return OPS_REMOTE && !OPS_STREAM && OPS_CROWD;
	case BENCH_LATENCY_MIXED2:
		return OPS_REMOTE && !OPS_STREAM && OPS_MIXED;
	case BENCH_LATENCY_MIXED8:
		return OPS_REMOTE && !OPS_STREAM && OPS_MIXED && OPS_CROWD;
	case BENCH_COALESCE:
	case BENCH_FRAGMENT:
		return OPS_COALESCE;
	case BENCH_START:
		return OPS_START;
	case BENCH_START_HEAP:
		return OPS_START && OPS_HEAPS;
	case BENCH_GROW:
		return OPS_GROWS;
	case BENCH_TRIM:
		return OPS_RELEASE;
	case BENCH_THREADS:
	case BENCH_THREADS_SHORT:
		return OPS_THREADS;
	default:
		return true;
	}
}

/* Runs a workload that neither keeps anything nor has a plan; false: it isn't such
 * a one.  Preparing one is running it once, which warms what can be warm. */
static bool apart_run(unsigned workload, unsigned turn, struct wire_reply *r)
{
	switch (workload) {
	case BENCH_COALESCE:
		bench_coalesce_run(turn, r);
		return true;
	case BENCH_FRAGMENT:
		bench_fragment_run(turn, r);
		return true;
	case BENCH_START:
	case BENCH_GROW:
	case BENCH_TRIM:
		bench_cold_run(&worker, workload, r);
		return true;
	case BENCH_START_HEAP:
		bench_heap_run(&worker, r);
		return true;
	case BENCH_THREADS:
	case BENCH_THREADS_SHORT:
		bench_threads_run(&worker, workload, r);
		return true;
	default:
		return false;
	}
}

static void worker_prepare(const struct wire_request *q, struct wire_reply *r)
{
	if (!workload_applies(q->workload)) {
		r->status = WIRE_NOT_APPLICABLE;
		return;
	}
	/* Counts have nothing that could be warm. */
	if (bench_workloads[q->workload].more_is_better ||
	    apart_run(q->workload, 0, r))
		return;
	if (bench_is_latency(q->workload)) {
		bench_latency_prepare(&worker, q->workload);
		return;
	}
	if (bench_workloads[q->workload].threads > 1)
		peer_need();
	if (bench_is_remote(q->workload)) {
		worker.plan = bench_remote_plan(
			&worker, q->workload == BENCH_REMOTE_TOUCH);
		return;
	}
	if (q->workload == BENCH_PARALLEL) {
		worker.plan = parallel_plan();
		return;
	}
	bench_local_prepare(&worker.lane[0], q->workload, worker.ticks_per_ns);
	worker.plan = bench_local_plan(&worker.lane[0], q->workload,
				       worker.ticks_per_ns);
}

static double outcome_ns(const struct bench_outcome *o)
{
	return (double)o->ticks / worker.ticks_per_ns / (double)o->pages;
}

static void counters_subtract(struct wire_counters *from,
			      const struct wire_counters *what)
{
	from->taken -= what->taken;
	from->zone_locks -= what->zone_locks;
	from->depot_gets -= what->depot_gets;
	from->depot_puts -= what->depot_puts;
	from->refills -= what->refills;
	from->drains -= what->drains;
}

static struct bench_outcome clocked_run(unsigned workload, struct wire_reply *r)
{
	struct bench_outcome alone, out;

	if (bench_is_remote(workload))
		return bench_remote_run(&worker, workload == BENCH_REMOTE_TOUCH,
					&worker.plan);
	if (workload != BENCH_PARALLEL)
		return bench_local_run(&worker.lane[0], workload, &worker.plan);
	out = parallel_run(&alone);
	r->second = outcome_ns(&alone);
	return out;
}

static void loops_run(const struct wire_request *q, struct wire_reply *r)
{
	struct bench_outcome out;

	bench_lane_shift(&worker.lane[0], q->turn);
	if (bench_workloads[q->workload].threads > 1)
		bench_lane_shift(&worker.lane[1], q->turn + 100);
	out = clocked_run(q->workload, r);
	r->value = outcome_ns(&out);
	r->pages = out.pages;
	r->lost = out.longest > worker.plan.limit_ticks || out.losses > 0;
}

static void worker_run(const struct wire_request *q, struct wire_reply *r)
{
	struct wire_counters before = {0};

	if (apart_run(q->workload, q->turn, r))
		return;
	ops_counters(&worker.shared, &before);
	if (bench_is_latency(q->workload))
		bench_latency_run(&worker, q->turn, r);
	else
		loops_run(q, r);
	ops_counters(&worker.shared, &r->counters);
	counters_subtract(&r->counters, &before);
	r->counted = OPS_COUNTERS;
}

static void request_answer(const struct wire_request *q, struct wire_reply *r)
{
	switch (q->kind) {
	case WIRE_SETUP:
		worker_setup(q, r);
		return;
	case WIRE_PREPARE:
		worker_prepare(q, r);
		return;
	case WIRE_RUN:
		worker_run(q, r);
		return;
	default:
		if (bench_is_latency(q->workload))
			bench_latency_finish(&worker, r);
		else
			bench_local_finish(&worker.lane[0], q->workload);
	}
}

int main(int argc, char **argv)
{
	struct wire_request q;

	if (argc > 1)
		return bench_cold_main(argv[1]);
	while (wire_receive(WIRE_FD, &q, sizeof(q))) {
		struct wire_reply r;

		memset(&r, 0, sizeof(r));
		request_answer(&q, &r);
		if (!wire_send(WIRE_FD, &r, sizeof(r)))
			return 1;
	}
	if (worker.peer.thread) {
		bench_peer_run(&worker.peer, peer_detach, &worker.lane[1]);
		bench_peer_wait(&worker.peer);
		bench_peer_stop(&worker.peer);
	}
	if (worker.lane[0].buffer) {
		bench_lane_close(&worker.lane[0]);
		ops_close(&worker.shared);
	}
	return 0;
}
