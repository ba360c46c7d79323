/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * convert.h - arrays of page indices to arrays of addresses and back.  Layer 2.
 *
 * Owns: the arithmetic for many entries at once, in two widths: plain C here, and
 * AVX2 in convert_wide.h, for heaps whose processor has it: a flag of the heap,
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
	char *base; /* address of index 0 */
	unsigned page_shift;
	uint32_t first_pfn, nr_pfns;
};

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

/* True iff the order bytes (page.h) of all n pages say "a block of order 0". */
bool pcpi_convert_single(const uint8_t *orders, bool wide, const uint32_t *pfns,
			 uint32_t n);

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
	uint64_t bad = 0, off, turned;
	uint32_t i;

	for (i = 0; i < n; i++) {
		off = (uint64_t)((uintptr_t)blocks[i] - (uintptr_t)r->base);
		turned = off >> r->page_shift | off << (-r->page_shift & 63);
		out[i] = (uint32_t)turned;
		bad |= turned - r->first_pfn >= r->nr_pfns;
	}
	return bad == 0;
}

PCPI_INLINE bool pcpi_plain_single(const uint8_t *orders, const uint32_t *pfns,
				   uint32_t n)
{
	unsigned other = 0;
	uint32_t i;

	for (i = 0; i < n; i++)
		other |= pcpi_page_read(orders, pfns[i]) ^ 1u;
	return other == 0;
}

#endif
