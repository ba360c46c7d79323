/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_disable.c - caches that are kept empty.
 *
 * Races are played by one thread, which is owner and drainer in turns: the hooks
 * of the system's table are where the drainer waits (membarrier, yield), and a
 * trace subscriber is called where an owner has blocks in its hand.
 */
#include "../support/disable_fixture.h"
#include "rcu.h"

TestSuite(disable, .init = setup, .fini = teardown);

/* ---- Arguments ---------------------------------------------------------------- */

Test(disable, bad_arguments_change_nothing)
{
	cr_expect_eq(pcpa_cache_disable(NULL, -1), -EINVAL);
	cr_expect_eq(pcpa_cache_enable(NULL, -1), -EINVAL);
	cr_expect_eq(pcpa_cache_disable(heap, 4094), -EINVAL);
	cr_expect_eq(pcpa_cache_disable(heap, -2), -EINVAL);
	cr_expect_eq(pcpa_cache_enable(heap, -1), -EINVAL, "not disabled");
	cr_expect_eq(pcpa_cache_enable(heap, NODE), -EINVAL);
	KEEPS_ERRNO(cr_expect_eq(pcpa_cache_disable(heap, NODE), 0));
	cr_expect_eq(pcpa_cache_enable(heap, 4094), -EINVAL);
	KEEPS_ERRNO(cr_expect_eq(pcpa_cache_enable(heap, NODE), 0));
	cr_expect_eq(pcpa_cache_enable(heap, NODE), -EINVAL);
	fill();
	cr_expect_gt(stats_of(heap, -1).cached_pages, 0);
}

/* ---- What it does ----------------------------------------------------------------- */

Test(disable, nothing_is_left_and_nothing_gets_in)
{
	size_t n;

	fill();
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	expect_empty();
	for (unsigned o = 0; o <= pcpa_heap_max_order(heap); o++) {
		n = alloc_all(heap, o, 0, blocks, 3);
		cr_expect_eq(n, 3);
		cr_expect_eq(stats_of(heap, -1).used_pages, n << o);
		expect_empty();
		free_all(heap, blocks, n);
		expect_empty();
	}
	n = pcpa_alloc_bulk(heap, 0, 0, blocks, 300);
	cr_expect_eq(n, 300);
	expect_empty();
	pcpa_free_bulk(heap, blocks, n);
	expect_empty();
	n = pcpa_alloc_bulk(heap, 2, 0, blocks, 100);
	pcpa_free_bulk_sized(heap, 2, blocks, n);
	pcpa_free_sized(heap, pcpa_alloc(heap, 1, 0), 1);
	cr_expect_eq(pcpa_thread_flush(heap), 0);
	expect_empty();
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
	fill();
	cr_expect_gt(stats_of(heap, -1).cached_pages, 0);
	cr_expect_gt(stats_of(heap, -1).depot_pages, 0);
}

Test(disable, nests)
{
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	cr_assert_eq(pcpa_cache_disable(heap, NODE), 0);
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
	fill();
	expect_empty();
	cr_assert_eq(pcpa_cache_enable(heap, NODE), 0);
	fill();
	cr_expect_gt(stats_of(heap, -1).cached_pages, 0);
	cr_expect_eq(pcpa_cache_enable(heap, NODE), -EINVAL);
}

Test(disable, hits_come_back)
{
	uint64_t locks;

	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
	fill();
	locks = stats_of(heap, -1).zone_locks;
	for (unsigned i = 0; i < 1000; i++)
		pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	cr_expect_eq(stats_of(heap, -1).zone_locks, locks);
}

static void *outsider(void *arg)
{
	void *held[64];
	size_t n = pcpa_alloc_bulk(heap, 0, 0, held, 64);

	(void)arg;
	cr_expect_eq(n, 64);
	for (size_t i = 0; i < n; i++) {
		expect_empty();
		pcpa_free(heap, held[i]);
	}
	expect_empty();
	return NULL;
}

/* The first finds a cache that must be made, the second one to adopt. */
Test(disable, new_and_adopted_caches_begin_disabled)
{
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	thread_run(outsider, NULL);
	thread_run(outsider, NULL);
	cr_expect_eq(stats_of(heap, -1).caches, 1, "this thread's");
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
}

Test(disable, works_without_membarrier_and_with_checks)
{
	heap_replace(heap_fixed(16 * MIB, PCPA_HEAP_CHECKS));
	fill();
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	fill();
	expect_empty();
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
	fill();
	cr_expect_gt(stats_of(heap, -1).cached_pages, 0);
}

/* ---- Numbers for caches -------------------------------------------------------------- */

