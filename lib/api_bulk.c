/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api_bulk.c - the public functions for many blocks at once.  Layer 6, part of api.
 *
 * A call that the cache can serve is one function without another call in it: the
 * first chunk in the width of the heap's processor, and everything else left to
 * cold functions at its end.
 *
 * IF1 to IF3 of api.c hold.
 *
 * Cost: bulk.h.
 * Proved by tests/unit/test_api.c, test_bulk.c and tests/budget/.
 */
#include <errno.h>
#include <pcpalloc/pcpalloc.h>

#include "api.h"
#include "bulk.h"
#include "heap.h"

/* ---- Allocations -------------------------------------------------------------- */

static void addrs_store(const struct pcpi_request *req, const uint32_t *pfns,
			void **blocks, uint32_t n)
{
	struct pcpi_range range = {
		.base = req->heap->hot.base,
		.page_shift = req->heap->hot.page_shift,
	};

	pcpi_convert_to_addrs(&range, req->heap->hot.wide_span > 0, pfns, blocks, n);
}

/* More blocks than the cache may hold, straight from the zone: a ring's first
 * filling neither empties the cache nor goes through it. */
static size_t bulk_past(struct pcpi_request *req, void **blocks, size_t n)
{
	uint32_t pfns[PCPI_CHUNK], want, more;
	size_t got = 0;

	do {
		want = (uint32_t)pcpi_min(n - got, (size_t)PCPI_CHUNK);
		more = pcpi_route_take_past(req, pfns, want);
		addrs_store(req, pfns, blocks + got, more);
		got += more;
	} while (more == want && got < n);
	return got;
}

/* Blocks through the slow way, a private batch at a time. */
static size_t bulk_slow(struct pcpi_request *req, void **blocks, size_t n)
{
	uint32_t pfns[PCPI_CHUNK], want, more;
	size_t got = 0;

	if (pcpi_route_is_large(req, n))
		got = bulk_past(req, blocks, n);
	while (got < n) {
		/* What came into the cache with the last batch. */
		if (req->flags == 0 && req->order < PCPI_PCP_ORDERS)
			got += pcpi_bulk_pop(&req->heap->hot, req->order,
					     blocks + got, n - got);
		want = (uint32_t)pcpi_min(n - got, (size_t)PCPI_CHUNK);
		more = pcpi_route_take(req, pfns, want);
		addrs_store(req, pfns, blocks + got, more);
		got += more;
		if (more < want)
			break;
	}
	return got;
}

static PCPI_COLD size_t alloc_bulk_slow(struct pcpa_heap *heap, unsigned order,
					unsigned flags, void **blocks, size_t n)
{
	struct pcpi_request req;
	int saved = errno, err;
	size_t got = 0, i;

	err = pcpi_api_request(heap, order, flags, pcpi_nest_enter(), &req);
	if (!err)
		got = bulk_slow(&req, blocks, n);
	pcpi_nest_leave();
	if (!err && got < n)
		err = pcpi_api_shortage(&req);
	for (i = 0; i < got && (flags & PCPA_ZERO); i++)
		pcpi_api_zero(&req, blocks[i]);
	errno = err ? -err : saved;
	return got;
}

/* What is no hit, or not there in one piece.  Longer calls ask first whether they
 * should touch the cache. */
static PCPI_COLD size_t alloc_more(struct pcpa_heap *heap, unsigned order,
				   unsigned flags, void **blocks, size_t n)
{
	size_t got = 0;

	if (order < PCPI_PCP_ORDERS && flags == 0 && n <= PCPI_BULK_CHUNK) {
		got = pcpi_bulk_pop(&heap->hot, order, blocks, n);
		if (got == n)
			return n;
	}
	return got + alloc_bulk_slow(heap, order, flags, blocks + got, n - got);
}

static PCPI_WIDE PCPI_HOT size_t alloc_wide(struct pcpa_heap *heap,
					    unsigned order, unsigned flags,
					    void **blocks, size_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);
	bool look;

	if (pcpi_likely(c != NULL) &&
	    pcpi_likely(order < PCPI_PCP_ORDERS && flags == 0) &&
	    pcpi_likely(pcpi_chunk_pop_wide(&heap->hot, c, order, blocks,
					    (uint32_t)n, &look)))
		return pcpi_unlikely(look) ? pcpi_hit_look_bulk(c, n) : n;
	return alloc_more(heap, order, flags, blocks, n);
}

static PCPI_HOT size_t alloc_plain(struct pcpa_heap *heap, unsigned order,
				   unsigned flags, void **blocks, size_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);
	bool look;

	if (pcpi_likely(c != NULL) && n <= PCPI_BULK_CHUNK &&
	    pcpi_likely(order < PCPI_PCP_ORDERS && flags == 0) &&
	    pcpi_likely(pcpi_chunk_pop_plain(&heap->hot, c, order, blocks,
					     (uint32_t)n, &look)))
		return pcpi_unlikely(look) ? pcpi_hit_look_bulk(c, n) : n;
	return alloc_more(heap, order, flags, blocks, n);
}

