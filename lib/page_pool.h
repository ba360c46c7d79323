/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool.h - packet buffers with the rules of the kernel's page_pool.  Layer 6.
 *
 * Owns: what becomes of a page that is wanted or comes back.
 *   page_pool.c         get and put
 *   page_pool_bulk.c    puts of many
 *   page_pool_frag.c    parts of pages
 *   page_pool_make.c    creation, layout, owners
 *   page_pool_end.c     the end, and pages that leave
 *   page_pool_stats.c   what is told
 * Below: page_pool_table.h, page_pool_ref.h, page_pool_ring.h.
 *
 *     get   cache -> fast
 *           ring: empty -> empty; else up to 64 of it to the cache, the last one is
 *           handed out -> refill; a page of a wrong node: let go, waive, no more
 *           heap: 64 by one call -> slow; order > 0: one -> slow_ho
 *     put   users left: nothing else
 *           one reference, not of the reserve: owner and cache has room -> cached,
 *             (cache_full) ring -> ring, (ring_full) let go
 *           else: released_ref, let go
 *
 * PP1  A page is in one place: out, in the cache, in the ring, the page of
 *      fragments.
 * PP2  Cache, fragments and the consuming side of the ring are the owner's alone.
 *      The owner is known by the address of its thread-local pcpi_table.
 * PP3  hold - release, less one for the pool itself, is the pages that came and have
 *      not been let go.  A page that is let go is counted before it goes to the heap,
 *      and after that step only the caller for which it was the last may touch the
 *      pool.
 * PP4  Once `ending` is set, under the producer's lock, nothing enters the ring.
 * PP5  On heaps with PCPA_HEAP_CHECKS (checked) nobody hits, and the word of a
 *      page that nobody has says IDLE.
 * PP6  A page has more than one user only while parts are cut off it or are out.  Until
 *      another thread puts a part of the pool's, the owner takes users off by plain
 *      stores under its mark; from then on everybody does by atomic steps, once the
 *      owner has been seen without the mark, or not for 0.1 s (docs/memory-order.md).  On heaps
 *      without membarrier or interruption it is so from the beginning.
 *
 * Concurrency: owners of pools by PP2, which detach and attach hand on; the ring's
 * locks; atomic words of pages and counts.  No lock is held across a call of the
 * heap.
 * Cost: a hit some 10 loads and stores.  Failure: the heap's, with its errno.
 * Proved by tests/unit/test_page_pool*.c, tests/conc/page_pool.c, tests/fault/.
 */
#ifndef PCPI_PAGE_POOL_H
#define PCPI_PAGE_POOL_H

#include <pcpalloc/page_pool.h>

#include "heap.h"
#include "page_pool_table.h"

/* Of a pool in its mapping: packets' headers are at the begin of a page. */
#define PCPI_POOL_MAP_OFFSET 2048u

/* PP2 */
PCPI_INLINE const void *pcpi_pool_self(void)
{
	return &pcpi_table;
}

/* The first page index of the page that an address is in, where it is below
 * nr_pfns. */
PCPI_INLINE uint64_t pcpi_pool_pfn(const struct pcpa_pool *pool, const void *buf)
{
	uint64_t off = (uint64_t)((uintptr_t)buf - (uintptr_t)pool->base);

	return off >> pool->page_shift & ~(uint64_t)pool->tail_mask;
}

PCPI_INLINE void *pcpi_pool_block(const struct pcpa_pool *pool, uint64_t pfn)
{
	return pool->base + (pfn << pool->page_shift);
}

/* The buffer of a page: its colour depends on the page alone. */
PCPI_INLINE void *pcpi_pool_buf(const struct pcpa_pool *pool, uint64_t pfn)
{
	return pool->base + (pfn << pool->page_shift) +
	       (pfn >> pool->order & pool->colour_mask) * PCPI_POOL_COLOUR_BYTES;
}

