/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_policy_modern.c - the policy of Linux 6.7 and later, sections B2, B3 and
 * free_high of section C of the specification, number by number; X1-X6 of
 * policy_pcp.c with random inputs.  Ticks are in test_policy_decay.c.
 */
#include "../support/policy_sim.h"

#define BATCH 63u
#define CAP (BATCH << PCPI_SCALE_MAX) /* 2016 */

static struct sim start(uint32_t high_min, uint32_t high_max)
{
	return (struct sim){
		.ps = {.high_min = high_min, .high_max = high_max, .batch = BATCH},
	};
}

/* ---- B2: drain ----------------------------------------------------------- */

Test(policy_modern, drain_fixed_from_empty_is_751_at_once)
{
	struct sim s = start(814, 814);

	EXPECT_DRAINS(&s, 751, 751, 751);
	cr_expect_eq(s.state.count, 63);
	cr_expect_eq(s.state.high, 814);
}

Test(policy_modern, drain_fixed_from_813_doubles)
{
	struct sim s = start(814, 814);

	s.state.count = 813;
	EXPECT_DRAINS(&s, 63, 64, 128, 256, 512, 751, 751);
}

Test(policy_modern, free_count_is_capped_at_2016)
{
	struct sim s = start(814, 814);

	for (int i = 0; i < 2016; i++)
		free_block(&s, 0);
	cr_expect_eq(s.state.free_count, CAP);
	EXPECT_DRAINS(&s, 751, 751);
	cr_expect_eq(s.state.free_count, CAP);
}

Test(policy_modern, free_count_of_high_orders_passes_the_cap_by_a_block)
{
	struct sim s = start(814, 814);

	s.state.free_count = CAP - 1;
	pcpi_policy_note_frees(&s.state, &s.ps, 1, 3);
	cr_expect_eq(s.state.free_count, CAP + 7);
	pcpi_policy_note_frees(&s.state, &s.ps, 100, 3);
	cr_expect_eq(s.state.free_count, CAP + 7);
}

Test(policy_modern, drain_after_one_allocation_is_still_751)
{
	struct sim s = start(814, 814);

	s.state.count = 814;
	s.state.free_count = CAP;
	alloc(&s, 1);
	cr_expect_eq(s.state.free_count, 1008);
	EXPECT_DRAINS(&s, 751);
}

Test(policy_modern, drain_after_four_allocations_restarts_at_197)
{
	struct sim s = start(814, 814);

	/* They leave 71 frees to the next drain. */
	s.state.count = 747;
	s.state.free_count = CAP;
	alloc(&s, 4);
	cr_expect_eq(s.state.free_count, 126);
	EXPECT_DRAINS(&s, 197, 394, 751, 751);
}

Test(policy_modern, drain_auto_converges_to_cap_and_a_batch)
{
	static const uint32_t at[] = {814, 877, 1691, 2079, 2079, 2079};
	static const uint32_t pages[] = {751, 814, 1628, 2016, 2016, 2016};
	static const uint32_t high[] = {877, 1691, 2079, 2079, 2079, 2079};
	struct sim s = start(814, 20000);

	for (size_t i = 0; i < 6; i++) {
		cr_expect_eq(free_to_drain(&s), pages[i], "drain %zu", i);
		cr_expect_eq(s.state.count + pages[i], at[i], "drain %zu", i);
		cr_expect_eq(s.state.high, high[i], "drain %zu: high %u", i,
			     s.state.high);
	}
}

Test(policy_modern, drain_of_a_pure_freer_leaves_high_alone)
{
	struct sim s = start(814, 20000);

	s.pure_freer = true;
	EXPECT_DRAINS(&s, 751, 751, 751);
	cr_expect_eq(s.state.high, 814);
}

