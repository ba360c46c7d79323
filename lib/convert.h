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

/* A range of pages: indices first_pfn .. first_pfn + nr_pfns - 1 at base. */
struct pcpi_range {
	char *base; /* address of index 0 */
	unsigned page_shift;
	uint32_t first_pfn, nr_pfns;
};

/* Whether this processor runs the wide code. */
bool pcpi_convert_wide(void);

/* out[i] = address of pfns[i], i < n. */
void pcpi_convert_to_addrs(const struct pcpi_range *r, bool wide,
			   const uint32_t *pfns, void **out, uint32_t n);

/* out[i] = index of blocks[i], i < n; true iff all are pages of the range. */
bool pcpi_convert_to_pfns(const struct pcpi_range *r, bool wide,
			  void *const *blocks, uint32_t *out, uint32_t n);

/* True iff the order bytes (page.h) of all n pages say "a block of order 0".
 * Requires that three bytes past the last order byte can be read. */
bool pcpi_convert_single(const uint8_t *orders, bool wide, const uint32_t *pfns,
			 uint32_t n);

#endif
