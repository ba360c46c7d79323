/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trim.c - giving a heap's free memory back to the kernel.  Layer 5, part of
 * heap.h.
 *
 * Owns: how much may go.  Which memory, and how, is zone_trim.c's.
 *
 *   sweep     caches and depots to the buddies, where blocks merge
 *   each node what is above keep_bytes of all nodes' memory together
 *
 * TR1  What is managed does not fall below keep_bytes by trims, however many
 *     run at once: one at a time by the turn, and only they lower it.  The trim
 *     lock inside it is what forks wait for; it is dropped while a subscriber runs.
 *
 * Cost: a sweep, then zone_trim.c's.  Failure: what is refused stays and is
 * counted; a cache whose owner stays inside keeps what it has.
 * Proved by tests/unit/test_trim.c, tests/conc/trim.c.
 */
#include "heap.h"

static uint64_t managed_pages(const struct pcpa_heap *heap)
{
	uint64_t pages = 0;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		/* relaxed: growth meanwhile may stay. */
		pages += pcpi_load_relaxed(&heap->env.zones[z].managed_pages);
	return pages;
}

static void trim_emit(struct pcpa_heap *heap, const struct pcpi_zone *z,
		      uint64_t pages)
{
	if (pages > 0 && pcpi_trace_on(&heap->env.trace))
		pcpi_trace_emit(&heap->env.trace, PCPA_EVENT_ARENA_TRIM,
				(int)z->config.os_node, 0, pages, 0, 0);
}

size_t pcpi_heap_trim(struct pcpa_heap *heap, size_t keep_bytes, uint64_t wait_ns)
{
	size_t page = (size_t)1 << heap->hot.page_shift;
	uint64_t keep = keep_bytes / page + (keep_bytes % page != 0);
	uint64_t given[heap->nr_zones], all = 0, have;
	unsigned z;

	if (heap->options_flags & PCPA_HEAP_FIXED)
		return 0;
	pcpi_heap_sweep(heap, wait_ns);
	pcpi_lock_take(&heap->notify.turn);
	pcpi_lock_take(&heap->trim_lock);
	for (z = 0; z < heap->nr_zones; z++) {
		have = managed_pages(heap);
		given[z] = 0;
		if (have > keep)
			given[z] = pcpi_zone_trim(&heap->env.zones[z], have - keep,
						  &heap->trim_lock);
		all += given[z];
	}
	pcpi_lock_drop(&heap->trim_lock);
	pcpi_lock_drop(&heap->notify.turn);
	pcpi_watch_zones(&heap->env.watch, heap->env.zones, heap->nr_zones);
	for (z = 0; z < heap->nr_zones; z++) {
		trim_emit(heap, &heap->env.zones[z], given[z]);
		if (given[z] > 0)
			pcpi_heap_bounds_enforce(heap, &heap->env.zones[z]);
	}
	return (size_t)(all << heap->hot.page_shift);
}