Test(policy_modern, drain_below_high_watermark_is_a_batch_a_free)
{
	struct sim s = start(814, 20000);

	s.state.high = 10000;
	s.state.count = 9000;
	s.zone_flags = PCPI_ZONE_BELOW_HIGH;
	for (uint32_t i = 1; i <= 10; i++) {
		cr_expect_eq(free_block(&s, 0), 63);
		cr_expect_eq(s.state.high, 10000 - 63 * i);
	}
	/* 9937, 9874, 9811, ... down to high_min and no further. */
	for (int i = 0; i < 1000; i++)
		free_block(&s, 0);
	cr_expect_eq(s.state.high, 814);
	cr_expect_lt(s.state.count, 814);
}

Test(policy_modern, drain_below_high_watermark_spares_a_fixed_bound)
{
	struct sim s = start(814, 814);

	s.zone_flags = PCPI_ZONE_BELOW_HIGH;
	s.state.count = 700;
	cr_expect_eq(free_block(&s, 0), 0);
	EXPECT_DRAINS(&s, 114);
	cr_expect_eq(s.state.high, 814);
	/* And measures against it, not against the count. */
	s.state.count = 2000;
	s.state.free_count = CAP;
	cr_expect_eq(free_block(&s, 0), 751);
}

Test(policy_modern, drain_in_reclaim_is_a_batch_a_free_down_to_252)
{
	struct sim s = start(814, 20000);
	uint32_t frees = 0;

	s.state.high = 10000;
	s.state.count = 9000;
	s.zone_flags = PCPI_ZONE_RECLAIM_ACTIVE;
	for (int i = 0; i < 63; i++, frees++)
		cr_assert_eq(free_block(&s, 0), 63);
	/* From then on with the pages freed in a row, 189 at most. */
	while (s.state.count >= 252 && frees < 1000) {
		uint32_t pages = free_block(&s, 0);

		frees++;
		if (pages == 0)
			break;
		cr_assert_eq(pages, frees < 189 ? frees : 189);
	}
	cr_expect_lt(s.state.count, 252);
	cr_expect_eq(free_block(&s, 0), 0);
}

Test(policy_modern, drain_in_reclaim_before_below_high)
{
	struct sim s = start(814, 20000);

	s.state.high = 10000;
	s.state.count = 300;
	s.zone_flags = PCPI_ZONE_BELOW_HIGH;
	cr_expect_eq(free_block(&s, 0), 0);
	s.zone_flags |= PCPI_ZONE_RECLAIM_ACTIVE;
	cr_expect_eq(free_block(&s, 0), 63);
}

Test(policy_modern, drain_disabled_gives_each_block_back)
{
	struct sim s = start(0, 0);

	s.ps.batch = 1;
	s.state.high = 5000; /* from before */
	cr_expect_eq(free_block(&s, 0), 1);
	cr_expect_eq(s.state.high, 0);
	cr_expect_eq(free_block(&s, 0), 1);
	s.zone_flags = PCPI_ZONE_BELOW_HIGH | PCPI_ZONE_RECLAIM_ACTIVE;
	cr_expect_eq(free_block(&s, 0), 1);
	cr_expect_eq(s.state.count, 0);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 1);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 3), 1);
}

Test(policy_modern, high_is_clamped_when_used_not_before)
{
	struct sim s = start(814, 20000);

	s.state.high = 30000;
	cr_expect_eq(pcpi_policy_drain_bound(&s.state, &s.ps, 0), 20000);
	cr_expect_eq(s.state.high, 30000);
	free_block(&s, 0);
	cr_expect_eq(s.state.high, 20000);
	s.state.high = 100;
	pcpi_policy_refill(&s.state, &s.ps, PCPI_ZONE_BELOW_HIGH, 0);
	cr_expect_eq(s.state.high, 814);
}

/* ---- C: high orders ------------------------------------------------------ */

