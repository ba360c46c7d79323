/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api_watch.c - public functions for pools that run tight: watching the level,
 * and how large a heap must be.  Layer 6, part of api.
 *
 * Proved by tests/unit/test_watch.c, test_size_for.c and tests/abi/.
 */
#include <errno.h>
#include <pcpalloc/pcpalloc.h>

#include "api.h"
#include "heap.h"
#include "policy.h"

PCPI_EXPORT int pcpa_heap_watch(struct pcpa_heap *heap,
				void (*fn)(const struct pcpa_event *, void *),
				void *arg)
{
	int saved = errno, err = pcpi_api_begin(heap);
	struct pcpi_watch *watch;

	if (err)
		return err;
	watch = &heap->env.watch;
	pcpi_lock_take(&heap->drain_lock);
	pcpi_watch_set(watch, fn, arg, heap->env.zones, heap->nr_zones);
	pcpi_lock_drop(&heap->drain_lock);
	pcpi_watch_zones(watch, heap->env.zones, heap->nr_zones);
	pcpi_api_end(saved);
	return 0;
}

PCPI_EXPORT int pcpa_heap_eventfd(struct pcpa_heap *heap)
{
	int saved = errno, fd = pcpi_api_begin(heap);

	if (fd)
		return fd;
	pcpi_lock_take(&heap->drain_lock);
	fd = pcpi_watch_event_fd(&heap->env.watch);
	pcpi_lock_drop(&heap->drain_lock);
	pcpi_watch_zones(&heap->env.watch, heap->env.zones, heap->nr_zones);
	pcpi_api_end(saved);
	return fd;
}

PCPI_EXPORT size_t pcpa_heap_size_for(unsigned rx, unsigned tx, unsigned threads,
				      unsigned burst)
{
	uint64_t pages = pcpi_policy_heap_pages(rx, tx, threads, burst);
	size_t bytes;

	if (__builtin_mul_overflow(pages, pcpi_sys_page_bytes(), &bytes))
		return SIZE_MAX;
	return bytes;
}
