/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_size_for.c - pcpa_heap_size_for(): its numbers, and that a heap of that
 * size bears the use that it is for.
 */
#include <unistd.h>

#include "../support/heap_fixture.h"
#include "policy.h"

#define PAGES(rx, tx, threads, burst)                                          \
	pcpi_policy_heap_pages(rx, tx, threads, burst)

Test(size_for, formula)
{
	cr_expect_eq(PAGES(0, 0, 0, 0), 0);
	cr_expect_eq(PAGES(1, 0, 0, 0), 2); /* 1.6 */
	cr_expect_eq(PAGES(4096, 4096, 0, 0), 13108); /* 13107.2 */
	cr_expect_eq(PAGES(1000, 500, 4, 61), 3200);
	cr_expect_eq(PAGES(0, 0, 1, 0), 103); /* 102.4 */
	cr_expect_eq(pcpa_heap_size_for(1000, 500, 4, 61),
		     3200 * (size_t)sysconf(_SC_PAGESIZE));
}

Test(size_for, never_falls_and_never_overflows)
{
	static const uint32_t at[] = {0,	  1,	      5,	 64,
				      4096,	  1u << 20,   1u << 31,
				      UINT32_MAX - 1, UINT32_MAX};
	const unsigned n = sizeof(at) / sizeof(at[0]);

	for (unsigned i = 0; i + 1 < n; i++)
		for (unsigned j = 0; j < n; j++) {
			cr_expect_leq(PAGES(at[i], 7, at[j], 32),
				      PAGES(at[i + 1], 7, at[j], 32));
			cr_expect_leq(PAGES(7, at[i], at[j], 32),
				      PAGES(7, at[i + 1], at[j], 32));
			cr_expect_leq(PAGES(9, 7, at[i], at[j]),
				      PAGES(9, 7, at[i + 1], at[j]));
			cr_expect_leq(PAGES(9, 7, at[j], at[i]),
				      PAGES(9, 7, at[j], at[i + 1]));
		}
	cr_expect_eq(PAGES(UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX),
		     UINT64_MAX);
	cr_expect_eq(pcpa_heap_size_for(0, 0, UINT32_MAX, UINT32_MAX / 2),
		     SIZE_MAX);
}

/* ---- The use that it is for -------------------------------------------------------- */

#define THREADS 4u
#define ROUNDS 400u

struct use {
	struct pcpa_heap *heap;
	unsigned order, ring, burst;
	unsigned failed; /* a: */
	pthread_barrier_t full;
};

static void failed(struct use *u)
{
	__atomic_fetch_add(&u->failed, 1, __ATOMIC_RELAXED);
}

/* Fills its part of the rings in one call, and then for each burst: takes one,
 * and gives one that came out of the rings; sometimes it gives or takes several
 * in a row, so that the caches are full in turns. */
static void *user(void *arg)
{
	struct use *u = arg;
	void **ring = calloc(u->ring, sizeof(*ring));
	void *burst[64];
	unsigned i, at = 0, b;

	if (pcpa_alloc_bulk(u->heap, u->order, 0, ring, u->ring) != u->ring)
		failed(u);
	pthread_barrier_wait(&u->full);
	for (i = 0; i < ROUNDS; i++) {
		if (pcpa_alloc_bulk(u->heap, u->order, 0, burst, u->burst) !=
		    u->burst)
			failed(u);
		for (b = 0; b < u->burst; b++) {
			pcpa_free(u->heap, ring[at]);
			ring[at] = burst[b];
			at = (at + 1) % u->ring;
		}
		/* A full ring again, after it was drained by a part. */
		for (b = 0; b < u->ring / 2; b++) {
			pcpa_free(u->heap, ring[b]);
			ring[b] = NULL;
		}
		if (pcpa_refill(u->heap, u->order, 0, ring, u->ring) != u->ring)
			failed(u);
	}
	pthread_barrier_wait(&u->full);
	pcpa_free_bulk(u->heap, ring, u->ring);
	free(ring);
	return NULL;
}

static void bears(unsigned order, unsigned flags, unsigned rx, unsigned tx,
		  unsigned burst)
{
	size_t bytes = pcpa_heap_size_for(rx, tx, THREADS, burst) << order;
	struct use u = {.order = order, .ring = (rx + tx) / THREADS,
			.burst = burst};
	pthread_t t[THREADS];
	unsigned i;

	u.heap = flags & PCPA_HEAP_FIXED ? heap_fixed(bytes, 0)
					 : heap_make(0, bytes, flags);
	cr_assert_eq(pthread_barrier_init(&u.full, NULL, THREADS), 0);
	for (i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&t[i], NULL, user, &u), 0);
	for (i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_join(t[i], NULL), 0);
	cr_expect_eq(u.failed, 0, "order %u flags 0x%x: %u", order, flags, u.failed);
	cr_expect_eq(stats_of(u.heap, -1).failed_total, 0);
	expect_all_free(u.heap);
	heap_end(u.heap);
	pthread_barrier_destroy(&u.full);
}

Test(size_for, heap_of_that_size_never_fails, .timeout = 60)
{
	bears(0, PCPA_HEAP_FIXED, 512, 512, 32);
	bears(0, PCPA_HEAP_FIXED, 4096, 1024, 64);
	bears(0, 0, 2048, 1024, 64);
	bears(0, PCPA_HEAP_LEGACY, 1024, 1024, 32);
	bears(2, PCPA_HEAP_FIXED, 512, 256, 32);
}
