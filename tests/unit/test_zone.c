/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_zone.c - accounting, order bytes, bounded holds, and the numbers that
 * follow growth and caches.  256 MiB are 65,536 pages; chunks have 512.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "../support/core_fixture.h"
#include "page.h"

#define MIB (UINT64_C(1) << 20)
#define CHUNK 512u

static struct pcpi_zone *const zone = &parts.zones[0];
static uint32_t pfns[65536];

static void setup(void)
{
	parts_make((struct parts_spec){0});
}

static void teardown(void)
{
	cr_expect(pcpi_zone_check(zone));
	parts_unmake();
}

TestSuite(zone, .init = setup, .fini = teardown);

static void remake(struct parts_spec spec)
{
	parts_unmake();
	parts_make(spec);
}

static void expect_out(uint64_t out)
{
	cr_expect_eq(zone->free_pages + out, zone->managed_pages); /* Z1 */
	cr_expect_eq(pcpi_buddy_free_pages(&zone->buddy), zone->free_pages);
}

/* ---- Z1 ------------------------------------------------------------------ */

Test(zone, grown_is_managed_and_free)
{
	cr_expect_eq(zone->managed_pages, 65536);
	cr_expect_eq(zone->nr_arenas, 1);
	expect_out(0);
}

Test(zone, take_and_give_of_each_order_keep_the_sum)
{
	for (unsigned o = 0; o <= parts.space.top_order; o++) {
		parts_take(0, o, pfns, 3);
		expect_out(UINT64_C(3) << o);
		pcpi_zone_give_bulk(zone, o, pfns, 3);
		expect_out(0);
	}
}

Test(zone, take_of_more_than_there_is_gives_all_there_is)
{
	remake((struct parts_spec){.max_mib = 4});
	cr_expect_eq(pcpi_zone_take_bulk(zone, 0, pfns, 2000, NULL), 1024);
	expect_out(1024);
	cr_expect_eq(pcpi_zone_take_bulk(zone, 0, pfns + 1024, 1, NULL), 0);
	cr_expect_eq(pcpi_zone_take_bulk(zone, 9, pfns + 1024, 1, NULL), 0);
	for (unsigned i = 0; i < 1024; i++)
		pfns[pfns[i] - zone->first_pfn + 2048] = pfns[i];
	for (unsigned i = 0; i < 1024; i++)
		cr_assert_eq(pfns[2048 + i], zone->first_pfn + i, "once each");
	pcpi_zone_give_bulk(zone, 0, pfns, 1024);
	expect_out(0);
}

Test(zone, broken_tells_a_split)
{
	bool broken = false;

	pcpi_zone_take_bulk(zone, 9, pfns, 1, &broken);
	cr_expect_not(broken);
	pcpi_zone_take_bulk(zone, 0, pfns + 1, 1, &broken);
	cr_expect(broken);
	pcpi_zone_take_bulk(zone, 0, pfns + 2, 1, &broken);
	cr_expect_not(broken, "its buddy was free");
}

/* ---- Z2 ------------------------------------------------------------------ */

Test(zone, order_bytes_are_set_by_take_and_cleared_by_give)
{
	for (unsigned o = 0; o <= parts.space.top_order; o++) {
		parts_take(0, o, pfns, 2);
		for (unsigned b = 0; b < 2; b++) {
			cr_expect_eq(parts.orders[pfns[b]], o + 1);
			for (uint32_t i = 1; i < 1u << o; i++)
				cr_assert_eq(parts.orders[pfns[b] + i],
					     PCPI_PAGE_TAIL);
		}
		pcpi_zone_give_bulk(zone, o, pfns, 2);
		for (uint32_t i = 0; i < zone->nr_pfns; i++)
			cr_assert_eq(parts.orders[i], PCPI_PAGE_NONE);
	}
}

/* ---- Z3 ------------------------------------------------------------------ */

/* Acquisitions of one take and one give of n blocks. */
static void expect_holds(unsigned order, uint32_t n, uint64_t holds)
{
	uint64_t before = zone->locks;

	parts_take(0, order, pfns, n);
	cr_expect_eq(zone->locks - before, holds, "take: %llu",
		     (unsigned long long)(zone->locks - before));
	before = zone->locks;
	pcpi_zone_give_bulk(zone, order, pfns, n);
	cr_expect_eq(zone->locks - before, holds, "give: %llu",
		     (unsigned long long)(zone->locks - before));
}

Test(zone, lock_is_held_for_64_pages)
{
	cr_expect_leq(zone->pageset.batch, 64);
	expect_holds(0, 512, 8);
	expect_holds(0, 64, 1);
	expect_holds(0, 65, 2);
	expect_holds(3, 64, 8);
	expect_holds(6, 4, 4);
}

