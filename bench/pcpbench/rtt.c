/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rtt.c - two threads throw one number to and fro.
 *
 *   here:  ball = 1      wait for 2    ball = 3 ...
 *   there:    wait for 1, ball = 2        wait for 3 ...
 *
 * The median of groups, so that a preemption spoils one group only.
 */
#include "rtt.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "peer.h"
#include "tsc.h"

enum { GROUPS = 51, TRIPS = 100 };

struct court {
	struct bench_gate gate;
	_Alignas(128) _Atomic unsigned ball;
};

static void ball_await(struct court *c, unsigned value)
{
	/* pairs with ball_throw() of the other side. */
	while (atomic_load_explicit(&c->ball, memory_order_acquire) != value)
		;
}

static void ball_throw(struct court *c, unsigned value)
{
	/* pairs with ball_await() of the other side. */
	atomic_store_explicit(&c->ball, value, memory_order_release);
}

static void court_there(void *arg)
{
	struct court *c = arg;

	bench_gate_pass(&c->gate);
	for (unsigned i = 0; i < GROUPS * TRIPS; i++) {
		ball_await(c, 2 * i + 1);
		ball_throw(c, 2 * i + 2);
	}
}

static int ticks_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double bench_rtt_measure(int cpu, double ticks_per_ns)
{
	struct court c = {.ball = 0};
	struct bench_peer peer;
	uint64_t ticks[GROUPS];
	unsigned next = 1;

	if (bench_peer_start(&peer, cpu))
		return -1;
	bench_peer_run(&peer, court_there, &c);
	bench_gate_pass(&c.gate);
	for (int g = 0; g < GROUPS; g++) {
		uint64_t start = bench_tsc_read();

		for (int i = 0; i < TRIPS; i++, next += 2) {
			ball_throw(&c, next);
			ball_await(&c, next + 1);
		}
		ticks[g] = bench_tsc_read() - start;
	}
	bench_peer_wait(&peer);
	bench_peer_stop(&peer);
	qsort(ticks, GROUPS, sizeof(ticks[0]), ticks_compare);
	return (double)ticks[GROUPS / 2] / TRIPS / ticks_per_ns;
}
