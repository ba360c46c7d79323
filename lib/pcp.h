/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp.h - one thread's cache of one node's blocks.  Layer 4.
 *
 * Owns: the cache structure, its rings, the mark and the claim that say who
 * may touch them, and the moves between rings, depot and zone.  Contains no
 * threshold: policy says how many.  Does not know which thread, node or heap
 * asks (thread.c, route.c), nor when all caches are drained (sweep.c).
 *
 *                      pop  push                     orders 0..3, a ring each
 *                        ^  |        hot end
 *          refill  ----> [ h h w w c c ]
 *      depot, or the     cold end |
 *      zone in ascending order    +---> trim, flush: depot, or the zone
 *
 * Owner-biased access (design.md D5; proof in docs/memory-order.md).  The
 * owner sets `busy` with a plain store and then reads `claim`; a drainer sets
 * `claim`, has every processor pass a barrier (membarrier), and then reads
 * `busy`.  At least one of them sees the other.
 *
 * C1  The rings are touched only by the owner with busy set after it saw no
 *     CLAIMED, or by the one drainer that set CLAIMED and then saw busy clear.
 * C2  busy is never held across a lock, a system call, a claim or a callback.
 * C3  The owner never waits: on a claim it goes around its cache.
 * C4  count = sum of len << order, at every clearing of busy or CLAIMED.
 * C5  A ring operation commits with one store.
 * C6  Cache memory lives as long as its heap; adoption clears no claim.
 * C7  Where membarrier is refused, and with PCPA_HEAP_CHECKS, `claim` has SLOW
 *     set for good: the hot path always goes the slow way, which exchanges on
 *     the mark instead of storing it.
 *
 * Cost: a hit is some 25 instructions (pcp_hot.h); a refill or a hand-over two
 * lock operations a batch.  Failure: refill returns 0.
 * Proved by tests/unit/test_pcp.c, tests/conc/, tests/spin/claim.pml.
 */
#ifndef PCPI_PCP_H
#define PCPI_PCP_H

#include "base.h"
#include "policy.h"
#include "ring.h"
#include "trace.h"
#include "zone.h"

enum pcpi_claim {
	PCPI_CLAIM_NONE = 0,
	PCPI_CLAIM_CLAIMED = 1, /* a drainer is waiting for the mark, or inside */
	PCPI_CLAIM_PENDING = 2, /* it gave up: the owner flushes at its next call */
	PCPI_CLAIM_STATE = 3,	/* mask of the above */
	PCPI_CLAIM_SLOW = 4,	/* C7 */
};

/* Blocks moved at a time while the mark is held, and the size of the private
 * batches on the stack. */
#define PCPI_CHUNK 64u

struct pcpi_pcp_list {
	struct pcpi_ring ring;
	uint64_t allocs, frees; /* blocks, by the owner */
};

/* Why pages left a cache; indexes the counters. */
enum pcpi_drain_reason {
	PCPI_DRAIN_HIGH,
	PCPI_DRAIN_FREER,
	PCPI_DRAIN_FLUSH,
	PCPI_DRAIN_SWEEP,
	PCPI_DRAIN_REASONS,
};

/* What all caches of a heap share.  c: fixed after init. */
struct pcpi_pcp_env {
	struct pcpi_zone *zones; /* c: [nr_zones] */
	unsigned nr_zones;	 /* c */
	uint8_t *orders;	 /* c: page.h */
	const unsigned *window_zone; /* c: [nr_windows] position of the node */
	unsigned window_pfn_shift;  /* c: pfn >> this = window */
	bool checks;		 /* c: PCPA_HEAP_CHECKS */
	bool exchange;		 /* c: C7 */
	bool free_high_batch;	 /* c: a large data cache */
	struct pcpi_trace trace;
};

/* Blocks of one other node on their way home: a batch of each order. */
struct pcpi_outbox {
	uint32_t len[PCPI_PCP_ORDERS];
	uint64_t frees;
	uint32_t pfns[PCPI_PCP_ORDERS][PCPI_CHUNK];
};

/* o: owner with the mark, or the drainer (C1); c: fixed; a: atomic; r: owner,
 * read by anyone. */
struct pcpi_cache {
	/* First line: all that a hit of order 0 reads and writes. */
	uint8_t busy;	     /* a: set by the owner only */
	uint8_t claim;	     /* a: pcpi_claim */
	uint32_t count;	     /* o: pages */
	uint32_t limit;	     /* r: count at which a free looks at the policy */
	uint32_t free_count; /* r: pages freed in a row, halved by an alloc */
	uint32_t first_pfn, nr_pfns; /* c: of the zone */
	struct pcpi_pcp_list list[PCPI_PCP_ORDERS]; /* o */

	struct pcpi_pcp_env *env;   /* c */
	struct pcpi_zone *zone;	    /* c */
	struct pcpi_cache *root;    /* r: the owner's first cache of the heap */
	struct pcpi_cache **peers;  /* r: [nr_zones] the owner's others; in root */
	struct pcpi_outbox *outbox; /* o: [nr_zones], NULL with one zone */
	uint32_t high_cap;	    /* c: what the rings can hold */

