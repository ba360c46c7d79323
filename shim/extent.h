/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * extent.h - what is known of one extent, in one word.  PURE.
 *
 * An extent is a naturally aligned power of two of pages of the reserved range.  Its
 * word is the one of its first page:
 *
 *     63             44 43        28 27       12 11   8   5   4   3 2    0
 *    |  copy           | high       | length    | order | N | C | T | kind |
 *
 *   kind    NONE    no extent begins here
 *           LIVE    the program has it
 *           BUSY    the same, while one thread changes what is known of it
 *           FREE    in a slot (slots.h), or with a thread that brings it there or
 *                   takes it from there or from the pool
 *           PARKED  freed while the pool's lock was taken (pool.c)
 *   T       tainted: something about its mapping is not what it is with new memory,
 *           so its pages are replaced before anybody else gets them
 *   C       cold: it was handed out without memory, so what is resident when it is
 *           freed was touched
 *   N       named: the program gave its mapping a name, which goes when it is freed
 *   order   it has 2^order pages
 *   length  pages of the program's mapping, which begins with the extent
 *   high    pages that may hold something else than zeros, counted from the first,
 *           when the program hasn't got it
 *   copy    of a BUSY or FREE one: how many forks lie between the first process and the
 *           one whose thread has it, or in whose slot it is; else 0
 *
 * A parked extent's word has the next one's page in the upper half instead of
 * length and high.
 */
#ifndef SHIM_EXTENT_H
#define SHIM_EXTENT_H

#include "bits.h"

enum {
	SHIM_PAGE_SHIFT = 12,
	SHIM_PAGE_BYTES = 1 << SHIM_PAGE_SHIFT,
	SHIM_UNIT_ORDER = 9, /* pages of 2 MiB */
	SHIM_UNIT_PAGES = 1 << SHIM_UNIT_ORDER,
	SHIM_MAX_ORDER = 15, /* 128 MiB */
	SHIM_ORDERS = SHIM_MAX_ORDER + 1,
	SHIM_WINDOW_PAGES = 1 << SHIM_MAX_ORDER,
	SHIM_WINDOW_UNITS = SHIM_WINDOW_PAGES / SHIM_UNIT_PAGES,
};

enum shim_kind {
	SHIM_NONE = 0,
	SHIM_LIVE = 1,
	SHIM_BUSY = 2,
	SHIM_FREE = 3,
	SHIM_PARKED = 4,
};

#define SHIM_KIND UINT64_C(7)
#define SHIM_TAINTED UINT64_C(8)
#define SHIM_COLD UINT64_C(16)
#define SHIM_NAMED UINT64_C(32)

PCPI_INLINE uint64_t shim_word(enum shim_kind kind, unsigned order,
			       uint32_t length, uint32_t high)
{
	return (uint64_t)kind | (uint64_t)order << 8 | (uint64_t)length << 12 |
	       (uint64_t)high << 28;
}

PCPI_INLINE uint64_t shim_parked(unsigned order, uint32_t next)
{
	return SHIM_PARKED | (uint64_t)order << 8 | (uint64_t)next << 32;
}

PCPI_INLINE enum shim_kind shim_kind(uint64_t w)
{
	return (enum shim_kind)(w & SHIM_KIND);
}

PCPI_INLINE unsigned shim_order(uint64_t w)
{
	return (unsigned)(w >> 8) & 15;
}

PCPI_INLINE uint32_t shim_length(uint64_t w)
{
	return (uint32_t)(w >> 12) & 0xffff;
}

PCPI_INLINE uint32_t shim_high(uint64_t w)
{
	return (uint32_t)(w >> 28) & 0xffff;
}

PCPI_INLINE uint32_t shim_next(uint64_t w)
{
	return (uint32_t)(w >> 32);
}

#define SHIM_COPY_SHIFT 44

/* The extent of a LIVE word while a thread of this copy of the process changes it. */
PCPI_INLINE uint64_t shim_busy(uint64_t w, uint32_t copy)
{
	return (w & ~SHIM_KIND) | SHIM_BUSY | (uint64_t)copy << SHIM_COPY_SHIFT;
}

/* The same when the change is over. */
PCPI_INLINE uint64_t shim_live(uint64_t w)
{
	return (w & ((UINT64_C(1) << SHIM_COPY_SHIFT) - 1) & ~SHIM_KIND) |
	       SHIM_LIVE;
}

PCPI_INLINE bool shim_of_copy(uint64_t w, uint32_t copy)
{
	return (w ^ (uint64_t)copy << SHIM_COPY_SHIFT) >> SHIM_COPY_SHIFT == 0;
}

/* Is it the change of a thread that only another copy has? */
PCPI_INLINE bool shim_left_behind(uint64_t w, uint32_t copy)
{
	return shim_kind(w) == SHIM_BUSY && !shim_of_copy(w, copy);
}

/* An extent that the program hasn't got, by a thread of this copy. */
PCPI_INLINE uint64_t shim_free(unsigned order, uint32_t high, uint32_t copy)
{
	return shim_word(SHIM_FREE, order, 0, high) |
	       (uint64_t)copy << SHIM_COPY_SHIFT;
}

/* The same extent with another length; what the program had may hold anything. */
PCPI_INLINE uint64_t shim_with_length(uint64_t w, uint32_t length)
{
	uint32_t high = pcpi_max(shim_high(w), shim_length(w));

	return (w & 0xfff) | (uint64_t)length << 12 | (uint64_t)high << 28;
}

/* Is the program the one who has it? */
PCPI_INLINE bool shim_held(uint64_t w)
{
	return shim_kind(w) == SHIM_LIVE || shim_kind(w) == SHIM_BUSY;
}

/* Bytes to pages, rounded up. */
PCPI_INLINE uint64_t shim_pages(size_t bytes)
{
	return (bytes >> SHIM_PAGE_SHIFT) + (bytes % SHIM_PAGE_BYTES != 0);
}

/* The beginning of the unit that the page is in; of the next, unless it begins one. */
PCPI_INLINE uint32_t shim_unit_down(uint32_t pfn)
{
	return pfn & ~(uint32_t)(SHIM_UNIT_PAGES - 1);
}

PCPI_INLINE uint32_t shim_unit_up(uint32_t pfn)
{
	return shim_unit_down(pfn + SHIM_UNIT_PAGES - 1);
}

/* The smallest order that holds so many pages; at least one. */
PCPI_INLINE unsigned shim_order_for(uint64_t pages)
{
	return pages <= 1 ? 0 : pcpi_log2(pages - 1) + 1;
}

#endif