Test(policy_modern, free_high_needs_a_batch_and_half_of_high_min)
{
	struct sim s = start(814, 814);

	s.state.prev_free_high_order = true;
	s.state.free_count = 469; /* 63 + 407 = 470 */
	cr_expect(!pcpi_policy_free_high(&s.state, &s.ps, 1));
	s.state.free_count = 470;
	cr_expect(pcpi_policy_free_high(&s.state, &s.ps, 1));
	cr_expect(pcpi_policy_free_high(&s.state, &s.ps, 3));
	cr_expect(!pcpi_policy_free_high(&s.state, &s.ps, 0));
	cr_expect(!pcpi_policy_free_high(&s.state, &s.ps, 4));
	s.state.prev_free_high_order = false;
	cr_expect(!pcpi_policy_free_high(&s.state, &s.ps, 3));
}

Test(policy_modern, free_high_with_a_large_cache_keeps_a_batch)
{
	struct sim s = start(814, 814);

	s.state.prev_free_high_order = true;
	s.state.free_high_batch = true;
	s.state.free_count = 2016;
	s.state.count = 62;
	cr_expect(!pcpi_policy_free_high(&s.state, &s.ps, 3));
	s.state.count = 63;
	cr_expect(pcpi_policy_free_high(&s.state, &s.ps, 3));
}

Test(policy_modern, prev_free_high_order_is_set_by_orders_1_to_3_only)
{
	static const bool set[] = {false, true, true, true, false, false};
	struct sim s = start(814, 814);

	for (unsigned order = 0; order < 6; order++) {
		s.state.prev_free_high_order = !set[order];
		pcpi_policy_note_frees(&s.state, &s.ps, 0, order);
		cr_expect_eq(s.state.prev_free_high_order, !set[order]);
		pcpi_policy_note_frees(&s.state, &s.ps, 1, order);
		cr_expect_eq(s.state.prev_free_high_order, set[order]);
	}
}

Test(policy_modern, drain_of_a_high_order_freer_empties_the_cache)
{
	struct sim s = start(814, 20000);
	int frees = 0;

	/* The 60th block finds 472 pages freed in a row. */
	while (free_block(&s, 3) == 0)
		frees++;
	cr_expect_eq(frees, 59);
	cr_expect_eq(s.state.count, 0);
	cr_expect_eq(s.state.high, 814);
	cr_expect_eq(free_block(&s, 3), 8);
	/* A single page in between breaks the row. */
	cr_expect_eq(free_block(&s, 0), 0);
	cr_expect_eq(free_block(&s, 3), 0);
	cr_expect_eq(free_block(&s, 3), 17);
}

Test(policy_modern, drain_of_a_high_order_freer_is_capped)
{
	struct sim s = start(814, 20000);

	s.state.high = 20000;
	s.state.count = 10000;
	cr_expect_eq(pcpi_policy_drain(&s.state, &s.ps, 0, true, false), 2016);
	cr_expect_eq(s.state.high, 20000 - 2016);
}

/* ---- B3: refill ---------------------------------------------------------- */

Test(policy_modern, refill_fixed_doubles_to_751)
{
	static const uint32_t blocks[] = {63, 126, 252, 504, 751, 751};
	struct sim s = start(814, 814);

	for (size_t i = 0; i < 6; i++)
		cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0),
			     blocks[i], "refill %zu", i);
	cr_expect_eq(s.state.alloc_factor, 4);
	cr_expect_eq(s.state.high, 814);
}

Test(policy_modern, refill_that_just_fits_still_raises_the_factor)
{
	struct sim s = start(315, 315);

	for (int i = 0; i < 3; i++) /* 63, 126, 252 = 315 - 63 */
		pcpi_policy_refill(&s.state, &s.ps, 0, 0);
	cr_expect_eq(s.state.alloc_factor, 3);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 252);
	cr_expect_eq(s.state.alloc_factor, 3);
}