Test(zone, block_larger_than_a_hold_is_one_hold)
{
	expect_holds(9, 3, 3);
}

Test(zone, lock_is_held_for_a_larger_batch)
{
	remake((struct parts_spec){.batch = 256});
	cr_assert_eq(zone->pageset.batch, 256);
	expect_holds(0, 512, 2);
	expect_holds(3, 64, 2);
}

Test(zone, growth_and_counting_hold_it_for_64_chunks)
{
	uint64_t counts[PCPI_MAX_ORDER + 1] = {0}, before, grown;

	remake((struct parts_spec){.initial_mib = PARTS_NOTHING});
	before = zone->locks;
	cr_assert_eq(pcpi_zone_grow(zone, 0, 256 * MIB, true, &grown), 0);
	cr_expect_eq(zone->locks - before, 2, "128 chunks");
	before = zone->locks;
	pcpi_zone_count_free(zone, counts);
	cr_expect_eq(zone->locks - before, 2);
	cr_expect_eq(counts[9], 128);
}

Test(zone, counts_of_free_blocks_sum_up_to_the_free_pages)
{
	uint64_t counts[PCPI_MAX_ORDER + 1] = {0}, pages = 0;

	parts_take(0, 0, pfns, 777);
	parts_take(0, 2, pfns + 777, 55);
	pcpi_zone_count_free(zone, counts);
	for (unsigned o = 0; o <= PCPI_MAX_ORDER; o++)
		pages += counts[o] << o;
	cr_expect_eq(pages, zone->free_pages);
}

/* ---- Flags --------------------------------------------------------------- */

static bool below_high(void)
{
	return zone->flags & PCPI_ZONE_BELOW_HIGH;
}

Test(zone, below_high_is_set_and_cleared_at_the_watermark)
{
	uint32_t n = (uint32_t)(zone->free_pages - zone->marks.high);

	parts_take(0, 0, pfns, n);
	cr_expect_eq(zone->free_pages, zone->marks.high);
	cr_expect_not(below_high());
	parts_take(0, 0, pfns + n, 1);
	cr_expect(below_high());
	pcpi_zone_give_bulk(zone, 0, pfns + n, 1);
	cr_expect_not(below_high());
}

/* What is in the depot can be had by anyone. */
Test(zone, below_high_counts_the_depot_as_free)
{
	uint32_t n = (uint32_t)(zone->free_pages - zone->marks.high);

	parts_take(0, 0, pfns, n + 10);
	cr_expect(below_high());
	cr_assert(pcpi_depot_put(&zone->depots[0], pfns, 64));
	cr_expect_eq(pcpi_zone_depot_pages(zone), 64);
	parts_take(0, 0, pfns + n + 10, 1); /* looks again */
	cr_expect_not(below_high());
}

Test(zone, empty_zone_has_no_flag_to_set)
{
	remake((struct parts_spec){.initial_mib = PARTS_NOTHING});
	cr_expect_eq(zone->marks.high, 0);
	cr_expect_not(below_high());
	cr_expect_eq(zone->pageset.high_max, 0);
	cr_expect_eq(pcpi_zone_take_bulk(zone, 0, pfns, 1, NULL), 0);
}

/* ---- Z4 ------------------------------------------------------------------ */

static void expect_marks_of(uint64_t managed)
{
	struct pcpi_watermarks want = pcpi_policy_watermarks(
		managed, (uint64_t)fake.page_bytes, 0, PCPI_WATERMARK_SCALE);

	cr_expect_eq(zone->managed_pages, managed);
	cr_expect_eq(zone->marks.min, want.min);
	cr_expect_eq(zone->marks.low, want.low);
	cr_expect_eq(zone->marks.high, want.high);
	cr_expect_eq(zone->depot_limit, managed / 4);
}

Test(zone, numbers_follow_growth)
{
	uint32_t batch, high;
	uint64_t grown;

	remake((struct parts_spec){.initial_mib = 16});
	expect_marks_of(4096);
	batch = zone->pageset.batch;
	high = zone->pageset.high_max;
	cr_assert_eq(pcpi_zone_grow(zone, 4096, 112 * MIB, true, &grown), 0);
	cr_expect_eq(grown, 112 * 256);
	expect_marks_of(128 * 256);
	cr_expect_gt(zone->pageset.batch, batch);
	cr_expect_gt(zone->pageset.high_max, high);
	cr_expect_eq(zone->nr_arenas, 2);
}

Test(zone, depot_of_a_fixed_zone_may_hold_it_all)
{
	remake((struct parts_spec){.fixed = true});
	cr_expect_eq(zone->depot_limit, 65536);
}

