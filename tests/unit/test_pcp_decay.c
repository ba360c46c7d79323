/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pcp_decay.c - what ticks do to a real cache, as its owner and as the one
 * who ticks: the traces of the specification, section B4 and F.
 */
#include <criterion/criterion.h>

#include "../support/core_fixture.h"
#include "pcp.h"
#include "pcp_tune.h"

#define BATCH 63u
#define LOW 814u
#define HIGH 20000u

static struct pcpi_zone *const zone = &parts.zones[0];
static struct pcpi_cache *cache;
static uint32_t pfns[HIGH];
static uint64_t moved[PARTS_ZONES];

/* The specification's numbers instead of the zone's. */
static void bounds(struct pcpi_zone *z, uint32_t low, uint32_t high)
{
	z->pageset.high_min = low;
	z->pageset.high_max = high;
	z->pageset.batch = BATCH;
}

static void setup(void)
{
	parts_make((struct parts_spec){.nr_zones = 2, .max_mib = 2048,
				       .initial_mib = 256});
	cache = parts_cache(0);
	bounds(zone, LOW, HIGH);
	bounds(&parts.zones[1], LOW, HIGH);
}

static void teardown(void)
{
	for (unsigned i = 0; i < parts.nr_caches; i++)
		cr_expect(pcpi_cache_check(parts.caches[i]));
	for (unsigned z = 0; z < parts.nr_zones; z++) {
		cr_expect(pcpi_zone_check(&parts.zones[z]));
		cr_expect_eq(parts_pages_held(z), parts.zones[z].managed_pages);
	}
	parts_unmake();
}

TestSuite(pcp_decay, .init = setup, .fini = teardown);

/* Puts n blocks into a list past the policy. */
static void fill(struct pcpi_cache *c, unsigned order, uint32_t n)
{
	uint32_t z = c->zone->config.position;

	parts_take(z, order, pfns, n);
	cr_assert(pcpi_cache_enter(c));
	pcpi_ring_push(&c->list[order].ring, pfns, n);
	pcpi_cache_leave(c);
}

/* A cache that may hold 20,000 pages, and has count. */
static void start(uint32_t count)
{
	cr_assert_geq(cache->high_cap, HIGH, "%u", cache->high_cap);
	cache->high = HIGH;
	if (count > 0)
		fill(cache, 0, count);
}

static bool claim_give(struct pcpi_cache *c)
{
	cr_assert(pcpi_cache_claim(c));
	cr_assert(pcpi_cache_claimed_quiet(c));
	pcpi_cache_idle_give(c, moved);
	pcpi_cache_claim_end(c, PCPI_CLAIM_NONE);
	return true;
}

/* One tick as tick.c does it; pages that went. */
static uint32_t tick(struct pcpi_cache *c, enum pcpi_idle_place at)
{
	uint64_t before = pcpi_cache_pages(c);

	if (pcpi_cache_idle_plan(c, at))
		claim_give(c);
	return (uint32_t)(before - pcpi_cache_pages(c));
}

/* ---- The owner -------------------------------------------------------------------- */

Test(pcp_decay, owner_of_an_empty_cache_sinks_in_25_ticks)
{
	static const uint32_t high[] = {17500, 15313, 13399};
	unsigned ticks = 0;

	start(0);
	while (cache->high > LOW) {
		parts.env.ticks++;
		cr_assert(pcpi_cache_has_ticks(cache));
		pcpi_cache_decay(cache, 0);
		cr_assert_not(pcpi_cache_has_ticks(cache));
		if (ticks < 3)
			cr_expect_eq(cache->high, high[ticks]);
		cr_assert_leq(++ticks, 25);
	}
	cr_expect_eq(ticks, 25);
	cr_expect_eq(cache->high, LOW);
	cr_expect_eq(cache->drains[PCPI_DRAIN_DECAY], 0);
}

