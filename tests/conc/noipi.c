/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * noipi.c - heaps whose owners must not be interrupted: a drain asks and goes,
 * an owner flushes at its next call, caches without an owner are emptied at
 * once, and membarrier is never called.
 */
#include "conc.h"

#include "sys/sys.h"

#define THREADS 3u
#define MS 1500u
#define BURST 64u

static unsigned barriers; /* a */

static int count_barrier(void)
{
	pcpi_fetch_add_relaxed(&barriers, 1);
	return pcpi_sys_linux.membarrier();
}

struct noipi_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	bool stop, in, go, done, leave;
};

static void churner(unsigned index, void *arg)
{
	struct noipi_case *the = arg;

	conc_churn_until(&the->stop, the->heap, the->seed, index, 6);
}

/* Short lives beside them: caches that have no owner for a moment. */
static void comer(unsigned index, void *arg)
{
	struct noipi_case *the = arg;

	conc_churn_some(the->heap, the->seed + 1, THREADS + index, 3, 100);
}

static void comers(unsigned index, void *arg)
{
	struct noipi_case *the = arg;

	(void)index;
	while (!conc_flag(&the->stop))
		conc_run(2, comer, the);
}

static void churned_and_drained(void)
{
	struct noipi_case the = {
		.heap = conc_heap(64 * MIB, PCPA_HEAP_NO_IPI),
		.seed = conc_seed(),
	};
	struct conc_thread threads[THREADS], more;
	uint64_t end = conc_now_ms() + MS;

	conc_start(threads, THREADS, churner, &the);
	conc_start(&more, 1, comers, &the);
	do {
		/* What is only asked for is not late. */
		CHECK(pcpa_heap_drain(the.heap) == 0);
		sched_yield();
	} while (conc_now_ms() < end);
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	conc_join(&more, 1);
	CHECK_U64(conc_stats(the.heap).drains_flush, >, 0);
	conc_heap_end(the.heap);
}

static void asked(unsigned index, void *arg)
{
	struct noipi_case *the = arg;
	void *blocks[BURST];

	(void)index;
	CHECK(pcpa_alloc_bulk(the->heap, 0, 0, blocks, BURST) == BURST);
	pcpa_free_bulk(the->heap, blocks, BURST - 1);
	conc_raise(&the->in);
	conc_await(&the->go);
	pcpa_free(the->heap, blocks[BURST - 1]); /* the next call */
	conc_raise(&the->done);
	conc_await(&the->leave);
}

static void owner_asked(void)
{
	struct noipi_case the = {
		.heap = conc_heap(64 * MIB, PCPA_HEAP_NO_IPI),
	};
	struct conc_thread thread;
	uint64_t cached;

	conc_start(&thread, 1, asked, &the);
	conc_await(&the.in);
	cached = conc_stats(the.heap).cached_pages;
	CHECK_U64(cached, >=, BURST - 1);
	CHECK(pcpa_heap_drain(the.heap) == 0);
	CHECK_U64(conc_stats(the.heap).cached_pages, ==, cached);
	conc_raise(&the.go);
	conc_await(&the.done);
	/* Flushed, then the one that was freed. */
	CHECK_U64(conc_stats(the.heap).cached_pages, ==, 1);
	CHECK_U64(conc_stats(the.heap).drains_flush, ==, 1);
	conc_raise(&the.leave);
	conc_join(&thread, 1);
	conc_heap_end(the.heap);
}

int main(void)
{
	static struct pcpi_sys sys;

	sys = pcpi_sys_linux;
	sys.membarrier = count_barrier;
	pcpi_sys = &sys;
	owner_asked();
	churned_and_drained();
	CHECK_U64(barriers, ==, 0);
	return 0;
}
