/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - which extent a page is part of, and whether the program has it mapped.
 *
 * No system call, no lock.  An extent is found from any of its pages because it is
 * naturally aligned: its first page is the page's index with the low bits cleared, for
 * one of SHIM_ORDERS numbers of bits.
 *
 * Concurrency: words are read with acquire, and belong to whoever moved them out of
 * LIVE.  A page's byte belongs to the extent's holder.
 * Proved by tests/preload/test_table.c.
 */
#ifndef SHIM_TABLE_H
#define SHIM_TABLE_H

#include "pool.h"

PCPI_INLINE uint64_t shim_head(uint32_t pfn)
{
	/* pairs with shim_head_set(). */
	return pcpi_load_acquire(&shim_range.heads[pfn]);
}

PCPI_INLINE void shim_head_set(uint32_t pfn, uint64_t w)
{
	/* pairs with shim_head(). */
	pcpi_store_release(&shim_range.heads[pfn], w);
}

/* The first page of the held extent that the page is part of, or PCPI_NO_PFN. */
static inline uint32_t shim_extent_of(uint32_t pfn)
{
	for (unsigned order = 0; order < SHIM_ORDERS; order++) {
		uint32_t head = pfn & ~((UINT32_C(1) << order) - 1);
		uint64_t w;

		if (order > 0 &&
		    head == (pfn & ~((UINT32_C(1) << (order - 1)) - 1)))
			continue; /* the same page as before */
		w = shim_head(head);
		if (w && shim_held(w) &&
		    pfn - head < UINT32_C(1) << shim_order(w))
			return head;
	}
	return PCPI_NO_PFN;
}

/* Is the page of the extent mapped, as the program sees it? */
PCPI_INLINE bool shim_page_mapped(uint32_t head, uint64_t w, uint32_t pfn)
{
	bool within = pfn - head < shim_length(w);
	bool flip = shim_range.pages[pfn] & SHIM_PAGE_FLIP;

	return within != flip;
}

/* Sets TAINTED or NAMED, which stays until the extent is freed. */
static inline void shim_extent_mark(uint32_t head, uint64_t mark)
{
	uint64_t w = shim_head(head);

	/* pairs with shim_head(). */
	while (shim_held(w) && !(w & mark) &&
	       !pcpi_cas_acq_rel(&shim_range.heads[head], &w, w | mark))
		;
}

static inline void shim_extent_taint(uint32_t head)
{
	shim_extent_mark(head, SHIM_TAINTED);
}

/*
 * Makes the extent the caller's for a change of what is known of it, and returns its
 * word, LIVE; 0 when it isn't held any more.  Ends with shim_head_set().  A change that
 * was begun before a fork by a thread that the child hasn't got is taken over at once.
 * Waits for others, but not forever: a handler may have interrupted the change.
 */
uint64_t shim_extent_enter(uint32_t head);

/* The mapped pages from `pfn` on: how many until the first that isn't, or `end`. */
uint32_t shim_mapped_run(uint32_t pfn, uint32_t end);

/* The same for pages that are not mapped. */
uint32_t shim_hole_run(uint32_t pfn, uint32_t end);

#endif
