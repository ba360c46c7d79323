/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy.h - every threshold of the library, as functions of integers.
 * Layer 1, PURE: no system call, lock, atomic, clock, allocation or global.
 *
 * Knows no struct of the library but the value structs below.  The caller
 * copies its state in, asks, and copies it out again.
 *
 *   sizing    managed pages, CPUs, threads, knobs -> watermarks, pageset
 *             policy_size.c
 *   deciding  a cache's state + pageset + zone flags -> how many
 *             policy_pcp.c
 *   sharing   a number of pages -> blocks of each order list
 *             policy_share.c
 *
 * Two policies.  LEGACY is that of Linux 5.14: the drain doubles with each
 * drain in a row (63, 126, 252, ...) below a fixed bound.  MODERN is that of
 * Linux 6.7 and later: the bound moves between high_min and high_max, drains
 * follow the pages freed in a row, refills double.
 *
 * Units: base pages everywhere, but for refill and depot counts and the lists
 * of a split, which are blocks of the order asked for.
 */
#ifndef PCPI_POLICY_H
#define PCPI_POLICY_H

#include "base.h"

/* What one cache may move at once is batch << PCPI_SCALE_MAX: the bound of the
 * exponents and of MODERN's free_count. */
#define PCPI_SCALE_MAX 5u

/* Default gap between two watermarks, in 1/10000 of the zone. */
#define PCPI_WATERMARK_SCALE 10u

/* The part of a zone that all its caches may hold together: 1/8. */
#define PCPI_CACHE_SHARE 8u

/* What was not used for so many ticks goes back, and from then on a part of it
 * at every so manieth. */
#define PCPI_IDLE_TICKS 3u

/* A list that was allocated from less than so many ticks ago keeps a refill. */
#define PCPI_KEEP_TICKS 2u

struct pcpi_watermarks {
	uint64_t min, low, high, promo;
};

/* What a zone prescribes to its caches.  policy: LEGACY or MODERN. */
struct pcpi_pageset {
	uint32_t high_min, high_max; /* equal: no auto-tuning             */
	uint32_t batch;              /* transfer unit to the buddy        */
	uint32_t depot_batch;        /* transfer unit to the depot        */
	bool legacy;
};

/* What a pageset is derived from. */
struct pcpi_pageset_inputs {
	uint64_t managed_pages; /* of the zone, backed                      */
	uint64_t page_bytes;    /* base page, a power of two                */
	uint64_t low_pages;     /* the zone's low watermark                 */
	uint32_t node_cpus;     /* allowed CPUs of the zone's node          */
	uint32_t all_cpus;      /* allowed CPUs; used where node_cpus is 0  */
	uint32_t threads;       /* live threads with a cache of this zone   */
	uint32_t fraction;      /* knob; 0: default, else 8 or more         */
	uint32_t batch_pages;   /* knob; 0: derive                          */
	uint32_t high_pages;    /* knob; 0: derive                          */
	uint32_t ring_capacity_pages; /* what one cache can hold at all     */
	bool legacy;
};

/* One cache's adaptive state; owner's copy.  Zero is a valid start. */
struct pcpi_pcp_state {
	uint32_t count;            /* pages in the cache                     */
	uint32_t high;             /* current bound                          */
	uint32_t free_count;       /* MODERN: pages freed in a row, decaying */
	uint32_t free_factor;      /* LEGACY: exponent of the drain          */
	uint32_t alloc_factor;     /* MODERN: exponent of the refill         */
	bool prev_free_high_order; /* last free was of order 1..3        */
	bool free_high_batch;      /* large data cache slice             */
};

enum pcpi_zone_flags {
	PCPI_ZONE_BELOW_HIGH = 1u,     /* free pages fail the high watermark */
	PCPI_ZONE_RECLAIM_ACTIVE = 2u, /* arenas are being given back        */
};

/* What a tick asks of a cache. */
struct pcpi_decay {
	uint32_t pages; /* to drain now                                  */
	bool more;      /* false: idle, further ticks would do nothing   */
};

/* How long a store of pages has been left alone; zero is a valid start. */
struct pcpi_idle {
	uint8_t expire; /* ticks until it gives, 0: it doesn't           */
	bool gave;      /* at the last tick                              */
};

/* The lists among which a drain is divided. */
struct pcpi_split_shape {
	uint32_t lists;        /* at least 1                               */
	uint32_t quantum;      /* pages a turn; a multiple of each block   */
	const uint8_t *orders; /* orders[lists]: log2 of a block's pages   */
};

/* Where the last split stopped; zero is a valid start.  Belongs to one shape. */
struct pcpi_split_cursor {
	uint32_t list;  /* whose turn it is                              */
	uint32_t spent; /* pages of the quantum that it has already given */
};

/* ---- Sizing (spec A, design D6, D7) -------------------------------------- */

