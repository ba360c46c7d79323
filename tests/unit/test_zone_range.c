/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_zone_range.c - ranges under the zone's lock: the search against a naive
 * one, and what an isolation collects.  16 MiB are 4,096 pages; chunks have 512.
 */
#include <criterion/criterion.h>

#include "../support/core_fixture.h"
#include "page.h"

#define PAGES 4096u
#define CHUNK 512u

static struct pcpi_zone *const zone = &parts.zones[0];
static uint32_t pfns[PAGES];

static void setup(void)
{
	parts_make((struct parts_spec){.max_mib = 16});
	cr_assert_eq(zone->managed_pages, PAGES);
}

static void teardown(void)
{
	cr_expect(pcpi_zone_check(zone));
	parts_unmake();
}

TestSuite(zone_range, .init = setup, .fini = teardown);

static uint32_t first_pfn(void)
{
	return zone->first_pfn;
}

static void give(uint32_t pfn)
{
	pcpi_zone_give_bulk(zone, 0, &pfn, 1);
}

static unsigned byte_of(uint32_t pfn)
{
	return pcpi_page_read(parts.orders, pfn);
}

/* ---- Ranges ---------------------------------------------------------------- */

Test(zone_range, free_range_is_taken_once_and_comes_back)
{
	uint32_t at = first_pfn() + 300;

	cr_assert(pcpi_zone_take_range(zone, at, 1000, 0));
	cr_expect_eq(zone->free_pages, PAGES - 1000);
	cr_expect_eq(byte_of(at), PCPI_PAGE_CONTIG);
	cr_expect_eq(pcpi_page_contig(parts.orders, at, PAGES), 1000);
	cr_expect_eq(byte_of(at - 1), PCPI_PAGE_NONE);
	cr_expect_eq(byte_of(at + 1000), PCPI_PAGE_NONE);
	cr_expect_not(pcpi_zone_take_range(zone, at + 999, 2, 0));
	cr_expect_not(pcpi_zone_take_range(zone, at - 1, 2, 0));
	cr_expect_eq(zone->free_pages, PAGES - 1000);
	pcpi_zone_give_range(zone, at, 1000);
	cr_expect_eq(zone->free_pages, PAGES);
	for (uint32_t i = 0; i < 1000; i++)
		cr_assert_eq(byte_of(at + i), PCPI_PAGE_NONE);
	cr_expect_eq(pcpi_zone_take_bulk(zone, 9, pfns, 8, NULL), 8, "merged");
	pcpi_zone_give_bulk(zone, 9, pfns, 8);
}

/* ---- Search ------------------------------------------------------------------ */

static uint32_t naive_missing(uint32_t pfn, uint32_t pages)
{
	uint32_t missing = 0;

	for (uint32_t i = 0; i < pages; i++)
		missing += !pcpi_buddy_is_free(&zone->buddy, pfn + i);
	return missing;
}

static uint32_t naive_best(const struct pcpi_search *s)
{
	uint64_t page = UINT64_C(1) << parts.space.page_shift, address;
	uint32_t best = UINT32_MAX, missing, pfn;
	bool used;

	for (pfn = s->from; pfn + s->pages <= s->end; pfn++) {
		address = (uintptr_t)pcpi_space_addr(&parts.space, pfn);
		used = address % (page * s->align_pages) != 0;
		for (unsigned i = 0; i < s->nr_used; i++)
			used |= s->used[i] >= pfn && s->used[i] < pfn + s->pages;
		missing = used ? UINT32_MAX : naive_missing(pfn, s->pages);
		best = pcpi_min(best, missing);
	}
	return best;
}

