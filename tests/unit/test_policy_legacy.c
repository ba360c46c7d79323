/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_policy_legacy.c - the policy of Linux 5.14, section B1 of the
 * specification, drain by drain.  X1, X3, X5 of policy_pcp.c.
 */
#include "../support/policy_sim.h"

static struct sim start(uint32_t high, uint32_t batch)
{
	return (struct sim){
		.ps = {.high_min = high,
		       .high_max = high,
		       .batch = batch,
		       .legacy = true},
	};
}

Test(policy_legacy, drain_high_814_doubles_to_751)
{
	static const uint32_t at[] = {814, 877, 1003, 1255, 1759, 2510, 3261};
	static const uint32_t pages[] = {63, 126, 252, 504, 751, 751, 751};
	static const uint32_t factor[] = {1, 2, 3, 4, 4, 4, 4};
	struct sim s = start(814, 63);

	for (size_t i = 0; i < 7; i++) {
		cr_expect_eq(free_to_drain(&s), pages[i], "drain %zu", i);
		cr_expect_eq(s.frees, at[i], "drain %zu at %u", i, s.frees);
		cr_expect_eq(s.state.free_factor, factor[i], "drain %zu", i);
		cr_expect_eq(s.state.count + pages[i], 814);
	}
}

Test(policy_legacy, drain_started_at_factor_one_shows_the_reported_trace)
{
	struct sim s = start(814, 63);

	s.state.free_factor = 1;
	EXPECT_DRAINS(&s, 126, 252, 504, 751, 751);
}

/* At saturation: the exponent is 4. */
static struct sim start_saturated(void)
{
	struct sim s = start(814, 63);

	EXPECT_DRAINS(&s, 63, 126, 252, 504, 751);
	return s;
}

Test(policy_legacy, drain_after_one_allocation_is_quartered)
{
	struct sim s = start_saturated();

	alloc(&s, 1);
	cr_expect_eq(s.state.free_factor, 2);
	EXPECT_DRAINS(&s, 252, 504, 751, 751);
}

Test(policy_legacy, drain_after_two_allocations_restarts_at_126)
{
	struct sim s = start_saturated();

	alloc(&s, 2);
	cr_expect_eq(s.state.free_factor, 1);
	EXPECT_DRAINS(&s, 126, 252, 504, 751);
}

Test(policy_legacy, drain_after_three_allocations_restarts_at_63)
{
	struct sim s = start_saturated();

	alloc(&s, 3);
	cr_expect_eq(s.state.free_factor, 0);
	EXPECT_DRAINS(&s, 63, 126, 252, 504, 751);
	alloc(&s, 60);
	EXPECT_DRAINS(&s, 63, 126, 252, 504, 751);
}

Test(policy_legacy, drain_high_724_ends_at_661)
{
	struct sim s = start(724, 63);

	EXPECT_DRAINS(&s, 63, 126, 252, 504, 661, 661);
}

Test(policy_legacy, drain_high_378_ends_at_315)
{
	struct sim s = start(378, 63);

	EXPECT_DRAINS(&s, 63, 126, 252, 315, 315);
}

Test(policy_legacy, drain_factor_rests_at_the_first_clamped_drain)
{
	struct sim s = start(520, 63);

	/* 504 pages are below 520, but above 520 - 63. */
	EXPECT_DRAINS(&s, 63, 126, 252, 457, 457);
	cr_expect_eq(s.state.free_factor, 3);
	alloc(&s, 1);
	EXPECT_DRAINS(&s, 126, 252, 457);
}

Test(policy_legacy, drain_under_alternation_stays_at_one_batch)
{
	struct sim s = start(814, 63);

	for (int i = 0; i < 20; i++) {
		EXPECT_DRAINS(&s, 63);
		alloc(&s, 1);
	}
}

Test(policy_legacy, drain_huge_high_is_capped_at_32_batches)
{
	struct sim s = start(60000, 63);

	EXPECT_DRAINS(&s, 63, 126, 252, 504, 1008, 2016, 2016, 2016);
	cr_expect_eq(s.state.free_factor, PCPI_SCALE_MAX);
}

