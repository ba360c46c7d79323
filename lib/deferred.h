/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * deferred.h - blocks that were freed where nothing could be waited for.  Layer 2.
 *
 * Owns: a heap's stack of them.  Does not own their order bytes, nor when they are
 * settled (pcp_defer.c).
 *
 *   top -> [next | pages | check ...block] -> [next | pages | check ...range] -> 0
 *
 * Linked through their own memory, so that there is room for all that there are.
 * Only pushed, and taken as a whole: so what a push compares with may have come
 * back meanwhile, and nothing is wrong.
 *
 * DE1  A block is pushed by who frees it, and read by who has taken the stack.
 * DE2  A link that its check doesn't fit was written to after the free: trap.
 * DE3  The words of a link are zero again when the block goes on.
 *
 * Concurrency: any thread and any handler, lock-free.  Cost: a compare and swap a
 * push, an exchange for all.  Failure: none.
 * Proved by tests/unit/test_nested.c, tests/conc/signals.c.
 */
#ifndef PCPI_DEFERRED_H
#define PCPI_DEFERRED_H

#include "atomics.h"
#include "base.h"
#include "check.h"

struct pcpi_deferred {
	uint32_t top; /* a: page index + 1; 0: empty */
};

struct pcpi_deferred_link {
	uint32_t next;	/* as top */
	uint32_t pages; /* of a contiguous range; 0: a block */
	uint32_t check; /* DE2 */
	uint32_t unused;
};

PCPI_INLINE uint32_t pcpi_deferred_check(const struct pcpi_deferred_link *l,
					 uint32_t top)
{
	return UINT32_C(0x5e77ed1e) ^ l->next ^ l->pages * UINT32_C(0x9e3779b1) ^
	       top * UINT32_C(0x85ebca6b);
}

PCPI_INLINE bool pcpi_deferred_any(const struct pcpi_deferred *d)
{
	/* relaxed: what comes just now is for the next who looks. */
	return pcpi_unlikely(pcpi_load_relaxed(&d->top) != 0);
}

/* link: the memory of the page. */
static inline void pcpi_deferred_push(struct pcpi_deferred *d, void *memory,
				      uint32_t pfn, uint32_t pages)
{
	struct pcpi_deferred_link *link = memory;
	/* relaxed: the compare below decides. */
	uint32_t top = pcpi_load_relaxed(&d->top);

	link->pages = pages;
	do {
		link->next = top;
		link->check = pcpi_deferred_check(link, pfn + 1);
		/* acquire/release: pairs with pcpi_deferred_take(). */
	} while (!pcpi_cas_acq_rel(&d->top, &top, pfn + 1));
}

/* All of them, as top. */
static inline uint32_t pcpi_deferred_take(struct pcpi_deferred *d)
{
	/* acquire/release: pairs with pcpi_deferred_push(). */
	return pcpi_exchange_acq_rel(&d->top, 0);
}

/* What follows in a taken stack; *pages of the one that is left behind. */
static inline uint32_t pcpi_deferred_next(void *memory, uint32_t top,
					  uint32_t *pages)
{
	struct pcpi_deferred_link *link = memory;
	uint32_t next = link->next;

	PCPA_TRAP(link->check == pcpi_deferred_check(link, top)); /* DE2 */
	*pages = link->pages;
	*link = (struct pcpi_deferred_link){ 0 }; /* DE3 */
	return next;
}

#endif
