/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pcp_tune.c - the policy seen through a real cache: the drains of the
 * specification, pure freers, protection of high orders, bounds.
 *
 * Without knobs 256 MiB give batch 15, high 640..8192, depot batch 256.
 */
#include <criterion/criterion.h>
#include <pcpalloc/pcpalloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "../support/core_fixture.h"
#include "pcp.h"
#include "pcp_hot.h"
#include "pcp_tune.h"

static struct pcpi_zone *const zone = &parts.zones[0];
static struct pcpi_cache *cache;
static uint32_t pfns[32768], nr_pfns; /* blocks that are handed out */

static void make(struct parts_spec spec)
{
	parts_make(spec);
	cache = parts_cache(0);
	nr_pfns = 0;
	parts_listen();
}

static void teardown(void)
{
	cr_expect(pcpi_cache_check(cache));
	cr_expect(pcpi_zone_check(zone));
	parts_unmake();
}

TestSuite(pcp_tune, .fini = teardown);

static void make_fixed(bool legacy, unsigned high)
{
	make((struct parts_spec){.legacy = legacy, .batch = 63, .high = high});
	cr_assert_eq(pcpi_zone_pageset(zone).high_max, high);
}

/* The hot path's free of a block that nobody had from this cache. */
static void free_fresh(unsigned order)
{
	uint32_t pfn;

	parts_take(0, order, &pfn, 1);
	cr_assert(pcpi_hot_push(cache, order + 1, pfn,
				pcpi_space_addr(&parts.space, pfn), true));
}

/* The slow path's. */
static void push_fresh(unsigned order)
{
	uint32_t pfn;

	parts_take(0, order, &pfn, 1);
	pcpi_cache_push(cache, order, &pfn, 1);
}

/* Frees of an order until there is a drain, which is returned. */
static struct pcpa_event drain_next(void (*free_one)(unsigned), unsigned order)
{
	parts.nr_events = 0;
	for (unsigned i = 0; parts.nr_events == 0; i++) {
		cr_assert_lt(i, 10000, "no drain, %u pages held",
			     pcpi_cache_count(cache));
		free_one(order);
	}
	cr_assert_eq(parts.events[0].kind, PCPA_EVENT_PCPU_DRAIN);
	cr_assert_eq(parts.events[0].order, order);
	return parts.events[0];
}

static void expect_drain(uint64_t pages, uint64_t count)
{
	struct pcpa_event e = drain_next(free_fresh, 0);

	cr_expect_eq(e.pages, pages, "%llu pages, not %llu",
		     (unsigned long long)e.pages, (unsigned long long)pages);
	cr_expect_eq(e.count, count, "at %llu, not at %llu",
		     (unsigned long long)e.count, (unsigned long long)count);
	cr_expect_eq(pcpi_cache_count(cache), count - pages);
}

static void alloc(uint32_t n)
{
	cr_assert_eq(pcpi_cache_pop(cache, 0, pfns, n), n);
	pcpi_zone_give_bulk(zone, 0, pfns, n);
}

/* ---- LEGACY ---------------------------------------------------------------- */

Test(pcp_tune, legacy_frees_only_drain_63_126_252_504_751)
{
	static const uint64_t pages[] = {63, 126, 252, 504, 751, 751};

	make_fixed(true, 814);
	for (unsigned i = 0; i < 6; i++)
		expect_drain(pages[i], 814);
	cr_expect_eq(cache->drains[PCPI_DRAIN_HIGH], 6);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FREER], 0);
}

/* The same where the hot path is never taken. */
Test(pcp_tune, legacy_trace_is_the_same_on_the_slow_path)
{
	static const uint64_t pages[] = {63, 126, 252, 504, 751};

	make((struct parts_spec){
		.legacy = true, .batch = 63, .high = 814, .exchange = true});
	for (unsigned i = 0; i < 5; i++) {
		struct pcpa_event e = drain_next(push_fresh, 0);

		cr_expect_eq(e.pages, pages[i]);
		cr_expect_eq(e.count, 814);
	}
}