PCPI_EXPORT PCPI_HOT size_t pcpa_alloc_bulk(struct pcpa_heap *heap, unsigned order,
				   unsigned flags, void **blocks, size_t n)
{
	if (pcpi_unlikely(!heap))
		return alloc_bulk_slow(heap, order, flags, blocks, n);
	if (pcpi_likely(pcpi_bulk_is_wide(&heap->hot, n)))
		return alloc_wide(heap, order, flags, blocks, n);
	return alloc_plain(heap, order, flags, blocks, n);
}

PCPI_EXPORT size_t pcpa_refill(struct pcpa_heap *heap, unsigned order,
			       unsigned flags, void **slots, size_t n)
{
	size_t at = 0, run;
	size_t got;

	while (at < n) {
		if (slots[at]) {
			at++;
			continue;
		}
		for (run = 1; at + run < n && !slots[at + run];)
			run++;
		got = pcpa_alloc_bulk(heap, order, flags, slots + at, run);
		at += got;
		if (got < run)
			break;
	}
	return at;
}

/* ---- Frees -------------------------------------------------------------------- */

/* The chunk that could not be freed whole: what follows each other of another node
 * together, the rest one by one. */
static void free_each(struct pcpa_heap *heap, void **blocks, size_t n, int order)
{
	size_t i, more;

	for (i = 0; i < n; i += more) {
		more = pcpi_bulk_push_home(&heap->hot, (unsigned)order,
					   order >= 0, blocks + i, n - i);
		if (more > 0)
			continue;
		more = 1;
		if (!pcpi_hot_free(&heap->hot, blocks[i], !PCPI_RSEQ))
			pcpi_api_free(heap, blocks[i], order);
	}
}

/* What doesn't go into the cache in one piece. */
static PCPI_COLD void free_more(struct pcpa_heap *heap, unsigned order,
				bool sized, void **blocks, size_t n)
{
	struct pcpi_cache *c;
	size_t done = 0, chunk;

	for (;;) {
		done += pcpi_bulk_push(&heap->hot, order, sized, blocks + done,
				       n - done);
		if (done == n)
			break;
		chunk = pcpi_min(n - done, (size_t)PCPI_BULK_CHUNK);
		free_each(heap, blocks + done, chunk, sized ? (int)order : -1);
		done += chunk;
	}
	c = pcpi_hot_cache(&heap->hot);
	if (c)
		pcpi_bulk_end(c, order);
}

PCPI_WIDE_INLINE void free_wide(struct pcpa_heap *heap, unsigned order,
				bool sized, void **blocks, size_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);

	if (pcpi_unlikely(c == NULL) ||
	    pcpi_unlikely(!pcpi_chunk_push_wide(&heap->hot, c, order, sized, blocks,
						(uint32_t)n)))
		free_more(heap, order, sized, blocks, n);
}

static PCPI_WIDE PCPI_HOT void free_bulk_wide(struct pcpa_heap *heap,
					      void **blocks, size_t n)
{
	free_wide(heap, 0, false, blocks, n);
}

static PCPI_WIDE PCPI_HOT void free_sized_wide(struct pcpa_heap *heap,
					       unsigned order, void **blocks,
					       size_t n)
{
	free_wide(heap, order, true, blocks, n);
}

static PCPI_HOT void free_plain(struct pcpa_heap *heap, unsigned order,
				bool sized, void **blocks, size_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);

	if (n == 0) /* blocks may be NULL */
		return;
	if (pcpi_unlikely(c == NULL) || n > PCPI_BULK_CHUNK ||
	    pcpi_unlikely(!pcpi_chunk_push_plain(&heap->hot, c, order, sized,
						 blocks, (uint32_t)n)))
		free_more(heap, order, sized, blocks, n);
}

PCPI_EXPORT PCPI_HOT void pcpa_free_bulk(struct pcpa_heap *heap, void **blocks, size_t n)
{
	if (pcpi_unlikely(!heap))
		return;
	if (pcpi_likely(pcpi_bulk_is_wide(&heap->hot, n)))
		free_bulk_wide(heap, blocks, n);
	else
		free_plain(heap, 0, false, blocks, n);
}

PCPI_EXPORT PCPI_HOT void pcpa_free_bulk_sized(struct pcpa_heap *heap, unsigned order,
				      void **blocks, size_t n)
{
	if (pcpi_unlikely(!heap))
		return;
	if (pcpi_unlikely(order >= PCPI_PCP_ORDERS))
		free_each(heap, blocks, n,
			  (int)pcpi_min(order, (unsigned)INT16_MAX));
	else if (pcpi_likely(pcpi_bulk_is_wide(&heap->hot, n)))
		free_sized_wide(heap, order, blocks, n);
	else
		free_plain(heap, order, true, blocks, n);
}