/*
 * The zone's watermarks: gap = max(min / 4, managed * scale / 10000), each mark
 * one gap above the last.  Spec A.
 * min_pages 0 derives min = int_sqrt(16 * KiB of the zone) KiB, clamped to
 * 128 KiB..256 MiB (design D7).  Either way min is at least one page and at
 * most a quarter of the zone, and no mark exceeds the zone, so that
 * 0 < min <= low <= high <= promo <= managed holds for every zone that isn't
 * empty; of an empty one all are 0.
 * Units: pages; scale_factor in 1/10000, more than 10000 counts as 10000.
 */
struct pcpi_watermarks pcpi_policy_watermarks(uint64_t managed_pages,
					      uint64_t page_bytes,
					      uint64_t min_pages,
					      uint32_t scale_factor);

/*
 * Transfer unit between a cache and the buddy: a quarter of a thousandth of
 * the zone or of 1 MiB, as 2^n - 1.  Spec A.  Returns 1..63 at 4 KiB pages.
 */
uint32_t pcpi_policy_batch(uint64_t managed_pages, uint64_t page_bytes);

/* A cache's bound up to Linux 5.13, 6 * batch.  Spec A. */
uint32_t pcpi_policy_legacy_high(uint32_t batch);

/* Whether the knob high_fraction has a value that can be: 0 or at least 8, so
 * that caches never hold more than 1/8 of a zone.  Spec A. */
bool pcpi_policy_fraction_valid(uint32_t fraction);

/*
 * A cache's share of the low watermark, or of managed / fraction: divided by
 * the node's CPUs, by all_cpus where the node has none, at least 4 * batch.
 * Spec A.
 * Requires: cpu_online is 1 only while a CPU of this very node comes online
 * and node_cpus doesn't count it yet.  (Linux adds it for every node, and a
 * node without CPUs then gives its whole low watermark to each cache.)
 */
uint64_t pcpi_policy_zone_highsize(uint64_t managed_pages, uint64_t low_pages,
				   uint32_t batch, uint32_t node_cpus,
				   uint32_t cpu_online, uint32_t all_cpus,
				   uint32_t fraction);

/*
 * All a zone prescribes to its caches.  Spec A, design D7.
 * The sharers are the node's CPUs (all CPUs where it has none) or the threads,
 * whichever are more; sharers * high_max <= managed / 8 holds always.  Where
 * four batches are more than one sharer's part, batch is halved until they
 * fit; where not even batch 1 fits, high is 0 and nothing is cached.
 * A knob wins over what is derived, high_pages over fraction, and is bounded
 * in the same way; a derived batch is halved to fit high_pages, too.
 */
struct pcpi_pageset pcpi_policy_pageset(const struct pcpi_pageset_inputs *in);

/*
 * Transfer unit between a cache and the depot: 256 pages, halved down to 32 and
 * then 8 while threads * 2 * unit exceeds 1/8 of the zone.  Design D6, with larger
 * units where there is room: docs/design.md, "Depot".
 */
uint32_t pcpi_policy_depot_batch(uint32_t threads, uint64_t managed_pages);

/* The same unit in blocks of an order: depot_batch >> order, at least 4 where
 * order isn't 0.  Design D6. */
uint32_t pcpi_policy_depot_blocks(uint32_t depot_batch, unsigned order);

/* Pages that the depot may hold: 1/4 of the zone; all of a heap that can't
 * grow (fixed), for anyone can take them from there.  Design D6. */
uint64_t pcpi_policy_depot_limit(uint64_t managed_pages, bool fixed);

/*
 * Pages that a node needs so that rings of rx and tx descriptors are full, each of
 * the threads has a burst in its hands and its cache is at its bound, and nobody
 * lacks one: what is in use, a private batch a thread on its way between cache and
 * depot, and the shares of the caches (1/8) and the depot (1/4) on top of them:
 * (rx + tx + threads * (burst + 64)) * 8 / 5.  Design D15.
 * Never falls with any argument; more than 2^64 counts as UINT64_MAX.
 */
uint64_t pcpi_policy_heap_pages(uint32_t rx, uint32_t tx, uint32_t threads,
				uint32_t burst);

/* Whether a cache keeps a batch of freed high-order blocks before it empties
 * itself: its CPU's slice of the data cache exceeds three batches.  Spec B5. */
bool pcpi_policy_free_high_batch(uint64_t slice_bytes, uint64_t page_bytes,
				 uint32_t batch);

/* ---- Deciding (spec B and C) --------------------------------------------- */

/*
 * Applies n frees of one order in a row to the factors; count is the caller's.
 * MODERN: alloc_factor is halved by each, free_count grows by the pages while
 * it is below batch << 5.  Spec B2, B3, B5.
 */
void pcpi_policy_note_frees(struct pcpi_pcp_state *state,
			    const struct pcpi_pageset *ps, uint32_t blocks,
			    unsigned order);

/* Applies n single allocations in a row to the factors; count is the caller's.
 * LEGACY: free_factor is halved by each.  MODERN: free_count.  Spec B1, B2. */
void pcpi_policy_note_allocs(struct pcpi_pcp_state *state, uint32_t blocks);