/* One cache more or less, and whether the bounds fell. */
static void expect_change(int by, bool fell, uint32_t high_max)
{
	cr_expect_eq(pcpi_zone_caches_changed(zone, by), fell);
	cr_expect_eq(pcpi_zone_pageset(zone).high_max, high_max, "%u caches: %u",
		     zone->live_caches, pcpi_zone_pageset(zone).high_max);
	/* Rings are made for when there are few caches. */
	cr_expect_eq(pcpi_zone_high_bound(zone), 65536 / PCPI_CACHE_SHARE);
}

Test(zone, high_falls_by_powers_of_two_of_caches)
{
	uint32_t full = 65536 / PCPI_CACHE_SHARE;

	expect_change(1, false, full);
	expect_change(1, true, full / 2);
	expect_change(1, true, full / 4);
	expect_change(1, false, full / 4);
	expect_change(1, true, full / 8);
	expect_change(-1, false, full / 4);
	expect_change(-2, false, full / 2);
	expect_change(-2, false, full);
}

Test(zone, pageset_is_the_policys)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(zone);

	cr_expect_eq(ps.batch, pcpi_policy_batch(65536, fake.page_bytes));
	cr_expect_eq(ps.high_min, zone->marks.low);
	cr_expect_eq(ps.high_max, 65536 / 8);
	cr_expect_eq(ps.depot_batch, pcpi_policy_depot_batch(1, 65536));
	cr_expect_not(ps.legacy);
	remake((struct parts_spec){.legacy = true, .batch = 63, .high = 814});
	ps = pcpi_zone_pageset(zone);
	cr_expect(ps.legacy);
	cr_expect_eq(ps.batch, 63);
	cr_expect_eq(ps.high_min, 814);
	cr_expect_eq(ps.high_max, 814);
}

/* ---- Growth -------------------------------------------------------------- */

Test(zone, growth_ends_at_the_maximum)
{
	uint64_t grown;

	remake((struct parts_spec){.max_mib = 8, .initial_mib = 6});
	cr_expect_eq(pcpi_zone_grow(zone, 1536, 4 * MIB, true, &grown), -ENOSPC);
	cr_expect_eq(grown, 0);
	cr_expect_eq(pcpi_zone_grow(zone, 1536, 4 * MIB, false, &grown), 0);
	cr_expect_eq(grown, 512, "what is left");
	cr_expect_eq(pcpi_zone_grow(zone, 2048, 1, false, &grown), -ENOSPC);
	expect_out(0);
}

Test(zone, growth_that_another_has_done_adds_nothing)
{
	uint64_t grown = 1;

	remake((struct parts_spec){.initial_mib = 16});
	cr_expect_eq(pcpi_zone_grow(zone, 0, MIB, false, &grown), 0);
	cr_expect_eq(grown, 0);
	cr_expect_eq(zone->managed_pages, 4096);
}

Test(zone, growth_without_memory_changes_nothing)
{
	uint64_t grown = 1;

	remake((struct parts_spec){.initial_mib = 16});
	fake.memory_left = 0;
	cr_expect_eq(pcpi_zone_grow(zone, 4096, 4 * MIB, false, &grown),
		     -ENOMEM);
	cr_expect_eq(grown, 0);
	expect_marks_of(4096);
	cr_expect_eq(zone->nr_arenas, 1);
	expect_out(0);
}

Test(zone, init_without_memory_leaves_nothing)
{
	struct pcpi_zone other;
	unsigned mapped = fake_sys_mapped();

	fake.fail_call = fake.calls + 1;
	cr_expect_eq(pcpi_zone_init(&other, &zone->config, &parts.space,
				    parts.orders, parts.buddies[0], 0, CHUNK),
		     -ENOMEM);
	cr_expect_eq(fake_sys_mapped(), mapped);
}

/* ---- At random ----------------------------------------------------------- */

Test(zone, random_takes_and_gives_keep_the_sum)
{
	uint64_t seed = parts_seed(), out = 0;
	static uint32_t held[4][4096];
	uint32_t len[4] = {0}, n;

	remake((struct parts_spec){.max_mib = 16});
	for (unsigned i = 0; i < 5000; i++) {
		uint64_t r = parts_random(&seed) >> 8;
		unsigned o = r % 4;

		n = (uint32_t)(r >> 4) % 200;
		if (r & 1 << 20) {
			n = pcpi_min(n, 4096 - len[o]);
			n = pcpi_zone_take_bulk(zone, o, held[o] + len[o], n,
						NULL);
			len[o] += n;
			out += (uint64_t)n << o;
		} else {
			n = pcpi_min(n, len[o]);
			len[o] -= n;
			pcpi_zone_give_bulk(zone, o, held[o] + len[o], n);
			out -= (uint64_t)n << o;
		}
		cr_assert_eq(zone->free_pages + out, zone->managed_pages);
		cr_assert_eq(below_high(), zone->free_pages < zone->marks.high);
	}
}
