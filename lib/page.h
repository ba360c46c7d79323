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
 *     0xa0       first page of a contiguous range; the others are 0x80.  So the
 *                range ends where a byte is not 0x80, as each block has a first
 *     0xb0       first page of such a range on its way back
 *     0x90       isolated for such a range (zone_range.c), handed out to nobody
 *
 * P1  The bytes of a block belong to its holder; the buddy's pages to nobody.
 * P2  The first byte after a block or range says TAIL at no time.
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
#define PCPI_PAGE_CONTIG 0xa0u
#define PCPI_PAGE_ISOLATED 0x90u
#define PCPI_PAGE_GOING 0xb0u

/* relaxed (all of this file): P1. */
PCPI_INLINE uint8_t pcpi_page_read(const uint8_t *orders, uint64_t pfn)
{
	return pcpi_load_relaxed(&orders[pfn]);
}

/* Whether it is a block of order 0, for those who look at many. */
PCPI_INLINE bool pcpi_page_is_single(const uint8_t *orders, uint64_t pfn)
{
	return pcpi_byte_is_relaxed(&orders[pfn], 1);
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

/* Fills the bytes of a range of any length. */
static inline void pcpi_page_fill_range(uint8_t *orders, uint32_t pfn,
					uint32_t pages, unsigned value)
{
	uint32_t end = pfn + pages, at = pfn;

	for (; at < end && at % 8 != 0; at++)
		pcpi_page_write(orders, at, value);
	for (; end - at >= 8; at += 8)
		pcpi_page_fill(orders, at, 3, value);
	for (; at < end; at++)
		pcpi_page_write(orders, at, value);
}

/* Pages of a contiguous range, from its first; 0 where none begins. */
static inline uint32_t pcpi_page_contig(const uint8_t *orders, uint32_t pfn,
					uint32_t most)
{
	uint32_t pages = 1;

	if (pcpi_page_read(orders, pfn) != PCPI_PAGE_CONTIG)
		return 0;
	while (pages < most &&
	       pcpi_page_read(orders, pfn + pages) == PCPI_PAGE_TAIL)
		pages++;
	return pages;
}

/* A block has left the buddy; flags: PCPI_PAGE_HELD or 0.  Its first byte is never
 * a tail's, or a range that ends before it would seem to go on (P2). */
static inline void pcpi_page_mark_as(uint8_t *orders, uint32_t pfn,
				     unsigned order, unsigned flags)
{
	uint64_t *words = (uint64_t *)(void *)(orders + pfn);
	uint64_t first = PCPI_PAGE_TAIL * UINT64_C(0x0101010101010101);

	if (order < 3) {
		pcpi_page_fill_range(orders, pfn + 1, (1u << order) - 1,
				     PCPI_PAGE_TAIL);
		pcpi_page_write(orders, pfn, (order + 1) | flags);
		return;
	}
	pcpi_page_fill_range(orders, pfn + 8, (1u << order) - 8, PCPI_PAGE_TAIL);
	*(uint8_t *)&first = (uint8_t)((order + 1) | flags);
	pcpi_store_relaxed(words, first);
}

static inline void pcpi_page_mark(uint8_t *orders, uint32_t pfn, unsigned order)
{
	pcpi_page_mark_as(orders, pfn, order, 0);
}

/* Pages become a range.  P2. */
static inline void pcpi_page_mark_range(uint8_t *orders, uint32_t pfn,
					uint32_t pages)
{
	pcpi_page_fill_range(orders, pfn + 1, pages - 1, PCPI_PAGE_TAIL);
	pcpi_page_write(orders, pfn, PCPI_PAGE_CONTIG);
}

/* A block is about to enter it. */
static inline void pcpi_page_clear(uint8_t *orders, uint32_t pfn, unsigned order)
{
	pcpi_page_fill(orders, pfn, order, PCPI_PAGE_NONE);
}

#endif
