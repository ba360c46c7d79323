/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h - the one byte that the free path knows of a page.  Layer 2.
 *
 * Owns: the encoding of the order bytes, an array over all page indices of a
 * heap.  They are written by whoever takes a block out of the buddy or is about
 * to give it back, and stay as they are while the block travels between caches,
 * depot and users: the line is shared by all cores (design.md, D4).
 *
 *     0          in the buddy, or not backed      a free of it is refused
 *     order + 1  first page of a block that is out of the buddy
 *     0x80       a further page of such a block   a free of it is refused
 *     | 0x40     on watched heaps (checks.h): nobody has the block
 *
 * P1  The bytes of a block belong to its holder; the buddy's pages to nobody.
 *
 * Concurrency: relaxed stores by the holder; relaxed loads by anyone who is
 * handed a pointer, which a correct program only does after the store.
 * Cost: a store per 8 pages.  Proved by tests/unit/test_page.c.
 */
#ifndef PCPI_PAGE_H
#define PCPI_PAGE_H

#include "atomics.h"
#include "base.h"

#define PCPI_PAGE_NONE 0u
#define PCPI_PAGE_TAIL 0x80u
#define PCPI_PAGE_HELD 0x40u

/* relaxed (all of this file): P1. */
PCPI_INLINE uint8_t pcpi_page_read(const uint8_t *orders, uint64_t pfn)
{
	return pcpi_load_relaxed(&orders[pfn]);
}

PCPI_INLINE void pcpi_page_write(uint8_t *orders, uint32_t pfn, unsigned value)
{
	pcpi_store_relaxed(&orders[pfn], (uint8_t)value);
}

/* Fills the 2^order bytes from pfn with one value. */
static inline void pcpi_page_fill(uint8_t *orders, uint32_t pfn, unsigned order,
				  unsigned value)
{
	uint32_t i;
	uint64_t *words = (uint64_t *)(void *)(orders + pfn);

	if (order < 3) {
		for (i = 0; i < 1u << order; i++)
			pcpi_page_write(orders, pfn + i, value);
		return;
	}
	for (i = 0; i < 1u << (order - 3); i++)
		pcpi_store_relaxed(&words[i], value * UINT64_C(0x0101010101010101));
}

/* A block has left the buddy; flags: PCPI_PAGE_HELD or 0. */
static inline void pcpi_page_mark_as(uint8_t *orders, uint32_t pfn,
				     unsigned order, unsigned flags)
{
	if (order > 0)
		pcpi_page_fill(orders, pfn, order, PCPI_PAGE_TAIL);
	pcpi_page_write(orders, pfn, (order + 1) | flags);
}

static inline void pcpi_page_mark(uint8_t *orders, uint32_t pfn, unsigned order)
{
	pcpi_page_mark_as(orders, pfn, order, 0);
}

/* A block is about to enter it. */
static inline void pcpi_page_clear(uint8_t *orders, uint32_t pfn, unsigned order)
{
	pcpi_page_fill(orders, pfn, order, PCPI_PAGE_NONE);
}

#endif
