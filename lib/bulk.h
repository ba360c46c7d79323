/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bulk.h - many blocks of the thread's cache in one call.  Layer 5.
 *
 * Owns: the conversion straight between a cache's ring and the caller's array,
 * a chunk at a time while the cache is marked: whole calls inlined (bulk_chunk.inc),
 * and in pieces what doesn't lie in one (bulk.c).  What the cache can't serve is
 * left to route.c.
 *
 * U1  The mark is held for PCPI_BULK_CHUNK conversions at most (C2).
 * U2  A chunk with an entry that is no order-0 block (or not of the order named)
 *     of the cache's zone is not touched: the caller frees it singly, or
 * U3  as blocks of another node, which are converted before the mark is set, and go
 *     to its outbox a batch at a time.
 *
 * Cost: with AVX2 64 blocks take some 9 ns each way, and the order bytes of
 * unsized frees 15.  Proved by tests/unit/test_bulk.c, test_homeward.c.
 */
#ifndef PCPI_BULK_H
#define PCPI_BULK_H

#include "convert.h"
#include "pcp_hot.h"

#define PCPI_BULK_CHUNK 256u

/* What the hot path doesn't test for: a hand-over that finds the ring at its limit,
 * and a chunk beyond it (TU3). */
_Static_assert(PCPI_RING_MARGIN == PCPI_DEPOT_CHUNK + PCPI_BULK_CHUNK,
	       "a ring's margin");

/* What hot->wide_span is for a processor. */
#define PCPI_WIDE_SPAN(wide) ((wide) ? PCPI_BULK_CHUNK + 1 - PCPI_WIDE_STEP : 0)

/* Whether n blocks, a chunk at most, are for the wide moves. */
PCPI_INLINE bool pcpi_bulk_is_wide(const struct pcpi_hot *hot, size_t n)
{
	return n - PCPI_WIDE_STEP < hot->wide_span;
}

PCPI_INLINE struct pcpi_range pcpi_bulk_range(const struct pcpi_hot *hot,
					      const struct pcpi_cache *c)
{
	return (struct pcpi_range){
		.base = hot->base,
		.start = c->start,
		.page_shift = hot->page_shift,
		.first_pfn = (uint32_t)c->first_pfn,
		.nr_pfns = (uint32_t)c->nr_pfns,
	};
}

/* pcpi_chunk_pop_plain(), pcpi_chunk_push_plain() */
#define CHUNK(name) pcpi_chunk_##name##_plain
#define CHUNK_INLINE PCPI_INLINE
#define CONVERT(name) pcpi_plain_##name
#include "bulk_chunk.inc"

/* pcpi_chunk_pop_wide(), pcpi_chunk_push_wide(): where pcpi_bulk_is_wide(), and
 * inlined into functions that are PCPI_WIDE. */
#if defined(__x86_64__)
#include "convert_wide.h"

#define CHUNK(name) pcpi_chunk_##name##_wide
#define CHUNK_INLINE PCPI_WIDE_INLINE
#define CONVERT(name) pcpi_wide_##name
#include "bulk_chunk.inc"
#else
#define PCPI_WIDE
#define PCPI_WIDE_INLINE PCPI_INLINE
#define pcpi_chunk_pop_wide pcpi_chunk_pop_plain
#define pcpi_chunk_push_wide pcpi_chunk_push_plain
#endif

/* Takes up to n blocks from the cache into blocks; how many. */
size_t pcpi_bulk_pop(const struct pcpi_hot *hot, unsigned order, void **blocks,
		     size_t n);

/* Frees a leading part of blocks[0..n-1] that are all of the order (order 0
 * where none is named, checked); how many.  0: the first chunk has another. */
size_t pcpi_bulk_push(const struct pcpi_hot *hot, unsigned order, bool sized,
		      void *const *blocks, size_t n);

/* Frees a leading part of blocks[0..n-1], which are of one order (that named, or
 * the first block's) and of one other node than the cache's; how many.  0: the
 * first is no such block, or the slow way must be taken. */
size_t pcpi_bulk_push_home(const struct pcpi_hot *hot, unsigned order, bool sized,
			   void *const *blocks, size_t n);

/* Looks at the cache's threshold, once a call. */
PCPI_INLINE void pcpi_bulk_end(struct pcpi_cache *c, unsigned order)
{
	const struct pcpi_ring *ring = &c->list[order].ring;

	if (pcpi_unlikely(pcpi_ring_len(ring) >= ring->limit))
		pcpi_hit_trim(c, order);
}

#endif
