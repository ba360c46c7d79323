/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pcp_claim.c - the mark and the claim of a cache.  The test plays owner
 * and drainer in turns; races are for tests/conc/.
 */
#include "../support/pcp_fixture.h"
#include "heap.h"
#include "heap_new.h"

static uint32_t pfns[128];

TestSuite(pcp_claim, .init = setup, .fini = teardown);

/* ---- Mark and claim: C1, C3, C8 -------------------------------------------- */

Test(pcp_claim, enter_fails_inside_and_leaves_the_mark)
{
	cr_assert(pcpi_cache_enter(cache));
	cr_expect_eq(cache->busy, 1);
	cr_expect_not(pcpi_cache_enter(cache), "a handler that interrupted it");
	cr_expect_eq(cache->busy, 1);
	cr_expect_not(pcpi_mark_enter(cache));
	cr_expect_eq(cache->busy, 1);
	cr_expect_not(pcpi_cache_claimed_quiet(cache));
	pcpi_cache_leave(cache);
	cr_expect(pcpi_cache_claimed_quiet(cache));
}

Test(pcp_claim, claimed_cache_lets_nobody_in)
{
	cr_assert(pcpi_cache_claim(cache));
	cr_expect_not(pcpi_cache_claim(cache), "one drainer");
	cr_expect_not(pcpi_cache_enter(cache));
	cr_expect_eq(cache->busy, 0);
	cr_expect_not(pcpi_mark_enter(cache));
	cr_expect_eq(cache->busy, 0);
	pcpi_cache_claim_end(cache, PCPI_CLAIM_NONE);
	cr_expect(pcpi_mark_enter(cache));
	pcpi_mark_leave(cache);
}

/* The owner doesn't wait: blocks go to and come from depot and zone. */
Test(pcp_claim, claimed_cache_is_gone_around)
{
	uint32_t got[4];

	parts_take(0, 0, pfns, 70);
	pcpi_cache_push(cache, 0, pfns, 4);
	cr_assert(pcpi_cache_claim(cache));
	cr_expect_eq(pcpi_cache_pop(cache, 0, got, 4), 0);
	pcpi_cache_push(cache, 0, pfns + 4, 64);
	cr_expect_eq(pcpi_cache_count(cache), 4);
	cr_expect_eq(zone->direct_frees, 64);
	cr_expect_eq(depot_len(0), 64);
	cr_expect_eq(pcpi_cache_refill(cache, 0, got, 1), 1);
	cr_expect_eq(zone->direct_allocs, 1);
	cr_expect_eq(pcpi_cache_count(cache), 4);
	pcpi_cache_flush(cache);
	pcpi_cache_trim(cache, 0);
	cr_expect_eq(pcpi_cache_count(cache), 4);
	pcpi_cache_claim_end(cache, PCPI_CLAIM_NONE);
	expect_conserved(70 - 68 + 1);
}

Test(pcp_claim, emptied_claim_gives_all_to_the_zone_and_ends)
{
	uint64_t moved[PARTS_ZONES] = {0};

	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++) {
		parts_take(0, o, pfns, 3);
		pcpi_cache_push(cache, o, pfns, 3);
	}
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_empty_claimed(cache, moved);
	cr_expect_eq(moved[0], 3 * 15);
	cr_expect_eq(cache->claim, PCPI_CLAIM_NONE);
	cr_expect_eq(cache->drains[PCPI_DRAIN_SWEEP], 1);
	cr_expect_eq(zone->free_pages, zone->managed_pages);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_empty_claimed(cache, moved);
	cr_expect_eq(cache->drains[PCPI_DRAIN_SWEEP], 1, "nothing to drain");
}