	/* Policy state, owner only. */
	uint32_t high;
	uint32_t alloc_factor, free_factor;
	uint64_t frees_noted, allocs_noted; /* up to where factors decayed  */
	uint64_t allocs_at_drain, frees0_at_trim;
	uint64_t list_allocs[PCPI_PCP_ORDERS]; /* at list_tick */
	uint64_t list_tick[PCPI_PCP_ORDERS];
	struct pcpi_split_cursor cursor;

	/* Statistics. */
	uint64_t drains[PCPI_DRAIN_REASONS]; /* r; SWEEP by the drainer */
	uint64_t refills, depot_gets, depot_puts; /* r */
	uint64_t busy_skipped;			  /* drainer */
	bool claimed; /* drainer: by the sweep that runs (sweep.c) */

	/* Registry (thread.c). */
	struct cds_list_head registry; /* RCU, add-only */
	const void *owner;	       /* a: thread record, NULL: adoptable */
	int tid;		       /* r */
	size_t bytes;		       /* c: of the mapping it begins */
} PCPI_ALIGNED(PCPI_CACHELINE);

/* Bytes of a cache with its rings and outboxes, for a zone as it is now. */
size_t pcpi_cache_bytes(const struct pcpi_pcp_env *env,
			const struct pcpi_zone *zone);

/* Makes a cache in zero memory of pcpi_cache_bytes(). */
struct pcpi_cache *pcpi_cache_init(void *memory, struct pcpi_pcp_env *env,
				   struct pcpi_zone *zone);

/* A new owner takes what the rings still hold (C6). */
void pcpi_cache_adopt(struct pcpi_cache *c);

/* Owner: sets the mark.  False, without it, on a claim or when the caller is a
 * signal handler that interrupted the owner inside. */
bool pcpi_cache_enter(struct pcpi_cache *c);

void pcpi_cache_leave(struct pcpi_cache *c);

/* Owner: does what a drainer that gave up has asked for. */
void pcpi_cache_settle(struct pcpi_cache *c);

/* Owner: moves up to n blocks from the rings to pfns; 0 on a claim. */
uint32_t pcpi_cache_pop(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			uint32_t n);

/* Owner: takes what policy says from depot or zone, n >= 1 blocks at least
 * being wanted now.  Up to n of them go to pfns, the rest to the ring; returns
 * how many went to pfns, 0 when the node has none. */
uint32_t pcpi_cache_refill(struct pcpi_cache *c, unsigned order, uint32_t *pfns,
			   uint32_t n);

/* Owner: frees blocks of the cache's own zone, n <= PCPI_CHUNK. */
void pcpi_cache_push(struct pcpi_cache *c, unsigned order, const uint32_t *pfns,
		     uint32_t n);

/* Owner: frees one block of another zone. */
void pcpi_cache_push_remote(struct pcpi_cache *c, struct pcpi_zone *home,
			    unsigned order, uint32_t pfn);

/* Owner: count has reached limit by a free of this order. */
void pcpi_cache_trim(struct pcpi_cache *c, unsigned order);

/* Owner: everything to the depots. */
void pcpi_cache_flush(struct pcpi_cache *c);

/* The owner has ended, wherever it was: the mark is cleared, count set right
 * (C4), and everything goes to the depots. */
void pcpi_cache_abandon(struct pcpi_cache *c);

/* Drainer: claims the cache, NONE or PENDING before; false if it is claimed. */
bool pcpi_cache_claim(struct pcpi_cache *c);

/* Drainer: true once the owner is out (C1). */
bool pcpi_cache_claimed_quiet(const struct pcpi_cache *c);

/* Drainer, inside: everything to the zones; ends the claim.  Pages moved. */
uint64_t pcpi_cache_empty_claimed(struct pcpi_cache *c);

/* Drainer: leaves the rest to the owner. */
void pcpi_cache_claim_postpone(struct pcpi_cache *c);

/* Without a claim: asks the owner to flush at its next call (NO_IPI heaps). */
void pcpi_cache_ask(struct pcpi_cache *c);

/* Pages held, outboxes included; may race.  remote[zone] gets the outboxes'. */
uint64_t pcpi_cache_pages(const struct pcpi_cache *c, uint64_t *remote);

/* Blocks to and from a node around any cache. */
uint32_t pcpi_direct_take(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			  uint32_t n);
void pcpi_direct_give(struct pcpi_zone *z, unsigned order, const uint32_t *pfns,
		      uint32_t n);

/* Everything in a zone's depots to its buddy; pages moved. */
uint64_t pcpi_depots_empty(struct pcpi_zone *z);

/* Zone of a page. */
PCPI_INLINE struct pcpi_zone *pcpi_zone_of(const struct pcpi_pcp_env *env,
					   uint32_t pfn)
{
	return &env->zones[env->window_zone[pfn >> env->window_pfn_shift]];
}

/* Owner at rest, or claimed: C4. */
bool pcpi_cache_check(const struct pcpi_cache *c);

#endif
