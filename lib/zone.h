/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zone.h - one node's part of a heap: buddy, watermarks, growth.  Layer 3.
 *
 * Owns: the only buddy of the node and the only way to its lock; the numbers
 * that the node prescribes to its caches; the node's list of arenas; the order
 * bytes of blocks that enter and leave the buddy.  Embeds the node's depots,
 * which direct.c moves blocks through; the zone itself never does.
 *
 *     caches <-> depots        take_bulk / give_bulk        grow, trim
 *                   \______________ zone ______________________ arena
 *                                buddy + lock
 *
 * Z1  managed = free + (cached + depot + handed out); managed and free change
 *     under the zone lock only.
 * Z2  The order bytes of a block are set after it left the buddy and cleared
 *     before it enters, both by the thread that holds it.
 * Z3  The lock is held for at most max(batch, 64) pages of work, or one block,
 *     or 64 chunks where an arena is added or free blocks are counted.
 * Z4  The pageset follows managed, the processors and the number of live caches; while caches are
 *     disabled it is that of caches which hold nothing, and follows at the end.
 * Z5  With a reserve, which is then the min watermark, nothing but
 *     pcpi_zone_take_reserve() and a try that says so leaves less free.
 * Z6  Free pages of an isolated range are in nobody's reach: they are taken in
 *     the hold in which they come.
 * Z7  While a subscriber is told of a new arena, or of one that is to go, no lock
 *     but the turn is held; others may grow then, but wait 10 ms for what is under
 *     way.
 *
 * Concurrency: any thread.  Locks: zone lock (rank ZONE), grow lock (rank
 * GROW, held across the population of an arena, or while 64 MiB are given back;
 * no allocation that can be served waits for it).  The arena list is an RCU list:
 * changed under the grow lock, walked in a read-side section; an arena of which
 * a part is given back is replaced by what is left (zone_trim.c).
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
#include "notify.h"
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
	unsigned node_cpus, all_cpus; /* at first: see struct pcpi_zone */
	unsigned batch_pages, high_pages, high_fraction;
	unsigned reserve_pages; /* 0: none */
	bool legacy, fixed;
	uint64_t max_pages;
	struct pcpi_checks *checks; /* of a watched heap, or NULL */
	struct pcpi_notify *notify; /* the heap's, or NULL */
};

/* Where a contiguous range is to be looked for. */
struct pcpi_search {
	uint32_t from, end;    /* page indices, in one arena */
	uint32_t pages;	       /* at least 1 */
	uint64_t align_pages;  /* of addresses; a power of two */
	const uint32_t *used;  /* [nr_used] pages that no candidate has */
	unsigned nr_used;
};

/* A candidate, by how many of its pages are not free. */
struct pcpi_candidate {
	uint32_t pfn;
	uint32_t missing; /* more than pages: there is none */
};

/* A range whose free pages nobody else gets. */
struct pcpi_isolation {
	uint32_t pfn, pages; /* 0 pages: none */
	uint32_t got;	     /* a: 0 again when what isn't kept is back */
	uint32_t ends;	     /* a: isolations that have ended so far */
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
	uint64_t reserve;		   /* z, read by anyone: Z5 */
	uint8_t level[3];		   /* a: pcpi_level, by watcher (watch.h) */
	uint32_t live_caches;		   /* a */
	uint32_t node_cpus, all_cpus;	   /* z, read by anyone: allowed ones that
					    * are online; node_cpus may be 0 */
	uint32_t disable_depth;		   /* a: threads lock of the heap */
	uint32_t disables_done;		   /* that lock: of these, DS4 */
	struct pcpi_isolation isolated;	   /* z */

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
	uint64_t deferred_pages;	      /* a: pcp_defer.c */

	/* When allocations last looked further, in vain (exhaust.c). */
	uint64_t lull_ns, lull_left;   /* a: end of a sweep, pages it left */
	uint64_t grow_failed_ns;       /* a */
	uint32_t grow_failures;	       /* a: in a row */

