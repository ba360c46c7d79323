/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pcp.c - a cache: its two ends, the front, counts, exits, outboxes.
 */
#include <stdlib.h>
#include <string.h>

#include "../support/pcp_fixture.h"
#include "pcp.h"
#include "pcp_hot.h"

static uint32_t pfns[8192];

TestSuite(pcp, .init = setup, .fini = teardown);

/* Frees one block as the hot path does. */
static void free_hot(unsigned order, uint32_t pfn)
{
	cr_assert(pcpi_hot_push(cache, order + 1, pfn,
				pcpi_space_addr(&parts.space, pfn), true));
}

/* Processors go away while a cache is made, and the bound of each rises. */
Test(pcp, cache_stays_within_the_memory_it_was_given)
{
	struct pcpi_cache *c;
	size_t bytes;
	char *memory;

	remake((struct parts_spec){.max_mib = 1024, .initial_mib = 1024});
	pcpi_zone_cpus_changed(zone, 8, 8);
	bytes = pcpi_cache_bytes(&parts.env, zone);
	cr_assert(memory = calloc(1, bytes));
	pcpi_zone_cpus_changed(zone, 1, 1);
	cr_assert_gt(pcpi_cache_bytes(&parts.env, zone), bytes);
	c = pcpi_cache_init(memory, bytes, &parts.env, zone);
	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++)
		cr_expect_leq((char *)(c->list[o].ring.slots + c->list[o].ring.mask + 1),
			      memory + bytes, "order %u", o);
	cr_expect_leq(c->high, c->high_cap);
	free(memory);
}

/* ---- The count of allocations ------------------------------------------------ */

Test(pcp, count_of_allocations_tells_each_look_and_loses_none)
{
	union pcpi_allocs a = {0};
	uint64_t number = 0;
	unsigned looks = 0;

	for (unsigned i = 0; i < 10 * PCPI_LOOK_ALLOCS; i++, number++) {
		if (pcpi_allocs_inc(&a)) {
			cr_assert_eq((number + 1) % PCPI_LOOK_ALLOCS, 0);
			cr_assert_eq(pcpi_allocs(&a), number + 1, "before it is seen to");
			pcpi_allocs_wrap(&a);
			pcpi_allocs_wrap(&a); /* as a signal handler may have done */
			looks++;
		}
		cr_assert_eq(pcpi_allocs(&a), number + 1);
	}
	cr_expect_eq(looks, 10);
	for (unsigned n = 1; n < PCPI_LOOK_ALLOCS; n += 97, looks++) {
		bool look = pcpi_allocs_add(&a, n);

		cr_assert_eq(look, (number + n) / PCPI_LOOK_ALLOCS >
					   number / PCPI_LOOK_ALLOCS);
		number += n;
		cr_assert_eq(pcpi_allocs(&a), number);
	}
}

/* Some centuries of hits. */
Test(pcp, count_of_allocations_does_not_run_over)
{
	union pcpi_allocs a = {.word = (UINT64_C(1) << 50) - 1};
	uint64_t number = pcpi_allocs(&a);

	cr_assert_gt(number, UINT64_C(1) << 61);
	for (unsigned i = 1; i <= 2 * PCPI_LOOK_ALLOCS; i++) {
		if (pcpi_allocs_inc(&a))
			pcpi_allocs_wrap(&a);
		cr_assert_eq(pcpi_allocs(&a), number + i);
	}
}

/* ---- Refill -------------------------------------------------------------- */

Test(pcp, refill_of_empty_cache_pops_in_ascending_order)
{
	uint32_t first, last, n = 1;

	cr_assert_eq(pcpi_cache_refill(cache, 0, &first, 1), 1);
	for (last = first; pcpi_cache_len(cache, 0) > 0; n++) {
		uint32_t next = pop_one(0);

		cr_expect_eq(next, last + 1);
		last = next;
	}
	cr_expect_eq(n, pcpi_zone_pageset(zone).batch);
	cr_expect_eq(cache->refills, 1);
	expect_conserved(n);
}

