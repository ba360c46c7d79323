/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool_table.h - a packet pool as a structure, and the table of a heap's
 * pools.  Layer 3.
 *
 * Owns: which pools a heap has, their numbers, the array that says whose a page is
 * (page_pool_ref.h), and what ticks and forks do with pools.  What a pool does is
 * page_pool.h.
 *
 *     one mapping a heap, at its first pool      one mapping a pool, one its ring
 *     [pools[4096] | 16 bytes for each page]     [struct pcpa_pool]  [slots]
 *
 * PT1  A pool is in the table from its creation to its end, at the place that its
 *      pages' words have.
 * PT2  A number is used again when no page has it.
 *
 * Concurrency: POOLS for the table; entries are read without by who has one of the
 * pool's pages, which keeps the pool (page_pool_end.c).
 * Failure: -ENOMEM, -ENOSPC.  Cost: 16 bytes of address space a page of the heap's
 * maximum, of which only what pools' pages use is touched.
 * Proved by tests/unit/test_page_pool.c, tests/conc/page_pool.c.
 */
#ifndef PCPI_PAGE_POOL_TABLE_H
#define PCPI_PAGE_POOL_TABLE_H

#include "base.h"
#include "lock.h"
#include "page_pool_ref.h"
#include "page_pool_ring.h"

/* The cache, and how much comes at once: the kernel's. */
#define PCPI_POOL_CACHE 128u
#define PCPI_POOL_REFILL 64u
#define PCPI_POOL_RING_SLOTS 1024u
#define PCPI_POOL_RING_MAX 16384u

#define PCPI_POOL_COLOURS 16u
#define PCPI_POOL_COLOUR_BYTES PCPI_CACHELINE

#define PCPI_POOLS_MAX 4096u

/* After its destruction a pool tells so often that it waits. */
#define PCPI_POOL_WARN_NS (UINT64_C(60) * 1000000000)

/* Not an owner: the pool is ending, or is another process's. */
#define PCPI_POOL_NOBODY ((const void *)1)

/* Who takes users off pages that have more than one (page_pool.h, PP6). */
enum pcpi_pool_parts {
	PCPI_PARTS_OWNERS,  /* the owner alone, by plain stores */
	PCPI_PARTS_CLAIMED, /* somebody else wants to: the owner by atomic steps */
	PCPI_PARTS_SHARED,  /* anybody, by atomic steps */
};

struct pcpa_heap;
struct pcpi_zone;

/* c: fixed after creation; o: the owner's; p: the ring's producer lock; a: atomic. */
struct pcpa_pool {
	/* Read by everybody's puts, and hardly ever written. */
	const void *hit_owner;	      /* a: as owner; NULL where nobody may hit */
	char *base;		      /* c: the heap's */
	struct pcpi_pool_page *pages; /* c: [nr_pfns] */
	uint64_t nr_pfns;	      /* c */
	uint64_t mine;		      /* c: word of a page that the pool has alone */
	uint32_t page_shift;	      /* c */
	uint32_t order;		      /* c: of a page of the pool's */
	uint32_t tail_mask;	      /* c: 2^order - 1 */
	uint32_t colour_mask;	      /* c: colours - 1 */
	uint32_t parts;		      /* a: enum pcpi_pool_parts */

	/* The owner's. */
	uint32_t count PCPI_ALIGNED(PCPI_CACHELINE); /* o */
	unsigned frag_users;			     /* o */
	uint32_t counting;			     /* a: its mark, PP6 */
	uint64_t alloc_fast, recycle_cached;	     /* o */
	uint64_t alloc_slow, alloc_slow_ho;	     /* o */
	uint64_t alloc_empty, alloc_refill;	     /* o */
	uint64_t alloc_waive, recycle_cache_full;    /* o */
	void *frag_page;			     /* o: fragments come off it */
	struct pcpi_pool_page *frag_counts;	     /* o: its counts */
	size_t frag_offset, frag_end;		     /* o: what is left of it */
	size_t align_bytes, page_bytes;		     /* c: of fragments, a page */
	void *cache[PCPI_POOL_CACHE];		     /* o: the last is the next */

	struct pcpi_pool_ring ring;
	struct pcpi_pool_count count_out; /* a: and one for the pool itself */
	uint64_t recycle_ring, recycle_ring_full; /* p, read by anyone */
	uint64_t recycle_released_ref;		  /* a */
	uint64_t bad_puts;			  /* a */

	struct pcpa_heap *heap PCPI_ALIGNED(PCPI_CACHELINE); /* c */
	const void *owner;	/* a: thread; NULL: the next that gets */
	unsigned id;		/* c: PT1 */
	const struct pcpi_zone *zone; /* c: where pages shall be; NULL: any */
	unsigned alloc_flags;	/* c */
	bool checked;		/* c: the heap has PCPA_HEAP_CHECKS */
	bool said;		/* a: of bad puts */
	bool ending;		/* p, read by anyone: destroyed, but not over */
	unsigned claims;	/* a: destroys that it takes */
	uint64_t ending_ns;	/* when that was */
	uint64_t warn_ns;	/* a: when to tell of it */
	size_t headroom_bytes, data_bytes, tailroom_bytes; /* c */
	size_t slots_bytes;	/* o */
	size_t bytes;		/* c: of this mapping */
};

/* A heap's pools. */
struct pcpi_pools {
	struct pcpi_lock lock;
	struct pcpa_pool **pools;     /* lock: [PCPI_POOLS_MAX], NULL: free */
	struct pcpi_pool_page *pages; /* a: NULL before the first pool */
	size_t bytes;		      /* lock */
	unsigned count;		      /* lock, read by anyone */
	unsigned ending;	      /* lock, read by anyone */
};

void pcpi_pools_init(struct pcpi_pools *t);

/* Requires that there is no pool. */
void pcpi_pools_fini(struct pcpi_pools *t);

/* Adds a pool and sets its id, mine and pages.  0, -ENOSPC or -ENOMEM. */
int pcpi_pools_add(struct pcpi_pools *t, struct pcpa_pool *pool,
		   uint64_t nr_pfns);

void pcpi_pools_remove(struct pcpi_pools *t, struct pcpa_pool *pool);

/* A pool waits for its pages from now on. */
void pcpi_pools_ending(struct pcpi_pools *t);

/* The pool of a number that a page's word has; requires such a page. */
PCPI_INLINE struct pcpa_pool *pcpi_pools_at(const struct pcpi_pools *t,
					    unsigned id)
{
	return t->pools[id];
}

/* The array of pages' words, NULL before the heap's first pool. */
PCPI_INLINE struct pcpi_pool_page *pcpi_pools_pages(const struct pcpi_pools *t)
{
	/* acquire: pairs with page_pool_table.c's map_locked(). */
	return pcpi_load_acquire(&t->pages);
}

/* Whether there are any.  relaxed: creations are over when a heap ends. */
PCPI_INLINE bool pcpi_pools_any(const struct pcpi_pools *t)
{
	return pcpi_load_relaxed(&t->count) > 0;
}

/* Once a second: tells of pools that have waited too long. */
void pcpi_pools_tick(struct pcpi_pools *t);

/* Tells of one, if that is due: the caller has one of its pages. */
void pcpi_pool_overdue(struct pcpa_pool *pool);

/* Around a fork, after which no ring is half done; and in the child, whose calls fail
 * where it has not inherited the pages. */
void pcpi_pools_freeze(struct pcpi_pools *t);
void pcpi_pools_thaw(struct pcpi_pools *t);
void pcpi_pools_forked(struct pcpi_pools *t, bool inherited);

#endif