Test(policy_modern, refill_auto_doubles_to_2016_and_lifts_high)
{
	static const uint32_t blocks[] = {63, 126, 252, 504, 1008, 2016, 2016};
	static const uint32_t high[] = {877,  1003, 1255, 1759,
					2767, 4783, 6799};
	struct sim s = start(814, 20000);

	for (size_t i = 0; i < 7; i++) {
		cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0),
			     blocks[i], "refill %zu", i);
		cr_expect_eq(s.state.high, high[i], "refill %zu: high %u", i,
			     s.state.high);
	}
	for (int i = 0; i < 100; i++)
		pcpi_policy_refill(&s.state, &s.ps, 0, 0);
	cr_expect_eq(s.state.high, 20000);
}

Test(policy_modern, refill_factor_is_halved_by_each_free)
{
	struct sim s = start(814, 20000);

	s.state.alloc_factor = 5;
	pcpi_policy_note_frees(&s.state, &s.ps, 1, 0);
	cr_expect_eq(s.state.alloc_factor, 2);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 252);
	pcpi_policy_note_frees(&s.state, &s.ps, 2, 0);
	cr_expect_eq(s.state.alloc_factor, 0);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 63);
}

Test(policy_modern, refill_below_high_watermark_leaves_high)
{
	struct sim s = start(814, 20000);

	for (int i = 0; i < 6; i++)
		pcpi_policy_refill(&s.state, &s.ps, PCPI_ZONE_BELOW_HIGH, 0);
	cr_expect_eq(s.state.high, 814);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, PCPI_ZONE_BELOW_HIGH, 0),
		     751);
}

Test(policy_modern, refill_of_a_high_order_is_a_batch_of_pages)
{
	struct sim s = start(814, 20000);

	s.state.alloc_factor = 5;
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 1), 31);
	cr_expect_eq(s.state.high, 877);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 2), 15);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 3), 7);
	cr_expect_eq(s.state.alloc_factor, 5);
	s.ps.batch = 7;
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 3), 2);
	s.ps.batch = 1;
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 3), 1);
}

Test(policy_modern, refill_of_a_full_cache_is_one_batch)
{
	struct sim s = start(814, 814);

	s.state.alloc_factor = 5;
	s.state.count = 813; /* of other orders */
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 63);
	s.state.count = 5000;
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 63);
	s.state.count = 600;
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 151);
}

/* ---- Random -------------------------------------------------------------- */

static struct sim random_sim(void)
{
	struct sim s = start(0, 0);

	s.ps.legacy = draw(4) == 0;
	s.ps.batch = 1 + draw(1u << draw(12));
	s.ps.high_min = draw(8) ? 4 * s.ps.batch + draw(1u << draw(16))
				: draw(8 * s.ps.batch);
	s.ps.high_max = s.ps.high_min;
	if (!s.ps.legacy && draw(3))
		s.ps.high_max += draw(1u << draw(18));
	s.state.count = draw(1u << draw(18));
	s.state.high = draw(1u << draw(18));
	s.state.free_count = draw((s.ps.batch << PCPI_SCALE_MAX) + 8);
	s.state.free_factor = draw(PCPI_SCALE_MAX + 1);
	s.state.alloc_factor = draw(PCPI_SCALE_MAX + 1);
	s.state.prev_free_high_order = draw(2) != 0;
	s.state.free_high_batch = draw(2) != 0;
	s.zone_flags = draw(4);
	s.pure_freer = draw(2) != 0;
	return s;
}

static bool high_is_within(const struct sim *s)
{
	return s->ps.high_min <= s->state.high &&
	       s->state.high <= s->ps.high_max;
}

Test(policy_modern, note_random_runs_equal_single_steps)
{
	start_random();
	for (int i = 0; i < 20000; i++) {
		struct sim a = random_sim(), b = a;
		uint32_t n = draw(1u << draw(10));
		unsigned order = draw(5);

		pcpi_policy_note_frees(&a.state, &a.ps, n, order);
		for (uint32_t k = 0; k < n; k++)
			pcpi_policy_note_frees(&b.state, &b.ps, 1, order);
		cr_assert_eq(a.state.free_count, b.state.free_count);
		cr_assert_eq(a.state.alloc_factor, b.state.alloc_factor);
		cr_assert_eq(a.state.prev_free_high_order,
			     b.state.prev_free_high_order);
		cr_assert_lt(a.state.free_count,
			     (a.ps.batch << PCPI_SCALE_MAX) + 16);
		n = draw(40);
		pcpi_policy_note_allocs(&a.state, n);
		for (uint32_t k = 0; k < n; k++)
			pcpi_policy_note_allocs(&b.state, 1);
		cr_assert_eq(a.state.free_count, b.state.free_count);
		cr_assert_eq(a.state.free_factor, b.state.free_factor);
	}
}