Test(pcp_decay, owner_of_a_full_cache_gives_what_is_above)
{
	static const uint32_t gone[] = {2016, 2016, 1996, 1746};
	uint64_t free_pages;

	start(HIGH);
	for (unsigned i = 0; i < 26; i++) {
		free_pages = zone->free_pages;
		parts.env.ticks++;
		pcpi_cache_decay(cache, 0);
		if (i < 4)
			cr_expect_eq(zone->free_pages - free_pages, gone[i]);
		if (i == 25)
			cr_expect_eq(zone->free_pages, free_pages);
		cr_expect_eq(cache->high == LOW, i >= 24, "tick %u", i + 1);
	}
	cr_expect_eq(pcpi_cache_count(cache), LOW);
	cr_expect_eq(pcpi_zone_depot_pages(zone), 0, "to the zone");
	cr_expect_eq(cache->drains[PCPI_DRAIN_DECAY], 25);
}

Test(pcp_decay, owner_catches_up_by_four_ticks_a_look)
{
	start(0);
	parts.env.ticks += 6;
	pcpi_cache_decay(cache, 0);
	cr_expect_eq(cache->high, 11725);
	pcpi_cache_decay(cache, 0);
	cr_expect_eq(cache->high, 8978);
	cr_expect_not(pcpi_cache_has_ticks(cache));
	parts.env.ticks += 1000000;
	for (unsigned i = 0; i < 8; i++)
		pcpi_cache_decay(cache, 0);
	cr_expect_eq(cache->high, LOW);
	cr_expect_not(pcpi_cache_has_ticks(cache), "there is no more to do");
}

Test(pcp_decay, look_at_a_free_and_at_a_refill_catch_up)
{
	uint32_t pfn;

	start(0);
	parts.env.ticks++;
	cr_assert_eq(pcpi_cache_refill(cache, 1, &pfn, 1), 1);
	cr_expect_eq(cache->high, 17500 + BATCH, "a refill lets it grow");
	pcpi_cache_push(cache, 1, &pfn, 1);
	parts.env.ticks++;
	pcpi_cache_trim(cache, 1);
	cr_expect_not(pcpi_cache_has_ticks(cache));
}

Test(pcp_decay, fixed_bound_never_sinks)
{
	bounds(zone, HIGH, HIGH);
	start(HIGH - 1);
	parts.env.ticks += 3;
	pcpi_cache_decay(cache, 0);
	cr_expect_eq(cache->high, HIGH);
	cr_expect_eq(pcpi_cache_count(cache), HIGH - 1);
}

Test(pcp_decay, new_owner_has_missed_nothing)
{
	start(0);
	parts.env.ticks += 3;
	pcpi_tune_start(cache);
	cr_expect_not(pcpi_cache_has_ticks(cache));
}

/* ---- Who ticks --------------------------------------------------------------------- */

Test(pcp_decay, idle_cache_gives_the_trace_and_then_all)
{
	static const uint32_t gone[] = {0, 2016, 2016, 1996, 1746};
	unsigned ticks = 0, at_low = 0;

	start(HIGH);
	while (pcpi_cache_count(cache) > 0) {
		uint32_t n = tick(cache, PCPI_IDLE_HOME);

		if (ticks < 5)
			cr_expect_eq(n, gone[ticks], "tick %u: %u", ticks + 1, n);
		cr_assert_leq(++ticks, 40);
		if (!at_low && pcpi_cache_count(cache) <= LOW)
			at_low = ticks;
	}
	cr_expect_eq(at_low, 26, "one in use, and 25: %u", at_low);
	cr_expect_eq(ticks, at_low + 2, "%u", ticks);
	cr_expect_eq(cache->high, HIGH, "the owner's: DE1");
	cr_expect_eq(pcpi_zone_depot_pages(zone), 0);
}

Test(pcp_decay, cache_in_use_gives_nothing)
{
	uint32_t pfn;

	start(HIGH);
	for (unsigned i = 0; i < 50; i++) {
		cr_assert_eq(pcpi_cache_pop(cache, 0, &pfn, 1), 1);
		cr_assert(pcpi_cache_enter(cache));
		pcpi_ring_push(&cache->list[0].ring, &pfn, 1);
		pcpi_cache_leave(cache);
		cr_expect_not(pcpi_cache_idle_plan(cache, PCPI_IDLE_HOME));
	}
	cr_expect_eq(pcpi_cache_count(cache), HIGH);
}

Test(pcp_decay, empty_cache_asks_for_nothing)
{
	start(0);
	for (unsigned i = 0; i < 50; i++)
		cr_expect_not(pcpi_cache_idle_plan(cache, PCPI_IDLE_HOME));
}