Test(pcp_claim, postponed_claim_is_honoured_exactly_once)
{
	parts_take(0, 0, pfns, 8);
	pcpi_cache_push(cache, 0, pfns, 4);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_claim_postpone(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_PENDING);
	cr_expect_eq(cache->busy_skipped, 1);
	cr_expect_not(pcpi_mark_enter(cache), "the hot path leads to settle");
	pcpi_cache_settle(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_NONE);
	cr_expect_eq(pcpi_cache_count(cache), 0);
	cr_expect_eq(depot_len(0), 4);
	pcpi_cache_push(cache, 0, pfns + 4, 4);
	pcpi_cache_settle(cache);
	cr_expect_eq(pcpi_cache_count(cache), 4, "once");
}

Test(pcp_claim, pending_cache_may_be_used_and_claimed_again)
{
	parts_take(0, 0, pfns, 4);
	pcpi_cache_ask(cache);
	cr_expect(pcpi_cache_enter(cache));
	pcpi_cache_leave(cache);
	pcpi_cache_push(cache, 0, pfns, 4);
	cr_expect_eq(pcpi_cache_count(cache), 4);
	cr_expect(pcpi_cache_claim(cache));
	cr_expect_eq(cache->claim, PCPI_CLAIM_CLAIMED);
	pcpi_cache_settle(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_CLAIMED, "not the owner's to end");
}

Test(pcp_claim, ask_changes_only_an_unclaimed_cache)
{
	pcpi_cache_ask(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_PENDING);
	pcpi_cache_ask(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_PENDING);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_ask(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_CLAIMED);
	cr_expect_eq(cache->busy_skipped, 0);
}

/* Every move of the claim keeps the bit. */
static void expect_slow_survives(void)
{
	uint64_t moved[PARTS_ZONES] = {0};

	cr_expect_eq(cache->claim, PCPI_CLAIM_SLOW);
	cr_expect_not(pcpi_mark_enter(cache));
	cr_assert(pcpi_cache_enter(cache));
	pcpi_cache_leave(cache);
	cr_assert(pcpi_cache_claim(cache));
	cr_expect_eq(cache->claim, PCPI_CLAIM_SLOW | PCPI_CLAIM_CLAIMED);
	cr_expect_not(pcpi_cache_enter(cache));
	pcpi_cache_claim_postpone(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_SLOW | PCPI_CLAIM_PENDING);
	pcpi_cache_settle(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_SLOW);
	pcpi_cache_ask(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_SLOW | PCPI_CLAIM_PENDING);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_empty_claimed(cache, moved);
	cr_expect_eq(cache->claim, PCPI_CLAIM_SLOW);
	pcpi_cache_abandon(cache);
	pcpi_tune_start(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_SLOW);
}

Test(pcp_claim, exchange_on_the_mark_works_and_is_for_good)
{
	remake((struct parts_spec){.exchange = true});
	expect_slow_survives();
	parts_take(0, 0, pfns, 8);
	pcpi_cache_push(cache, 0, pfns, 8);
	cr_expect_eq(pop_one(0), pfns[7]);
	cr_assert(pcpi_cache_enter(cache));
	cr_expect_not(pcpi_cache_enter(cache));
	cr_expect_not(pcpi_cache_claimed_quiet(cache));
	pcpi_cache_leave(cache);
}

Test(pcp_claim, watched_caches_go_the_slow_way_and_what_nobody_has_is_marked)
{
	remake((struct parts_spec){.watched = true});
	expect_slow_survives();
	parts_take(0, 2, pfns, 1);
	cr_expect_eq(parts.orders[pfns[0]], 3 | PCPI_PAGE_HELD);
	pcpi_cache_push(cache, 2, pfns, 1);
	cr_expect_eq(parts.orders[pfns[0]], 3 | PCPI_PAGE_HELD);
	pcpi_cache_flush(cache);
	cr_expect_eq(parts.orders[pfns[0]], 3 | PCPI_PAGE_HELD, "in the depot");
	pcpi_depots_empty(zone);
	cr_expect_eq(parts.orders[pfns[0]], PCPI_PAGE_NONE);
	cr_assert_eq(pcpi_cache_refill(cache, 0, pfns, 1), 1);
	cr_expect_eq(parts.orders[pop_one(0)], 1 | PCPI_PAGE_HELD,
		     "the route unmarks what it hands out");
}

