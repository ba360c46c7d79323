/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_queue.h - the events of a simulation, in the order of their time.
 *
 * A binary heap, at most one event a core.  Events of one time come in the order
 * in which they were put, so that a run is the same each time.
 *
 * Units: picoseconds of simulated time, as whole numbers: no rounding differs
 * between compilers.  Concurrency: one thread.  Cost: log2 of the cores.
 * Failure: none.  Proved by tests/bench/test_sim.c.
 */
#ifndef BENCH_SIM_QUEUE_H
#define BENCH_SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_CORES = 128 };

struct sim_event {
	uint64_t at;   /* ps                        */
	uint64_t turn; /* among those of one time   */
	uint32_t core;
};

struct sim_queue {
	struct sim_event heap[SIM_CORES];
	uint32_t n;
	uint64_t turns;
};

/* Requires: the core has none yet. */
void sim_queue_put(struct sim_queue *q, uint64_t at, uint32_t core);

/* Takes the earliest out; false: there is none. */
bool sim_queue_take(struct sim_queue *q, struct sim_event *e);

/* Picoseconds of a cost. */
static inline uint64_t sim_ps(double ns)
{
	return (uint64_t)(ns * 1000 + 0.5);
}

#endif
