/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * convert.h - arrays of page indices to arrays of addresses and back.  Layer 2.
 *
 * Owns: the arithmetic for many entries at once, in two widths: plain C here, and
 * AVX2 in convert_wide.h, for heaps whose processor has it and BMI2: a flag of the heap,
 * chosen at its creation by pcpi_convert_wide().  (Not by ifunc: its resolver runs
 * before sanitizers are ready.)  64 conversions cost some 90 ns in plain code for
 * baseline x86-64, some 12 ns with AVX2.
 *
 * A pointer is checked by rotating its offset right by the page shift: the bits
 * below the page, which must be 0, come to the top, so that one unsigned compare
 * with the length of the range refuses what is outside, before or not
 * page-aligned.
 *
 * Concurrency: none.  Failure: a pointer that is no page of the range makes
 * to_pfns() return false; what it wrote then has no meaning.
 * Proved by tests/unit/test_convert.c.
 */
#ifndef PCPI_CONVERT_H
#define PCPI_CONVERT_H

#include "base.h"
#include "page.h"

/* A range of pages: indices first_pfn .. first_pfn + nr_pfns - 1 at base. */
struct pcpi_range {
	char *base;  /* address of index 0 */
	char *start; /* address of first_pfn */
	unsigned page_shift;
	uint32_t first_pfn, nr_pfns;
};

/* Of an offset from its start; nr_pfns or more where that is none of its pages. */
PCPI_INLINE uint64_t pcpi_range_page(const struct pcpi_range *r, uint64_t off)
{
	return off >> r->page_shift | off << (-r->page_shift & 63);
}

/* Entries that the wide code does at a time, and at least. */
#define PCPI_WIDE_STEP 8u

/* Whether this processor runs the wide code. */
bool pcpi_convert_wide(void);

/* In either width, each with a call. */

/* out[i] = address of pfns[i], i < n. */
void pcpi_convert_to_addrs(const struct pcpi_range *r, bool wide,
			   const uint32_t *pfns, void **out, uint32_t n);

/* out[i] = index of blocks[i], i < n; true iff all are pages of the range. */
bool pcpi_convert_to_pfns(const struct pcpi_range *r, bool wide,
			  void *const *blocks, uint32_t *out, uint32_t n);

/* In plain code, inlined. */

PCPI_INLINE void pcpi_plain_to_addrs(const struct pcpi_range *r,
				     const uint32_t *pfns, void **out, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		out[i] = r->base + ((size_t)pfns[i] << r->page_shift);
}

PCPI_INLINE bool pcpi_plain_to_pfns(const struct pcpi_range *r,
				    void *const *blocks, uint32_t *out, uint32_t n)
{
	uint64_t bad = 0, page;
	uint32_t i;

	for (i = 0; i < n; i++) {
		page = pcpi_range_page(r, (uint64_t)((uintptr_t)blocks[i] -
						     (uintptr_t)r->start));
		out[i] = (uint32_t)(r->first_pfn + page);
		bad |= page >= r->nr_pfns;
	}
	return bad == 0;
}

/* Of the block at the address; orders: where the byte of address 0 would be. */
PCPI_INLINE bool pcpi_convert_is_single(const uint8_t *orders, unsigned page_shift,
					const void *block)
{
	return pcpi_likely(
		pcpi_page_is_single(orders, (uintptr_t)block >> page_shift));
}

PCPI_INLINE bool pcpi_convert_four(const uint8_t *orders, unsigned page_shift,
				   void *const *blocks)
{
	return pcpi_convert_is_single(orders, page_shift, blocks[0]) &&
	       pcpi_convert_is_single(orders, page_shift, blocks[1]) &&
	       pcpi_convert_is_single(orders, page_shift, blocks[2]) &&
	       pcpi_convert_is_single(orders, page_shift, blocks[3]);
}

/*
 * True iff the order bytes (page.h) of blocks[0..n-1] all say "a block of order 0".
 * Requires that to_pfns() has said yes to them.  In both widths: where the processor
 * has BMI2, an address is loaded and shifted in one step, and compared with memory
 * and jumped in another.  (A gather takes twice the time.)
 */
PCPI_INLINE bool pcpi_convert_single(const struct pcpi_range *r,
				     const uint8_t *orders,
				     void *const *blocks, uint32_t n)
{
	void *const *end = blocks + n, *const *end_of_fours = end - n % 4;
	unsigned shift = r->page_shift;

	orders = (const uint8_t *)((uintptr_t)orders -
				   ((uintptr_t)r->base >> shift));
	for (; blocks < end_of_fours; blocks += 4)
		if (!pcpi_convert_four(orders, shift, blocks))
			return false;
	for (; blocks < end; blocks++)
		if (!pcpi_convert_is_single(orders, shift, *blocks))
			return false;
	return true;
}

#endif
