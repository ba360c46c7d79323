/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_convert.c - plain and wide code agree, and refuse every bad pointer at
 * every position.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "../support/core_fixture.h"
#include "convert.h"
#include "page.h"

#define N_MAX 70u
#define SHIFT 12u

/* Never touched: only its addresses are. */
static const struct pcpi_range range = {
	.base = (char *)(uintptr_t)0x7f0000000000,
	.start = (char *)(uintptr_t)0x7f0040000000,
	.page_shift = SHIFT,
	.first_pfn = 0x40000,
	.nr_pfns = 0x10000,
};

static char *addr_of(const struct pcpi_range *r, uint32_t pfn)
{
	return r->base + ((size_t)pfn << r->page_shift);
}

/* 1: with the wide code, too. */
static unsigned widths(void)
{
	if (!pcpi_convert_wide())
		printf("no wide code on this processor\n");
	return pcpi_convert_wide();
}

static void random_pfns(const struct pcpi_range *r, uint64_t *seed,
			uint32_t *pfns)
{
	for (uint32_t i = 0; i < N_MAX; i++)
		pfns[i] = r->first_pfn +
			  (uint32_t)(parts_random(seed) % r->nr_pfns);
}

Test(convert, random_pages_go_there_and_back_in_both_widths)
{
	uint64_t seed = parts_seed();
	uint32_t pfns[N_MAX], back[N_MAX + 1];
	void *blocks[N_MAX + 1];

	for (unsigned wide = 0; wide <= widths(); wide++)
		for (uint32_t n = 0; n <= N_MAX; n++) {
			random_pfns(&range, &seed, pfns);
			blocks[n] = NULL;
			back[n] = 0xdead;
			pcpi_convert_to_addrs(&range, wide, pfns, blocks, n);
			for (uint32_t i = 0; i < n; i++)
				cr_assert_eq(blocks[i],
					     addr_of(&range, pfns[i]));
			cr_assert(pcpi_convert_to_pfns(&range, wide, blocks,
						       back, n));
			cr_assert_arr_eq(back, pfns, n * sizeof(*pfns));
			cr_assert_null(blocks[n], "wrote past the end");
			cr_assert_eq(back[n], 0xdead, "wrote past the end");
		}
}

Test(convert, ends_of_the_range_are_inside)
{
	uint32_t last = range.first_pfn + range.nr_pfns - 1, pfns[16];
	void *blocks[16];

	for (uint32_t i = 0; i < 16; i++)
		blocks[i] = addr_of(&range, i % 2 ? last : range.first_pfn);
	for (unsigned wide = 0; wide <= widths(); wide++) {
		cr_assert(pcpi_convert_to_pfns(&range, wide, blocks, pfns, 16));
		cr_expect_eq(pfns[8], range.first_pfn);
		cr_expect_eq(pfns[9], last);
	}
}

/* Of three windows: the bits of an index in the second and of one in the third are
 * none of the range together. */
Test(convert, pages_of_any_length_of_range_are_inside)
{
	struct pcpi_range three = range;
	uint32_t pfns[16];
	void *blocks[16];

	three.nr_pfns = 0x30000;
	for (unsigned wide = 0; wide <= widths(); wide++) {
		for (uint32_t i = 0; i < 16; i++)
			blocks[i] = addr_of(&three, three.first_pfn +
							    (0x10000u << i % 2) + i);
		cr_expect(pcpi_convert_to_pfns(&three, wide, blocks, pfns, 16));
		cr_expect_eq(pfns[15], three.first_pfn + 0x2000f);
		blocks[3] = addr_of(&three, three.first_pfn + 0x30000);
		cr_expect_not(pcpi_convert_to_pfns(&three, wide, blocks, pfns, 16));
	}
}