Test(disable, numbers_follow_at_the_enable)
{
	struct pcpi_zone *zone = &heap->env.zones[0];
	struct pcpi_pageset was, now;
	uint64_t grown;

	heap_replace(heap_make(16 * MIB, 256 * MIB, 0));
	zone = &heap->env.zones[0];
	was = pcpi_zone_pageset(zone);
	cr_assert_gt(was.high_max, 0);
	cr_assert_eq(pcpa_cache_disable(heap, NODE), 0);
	cr_expect_eq(pcpi_zone_pageset(zone).high_max, 0);
	cr_assert_eq(pcpi_zone_grow(zone, zone->managed_pages, 128 * MIB, true,
				    &grown), 0);
	for (unsigned i = 0; i < 3; i++)
		pcpi_zone_caches_changed(zone, 1);
	now = pcpi_zone_pageset(zone);
	cr_expect_eq(now.high_max, 0);
	cr_expect_eq(now.high_min, 0);
	cr_expect_eq(now.batch, 1);
	cr_assert_eq(pcpa_cache_enable(heap, NODE), 0);
	now = pcpi_zone_pageset(zone);
	cr_expect_gt(now.high_max, was.high_max, "of the larger zone");
	pcpi_zone_caches_changed(zone, -3);
	cr_expect_geq(pcpi_zone_pageset(zone).high_max, now.high_max);
}

/* ---- Races: section F of the specification ---------------------------------------------- */

static unsigned hooks = 1; /* so far; 0: armed */

static uint32_t pfn_of(void *block)
{
	return pcpi_space_pfn(&heap->space, block);
}

/* The owner is inside, past its look at claim and depth, when the drainer comes:
 * it puts its block in and leaves. */
static void owner_puts_and_leaves(void)
{
	uint32_t pfn;

	if (hooks++ > 0)
		return;
	pfn = pfn_of(blocks[0]);
	pcpi_ring_push(&mine->list[0].ring, &pfn, 1);
	pcpi_cache_leave(mine);
}

static int barrier_while_owner_puts(void)
{
	owner_puts_and_leaves();
	return pcpi_sys_linux.membarrier();
}

static void race_put(void)
{
	blocks[0] = pcpa_alloc(heap, 0, 0);
	cr_assert_eq(pcpa_heap_drain(heap), 0);
	cr_assert_eq(pcpi_cache_pages(mine), 0);
	cr_assert(pcpi_cache_enter(mine));
	hooks = 0;
	cr_assert_eq(pcpa_cache_disable(heap, NODE), 0);
	cr_assert_gt(hooks, 0);
	cr_expect_eq(pcpi_cache_pages(mine), 0);
	expect_empty();
	cr_assert_eq(pcpa_cache_enable(heap, NODE), 0);
}

/* (a) It leaves while the drainer waits for the mark. */
Test(disable, a_put_in_progress_is_waited_for)
{
	table.yield = owner_puts_and_leaves;
	race_put();
}

/* (b) It was empty when the drainer came, and is not afterwards: a drainer that
 * asks for the count before it has claimed would go by. */
Test(disable, b_put_into_an_empty_cache_is_not_overlooked)
{
	table.membarrier = barrier_while_owner_puts;
	race_put();
}

static enum pcpa_event_kind disable_at;
static bool disabled;

static void disable_midway(const struct pcpa_event *event, void *arg)
{
	(void)arg;
	if (disabled || event->kind != disable_at)
		return;
	disabled = true;
	cr_assert_eq(pcpa_cache_disable(heap, NODE), 0);
}

static void listen(enum pcpa_event_kind kind)
{
	disable_at = kind;
	disabled = false;
	cr_assert_eq(pcpa_heap_trace(heap, disable_midway, NULL), 0);
}

static void listen_end(void)
{
	cr_expect(disabled, "the owner came by");
	cr_assert_eq(pcpa_heap_trace(heap, NULL, NULL), 0);
	cr_assert_eq(pcpa_cache_enable(heap, NODE), 0);
}

/* (c) The owner has taken a batch from the zone for its ring when it is
 * disabled. */
Test(disable, c_refill_in_progress_goes_back)
{
	void *block;

	cr_assert_eq(pcpa_heap_drain(heap), 0);
	listen(PCPA_EVENT_ZONE_LOCKED);
	block = pcpa_alloc(heap, 0, 0);
	cr_expect(block);
	expect_empty();
	cr_expect_eq(stats_of(heap, -1).used_pages, 1);
	pcpa_free(heap, block);
	expect_empty();
	listen_end();
}

/* The same for a batch on its way to the depot. */
Test(disable, hand_over_in_progress_goes_to_the_zone)
{
	size_t n = pcpa_alloc_bulk(heap, 0, 0, blocks, 512);

	cr_assert_eq(n, 512);
	cr_assert_eq(pcpa_heap_drain(heap), 0);
	listen(PCPA_EVENT_PCPU_DRAIN);
	for (size_t i = 0; i < n; i++)
		pcpa_free(heap, blocks[i]);
	expect_empty();
	cr_expect_eq(stats_of(heap, -1).used_pages, 0);
	listen_end();
}

/* ---- A deadline that is missed --------------------------------------------------------------- */

static uint64_t now_ns;

static uint64_t clock_said(void)
{
	return now_ns += UINT64_C(10000000);
}