	struct pcpi_lock grow_lock;
	struct cds_list_head arenas; /* g, RCU */
	struct pcpi_arena *arena_pool; /* g: [arenas_used] used so far */
	struct pcpi_arena *arena_idle; /* g: of these, not in use, by next */
	uint32_t arenas_used;	       /* g */
	uint32_t nr_arenas;	       /* g, read by anyone */
	uint64_t adding_pages;	       /* g: populated, not listed: Z7 */
	uint64_t removing_pages;       /* g: with the subscriber: Z7 */
	uint64_t trim_failed;	       /* g, read by anyone: refusals */
	uint64_t grow_vetoed, trim_vetoed; /* ditto, by the subscriber */

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

/* The same with what the reserve keeps. */
uint32_t pcpi_zone_take_reserve(struct pcpi_zone *z, unsigned order,
				uint32_t *pfns, uint32_t n);

/* Without a wait: up to n blocks, from the reserve too if said; *busy becomes true
 * where the lock was not free. */
uint32_t pcpi_zone_try_take(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			    uint32_t n, bool reserve, bool *busy);

/* Whether the reserve lacks pages: what comes back goes there first. */
PCPI_INLINE bool pcpi_zone_lacks_reserve(const struct pcpi_zone *z)
{
	uint64_t reserve = pcpi_load_relaxed(&z->reserve); /* relaxed: a hint */

	return pcpi_unlikely(reserve > 0) &&
	       pcpi_load_relaxed(&z->free_pages) < reserve; /* relaxed: ditto */
}

/* Gives n blocks of one order back; any order of pfns. */
void pcpi_zone_give_bulk(struct pcpi_zone *z, unsigned order,
			 const uint32_t *pfns, uint32_t n);

/*
 * Adds an arena of about `bytes` (at least one block of the top order); with
 * exact not less.  seen_managed is what the caller saw when it failed: when
 * another thread has grown since, nothing is added.
 * Returns 0, -ENOMEM, -ENOSPC at the maximum, or the refusal of the heap's
 * subscriber.  *grown: pages added.
 */
int pcpi_zone_grow(struct pcpi_zone *z, uint64_t seen_managed, uint64_t bytes,
		   bool exact, uint64_t *grown);

/*
 * Gives whole granules of arenas whose pages are all free back to the kernel,
 * at most most_pages, the latest arenas first and from their ends.  The zone's
 * numbers follow.  What the kernel refuses stays, and is counted in trim_failed; so
 * does what the heap's subscriber refuses, in trim_vetoed.
 * Returns the pages given.
 * Locks: the turn; and trim_lock, which is dropped while the subscriber runs.
 * Requires that the caller is in no read-side section.
 */
uint64_t pcpi_zone_trim(struct pcpi_zone *z, uint64_t most_pages,
			struct pcpi_lock *trim_lock);

/* A cache came (+1) or went (-1); returns true when the caches' bounds fell,
 * so that others may hold too much. */
bool pcpi_zone_caches_changed(struct pcpi_zone *z, int by);

/* Processors went offline or came; returns as the last. */
bool pcpi_zone_cpus_changed(struct pcpi_zone *z, uint32_t node_cpus,
			    uint32_t all_cpus);

/* One disable more (+1) or less (-1): depots and numbers follow.  What is in the
 * depots stays there. */
void pcpi_zone_disable(struct pcpi_zone *z, int by);

/* With a cache's mark set after it saw no claim: whether blocks of the zone
 * must stay out of it (docs/memory-order.md, "Disabled caches"). */
static inline bool pcpi_zone_is_disabled(const struct pcpi_zone *z)
{
	/* acquire: pairs with pcpi_zone_disable(). */
	return pcpi_load_acquire(&z->disable_depth) > 0;
}

/* A copy of the numbers for caches. */
PCPI_INLINE struct pcpi_pageset pcpi_zone_pageset(const struct pcpi_zone *z)
{
	return (struct pcpi_pageset){
		/* relaxed: see zone.c's pageset_publish(). */
		.high_min = pcpi_load_relaxed(&z->pageset.high_min),
		.high_max = pcpi_load_relaxed(&z->pageset.high_max),
		.batch = pcpi_load_relaxed(&z->pageset.batch),
		.depot_batch = pcpi_load_relaxed(&z->pageset.depot_batch),
		.legacy = z->config.legacy,
	};
}

/* The largest high that a cache of the zone may ever get, however few caches
 * there are then: sizes its rings, which are touched only as far as used. */
uint32_t pcpi_zone_high_bound(const struct pcpi_zone *z);

/* Pages in the depots; may race. */
uint64_t pcpi_zone_depot_pages(const struct pcpi_zone *z);

/* Adds the free blocks of each order; holds the lock for 64 chunks at a time. */
void pcpi_zone_count_free(struct pcpi_zone *z,
			  uint64_t counts[PCPI_MAX_ORDER + 1]);

/* ---- Ranges of any length (zone_range.c) ---- */

/* Looks for a candidate with fewer missing pages than *best has.  A hint: other
 * threads go on.  Cost: the bits of all candidates, 64 chunks a hold at most. */
void pcpi_zone_search(struct pcpi_zone *z, const struct pcpi_search *s,
		      struct pcpi_candidate *best);

/* Longest range for the next: one hold. */
uint32_t pcpi_zone_take_range_max(const struct pcpi_zone *z);

/* Takes a range that is all free; false: it isn't, nothing was done. */
bool pcpi_zone_take_range(struct pcpi_zone *z, uint32_t pfn, uint32_t pages,
			  uint64_t kept);

/* Gives a taken range back. */
void pcpi_zone_give_range(struct pcpi_zone *z, uint32_t pfn, uint32_t pages);

/*
 * Takes what is free of a range, and from now on what comes back of it; one
 * isolation a zone, kept by a lock of the caller.  Returns whether it is whole.
 */
bool pcpi_zone_isolate(struct pcpi_zone *z, uint32_t pfn, uint32_t pages);

/* Whether the isolated range is whole. */
bool pcpi_zone_isolated_whole(struct pcpi_zone *z);

/* Ends the isolation: with a whole range handed out, or with all that was taken
 * given back; then *missing is a page that was not there. */
bool pcpi_zone_isolate_end(struct pcpi_zone *z, uint64_t kept,
			   uint32_t *missing);

/* Pages, or blocks, have come into the buddy while a range is isolated. */
void pcpi_zone_isolate_part_locked(struct pcpi_zone *z, uint32_t pfn,
				   uint32_t pages);
void pcpi_zone_isolate_more_locked(struct pcpi_zone *z, unsigned order,
				   const uint32_t *pfns, uint32_t n);

/* The lock, for zone_range.c; the second also brings flags and hints up to
 * date. */
void pcpi_zone_hold(struct pcpi_zone *z);
void pcpi_zone_hold_end(struct pcpi_zone *z);

bool pcpi_zone_check(struct pcpi_zone *z);

/* ---- For zone_trim.c ---- */

/* Pages that become free at once, 64 chunks a hold. */
void pcpi_zone_settle(struct pcpi_zone *z, uint32_t first_pfn, uint32_t pages);

/* The opposite, in one hold, for pages of whole chunks that are all free; false,
 * and nothing is changed, where one isn't. */
bool pcpi_zone_unsettle(struct pcpi_zone *z, uint32_t first_pfn, uint32_t pages);

/* Caches keep less while it is on. */
void pcpi_zone_reclaim(struct pcpi_zone *z, bool on);

/* A record of an arena, not listed; there is always one.  And one that is no
 * longer listed, nor read by anyone. */
struct pcpi_arena *pcpi_zone_arena_take(struct pcpi_zone *z);
void pcpi_zone_arena_give(struct pcpi_zone *z, struct pcpi_arena *a);

/* Records that may wait for their last readers, and a few to split with. */
#define PCPI_ZONE_RETIRED_MAX 66u

/* Chunks that one hold of the lock may add or take out: Z3. */
#define PCPI_ZONE_HOLD_CHUNKS 64u

#endif
