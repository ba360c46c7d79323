/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp_hot.h - the allocation and the free that hit.  Layer 5.
 *
 * Owns: the two functions that the whole library exists for, and the one line
 * of a heap that they read.
 *
 * Budget (design.md D13) of each: no lock, no read-modify-write of another
 * thread's data, no call, no system call, no division, no branch that depends
 * on configuration.  On x86-64 at most so many instructions, from the first of
 * the public function to its return; tests/budget/hot reads these lines and
 * has bench/count-instructions count:
 *
 *                 alloc  free
 *   order0-front     32    40   the block freed last
 *   order0-ring      44    54
 *   order2-ring      60    54   stands for orders 1 to 3
 *
 *   alloc  entry of the thread's table by heap -> heap's id -> busy? -> mark ->
 *          claim? -> front, else ring: empty? -> pop -> count -> unmark
 *   free   entry, id, address in the zone and page-aligned (one compare: the
 *          bits below the page rotate to the top) -> order byte -> busy? ->
 *          mark -> claim? -> front, else ring: push -> unmark -> limit?
 *
 * HO1  Every test that fails leads out with nothing changed.
 * HO2  An entry with the heap's id holds a cache of this thread for this heap:
 *     ids are never used twice, and 0 is no heap's.
 *
 * The list's address is computed from the order, and nothing branches on it.  A
 * branch for order 0 is better by 1 ns where only that is used, since the
 * address then doesn't wait for the order byte (D4), and worse by 6 ns where
 * orders are mixed; the front makes up for the former.
 *
 * Concurrency: see pcp.h.  Proved by tests/unit/test_heap.c, tests/conc/,
 * tests/budget/.
 */
#ifndef PCPI_PCP_HOT_H
#define PCPI_PCP_HOT_H

#include "page.h"
#include "pcp.h"

/* What every call reads of a heap; all fixed after creation. */
struct pcpi_hot {
	char *base;
	uint8_t *orders;   /* page.h */
	uint64_t id;	   /* HO2 */
	uint32_t entry;	   /* byte offset in the thread's table */
	uint32_t page_shift;
	bool wide; /* convert.h */
} PCPI_ALIGNED(PCPI_CACHELINE);

/* A thread's table: heaps by slot, PCPI_ENTRIES of them without collision. */
#define PCPI_ENTRIES 64u

struct pcpi_entry {
	uint64_t id; /* HO2 */
	struct pcpi_cache *cache;
};

/* The library's only thread-local variable: the thread's record, which begins
 * with its table; never NULL (thread.c). */
extern __thread char *pcpi_table __attribute__((tls_model("initial-exec")));

PCPI_INLINE struct pcpi_entry *pcpi_hot_entry(const struct pcpi_hot *hot)
{
	return (struct pcpi_entry *)(void *)(pcpi_table + hot->entry);
}

/* The calling thread's cache for the heap, or NULL. */
PCPI_INLINE struct pcpi_cache *pcpi_hot_cache(const struct pcpi_hot *hot)
{
	struct pcpi_entry *entry = pcpi_hot_entry(hot);

	struct pcpi_cache *c;

	if (pcpi_unlikely(entry->id != hot->id))
		return NULL;
	c = entry->cache;
	if (!c)
		__builtin_unreachable(); /* HO2: spares the callers' test */
	return c;
}

/* Sets the mark; false with the mark clear when the slow way must be taken. */
PCPI_INLINE bool pcpi_hot_enter(struct pcpi_cache *c)
{
	/* Nobody else writes it; set means that we interrupted ourselves. */
	if (pcpi_unlikely(c->busy))
		return false;
	/* relaxed: ordered by the drainer's membarrier. */
	pcpi_store_relaxed(&c->busy, 1);
	pcpi_compiler_barrier();
	/* acquire: pairs with pcpi_cache_claim_end(). */
	if (pcpi_likely(pcpi_zero_acquire(&c->claim)))
		return true;
	/* release: pairs with pcpi_cache_claimed_quiet(). */
	pcpi_store_release(&c->busy, 0);
	return false;
}

PCPI_INLINE void pcpi_hot_leave(struct pcpi_cache *c)
{
	/* release: pairs with pcpi_cache_claimed_quiet(). */
	pcpi_store_release(&c->busy, 0);
}