static void search_compare(uint64_t *state)
{
	uint32_t used[2], n = (uint32_t)(parts_random(state) % 3);
	struct pcpi_candidate best = {.missing = UINT32_MAX};
	struct pcpi_search s = {
		.from = first_pfn(),
		.end = first_pfn() + PAGES,
		.pages = 1 + (uint32_t)(parts_random(state) % 700),
		.align_pages = UINT64_C(1) << parts_random(state) % 11,
		.used = used,
		.nr_used = n,
	};

	if (parts_random(state) % 2)
		s.pages = 1 + s.pages % 20;
	for (uint32_t i = 0; i < n; i++)
		used[i] = first_pfn() + (uint32_t)(parts_random(state) % PAGES);
	pcpi_zone_search(zone, &s, &best);
	if (n > 0 && best.missing <= s.pages) { /* once more without that one */
		used[0] = best.pfn + (uint32_t)(parts_random(state) % s.pages);
		best.missing = UINT32_MAX;
		pcpi_zone_search(zone, &s, &best);
	}
	cr_assert_eq(best.missing, naive_best(&s), "%u pages, align %llu",
		     s.pages, (unsigned long long)s.align_pages);
	if (best.missing <= s.pages)
		cr_assert_eq(best.missing, naive_missing(best.pfn, s.pages));
}

Test(zone_range, search_finds_the_range_that_misses_fewest)
{
	uint64_t state = parts_seed();

	parts_take(0, 0, pfns, PAGES);
	for (uint32_t i = 0; i < PAGES - 1; i++) { /* shuffled */
		uint32_t k = i + (uint32_t)(parts_random(&state) % (PAGES - i));
		uint32_t t = pfns[i];

		pfns[i] = pfns[k];
		pfns[k] = t;
	}
	for (uint32_t i = 0; i < PAGES; i++) {
		give(pfns[i]);
		if (i % 128 == 127)
			search_compare(&state);
	}
}

/* ---- Isolation ------------------------------------------------------------------ */

Test(zone_range, isolation_collects_what_comes_back)
{
	uint32_t at = first_pfn() + 100, missing = 0, more;
	uint64_t before;

	parts_take(0, 0, pfns, PAGES);
	for (uint32_t i = 0; i < PAGES; i++)
		if ((pfns[i] - at) % 3 != 0 || pfns[i] - at >= 600)
			give(pfns[i]);
	cr_expect_not(pcpi_zone_isolate(zone, at, 600));
	cr_expect_eq(zone->isolated.got, 400);
	cr_expect_eq(byte_of(at + 1), PCPI_PAGE_ISOLATED);
	before = zone->free_pages;
	for (uint32_t i = 0; i < 600; i += 3) {
		cr_expect_not(pcpi_zone_isolated_whole(zone));
		give(at + i);
		cr_expect_eq(zone->free_pages, before, "nobody else's: Z5");
	}
	cr_expect(pcpi_zone_isolated_whole(zone));
	more = pcpi_zone_take_bulk(zone, 0, pfns, PAGES, NULL);
	cr_expect_eq(more, PAGES - 600);
	for (uint32_t i = 0; i < more; i++)
		cr_assert_geq(pfns[i] - at, 600);
	cr_expect(pcpi_zone_isolate_end(zone, 0, &missing));
	cr_expect_eq(pcpi_page_contig(parts.orders, at, PAGES), 600);
	pcpi_zone_give_bulk(zone, 0, pfns, more);
	cr_expect_eq(zone->free_pages, PAGES - 600);
	pcpi_zone_give_range(zone, at, 600);
	cr_expect_eq(zone->free_pages, PAGES);
}

/* A block that lies in the range in part, and another range. */
Test(zone_range, isolation_collects_parts_of_blocks_and_ranges)
{
	uint32_t at = first_pfn() + CHUNK, missing;

	cr_assert(pcpi_zone_take_range(zone, at, 100, 0));
	cr_assert(pcpi_zone_take_range(zone, at + 2 * CHUNK - 100, 200, 0));
	cr_expect_not(pcpi_zone_isolate(zone, at + 50, 2 * CHUNK - 50));
	pcpi_zone_give_range(zone, at, 100);
	cr_expect_not(pcpi_zone_isolated_whole(zone));
	pcpi_zone_give_range(zone, at + 2 * CHUNK - 100, 200);
	cr_expect(pcpi_zone_isolated_whole(zone));
	cr_expect_eq(zone->free_pages, PAGES - (2 * CHUNK - 50));
	cr_expect(pcpi_zone_isolate_end(zone, 0, &missing));
	pcpi_zone_give_range(zone, at + 50, 2 * CHUNK - 50);
	cr_expect_eq(zone->free_pages, PAGES);
}