/* More than one chunk, as after refills in a row. */
Test(pcp, large_refill_ascends_too)
{
	uint32_t last = 0, next, held;

	for (unsigned i = 0; i < 6; i++) {
		cr_assert_eq(pcpi_cache_refill(cache, 0, &next, 1), 1);
		held = pcpi_cache_len(cache, 0);
		for (last = next; pcpi_cache_len(cache, 0) > 0; last = next) {
			next = pop_one(0);
			cr_assert_gt(next, last);
		}
	}
	cr_expect_gt(held, 4 * PCPI_CHUNK);
}

Test(pcp, refill_gives_the_lowest_to_the_caller)
{
	cr_assert_eq(pcpi_cache_refill(cache, 0, pfns, 5), 5);
	for (uint32_t i = 1; i < 5; i++)
		cr_expect_eq(pfns[i], pfns[0] + i);
	cr_expect_eq(pop_one(0), pfns[0] + 5);
}

Test(pcp, refill_takes_the_depots_hottest_batch_first)
{
	uint32_t got;

	const uint32_t n = PARTS_BATCH + 64;

	parts_take(0, 0, pfns, n);
	cr_assert(pcpi_depot_put(&zone->depots[0], pfns, n));
	cr_assert_eq(pcpi_cache_refill(cache, 0, &got, 1), 1);
	cr_expect_eq(got, pfns[n - 1]);
	cr_expect_eq(pop_one(0), pfns[n - 2]);
	cr_expect_eq(depot_len(0), n - PCPI_DEPOT_GET);
	cr_expect_eq(cache->depot_gets, 1);
	expect_conserved(2);
}

Test(pcp, refill_of_an_empty_node_gives_nothing)
{
	remake((struct parts_spec){.initial_mib = PARTS_NOTHING});
	cr_expect_eq(pcpi_cache_refill(cache, 0, pfns, 1), 0);
	cr_expect_eq(pcpi_cache_allocs(cache), 0);
	cr_expect_eq(cache->refills, 0);
}

Test(pcp, refill_of_high_orders_is_a_batch_in_pages)
{
	uint32_t batch = pcpi_zone_pageset(zone).batch;

	for (unsigned o = 1; o < PCPI_PCP_ORDERS; o++) {
		cr_assert_eq(pcpi_cache_refill(cache, o, pfns, 1), 1);
		cr_expect_eq(pcpi_cache_len(cache, o) + 1,
			     pcpi_max(batch >> o, 2u));
		cr_expect_eq(parts.orders[pfns[0]], o + 1);
	}
}

/* ---- Hot end, cold end ---------------------------------------------------- */

Test(pcp, last_freed_is_first_allocated)
{
	parts_take(0, 2, pfns, 3);
	for (unsigned i = 0; i < 3; i++)
		pcpi_cache_push(cache, 2, &pfns[i], 1);
	for (unsigned i = 3; i-- > 0;)
		cr_expect_eq(pop_one(2), pfns[i]);
}

Test(pcp, refill_goes_below_what_was_freed)
{
	uint32_t got;

	parts_take(0, 0, pfns, 1);
	cr_assert_eq(pcpi_cache_refill(cache, 0, &got, 1), 1);
	pcpi_cache_push(cache, 0, pfns, 1);
	cr_expect_eq(pop_one(0), pfns[0]);
	cr_expect_eq(pop_one(0), got + 1);
}

/* A pure freer hands over as soon as it has a batch: the first freed. */
Test(pcp, drain_takes_the_oldest)
{
	const uint32_t n = PARTS_BATCH + 36;
	uint32_t got[PARTS_BATCH];

	parts_take(0, 0, pfns, n);
	for (unsigned i = 0; i < n; i++)
		pcpi_cache_push(cache, 0, &pfns[i], 1);
	cr_assert_eq(depot_len(0), PARTS_BATCH);
	pcpi_depot_get(&zone->depots[0], got, PARTS_BATCH);
	cr_expect_arr_eq(got, pfns, sizeof(got));
	cr_expect_eq(pop_one(0), pfns[n - 1]);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FREER], 1);
}