Test(policy_modern, drain_random_states_are_bounded_and_agree_with_the_bound)
{
	start_random();
	for (int i = 0; i < 300000; i++) {
		struct sim s = random_sim(), was = s;
		uint32_t bound =
			pcpi_policy_drain_bound(&s.state, &s.ps, s.zone_flags);
		uint32_t pages = pcpi_policy_drain(&s.state, &s.ps, s.zone_flags,
						   false, s.pure_freer);

		cr_assert_leq(pages, s.state.count);
		cr_assert_leq(pages, (s.ps.batch << PCPI_SCALE_MAX) + 7);
		cr_assert_eq(pages != 0,
			     s.state.count != 0 && s.state.count >= bound);
		cr_assert(high_is_within(&s));
		if (s.pure_freer || s.zone_flags)
			cr_assert(s.state.high <= was.state.high ||
				  s.state.high == s.ps.high_min);
	}
}

Test(policy_modern, drain_random_free_high_takes_all_or_the_cap)
{
	start_random();
	for (int i = 0; i < 100000; i++) {
		struct sim s = random_sim();
		uint32_t cap = s.ps.batch << PCPI_SCALE_MAX;

		s.ps.legacy = false;
		cr_assert_eq(pcpi_policy_drain(&s.state, &s.ps, s.zone_flags,
					       true, s.pure_freer),
			     s.state.count < cap ? s.state.count : cap);
		cr_assert(high_is_within(&s));
	}
}

Test(policy_modern, refill_random_states_leave_room_for_a_batch)
{
	start_random();
	for (int i = 0; i < 300000; i++) {
		struct sim s = random_sim();
		unsigned order = draw(4);
		uint32_t blocks = pcpi_policy_refill(&s.state, &s.ps,
						     s.zone_flags, order);
		uint32_t batch = s.ps.batch, high = s.state.high;

		cr_assert_geq(blocks, 1);
		cr_assert(high_is_within(&s));
		cr_assert_leq(s.state.alloc_factor, PCPI_SCALE_MAX);
		cr_assert_leq(blocks << order,
			      (batch << PCPI_SCALE_MAX) + (2u << order));
		/* No ping-pong: neither does the refill itself reach the bound
		 * nor do a batch of frees after it. */
		if (order == 0 && high >= 4 * batch && !s.ps.legacy &&
		    s.state.count + 2 * batch <= high)
			cr_assert_leq(s.state.count + blocks + batch, high);
	}
}

/* A cache of four lists, as real as blocks that are only counted can be. */
static void cache_drain(struct sim *s, uint32_t *lens, uint32_t pages,
			struct pcpi_split_cursor *cursor)
{
	uint32_t take[PCPI_PCP_ORDERS];

	s->state.count -= pcpi_policy_split(&pcpi_split_cache, lens, NULL,
					    pages, cursor, take);
	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++)
		lens[o] -= take[o];
}

static void cache_free(struct sim *s, uint32_t *lens, unsigned order,
		       struct pcpi_split_cursor *cursor)
{
	uint32_t pages;

	lens[order]++;
	pages = free_block(s, order);
	s->state.count += pages; /* which blocks, the split says */
	cache_drain(s, lens, pages, cursor);
}

static void cache_alloc(struct sim *s, uint32_t *lens, unsigned order)
{
	if (lens[order] == 0) {
		lens[order] = pcpi_policy_refill(&s->state, &s->ps,
						 s->zone_flags, order);
		s->state.count += lens[order] << order;
	}
	lens[order]--;
	s->state.count -= 1u << order;
	pcpi_policy_note_allocs(&s->state, 1);
}

