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
 *   order0-front     27    33   the block freed last
 *   order0-ring      42    46
 *   order2-ring      42    48   stands for orders 1 to 3
 *
 *   alloc  entry of the thread's table by heap -> is it the heap's? -> front has
 *          a block and order 0 is wanted: take it; else pop of the order's ring
 *          -> count -> time to look?
 *   free   entry, address in the zone and page-aligned (one compare: the bits
 *          below the page rotate to the top) -> front empty and the order byte
 *          says 0: put it there; else push -> limit?
 *   either way the move announces itself, tests mark, claim and by_mark in one
 *   compare, and commits with its last store (pcp_move.h)
 *
 * HO1  Every test that fails leads out with nothing changed.
 * HO2  An entry with the heap's address holds a cache of this thread for this heap,
 *     after each instruction: a signal handler may look.  A heap that ends is taken
 *     out of all tables (thread.c).
 *
 * HO3  Whose hits don't end sees at the latest after PCPI_LOOK_ALLOCS allocations of a
 *     list whether its thread has moved to another node, and after as many frees as
 *     bring a list to its limit: then its next hit is of another cache.  It takes one
 *     instruction, as the count itself tells (pcp.h).  A test of the count took
 *     two and 0.3 ns of a pair's 3.4; a compare of the CPU's number would be three,
 *     and in the free, too.
 *
 * A list's address is computed from the order, and nothing branches on it but
 * after the front, whose use is foreseen by the processor because it is on only
 * while order 0 is used alone.  A branch for order 0 was worth 1 ns there, and cost
 * 6 where orders are mixed.
 *
 * `by_mark`: where the moves are not made as sequences; the functions of api.c try
 * the other way once more before anything slow.
 *
 * Concurrency: see pcp.h.  Proved by tests/unit/test_heap.c, tests/conc/,
 * tests/budget/.
 */
#ifndef PCPI_PCP_HOT_H
#define PCPI_PCP_HOT_H

#include "page.h"
#include "pcp_move.h"

/* What every call reads of a heap; all fixed after creation. */
struct pcpi_hot {
	char *base;
	uint8_t *orders;   /* page.h */
	uint32_t entry;	   /* byte offset in the thread's table */
	uint32_t page_shift;
	uint32_t wide_span; /* n - 8 is below it: the wide moves serve n (bulk.h) */
} PCPI_ALIGNED(PCPI_CACHELINE);

/* A thread's table: heaps by slot, PCPI_ENTRIES of them without collision. */
#define PCPI_ENTRIES 64u

struct pcpi_entry {
	const struct pcpi_hot *heap; /* HO2 */
	struct pcpi_cache *cache;
};

/* The thread's record, which begins with its table; never NULL (thread.c).  The
 * only thread-local variable that a hit reads, but those of rseq.h. */
extern __thread char *pcpi_table __attribute__((tls_model("initial-exec")));

PCPI_INLINE struct pcpi_entry *pcpi_hot_entry(const struct pcpi_hot *hot)
{
	return (struct pcpi_entry *)(void *)(pcpi_table + hot->entry);
}

/* The calling thread's cache for the heap, or NULL. */
PCPI_INLINE struct pcpi_cache *pcpi_hot_cache(const struct pcpi_hot *hot)
{
	const struct pcpi_entry *entry = pcpi_hot_entry(hot);
	struct pcpi_cache *c;

	/* relaxed: what another thread writes here concerns no heap in use. */
	if (pcpi_unlikely(pcpi_load_relaxed(&entry->heap) != hot))
		return NULL;
	c = entry->cache;
	if (!c)
		__builtin_unreachable(); /* HO2: spares the callers' test */
	return c;
}

/* HO3, of a hit that took the block, which it returns. */
void *pcpi_hit_look(struct pcpi_cache *c, void *block)
	__attribute__((returns_nonnull, cold));

/* The same of one that took n. */
size_t pcpi_hit_look_bulk(struct pcpi_cache *c, size_t n) PCPI_COLD;

/* The same of a call that isn't nested, and did no hit. */
void pcpi_outer_look(struct pcpi_cache *c);

/* Owner: the list of this order has reached its limit by a hit, which may be nested
 * (nest.h); HO3. */
