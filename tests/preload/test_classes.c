/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_classes.c - sizes to orders, an extent's word, and when a size class is warm or
 * cold.
 */
#include <criterion/criterion.h>

#include "classes.h"

Test(extent, order_for_is_the_smallest_that_holds)
{
	cr_assert_eq(shim_order_for(0), 0);
	cr_assert_eq(shim_order_for(1), 0);
	cr_assert_eq(shim_order_for(SHIM_WINDOW_PAGES), SHIM_MAX_ORDER);
	for (uint64_t pages = 2; pages <= SHIM_WINDOW_PAGES; pages++) {
		unsigned order = shim_order_for(pages);

		cr_assert(UINT64_C(1) << order >= pages);
		cr_assert(UINT64_C(1) << (order - 1) < pages);
	}
}

Test(extent, pages_round_up)
{
	cr_assert_eq(shim_pages(0), 0);
	cr_assert_eq(shim_pages(1), 1);
	cr_assert_eq(shim_pages(SHIM_PAGE_BYTES), 1);
	cr_assert_eq(shim_pages(SHIM_PAGE_BYTES + 1), 2);
	cr_assert_eq(shim_pages(SIZE_MAX), UINT64_C(1) << 52);
}

Test(extent, word_keeps_each_field)
{
	uint32_t most = SHIM_WINDOW_PAGES;
	uint64_t w = shim_word(SHIM_LIVE, SHIM_MAX_ORDER, most, most);

	cr_assert_eq(shim_kind(w), SHIM_LIVE);
	cr_assert_eq(shim_order(w), SHIM_MAX_ORDER);
	cr_assert_eq(shim_length(w), most);
	cr_assert_eq(shim_high(w), most);
	cr_assert_not(w & (SHIM_TAINTED | SHIM_COLD));
	w = shim_busy(w | SHIM_TAINTED | SHIM_COLD, UINT32_MAX);
	cr_assert_eq(shim_kind(w), SHIM_BUSY);
	cr_assert(w & SHIM_TAINTED && w & SHIM_COLD);
	cr_assert_eq(shim_length(w), most);
	cr_assert_eq(shim_high(w), most);
	cr_assert_not(shim_left_behind(w, UINT32_MAX));
	cr_assert(shim_left_behind(w, 0));
	w = shim_live(w);
	cr_assert_eq(w, shim_word(SHIM_LIVE, SHIM_MAX_ORDER, most, most) |
				SHIM_TAINTED | SHIM_COLD);
	cr_assert_not(shim_left_behind(w, 0));
}

Test(extent, parked_word_keeps_order_and_next)
{
	for (unsigned order = 0; order < SHIM_ORDERS; order++) {
		uint64_t w = shim_parked(order, UINT32_MAX);

		cr_assert_eq(shim_kind(w), SHIM_PARKED);
		cr_assert_eq(shim_order(w), order);
		cr_assert_eq(shim_next(w), UINT32_MAX);
		cr_assert_not(shim_held(w));
	}
}

Test(extent, shorter_length_leaves_what_may_be_dirty)
{
	uint64_t w = shim_word(SHIM_LIVE, 4, 12, 3) | SHIM_COLD;

	w = shim_with_length(w, 5);
	cr_assert_eq(shim_length(w), 5);
	cr_assert_eq(shim_high(w), 12);
	w = shim_with_length(w, 16);
	cr_assert_eq(shim_length(w), 16);
	cr_assert_eq(shim_high(w), 12);
	cr_assert_eq(shim_order(w), 4);
	cr_assert(w & SHIM_COLD);
}

Test(classes, small_sizes_are_always_kept_and_never_measured)
{
	struct shim_class c = {0};

	shim_class_learn(&c, 0, 0, 1);
	for (unsigned order = 0; order <= SHIM_ALWAYS_WARM; order++) {
		cr_assert(shim_class_keeps(&c, order));
		cr_assert_not(shim_class_measures(&c, order));
	}
}

Test(classes, new_class_is_measured_and_kept)
{
	struct shim_class c = {0};

	cr_assert(shim_class_measures(&c, 9));
	cr_assert(shim_class_keeps(&c, 9));
	cr_assert_eq(shim_class_interval(&c, 9), SHIM_WARM_PROBE_MIN);
}

Test(classes, a_twentieth_touched_is_warm_and_less_is_cold)
{
	struct shim_class c = {0};

	shim_class_learn(&c, 9, 511 / SHIM_TOUCHED_SHARE, 512);
	cr_assert_not(shim_class_keeps(&c, 9));
	shim_class_learn(&c, 9, 512 / SHIM_TOUCHED_SHARE + 1, 512);
	cr_assert(shim_class_keeps(&c, 9));
}

Test(classes, cold_class_is_measured_now_and_then)
{
	struct shim_class c = {0};
	unsigned measured = 0;

	shim_class_learn(&c, 9, 0, 512);
	for (unsigned i = 0; i < 10 * SHIM_COLD_PROBE; i++)
		measured += shim_class_measures(&c, 9);
	cr_assert_eq(measured, 10);
}

Test(classes, probes_of_a_warm_class_become_rare_up_to_a_bound)
{
	struct shim_class c = {0};
	uint32_t before = 0;

	for (unsigned i = 0; i < 20; i++) {
		shim_class_learn(&c, 5, 16, 16);
		cr_assert_geq(shim_class_interval(&c, 5), before);
		before = shim_class_interval(&c, 5);
	}
	cr_assert_eq(before, SHIM_WARM_PROBE_MAX);
	for (unsigned i = 0; i < 20; i++)
		shim_class_learn(&c, 9, 512, 512);
	cr_assert_eq(shim_class_interval(&c, 9), SHIM_WARM_PROBE_MAX_LARGE);
}

Test(classes, one_untouched_probe_makes_cold_and_a_touched_one_begins_anew)
{
	struct shim_class c = {0};

	for (unsigned i = 0; i < 20; i++)
		shim_class_learn(&c, 9, 512, 512);
	shim_class_learn(&c, 9, 0, 512);
	cr_assert_not(shim_class_keeps(&c, 9));
	cr_assert_eq(shim_class_interval(&c, 9), SHIM_NEVER);
	shim_class_learn(&c, 9, 512, 512);
	cr_assert(shim_class_keeps(&c, 9));
	cr_assert_eq(shim_class_interval(&c, 9), SHIM_WARM_PROBE_MIN);
}
