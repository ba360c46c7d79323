/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_nested.c - calls that interrupted another one of their thread: lib/nest.h,
 * nowait.c, deferred.h, pcp_defer.c, and what the public functions answer.  The
 * depth is forced, or a handler runs where the library calls the system.
 */
#include "../support/heap_fixture.h"
#include "../support/helper.h"
#include "heap.h"
#include "nest.h"

#include <signal.h>

#define MANY 8192u

static void *blocks[MANY];

static void inside(void)
{
	cr_assert(pcpi_nest_enter(), "not the outermost");
}

static void outside(void)
{
	pcpi_nest_leave();
	cr_assert_eq(pcpi_nest_depth, 0);
}

/* All that a thread can hold when it is interrupted. */
static void locks_take(struct pcpa_heap *heap)
{
	struct pcpi_zone *z = &heap->env.zones[0];
	unsigned o;

	pcpi_lock_freeze(&pcpi_heaps_lock);
	pcpi_lock_freeze(&heap->drain_lock);
	pcpi_lock_freeze(&heap->threads_lock);
	pcpi_lock_freeze(&z->grow_lock);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pcpi_lock_freeze(&z->depots[o].lock);
	pcpi_lock_freeze(&z->lock);
}

static void locks_drop(struct pcpa_heap *heap)
{
	struct pcpi_zone *z = &heap->env.zones[0];
	unsigned o;

	pcpi_lock_thaw(&z->lock);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		pcpi_lock_thaw(&z->depots[o].lock);
	pcpi_lock_thaw(&z->grow_lock);
	pcpi_lock_thaw(&heap->threads_lock);
	pcpi_lock_thaw(&heap->drain_lock);
	pcpi_lock_thaw(&pcpi_heaps_lock);
}

/* ---- Allocations ----------------------------------------------------------------- */

Test(nested, alloc_takes_what_needs_no_wait, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	void *block;

	for (unsigned order = 0; order <= 9; order++) {
		inside();
		KEEPS_ERRNO(block = pcpa_alloc(heap, order, 0));
		outside();
		cr_assert(block, "order %u", order);
		cr_expect_eq(pcpa_block_order(heap, block), (int)order);
		pcpa_free(heap, block);
	}
	heap_end(heap);
}

Test(nested, alloc_with_all_locks_held_is_refused, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);

	inside();
	locks_take(heap);
	for (unsigned order = 0; order <= 9; order++) {
		errno = 0;
		cr_expect_null(pcpa_alloc(heap, order, 0));
		cr_expect_eq(errno, EAGAIN, "order %u: %d", order, errno);
		errno = 0;
		cr_expect_eq(pcpa_alloc_bulk(heap, order, 0, blocks, 100), 0);
		cr_expect_eq(errno, EAGAIN, "order %u: %d", order, errno);
	}
	locks_drop(heap);
	outside();
	heap_end(heap);
}

Test(nested, alloc_grows_nothing_and_makes_no_cache, .timeout = 20)
{
	struct pcpa_heap *heap = heap_make(0, 64 * MIB, 0);

	inside();
	errno = 0;
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	cr_expect_eq(errno, EAGAIN);
	outside();
	cr_expect_eq(stats_of(heap, -1).managed_pages, 0);
	cr_expect_eq(stats_of(heap, -1).caches, 0);
	heap_end(heap);
}

Test(nested, bulk_takes_all_there_is, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t all = stats_of(heap, -1).managed_pages, got;

	inside();
	errno = 0;
	got = pcpa_alloc_bulk(heap, 0, 0, blocks, MANY);
	cr_expect_eq(errno, EAGAIN);
	outside();
	cr_expect_eq(got, all, "%zu of %zu", got, all);
	pcpa_free_bulk(heap, blocks, got);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- Frees ------------------------------------------------------------------------ */

/* n blocks freed while nothing can be waited for. */
static void frees_held(struct pcpa_heap *heap, size_t n)
{
	inside();
	locks_take(heap);
	KEEPS_ERRNO(free_all(heap, blocks, n));
	locks_drop(heap);
	outside();
}

static void frees_defer(unsigned flags, unsigned order)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, flags);
	size_t n = alloc_all(heap, order, 0, blocks, MANY);
	struct pcpa_stats s;

	cr_assert(n > 0);
	frees_held(heap, n);
	s = stats_summed(heap);
	cr_expect_eq(s.used_pages, 0, "%u: %zu", order, (size_t)s.used_pages);
	cr_expect_eq(s.used_blocks, 0);
	cr_expect(pcpi_deferred_any(&heap->env.deferred));
	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++)
		if (pcpi_hot_cache(&heap->hot))
			cr_expect_leq(pcpi_cache_len(pcpi_hot_cache(&heap->hot), o),
				      pcpi_hot_cache(&heap->hot)->list[o].ring.mask);
	expect_all_free(heap);
	cr_expect_not(pcpi_deferred_any(&heap->env.deferred));
	cr_expect_eq(s.bad_frees, 0);
	heap_end(heap);
}

