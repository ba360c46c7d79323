/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool_frag.c - parts of pages: places, users, who counts them, what becomes
 * of the page.
 */
#include <pthread.h>
#include <sched.h>

#include "../support/pool_fixture.h"
#include "page_pool.h"

static struct pcpa_heap *heap;
static struct pcpa_pool *pool;
static void *bufs[4096];

static void setup(void)
{
	pool_sys_install();
	heap = pool_heap(64 * MIB, 0, 0);
	pool = pool_with(heap, 0);
}

static void teardown(void)
{
	pool_and_heap_end(pool, heap);
}

TestSuite(page_pool_frag, .init = setup, .fini = teardown);

static void *frag(size_t bytes, size_t want_offset)
{
	size_t offset = 4711;
	void *p = pcpa_pool_get_frag(pool, bytes, &offset);

	cr_assert(p, "errno %d", errno);
	cr_expect_eq(offset, want_offset, "%zu, not %zu", offset, want_offset);
	cr_expect_eq((uintptr_t)p % PAGE, offset);
	return p;
}

Test(page_pool_frag, two_of_2048_share_a_page_and_the_third_has_the_next)
{
	char *a = frag(2048, 0), *b = frag(2048, 2048), *c = frag(2048, 0);

	cr_expect_eq(b, a + 2048);
	cr_expect_neq(c, a);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 1,
		     .hold = 64, .inflight = 64, .cached = 62);
	pcpa_pool_put(pool, a);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 1);
	pcpa_pool_put(pool, b);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 1,
		     .recycle_cached = 1, .hold = 64, .inflight = 64,
		     .cached = 63);
	pcpa_pool_put(pool, c);
	cr_expect_eq(pool_stats(pool).recycle_cached, 1, "more may come off it");
}

Test(page_pool_frag, page_whose_parts_are_back_is_used_again_at_once)
{
	char *a = frag(2048, 0), *b = frag(2048, 2048), *c;

	pcpa_pool_put(pool, a);
	pcpa_pool_put(pool, b);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1);
	c = frag(2048, 0);
	cr_expect_eq(c, a);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 1,
		     .recycle_cached = 1, .hold = 64, .inflight = 64,
		     .cached = 63);
	pcpa_pool_put(pool, c);
}

Test(page_pool_frag, last_part_put_elsewhere_goes_to_the_ring)
{
	void *p[3] = { frag(2048, 0), frag(2048, 2048), frag(4096, 0) };

	put_elsewhere(pool, p, 1);
	cr_expect_eq(pool_stats(pool).recycle_ring, 0);
	put_elsewhere(pool, p + 1, 1);
	cr_expect_eq(pool_stats(pool).recycle_ring, 1);
	put_bulk_elsewhere(heap, p + 2, 1);
	cr_expect_eq(pool_stats(pool).recycle_ring, 1, "the pool's share is left");
}

Test(page_pool_frag, sizes_mix_and_are_rounded_to_lines)
{
	void *p[] = { frag(1000, 0), frag(1, 1024), frag(64, 1088),
		      frag(2944, 1152), frag(100, 0), frag(4096, 0),
		      frag(4095, 0), frag(1, 0) };

	for (unsigned i = 0; i < 8; i++)
		pcpa_pool_put(pool, p[i]);
	/* Pages 1 to 4 are through; the last one waits. */
	cr_expect_eq(pool_stats(pool).recycle_cached, 4);
}

Test(page_pool_frag, sizes_that_cannot_be_are_refused)
{
	struct pcpa_pool_stats s;

	errno = 0;
	cr_expect_null(pcpa_pool_get_frag(pool, 4097, NULL));
	cr_expect_eq(errno, EINVAL);
	errno = 0;
	cr_expect_null(pcpa_pool_get_frag(pool, 0, NULL));
	cr_expect_eq(errno, EINVAL);
	cr_expect_null(pcpa_pool_get_frag(pool, SIZE_MAX, NULL));
	s = pool_stats(pool);
	cr_expect_eq(s.hold, 0);
}

