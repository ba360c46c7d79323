/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rings_full.c - frees that no drain keeps up with (pcp_tune.h, G3).
 *
 * The hot path pushes without a test for room.  A ring that overflowed would
 * hand out some blocks twice and lose others: pages would stay in use after all
 * of them were freed, or the buddy would trap on a page that is free already.
 */
#include <criterion/criterion.h>
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>
#include <pthread.h>

#define MANY 40000
#define HIGHER 2000
#define SINGLES 5000
#define THREADS 256

static struct pcpa_heap *heap;
static void *blocks[MANY], *higher[HIGHER], *singles[SINGLES];
static pthread_barrier_t all_have_caches, may_end;

static void heap_make(unsigned flags, unsigned high_pages)
{
	struct pcpa_heap_options options = PCPA_HEAP_OPTIONS_INIT;

	options.flags = flags;
	options.initial_bytes = options.max_bytes = (size_t)512 << 20;
	options.high_pages = high_pages;
	options.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&options, &heap), 0);
}

/* Everything was freed: it is all there, once. */
static void heap_expect_whole(void)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	cr_expect_eq(pcpa_heap_drain(heap), 0);
	cr_expect_eq(pcpa_stats_read(heap, -1, &s), 0);
	cr_expect_eq(s.used_blocks, 0);
	cr_expect_eq(s.used_pages, 0);
	cr_expect_eq(s.free_pages, s.managed_pages);
	cr_expect_eq(pcpa_heap_destroy(heap), 0);
}

/* Frees of order 0 while a list of order 3 draws the drains to itself. */
static void free_in_bulk_and_singly(void)
{
	void *block;
	size_t i;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, MANY), MANY);
	cr_assert_eq(pcpa_alloc_bulk(heap, 3, 0, higher, HIGHER), HIGHER);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, singles, SINGLES), SINGLES);
	pcpa_free_bulk_sized(heap, 3, higher, HIGHER);
	block = pcpa_alloc(heap, 3, 0);
	pcpa_free_bulk(heap, blocks, MANY);
	pcpa_free(heap, block);
	for (i = 0; i < SINGLES; i++) {
		pcpa_free(heap, singles[i]);
		if (i % 3 == 0)
			pcpa_free(heap, pcpa_alloc(heap, 3, 0));
	}
}

Test(rings_full, bounds_below_a_batch_lose_no_block)
{
	static const unsigned flags[] = { 0, PCPA_HEAP_LEGACY };
	static const unsigned highs[] = { 1, 2, 3, 8, 63, 300, 0 };
	size_t f, h;

	for (f = 0; f < 2; f++)
		for (h = 0; h < sizeof(highs) / sizeof(highs[0]); h++) {
			heap_make(flags[f], highs[h]);
			free_in_bulk_and_singly();
			heap_expect_whole();
		}
}

static void *thread_run(void *arg)
{
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	pthread_barrier_wait(&all_have_caches);
	pthread_barrier_wait(&may_end);
	return arg;
}

/* A cache is made while there are many, and outlives them: its bound grows. */
Test(rings_full, bound_that_grows_when_threads_end_loses_no_block)
{
	pthread_t threads[THREADS];
	size_t i;

	heap_make(0, 4000);
	pthread_barrier_init(&all_have_caches, NULL, THREADS + 1);
	pthread_barrier_init(&may_end, NULL, THREADS + 1);
	for (i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, thread_run, NULL),
			     0);
	pthread_barrier_wait(&all_have_caches);
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	pthread_barrier_wait(&may_end);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < MANY; i++)
		blocks[i] = pcpa_alloc(heap, 0, 0);
	for (i = 0; i < MANY; i++) {
		pcpa_free(heap, blocks[i]);
		if (i % 8 == 7)
			pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	}
	heap_expect_whole();
}