/*
 * Applies allocs and frees that came in an order that nobody noted, freed_pages
 * pages in all: what the factors are exactly; free_count exactly where only one
 * of the two came, else as if the frees were spread evenly between the allocs.
 */
void pcpi_policy_catch_up(struct pcpi_pcp_state *state,
			  const struct pcpi_pageset *ps, uint64_t allocs,
			  uint64_t frees, uint64_t freed_pages);

/*
 * Pages that a pure freer hands to the depot, 0 before a depot batch is full:
 * the batch that came in, and as much again of what it had before.  Design D6.
 */
uint32_t pcpi_policy_hand_over(uint32_t count, uint32_t depot_batch);

/* Pages that a cache of count pages may take from the depot beyond what was
 * asked for: up to its bound, a batch where it is full of other orders.  Design
 * D7. */
uint32_t pcpi_policy_room(const struct pcpi_pageset *ps, uint32_t count);

/* Whether caches are so small that a block of each order beside their lists
 * would be much.  Design D7. */
bool pcpi_policy_is_tight(uint32_t high_max);

/*
 * Whether a free of a block of this order must empty the cache, because high
 * orders are freed in a row; never for LEGACY.  Spec C.
 * Requires: count includes the block, the other fields don't: ask before
 * pcpi_policy_note_frees() of this block.
 */
bool pcpi_policy_free_high(const struct pcpi_pcp_state *state,
			   const struct pcpi_pageset *ps, unsigned order);

/*
 * The count from which pcpi_policy_drain() drains when free_high is false:
 * what a hot path may compare with instead of asking.  Changes nothing.
 * Spec B1, B2.
 */
uint32_t pcpi_policy_drain_bound(const struct pcpi_pcp_state *state,
				 const struct pcpi_pageset *ps,
				 unsigned zone_flags);

/*
 * Pages to drain after a free that is already counted and noted; 0: none.
 * Moves high (MODERN) or free_factor (LEGACY).  Spec B1, B2.
 * pure_freer: high doesn't grow (design D6; LEGACY ignores it, as it does
 * zone_flags and free_high).
 * Returns at most count, and at least 1 once the bound is reached.  One call
 * is one decision of the kernel's: a bulk free may leave count above the bound
 * and asks again.
 */
uint32_t pcpi_policy_drain(struct pcpi_pcp_state *state,
			   const struct pcpi_pageset *ps, unsigned zone_flags,
			   bool free_high, bool pure_freer);

/*
 * Blocks to take from the buddy for an allocation that found its list empty,
 * the one to be handed out included.  Moves high and alloc_factor (MODERN).
 * Spec B1, B3.
 * Returns at least 1; order 0 never passes max(high - batch, count + batch).
 */
uint32_t pcpi_policy_refill(struct pcpi_pcp_state *state,
			    const struct pcpi_pageset *ps, unsigned zone_flags,
			    unsigned order);

/*
 * One tick (a second): high sinks by an eighth towards high_min, but by no more
 * than leaves batch << 5 pages to drain.  Spec B4, F6.
 * Returns the pages above it, to be drained in chunks of batch.
 */
struct pcpi_decay pcpi_policy_decay(struct pcpi_pcp_state *state,
				    const struct pcpi_pageset *ps);

/*
 * One tick of a store of `count` pages, `used` since the last: pages that it
 * gives back now, at most `most`.  Spec F: the first at the third tick, and the
 * next three later, as what was given counts as use.
 */
uint32_t pcpi_policy_idle(struct pcpi_idle *idle, bool used, uint32_t count,
			  uint32_t most);

/* Pages that a cache moves at once at most, batch << 5. */
uint32_t pcpi_policy_scaled(const struct pcpi_pageset *ps);

/* ---- Sharing (spec C, F1-F5) --------------------------------------------- */

/* The lists of a cache: orders 0..PCPI_PCP_ORDERS-1, a turn is 8 pages. */
extern const struct pcpi_split_shape pcpi_split_cache;

/*
 * Blocks of a list that a drain must leave to it: a refill's worth while the
 * list was allocated from within the last PCPI_KEEP_TICKS ticks, else none.
 * Order 0 keeps nothing: it is the bursts of order 0 that the others are
 * protected from.  Spec F4.
 */
uint32_t pcpi_policy_kept(const struct pcpi_pageset *ps, unsigned order,
			  uint32_t len, uint32_t ticks_since_alloc);

/*
 * Divides a drain of budget pages among lists, in turns of quantum pages.
 * Spec F1-F4.
 * Shape: lens, kept, take have shape->lists entries, in blocks; kept may be
 * NULL.  kept[i] blocks stay, unless nothing else is left in any list.
 * Requires: all lists together hold less than 2^32 pages.
 * Returns the pages in take: with B = min(budget, what isn't kept), at least
 * B and at most B plus the largest block less one page.
 * Cost: a constant number of steps for a shape, whatever the budget.
 */
uint32_t pcpi_policy_split(const struct pcpi_split_shape *shape,
			   const uint32_t *lens, const uint32_t *kept,
			   uint32_t budget, struct pcpi_split_cursor *cursor,
			   uint32_t *take);

#endif