Test(pcp_claim, abandon_of_a_claimed_cache_leaves_it_to_the_drainer)
{
	uint64_t moved[PARTS_ZONES] = {0};

	parts_take(0, 0, pfns, 20);
	pcpi_cache_push(cache, 0, pfns, 20);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_abandon(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_CLAIMED); /* C6 */
	cr_expect_eq(pcpi_cache_count(cache), 20);
	pcpi_tune_start(cache);                         /* the next owner */
	cr_expect_eq(cache->claim, PCPI_CLAIM_CLAIMED); /* C6 */
	cr_expect_not(pcpi_cache_enter(cache));
	pcpi_cache_empty_claimed(cache, moved);
	cr_expect_eq(moved[0], 20);
	expect_conserved(0);
}

/* ---- Adoption in a whole heap: C6 ------------------------------------------- */

static struct pcpa_heap *heap;
static struct pcpi_cache *adopted;

static void *leave_claimed(void *arg)
{
	void *block = pcpa_alloc(heap, 0, 0);

	(void)arg;
	pcpa_free(heap, block);
	adopted = pcpi_thread_cache(heap, NULL);
	cr_expect(pcpi_cache_claim(adopted));
	return NULL;
}

/* The claim is still there, and the new owner goes around it. */
static void *adopt_claimed(void *arg)
{
	uint32_t count = pcpi_cache_count(adopted);
	void *block = pcpa_alloc(heap, 0, 0);

	(void)arg;
	cr_expect_eq(pcpi_thread_cache(heap, NULL), adopted);
	cr_expect_eq(adopted->claim & PCPI_CLAIM_STATE, PCPI_CLAIM_CLAIMED);
	cr_expect_not_null(block);
	pcpa_free(heap, block);
	cr_expect_eq(pcpi_cache_count(adopted), count);
	return NULL;
}

static void *adopt_free(void *arg)
{
	void *block = pcpa_alloc(heap, 0, 0);

	(void)arg;
	cr_expect_eq(pcpi_thread_cache(heap, NULL), adopted);
	cr_expect_gt(pcpi_cache_count(adopted), 0, "it is used again");
	pcpa_free(heap, block);
	return NULL;
}

static void run(void *(*fn)(void *))
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, fn, NULL), 0);
	pthread_join(thread, NULL);
}

Test(pcp_claim_heap, adoption_clears_no_claim)
{
	size_t bytes = (size_t)64 << 20;
	uint64_t moved[8] = {0};

	cr_assert_eq(heap_new(NULL, bytes, bytes, 0, &heap), 0);
	cr_assert_leq(heap->nr_zones, 8);
	run(leave_claimed);
	cr_expect_gt(pcpi_cache_count(adopted), 0, "left to the drainer");
	run(adopt_claimed);
	pcpi_cache_empty_claimed(adopted, moved);
	cr_expect_eq(pcpi_cache_count(adopted), 0);
	run(adopt_free);
	cr_expect_eq(pcpa_heap_destroy(heap), 0);
}

Test(pcp_claim, owner_answers_for_its_caches_of_other_nodes)
{
	struct pcpi_cache *other;

	remake((struct parts_spec){.nr_zones = 2});
	other = parts_cache(1);
	other->root = cache;
	cache->peers[1] = other;
	parts_take(1, 0, pfns, 4);
	pcpi_cache_push(other, 0, pfns, 4);
	pcpi_cache_ask(other);
	pcpi_cache_settle(cache);
	cr_expect_eq(other->claim, PCPI_CLAIM_NONE);
	cr_expect_eq(pcpi_cache_count(other), 0);
}

/* ---- Bounds that fell --------------------------------------------------------- */