/* ---- Front: C7 ------------------------------------------------------------ */

Test(pcp, front_counts_and_enter_moves_it_into_the_ring)
{
	parts_take(0, 0, pfns, 2);
	free_hot(0, pfns[0]);
	cr_expect_eq(cache->front, pcpi_space_addr(&parts.space, pfns[0]));
	cr_expect_eq(pcpi_ring_len(&cache->list[0].ring), 0);
	cr_expect_eq(pcpi_cache_len(cache, 0), 1);
	cr_expect_eq(pcpi_cache_count(cache), 1);
	cr_assert(pcpi_cache_enter(cache));
	cr_expect_null(cache->front);
	cr_expect_eq(pcpi_ring_len(&cache->list[0].ring), 1);
	pcpi_cache_leave(cache);
	cr_expect_eq(pop_one(0), pfns[0]);
}

Test(pcp, front_goes_with_a_flush_and_with_a_claim)
{
	uint64_t moved[PARTS_ZONES] = {0};

	parts_take(0, 0, pfns, 2);
	free_hot(0, pfns[0]);
	pcpi_cache_flush(cache);
	cr_expect_null(cache->front);
	cr_expect_eq(depot_len(0), 1);
	free_hot(0, pfns[1]);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_empty_claimed(cache, moved);
	cr_expect_null(cache->front);
	cr_expect_eq(moved[0], 1);
	expect_conserved(0);
}

/* Its block counts as the hottest, whenever it was freed. */
Test(pcp, front_is_before_the_hot_end)
{
	parts_take(0, 0, pfns, 3);
	for (unsigned i = 0; i < 3; i++)
		free_hot(0, pfns[i]);
	cr_expect_eq(pop_one(0), pfns[0]);
	cr_expect_eq(pop_one(0), pfns[2]);
	cr_expect_eq(pop_one(0), pfns[1]);
}

Test(pcp, only_order_0_has_a_front)
{
	parts_take(0, 1, pfns, 1);
	parts_take(0, 3, pfns + 1, 1);
	free_hot(1, pfns[0]);
	free_hot(3, pfns[1]);
	cr_expect_eq(pcpi_cache_front_len(cache, 0), 0);
	cr_expect_eq(pcpi_ring_len(&cache->list[1].ring), 1);
	cr_expect_eq(pcpi_cache_count(cache), 2 + 8);
	cr_expect_eq(pop_one(3), pfns[1]);
	cr_expect_eq(pop_one(1), pfns[0]);
}

/* Takes and frees n blocks of an order, each list by turns where mixed, then
 * has the policy look. */
static void use_and_look(uint32_t n, bool mixed)
{
	for (uint32_t i = 0; i < n; i++) {
		unsigned order = mixed ? i % 2 : 0;

		parts_take(0, order, pfns, 1);
		pcpi_cache_push(cache, order, pfns, 1);
		cr_assert_eq(pcpi_cache_pop(cache, order, pfns, 1), 1);
		pcpi_zone_give_bulk(zone, order, pfns, 1);
	}
	pcpi_cache_trim(cache, 0);
	cr_assert(pcpi_cache_enter(cache)); /* which puts the front to rest */
	pcpi_cache_leave(cache);
}

Test(pcp, front_is_off_while_orders_are_mixed)
{
	use_and_look(10, true);
	cr_expect_eq(cache->front, PCPI_FRONT_OFF);
	parts_take(0, 0, pfns, 1);
	free_hot(0, pfns[0]);
	cr_expect_eq(pcpi_ring_len(&cache->list[0].ring), 1, "to the ring");
	cr_expect_eq(pop_one(0), pfns[0]);
	use_and_look(3, false);
	cr_expect_eq(cache->front, PCPI_FRONT_OFF, "a few don't tell");
	use_and_look(100, false);
	cr_expect_null(cache->front);
}

/* ---- Counts: C4 ----------------------------------------------------------- */