Test(nested, frees_of_any_order_are_deferred, .timeout = 20)
{
	for (unsigned order = 0; order <= 9; order++) {
		frees_defer(0, order);
		frees_defer(PCPA_HEAP_CHECKS, order);
	}
}

/* More than a ring could ever hold, were there no test for room. */
Test(nested, thousands_of_frees_overflow_no_ring, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(32 * MIB, 0);
	struct pcpi_cache *c;
	size_t n, i;

	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_assert_eq(n, MANY);
	c = pcpi_hot_cache(&heap->hot);
	cr_assert(c);
	inside();
	for (i = 0; i < n; i++) {
		pcpa_free(heap, blocks[i]);
		cr_assert_leq(pcpi_cache_len(c, 0),
			      pcpi_max(c->list[0].ring.limit, 1u) + 1);
	}
	outside();
	cr_expect_lt(c->list[0].ring.mask + 1, MANY, "the ring holds them all");
	cr_expect(pcpi_cache_check(c));
	cr_expect_eq(stats_summed(heap).used_pages, 0);
	expect_all_free(heap);
	heap_end(heap);
}

Test(nested, bulk_frees_overflow_no_ring, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(32 * MIB, 0);
	struct pcpi_cache *c;
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);

	c = pcpi_hot_cache(&heap->hot);
	cr_assert(c);
	inside();
	locks_take(heap);
	pcpa_free_bulk(heap, blocks, n / 2);
	pcpa_free_bulk_sized(heap, 0, blocks + n / 2, n - n / 2);
	locks_drop(heap);
	outside();
	cr_expect_leq(pcpi_cache_len(c, 0), c->list[0].ring.limit + 1);
	cr_expect(pcpi_cache_check(c));
	cr_expect_eq(stats_summed(heap).used_pages, 0);
	expect_all_free(heap);
	heap_end(heap);
}

/* The end of a bulk call comes there, but with checks no free comes to a ring. */
Test(nested, ring_with_checks_stays_as_it_is, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, PCPA_HEAP_CHECKS);
	size_t n = alloc_all(heap, 0, 0, blocks, 8);
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);
	uint32_t len;

	cr_assert_eq(n, 8);
	free_all(heap, blocks, 7);
	len = pcpi_cache_len(c, 0);
	cr_assert_gt(len, 0);
	c->list[0].ring.limit = 1;
	inside();
	pcpa_free_bulk(heap, blocks + 7, 1);
	outside();
	cr_expect_eq(pcpi_cache_len(c, 0), len);
	cr_expect_eq(stats_summed(heap).used_pages, 0);
	expect_all_free(heap);
	heap_end(heap);
}

Test(nested, second_free_of_a_deferred_block_is_refused, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	void *block = pcpa_alloc(heap, 6, 0);

	cr_assert(block);
	inside();
	pcpa_free(heap, block);
	pcpa_free(heap, block);
	cr_expect_eq(pcpa_block_order(heap, block), -EINVAL);
	outside();
	cr_expect_eq(stats_of(heap, -1).bad_frees, 1);
	pcpa_free(heap, block);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 2);
	expect_all_free(heap);
	heap_end(heap);
}

Test(nested, bad_frees_are_refused_before_they_are_deferred, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	char *block = pcpa_alloc(heap, 5, 0);

	inside();
	pcpa_free(heap, block + 1);
	pcpa_free(heap, block + pcpa_heap_page_bytes(heap));
	pcpa_free(heap, &heap);
	pcpa_free_sized(heap, block, 4);
	pcpa_free(heap, NULL);
	outside();
	cr_expect_eq(stats_of(heap, -1).bad_frees, 4);
	cr_expect_not(pcpi_deferred_any(&heap->env.deferred));
	pcpa_free(heap, block);
	heap_end(heap);
}