/* Whoever drains the cache between the request and the owner's next call. */
Test(pcp_claim, request_to_look_outlives_claims)
{
	uint64_t moved[PARTS_ZONES] = {0};
	uint32_t high = cache->high, limit;

	for (unsigned i = 0; i < 60; i++)
		pcpi_zone_caches_changed(zone, 1);
	cr_assert_lt(pcpi_zone_pageset(zone).high_max, high);
	limit = cache->list[0].ring.limit;
	pcpi_cache_ask_look(cache);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_empty_claimed(cache, moved);
	cr_expect_eq(cache->claim, PCPI_CLAIM_LOOK);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_claim_postpone(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_LOOK | PCPI_CLAIM_PENDING);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_settle(cache); /* beside a drainer: later */
	cr_expect_eq(cache->claim, PCPI_CLAIM_LOOK | PCPI_CLAIM_CLAIMED);
	pcpi_cache_claim_end(cache, PCPI_CLAIM_NONE);
	pcpi_cache_settle(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_NONE);
	cr_expect_leq(cache->high, pcpi_zone_pageset(zone).high_max);
	cr_expect_leq(cache->list[0].ring.limit, limit);
}

/* ---- Threads that move -------------------------------------------------------- */

Test(pcp_claim, question_where_outlives_claims_and_is_answered_once)
{
	uint64_t moved[PARTS_ZONES] = {0};

	pcpi_cache_ask_where(cache);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_empty_claimed(cache, moved);
	pcpi_cache_settle(cache);
	cr_expect_eq(cache->claim, PCPI_CLAIM_WHERE);
	cr_expect(pcpi_cache_where_answer(cache));
	cr_expect_eq(cache->claim, PCPI_CLAIM_NONE);
	cr_expect_not(pcpi_cache_where_answer(cache));
}

/* ---- A flush that is owed ----------------------------------------------------- */

static const struct pcpi_sys *system_before;
static unsigned clocks;

/* Called between two batches: a tick that wants an outbox only. */
static uint64_t clock_of_a_claim(void)
{
	if (clocks++ == 0)
		cr_assert(pcpi_cache_claim(cache));
	return system_before->coarse_ns();
}

static void settle_cut_short(void)
{
	static struct pcpi_sys table;

	system_before = pcpi_sys;
	table = *pcpi_sys;
	table.coarse_ns = clock_of_a_claim;
	pcpi_sys = &table;
	pcpi_zone_disable(zone, 1); /* what the depots refuse looks at the clock */
	pcpi_cache_settle(cache);
	pcpi_zone_disable(zone, -1);
	pcpi_sys = system_before;
	cr_assert_gt(clocks, 0);
}

static void expect_owed_after(void (*ask)(struct pcpi_cache *c))
{
	parts_take(0, 0, pfns, 8);
	parts_take(0, 1, pfns + 8, 8);
	pcpi_cache_push(cache, 0, pfns, 8);
	pcpi_cache_push(cache, 1, pfns + 8, 8);
	ask(cache);
	settle_cut_short();
	cr_assert_eq(pcpi_cache_count(cache), 16, "order 1");
	pcpi_cache_claim_end(cache, PCPI_CLAIM_NONE);
	cr_expect_neq(cache->claim, PCPI_CLAIM_NONE, "owed again");
	pcpi_cache_settle(cache);
	cr_expect_eq(pcpi_cache_count(cache), 0);
	cr_expect_eq(cache->claim, PCPI_CLAIM_NONE);
	expect_conserved(0);
}

Test(pcp_claim, flush_that_a_claim_cuts_short_is_owed_again)
{
	expect_owed_after(pcpi_cache_ask);
}

Test(pcp_claim, look_that_a_claim_cuts_short_is_owed_again)
{
	expect_owed_after(pcpi_cache_ask_look);
}

/* The claim ends just before or after; nobody takes the duty over. */
Test(pcp_claim, request_beside_a_claim_waits_for_its_end)
{
	parts_take(0, 0, pfns, 4);
	pcpi_cache_push(cache, 0, pfns, 4);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_ask_look(cache);
	pcpi_cache_settle(cache);
	pcpi_cache_claim_end(cache, PCPI_CLAIM_NONE);
	pcpi_cache_settle(cache);
	cr_expect_eq(pcpi_cache_count(cache), 0);
	cr_expect_eq(cache->claim, PCPI_CLAIM_NONE);
}