Test(page_pool_frag, page_with_a_reference_is_left)
{
	char *a = frag(2048, 0), *b = frag(2048, 2048);

	cr_expect_eq(pcpa_pool_ref(heap, a), 0);
	pcpa_pool_put(pool, a);
	pcpa_pool_put(pool, b);
	/* Full and nobody's, but somebody may look at it. */
	pcpa_pool_put(pool, frag(2048, 0));
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 1, .alloc_fast = 1,
		     .recycle_released_ref = 1, .hold = 64, .release = 1,
		     .inflight = 63, .cached = 62);
	cr_expect_eq(pcpa_pool_unref(heap, a), 0);
}

Test(page_pool_frag, parts_and_whole_pages_go_beside_each_other)
{
	void *a = frag(2048, 0), *whole = pcpa_pool_get(pool);
	void *b = frag(2048, 2048);

	cr_expect_eq((char *)b, (char *)a + 2048);
	pcpa_pool_put(pool, whole);
	cr_expect_eq(pool_stats(pool).recycle_cached, 1);
	pcpa_pool_put(pool, a);
	pcpa_pool_put(pool, b);
}

Test(page_pool_frag, alignment_of_the_pool_is_that_of_parts)
{
	struct pcpa_pool *wide = pool_with(heap, .order = 1,
					   .align_bytes = 2048);
	size_t at[5];
	void *p[5];

	for (unsigned i = 0; i < 5; i++)
		p[i] = pcpa_pool_get_frag(wide, 1500, &at[i]);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(at[i], i % 4 * 2048);
	put_elsewhere(wide, p, 5);
	expect_stats(wide, .alloc_empty = 2, .alloc_slow_ho = 2,
		     .recycle_ring = 1);
	pool_end(wide);
}

Test(page_pool_frag, detach_lets_go_of_the_page_that_parts_come_off)
{
	void *a = frag(100, 0);

	pcpa_pool_put(pool, a);
	cr_expect_eq(pcpa_pool_detach(pool), 0);
	cr_expect_eq(pool_stats(pool).release, 1);
	a = frag(100, 0);
	cr_expect_eq(pcpa_pool_detach(pool), 0);
	cr_expect_eq(pool_stats(pool).release, 1, "out");
	put_elsewhere(pool, &a, 1);
	cr_expect_eq(pool_stats(pool).recycle_ring, 1);
}

Test(page_pool_frag, destroy_waits_for_parts)
{
	struct pcpa_pool *p = pool_with(heap, 0);
	void *parts[3];

	for (unsigned i = 0; i < 3; i++)
		parts[i] = pcpa_pool_get_frag(p, 2048, NULL);
	cr_expect_eq(pcpa_pool_destroy(p), 2);
	put_elsewhere(p, parts, 3);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 0);
}

Test(page_pool_frag, thousands_fill_pages_two_by_two)
{
	for (unsigned i = 0; i < 4096; i++)
		bufs[i] = frag(2048, i % 2 * 2048);
	cr_expect_eq(pool_stats(pool).hold, 2048);
	put_elsewhere(pool, bufs, 4096);
	expect_stats(pool, .alloc_empty = 32, .alloc_slow = 32,
		     .alloc_fast = 2048 - 32, .recycle_ring = 1024,
		     .recycle_ring_full = 1023, .hold = 2048, .release = 1023,
		     .inflight = 1025);
}

/* ---- Who counts: PP6 ----------------------------------------------------------- */

static unsigned barriers;
static int refusals;

static int barrier_counted(void)
{
	barriers++;
	if (refusals > 0 && refusals--)
		return -ENOMEM;
	return pcpi_sys_linux.membarrier();
}

static void two_parts(char **a, char **b)
{
	pool_sys.membarrier = barrier_counted;
	cr_assert_eq(pool->parts, PCPI_PARTS_OWNERS);
	*a = frag(2048, 0);
	*b = frag(2048, 2048);
	pcpa_pool_put(pool, frag(2048, 0));
}

Test(page_pool_frag, owner_alone_counts_by_itself)
{
	char *a, *b;

	two_parts(&a, &b);
	pcpa_pool_put(pool, a);
	pcpa_pool_put(pool, b);
	cr_expect_eq(pool->parts, PCPI_PARTS_OWNERS);
	cr_expect_eq(pool->counting, 0);
	cr_expect_eq(barriers, 0);
	cr_expect_eq(pool_stats(pool).recycle_cached, 1);
}