Test(pcp, frees_follow_from_allocs_length_in_and_out)
{
	uint64_t frees = 0, allocs = 0, seed = parts_seed();
	uint32_t held = 0, n;

	for (unsigned i = 0; i < 3000; i++) {
		uint64_t r = parts_random(&seed) >> 8;

		n = 1 + (uint32_t)(r >> 8) % 40;
		switch (r % 4) {
		case 0:
			n = pcpi_cache_pop(cache, 0, pfns + held, n);
			held += n;
			allocs += n;
			break;
		case 1:
			if (held > 6000)
				break;
			n = pcpi_cache_refill(cache, 0, pfns + held, n);
			held += n;
			allocs += n;
			break;
		case 2:
			n = pcpi_min(n, held);
			held -= n;
			pcpi_cache_push(cache, 0, pfns + held, n);
			frees += n;
			break;
		default:
			if (held > 0) {
				free_hot(0, pfns[--held]);
				frees++;
			}
			break;
		}
		cr_assert_eq(pcpi_cache_allocs(cache), allocs);
		cr_assert_eq(pcpi_cache_list_frees(cache, 0), frees);
		cr_assert_eq(pcpi_cache_frees(cache), frees);
		cr_assert_eq(parts_pages_held(0) + held, zone->managed_pages);
	}
}

Test(pcp, frees_never_fall_for_a_reader)
{
	parts_take(0, 0, pfns, 2);
	free_hot(0, pfns[0]);
	cr_expect_eq(pcpi_cache_frees(cache), 1);
	cache->in[0] += 1; /* read between a refill's two steps */
	cr_expect_eq(pcpi_cache_frees(cache), 1);
	cache->in[0] -= 1;
	free_hot(0, pfns[1]);
	cr_expect_eq(pcpi_cache_frees(cache), 2);
}

/* ---- Ends ------------------------------------------------------------------ */

Test(pcp, flush_gives_all_to_the_depots)
{
	unsigned n;

	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++) {
		parts_take(0, o, pfns, 4);
		pcpi_cache_push(cache, o, pfns, 4);
	}
	cr_assert_eq(pcpi_cache_count(cache), 60);
	parts_listen();
	pcpi_cache_flush(cache);
	cr_expect_eq(pcpi_cache_count(cache), 0);
	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++)
		cr_expect_eq(depot_len(o), 4);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FLUSH], 1);
	cr_expect_eq(parts_heard(PCPA_EVENT_PCPU_DRAIN, &n), 60);
	cr_expect_eq(n, 1);
	pcpi_cache_flush(cache);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FLUSH], 1, "nothing to give");
}

Test(pcp, flush_of_more_than_the_depots_hold_fills_the_zone)
{
	remake((struct parts_spec){.max_mib = 16});
	zone->depot_limit = 10;
	parts_take(0, 0, pfns, 100);
	for (unsigned i = 0; i < 100; i += 20)
		pcpi_cache_push(cache, 0, pfns + i, 20);
	pcpi_cache_flush(cache);
	cr_expect_leq(depot_len(0), 10);
	expect_conserved(0);
	cr_expect_eq(pcpi_cache_count(cache), 0);
}

/* An owner that ended inside: the mark is still set. */
Test(pcp, abandon_clears_the_mark_and_gives_all_back)
{
	parts_take(0, 0, pfns, 20);
	pcpi_cache_push(cache, 0, pfns, 20);
	cr_assert(pcpi_cache_enter(cache));
	pcpi_cache_abandon(cache);
	cr_expect_eq(cache->busy, 0);
	cr_expect_eq(pcpi_cache_count(cache), 0);
	cr_expect_eq(depot_len(0), 20);
	expect_conserved(0);
}

/* ---- Outboxes --------------------------------------------------------------- */

static void make_two_zones(void)
{
	remake((struct parts_spec){.nr_zones = 2});
}

static void free_remote(unsigned order, uint32_t n)
{
	parts_take(1, order, pfns, n);
	for (uint32_t i = 0; i < n; i++)
		pcpi_cache_push_remote(cache, &parts.zones[1], order, &pfns[i], 1);
}

