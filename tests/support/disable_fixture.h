/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * disable_fixture.h - a heap whose caches are disabled, the caller's cache, and a
 * table of the system into which tests put hooks.
 */
#ifndef DISABLE_FIXTURE_H
#define DISABLE_FIXTURE_H

#include "heap.h"
#include "heap_fixture.h"
#include "list.h"

#define NODE 0

static struct pcpa_heap *heap;
static struct pcpi_cache *mine;
static struct pcpi_sys table;
static const struct pcpi_sys *system_before;
static void *blocks[512];

static inline void heap_begin(struct pcpa_heap *first)
{
	heap = first;
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	mine = pcpi_hot_cache(&heap->hot);
}

static inline void setup(void)
{
	heap_begin(heap_fixed(64 * MIB, 0));
	system_before = pcpi_sys;
	table = *pcpi_sys;
	pcpi_sys = &table;
}

static inline void teardown(void)
{
	pcpi_sys = system_before;
	expect_all_free(heap);
	heap_end(heap);
}

static inline void heap_replace(struct pcpa_heap *next)
{
	heap_end(heap);
	heap_begin(next);
}

/* Some blocks of each order into the cache, and some into the depot. */
static inline void fill(void)
{
	size_t n;

	for (unsigned o = 0; o < PCPI_PCP_ORDERS; o++) {
		n = alloc_all(heap, o, 0, blocks, 100);
		free_all(heap, blocks, n);
		cr_assert_eq(pcpa_thread_flush(heap), 0);
		n = alloc_all(heap, o, 0, blocks, 10);
		free_all(heap, blocks, n);
	}
}

static inline void expect_empty(void)
{
	struct pcpa_stats s = stats_of(heap, -1);

	cr_expect_eq(s.cached_pages, 0, "%llu",
		     (unsigned long long)s.cached_pages);
	cr_expect_eq(s.depot_pages, 0, "%llu", (unsigned long long)s.depot_pages);
	cr_expect_eq(s.free_pages + s.used_pages, s.managed_pages);
}

#endif
