/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_measure.h - this machine's costs, for the simulation.
 *
 * Measured between two CPUs in turns: the one does its part on a thousand pages
 * while the other waits, then the other ("far"); and with both parts on one CPU
 * ("near").  So no allocator is measured under contention, which is what the
 * simulation has to add; packets are, by a pipeline without an allocator.  Medians of
 * rounds.
 *
 * Not measurable with two CPUs, and assumed: that each further waiter costs a
 * hand-over one transfer of a line (lock.per_waiter).
 *
 * Cost: about 0.3 s.  Failure: false, with the reason on stderr.
 */
#ifndef BENCH_SIM_MEASURE_H
#define BENCH_SIM_MEASURE_H

#include "rings_pages.h"
#include "sim_costs.h"

/* What packets cost now, receive and consume, with the rest of *costs measured
 * before: a pipeline of so many windows of a ms without an allocator.  To be asked
 * next to what it is compared with, where a machine changes its speed. */
bool sim_measure_packets(const int cpu[2], double ticks_per_ns, unsigned windows,
			 struct rings_store *store, struct sim_costs *costs);

/* All but receive and consume.  Requires: stores of all allocators, unused. */
bool sim_measure(const int cpu[2], double ticks_per_ns,
		 struct rings_store stores[SIM_ALLOCATORS],
		 struct sim_costs *costs);

#endif
