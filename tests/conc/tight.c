/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tight.c - more threads than a pool has blocks for: exhaustion as the steady
 * state.
 *
 * Nobody starves: each thread that asks goes on getting blocks while others free
 * some.  Nothing is lost: at the end each page is free.  (How often is swept:
 * tests/unit/test_exhaust.c.)
 *
 *   rings     threads that refill a ring each, free a part, and refill again
 *   crossing  few that allocate, many that free what they were handed
 *   orders    large requests beside small ones whose pages they need
 */
#include "conc.h"

#define RINGS 6u
#define ALLOCATORS 4u
#define FREERS (CONC_TSAN ? 12u : 40u)
#define MS 700u

static unsigned barriers; /* a */

static int count_barrier(void)
{
	pcpi_fetch_add_relaxed(&barriers, 1);
	return pcpi_sys_linux.membarrier();
}

struct tight_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	unsigned flags;
	uint64_t refused, got[RINGS + FREERS]; /* a, by thread */
	bool stop;
};

/* ---- Rings --------------------------------------------------------------------- */

#define RING 256u /* six of them want three times the heap's 512 pages */

static void ring_refill(struct tight_case *the, unsigned index, void **ring)
{
	size_t i, filled;

	filled = pcpa_refill(the->heap, 0, the->flags, ring, RING);
	if (filled < RING) {
		CHECK(errno == ENOMEM ||
		      (errno == EAGAIN && the->flags & PCPA_NOWAIT));
		pcpi_fetch_add_relaxed(&the->refused, 1);
	}
	for (i = 0; i < filled; i++)
		if (*(uint64_t *)ring[i] != index + 1) {
			conc_stamp(the->heap, ring[i], 0, index + 1);
			pcpi_counter_add(&the->got[index], 1);
		}
}

static void ring_drain(struct tight_case *the, unsigned index, void **ring,
		       unsigned share)
{
	unsigned i;

	for (i = 0; i < RING; i++) {
		if (!ring[i] || i % 4 >= share)
			continue;
		conc_unstamp(the->heap, ring[i], 0, index + 1);
		pcpa_free(the->heap, ring[i]);
		ring[i] = NULL;
	}
}

static void ring_run(unsigned index, void *arg)
{
	struct tight_case *the = arg;
	uint64_t random = the->seed + index + 1;
	void *ring[RING] = { NULL };

	while (!conc_flag(&the->stop)) {
		ring_refill(the, index, ring);
		ring_drain(the, index, ring,
			   1 + (unsigned)(conc_random(&random) % 4));
	}
	ring_drain(the, index, ring, 4);
}

static void rings(uint64_t seed, unsigned flags, unsigned heap_flags)
{
	struct tight_case the = { .heap = conc_heap(2 * MIB, heap_flags),
				  .seed = seed | 1, .flags = flags };
	struct conc_thread threads[RINGS];
	unsigned i;

	barriers = 0;
	conc_start(threads, RINGS, ring_run, &the);
	conc_sleep_ms(MS);
	conc_raise(&the.stop);
	conc_join(threads, RINGS);
	for (i = 0; i < RINGS; i++)
		CHECK_U64(the.got[i], >, RING);
	CHECK_U64(the.refused, >, 0);
	if (flags & PCPA_NOWAIT) /* a free that makes a cache may sweep */
		CHECK_U64(barriers, <=, RINGS);
	fprintf(stderr, "rings, flags 0x%x: refused %" PRIu64 ", %u sweeps\n",
		flags, the.refused, barriers);
	conc_heap_end(the.heap);
}

/* ---- Few that allocate, many that free --------------------------------------------- */

#define SLOTS 1024u

static void *slots[SLOTS]; /* a: handed over, twice as many as there are pages */

static void slot_exchange(struct tight_case *the, unsigned i, void *block)
{
	/* acquire/release: pairs with itself. */
	void *old = pcpi_exchange_acq_rel(&slots[i], block);

	if (!old)
		return;
	conc_unstamp(the->heap, old, 0, 1);
	pcpa_free(the->heap, old);
}