Test(pcp_tune, legacy_trace_ends_at_high_less_a_batch)
{
	static const uint64_t pages[] = {63, 126, 252, 504, 661, 661};

	make_fixed(true, 724);
	for (unsigned i = 0; i < 6; i++)
		expect_drain(pages[i], 724);
}

Test(pcp_tune, legacy_trace_at_six_batches)
{
	static const uint64_t pages[] = {63, 126, 252, 315, 315};

	make_fixed(true, 378);
	for (unsigned i = 0; i < 5; i++)
		expect_drain(pages[i], 378);
}

/* Allocations at saturation halve the exponent of 4 each. */
static void expect_after_allocs(uint32_t allocs, uint64_t pages)
{
	make_fixed(true, 814);
	for (unsigned i = 0; i < 6; i++)
		drain_next(free_fresh, 0);
	alloc(allocs);
	for (; pages < 751; pages *= 2)
		expect_drain(pages, 814);
	expect_drain(751, 814);
}

Test(pcp_tune, legacy_one_alloc_quarters_the_drain)
{
	expect_after_allocs(1, 252);
}

Test(pcp_tune, legacy_two_allocs_leave_126)
{
	expect_after_allocs(2, 126);
}

Test(pcp_tune, legacy_three_allocs_begin_anew)
{
	expect_after_allocs(3, 63);
}

Test(pcp_tune, next_owner_begins_anew)
{
	make_fixed(true, 814);
	for (unsigned i = 0; i < 3; i++)
		drain_next(free_fresh, 0);
	pcpi_cache_abandon(cache);
	pcpi_tune_start(cache);
	expect_drain(63, 814);
	expect_drain(126, 814);
}

/* ---- The whole library ------------------------------------------------------- */

#define TRACE_BLOCKS (814 + 63 + 126 + 252 + 504)

struct drains {
	unsigned n;
	uint64_t pages[16], count[16];
};

static void drain_note(const struct pcpa_event *e, void *arg)
{
	struct drains *d = arg;

	if (e->kind != PCPA_EVENT_PCPU_DRAIN || d->n == 16)
		return;
	d->pages[d->n] = e->pages;
	d->count[d->n++] = e->count;
}

static struct pcpa_heap *heap;
static void *blocks[TRACE_BLOCKS];

static void *alloc_all(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < TRACE_BLOCKS; i++)
		blocks[i] = pcpa_alloc(heap, 0, 0);
	return NULL;
}

static void *free_all(void *arg)
{
	pcpa_heap_trace(heap, drain_note, arg);
	for (unsigned i = 0; i < TRACE_BLOCKS; i++)
		pcpa_free(heap, blocks[i]);
	pcpa_heap_trace(heap, NULL, NULL); /* the thread's end flushes */
	return NULL;
}

static void run(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, fn, arg), 0);
	pthread_join(thread, NULL);
}

/* On two CPUs whatever the machine has: its number bounds high. */
Test(pcp_tune_heap, legacy_heap_drains_63_126_252_504_751)
{
	static const uint64_t want[] = {63, 126, 252, 504, 751};
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct drains seen = {.n = 0};

	setenv("HWLOC_SYNTHETIC", "numa:1(memory=8589934592) pu:2", 1);
	setenv("HWLOC_THISSYSTEM", "0", 1);
	opts.flags = PCPA_HEAP_LEGACY;
	opts.initial_bytes = (size_t)256 << 20;
	opts.max_bytes = (size_t)256 << 20;
	opts.batch_pages = 63;
	opts.high_pages = 814;
	opts.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&opts, &heap), 0);
	run(alloc_all, NULL);
	run(free_all, &seen);
	cr_assert_eq(seen.n, 5, "%u drains", seen.n);
	cr_expect_arr_eq(seen.pages, want, sizeof(want));
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(seen.count[i], 814);
	cr_expect_eq(pcpa_heap_destroy(heap), 0);
}

