/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_lock.h - a lock of a simulation: first come, first served.
 *
 *   ask, free:   granted after `take`, and a line's way where somebody else had it
 *   ask, taken:  waits; granted at a drop after `hand_over` + others * per_waiter
 *
 * L1 holder is -1 exactly when nobody waits or holds.
 * L2 who asked earlier is granted earlier.
 *
 * Concurrency: one thread.  Failure: none.  Proved by tests/bench/test_sim.c.
 */
#ifndef BENCH_SIM_LOCK_H
#define BENCH_SIM_LOCK_H

#include "sim_costs.h"
#include "sim_queue.h"

struct sim_lock {
	int holder; /* core, or -1 */
	int last;   /* who held it before, or -1 */
	uint32_t queue[SIM_CORES], head, waiting;
	uint64_t takes, waits;
	uint32_t most; /* that waited at once */
};

void sim_lock_init(struct sim_lock *l);

/* True: granted, from *at on.  False: the core waits. */
bool sim_lock_ask(struct sim_lock *l, const struct sim_costs *costs,
		  uint32_t core, uint64_t now, uint64_t *at);

/* The holder goes.  Returns who is granted it, from *at on, or -1. */
int sim_lock_drop(struct sim_lock *l, const struct sim_costs *costs,
		  uint64_t now, uint64_t *at);

/* Whether its holder got it, and what it protects, from another core. */
static inline bool sim_lock_is_far(const struct sim_lock *l)
{
	return l->last >= 0 && l->last != l->holder;
}

#endif
