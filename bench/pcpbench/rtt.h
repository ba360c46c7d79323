/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rtt.h - the cross-core round trip: what a line costs to go there and back.
 *
 * On virtual machines it changes with the placement of the virtual CPUs, and
 * every figure of two threads with it; so it is printed beside them.
 */
#ifndef BENCH_RTT_H
#define BENCH_RTT_H

/* Median ns of a round trip from the calling thread, which is pinned, to the
 * given CPU; negative when that can't be reached.  Cost: about 2 ms. */
double bench_rtt_measure(int cpu, double ticks_per_ns);

#endif
