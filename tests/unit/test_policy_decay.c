/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_policy_decay.c - section B4 and F6 of the specification: what ticks do
 * to an idle cache.  X2 of policy_pcp.c.
 */
#include <math.h>

#include "../support/policy_sim.h"

#define BATCH 63u
#define CAP (BATCH << PCPI_SCALE_MAX) /* 2016 */

static struct sim start(uint32_t high_min, uint32_t high_max)
{
	return (struct sim){
		.ps = {.high_min = high_min, .high_max = high_max, .batch = BATCH},
	};
}

Test(policy_decay, tick_of_an_empty_cache_takes_25_ticks)
{
	static const uint32_t high[] = {17500, 15313, 13399};
	struct sim s = start(814, 20000);
	uint32_t ticks = 0;

	s.state.high = 20000;
	for (bool more = true; more; ticks++) {
		struct pcpi_decay todo = pcpi_policy_decay(&s.state, &s.ps);

		cr_assert_eq(todo.pages, 0);
		if (ticks < 3)
			cr_expect_eq(s.state.high, high[ticks]);
		more = todo.more;
	}
	cr_expect_eq(s.state.high, 814);
	cr_expect_eq(ticks, 25);
}

Test(policy_decay, tick_of_a_full_cache_rests_at_the_26th_tick)
{
	static const uint32_t pages[] = {2016, 2016, 1996, 1746};
	struct sim s = start(814, 20000);

	s.state.high = s.state.count = 20000;
	for (uint32_t tick = 1; tick <= 26; tick++) {
		struct pcpi_decay todo = pcpi_policy_decay(&s.state, &s.ps);

		s.state.count -= todo.pages;
		if (tick <= 4)
			cr_expect_eq(todo.pages, pages[tick - 1]);
		cr_expect_eq(s.state.high == 814, tick >= 25, "tick %u", tick);
		cr_expect_eq(todo.more, tick < 26, "tick %u", tick);
		cr_expect_eq(todo.pages != 0, tick < 26, "tick %u", tick);
	}
	cr_expect_eq(s.state.count, 814);
}

/* Ticks until a cache does nothing any more, and F6's bound of them. */
static uint32_t count_ticks(struct sim *s)
{
	for (uint32_t ticks = 1; ticks < 10000; ticks++) {
		struct pcpi_decay todo = pcpi_policy_decay(&s->state, &s->ps);

		s->state.count -= todo.pages;
		if (!todo.more)
			return ticks;
	}
	return UINT32_MAX;
}

static uint32_t bound_ticks(const struct sim *s)
{
	double step = s->ps.batch << PCPI_SCALE_MAX;
	double k = ceil((s->state.count - 8 * step) / step);
	double high = k > 0 ? 8 * step : s->state.high;
	double shrink = ceil(log(high / s->ps.high_min) / log(8.0 / 7.0));

	return (uint32_t)(fmax(k, 0) + fmax(shrink, 0) + 3);
}

static void expect_ticks(uint32_t high, uint32_t count, uint32_t ticks,
			 uint32_t bound)
{
	struct sim s = start(814, high);

	s.state.high = high;
	s.state.count = count;
	cr_expect_eq(bound_ticks(&s), bound, "%u", bound_ticks(&s));
	cr_expect_eq(count_ticks(&s), ticks);
}

Test(policy_decay, tick_of_the_specifications_cases_keeps_the_bound)
{
	expect_ticks(20000, 20000, 26, 28);
	expect_ticks(84650, 84650, 58, 60);
	expect_ticks(84650, 0, 35, 38);
}

Test(policy_decay, tick_of_small_caches_reaches_high_min)
{
	for (uint32_t high_min = 4; high_min < 300; high_min++) {
		for (uint32_t high = high_min; high < 3000; high += 3) {
			struct sim s = start(high_min, 3000);
			uint32_t bound;

			s.ps.batch = high_min / 4;
			s.state.high = s.state.count = high;
			bound = bound_ticks(&s);
			cr_assert_leq(count_ticks(&s), bound, "%u to %u", high,
				      high_min);
			cr_assert_eq(s.state.high, high_min);
			cr_assert_leq(s.state.count, high_min);
		}
	}
}

Test(policy_decay, tick_to_zero_reaches_zero)
{
	struct sim s = start(0, 0);

	s.ps.batch = 1;
	s.state.high = s.state.count = 1000;
	cr_expect_lt(count_ticks(&s), 60);
	cr_expect_eq(s.state.count, 0);
	cr_expect_eq(s.state.high, 0);
}

Test(policy_decay, tick_of_a_high_that_was_never_set_drains_nothing)
{
	struct sim s = start(814, 20000);
	struct pcpi_decay todo;

	s.state.count = 500;
	todo = pcpi_policy_decay(&s.state, &s.ps);
	cr_expect_eq(todo.pages, 0);
	cr_expect(!todo.more);
}

Test(policy_decay, tick_after_the_zone_shrank_goes_in_steps)
{
	struct sim s = start(814, 1000);

	s.state.high = s.state.count = 20000;
	while (s.state.count > 1000) {
		struct pcpi_decay todo = pcpi_policy_decay(&s.state, &s.ps);

		cr_assert(todo.pages > 0 && todo.pages <= CAP);
		s.state.count -= todo.pages;
	}
	cr_expect_leq(s.state.high, 1000);
}

static struct sim random_sim(void)
{
	uint32_t high_min = draw(1u << draw(16));
	struct sim s = start(high_min, high_min);

	s.ps.legacy = draw(4) == 0;
	s.ps.batch = 1 + draw(1u << draw(12));
	if (!s.ps.legacy && draw(3))
		s.ps.high_max += draw(1u << draw(18));
	s.state.count = draw(1u << draw(18));
	s.state.high = draw(1u << draw(18));
	return s;
}

Test(policy_decay, tick_random_states_sink_until_idle)
{
	start_random();
	for (int i = 0; i < 3000; i++) {
		struct sim s = random_sim();

		cr_assert_lt(count_ticks(&s), 10000);
		cr_assert_eq(s.state.high, s.ps.high_min);
		cr_assert_leq(s.state.count, s.ps.high_min);
	}
}