Test(pcp_decay, cache_of_another_node_gives_a_batch_each_third_tick)
{
	static const uint32_t gone[] = {0, 0, 63, 0, 0, 63, 0, 0, 63, 0, 0, 11};

	start(200);
	for (unsigned i = 0; i < 12; i++)
		cr_expect_eq(tick(cache, PCPI_IDLE_AWAY), gone[i], "tick %u", i + 1);
	cr_expect_eq(pcpi_cache_pages(cache), 0);
}

Test(pcp_decay, cache_that_waits_only_decays)
{
	start(HIGH);
	for (unsigned i = 0; i < 40; i++)
		tick(cache, PCPI_IDLE_WAIT);
	cr_expect_eq(pcpi_cache_count(cache), LOW);
	cr_expect_not(pcpi_cache_has_away(cache, true));
	cr_expect(pcpi_cache_has_away(cache, false));
	tick(cache, PCPI_IDLE_HOME);
	tick(cache, PCPI_IDLE_HOME);
	cr_expect_eq(pcpi_cache_count(cache), 0);
}

Test(pcp_decay, outbox_gives_a_batch_each_third_tick)
{
	/* A block of order 3 brings up to 7 pages more than a batch. */
	static const uint32_t gone[] = {0, 0, 64, 0, 0, 64, 0, 0, 64, 0, 0, 8};
	struct pcpi_zone *far = &parts.zones[1];
	uint64_t before;

	far->pageset.depot_batch = 64;
	parts_take(1, 0, pfns, 52);
	for (unsigned i = 0; i < 52; i++)
		pcpi_cache_push_remote(cache, far, 0, &pfns[i], 1);
	parts_take(1, 1, pfns, 30);
	for (unsigned i = 0; i < 30; i++)
		pcpi_cache_push_remote(cache, far, 1, &pfns[i], 1);
	parts_take(1, 2, pfns, 15);
	for (unsigned i = 0; i < 15; i++)
		pcpi_cache_push_remote(cache, far, 2, &pfns[i], 1);
	parts_take(1, 3, pfns, 3);
	for (unsigned i = 0; i < 3; i++)
		pcpi_cache_push_remote(cache, far, 3, &pfns[i], 1);
	cr_assert_eq(pcpi_cache_pages(cache), 52 + 60 + 60 + 24);
	parts_take(1, 0, pfns, 4);
	for (unsigned i = 0; i < 4; i++)
		pcpi_cache_push_remote(cache, far, 0, &pfns[i], 1);
	before = far->free_pages;
	for (unsigned i = 0; i < 12; i++) {
		uint32_t n = tick(cache, PCPI_IDLE_HOME);

		cr_expect_eq(n, gone[i], "tick %u: %u", i + 1, n);
	}
	cr_expect_eq(pcpi_cache_pages(cache), 0);
	cr_expect_eq(far->free_pages, before + 200, "home");
	cr_expect_eq(moved[1], 200);
}

Test(pcp_decay, idle_cache_of_many_orders_ends_at_nothing)
{
	unsigned ticks = 0;

	start(100);
	fill(cache, 1, 50);
	fill(cache, 2, 25);
	fill(cache, 3, 13);
	while (pcpi_cache_pages(cache) > 0) {
		tick(cache, PCPI_IDLE_HOME);
		cr_assert_leq(++ticks, 60);
	}
}

Test(pcp_decay, idle_cache_that_owes_a_flush_is_to_be_emptied)
{
	start(100);
	tick(cache, PCPI_IDLE_HOME);
	cr_expect_not(cache->idle.owes);
	pcpi_cache_ask(cache);
	cr_expect(pcpi_cache_idle_plan(cache, PCPI_IDLE_HOME));
	cr_expect(cache->idle.owes);
	cr_expect(cache->idle.flush);
	pcpi_cache_settle(cache);
}

Test(pcp_decay, used_cache_that_owes_a_flush_is_left_to_its_owner)
{
	start(100);
	pcpi_cache_ask(cache);
	cr_expect_not(pcpi_cache_idle_plan(cache, PCPI_IDLE_HOME));
	cr_expect(cache->idle.owes);
	cr_expect_not(cache->idle.flush);
	pcpi_cache_settle(cache);
}