/* The whole of the largest window: 2^32 pages less a chunk. */
Test(convert, largest_index_survives)
{
	struct pcpi_range big = {
		.base = (char *)(uintptr_t)0x100000000000,
		.start = (char *)(uintptr_t)0x100000000000,
		.page_shift = SHIFT,
		.first_pfn = 0,
		.nr_pfns = UINT32_MAX - 511,
	};
	uint32_t pfns[8], back[8];
	void *blocks[8];

	for (uint32_t i = 0; i < 8; i++)
		pfns[i] = big.nr_pfns - 1 - i;
	for (unsigned wide = 0; wide <= widths(); wide++) {
		pcpi_convert_to_addrs(&big, wide, pfns, blocks, 8);
		cr_expect_eq(blocks[0], addr_of(&big, pfns[0]));
		cr_expect(pcpi_convert_to_pfns(&big, wide, blocks, back, 8));
		cr_expect_arr_eq(back, pfns, sizeof(pfns));
		blocks[3] = addr_of(&big, big.nr_pfns);
		cr_expect_not(pcpi_convert_to_pfns(&big, wide, blocks, back, 8));
	}
}

/* Every kind of pointer that is no page of the range. */
static void *bad_pointer(unsigned kind)
{
	uint32_t end = range.first_pfn + range.nr_pfns;
	char *inside = addr_of(&range, range.first_pfn + 5);

	switch (kind) {
	case 0:
		return NULL;
	case 1:
		return inside + 1;
	case 2:
		return inside + (1u << SHIFT) - 1;
	case 3:
		return inside + (1u << (SHIFT - 1));
	case 4: /* the page before, of another zone */
		return addr_of(&range, range.first_pfn - 1);
	case 5: /* the page after, of another zone */
		return addr_of(&range, end);
	case 6: /* before the heap */
		return range.base - (1u << SHIFT);
	case 7: /* 2^32 pages on: the same 32 bits */
		return inside + ((size_t)1 << (32 + SHIFT));
	case 8:
		return (void *)(uintptr_t)(UINT64_C(1) << 63);
	case 9: /* off by half the address space */
		return (void *)((uintptr_t)inside + (UINT64_C(1) << 63));
	default:
		return (void *)UINTPTR_MAX;
	}
}

#define BAD_KINDS 11u

Test(convert, bad_pointer_at_any_position_is_refused)
{
	uint64_t seed = parts_seed();
	uint32_t pfns[N_MAX], out[N_MAX];
	void *blocks[N_MAX], *good;

	random_pfns(&range, &seed, pfns);
	pcpi_convert_to_addrs(&range, false, pfns, blocks, N_MAX);
	for (unsigned wide = 0; wide <= widths(); wide++)
		for (uint32_t at = 0; at < N_MAX; at++)
			for (unsigned kind = 0; kind < BAD_KINDS; kind++) {
				good = blocks[at];
				blocks[at] = bad_pointer(kind);
				cr_assert_not(pcpi_convert_to_pfns(&range, wide,
								   blocks, out,
								   N_MAX),
					      "kind %u at %u, wide %u", kind,
					      at, wide);
				cr_assert(pcpi_convert_to_pfns(&range, wide,
							       blocks, out, at));
				blocks[at] = good;
			}
}

/* ---- Order bytes ------------------------------------------------------------- */

Test(convert, other_order_byte_at_any_position_is_found)
{
	static const uint8_t others[] = { PCPI_PAGE_NONE, 2, 3, 11, PCPI_PAGE_TAIL,
					  1 | PCPI_PAGE_HELD };
	static uint8_t orders[1024];
	void *blocks[N_MAX];
	uint32_t pfns[N_MAX];

	for (uint32_t i = 0; i < N_MAX; i++) {
		pfns[i] = 1023 - 13 * i;
		blocks[i] = addr_of(&range, pfns[i]);
		orders[pfns[i]] = 1;
	}
	for (uint32_t at = 0; at < N_MAX; at++) {
		cr_assert(pcpi_convert_single(&range, orders, blocks, at));
		for (unsigned k = 0; k < sizeof(others); k++) {
			orders[pfns[at]] = others[k];
			cr_assert_not(pcpi_convert_single(&range, orders, blocks,
							  N_MAX),
				      "%u at %u", others[k], at);
			cr_assert(pcpi_convert_single(&range, orders, blocks, at));
		}
		orders[pfns[at]] = 1;
	}
}
