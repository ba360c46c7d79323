/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp_tune.h - asking the policy for a cache.  Layer 4.
 *
 * Owns: a cache's adaptive state, and its translation to and from the policy's
 * terms: what happened since the last look (from counters, so that the hot path
 * keeps no state for it), and when the next look is due (the lists' limits).
 *
 *   look at a free:    past -> state -> drain?  how many?  from which lists?
 *   look at a refill:  past -> state -> how many?
 *   after either:      high, factors, limits of the lists
 *
 * TU1  The sum of what the lists may still take before a look is what the cache
 *     may still take: with one list in use the look comes exactly at the target.
 * TU2  A limit is above the length it was set at, or the target of one list
 *     alone if that is less: so looks are rare, and no list passes the target
 *     unseen where the length was one that a drainer was just about to empty.
 * TU3  A look leaves room for half of PCPI_RING_MARGIN in each ring, and a limit
 *     is as far from the ring's end: a chunk of a bulk free.  So the hot path needs
 *     no other test for room.
 *
 * Concurrency: the owner's, most with the mark set, so no system call or lock.
 * Cost: no loop but over the orders; the clock once a trim.  Failure: none.
 * Proved by tests/unit/test_pcp_tune.c.
 */
#ifndef PCPI_PCP_TUNE_H
#define PCPI_PCP_TUNE_H

#include "pcp.h"

/* A decision made under the mark and carried out after it. */
struct pcpi_trim_plan {
	uint32_t take[PCPI_PCP_ORDERS]; /* blocks, valid when pages > 0 */
	uint32_t pages, count, high;
	uint32_t target; /* count to look again at, where pages is 0 */
	enum pcpi_drain_reason reason;
};

/* A cache begins, or begins again with another owner. */
void pcpi_tune_start(struct pcpi_cache *c);

/* The cache was flushed, perhaps because its bound has fallen. */
void pcpi_tune_flushed(struct pcpi_cache *c);

/*
 * Requires the mark.  The common case of a look at a free, without the policy's
 * state, clock or split: blocks that a pure freer of one order alone hands over, with the limit
 * set for the next; 0: pcpi_tune_trim() decides.
 */
uint32_t pcpi_tune_hand_over(struct pcpi_cache *c, unsigned order);

/* Whether the list only gave blocks out since the last look: its refills from
 * the depot have nothing to tell the policy. */
bool pcpi_tune_is_taker(const struct pcpi_cache *c, unsigned order);

/* Requires the mark.  The list of this order has reached its limit. */
void pcpi_tune_trim(struct pcpi_cache *c, unsigned order, uint64_t now_ns,
		    struct pcpi_trim_plan *plan);

/* A plan was carried out: sets the limits anew. */
void pcpi_tune_drained(struct pcpi_cache *c, unsigned order);

/* Requires the mark.  One tick: high sinks, and the plan is what is above it,
 * perhaps nothing; false: further ticks would do nothing. */
bool pcpi_tune_decay(struct pcpi_cache *c, uint64_t now_ns,
		     struct pcpi_trim_plan *plan);

/* Blocks to take from the zone, at least 1; high may grow. */
uint32_t pcpi_tune_refill(struct pcpi_cache *c, const struct pcpi_pageset *ps,
			  unsigned order);

#endif
