/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api_inline.c - what pcpalloc/inline.h asks the library for.  Layer 6.
 *
 * Owns: the one door to a cache's first lines, which are that header's frozen
 * struct, and the proof that they are.
 *
 * IL1  Whoever asks with another version or size gets nothing, and makes calls.
 * IL2  Only the owner gets a cache; it is inside under the mark (pcp.h, C1), and no
 *      further than C8 and C9 let a hit.
 *
 * Cost: as the first call of a thread, or some ten ns.  Failure: NULL.
 * Proved by tests/unit/test_inline.c, tests/conc/inline.c, tests/abi/inline.
 */
#include <errno.h>
#include <pcpalloc/inline.h>

#include "api.h"
#include "heap.h"

/* ---- IL1: the struct is what the library has ---------------------------------- */

#define SAME(theirs, ours)                                                      \
	_Static_assert(offsetof(struct pcpa_inline_cache, theirs) ==            \
			       offsetof(struct pcpi_cache, ours) &&             \
		       sizeof(((struct pcpa_inline_cache *)0)->theirs) ==       \
			       sizeof(((struct pcpi_cache *)0)->ours),          \
		       "inline.h is frozen: " #theirs)

SAME(busy, busy);
SAME(claim, claim);
SAME(front, front);
SAME(first, first_pfn);
SAME(pages, nr_pfns);
SAME(list, list);
SAME(list[0].head, list[0].ring.head);
SAME(list[0].tail, list[0].ring.tail);
SAME(list[0].mask, list[0].ring.mask);
SAME(list[0].limit, list[0].ring.limit);
SAME(list[0].slots, list[0].ring.slots);
SAME(list[0].allocs, list[0].allocs);
_Static_assert(PCPA_INLINE_ALLOCS_SHIFT_ == PCPI_ALLOCS_SHIFT, "inline.h is frozen");
SAME(base, base);
SAME(start, start);
SAME(orders, orders);
SAME(page_shift, page_shift);
SAME(wide, wide);
_Static_assert(PCPA_INLINE_ORDERS == PCPI_PCP_ORDERS, "inline.h is frozen");
_Static_assert(PCPI_FRONT_OFF_ADDR == 1, "inline.h is frozen");

static struct pcpi_cache *cache_find(struct pcpa_heap *heap, bool outer)
{
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);

	if (outer) {
		pcpi_thread_look(heap);
		return pcpi_thread_cache(heap, NULL);
	}
	/* IF3: the one there is, whose next call looks. */
	if (c && heap->nr_zones > 1)
		pcpi_cache_ask_where(c);
	return c;
}

PCPI_EXPORT struct pcpa_inline_cache *
pcpa_inline_bind(struct pcpa_heap *heap, unsigned version, size_t bytes)
{
	int saved = errno;
	struct pcpi_cache *c;

	if (version != PCPA_INLINE_VERSION ||
	    bytes != sizeof(struct pcpa_inline_cache) || pcpi_api_check(heap))
		return NULL;
	c = cache_find(heap, pcpi_nest_enter());
	pcpi_api_end(saved);
	return (struct pcpa_inline_cache *)(void *)c;
}
