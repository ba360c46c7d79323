/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heaps.c - heaps that are made, used and destroyed by several threads at once,
 * so that addresses, slots of the threads' tables and threads' records are used
 * again and again: no call ever meets what an earlier heap has left behind.
 */
#include "conc.h"

#define THREADS 4u
#define MS 1800u
#define HEAP_BYTES (2 * MIB)
#define MANY (PCPI_ENTRIES + 6)

struct heaps_case {
	uint64_t seed;
	uint64_t made, same; /* heaps, and those at an address seen before */
};

/* A thread's part in a heap that it leaves by ending. */
static void visitor(unsigned index, void *arg)
{
	conc_churn_some(arg, 99, index, 3, 60);
}

static void heap_use(struct heaps_case *the, struct pcpa_heap *heap,
		     unsigned index, unsigned round)
{
	struct conc_churn churn;

	conc_churn_init(&churn, heap, the->seed + round, index, 9);
	conc_churn_steps(&churn, 300);
	/* Its end and others' destroys come at the same time. */
	if (round % 3 == 0)
		conc_run(2, visitor, heap);
	if (round % 5 == 0)
		CHECK(pcpa_heap_drain(heap) == 0);
	conc_churn_end(&churn);
}

static void builder(unsigned index, void *arg)
{
	struct heaps_case *the = arg;
	uint64_t end = conc_now_ms() + MS;
	struct pcpa_heap *heap, *last = NULL;
	unsigned round;

	for (round = 0; conc_now_ms() < end; round++) {
		heap = round % 2 ? conc_heap(HEAP_BYTES, 0)
				 : conc_growing_heap(8 * MIB, 0);
		pcpi_fetch_add_relaxed(&the->made, 1);
		pcpi_fetch_add_relaxed(&the->same, heap == last);
		last = heap;
		heap_use(the, heap, index, round);
		conc_heap_end(heap);
	}
}

/* More heaps than a thread's table has entries, all in use by all threads. */
static void many_user(unsigned index, void *arg)
{
	struct pcpa_heap **heaps = arg;
	void *blocks[MANY];
	unsigned round, h;

	for (round = 0; round < 8; round++) {
		for (h = 0; h < MANY; h++) {
			blocks[h] = pcpa_alloc(heaps[h], 0, 0);
			CHECK(blocks[h]);
			conc_stamp(heaps[h], blocks[h], 0, index + 1);
		}
		for (h = 0; h < MANY; h++) {
			conc_unstamp(heaps[h], blocks[h], 0, index + 1);
			pcpa_free(heaps[h], blocks[h]);
		}
	}
}

static void many_heaps(void)
{
	struct pcpa_heap *heaps[MANY];
	unsigned h;

	for (h = 0; h < MANY; h++)
		heaps[h] = conc_growing_heap(2 * MIB, 0);
	conc_run(THREADS, many_user, heaps);
	for (h = 0; h < MANY; h++) {
		/* A heap whose entry another has taken found its cache again. */
		CHECK_U64(conc_caches_made(heaps[h]), <=, THREADS);
		CHECK_U64(conc_stats(heaps[h]).caches, ==, 0);
		conc_heap_end(heaps[h]);
	}
}

/* All of its threads find a heap empty at once, one of them makes it grow to all
 * it may have, and that is enough for each. */
static void first_user(unsigned index, void *arg)
{
	struct pcpa_heap *heap = *(struct pcpa_heap **)arg;
	void *block = pcpa_alloc(heap, 6, 0); /* 4 of 8 blocks */

	(void)index;
	CHECK(block);
	pcpa_free(heap, block);
}

static void first_users(void)
{
	uint64_t end = conc_now_ms() + 1500;

	do {
		struct pcpa_heap *heap = conc_growing_heap(2 * MIB, 0);

		conc_run(THREADS, first_user, &heap);
		conc_heap_end(heap);
	} while (conc_now_ms() < end);
}

int main(void)
{
	struct heaps_case the = { .seed = conc_seed() };

	conc_run(THREADS, builder, &the);
	fprintf(stderr, "%" PRIu64 " heaps, %" PRIu64 " where the last was\n",
		the.made, the.same);
	many_heaps();
	first_users();
	return 0;
}
