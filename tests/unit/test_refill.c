/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_refill.c - the short way of a refill (route.c, step 0) does what the long one
 * does: a thread that only takes, from a depot that another fills, may get no other for
 * hours.
 */
#include "../support/clock_fixture.h"
#include "nest.h"
#include "pcp_hot.h"

#define BLOCKS 2048u

static struct pcpa_heap *heap;
static struct pcpi_cache *cache;
static void *held[2 * BLOCKS];
static unsigned nr_held;

static void take(void)
{
	cr_assert(held[nr_held++] = pcpa_alloc(heap, 0, 0));
}

static void *held_free(void *arg)
{
	(void)arg;
	while (nr_held > 0)
		pcpa_free(heap, held[--nr_held]);
	return NULL;
}

/* Another thread frees what this one took. */
static void hand_over(void)
{
	pthread_t t;

	cr_assert_eq(pthread_create(&t, NULL, held_free, NULL), 0);
	pthread_join(t, NULL);
}

/* The cache empty, most of the heap's blocks in the depot. */
static void setup(void)
{
	clock_setup();
	heap = heap_fixed(16 * MIB, 0);
	while (nr_held < BLOCKS)
		take();
	hand_over();
	cache = pcpi_hot_cache(&heap->hot);
	cr_assert(cache);
	while (pcpi_cache_len(cache, 0) > 0)
		take();
	cr_assert_gt(pcpi_depot_len(&cache->zone->depots[0]), BLOCKS / 2);
}

static void teardown(void)
{
	hand_over();
	heap_end(heap);
}

TestSuite(refill, .init = setup, .fini = teardown, .timeout = 30);

/* Takes the next block in the short way, with what that calls under way. */
static bool short_way(void)
{
	uint32_t pfn = 0;
	bool done;

	pcpi_nest_enter();
	done = pcpi_route_at_once(heap, 0, &pfn);
	pcpi_nest_leave();
	if (done)
		held[nr_held++] = pcpi_space_addr(&heap->space, pfn);
	return done;
}

Test(refill, taker_goes_the_short_way)
{
	cr_assert(short_way());
	cr_expect_gt(pcpi_cache_len(cache, 0), 0);
	cr_assert(short_way());
	cr_expect_gt(cache->guess[0].get.nr, 0, "none gave in between");
}

Test(refill, thread_that_frees_goes_the_long_way)
{
	pcpa_free(heap, held[--nr_held]);
	pcpa_free(heap, held[--nr_held]);
	cr_expect_not(short_way());
	take();
}

/* A nested free of a block that caches don't hold. */
static void defer_one(void)
{
	void *large = pcpa_alloc(heap, 5, 0);

	cr_assert(large);
	pcpi_nest_enter();
	pcpa_free(heap, large);
	pcpi_nest_leave();
	cr_assert(pcpi_deferred_any(&heap->env.deferred));
}

Test(refill, deferred_frees_are_settled)
{
	defer_one();
	cr_assert(short_way());
	cr_expect_not(pcpi_deferred_any(&heap->env.deferred));
}

/* Settling them would wait for what the interrupted call holds. */
Test(refill, nested_call_goes_the_way_that_waits_for_nothing)
{
	defer_one();
	pcpi_nest_enter();
	pcpi_lock_freeze(&cache->zone->lock);
	take();
	pcpi_lock_thaw(&cache->zone->lock);
	pcpi_nest_leave();
	cr_expect(pcpi_deferred_any(&heap->env.deferred));
}

Test(refill, due_tick_comes)
{
	uint64_t ticks = heap->env.ticks;

	cr_assert(short_way());
	cr_expect_eq(heap->env.ticks, ticks, "not due");
	now_ns += SECOND;
	cr_assert(short_way());
	cr_expect_eq(heap->env.ticks, ticks + 1);
}

static unsigned lows;

static void count_low(const struct pcpa_event *e, void *arg)
{
	(void)arg;
	lows += e->kind == PCPA_EVENT_LOW;
}

/* What the depot holds counts as free, and here it is all there is. */
Test(refill, low_is_told)
{
	void *large[256];
	unsigned n = 0;

	while (n < 256 && (large[n] = pcpa_alloc(heap, 4, PCPA_NOWAIT)))
		n++;
	cr_assert_eq(pcpa_heap_watch(heap, count_low, NULL), 0);
	cr_expect_eq(lows, 0);
	while (lows == 0)
		cr_assert(short_way());
	cr_expect_eq(lows, 1);
	while (n > 0)
		pcpa_free(heap, large[--n]);
}