/* ---- Pure freers --------------------------------------------------------------- */

Test(pcp_tune, freer_hands_over_each_full_batch)
{
	uint32_t high;

	make((struct parts_spec){0});
	high = cache->high;
	cr_assert_gt(high, PARTS_BATCH);
	for (unsigned i = 0; i < 50; i++)
		expect_drain(PARTS_BATCH, PARTS_BATCH);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FREER], 50);
	cr_expect_eq(cache->drains[PCPI_DRAIN_HIGH], 0);
	cr_expect_eq(cache->depot_puts, 50, "one batch each");
	cr_expect_eq(cache->high, high);
}

Test(pcp_tune, freer_of_any_order_hands_over_each_full_batch)
{
	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++) {
		make((struct parts_spec){.batch = 63});
		for (unsigned i = 0; i < 20; i++) {
			struct pcpa_event e = drain_next(push_fresh, o);

			/* Less where high orders in a row empty the cache. */
			cr_expect_leq(e.count, PARTS_BATCH, "order %u", o);
			cr_expect_geq(e.count, PARTS_BATCH - (1u << o), "order %u", o);
			cr_expect_eq(pcpi_cache_count(cache), 0);
		}
		if (o + 1 < PCPI_PCP_ORDERS)
			teardown();
	}
}

Test(pcp_tune, freer_of_mixed_orders_holds_less_than_two_batches)
{
	uint64_t seed = parts_seed();

	make((struct parts_spec){0});
	for (unsigned i = 0; i < 20000; i++) {
		free_fresh(parts_random(&seed) >> 8 & 3);
		cr_assert_lt(pcpi_cache_count(cache), 2 * PARTS_BATCH);
		parts.nr_events = 0;
		if (i % 64 == 0)
			pcpi_depots_empty(zone);
	}
}

Test(pcp_tune, freers_reserve_shrinks_by_two_batches_a_look)
{
	make((struct parts_spec){0});
	free_fresh(0);
	alloc(1);
	drain_next(free_fresh, 0);
	cr_expect_eq(cache->drains[PCPI_DRAIN_HIGH], 1);
	for (unsigned i = 0; i < 20 && pcpi_cache_count(cache) >= PARTS_BATCH; i++)
		drain_next(free_fresh, 0);
	cr_expect_lt(pcpi_cache_count(cache), PARTS_BATCH);
	cr_expect_eq(cache->drains[PCPI_DRAIN_HIGH], 1);
	cr_expect_lt(drain_next(free_fresh, 0).count, 2 * PARTS_BATCH);
}

/* ---- Others --------------------------------------------------------------------- */

Test(pcp_tune, user_of_both_is_no_freer)
{
	make((struct parts_spec){0});
	for (unsigned i = 0; i < 600; i++) {
		free_fresh(0);
		if (i % 50 == 49)
			alloc(1);
	}
	cr_expect_eq(pcpi_cache_count(cache), 600 - 12);
	cr_expect_eq(parts.nr_events, 0, "all stays in the cache");
	free_fresh(0);
	alloc(1);
	parts.nr_events = 0;
	cr_expect_eq(drain_next(free_fresh, 0).count, 640);
	cr_expect_eq(cache->drains[PCPI_DRAIN_HIGH], 1);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FREER], 0);
}

/* G1: with one list in use the look comes exactly at high. */
Test(pcp_tune, user_of_one_list_drains_exactly_at_high)
{
	make_fixed(false, 814);
	for (unsigned i = 0; i < 20; i++) {
		push_fresh(0);
		alloc(1);
		cr_expect_eq(drain_next(free_fresh, 0).count, 814);
	}
	cr_expect_eq(cache->drains[PCPI_DRAIN_HIGH], 20);
}

