/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_costs.c - the cost set of the original's machines: servers of 2016 to 2021
 * with 100 Gb/s, and how each value was come by.  The prices of a page under the
 * lock and of a further waiter were chosen within what is published with the
 * original's driver 2 in view, so that its curve from 6 rings on is no blind
 * prediction: docs/simulation.md.
 */
#include "sim_costs.h"

/* The threads measured 27 cycles for an atomic step on a line of one's own and
 * 260 on another core's, at 4 GHz: 6.8 and 65 ns. */
#define NEAR 6.8
#define FAR 65.0

const struct sim_costs sim_costs_xeon = {
	.name = "xeon",
	.line = FAR,
	/* A contended release makes each waiter fetch the lock's line again, one
	 * after the other, and the next holder is among them: so the time grows
	 * by a part of a transfer for each.  One transfer is the pessimistic end
	 * (a ticket lock; a queued one does better). */
	.lock = {.take = 2 * NEAR, .hand_over = FAR, .per_waiter = FAR},
	/* A pair on one core was 231 to 272 cycles.  A freed page's descriptor
	 * was last written by the receiving core.  Under the lock each page's
	 * descriptor, or a neighbour's, was last written elsewhere: a transfer,
	 * and 10 ns of list work. */
	.kernel = {.alloc = 30, .free = 30 + FAR, .look = 20,
		   .take_near = 20, .take_far = FAR + 10,
		   .give_near = 25, .give_far = FAR + 10},
	/* Hits as this library has them on machines of about that speed.  Its
	 * buddy has a bit a page: a take of 64 walks 4 lines, given pages lie
	 * scattered, 4 on a line. */
	.pcpalloc = {.alloc = 3, .free = 3, .look = 25,
		     .take_near = 5, .take_far = 5 + FAR / 16,
		     .give_near = 6, .give_far = 6 + FAR / 4},
	/* Page indices of 4 bytes, 16 a line; the ring's own words. */
	.depot_fixed = 15, .depot_near = 0.3, .depot_far = FAR / 16,
	/* Driver 1 with one ring had 23.8 Gb/s: 504 ns a packet of 1500 bytes,
	 * of which some 54 are the allocator's.  The application's part is not
	 * known and must be less. */
	.receive = 450, .consume = 400,
	.ref_near = NEAR, .ref_far = FAR,
	.push = 2 * FAR, .pop = 2 * FAR,
	/* What 100 Gb/s of Ethernet carry: the original's best figure. */
	.wire_gbps = 94.3,
};