Test(nested, deferred_range_comes_back_whole, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	void *range = pcpa_alloc_contig(heap, 37, 1, 0);

	cr_assert(range);
	inside();
	locks_take(heap);
	pcpa_free_contig(heap, range, 37);
	pcpa_free_contig(heap, range, 37);
	locks_drop(heap);
	outside();
	cr_expect_eq(stats_of(heap, -1).bad_frees, 1);
	cr_expect_eq(stats_summed(heap).used_pages, 0);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- Settling ---------------------------------------------------------------------- */

static struct pcpa_heap *heap_with_all_deferred(void)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t n = alloc_all(heap, 9, 0, blocks, MANY);

	cr_assert(n > 0);
	frees_held(heap, n);
	cr_assert_eq(stats_of(heap, -1).free_pages, 0);
	return heap;
}

Test(nested, what_is_deferred_is_found_by_an_allocation, .timeout = 20)
{
	struct pcpa_heap *heap = heap_with_all_deferred();
	void *block = pcpa_alloc(heap, 9, 0);

	cr_assert(block);
	pcpa_free(heap, block);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 0);
	heap_end(heap);
}

Test(nested, nowait_says_that_it_left_deferred_blocks_out, .timeout = 20)
{
	struct pcpa_heap *heap = heap_with_all_deferred();

	errno = 0;
	cr_expect_null(pcpa_alloc(heap, 9, PCPA_NOWAIT));
	cr_expect_eq(errno, EAGAIN);
	heap_end(heap);
}

Test(nested, flush_range_bulk_and_destroy_settle, .timeout = 20)
{
	struct pcpa_heap *heap = heap_with_all_deferred();
	void *range;

	cr_assert_eq(pcpa_thread_flush(heap), 0);
	cr_expect_not(pcpi_deferred_any(&heap->env.deferred));
	heap_end(heap);
	heap = heap_with_all_deferred();
	range = pcpa_alloc_contig(heap, 512, 1, 0);
	cr_expect(range);
	pcpa_free_contig(heap, range, 512);
	heap_end(heap);
	heap = heap_with_all_deferred();
	cr_expect_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 1000), 1000);
	pcpa_free_bulk(heap, blocks, 1000);
	heap_end(heap);
	heap_end(heap_with_all_deferred());
}

Test(nested, write_after_a_deferred_free_traps, .signal = SIGILL, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	uint32_t *block = pcpa_alloc(heap, 9, 0);

	inside();
	pcpa_free(heap, block);
	outside();
	*block = 4711;
	pcpa_thread_flush(heap);
}

/* ---- Other calls ------------------------------------------------------------------- */

static int arena_refuse(const struct pcpa_arena_info *info, void *arg)
{
	(void)info;
	(void)arg;
	return 1;
}

Test(nested, control_calls_are_refused, .timeout = 20)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0), *other = NULL;
	struct pcpa_stats s = PCPA_STATS_INIT;
	char text[64];

	inside();
	locks_take(heap);
	cr_expect_eq(pcpa_heap_create(NULL, &other), -EAGAIN);
	cr_expect_null(other);
	cr_expect_eq(pcpa_heap_destroy(heap), -EAGAIN);
	cr_expect_eq(pcpa_thread_flush(heap), -EAGAIN);
	cr_expect_eq(pcpa_heap_drain(heap), -EAGAIN);
	cr_expect_eq(pcpa_heap_tick(heap), -EAGAIN);
	cr_expect_eq(pcpa_heap_trim(heap, 0), 0);
	cr_expect_eq(pcpa_cache_disable(heap, -1), -EAGAIN);
	cr_expect_eq(pcpa_cache_enable(heap, -1), -EAGAIN);
	cr_expect_eq(pcpa_cache_disable(heap, 4095), -EINVAL);
	cr_expect_eq(pcpa_heap_trace(heap, NULL, NULL), -EAGAIN);
	cr_expect_eq(pcpa_heap_watch(heap, NULL, NULL), -EAGAIN);
	cr_expect_eq(pcpa_heap_eventfd(heap), -EAGAIN);
	cr_expect_eq(pcpa_stats_read(heap, -1, &s), -EAGAIN);
	cr_expect_eq(pcpa_stats_format(heap, PCPA_STATS_JSON, text, 64), -EAGAIN);
	cr_expect_eq(pcpa_for_each_arena(heap, arena_refuse, NULL), -EAGAIN);
	errno = 0;
	cr_expect_null(pcpa_alloc_contig(heap, 2, 1, 0));
	cr_expect_eq(errno, EAGAIN);
	errno = 0;
	cr_expect_null(pcpa_default_heap());
	cr_expect_eq(errno, EAGAIN);
	locks_drop(heap);
	outside();
	heap_end(heap);
}

