/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contig.c - ranges of any length beside churn.
 *
 *   roomy    two threads take and free ranges beside three that churn: both get
 *            some, the churners are never refused, and no page is two's
 *   tight    the same where most of the heap is asked for, so that ranges must be
 *            collected from caches; what is refused is refused with ENOMEM
 *   alone    when the churners have ended, all of the heap is to be had at once
 *   freed    two threads free the same range: one is refused
 */
#include "conc.h"

#define CHURNERS 3u
#define TAKERS 2u
#define MS 1200u

struct contig_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	size_t most_pages;
	bool stop;
	uint64_t got[TAKERS], refused[TAKERS];
};

/* In one arena: a pool of few huge pages would be one of its own. */
static struct pcpa_heap *one_window(size_t bytes)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.flags = PCPA_HEAP_FIXED;
	o.initial_bytes = bytes;
	o.hugepage_bytes = (size_t)sysconf(_SC_PAGESIZE);
	o.verbosity = 0;
	CHECK(pcpa_heap_create(&o, &heap) == 0);
	return heap;
}

static void churner(unsigned index, void *arg)
{
	struct contig_case *the = arg;

	conc_churn_until(&the->stop, the->heap, the->seed, index, 6);
}

static void taker(unsigned index, void *arg)
{
	struct contig_case *the = arg;
	uint64_t end = conc_now_ms() + MS, stamp = CHURNERS + 1 + index;
	uint64_t random = the->seed + index + 1;
	size_t pages, align;
	char *start;

	do {
		pages = 1 + conc_random(&random) % the->most_pages;
		align = (size_t)1 << conc_random(&random) % 10;
		start = pcpa_alloc_contig(the->heap, pages, align, 0);
		if (!start) {
			CHECK(errno == ENOMEM);
			the->refused[index]++;
			continue;
		}
		the->got[index]++;
		CHECK_U64((uintptr_t)start %
				  (align * pcpa_heap_page_bytes(the->heap)), ==, 0);
		conc_stamp_pages(the->heap, start, pages, 0, stamp);
		sched_yield();
		conc_stamp_pages(the->heap, start, pages, stamp, 0);
		pcpa_free_contig(the->heap, start, pages);
	} while (conc_now_ms() < end);
}

static void churned(size_t heap_bytes, size_t most_pages)
{
	struct contig_case the = {
		.heap = one_window(heap_bytes),
		.seed = conc_seed(),
		.most_pages = most_pages,
	};
	struct conc_thread churners[CHURNERS], takers[TAKERS];
	size_t all = heap_bytes / pcpa_heap_page_bytes(the.heap);
	bool roomy = most_pages * 8 < all;
	unsigned i;
	void *start;

	conc_start(churners, CHURNERS, churner, &the);
	conc_start(takers, TAKERS, taker, &the);
	conc_join(takers, TAKERS);
	conc_raise(&the.stop);
	conc_join(churners, CHURNERS);
	for (i = 0; i < TAKERS; i++) {
		fprintf(stderr, "up to %zu of %zu pages: %" PRIu64 " got, %" PRIu64
			" refused\n", most_pages, all, the.got[i], the.refused[i]);
		if (roomy)
			CHECK_U64(the.got[i], >, 0);
	}
	start = pcpa_alloc_contig(the.heap, all, 1, 0);
	CHECK(start);
	conc_stamp_pages(the.heap, start, all, 0, 0);
	pcpa_free_contig(the.heap, start, all);
	if (roomy)
		CHECK_U64(conc_stats(the.heap).failed_total, ==,
			  the.refused[0] + the.refused[1]);
	conc_heap_end(the.heap);
}

/* ---- A range that two free ------------------------------------------------------ */

#define ROUNDS 300u

#define FREED_PAGES 4000u /* what a free looks at before it decides */

struct freed_case {
	struct pcpa_heap *heap;
	unsigned met; /* a */
	void *start;
};

/* Both leave at once, as far as a machine can. */
static void meet(struct freed_case *the, unsigned *times)
{
	unsigned spins = 0;

	*times += 2;
	/* acquire/release: pairs with itself. */
	__atomic_fetch_add(&the->met, 1, __ATOMIC_ACQ_REL);
	while (pcpi_load_acquire(&the->met) < *times)
		if (++spins > 200000)
			sched_yield();
}

static void freer(unsigned index, void *arg)
{
	struct freed_case *the = arg;
	unsigned round, met = 0;

	for (round = 0; round < ROUNDS; round++) {
		if (index == 0)
			the->start = pcpa_alloc_contig(the->heap, FREED_PAGES, 1, 0);
		meet(the, &met);
		pcpa_free_contig(the->heap, the->start, FREED_PAGES);
		meet(the, &met);
	}
}

static void freed_twice(void)
{
	struct freed_case the = { .heap = one_window(16 * MIB) };
	struct pcpa_stats s;

	conc_run(2, freer, &the);
	s = conc_stats(the.heap);
	CHECK_U64(s.bad_frees, ==, ROUNDS);
	CHECK_U64(s.free_total, ==, ROUNDS);
	CHECK_U64(s.used_pages, ==, 0);
	CHECK(pcpa_heap_destroy(the.heap) == 0);
}

int main(void)
{
	churned(64 * MIB, 600);
	churned(8 * MIB, 1800);
	freed_twice();
	return 0;
}