Test(pcp, one_zone_has_no_outbox)
{
	cr_expect_null(cache->outbox);
}

Test(pcp, zone_of_a_page_is_its_windows)
{
	make_two_zones();
	parts_take(0, 0, pfns, 1);
	parts_take(1, 0, pfns + 1, 1);
	cr_expect_eq(pcpi_zone_of(&parts.env, pfns[0]), &parts.zones[0]);
	cr_expect_eq(pcpi_zone_of(&parts.env, pfns[1]), &parts.zones[1]);
}

Test(pcp, full_outbox_goes_home_as_one_batch)
{
	struct pcpi_zone *home = &parts.zones[1];
	uint32_t got[64];

	make_two_zones();
	free_remote(0, 63);
	cr_expect_eq(cache->outbox[1].len[0], 63);
	cr_expect_eq(parts_pages_held(1), home->managed_pages);
	cr_expect_eq(pcpi_zone_depot_pages(home), 0);
	parts_take(1, 0, pfns + 63, 1);
	pcpi_cache_push_remote(cache, home, 0, &pfns[63], 1);
	cr_expect_eq(cache->outbox[1].len[0], 0);
	cr_expect_eq(cache->outbox[1].frees, 64);
	cr_assert_eq(pcpi_depot_len(&home->depots[0]), 64);
	pcpi_depot_get(&home->depots[0], got, 64);
	cr_expect_arr_eq(got, pfns, sizeof(got));
	cr_expect_eq(home->depot_puts, 1);
	cr_expect_eq(pcpi_cache_count(cache), 0, "remote pages are not kept");
}

Test(pcp, outbox_of_high_orders_is_smaller)
{
	make_two_zones();
	for (unsigned o = 1; o < PCPI_PCP_ORDERS; o++) {
		uint32_t full = 64u >> o;

		free_remote(o, full - 1);
		cr_expect_eq(cache->outbox[1].len[o], full - 1);
		free_remote(o, 1);
		cr_expect_eq(cache->outbox[1].len[o], 0);
		cr_expect_eq(pcpi_depot_len(&parts.zones[1].depots[o]), full);
	}
}

Test(pcp, flush_and_abandon_send_the_outboxes_home)
{
	make_two_zones();
	free_remote(0, 5);
	free_remote(3, 2);
	pcpi_cache_flush(cache);
	cr_expect_eq(pcpi_zone_depot_pages(&parts.zones[1]), 5 + 16);
	free_remote(1, 3);
	pcpi_cache_abandon(cache);
	cr_expect_eq(pcpi_zone_depot_pages(&parts.zones[1]), 5 + 16 + 6);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FLUSH], 2);
}

Test(pcp, emptied_claim_sends_the_outboxes_home)
{
	uint64_t moved[PARTS_ZONES] = {0};

	make_two_zones();
	free_remote(0, 5);
	parts_take(0, 1, pfns, 1);
	pcpi_cache_push(cache, 1, pfns, 1);
	cr_assert(pcpi_cache_claim(cache));
	pcpi_cache_empty_claimed(cache, moved);
	cr_expect_eq(moved[0], 2);
	cr_expect_eq(moved[1], 5);
	cr_expect_eq(parts.zones[1].free_pages, parts.zones[1].managed_pages);
}

Test(pcp, claimed_cache_sends_remote_blocks_straight_home)
{
	make_two_zones();
	cr_assert(pcpi_cache_claim(cache));
	free_remote(0, 3);
	cr_expect_eq(cache->outbox[1].len[0], 0);
	cr_expect_eq(parts.zones[1].direct_frees, 3);
	cr_expect_eq(parts_pages_held(1), parts.zones[1].managed_pages);
}

/* ---- Trace ------------------------------------------------------------------- */

