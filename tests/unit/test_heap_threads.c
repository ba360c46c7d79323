/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_heap_threads.c - threads that come and go on one heap, and many heaps
 * used by one thread (lib/thread.c), from outside.
 */
#include <signal.h>
#include <unistd.h>

#include "../support/heap_fixture.h"
#include "../support/sanitized.h"

/* ---- Threads ------------------------------------------------------------------- */

static void *use_a_little(void *arg)
{
	struct pcpa_heap *heap = arg;
	void *mine[100];
	size_t n = pcpa_alloc_bulk(heap, 0, 0, mine, 100);

	cr_expect_eq(n, 100);
	pcpa_free_bulk(heap, mine, n);
	cr_expect_gt(stats_of(heap, -1).caches, 0);
	return NULL;
}

Test(heap_threads, ended_thread_gives_its_cache_back)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, 0);

	thread_run(use_a_little, heap);
	cr_expect_eq(stats_summed(heap).cached_pages, 0);
	cr_expect_eq(stats_of(heap, -1).caches, 0);
	heap_end(heap);
}

Test(heap_threads, short_threads_reuse_caches_and_memory)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, 0);
	unsigned long mapped;
	unsigned i;

	for (i = 0; i < 4; i++)
		thread_run(use_a_little, heap);
	mapped = maps_kib();
	for (i = 0; i < 200; i++)
		thread_run(use_a_little, heap);
	if (!IS_SANITIZED) /* which keeps memory of its own for threads */
		cr_expect_eq(maps_kib(), mapped);
	cr_expect_eq(stats_of(heap, -1).caches, 0);
	cr_expect_eq(stats_summed(heap).cached_pages, 0);
	heap_end(heap);
}

static pthread_key_t twice_key;

/* In the second round of destructors the library's has run: no cache. */
static void free_twice_late(void *block)
{
	static __thread int rounds;
	static __thread struct pcpa_heap *heap;

	if (rounds++ == 0) {
		heap = block;
		pthread_setspecific(twice_key, heap);
		return;
	}
	block = pcpa_alloc(heap, 0, 0);
	pcpa_free(heap, block);
	pcpa_free(heap, block);
}

static void *end_with_double_free(void *heap)
{
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	pthread_setspecific(twice_key, heap);
	return NULL;
}

Test(heap_threads, double_free_past_the_threads_end_is_found, .signal = SIGABRT)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, PCPA_HEAP_CHECKS);

	cr_assert_eq(pthread_key_create(&twice_key, free_twice_late), 0);
	thread_run(end_with_double_free, heap);
}

static pthread_key_t late_key;

/* Runs among the destructors of the thread, before or after the library's. */
static void late_use(void *arg)
{
	static __thread int rounds;
	struct pcpa_heap *heap = arg;
	void *block = pcpa_alloc(heap, 0, 0);

	cr_expect(block);
	pcpa_free(heap, block);
	if (rounds++ < 2)
		pthread_setspecific(late_key, heap);
}

static void *use_late(void *arg)
{
	pthread_setspecific(late_key, arg);
	return use_a_little(arg);
}

Test(heap_threads, thread_that_calls_past_its_end_is_served)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, 0);

	cr_assert_eq(pthread_key_create(&late_key, late_use), 0);
	for (unsigned i = 0; i < 20; i++)
		thread_run(use_late, heap);
	cr_expect_eq(stats_of(heap, -1).caches, 0);
	cr_expect_eq(stats_summed(heap).cached_pages, 0);
	expect_all_free(heap);
	heap_end(heap);
}

static void *alloc_one(void *arg)
{
	return pcpa_alloc(arg, 0, 0);
}

Test(heap_threads, block_outlives_the_thread_that_allocated_it)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	pthread_t t;
	void *block;

	cr_assert_eq(pthread_create(&t, NULL, alloc_one, heap), 0);
	cr_assert_eq(pthread_join(t, &block), 0);
	cr_assert(block);
	cr_expect_eq(stats_summed(heap).used_blocks, 1);
	pcpa_free(heap, block);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- Many heaps ------------------------------------------------------------------ */

#define HEAPS 80u