static void allocate(unsigned index, void *arg)
{
	struct tight_case *the = arg;
	uint64_t random = the->seed + index + 1;
	void *block;

	while (!conc_flag(&the->stop)) {
		block = pcpa_alloc(the->heap, 0, 0);
		if (!block) {
			CHECK(errno == ENOMEM);
			pcpi_fetch_add_relaxed(&the->refused, 1);
			continue;
		}
		conc_stamp(the->heap, block, 0, 1);
		pcpi_counter_add(&the->got[index], 1);
		slot_exchange(the, conc_random(&random) % SLOTS, block);
	}
}

static void release(unsigned index, void *arg)
{
	struct tight_case *the = arg;
	uint64_t random = the->seed * 3 + index + 1;

	while (!conc_flag(&the->stop)) {
		slot_exchange(the, conc_random(&random) % SLOTS, NULL);
		if (conc_random(&random) % 64 == 0)
			sched_yield();
	}
}

static void crossing(uint64_t seed)
{
	struct tight_case the = { .heap = conc_heap(2 * MIB, 0),
				  .seed = seed | 1 };
	struct conc_thread allocators[ALLOCATORS], freers[FREERS];
	struct pcpa_stats s;
	unsigned i;

	barriers = 0;
	conc_start(freers, FREERS, release, &the);
	conc_start(allocators, ALLOCATORS, allocate, &the);
	conc_sleep_ms(MS);
	s = conc_stats(the.heap);
	conc_raise(&the.stop);
	conc_join(allocators, ALLOCATORS);
	conc_join(freers, FREERS);
	for (i = 0; i < ALLOCATORS; i++)
		CHECK_U64(the.got[i], >, 0);
	/* An eighth, and what is freed into caches between two looks. */
	CHECK_U64(s.cached_pages, <=, s.managed_pages / 8 + FREERS + ALLOCATORS);
	fprintf(stderr, "crossing: got %" PRIu64 ", refused %" PRIu64
		", %u sweeps\n", s.alloc_total, the.refused, barriers);
	for (i = 0; i < SLOTS; i++)
		slot_exchange(&the, i, NULL);
	conc_heap_end(the.heap);
}

/* ---- Large beside small --------------------------------------------------------------- */

static void orders_run(unsigned index, void *arg)
{
	struct tight_case *the = arg;
	struct conc_churn churn;

	conc_churn_init(&churn, the->heap, the->seed, index, index == 0 ? 9 : 3);
	while (!conc_flag(&the->stop)) {
		conc_churn_steps(&churn, 200);
		conc_churn_end(&churn);
		pcpi_counter_add(&the->got[index], 1);
	}
}

static void orders(uint64_t seed)
{
	struct tight_case the = { .heap = conc_heap(4 * MIB, 0),
				  .seed = seed | 1 };
	struct conc_thread threads[4];
	unsigned order;
	void *block;

	conc_start(threads, 4, orders_run, &the);
	conc_sleep_ms(MS);
	conc_raise(&the.stop);
	conc_join(threads, 4);
	/* All ended: what they had cached is in the depots, as small blocks. */
	for (order = 9; order > 0; order--) {
		block = pcpa_alloc(the.heap, order, 0);
		CHECK(block);
		pcpa_free(the.heap, block);
	}
	conc_heap_end(the.heap);
}

int main(void)
{
	static struct pcpi_sys sys;
	uint64_t seed = conc_seed();

	sys = pcpi_sys_linux;
	sys.membarrier = count_barrier;
	pcpi_sys = &sys;
	rings(seed, 0, 0);
	rings(seed, PCPA_NOWAIT, 0);
	rings(seed, 0, PCPA_HEAP_NO_IPI);
	crossing(seed);
	orders(seed);
	return 0;
}