Test(disable, missed_deadline_undoes_and_loses_nothing)
{
	struct pcpa_stats s;

	fill();
	table.clock_ns = clock_said;
	cr_assert(pcpi_cache_enter(mine));
	cr_expect_eq(pcpa_cache_disable(heap, NODE), -ETIMEDOUT);
	pcpi_cache_leave(mine);
	s = stats_summed(heap);
	cr_expect_eq(s.busy_skipped, 1);
	cr_expect_eq(s.depot_pages, 0);
	cr_expect_gt(s.cached_pages, 0);
	cr_expect_eq(pcpa_cache_enable(heap, NODE), -EINVAL);
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	cr_expect_eq(stats_of(heap, -1).drains_flush, s.drains_flush + 1,
		     "flushed by its owner");
	cr_expect_eq(pcpa_cache_disable(heap, NODE), 0);
	expect_empty();
	cr_expect_eq(pcpa_cache_enable(heap, NODE), 0);
}

/* ---- Heaps without interruption ----------------------------------------------------------------- */

static int barrier_refused(void)
{
	cr_assert_fail("membarrier in a heap without interruption");
	return -1;
}

Test(disable, without_interruption_the_caller_answers_itself)
{
	heap_replace(heap_fixed(16 * MIB, PCPA_HEAP_NO_IPI));
	table.membarrier = barrier_refused;
	fill();
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	expect_empty();
	fill();
	expect_empty();
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
	fill();
	expect_empty();
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
	fill();
	cr_expect_gt(stats_of(heap, -1).cached_pages, 0);
	pcpi_sys = system_before;
}

static pthread_barrier_t meet;
static bool leave;

static void *idler(void *arg)
{
	void *block = pcpa_alloc(heap, 0, 0);

	(void)arg;
	pcpa_free(heap, block);
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	/* release/acquire: pairs with the test's store. */
	while (!pcpi_load_acquire(&leave))
		pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	return NULL;
}

Test(disable, without_interruption_an_idle_owner_is_late)
{
	struct pcpa_stats s;
	pthread_t thread;
	int err;

	heap_replace(heap_fixed(16 * MIB, PCPA_HEAP_NO_IPI));
	cr_assert_eq(pthread_barrier_init(&meet, NULL, 2), 0);
	cr_assert_eq(pthread_create(&thread, NULL, idler, NULL), 0);
	pthread_barrier_wait(&meet);
	s = stats_summed(heap);
	table.clock_ns = clock_said;
	cr_expect_eq(pcpa_cache_disable(heap, -1), -ETIMEDOUT);
	table.clock_ns = system_before->clock_ns;
	cr_expect_eq(pcpa_cache_enable(heap, -1), -EINVAL);
	cr_expect_leq(stats_summed(heap).cached_pages, s.cached_pages);
	cr_expect_gt(stats_summed(heap).cached_pages, 0, "the idler's");
	pthread_barrier_wait(&meet);
	do
		err = pcpa_cache_disable(heap, -1);
	while (err == -ETIMEDOUT);
	cr_expect_eq(err, 0);
	for (unsigned i = 0; i < 1000; i++)
		cr_expect_eq(stats_of(heap, -1).cached_pages, 0);
	pcpi_store_release(&leave, true);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(pcpa_cache_enable(heap, -1), 0);
	pthread_barrier_destroy(&meet);
}

static void *answerer(void *arg)
{
	struct pcpi_cache *c;

	(void)arg;
	pcpa_free(heap, pcpa_alloc(heap, 0, 0)); /* a cache to be asked for */
	pthread_barrier_wait(&meet);
	/* release/acquire: pairs with the test's store. */
	while (!pcpi_load_acquire(&leave))
		pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	c = pcpi_hot_cache(&heap->hot);
	cr_assert(pcpi_cache_enter(c));
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	pcpi_cache_leave(c);
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	return NULL;
}

/* Beside an owner that was asked again while its cache is empty and keeps blocks
 * out: a drain waits for no answer, a disable does. */
Test(disable, without_interruption_only_a_disable_waits_for_answers)
{
	pthread_t thread;
	int err;

	heap_replace(heap_fixed(16 * MIB, PCPA_HEAP_NO_IPI));
	cr_assert_eq(pthread_barrier_init(&meet, NULL, 2), 0);
	cr_assert_eq(pthread_create(&thread, NULL, answerer, NULL), 0);
	pthread_barrier_wait(&meet);
	do
		err = pcpa_cache_disable(heap, -1);
	while (err == -ETIMEDOUT);
	cr_assert_eq(err, 0);
	pcpi_store_release(&leave, true);
	pthread_barrier_wait(&meet);
	table.clock_ns = clock_said;
	cr_expect_eq(pcpa_heap_drain(heap), -ETIMEDOUT, "it is inside");
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	cr_expect_eq(pcpa_heap_drain(heap), 0);
	cr_expect_eq(pcpa_cache_disable(heap, -1), -ETIMEDOUT);
	table.clock_ns = system_before->clock_ns;
	expect_empty();
	pthread_barrier_wait(&meet);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(pcpa_cache_disable(heap, -1), 0);
	cr_expect_eq(pcpa_cache_enable(heap, -1), 0);
	cr_expect_eq(pcpa_cache_enable(heap, -1), 0);
	pthread_barrier_destroy(&meet);
}
