/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regressions.c - what a review found: each case failed before the commit
 * that brought it, and each stands for a rule that no suite of a module had.
 */
#include "../support/core_fixture.h"
#include "../support/heap_fixture.h"
#include "heap.h"

/* ---- Arguments ---------------------------------------------------------------- */

static int arena_ignore(const struct pcpa_arena_info *info, void *arg)
{
	(void)info;
	(void)arg;
	return 0;
}

Test(regressions, arenas_of_no_heap_are_refused)
{
	cr_expect_eq(pcpa_for_each_arena(NULL, arena_ignore, NULL), -EINVAL);
	cr_expect_eq(pcpa_for_each_arena(NULL, NULL, NULL), -EINVAL);
}

/* ---- A claim between a decision and its drain ------------------------------------ */

static struct pcpi_cache *cache;

/* A drainer comes just when the owner has decided what to drain. */
static void claim_at_drain(const struct pcpa_event *event, void *arg)
{
	(void)arg;
	if (event->kind == PCPA_EVENT_PCPU_DRAIN)
		cr_expect(pcpi_cache_claim(cache));
}

/* The owner has set the limit by a length that the drainer then made 0: the
 * cache must not fill up to it, past its bound and its ring. */
Test(regressions, limit_set_beside_a_drainer_keeps_the_bound)
{
	uint64_t moved[PARTS_ZONES] = {0};
	struct pcpi_ring *ring;
	uint32_t *pfns, n, i;

	parts_make((struct parts_spec){.high = 100});
	cache = parts_cache(0);
	ring = &cache->list[0].ring;
	n = ring->mask;
	pfns = calloc(2 * (size_t)n, sizeof(*pfns));
	cr_assert(pfns);
	for (i = 0; i < 2 * n; i += 2)
		parts_take(0, 0, pfns + i, 2);
	cr_assert(pcpi_cache_enter(cache)); /* as pcpi_bulk_push() does */
	pcpi_ring_push(ring, pfns, n);
	pcpi_cache_leave(cache);
	pcpi_trace_set(&parts.env.trace, claim_at_drain, NULL);
	pcpi_cache_trim(cache, 0);
	pcpi_trace_set(&parts.env.trace, NULL, NULL);
	cr_assert(pcpi_cache_is_claimed(cache));
	pcpi_cache_empty_claimed(cache, moved);
	cr_expect_eq(moved[0], n);
	for (i = n; i < 2 * n; i++) {
		cr_assert(pcpi_hot_push(cache, 1, pfns[i],
					pcpi_space_addr(&parts.space, pfns[i]), true));
		cr_assert_leq(pcpi_cache_count(cache), cache->high, "after %u",
			      i - n);
	}
	cr_expect_eq(parts_pages_held(0), parts.zones[0].managed_pages);
	free(pfns);
	parts_unmake();
}

/* ---- A depot's surplus -------------------------------------------------------------- */

/* A cache that hands over a batch of each order in turn must not look at the
 * surplus of one of them only. */
Test(regressions, surplus_of_every_order_goes_back)
{
	uint32_t pfn;
	unsigned o, i;

	parts_make((struct parts_spec){0});
	cache = parts_cache(0);
	for (i = 0; i < 200; i++) {
		for (o = 0; o < PCPI_PCP_ORDERS; o++) {
			parts_take(0, o, &pfn, 1);
			pcpi_cache_push(cache, o, &pfn, 1);
		}
		pcpi_cache_flush(cache);
		parts.now_ns += 2 * PARTS_SECOND;
	}
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		cr_expect_lt(pcpi_depot_len(&parts.zones[0].depots[o]), 100,
			     "order %u", o);
	parts_unmake();
}

/* What nobody needs any more must not keep others out of the depots for ever. */
Test(regressions, surplus_of_full_depots_goes_back)
{
	struct pcpi_depot *full;
	uint32_t pfns[PCPI_CHUNK];
	unsigned i;

	parts_make((struct parts_spec){0});
	cache = parts_cache(0);
	full = &parts.zones[0].depots[3];
	do {
		i = pcpi_depot_len(full);
		parts_take(0, 3, pfns, PCPI_CHUNK);
		pcpi_direct_give(&parts.zones[0], 3, pfns, PCPI_CHUNK);
	} while (pcpi_depot_len(full) > i);
	for (i = 0; i < 3; i++) {
		parts.now_ns += 2 * PARTS_SECOND;
		parts_take(0, 0, pfns, 1);
		pcpi_cache_push(cache, 0, pfns, 1);
		pcpi_cache_flush(cache);
	}
	cr_expect_eq(pcpi_depot_len(full), 0);
	cr_expect_eq(pcpi_depot_len(&parts.zones[0].depots[0]), 1);
	parts_unmake();
}

/* ---- Heaps without interruption --------------------------------------------------- */

/* Nobody else can flush the caller's own cache there, and orders that caches
 * don't hold never come to it. */
Test(regressions, high_order_gets_what_the_callers_own_cache_holds)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, PCPA_HEAP_NO_IPI);
	unsigned top = pcpa_heap_max_order(heap);
	size_t pages = stats_of(heap, -1).managed_pages, whole = pages >> top, n;
	void **blocks = calloc(pages, sizeof(*blocks));

	cr_assert(blocks);
	cr_assert_eq(alloc_all(heap, 0, 0, blocks, pages), pages);
	free_all(heap, blocks, pages);
	cr_assert_gt(stats_of(heap, -1).cached_pages, 0);
	n = alloc_all(heap, top, 0, blocks, whole);
	cr_expect_eq(n, whole, "%zu of %zu", n, whole);
	free_all(heap, blocks, n);
	free(blocks);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	heap_end(heap);
}

/* ---- Threads that move to another node within a call -------------------------------- */

static unsigned cpu_calls;

/* On node 0 when the request is made, on node 1 ever after. */
static int cpu_moving(void)
{
	return cpu_calls++ == 0 ? 0 : 4;
}

Test(regressions, thread_that_moves_within_a_call_is_served_by_one_node)
{
	static struct pcpi_sys sys;
	struct pcpa_heap *heap;
	uint64_t backed;
	void **blocks, *block;
	size_t n;

	cr_assert_eq(setenv("HWLOC_SYNTHETIC",
			    "pack:2 [numa(memory=1073741824)] core:4 pu:1", 1), 0);
	heap = heap_make(4 * MIB, 16 * MIB, 0);
	cr_assert_eq(heap->nr_zones, 2);
	blocks = calloc(8192, sizeof(*blocks));
	cr_assert(blocks);
	n = alloc_all(heap, 0, PCPA_NODE(1) | PCPA_THISNODE, blocks, 8192);
	cr_assert_eq(n, stats_of(heap, 1).managed_pages);
	backed = stats_of(heap, 0).managed_pages;
	sys = *pcpi_sys;
	sys.cpu = cpu_moving;
	pcpi_sys = &sys;
	block = pcpa_alloc(heap, 0, 0);
	cr_assert(block, "node 0 has %llu pages",
		  (unsigned long long)stats_of(heap, 0).managed_pages);
	cr_expect_eq(pcpa_block_node(heap, block), 0);
	cr_expect_eq(stats_of(heap, 0).managed_pages, backed);
	pcpa_free(heap, block);
	free_all(heap, blocks, n);
	free(blocks);
	expect_all_free(heap);
	heap_end(heap);
}