Test(policy_legacy, drain_disabled_gives_each_page_back)
{
	struct sim s = start(0, 1);

	for (int i = 0; i < 5; i++)
		cr_expect_eq(free_to_drain(&s), 1);
	cr_expect_eq(s.frees, 5);
	/* And nothing once it is empty. */
	cr_expect_eq(s.state.count, 0);
	cr_expect_eq(pcpi_policy_drain(&s.state, &s.ps, 0, false, false), 0);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 1);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 3), 1);
}

Test(policy_legacy, drain_high_below_batch_gives_each_page_back)
{
	struct sim s = start(62, 63);

	cr_expect_eq(free_to_drain(&s), 1);
	cr_expect_eq(s.frees, 62);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 1);
}

Test(policy_legacy, drain_high_of_one_batch_still_drains)
{
	struct sim s = start(63, 63);

	EXPECT_DRAINS(&s, 1, 1, 1);
	s = start(100, 63);
	EXPECT_DRAINS(&s, 37, 37);
}

Test(policy_legacy, drain_ignores_flags_and_high_orders)
{
	struct sim s = start(814, 63);

	s.state.count = 813;
	s.state.prev_free_high_order = true;
	s.state.free_count = 2000;
	cr_expect(!pcpi_policy_free_high(&s.state, &s.ps, 3));
	cr_expect_eq(pcpi_policy_drain(&s.state, &s.ps,
				       PCPI_ZONE_BELOW_HIGH |
					       PCPI_ZONE_RECLAIM_ACTIVE,
				       true, true),
		     0);
	cr_expect_eq(s.state.high, 814);
}

Test(policy_legacy, refill_is_one_batch)
{
	struct sim s = start(814, 63);

	for (int i = 0; i < 4; i++)
		cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 0), 63);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 1), 31);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 2), 15);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 3), 7);
}

Test(policy_legacy, refill_of_a_high_order_is_at_least_two)
{
	struct sim s = start(100, 7);

	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 2), 2);
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 3), 2);
	s.ps.batch = 1;
	cr_expect_eq(pcpi_policy_refill(&s.state, &s.ps, 0, 3), 1);
}

Test(policy_legacy, decay_does_nothing_to_a_cache_below_high)
{
	struct sim s = start(814, 63);
	struct pcpi_decay todo;

	s.state.count = 813;
	todo = pcpi_policy_decay(&s.state, &s.ps);
	cr_expect_eq(todo.pages, 0);
	cr_expect(!todo.more);
	cr_expect_eq(s.state.high, 814);
	/* Somebody freed a lot at once: the excess goes. */
	s.state.count = 5000;
	todo = pcpi_policy_decay(&s.state, &s.ps);
	cr_expect_eq(todo.pages, 5000 - 814);
	cr_expect(todo.more);
}

/* The formula of the specification, in the words of the specification. */
static uint32_t formula(uint64_t high, uint64_t batch, uint64_t f)
{
	uint64_t lo = batch, hi = high - batch, x = batch << f;

	if (high < batch)
		return 1;
	x = x < lo ? lo : x;
	return (uint32_t)(x > hi ? hi : x);
}

Test(policy_legacy, drain_random_states_match_the_formula)
{
	start_random();
	for (int i = 0; i < 100000; i++) {
		uint32_t batch = 1 + draw(200);
		uint32_t high = 2 * batch + draw(65536);
		uint32_t f = draw(PCPI_SCALE_MAX + 1);
		struct sim s = start(high, batch);
		uint32_t pages;

		s.state.free_factor = f;
		s.state.count = draw(2 * high);
		pages = pcpi_policy_drain(&s.state, &s.ps, 0, false, false);
		if (s.state.count < high) {
			cr_assert_eq(pages, 0);
			continue;
		}
		cr_assert_eq(pages, formula(high, batch, f));
		cr_assert_leq(s.state.free_factor, PCPI_SCALE_MAX);
		/* A batch stays behind, and there is room for one. */
		cr_assert_geq(s.state.count - pages, batch);
		cr_assert_geq(pages, batch);
	}
}