Test(pcp, refill_tells_what_it_took)
{
	unsigned n;

	parts_listen();
	cr_assert_eq(pcpi_cache_refill(cache, 1, pfns, 1), 1);
	cr_expect_eq(parts_heard(PCPA_EVENT_PCPU_REFILL, &n),
		     2 * (pcpi_cache_len(cache, 1) + 1));
	cr_expect_eq(n, 1);
	cr_expect_eq(parts_heard(PCPA_EVENT_ZONE_LOCKED, &n),
		     2 * (pcpi_cache_len(cache, 1) + 1));
	cr_expect_eq(n, 1);
	parts_heard(PCPA_EVENT_EXTFRAG, &n);
	cr_expect_eq(n, 1);
	cr_expect_eq(parts.events[parts.nr_events - 1].count, 0);
	cr_expect_eq(parts.events[0].node, (int)zone->config.os_node);
}

/* With nothing held only a build without assertions says yes. */
static bool library_asserts;

static void expect_unmarked(const struct pcpa_event *event, void *arg)
{
	(void)event;
	++*(unsigned *)arg;
	cr_expect_eq(cache->busy, 0);
	for (unsigned r = PCPI_RANK_HEAPS;
	     library_asserts && r <= PCPI_RANK_ZONE; r++)
		cr_expect_not(pcpi_lock_held((enum pcpi_lock_rank)r));
}

Test(pcp, events_come_with_no_mark_and_no_lock)
{
	unsigned events = 0;

	library_asserts = !pcpi_lock_held(PCPI_RANK_ZONE);
	pcpi_trace_set(&parts.env.trace, expect_unmarked, &events); /* C2 */
	cr_assert_eq(pcpi_cache_refill(cache, 0, pfns, 1), 1);
	parts_take(0, 0, pfns, 800);
	for (unsigned i = 0; i < 800; i++)
		free_hot(0, pfns[i]);
	pcpi_cache_flush(cache);
	cr_expect_geq(events, 5, "%u: refill 3, drain, flush", events);
}

/* ---- Hand-overs ---------------------------------------------------------------- */

/* In a steady flow from one thread to another the zone is not asked. */
Test(pcp, steady_flow_between_two_caches_leaves_the_zone_alone)
{
	struct pcpi_cache *rx = cache, *tx = parts_cache(0);
	uint64_t locks = 0;
	uint32_t got;

	for (unsigned round = 0; round < 2000; round++) {
		if (round == 1000)
			locks = zone->locks;
		for (uint32_t n = 0; n < 32; n += got) {
			got = pcpi_cache_pop(rx, 0, pfns + n, 32 - n);
			if (got == 0)
				got = pcpi_cache_refill(rx, 0, pfns + n, 32 - n);
			cr_assert_gt(got, 0);
		}
		pcpi_cache_push(tx, 0, pfns, 32);
	}
	cr_expect_leq(zone->locks - locks, 3, "%llu locks for 32,000 pages",
		      (unsigned long long)(zone->locks - locks));
	expect_conserved(0);
}

/* Blocks of the zone into the depot. */
static void fill_depot(uint32_t n)
{
	static uint32_t many[2 * PCPI_DEPOT_GET];

	parts_take(0, 0, many, n);
	cr_assert(pcpi_depot_put(&zone->depots[0], many, n));
}

Test(pcp, taker_refills_at_once_from_the_depot)
{
	fill_depot(2 * PCPI_DEPOT_GET);
	cr_assert_eq(pcpi_cache_refill_at_once(cache, 0, pfns, 1), 1);
	cr_expect_eq(depot_len(0), PCPI_DEPOT_GET);
	cr_expect_eq(pcpi_cache_len(cache, 0), PCPI_DEPOT_GET - 1);
	cr_expect_eq(cache->refills, 1);
	cr_expect_eq(cache->depot_gets, 1);
	cr_expect_eq(pcpi_allocs(&cache->list[0].allocs), 1);
	cr_expect_eq(cache->busy, 0);
	expect_conserved(1);
}

static void expect_not_at_once(const char *why)
{
	uint32_t len = pcpi_cache_len(cache, 0), depot = depot_len(0);
	uint64_t refills = cache->refills;

	cr_expect_eq(pcpi_cache_refill_at_once(cache, 0, pfns, 1), 0, "%s", why);
	cr_expect_eq(pcpi_cache_len(cache, 0), len, "%s", why);
	cr_expect_eq(depot_len(0), depot, "%s", why);
	cr_expect_eq(cache->refills, refills, "%s", why);
	cr_expect_eq(cache->busy, 0, "%s", why);
}