static uint32_t sum_pages(const uint32_t *lens)
{
	return lens[0] + 2 * lens[1] + 4 * lens[2] + 8 * lens[3];
}

Test(policy_modern, cache_random_traffic_keeps_its_bound)
{
	start_random();
	for (int i = 0; i < 500; i++) {
		uint32_t lens[PCPI_PCP_ORDERS] = {0};
		struct pcpi_split_cursor cursor = {0, 0};
		struct sim s = random_sim();
		uint32_t frees = 1 + draw(9), slack;

		s.state.count = 0;
		if (s.ps.high_min < 4 * s.ps.batch)
			s.ps.high_min = s.ps.high_max = 4 * s.ps.batch;
		/* One refill of each order may come on top. */
		slack = PCPI_PCP_ORDERS * (s.ps.batch + 16);
		for (int k = 0; k < 3000; k++) {
			unsigned order = draw(4) ? 0 : draw(4);

			if (draw(10) < frees)
				cache_free(&s, lens, order, &cursor);
			else
				cache_alloc(&s, lens, order);
			cr_assert_eq(sum_pages(lens), s.state.count);
			cr_assert_leq(s.state.count, s.ps.high_max + slack);
		}
	}
}

/* ---- Catching up with what a hot path did not note ----------------------- */

Test(policy_modern, catching_up_with_frees_equals_noting_each)
{
	struct pcpi_pageset ps = {.high_min = 814, .high_max = 20000, .batch = 63};

	for (uint32_t n = 0; n < 3000; n += 7) {
		struct pcpi_pcp_state one = {.alloc_factor = 5, .free_count = 40};
		struct pcpi_pcp_state all = one;

		for (uint32_t i = 0; i < n; i++)
			pcpi_policy_note_frees(&one, &ps, 1, 0);
		pcpi_policy_catch_up(&all, &ps, 0, n, n);
		cr_assert_eq(all.alloc_factor, one.alloc_factor, "%u frees", n);
		cr_assert_eq(all.free_count, one.free_count, "%u frees", n);
	}
}

Test(policy_modern, catching_up_with_allocs_equals_noting_each)
{
	struct pcpi_pageset ps = {.high_min = 814, .high_max = 20000, .batch = 63};

	for (uint32_t n = 0; n < 70; n++) {
		struct pcpi_pcp_state one = {.free_factor = 4, .free_count = 2016};
		struct pcpi_pcp_state all = one;

		for (uint32_t i = 0; i < n; i++)
			pcpi_policy_note_allocs(&one, 1);
		pcpi_policy_catch_up(&all, &ps, n, 0, 0);
		cr_assert_eq(all.free_factor, one.free_factor, "%u allocs", n);
		cr_assert_eq(all.free_count, one.free_count, "%u allocs", n);
	}
}

Test(policy_modern, catching_up_spreads_frees_between_allocs)
{
	struct pcpi_pageset ps = {.high_min = 814, .high_max = 20000, .batch = 63};
	struct pcpi_pcp_state s = {.free_count = 400};

	pcpi_policy_catch_up(&s, &ps, 3, 800, 800);
	cr_assert_eq(s.free_count, 400u / 8 + 800u / 4);
}

Test(policy_modern, hand_over_is_whole_batches_and_two_at_most)
{
	cr_assert_eq(pcpi_policy_hand_over(63, 64), 0);
	cr_assert_eq(pcpi_policy_hand_over(64, 64), 64);
	cr_assert_eq(pcpi_policy_hand_over(127, 64), 64);
	cr_assert_eq(pcpi_policy_hand_over(128, 64), 128);
	cr_assert_eq(pcpi_policy_hand_over(5000, 64), 128);
	cr_assert_eq(pcpi_policy_hand_over(5000, 0), 0);
}
