/* SPDX-License-Identifier: BSD-2-Clause */
/* page_pool_stats.c - what is told of a pool; see page_pool.h. */
#include <errno.h>
#include <string.h>

#include "page_pool.h"

/* relaxed (all of this file): numbers of a moment, each by itself. */

/* As much of a struct that begins with its size as the caller has. */
static int give_out(void *out, size_t out_bytes, const void *full,
		    size_t full_bytes)
{
	size_t have = pcpi_min(out_bytes, full_bytes);

	if (out_bytes < sizeof(size_t))
		return -EINVAL;
	memcpy((char *)out + sizeof(size_t), (const char *)full + sizeof(size_t),
	       have - sizeof(size_t));
	return 0;
}

PCPI_EXPORT int pcpa_pool_info_read(const struct pcpa_pool *pool,
			       struct pcpa_pool_info *out)
{
	struct pcpa_pool_info full;

	if (!pool || !out)
		return -EINVAL;
	full = (struct pcpa_pool_info){
		.page_bytes = pool->page_bytes,
		.headroom_bytes = pool->headroom_bytes,
		.data_bytes = pool->data_bytes,
		.tailroom_bytes = pool->tailroom_bytes,
		.colours = pool->colour_mask + 1,
		.ring_slots = pcpi_load_relaxed(&pool->ring.size),
	};
	return give_out(out, out->struct_size, &full, sizeof(full));
}

PCPI_EXPORT int pcpa_pool_stats_read(const struct pcpa_pool *pool,
				     struct pcpa_pool_stats *out)
{
	struct pcpa_pool_stats s;
	uint64_t word;

	if (!pool || !out)
		return -EINVAL;
	word = pcpi_load_relaxed(&pool->count_out.word);
	s = (struct pcpa_pool_stats){
		.alloc_fast = pcpi_load_relaxed(&pool->alloc_fast),
		.alloc_slow = pcpi_load_relaxed(&pool->alloc_slow),
		.alloc_slow_ho = pcpi_load_relaxed(&pool->alloc_slow_ho),
		.alloc_empty = pcpi_load_relaxed(&pool->alloc_empty),
		.alloc_refill = pcpi_load_relaxed(&pool->alloc_refill),
		.alloc_waive = pcpi_load_relaxed(&pool->alloc_waive),
		.recycle_cached = pcpi_load_relaxed(&pool->recycle_cached),
		.recycle_cache_full = pcpi_load_relaxed(&pool->recycle_cache_full),
		.recycle_ring = pcpi_load_relaxed(&pool->recycle_ring),
		.recycle_ring_full = pcpi_load_relaxed(&pool->recycle_ring_full),
		.recycle_released_ref =
			pcpi_load_relaxed(&pool->recycle_released_ref),
		.bad_puts = pcpi_load_relaxed(&pool->bad_puts),
		.hold = pcpi_pool_count_held(word) - 1, /* PP3 */
		.release = pcpi_pool_count_gone(word),
		.cached = pcpi_load_relaxed(&pool->count),
	};
	s.inflight = pcpi_pool_inflight(s.hold, s.release);
	return give_out(out, out->struct_size, &s, sizeof(s));
}
