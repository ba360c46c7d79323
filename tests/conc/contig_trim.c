/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contig_trim.c - contiguous ranges while memory goes back to the kernel and
 * comes again.
 *
 * Two threads take ranges, two churn, two let the heap grow by large blocks, and
 * two trim.  Each range lies in one arena as long as it is held, its pages are
 * nobody else's, and at the end every page is accounted for.
 */
#include "conc.h"

#define TAKERS 2u
#define CHURNERS 2u
#define GROWERS 2u
#define TRIMMERS 2u
#define MS 1200u
#define LARGE 12u

struct trim_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	bool stop;
	uint64_t got, refused, trimmed; /* a */
};

struct range {
	const char *start;
	size_t bytes;
	bool inside;
};

static int arena_compare(const struct pcpa_arena_info *info, void *arg)
{
	const char *base = info->base;
	struct range *r = arg;

	r->inside |= r->start >= base &&
		     r->start + r->bytes <= base + info->bytes;
	return 0;
}

static void expect_in_one_arena(struct pcpa_heap *heap, const char *start,
				size_t pages)
{
	struct range r = { start, pages * pcpa_heap_page_bytes(heap), false };

	CHECK(pcpa_for_each_arena(heap, arena_compare, &r) == 0);
	CHECK(r.inside);
}

static void taker(unsigned index, void *arg)
{
	struct trim_case *the = arg;
	uint64_t random = the->seed + index + 1, stamp = 1000 + index;
	size_t pages;
	char *start;

	while (!conc_flag(&the->stop)) {
		pages = 1 + conc_random(&random) % 3000;
		start = pcpa_alloc_contig(the->heap, pages, 1,
					  conc_random(&random) & 1 ? PCPA_NOGROW
								   : 0);
		if (!start) {
			CHECK(errno == ENOMEM);
			pcpi_fetch_add_relaxed(&the->refused, 1);
			continue;
		}
		pcpi_fetch_add_relaxed(&the->got, 1);
		expect_in_one_arena(the->heap, start, pages);
		conc_stamp_pages(the->heap, start, pages, 0, stamp);
		expect_in_one_arena(the->heap, start, pages);
		conc_stamp_pages(the->heap, start, pages, stamp, 0);
		pcpa_free_contig(the->heap, start, pages);
	}
}

static void churner(unsigned index, void *arg)
{
	struct trim_case *the = arg;

	conc_churn_until(&the->stop, the->heap, the->seed, index, 6);
}

/* Some huge pages each, so that what is trimmed has holes. */
static void grower(unsigned index, void *arg)
{
	struct trim_case *the = arg;
	uint64_t random = the->seed + 100 + index;
	void *held[LARGE] = { NULL };
	unsigned i;

	while (!conc_flag(&the->stop)) {
		i = (unsigned)(conc_random(&random) % LARGE);
		pcpa_free(the->heap, held[i]);
		held[i] = conc_random(&random) % 4 == 0
				  ? NULL
				  : pcpa_alloc(the->heap, 9, 0);
	}
	for (i = 0; i < LARGE; i++)
		pcpa_free(the->heap, held[i]);
}

static void trimmer(unsigned index, void *arg)
{
	struct trim_case *the = arg;
	uint64_t random = the->seed + 200 + index, sum = 0;

	while (!conc_flag(&the->stop)) {
		sum += pcpa_heap_trim(the->heap,
				      conc_random(&random) % 8 * 2 * MIB);
		sched_yield();
	}
	pcpi_fetch_add_relaxed(&the->trimmed, sum);
}

static int arena_add(const struct pcpa_arena_info *info, void *arg)
{
	*(uint64_t *)arg += info->bytes;
	return 0;
}

static void run(unsigned flags)
{
	struct trim_case the = {
		.heap = conc_growing_heap(64 * MIB, flags),
		.seed = conc_seed(),
	};
	struct conc_thread takers[TAKERS], churners[CHURNERS];
	struct conc_thread growers[GROWERS], trimmers[TRIMMERS];
	uint64_t bytes = 0;

	conc_start(takers, TAKERS, taker, &the);
	conc_start(churners, CHURNERS, churner, &the);
	conc_start(growers, GROWERS, grower, &the);
	conc_start(trimmers, TRIMMERS, trimmer, &the);
	conc_sleep_ms(MS);
	conc_raise(&the.stop);
	conc_join(takers, TAKERS);
	conc_join(churners, CHURNERS);
	conc_join(growers, GROWERS);
	conc_join(trimmers, TRIMMERS);
	fprintf(stderr, "flags %#x: %" PRIu64 " got, %" PRIu64 " refused, %"
		PRIu64 " MiB trimmed\n", flags, the.got, the.refused,
		the.trimmed >> 20);
	CHECK_U64(the.got, >, 0);
	conc_heap_at_rest(the.heap);
	pcpi_space_check(&the.heap->space);
	CHECK(pcpa_for_each_arena(the.heap, arena_add, &bytes) == 0);
	CHECK_U64(bytes, ==, conc_stats(the.heap).managed_pages *
				     pcpa_heap_page_bytes(the.heap));
	CHECK_U64(pcpa_heap_trim(the.heap, 0), ==, bytes);
	CHECK_U64(conc_stats(the.heap).managed_pages, ==, 0);
	conc_heap_end(the.heap);
}

int main(void)
{
	run(0);
	run(PCPA_HEAP_NO_IPI);
	return 0;
}