Test(pcp, nothing_is_refilled_at_once_that_has_to_wait)
{
	expect_not_at_once("the depot is empty");
	fill_depot(PCPI_DEPOT_GET);
	pcpi_lock_take(&zone->depots[0].lock);
	expect_not_at_once("busy");
	pcpi_lock_drop(&zone->depots[0].lock);
	cr_assert(pcpi_cache_claim(cache));
	expect_not_at_once("claimed");
	pcpi_cache_claim_end(cache, PCPI_CLAIM_NONE);
	pcpi_zone_disable(zone, 1);
	expect_not_at_once("disabled");
	pcpi_zone_disable(zone, -1);
	cr_expect_eq(pcpi_cache_refill_at_once(cache, 0, pfns, 1), 1);
}

/* What is guessed is set by every refill from the depot and every hand-over. */
Test(pcp, refills_and_hand_overs_guess_the_next)
{
	static uint32_t many[2 * PARTS_BATCH];
	struct pcpi_depot_guess *g = &cache->guess[0];
	uint32_t first = 0;

	parts_take(0, 0, many, 2 * PARTS_BATCH);
	for (unsigned i = 0; i < PARTS_BATCH; i++)
		free_hot(0, many[i]);
	cr_expect_eq(g->put.nr, PARTS_BATCH);
	cr_expect_eq(cache->depot_puts, 1);
	free_hot(0, many[PARTS_BATCH]); /* it frees, too: not at once */
	while (pcpi_cache_len(cache, 0) > 0)
		pop_one(0);
	cr_assert_eq(pcpi_cache_refill(cache, 0, &first, 1), 1);
	cr_expect_eq(cache->depot_gets, 1);
	cr_expect_eq(g->head, zone->depots[0].ring.head);
	while (depot_len(0) > 0)
		pcpi_depot_get(&zone->depots[0], pfns, 1);
	while (pcpi_cache_len(cache, 0) > 0)
		pop_one(0);
	g->get.nr = 16;
	cr_assert_eq(pcpi_cache_refill(cache, 0, &first, 1), 1);
	cr_expect_eq(g->get.nr, 0, "nothing there, nothing guessed");
}

/* The slots of the last one that was taken may be in use by others since. */
Test(pcp, refused_hand_over_guesses_nothing)
{
	static uint32_t many[2 * PARTS_BATCH];
	struct pcpi_depot_guess *g = &cache->guess[0];

	parts_take(0, 0, many, 2 * PARTS_BATCH);
	for (unsigned i = 0; i < PARTS_BATCH; i++)
		free_hot(0, many[i]);
	cr_assert_eq(g->put.nr, PARTS_BATCH);
	pcpi_depot_close(&zone->depots[0], true);
	for (unsigned i = PARTS_BATCH; i < 2 * PARTS_BATCH; i++)
		free_hot(0, many[i]);
	cr_assert_eq(cache->drains[PCPI_DRAIN_FREER], 2);
	cr_expect_eq(cache->depot_puts, 1);
	cr_expect_eq(g->put.nr, 0);
	expect_conserved(0);
}

Test(pcp, every_16th_hand_over_returns_the_depots_surplus)
{
	static uint32_t many[17 * PARTS_BATCH];

	parts_take(0, 0, many, 17 * PARTS_BATCH);
	for (unsigned i = 0; i < 17; i++) {
		parts.now_ns += i == 16 ? 0 : PARTS_SECOND / 4;
		for (unsigned k = 0; k < PARTS_BATCH; k++)
			free_hot(0, many[PARTS_BATCH * i + k]);
	}
	cr_expect_eq(cache->depot_puts, 17);
	cr_expect_gt(zone->depots[0].low_since_ns, 0, "it was looked at");
	cr_expect_eq(zone->depots[0].low, 16 * PARTS_BATCH);
}