Test(page_pool_frag, whole_page_and_last_part_put_elsewhere_ask_for_nothing)
{
	void *whole = pcpa_pool_get(pool), *last;
	char *a, *b;

	two_parts(&a, &b);
	put_elsewhere(pool, &whole, 1);
	pcpa_pool_put(pool, a);
	last = b;
	put_elsewhere(pool, &last, 1);
	cr_expect_eq(pool->parts, PCPI_PARTS_OWNERS);
	cr_expect_eq(barriers, 0);
	cr_expect_eq(pool_stats(pool).recycle_ring, 2);
}

Test(page_pool_frag, first_part_put_elsewhere_has_all_count_by_atomic_steps)
{
	char *a, *b;
	void *first;

	refusals = 3;
	two_parts(&a, &b);
	first = a;
	put_elsewhere(pool, &first, 1);
	cr_expect_eq(pool->parts, PCPI_PARTS_SHARED);
	cr_expect_eq(barriers, 4, "until it isn't refused");
	cr_expect_eq(pool_stats(pool).recycle_cached, 0);
	pcpa_pool_put(pool, b);
	cr_expect_eq(pool_stats(pool).recycle_cached, 1);
	a = frag(2048, 2048);
	b = frag(2048, 0);
	put_elsewhere(pool, (void *[]){ b }, 1);
	put_elsewhere(pool, (void *[]){ a }, 1);
	cr_expect_eq(barriers, 4, "once a pool");
}

Test(page_pool_frag, another_waits_until_the_owner_is_out)
{
	char *a, *b;
	void *first;
	struct pool_job job = { pool, NULL, &first, 1 };
	pthread_t other;

	two_parts(&a, &b);
	first = a;
	/* As if the owner had been stopped inside. */
	pcpi_store_relaxed(&pool->counting, 1);
	cr_assert_eq(pthread_create(&other, NULL, pool_job_run, &job), 0);
	while (pcpi_load_acquire(&pool->parts) == PCPI_PARTS_OWNERS)
		sched_yield();
	cr_expect_eq(pcpi_load_relaxed(&pool->parts), PCPI_PARTS_CLAIMED);
	pcpi_store_release(&pool->counting, 0);
	pthread_join(other, NULL);
	cr_expect_eq(pool->parts, PCPI_PARTS_SHARED);
	pcpa_pool_put(pool, b);
	cr_expect_eq(pool_stats(pool).recycle_cached, 1);
}

static int barrier_refused(void)
{
	barriers++;
	return -EPERM;
}

/* An owner that was cancelled inside, and a filter that came after the heap. */
Test(page_pool_frag, another_waits_for_a_time_only)
{
	char *a, *b;
	void *first;

	two_parts(&a, &b);
	first = a;
	pool_sys.membarrier = barrier_refused;
	pool->counting = 1;
	put_elsewhere(pool, &first, 1);
	cr_expect_gt(barriers, 0);
	cr_expect_eq(pool->parts, PCPI_PARTS_SHARED);
	pool->counting = 0;
	pcpa_pool_put(pool, b);
	cr_expect_eq(pool_stats(pool).recycle_cached, 1);
}

Test(page_pool_frag, heap_without_interruption_shares_from_the_beginning)
{
	struct pcpa_heap *quiet = pool_heap(8 * MIB, PCPA_HEAP_NO_IPI, 0);
	struct pcpa_pool *p = pool_with(quiet, 0);
	void *parts[2];

	cr_expect_eq(p->parts, PCPI_PARTS_SHARED);
	pool_sys.membarrier = barrier_counted;
	parts[0] = pcpa_pool_get_frag(p, 2048, NULL);
	parts[1] = pcpa_pool_get_frag(p, 2048, NULL);
	pcpa_pool_put(p, pcpa_pool_get_frag(p, 2048, NULL));
	put_elsewhere(p, parts, 2);
	cr_expect_eq(barriers, 0);
	cr_expect_eq(pool_stats(p).recycle_ring, 1);
	pool_and_heap_end(p, quiet);
}
