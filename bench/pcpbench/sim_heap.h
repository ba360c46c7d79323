/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_heap.h - the allocators of a simulation: caches, a depot and a zone that
 * only count pages.  How many pages move, and when, is decided by the code that
 * decides it in reality:
 *
 *   kernel-5.x        kpcp_policy.h
 *   legacy, modern    lib/policy_pcp.c and policy_size.c, linked in and called with
 *                     the simulated counts; what lib/pcp_tune.c and lib/pcp.c do
 *                     around them for one list of order 0 is done here
 *
 * Not simulated of these: the front slot, ticks and decay, the depot's surplus
 * (once a second; a run is shorter), sweeps, other orders.
 *
 * An operation is a walk: private steps up to a lock, then what is done under it.
 *
 *   sim_alloc_begin() -> sim_op_step() -> SIM_DEPOT: lock, sim_op_locked(), drop,
 *                        sim_op_step() -> SIM_ZONE:  lock, ...
 *                        sim_op_step() -> SIM_DONE
 *
 * H1 free_pages + depot_pages + what caches and operations hold + what is handed
 *    out is managed_pages.
 *
 * Concurrency: one thread.  Failure: `exhausted`, when an allocation found nothing.
 * Proved by tests/bench/test_sim.c.
 */
#ifndef BENCH_SIM_HEAP_H
#define BENCH_SIM_HEAP_H

#include "policy.h"
#include "sim_lock.h"

enum sim_allocator { SIM_KERNEL, SIM_LEGACY, SIM_MODERN, SIM_ALLOCATORS };

extern const char *const sim_allocator_names[SIM_ALLOCATORS];

struct sim_heap {
	enum sim_allocator which;
	const struct sim_costs *costs;
	const struct sim_alloc_costs *own; /* of costs, this allocator's */
	struct pcpi_pageset pageset;
	uint64_t managed_pages, free_pages, depot_pages;
	uint64_t depot_limit, mark_high;
	struct sim_lock zone, depot;
	bool exhausted;
};

struct sim_cache {
	struct pcpi_pcp_state state; /* count is exact, the rest of the last look */
	uint32_t allocs, frees;      /* since that look                           */
	bool allocated;              /* since the last drain                      */
	uint32_t limit;              /* the next look at a free is at this count  */
};

enum sim_next { SIM_DONE, SIM_ZONE, SIM_DEPOT };

/* Where an operation is; sim_heap.c. */
enum sim_stage {
	SIM_OP_NONE,
	SIM_ALLOC, SIM_ALLOC_DEPOT, SIM_ALLOC_AGAIN, SIM_ALLOC_ZONE,
	SIM_FREE, SIM_FREE_GIVE
};

struct sim_op {
	enum sim_stage stage;
	uint32_t left;  /* pages still to be moved; a free has them in its hand */
	uint32_t chunk; /* at most so many by one lock                          */
	bool relimit;   /* the next look's limit is set afterwards              */
	bool to_depot;  /* the chunk under way                                  */
};

/* threads: that have a cache; they decide its bounds. */
void sim_heap_init(struct sim_heap *h, enum sim_allocator which,
		   const struct sim_costs *costs, uint64_t pages,
		   uint32_t threads);

void sim_cache_init(const struct sim_heap *h, struct sim_cache *c);

void sim_alloc_begin(struct sim_op *op);
void sim_free_begin(struct sim_op *op);

/* Goes on up to the next lock or the end; adds the time to *ps. */
enum sim_next sim_op_step(struct sim_heap *h, struct sim_cache *c,
			  struct sim_op *op, uint64_t *ps);

/* What is done under the lock that sim_op_step() wanted; returns the ps it takes.
 * Requires: the core is its holder. */
uint64_t sim_op_locked(struct sim_heap *h, struct sim_cache *c,
		       struct sim_op *op);

#endif