static unsigned depth_seen = 99;
static void *from_callback;

static void on_event(const struct pcpa_event *event, void *arg)
{
	struct pcpa_heap *heap = arg;

	depth_seen = pcpi_nest_depth;
	if (!from_callback && event->kind == PCPA_EVENT_ARENA_GROW)
		from_callback = pcpa_alloc(heap, 9, 0);
}

/* Callbacks run with no lock held, and may allocate as anyone. */
Test(nested, callbacks_are_outside, .timeout = 20)
{
	struct pcpa_heap *heap = heap_make(0, 64 * MIB, 0);
	void *block;

	cr_assert_eq(pcpa_heap_trace(heap, on_event, heap), 0);
	block = pcpa_alloc(heap, 0, 0);
	cr_assert(block);
	cr_expect_eq(depth_seen, 0);
	cr_expect(from_callback);
	cr_expect_eq(pcpi_nest_depth, 0);
	pcpa_free(heap, block);
	pcpa_free(heap, from_callback);
	heap_end(heap);
}

/* ---- A handler where the library calls the system ------------------------------------ */

static const struct pcpi_sys *real;
static struct pcpa_heap *shared;
static unsigned handled, nested_calls;

static void on_signal(int number)
{
	int saved = errno;
	void *block;

	(void)number;
	handled++;
	nested_calls += pcpi_nest_depth > 0;
	block = pcpa_alloc(shared, 0, 0);
	if (block)
		pcpa_free(shared, block);
	while (handled <= MANY && blocks[handled - 1]) {
		pcpa_free(shared, blocks[handled - 1]);
		blocks[handled - 1] = NULL;
	}
	errno = saved;
}

static int populate_interrupted(void *addr, size_t bytes)
{
	raise(SIGUSR1); /* GROW is held */
	return real->populate(addr, bytes);
}

static int membarrier_interrupted(void)
{
	raise(SIGUSR1); /* DRAIN is held, caches are claimed */
	return real->membarrier();
}

static uint64_t coarse_interrupted(void)
{
	raise(SIGUSR1);
	return real->coarse_ns();
}

static int tid_interrupted(void)
{
	raise(SIGUSR1); /* a record is half made */
	return real->tid();
}

static void *first_call(void *arg)
{
	void *block = pcpa_alloc(shared, 0, 0);

	(void)arg;
	cr_assert(block);
	pcpa_free(shared, block);
	return NULL;
}

Test(nested, handlers_inside_growth_sweeps_and_first_calls, .timeout = 20)
{
	struct pcpi_sys interrupted;
	void *block;
	size_t n;

	shared = heap_make(0, 64 * MIB, 0);
	n = alloc_all(shared, 0, 0, blocks, 100);
	cr_assert_eq(n, 100);
	signal(SIGUSR1, on_signal);
	real = pcpi_sys;
	interrupted = *real;
	interrupted.populate = populate_interrupted;
	interrupted.membarrier = membarrier_interrupted;
	interrupted.coarse_ns = coarse_interrupted;
	interrupted.tid = tid_interrupted;
	pcpi_sys = &interrupted;
	thread_run(first_call, NULL);
	cr_expect_eq(pcpa_heap_drain(shared), 0);
	block = pcpa_alloc(shared, 9, 0);
	cr_assert(block);
	while (handled < 100)
		cr_assert_eq(pcpa_heap_tick(shared), 0);
	pcpi_sys = real;
	cr_expect_geq(nested_calls, 100);
	pcpa_free(shared, block);
	expect_all_free(shared);
	heap_end(shared);
}
