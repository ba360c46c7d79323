/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings_real.h - receive rings as threads, as many as there are processors for.
 *
 *   2 * rings <= CPUs   each ring's two sides on CPUs of their own
 *   rings <= CPUs       each CPU receives for one ring and is the application of
 *                       the next, a burst of each in turns
 *
 * There is no network: packets are always there, work is rings_packet.h.  So the
 * figure is what memory and allocator let through, and no wire limits it.  It is
 * the median of windows of a ms.  A window in which a lane lost its CPU for more than
 * 150 us is discarded; after eight times as many as were asked for all count.
 *
 * Failure: false, with the reason on stderr; among the reasons are a packet that
 * was overwritten and a page that didn't come back.
 */
#ifndef BENCH_RINGS_REAL_H
#define BENCH_RINGS_REAL_H

#include "rings_pages.h"

struct rings_setup {
	struct rings_store *store;
	unsigned driver; /* 1 to 3; 0: pages in turns that nobody allocates or frees,
			  * for what packets cost by themselves */
	unsigned rings;
	const int *cpu;
	unsigned cpus;
	double ticks_per_ns;
	unsigned windows;
};

struct rings_result {
	double gbps, p25, p75;
	double lock_share; /* of the time not idle; below 0: not known */
	double receive_ns, consume_ns; /* a packet, of busy time */
	unsigned discarded, disturbed; /* windows: not counted; counted all the same */
};

/* Whether there are enough CPUs; *shared: both sides on one. */
bool rings_real_fits(unsigned rings, unsigned cpus, bool *shared);

bool rings_real_run(const struct rings_setup *setup, struct rings_result *result);

#endif
