/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_table.c - which extent a page is part of, and what of it is mapped, over tables
 * of its own; and the words of mem.h.
 */
#include <criterion/criterion.h>

#include "mem.h"
#include "table.h"

enum { PAGES = 2 * SHIM_WINDOW_PAGES };

struct shim_range shim_range;
static uint64_t heads[PAGES];
static uint8_t bytes[PAGES];

static void begin(void)
{
	shim_range.heads = heads;
	shim_range.pages = bytes;
}

TestSuite(table, .init = begin);

static void live(uint32_t pfn, unsigned order, uint32_t length, uint64_t flags)
{
	shim_head_set(pfn, shim_word(SHIM_LIVE, order, length, 0) | flags);
}

Test(table, extent_is_found_from_each_of_its_pages)
{
	for (unsigned order = 0; order < SHIM_ORDERS; order++) {
		uint32_t head = SHIM_WINDOW_PAGES, pages = UINT32_C(1) << order;

		live(head, order, 1, 0);
		for (uint32_t i = 0; i < pages; i++)
			cr_assert_eq(shim_extent_of(head + i), head);
		cr_assert_eq(shim_extent_of(head - 1), PCPI_NO_PFN);
		if (order < SHIM_MAX_ORDER)
			cr_assert_eq(shim_extent_of(head + pages), PCPI_NO_PFN);
		shim_head_set(head, 0);
		cr_assert_eq(shim_extent_of(head), PCPI_NO_PFN);
	}
}

Test(table, free_and_parked_extents_are_nobodys)
{
	shim_head_set(8, shim_word(SHIM_FREE, 3, 0, 8));
	cr_assert_eq(shim_extent_of(9), PCPI_NO_PFN);
	shim_head_set(8, shim_parked(3, 1));
	cr_assert_eq(shim_extent_of(9), PCPI_NO_PFN);
	shim_head_set(8, shim_word(SHIM_BUSY, 3, 8, 8));
	cr_assert_eq(shim_extent_of(9), 8);
}

Test(table, neighbours_are_told_apart)
{
	live(0, 0, 1, 0);
	live(1, 0, 1, 0);
	live(2, 1, 2, 0);
	live(4, 2, 3, 0);
	cr_assert_eq(shim_extent_of(0), 0);
	cr_assert_eq(shim_extent_of(1), 1);
	cr_assert_eq(shim_extent_of(3), 2);
	cr_assert_eq(shim_extent_of(7), 4);
	cr_assert_eq(shim_mapped_run(0, 16), 7);
	cr_assert_eq(shim_hole_run(7, 16), 9);
}

Test(table, run_ends_with_the_length_and_with_the_range)
{
	live(16, 4, 10, 0);
	cr_assert_eq(shim_mapped_run(16, 32), 10);
	cr_assert_eq(shim_mapped_run(18, 32), 8);
	cr_assert_eq(shim_mapped_run(16, 20), 4);
	cr_assert_eq(shim_mapped_run(26, 32), 0);
	cr_assert_eq(shim_hole_run(26, 32), 6);
	cr_assert_eq(shim_hole_run(16, 32), 0);
}

Test(table, flipped_pages_are_the_other_way)
{
	live(16, 4, 10, SHIM_TAINTED);
	bytes[18] = bytes[28] = SHIM_PAGE_FLIP;
	cr_assert_eq(shim_mapped_run(16, 32), 2);
	cr_assert_eq(shim_hole_run(18, 32), 1);
	cr_assert_eq(shim_mapped_run(19, 32), 7);
	cr_assert_eq(shim_hole_run(26, 32), 2);
	cr_assert_eq(shim_mapped_run(28, 32), 1);
}

Test(table, taint_stays_and_leaves_the_rest)
{
	live(16, 4, 10, 0);
	shim_extent_taint(16);
	shim_extent_taint(16);
	cr_assert_eq(shim_head(16),
		     shim_word(SHIM_LIVE, 4, 10, 0) | SHIM_TAINTED);
	shim_extent_taint(64); /* nothing there */
	cr_assert_eq(shim_head(64), 0);
}

Test(table, entering_makes_busy_and_refuses_what_is_gone)
{
	uint64_t w;

	live(16, 4, 10, 0);
	w = shim_extent_enter(16);
	cr_assert_eq(shim_kind(w), SHIM_LIVE);
	cr_assert_eq(shim_kind(shim_head(16)), SHIM_BUSY);
	shim_head_set(16, shim_word(SHIM_FREE, 4, 0, 10));
	cr_assert_eq(shim_extent_enter(16), 0);
}

Test(mem, find_is_a_search_byte_by_byte)
{
	static _Alignas(8) uint8_t at[64];

	for (uint32_t from = 0; from < 16; from++)
		for (uint32_t n = 0; n <= 40; n++) {
			cr_assert_eq(shim_find(at + from, 1, n), n);
			for (uint32_t k = 0; k < 48; k++) {
				at[from + k] = 1;
				cr_assert_eq(shim_find(at + from, 1, n),
					     k < n ? k : n);
				at[from + k] = 0;
			}
		}
}

Test(mem, fill_and_copy_stay_within_bounds)
{
	unsigned char a[64] = {0}, b[64] = {0};

	for (size_t n = 0; n < 48; n++) {
		shim_fill(a, 0, sizeof(a));
		shim_fill(b, 9, sizeof(b));
		shim_fill(a + 8, 7, n);
		shim_copy(b + 8, a + 8, n);
		for (size_t i = 0; i < sizeof(a); i++) {
			bool in = i >= 8 && i < 8 + n;

			cr_assert_eq(a[i], in ? 7 : 0);
			cr_assert_eq(b[i], in ? 7 : 9);
		}
	}
}