/* The last of the ring; the mark is set.  NULL: empty. */
PCPI_INLINE void *pcpi_hot_pop(const struct pcpi_hot *hot,
			       struct pcpi_ring *ring)
{
	uint32_t head = ring->head, pfn;

	if (pcpi_unlikely(head == ring->tail))
		return NULL;
	pfn = ring->slots[--head & ring->mask];
	/* relaxed: C1; statistics read it late. */
	pcpi_store_relaxed(&ring->head, head);
	return hot->base + ((size_t)pfn << hot->page_shift);
}

/* Requires order < PCPI_PCP_ORDERS.  NULL: go the slow way. */
PCPI_INLINE void *pcpi_hot_alloc(const struct pcpi_hot *hot, unsigned order)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	struct pcpi_pcp_list *list;
	void *block;

	if (pcpi_unlikely(!c) || !pcpi_hot_enter(c))
		return NULL;
	list = &c->list[order];
	block = pcpi_load_relaxed(&list->front); /* relaxed: C1 */
	if (pcpi_likely((uintptr_t)block > (uintptr_t)PCPI_FRONT_OFF)) {
		pcpi_store_relaxed(&list->front, NULL); /* relaxed: C1, C5 */
	} else {
		block = pcpi_hot_pop(hot, &list->ring);
		if (pcpi_unlikely(!block)) {
			pcpi_hot_leave(c);
			return NULL;
		}
	}
	pcpi_counter_inc(&list->allocs);
	pcpi_hot_leave(c);
	return block;
}

/* Puts a block into the front of its list or on its ring; false: go the slow
 * way.  The ring has room, since its limit is below its capacity
 * (PCPI_RING_MARGIN). */
PCPI_INLINE bool pcpi_hot_push(struct pcpi_cache *c, unsigned order,
			       uint64_t pfn, void *block)
{
	struct pcpi_pcp_list *list = &c->list[order];
	struct pcpi_ring *ring = &list->ring;
	uint32_t head, len;

	if (!pcpi_hot_enter(c))
		return false;
	/* relaxed: C1. */
	if (pcpi_likely(!pcpi_load_relaxed(&list->front))) {
		/* relaxed: C1, C5; statistics read it late. */
		pcpi_store_relaxed(&list->front, block);
		pcpi_hot_leave(c);
		return true;
	}
	head = ring->head;
	ring->slots[head++ & ring->mask] = (uint32_t)pfn;
	/* relaxed: C1, C5; statistics read it late. */
	pcpi_store_relaxed(&ring->head, head);
	len = head - ring->tail;
	pcpi_hot_leave(c);
	if (pcpi_unlikely(len >= ring->limit))
		pcpi_cache_trim(c, order);
	return true;
}

/* Page index of a block of the cache's zone; false for any other pointer. */
PCPI_INLINE bool pcpi_hot_pfn(const struct pcpi_hot *hot,
			      const struct pcpi_cache *c, const void *block,
			      uint64_t *pfn)
{
	uint64_t off = (uint64_t)((uintptr_t)block - (uintptr_t)hot->base);

	*pfn = off >> hot->page_shift | off << (-hot->page_shift & 63);
	return pcpi_likely(*pfn - c->first_pfn < c->nr_pfns);
}

/* False: nothing was done, go the slow way. */
PCPI_INLINE bool pcpi_hot_free(const struct pcpi_hot *hot, void *block)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	uint64_t pfn;
	unsigned order;

	if (pcpi_unlikely(!c) || !pcpi_hot_pfn(hot, c, block, &pfn))
		return false;
	order = pcpi_page_read(hot->orders, pfn) - 1u;
	if (pcpi_unlikely(order >= PCPI_PCP_ORDERS))
		return false;
	return pcpi_hot_push(c, order, pfn, block);
}

/* Requires order < PCPI_PCP_ORDERS. */
PCPI_INLINE bool pcpi_hot_free_sized(const struct pcpi_hot *hot, void *block,
				     unsigned order)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	uint64_t pfn;

	if (pcpi_unlikely(!c) || !pcpi_hot_pfn(hot, c, block, &pfn))
		return false;
	return pcpi_hot_push(c, order, pfn, block);
}

#endif
