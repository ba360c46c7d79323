/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api_control.c - public functions that steer and observe a heap.  Layer 6, part
 * of api.
 *
 * Proved by tests/unit/test_api.c, test_stats.c, test_tick.c, test_trim.c,
 * test_disable.c and tests/abi/.
 */
#include <errno.h>
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>
#include <string.h>

#include "api.h"
#include "heap.h"

#define DRAIN_WAIT_NS UINT64_C(100000000)

PCPI_EXPORT int pcpa_thread_flush(struct pcpa_heap *heap)
{
	int saved = errno, err = pcpi_api_begin(heap);

	if (err)
		return err;
	pcpi_thread_flush(heap);
	pcpi_api_end(saved);
	return 0;
}

PCPI_EXPORT int pcpa_heap_drain(struct pcpa_heap *heap)
{
	int saved = errno, err = pcpi_api_begin(heap);

	if (err)
		return err;
	if (pcpi_heap_sweep(heap, DRAIN_WAIT_NS).late > 0)
		err = -ETIMEDOUT;
	pcpi_api_end(saved);
	return err;
}

PCPI_EXPORT int pcpa_heap_tick(struct pcpa_heap *heap)
{
	int saved = errno, err = pcpi_api_begin(heap);

	if (err)
		return err;
	pcpi_heap_tick(heap);
	pcpi_api_end(saved);
	return 0;
}

PCPI_EXPORT size_t pcpa_heap_trim(struct pcpa_heap *heap, size_t keep_bytes)
{
	int saved = errno;
	size_t given;

	if (pcpi_api_begin(heap))
		return 0;
	given = pcpi_heap_trim(heap, keep_bytes, DRAIN_WAIT_NS);
	pcpi_api_end(saved);
	return given;
}

/* As pcpi_api_begin(), with the zone of an os number, NULL for -1. */
static int zone_begin(struct pcpa_heap *heap, int node, struct pcpi_zone **zone)
{
	int err = pcpi_api_check(heap);

	if (err)
		return err;
	*zone = node >= 0 ? pcpi_heap_zone(heap, (unsigned)node) : NULL;
	return node == -1 || *zone ? pcpi_api_begin(heap) : -EINVAL;
}

PCPI_EXPORT int pcpa_cache_disable(struct pcpa_heap *heap, int node)
{
	struct pcpi_zone *zone;
	int saved = errno, err = zone_begin(heap, node, &zone);

	if (err)
		return err;
	err = pcpi_heap_disable(heap, zone);
	pcpi_api_end(saved);
	return err;
}

PCPI_EXPORT int pcpa_cache_enable(struct pcpa_heap *heap, int node)
{
	struct pcpi_zone *zone;
	int saved = errno, err = zone_begin(heap, node, &zone);

	if (err)
		return err;
	err = pcpi_heap_enable(heap, zone);
	pcpi_api_end(saved);
	return err;
}

PCPI_EXPORT int pcpa_heap_trace(struct pcpa_heap *heap,
				void (*fn)(const struct pcpa_event *, void *),
				void *arg)
{
	int err = heap ? 0 : -EINVAL;

	if (!pcpi_nest_enter() && !err)
		err = -EAGAIN;
	if (!err) {
		pcpi_lock_take(&heap->drain_lock);
		pcpi_trace_set(&heap->env.trace, fn, arg);
		pcpi_lock_drop(&heap->drain_lock);
	}
	pcpi_nest_leave();
	return err;
}

PCPI_EXPORT int pcpa_stats_read(struct pcpa_heap *heap, int node,
				struct pcpa_stats *out)
{
	struct pcpi_zone *zone = NULL;
	struct pcpa_stats all;
	size_t size;
	int err = 0;

	if (!heap || !out || out->struct_size < sizeof(out->struct_size) ||
	    node < -1)
		return -EINVAL;
	if (node >= 0) {
		zone = pcpi_heap_zone(heap, (unsigned)node);
		if (!zone)
			return -EINVAL;
	}
	if (pcpi_nest_enter())
		pcpi_stats_collect(heap, zone, &all);
	else
		err = -EAGAIN;
	pcpi_nest_leave();
	if (err)
		return err;
	size = pcpi_min(out->struct_size, sizeof(all));
	all.struct_size = size;
	memcpy(out, &all, size);
	return 0;
}

PCPI_EXPORT int pcpa_stats_format(struct pcpa_heap *heap,
				  enum pcpa_stats_format format, char *buf,
				  size_t size)
{
	int len;

	if (!heap || (!buf && size > 0))
		return -EINVAL;
	len = pcpi_nest_enter() ? pcpi_stats_write(heap, format, buf, size)
				: -EAGAIN;
	pcpi_nest_leave();
	return len;
}

PCPI_EXPORT const char *pcpa_version(void)
{
	return PCPA_VERSION;
}