/* Whether the calling thread is the owner, becoming it where there is none. */
bool pcpi_pool_own(struct pcpa_pool *pool);

PCPI_INLINE bool pcpi_pool_owned(const struct pcpa_pool *pool)
{
	/* relaxed: equal only if this thread has stored it. */
	return pcpi_load_relaxed(&pool->owner) == pcpi_pool_self();
}

/* The owner: n users of a page that parts come off, or have, are done, PP6.  True:
 * nobody is left, and there is one again (RF2). */
PCPI_INLINE bool pcpi_pool_owner_unuse(struct pcpa_pool *pool,
				       struct pcpi_pool_page *p, int64_t n)
{
	int64_t users;
	bool last;

	/* relaxed: ordered by the membarrier of page_pool_frag.c's parts_share(). */
	pcpi_store_relaxed(&pool->counting, 1);
	pcpi_compiler_barrier();
	/* acquire: pairs with parts_share(). */
	if (pcpi_likely(pcpi_load_acquire(&pool->parts) == PCPI_PARTS_OWNERS)) {
		/* relaxed: only this thread writes it. */
		users = pcpi_load_relaxed(&p->users) - n;
		last = users == 0;
		/* release: pairs with pcpi_pool_page_unuse()'s load of who is last. */
		pcpi_store_release(&p->users, last ? 1 : users);
	} else {
		last = pcpi_pool_page_unuse(p, n);
	}
	/* release: pairs with parts_share(). */
	pcpi_store_release(&pool->counting, 0);
	return last;
}

/* Of a call of the owner's side: 0, -EINVAL, -ENODEV or -EPERM. */
int pcpi_pool_begin(struct pcpa_pool *pool);

/* The owner: a buffer that nobody has, from the cache or what is behind it. */
void *pcpi_pool_take(struct pcpa_pool *pool);

/* Whether a page that comes back may be used again: the word of one that the pool
 * has alone.  Drops a user; false: there are more, or it was refused. */
bool pcpi_pool_return(struct pcpa_pool *pool, void *buf, uint64_t *pfn);

/* Into the ring, as many as there is room for; how many. */
uint32_t pcpi_pool_ring_put(struct pcpa_pool *pool, void **bufs, uint32_t n);

/* The page of an address in it, which pools have or had; or NULL. */
struct pcpi_pool_page *pcpi_pool_page_of(const struct pcpa_heap *heap,
					 const void *buf, uint64_t *pfn);

/* A page that nobody uses any more: kept, or let go. */
void pcpi_pool_keep(struct pcpa_pool *pool, uint64_t pfn);

/* The owner: into the cache, if there is room. */
bool pcpi_pool_cache(struct pcpa_pool *pool, uint64_t pfn);

/* Whether it may be kept; else counts it as released_ref. */
bool pcpi_pool_recyclable(struct pcpa_pool *pool, uint64_t pfn);

/* Says once that something was not the pool's. */
void pcpi_pool_refuse(struct pcpa_pool *pool, const void *buf, const char *why);

/* The slots of a ring, or NULL. */
void **pcpi_pool_slots_map(uint32_t slots, size_t *bytes);

uint32_t pcpi_pool_ring_size(unsigned asked);

/* ---- page_pool_frag.c ---- */

/* As pcpi_pool_owner_unuse(), by any thread and of any page. */
bool pcpi_pool_unuse(struct pcpa_pool *pool, struct pcpi_pool_page *p, int64_t n);

/* The owner: no further part of the page that they come off. */
void pcpi_pool_frag_end(struct pcpa_pool *pool);

/* ---- page_pool_end.c ---- */

/* Lets pages go, of which bufs[] are the buffers; PP3.  bufs[] is used up.  How
 * many the pool has out then, itself included. */
int32_t pcpi_pool_let_go(struct pcpa_pool *pool, void **bufs, uint32_t n);

/* Nothing is out and nothing will come. */
void pcpi_pool_free(struct pcpa_pool *pool);

#endif