/* Pages of a refill from the zone, all of them then allocated. */
static uint64_t refill_next(void)
{
	uint32_t got;
	uint64_t pages;

	parts.nr_events = 0;
	cr_assert_eq(pcpi_cache_refill(cache, 0, &got, 1), 1);
	pages = parts_heard(PCPA_EVENT_PCPU_REFILL, NULL);
	cr_assert_eq(pages, pcpi_cache_count(cache) + 1);
	pcpi_zone_give_bulk(zone, 0, &got, 1);
	alloc((uint32_t)pages - 1);
	return pages;
}

Test(pcp_tune, refills_in_a_row_double)
{
	static const uint64_t pages[] = {63, 126, 252, 504, 751, 751};

	make_fixed(false, 814);
	for (unsigned i = 0; i < 6; i++)
		cr_expect_eq(refill_next(), pages[i]);
}

Test(pcp_tune, legacy_refills_are_one_batch)
{
	make_fixed(true, 814);
	for (unsigned i = 0; i < 4; i++)
		cr_expect_eq(refill_next(), 63);
}

Test(pcp_tune, each_free_halves_the_next_refill_twice_over)
{
	make_fixed(false, 814);
	for (unsigned i = 0; i < 5; i++)
		refill_next();
	free_fresh(0); /* exponent 4 or 5 becomes 2 */
	alloc(1);
	cr_expect_eq(refill_next(), 252);
	for (unsigned i = 0; i < 3; i++)
		free_fresh(0);
	alloc(3);
	cr_expect_eq(refill_next(), 63);
}

Test(pcp_tune, refills_raise_high_unless_memory_is_short)
{
	uint32_t high, n;

	make((struct parts_spec){0});
	high = cache->high;
	refill_next();
	cr_expect_eq(cache->high, high + pcpi_zone_pageset(zone).batch);
	n = (uint32_t)(zone->free_pages - zone->marks.high) + 1;
	cr_assert_lt(n, 65536);
	for (nr_pfns = 0; n > 0; n -= pcpi_min(n, 1024u))
		parts_take(0, 0, pfns, pcpi_min(n, 1024u));
	cr_assert(zone->flags & PCPI_ZONE_BELOW_HIGH);
	high = cache->high;
	cr_assert_eq(pcpi_cache_refill(cache, 0, pfns, 1), 1);
	cr_expect_eq(cache->high, high);
}

/* ---- Several lists: F1, F4, F5 ---------------------------------------------------- */

/* A cache that is freed to and allocated from in order 2 at this moment. */
static uint32_t use_order_2(void)
{
	uint32_t got;

	for (unsigned i = 0; i < 14; i++)
		push_fresh(2);
	cr_assert_eq(pcpi_cache_pop(cache, 2, &got, 1), 1);
	pcpi_zone_give_bulk(zone, 2, &got, 1);
	return pcpi_cache_len(cache, 2);
}

Test(pcp_tune, burst_of_order_0_spares_a_list_in_use)
{
	uint32_t keep;

	make_fixed(false, 814);
	keep = pcpi_min(use_order_2(), 63u >> 2);
	cr_assert_eq(keep, 13);
	for (unsigned i = 0; i < 30; i++) {
		drain_next(free_fresh, 0);
		cr_assert_geq(pcpi_cache_len(cache, 2), keep, "drain %u", i);
	}
}

Test(pcp_tune, list_out_of_use_is_drained_in_its_turn)
{
	make_fixed(false, 814);
	use_order_2();
	drain_next(free_fresh, 0); /* dates the use */
	cr_assert_eq(pcpi_cache_len(cache, 2), 13);
	parts.now_ns += PCPI_KEEP_TICKS * PARTS_SECOND;
	drain_next(free_fresh, 0);
	cr_expect_lt(pcpi_cache_len(cache, 2), 13); /* F1 */
	for (unsigned i = 0; i < 10; i++)
		drain_next(free_fresh, 0);
	cr_expect_eq(pcpi_cache_len(cache, 2), 0);
}

