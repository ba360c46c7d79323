/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep.c - draining other threads' caches while they use them.
 *
 *   busy owners    a drainer in a loop beside owners in tight loops, two of
 *                  them and sixteen; the drains that time out lose nothing
 *   parked owner   a thread that sleeps in a system call with a full cache:
 *                  a drain takes its pages, and it goes on afterwards
 *   stuck owner    a thread that was stopped inside its cache: the drain gives
 *                  up, counts it, and the owner flushes at its next call
 */
#include "conc.h"

#define MS 1200u
#define BURST 64u
#define OWNERS_MAX 16u

struct sweep_case {
	struct pcpa_heap *heap;
	bool stop;
	bool in, go;
	int wake[2];
};

/* ---- Owners in tight loops ------------------------------------------------- */

static void burst(struct pcpa_heap *heap, unsigned order, uint64_t stamp)
{
	void *blocks[BURST];
	unsigned i, n = 0;

	for (i = 0; i < BURST; i++) {
		blocks[n] = pcpa_alloc(heap, order, 0);
		if (blocks[n])
			conc_stamp(heap, blocks[n++], order, stamp);
	}
	CHECK(n > 0);
	while (n-- > 0) {
		conc_unstamp(heap, blocks[n], order, stamp);
		pcpa_free(heap, blocks[n]);
	}
}

static void owner(unsigned index, void *arg)
{
	struct sweep_case *the = arg;
	uint64_t random = index + 1;
	unsigned order = 0;

	while (!conc_flag(&the->stop)) {
		void *block = pcpa_alloc(the->heap, 0, 0);

		/* Tight pairs for the hot path, bursts for the rings. */
		CHECK(block);
		pcpa_free(the->heap, block);
		if (conc_random(&random) % 8 == 0)
			burst(the->heap, order++ % PCPI_PCP_ORDERS, index + 1);
	}
}

static void busy_owners(unsigned owners)
{
	struct sweep_case the = { .heap = conc_heap(64 * MIB, 0) };
	struct conc_thread threads[OWNERS_MAX];
	struct pcpa_stats s;
	unsigned late;

	conc_start(threads, owners, owner, &the);
	late = conc_drain_for(the.heap, MS);
	conc_raise(&the.stop);
	conc_join(threads, owners);
	s = conc_stats(the.heap);
	fprintf(stderr, "%u owners: %" PRIu64 " skipped, %" PRIu64 " swept\n",
		owners, s.busy_skipped, s.drains_sweep);
	CHECK_U64(s.busy_skipped, >=, late);
	CHECK_U64(s.drains_sweep, >, 0);
	conc_heap_end(the.heap);
}

/* ---- An owner that sleeps ----------------------------------------------------- */

static void cache_fill(struct pcpa_heap *heap)
{
	void *blocks[BURST];

	CHECK(pcpa_alloc_bulk(heap, 0, 0, blocks, BURST) == BURST);
	pcpa_free_bulk(heap, blocks, BURST);
}

static void parked(unsigned index, void *arg)
{
	struct sweep_case *the = arg;
	char byte;

	cache_fill(the->heap);
	conc_raise(&the->in);
	CHECK(read(the->wake[0], &byte, 1) == 1);
	burst(the->heap, 0, index + 1);
	cache_fill(the->heap);
}

static void parked_owner(void)
{
	struct sweep_case the = { .heap = conc_heap(64 * MIB, 0) };
	struct conc_thread thread;
	struct pcpa_stats s;

	CHECK(pipe(the.wake) == 0);
	conc_start(&thread, 1, parked, &the);
	conc_await(&the.in);
	CHECK_U64(conc_stats(the.heap).cached_pages, >, 0);
	CHECK(pcpa_heap_drain(the.heap) == 0);
	s = conc_stats(the.heap);
	CHECK_U64(s.cached_pages, ==, 0);
	CHECK_U64(s.free_pages, ==, s.managed_pages);
	CHECK_U64(s.drains_sweep, >, 0);
	CHECK(write(the.wake[1], "", 1) == 1);
	conc_join(&thread, 1);
	close(the.wake[0]);
	close(the.wake[1]);
	conc_heap_end(the.heap);
}

/* ---- An owner that stops inside ------------------------------------------------ */

static void stuck(unsigned index, void *arg)
{
	struct sweep_case *the = arg;
	struct pcpi_cache *c;
	uint64_t before;
	void *block;

	(void)index;
	cache_fill(the->heap);
	c = pcpi_hot_cache(&the->heap->hot);
	CHECK(pcpi_cache_enter(c));
	before = pcpi_cache_count(c);
	conc_raise(&the->in);
	conc_await(&the->go);
	/* The drainer has given up and has touched nothing. */
	CHECK_U64(pcpi_cache_count(c), ==, before);
	pcpi_cache_leave(c);
	block = pcpa_alloc(the->heap, 0, 0);
	CHECK(block);
	CHECK_U64(conc_stats(the->heap).drains_flush, ==, 1);
	pcpa_free(the->heap, block);
}

static void stuck_owner(void)
{
	struct sweep_case the = { .heap = conc_heap(64 * MIB, 0) };
	struct conc_thread thread;

	conc_start(&thread, 1, stuck, &the);
	conc_await(&the.in);
	CHECK(pcpa_heap_drain(the.heap) == -ETIMEDOUT);
	CHECK_U64(conc_stats(the.heap).busy_skipped, ==, 1);
	CHECK_U64(conc_stats(the.heap).cached_pages, >, 0);
	/* An allocation that needs those pages waits a moment, and no longer. */
	conc_raise(&the.go);
	conc_join(&thread, 1);
	CHECK_U64(conc_stats(the.heap).cached_pages, ==, 0);
	conc_heap_end(the.heap);
}

int main(void)
{
	stuck_owner();
	parked_owner();
	busy_owners(2);
	busy_owners(OWNERS_MAX);
	return 0;
}
