/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zone.h - one node's part of a heap: buddy, watermarks, growth.  Layer 3.
 *
 * Owns: the only buddy of the node and the only way to its lock; the numbers
 * that the node prescribes to its caches; the node's list of arenas; the order
 * bytes of blocks that enter and leave the buddy.  Embeds the node's depots,
 * which direct.c moves blocks through; the zone itself never does.
 *
 *     caches <-> depots        take_bulk / give_bulk        grow
 *                   \______________ zone ______________________ arena
 *                                buddy + lock
 *
 * Z1  managed = free + (cached + depot + handed out); managed and free change
 *     under the zone lock only.
 * Z2  The order bytes of a block are set after it left the buddy and cleared
 *     before it enters, both by the thread that holds it.
 * Z3  The lock is held for at most max(batch, 64) pages of work, or one block,
 *     or 64 chunks where an arena is added or free blocks are counted.
 * Z4  The pageset follows managed and the number of live caches.
 *
 * Concurrency: any thread.  Locks: zone lock (rank ZONE), grow lock (rank
 * GROW, held across the population of an arena; no allocation that can be
 * served waits for it).  The arena list is an RCU list: added under the grow
 * lock, walked in a read-side section.
 * Failure: take returns fewer, grow a negative errno.
 * Proved by tests/unit/test_zone.c and tests/model/.
 */
#ifndef PCPI_ZONE_H
#define PCPI_ZONE_H

#include <urcu/list.h>

#include "arena.h"
#include "buddy.h"
#include "checks.h"
#include "depot.h"
#include "lock.h"
#include "policy.h"
#include "quarantine.h"

/* Ring room beyond a cache's high: what a refill and one chunk of a bulk free
 * may add before the threshold is looked at. */
#define PCPI_RING_MARGIN 512u

/* A ring has at most 65,536 entries, which bounds a cache's high. */
#define PCPI_CACHE_PAGES_MAX (65536u - PCPI_RING_MARGIN)

/* What a zone is given once. */
struct pcpi_zone_config {
	unsigned position; /* among the heap's nodes */
	unsigned os_node;
	unsigned node_cpus, all_cpus; /* allowed ones; node_cpus may be 0 */
	unsigned batch_pages, high_pages, high_fraction;
	bool legacy, fixed;
	uint64_t max_pages;
	struct pcpi_checks *checks; /* of a watched heap, or NULL */
};

struct pcpi_zone {
	/* c: fixed after init, z: zone lock, g: grow lock, a: atomic */
	struct pcpi_lock lock PCPI_ALIGNED(PCPI_CACHELINE);
	struct pcpi_buddy buddy;	   /* z */
	uint64_t locks, contended;	   /* z, read by anyone */
	uint64_t managed_pages;		   /* z, read by anyone: Z1 */
	uint64_t free_pages;		   /* z, read by anyone: the buddy's */
	struct pcpi_watermarks marks;	   /* z, read by anyone */
	struct pcpi_pageset pageset;	   /* z, read by anyone */
	uint32_t depot_limit;		   /* z, read by anyone: pages */
	uint32_t flags;			   /* z, read by anyone: pcpi_zone_flags */
	uint32_t live_caches;		   /* a */

	struct pcpi_zone_config config PCPI_ALIGNED(PCPI_CACHELINE); /* c */
	struct pcpi_space *space;	   /* c */
	uint8_t *orders;		   /* c: page.h */
	uint32_t first_pfn, nr_pfns;	   /* c */
	void *memory;			   /* c: depots' slots and arena_pool */
	size_t memory_bytes;		   /* c */

	/* Traffic that goes around the caches. */
	uint64_t direct_allocs, direct_frees; /* a: blocks */
	uint64_t numa_miss, numa_foreign;     /* a: blocks */
	uint64_t depot_gets, depot_puts;      /* a: batches of no cache */

	struct pcpi_lock grow_lock;
	struct cds_list_head arenas; /* g, RCU */
	struct pcpi_arena *arena_pool; /* g: [nr_arenas] used so far */
	uint32_t nr_arenas;	       /* g, read by anyone */

	struct pcpi_depot depots[PCPI_PCP_ORDERS];
	struct pcpi_quarantine *quarantine; /* c: of a watched heap, or NULL */
};

/* buddy_meta is zero memory of pcpi_buddy_meta_bytes().  Returns 0 or -ENOMEM
 * with nothing left behind. */
int pcpi_zone_init(struct pcpi_zone *z, const struct pcpi_zone_config *config,
		   struct pcpi_space *space, uint8_t *orders, void *buddy_meta,
		   uint32_t first_pfn, uint32_t nr_pfns);

/* Arenas themselves go with their space. */
void pcpi_zone_fini(struct pcpi_zone *z);

/*
 * Takes up to n blocks, out[0..]; fewer only when there are no more.  *broken
 * (may be NULL) becomes true when a larger block had to be split for them.
 */
uint32_t pcpi_zone_take_bulk(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			     uint32_t n, bool *broken);

/* Gives n blocks of one order back; any order of pfns. */
void pcpi_zone_give_bulk(struct pcpi_zone *z, unsigned order,
			 const uint32_t *pfns, uint32_t n);

/*
 * Adds an arena of about `bytes` (at least one block of the top order); with
 * exact not less.  seen_managed is what the caller saw when it failed: when
 * another thread has grown since, nothing is added.
 * Returns 0, -ENOMEM, or -ENOSPC at the maximum.  *grown: pages added.
 */
int pcpi_zone_grow(struct pcpi_zone *z, uint64_t seen_managed, uint64_t bytes,
		   bool exact, uint64_t *grown);

/* A cache came (+1) or went (-1); returns true when the caches' bounds fell,
 * so that others may hold too much. */
bool pcpi_zone_caches_changed(struct pcpi_zone *z, int by);

/* A copy of the numbers for caches. */
struct pcpi_pageset pcpi_zone_pageset(const struct pcpi_zone *z);

/* The largest high that a cache of the zone may ever get, however few caches
 * there are then: sizes its rings, which are touched only as far as used. */
uint32_t pcpi_zone_high_bound(const struct pcpi_zone *z);

/* Pages in the depots; may race. */
uint64_t pcpi_zone_depot_pages(const struct pcpi_zone *z);

/* Adds the free blocks of each order; holds the lock for 64 chunks at a time. */
void pcpi_zone_count_free(struct pcpi_zone *z,
			  uint64_t counts[PCPI_MAX_ORDER + 1]);

bool pcpi_zone_check(struct pcpi_zone *z);

#endif