Test(pcp_tune, use_again_protects_again)
{
	uint32_t got, left;

	make_fixed(false, 814);
	use_order_2();
	drain_next(free_fresh, 0);
	parts.now_ns += 10 * PARTS_SECOND;
	cr_assert_eq(pcpi_cache_pop(cache, 2, &got, 1), 1);
	pcpi_zone_give_bulk(zone, 2, &got, 1);
	left = pcpi_cache_len(cache, 2);
	for (unsigned i = 0; i < 10; i++)
		drain_next(free_fresh, 0);
	cr_expect_eq(pcpi_cache_len(cache, 2), left);
}

/* ---- Bounds ------------------------------------------------------------------------ */

/* G2: no list is at its limit when its owner is out. */
static void expect_limits_ahead(void)
{
	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++)
		cr_assert_lt(pcpi_ring_len(&cache->list[o].ring),
			     cache->list[o].ring.limit, "order %u", o);
}

/* Random frees of up to chunk blocks, and fewer allocations; after each the
 * count is at most high and what the last call brought. */
static void expect_bounded(uint64_t seed, uint32_t chunk, uint32_t pops)
{
	uint32_t batch[PCPI_CHUNK], n, most = cache->high;

	for (unsigned i = 0; i < 4000; i++) {
		uint64_t r = parts_random(&seed) >> 8;
		unsigned o = r & 3;

		n = 1 + (uint32_t)(r >> 8) % chunk;
		if ((r >> 4 & 3) == 0) {
			n = pcpi_min(n, pops);
			n = pcpi_cache_pop(cache, o, batch, n);
			pcpi_zone_give_bulk(zone, o, batch, n);
			continue;
		}
		parts_take(0, o, batch, n);
		pcpi_cache_push(cache, o, batch, n);
		parts.nr_events = 0;
		most = pcpi_max(most, cache->high);
		cr_assert_leq(pcpi_cache_count(cache), most + (n << o),
			      "step %u: %u pages at high %u", i,
			      pcpi_cache_count(cache), most);
		expect_limits_ahead();
		if (i % 16 == 0)
			pcpi_depots_empty(zone);
	}
	cr_expect_eq(parts_pages_held(0), zone->managed_pages); /* F5 */
}

Test(pcp_tune, single_frees_of_all_orders_stay_below_high)
{
	make_fixed(false, 814);
	expect_bounded(parts_seed(), 1, 1);
}

Test(pcp_tune, batches_of_all_orders_stay_below_high)
{
	make_fixed(false, 814);
	expect_bounded(parts_seed(), PCPI_CHUNK, PCPI_CHUNK);
}

Test(pcp_tune, batches_with_few_allocs_between_stay_below_high)
{
	make_fixed(false, 814);
	expect_bounded(parts_seed(), PCPI_CHUNK, 5);
}

Test(pcp_tune, batches_of_a_legacy_cache_stay_below_high)
{
	make_fixed(true, 814);
	expect_bounded(parts_seed(), PCPI_CHUNK, 5);
}

Test(pcp_tune, batches_of_a_moving_bound_stay_below_it)
{
	make((struct parts_spec){0});
	expect_bounded(parts_seed(), PCPI_CHUNK, 5);
	cr_expect_leq(cache->high, pcpi_zone_pageset(zone).high_max);
}

/* A zone that has nothing to spare for caches. */
Test(pcp_tune, cache_with_high_0_keeps_nothing)
{
	make((struct parts_spec){.max_mib = 2, .node_cpus = 100});
	cr_assert_eq(pcpi_zone_pageset(zone).high_max, 0);
	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++)
		for (unsigned i = 0; i < 3; i++) {
			push_fresh(o);
			cr_expect_eq(pcpi_cache_count(cache), 0, "order %u", o);
		}
}

/* Fronts of lists that nobody uses must not bring the look forward: it would
 * find no full batch and come again. */
Test(pcp_tune, first_look_of_a_freer_comes_with_the_full_batch)
{
	make((struct parts_spec){0});
	/* One of the batch goes to the front, which has no limit. */
	cr_expect_eq(cache->list[0].ring.limit, PARTS_BATCH - 1);
}