static struct pcpa_heap *heaps[HEAPS];

static void *use_all_heaps(void *arg)
{
	void *mine[HEAPS][4];
	unsigned i, round;

	(void)arg;
	for (round = 0; round < 20; round++) {
		for (i = 0; i < HEAPS; i++)
			for (unsigned o = 0; o < 4; o++) {
				mine[i][o] = pcpa_alloc(heaps[i], o, 0);
				cr_assert(mine[i][o]);
				*(unsigned *)mine[i][o] = i;
			}
		for (i = HEAPS; i-- > 0;)
			for (unsigned o = 0; o < 4; o++) {
				cr_assert_eq(*(unsigned *)mine[i][o], i);
				pcpa_free(heaps[i], mine[i][o]);
			}
	}
	return NULL;
}

static void heaps_make(void)
{
	for (unsigned i = 0; i < HEAPS; i++)
		heaps[i] = heap_fixed(2 * MIB, 0);
}

Test(heap_threads, more_heaps_than_table_entries_work_from_two_threads)
{
	pthread_t t;
	unsigned i;

	heaps_make();
	cr_assert_eq(pthread_create(&t, NULL, use_all_heaps, NULL), 0);
	use_all_heaps(NULL);
	cr_assert_eq(pthread_join(t, NULL), 0);
	for (i = 0; i < HEAPS; i++) {
		struct pcpa_stats s = stats_summed(heaps[i]);

		cr_expect_eq(s.alloc_total, 2 * 20 * 4);
		cr_expect_eq(s.caches, 1, "heap %u: %zu", i, (size_t)s.caches);
		cr_expect_eq(s.bad_frees, 0);
		expect_all_free(heaps[i]);
		heap_end(heaps[i]);
	}
}

/* The entry may belong to another heap by now; the cache is there. */
Test(heap_threads, flush_reaches_the_cache_of_a_heap_whose_entry_is_taken)
{
	unsigned i;

	heaps_make();
	for (i = 0; i < HEAPS; i++)
		pcpa_free(heaps[i], pcpa_alloc(heaps[i], 0, 0));
	for (i = 0; i < HEAPS; i++) {
		cr_expect_eq(pcpa_thread_flush(heaps[i]), 0);
		cr_expect_eq(stats_summed(heaps[i]).cached_pages, 0, "heap %u",
			     i);
	}
	for (i = 0; i < HEAPS; i++)
		heap_end(heaps[i]);
}

static void *echo(void *arg)
{
	int *ends = arg;
	struct pcpa_heap *heap;

	while (read(ends[0], &heap, sizeof(heap)) == sizeof(heap) && heap) {
		use_a_little(heap);
		cr_assert_eq(write(ends[3], &heap, sizeof(heap)),
			     (ssize_t)sizeof(heap));
	}
	return NULL;
}

/* A thread that lives on must not take the new heap for the old one. */
Test(heap_threads, heap_at_the_address_of_a_destroyed_one_is_another)
{
	struct pcpa_heap *heap, *last = NULL;
	unsigned same = 0;
	int ends[4];
	pthread_t t;

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(pipe(ends + 2), 0);
	cr_assert_eq(pthread_create(&t, NULL, echo, ends), 0);
	for (unsigned i = 0; i < 20; i++) {
		heap = heap_fixed(2 * MIB, 0);
		same += heap == last;
		last = heap;
		cr_assert_eq(write(ends[1], &heap, sizeof(heap)),
			     (ssize_t)sizeof(heap));
		cr_assert_eq(read(ends[2], &heap, sizeof(heap)),
			     (ssize_t)sizeof(heap));
		use_a_little(heap);
		cr_expect_eq(stats_summed(heap).alloc_total, 200);
		cr_expect_eq(stats_of(heap, -1).caches, 2);
		expect_all_free(heap);
		heap_end(heap);
	}
	heap = NULL;
	cr_assert_eq(write(ends[1], &heap, sizeof(heap)), (ssize_t)sizeof(heap));
	cr_assert_eq(pthread_join(t, NULL), 0);
	cr_expect_gt(same, 0, "the case never came about");
}
