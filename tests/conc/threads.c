/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * threads.c - threads that come, allocate, free and go.
 *
 * What a thread has cached is back when its end is over; its cache is adopted
 * by the next, so that there are never more caches than there were threads at
 * one time; what it left allocated is freed by others.
 */
#include "conc.h"

#define AT_ONCE 6u
#define ROUNDS (CONC_TSAN ? 25u : 400u)
#define KEPT 24u

struct threads_case {
	struct pcpa_heap *heap;
	/* Blocks of order 0 of a dead thread, for the next in the same place. */
	void *left[AT_ONCE][KEPT];
	bool stop, in;
};

static void left_free(struct threads_case *the, unsigned index)
{
	unsigned i;

	for (i = 0; i < KEPT; i++) {
		if (!the->left[index][i])
			continue;
		conc_unstamp(the->heap, the->left[index][i], 0, index + 1);
		pcpa_free(the->heap, the->left[index][i]);
		the->left[index][i] = NULL;
	}
}

static void short_life(unsigned index, void *arg)
{
	struct threads_case *the = arg;
	struct conc_churn churn;
	unsigned i;

	left_free(the, index);
	conc_churn_init(&churn, the->heap, index + 77, index, 4);
	conc_churn_steps(&churn, 100);
	for (i = 0; i < KEPT; i++) {
		void *block = pcpa_alloc(the->heap, 0, 0);

		CHECK(block);
		conc_stamp(the->heap, block, 0, index + 1);
		the->left[index][i] = block;
	}
	conc_churn_end(&churn);
}

/* Uses the heap from a destructor that may run after the library's own. */
static pthread_key_t late_key;
static struct pcpa_heap *late_heap;

static void late(void *block)
{
	void *other = pcpa_alloc(late_heap, 0, 0);

	CHECK(other);
	pcpa_free(late_heap, block);
	pcpa_free(late_heap, other);
}

static void late_life(unsigned index, void *arg)
{
	void *block = pcpa_alloc(late_heap, index % 3, 0);

	(void)arg;
	CHECK(block && pthread_setspecific(late_key, block) == 0);
}

static void after_the_end(struct pcpa_heap *heap)
{
	unsigned i;

	/* Made after the library's key, so that its destructor comes later. */
	CHECK(pthread_key_create(&late_key, late) == 0);
	late_heap = heap;
	for (i = 0; i < 8; i++)
		conc_run(AT_ONCE, late_life, NULL);
	CHECK(pthread_key_delete(late_key) == 0);
}

/* ---- Ends beside sweeps that give up -------------------------------------------- */

static struct {
	struct pcpi_sys sys;
	struct threads_case *the;
	struct conc_thread owner;
	bool armed;
} ending;

/* Fills its cache and is found inside; ends when it is told. */
static void inside(unsigned index, void *arg)
{
	struct threads_case *the = arg;
	struct pcpi_cache *c;
	void *blocks[KEPT];

	(void)index;
	CHECK(pcpa_alloc_bulk(the->heap, 0, 0, blocks, KEPT) == KEPT);
	pcpa_free_bulk(the->heap, blocks, KEPT);
	c = pcpi_hot_cache(&the->heap->hot);
	CHECK(pcpi_cache_enter(c));
	conc_raise(&the->in);
	conc_await(&the->stop);
	pcpi_cache_leave(c);
}

/* The sweep asks for the time before it claims, and again when it has found
 * the owner inside: the owner ends between that and the giving up. */
static uint64_t end_the_owner(void)
{
	if (ending.armed) {
		ending.armed = false;
		conc_raise(&ending.the->stop);
		conc_join(&ending.owner, 1);
	} else {
		ending.armed = true;
	}
	return 0;
}

static void end_beside_a_sweep(void)
{
	struct threads_case the = { .heap = conc_heap(64 * MIB, 0) };
	const struct pcpi_sys *before = pcpi_sys;

	ending.the = &the;
	ending.sys = *before;
	ending.sys.clock_ns = end_the_owner;
	conc_start(&ending.owner, 1, inside, &the);
	conc_await(&the.in);
	pcpi_sys = &ending.sys;
	CHECK(pcpi_heap_sweep(the.heap, 0).late == 0);
	pcpi_sys = before;
	CHECK(!ending.armed);
	CHECK_U64(conc_stats(the.heap).cached_pages, ==, 0);
	CHECK_U64(conc_stats(the.heap).busy_skipped, ==, 0);
	conc_heap_end(the.heap);
}

static void filler(unsigned index, void *arg)
{
	struct threads_case *the = arg;
	void *blocks[KEPT];
	unsigned i;

	for (i = 0; i < 30; i++) {
		CHECK(pcpa_alloc_bulk(the->heap, index % 4, 0, blocks, KEPT) ==
		      KEPT);
		pcpa_free_bulk(the->heap, blocks, KEPT);
	}
}

static void impatient(unsigned index, void *arg)
{
	struct threads_case *the = arg;

	(void)index;
	while (!conc_flag(&the->stop))
		pcpi_heap_sweep(the->heap, 0);
}

/* A sweep that is asking while an owner ends, and then gives up on it, leaves
 * nothing behind in a cache that nobody owns. */
static void ends_beside_sweeps(void)
{
	struct threads_case the = { .heap = conc_heap(64 * MIB, 0) };
	struct conc_thread sweeper;
	uint64_t end = conc_now_ms() + 1500;

	conc_start(&sweeper, 1, impatient, &the);
	do {
		conc_run(AT_ONCE, filler, &the);
		/* What a sweep has claimed it empties before it drops this. */
		pcpi_lock_take(&the.heap->drain_lock);
		CHECK_U64(conc_stats(the.heap).cached_pages, ==, 0);
		pcpi_lock_drop(&the.heap->drain_lock);
	} while (conc_now_ms() < end);
	conc_raise(&the.stop);
	conc_join(&sweeper, 1);
	conc_heap_end(the.heap);
}

static void short_lives(unsigned flags)
{
	struct threads_case the = { .heap = conc_heap(64 * MIB, flags) };
	struct pcpa_stats s;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		conc_run(AT_ONCE, short_life, &the);
		s = conc_stats(the.heap);
		CHECK_U64(s.cached_pages, ==, 0);
		CHECK_U64(s.caches, ==, 0);
		CHECK_U64(s.used_pages, ==, AT_ONCE * KEPT);
		CHECK_U64(s.used_blocks, ==, AT_ONCE * KEPT);
	}
	CHECK_U64(conc_caches_made(the.heap), <=, AT_ONCE);
	after_the_end(the.heap);
	for (i = 0; i < AT_ONCE; i++)
		left_free(&the, i);
	/* The main thread's own, and an adopted one at that. */
	CHECK_U64(conc_stats(the.heap).caches, ==, 1);
	CHECK_U64(conc_caches_made(the.heap), <=, AT_ONCE);
	conc_heap_end(the.heap);
}

int main(void)
{
	short_lives(0);
	short_lives(PCPA_HEAP_NO_IPI);
	end_beside_a_sweep();
	ends_beside_sweeps();
	return 0;
}
