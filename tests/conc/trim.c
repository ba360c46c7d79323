/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trim.c - memory goes back to the kernel and comes again while threads
 * allocate and free on the same heaps, others trim, list arenas and read
 * statistics.
 *
 * Blocks carry stamps, so memory that was given back under a holder, which then
 * reads as 0, is found, and so is a page that two have.  At the end every page is
 * accounted for.
 */
#include "conc.h"

#define CHURNERS 3u
#define HELD 600u
#define RUN_MS 1200u

static struct pcpa_heap *heap;
static bool stop;
static uint64_t first_seed, given;

static void stamp(void *block, size_t bytes, uint64_t mark)
{
	*(uint64_t *)block = mark;
	*(uint64_t *)(void *)((char *)block + bytes - 8) = mark;
}

static void stamp_check(const void *block, size_t bytes, uint64_t mark)
{
	CHECK_U64(*(const uint64_t *)block, ==, mark);
	CHECK_U64(*(const uint64_t *)(const void *)((const char *)block + bytes -
						    8),
		  ==, mark);
}

struct held {
	void *block;
	unsigned order;
};

static void give(struct held *h, uint64_t mark)
{
	size_t bytes = pcpa_heap_page_bytes(heap) << h->order;

	stamp_check(h->block, bytes, mark);
	stamp(h->block, bytes, 0);
	pcpa_free(heap, h->block);
	h->block = NULL;
}

/* Fills up, empties, and so on, at random: the heap grows and shrinks. */
static void *churn(void *arg)
{
	uint64_t mark = (uint64_t)(uintptr_t)arg, seed = first_seed + mark;
	static __thread struct held held[HELD];
	unsigned i;

	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		unsigned n = (unsigned)(conc_random(&seed) % HELD);

		for (i = 0; i < n; i++) {
			unsigned order = (unsigned)(conc_random(&seed) >> 8) % 10;

			order = order == 9 ? 9 : order % 4;
			if (held[i].block)
				give(&held[i], mark);
			held[i].order = order;
			held[i].block = pcpa_alloc(heap, order, 0);
			if (held[i].block)
				stamp(held[i].block,
				      pcpa_heap_page_bytes(heap) << order, mark);
		}
		for (i = 0; i < HELD; i++)
			if (held[i].block && conc_random(&seed) % 8 != 0)
				give(&held[i], mark);
	}
	for (i = 0; i < HELD; i++)
		if (held[i].block)
			give(&held[i], mark);
	return NULL;
}

static void *trim(void *arg)
{
	uint64_t seed = first_seed + (uintptr_t)arg;
	uint64_t sum = 0;

	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		sum += pcpa_heap_trim(heap, conc_random(&seed) % 4 * 8 * MIB);
		conc_sleep_ms(2);
	}
	pcpi_fetch_add_relaxed(&given, sum); /* relaxed: a counter */
	return NULL;
}

static int arena_look(const struct pcpa_arena_info *info, void *arg)
{
	CHECK_U64(info->bytes, >, 0);
	CHECK_U64(info->bytes % info->page_bytes, ==, 0);
	*(uint64_t *)arg += info->bytes;
	return 0;
}

static void *look(void *arg)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	static char text[65536];
	uint64_t bytes;

	(void)arg;
	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		bytes = 0;
		CHECK(pcpa_for_each_arena(heap, arena_look, &bytes) == 0);
		CHECK(pcpa_stats_read(heap, -1, &s) == 0);
		CHECK_U64(s.free_pages, <=, s.managed_pages);
		CHECK(pcpa_stats_format(heap, PCPA_STATS_JSON, text,
					sizeof(text)) > 0);
		sched_yield();
	}
	return NULL;
}

static void run(unsigned flags)
{
	void *(*const fns[])(void *) = { churn, churn, churn, trim, trim, look };
	struct pcpa_stats s = PCPA_STATS_INIT;
	uint64_t bytes = 0;
	uintptr_t i;

	CHECK(heap_new(NULL, 16 * MIB, 256 * MIB, flags, &heap) == 0);
	conc_mix(fns, sizeof(fns) / sizeof(fns[0]), RUN_MS, &stop);
	CHECK(pcpa_heap_drain(heap) == 0);
	CHECK(pcpa_stats_read(heap, -1, &s) == 0);
	CHECK_U64(s.free_pages, ==, s.managed_pages);
	CHECK(pcpa_for_each_arena(heap, arena_look, &bytes) == 0);
	CHECK_U64(bytes, ==, s.managed_pages * pcpa_heap_page_bytes(heap));
	CHECK_U64(s.trim_failed, ==, 0);
	for (i = 0; i < heap->nr_zones; i++)
		CHECK(pcpi_zone_check(&heap->env.zones[i]));
	pcpi_space_check(&heap->space);
	CHECK_U64(pcpa_heap_trim(heap, 0), ==, bytes);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

int main(void)
{
	first_seed = conc_seed();
	run(0);
	run(PCPA_HEAP_COW | PCPA_HEAP_BACKGROUND);
	CHECK_U64(given, >, 0);
	return 0;
}
