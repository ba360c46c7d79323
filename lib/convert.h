/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * convert.h - arrays of page indices to arrays of addresses and back.  Layer 2.
 *
 * Owns: the arithmetic for many entries at once, in two widths: plain C, and
 * AVX2 where the processor has it, chosen once per heap by
 * pcpi_convert_wide().  (Not by ifunc: its resolver runs before sanitizers
 * are ready.)  64 conversions cost some 90 ns in plain code for baseline
 * x86-64, some 20 ns with AVX2.
 *
 * Concurrency: none.  Failure: a pointer that is no page of the range makes
 * pcpi_convert_to_pfns() return false; what it wrote then has no meaning.
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

/* The least number of entries that the wide code is called for: below, its
 * constants cost more than it saves. */
#define PCPI_CONVERT_WIDE_MIN 8u

/* Whether this processor runs the wide code. */
bool pcpi_convert_wide(void);

/* The wide code; each does a multiple of 8 entries and returns how many.  Where
 * pcpi_convert_wide() says no, they must not be called. */
uint32_t pcpi_convert_to_addrs_wide(const struct pcpi_range *r,
				    const uint32_t *pfns, void **out,
				    uint32_t n);
uint32_t pcpi_convert_to_pfns_wide(const struct pcpi_range *r,
				   void *const *blocks, uint32_t *out,
				   uint32_t n, bool *ok);
uint32_t pcpi_convert_single_wide(const uint8_t *orders, const uint32_t *pfns,
				  uint32_t n, bool *ok);

/* out[i] = address of pfns[i], i < n. */
static inline void pcpi_convert_to_addrs(const struct pcpi_range *r, bool wide,
					 const uint32_t *pfns, void **out,
					 uint32_t n)
{
	uint32_t i = 0;

	if (wide && n >= PCPI_CONVERT_WIDE_MIN)
		i = pcpi_convert_to_addrs_wide(r, pfns, out, n);
	for (; i < n; i++)
		out[i] = r->base + ((size_t)pfns[i] << r->page_shift);
}

/* out[i] = index of blocks[i], i < n; true iff all are pages of the range. */
static inline bool pcpi_convert_to_pfns(const struct pcpi_range *r, bool wide,
					void *const *blocks, uint32_t *out,
					uint32_t n)
{
	uint64_t bad = 0, off, turned;
	uint32_t i = 0;
	bool ok = true;

	if (wide && n >= PCPI_CONVERT_WIDE_MIN)
		i = pcpi_convert_to_pfns_wide(r, blocks, out, n, &ok);
	for (; i < n; i++) {
		off = (uint64_t)((uintptr_t)blocks[i] - (uintptr_t)r->base);
		turned = off >> r->page_shift | off << (-r->page_shift & 63);
		out[i] = (uint32_t)turned;
		bad |= turned - r->first_pfn >= r->nr_pfns;
	}
	return bad == 0 && ok;
}

/* True iff the order bytes (page.h) of all n pages say "a block of order 0".
 * (A gather of AVX2 takes twice the time of loads one by one.) */
static inline bool pcpi_convert_single(const uint8_t *orders, bool wide,
				       const uint32_t *pfns, uint32_t n)
{
	unsigned other = 0;
	uint32_t i = 0;
	bool ok = true;

	if (wide && n >= PCPI_CONVERT_WIDE_MIN)
		i = pcpi_convert_single_wide(orders, pfns, n, &ok);
	for (; i < n; i++)
		other |= pcpi_page_read(orders, pfns[i]) ^ 1u;
	return other == 0 && ok;
}

#endif