/* Pages that a trim had in its hand, or an arena in the place of what it gave. */
Test(zone_range, isolation_collects_what_becomes_free_at_once)
{
	uint32_t at = first_pfn() + CHUNK, missing;

	cr_assert(pcpi_zone_unsettle(zone, at, 2 * CHUNK));
	cr_expect_not(pcpi_zone_isolate(zone, at + 100, 3 * CHUNK));
	pcpi_zone_settle(zone, at, 2 * CHUNK);
	cr_expect(pcpi_zone_isolated_whole(zone));
	cr_expect_eq(zone->managed_pages, PAGES);
	cr_expect_eq(zone->free_pages, PAGES - 3 * CHUNK);
	cr_expect(pcpi_zone_isolate_end(zone, 0, &missing));
	cr_expect_eq(pcpi_page_contig(parts.orders, at + 100, PAGES), 3 * CHUNK);
	pcpi_zone_give_range(zone, at + 100, 3 * CHUNK);
	cr_expect_eq(zone->free_pages, PAGES);
}

Test(zone_range, isolation_that_fails_gives_all_back_and_names_a_page)
{
	uint32_t missing = PCPI_NO_PFN, first;

	cr_assert(pcpi_zone_take_range(zone, first_pfn() + 1000, 1, 0));
	cr_expect_not(pcpi_zone_isolate(zone, first_pfn(), PAGES));
	cr_expect_eq(zone->free_pages, 0);
	cr_expect_not(pcpi_zone_isolate_end(zone, 0, &missing));
	cr_expect_eq(missing, first_pfn() + 1000);
	cr_expect_eq(zone->free_pages, PAGES - 1);
	cr_expect_eq(pcpi_buddy_range_run(&zone->buddy, first_pfn(), PAGES,
					  &first), 1000);
	for (uint32_t i = 0; i < PAGES; i++)
		cr_assert_neq(byte_of(first_pfn() + i), PCPI_PAGE_ISOLATED);
	/* It is over: what comes now is free. */
	pcpi_zone_give_range(zone, first_pfn() + 1000, 1);
	cr_expect_eq(zone->free_pages, PAGES);
	cr_expect_eq(zone->isolated.pages, 0);
}

/* The first page of a range that is on its way back looks like none that was
 * isolated, or it would be given back twice. */
Test(zone_range, range_on_its_way_back_is_not_the_isolations)
{
	uint32_t at = first_pfn() + 100, missing;

	cr_assert(pcpi_zone_take_range(zone, at, 50, 0));
	pcpi_page_write(parts.orders, at, PCPI_PAGE_GOING);
	cr_expect_not(pcpi_zone_isolate(zone, first_pfn(), 1000));
	cr_expect_not(pcpi_zone_isolate_end(zone, 0, &missing));
	cr_expect_eq(zone->free_pages, zone->managed_pages - 50);
	pcpi_zone_give_range(zone, at, 50);
	cr_expect_eq(zone->free_pages, zone->managed_pages);
}

Test(zone_range, reserve_is_left_alone)
{
	uint32_t missing;
	uint64_t all = zone->managed_pages;

	cr_expect_not(pcpi_zone_take_range(zone, first_pfn(), 100, all - 99));
	cr_expect(pcpi_zone_take_range(zone, first_pfn(), 100, all - 100));
	pcpi_zone_give_range(zone, first_pfn(), 100);
	cr_expect(pcpi_zone_isolate(zone, first_pfn(), 100));
	cr_expect_not(pcpi_zone_isolate_end(zone, all - 99, &missing));
	cr_expect_eq(zone->free_pages, all);
	cr_expect(pcpi_zone_isolate(zone, first_pfn(), 100));
	cr_expect(pcpi_zone_isolate_end(zone, all - 100, &missing));
	pcpi_zone_give_range(zone, first_pfn(), 100);
}
