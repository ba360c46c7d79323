/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_costs.h - what each step costs in a simulation: its only inputs in time.
 *
 *   sim_costs_xeon    the machines of the original's threads, from published
 *                     figures; the reasons stand beside the values (sim_costs.c)
 *   sim_measure.c     this machine's
 *
 * "far": the line was last written by another core; "near": by this one.
 * All in ns, but for wire_gbps.
 */
#ifndef BENCH_SIM_COSTS_H
#define BENCH_SIM_COSTS_H

/* An allocator: hits, the way into its slow path, and pages under its zone lock. */
struct sim_alloc_costs {
	double alloc, free;	     /* a call that the cache serves            */
	double look;		     /* a call that it doesn't, without locks   */
	double take_near, take_far;  /* zone to cache, a page                   */
	double give_near, give_far;  /* cache to zone, a page                   */
};

/* A lock, first come, first served. */
struct sim_lock_costs {
	double take;       /* and drop, with nobody else                      */
	double hand_over;  /* from a drop to who has waited                   */
	double per_waiter; /* and more for each who goes on waiting           */
};

struct sim_costs {
	const char *name;
	double line; /* a line from another core */
	struct sim_lock_costs lock;
	struct sim_alloc_costs kernel, pcpalloc;
	double depot_fixed, depot_near, depot_far; /* a hold; a page of it   */
	double receive, consume;     /* a packet, all but memory              */
	double ref_near, ref_far;    /* a page's reference count, one step    */
	double push, pop;	     /* a burst of packets to another core    */
	double wire_gbps;	     /* 0: packets are always there           */
};

extern const struct sim_costs sim_costs_xeon;

#endif