void pcpi_hit_trim(struct pcpi_cache *c, unsigned order);

/* Counts a hit of the list, which took the block. */
PCPI_INLINE void *pcpi_hot_counted(struct pcpi_cache *c,
				   struct pcpi_pcp_list *list, void *block)
{
	if (!block)
		__builtin_unreachable(); /* spares the callers' test */
	if (pcpi_unlikely(pcpi_allocs_inc(&list->allocs)))
		return pcpi_hit_look(c, block);
	return block;
}

/* NULL: nothing was done, go the slow way. */
PCPI_INLINE void *pcpi_hot_alloc(const struct pcpi_hot *hot, unsigned order,
				 unsigned flags, bool by_mark)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	struct pcpi_pcp_list *list;
	uint32_t pfn;
	void *front;

	if (pcpi_unlikely(!c))
		return NULL;
	front = pcpi_load_relaxed(&c->front); /* relaxed: the move looks again. */
	if (pcpi_likely((uintptr_t)front > (uintptr_t)PCPI_FRONT_OFF) &&
	    pcpi_likely((order | flags) == 0)) {
		if (!pcpi_move_front_out(c, front, by_mark))
			return NULL;
		return pcpi_hot_counted(c, &c->list[0], front);
	}
	if (pcpi_unlikely(order >= PCPI_PCP_ORDERS || flags != 0))
		return NULL;
	list = &c->list[order];
	if (!pcpi_move_pop(c, &list->ring, &pfn, by_mark))
		return NULL;
	return pcpi_hot_counted(c, list,
				hot->base + ((size_t)pfn << hot->page_shift));
}

/* One compare with memory and a jump, which compilers make of no atomic load.
 * relaxed: the move looks again. */
PCPI_INLINE bool pcpi_hot_front_empty(const struct pcpi_cache *c)
{
#if PCPI_RSEQ
	__asm__ __volatile__ goto("cmpq $0, %0\n\tjne %l[full]"
				  :
				  : "m"(c->front)
				  : "memory", "cc"
				  : full);
	return true;
full:
	return false;
#else
	return !pcpi_load_relaxed(&c->front); /* relaxed: see above. */
#endif
}

/* Puts a block into the front or on its ring; false: nothing was done.
 * byte: of the order, as in page.h, which is closest at hand. */
PCPI_INLINE bool pcpi_hot_push(struct pcpi_cache *c, unsigned byte, uint64_t pfn,
			       void *block, bool by_mark)
{
	struct pcpi_ring *ring;
	uint32_t head;

	if (pcpi_likely(pcpi_hot_front_empty(c)) && pcpi_likely(byte == 1))
		return pcpi_move_front_in(c, block, by_mark);
	if (pcpi_unlikely(byte - 1 >= PCPI_PCP_ORDERS))
		return false;
	ring = &c->list[byte - 1].ring;
	/* Keeps the address in its register: computed again from the order it
	 * takes one more, which must be saved. */
	__asm__("" : "+r"(ring));
	if (!pcpi_move_push(c, ring, (uint32_t)pfn, &head, by_mark))
		return false;
	/* relaxed: a drainer may move it just now; then a look comes for nothing,
	 * or with the next free. */
	if (pcpi_unlikely(head - pcpi_load_relaxed(&ring->tail) >= ring->limit))
		pcpi_hit_trim(c, byte - 1);
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
PCPI_INLINE bool pcpi_hot_free(const struct pcpi_hot *hot, void *block,
			       bool by_mark)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	uint64_t pfn;

	if (pcpi_unlikely(!c) || !pcpi_hot_pfn(hot, c, block, &pfn))
		return false;
	return pcpi_hot_push(c, pcpi_page_read(hot->orders, pfn), pfn, block,
			     by_mark);
}

/* The same where the caller says the order. */
PCPI_INLINE bool pcpi_hot_free_sized(const struct pcpi_hot *hot, void *block,
				     unsigned order, bool by_mark)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	uint64_t pfn;

	if (pcpi_unlikely(!c) || !pcpi_hot_pfn(hot, c, block, &pfn))
		return false;
	return pcpi_hot_push(c, order + 1, pfn, block, by_mark);
}

#endif
