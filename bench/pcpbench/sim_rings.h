/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_rings.h - receive rings, simulated: cores that receive packets into pages,
 * cores that consume them and free the pages, over one allocator.
 *
 *   wire -> receiver --bursts of 32, a ring of 32 bursts--> application
 *           allocates                                       frees
 *
 *   driver 1   two packets a page, the page is freed when both are consumed
 *   driver 2   a page a packet
 *   driver 3   a page a packet, from the driver's own cache of pages: the oldest
 *              is used again when its packet was consumed; else a page is allocated
 *
 * A core runs ahead of the others in steps that nobody sees (hits, work) and meets
 * them in events: the end of a burst, a lock, its drop.
 *
 * Assumptions, for whoever reads the figures:
 * - Packets of 1500 bytes spread evenly over the rings; what doesn't fit into 1024
 *   descriptors of a ring waits outside, nothing is lost (TCP's senders slow down).
 * - Each ring has a receiving and an application core of its own (`shared`: each
 *   core receives for one ring and is the application of the next, burst by burst).
 * - Work varies by +-20 % a packet, so that cores don't march in step.
 * - Locks are first come, first served; a hand-over costs more the more wait.  All
 *   else that cores share (buses, shared caches, processor speed, sockets) is free.
 * - Waiting is spinning.  A core without packets is idle, and no part of lock_share.
 * - The zone is one node's; no interrupts, system calls or preemption.
 *
 * R1 a run of the same setup has the same result, to the last packet.
 * R2 pages are conserved: see sim_result.
 *
 * Concurrency: one thread a run.  Cost: some 20 ns a packet.  Failure: a run whose
 * allocator had nothing left says so.  Proved by tests/bench/test_sim.c.
 */
#ifndef BENCH_SIM_RINGS_H
#define BENCH_SIM_RINGS_H

#include "sim_heap.h"

enum { SIM_DRIVERS = 3, SIM_RINGS = SIM_CORES / 2, SIM_PACKET_BYTES = 1500 };

struct sim_setup {
	enum sim_allocator allocator;
	unsigned driver; /* 1 to 3 */
	unsigned rings;  /* up to SIM_RINGS */
	bool shared;	 /* both sides of a ring on the rings' own cores */
	const struct sim_costs *costs;
	uint64_t heap_pages;
	unsigned driver_pages; /* driver 3: a ring's own cache holds so many */
	uint64_t warm_ns, run_ns;
	uint32_t seed; /* not 0 */
};

/* 4 GiB, 5 ms and 20. */
#define SIM_SETUP_INIT(allocator, driver, rings, costs)                        \
	{                                                                      \
		(allocator), (driver), (rings), false, (costs), 1u << 20,      \
			4096, 5000000, 20000000, 1                             \
	}

struct sim_result {
	double gbps;
	double lock_share; /* of the time that cores weren't idle */
	uint64_t packets;  /* consumed in run_ns */
	uint64_t zone_takes, zone_waits, depot_takes, depot_waits;
	uint32_t most_waiting; /* for one lock at once */
	/* At the end of the run: managed = free + depot + cached + moving + held +
	 * in_flight. */
	uint64_t managed, free, depot;
	uint64_t cached;    /* in caches                                    */
	uint64_t moving;    /* in the hands of frees under way              */
	uint64_t held;	    /* by drivers' own caches                       */
	uint64_t in_flight; /* with packets                                 */
};

/* False: the allocator ran out of pages. */
bool sim_rings_run(const struct sim_setup *setup, struct sim_result *result);

#endif
