/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nowait.c - the road of a request that must not wait (PCPA_NOWAIT, or in a nested
 * call, nest.h).  Layer 5, part of heap.h.
 *
 * Owns: where such a request looks.  What it leaves out for a lock that is taken,
 * or a cache that is claimed, makes it fail with EAGAIN and not ENOMEM: the next
 * try may find it.
 *
 *   the thread's cache, if it has one -> depot, zone (a batch into the cache) ->
 *   depots and zones of the other nodes by distance, not with PCPA_THISNODE
 *
 * NW1  No lock is waited for, no cache made, nothing swept or grown, and nothing
 *     of pcpi_sys called but the number of the CPU, with several nodes, and its
 *     node, where the topology doesn't know the CPU.  The only other system call
 *     there can be is the wake-up of a thread that began to wait for a lock while
 *     we had it.
 * NW2  The reserve is never put into a cache.
 * NW3  A thread that has moved to another node stays with the cache that it has, since
 *     to flush it takes locks; its next call that may wait follows (thread.c).
 *
 * The mark is held across the try-locks: what they give then goes into the ring
 * for certain, and never has to be brought back by a lock that might be waited for.
 *
 * Cost: a hit, or two lock operations a batch and what its holds of the zone are
 * more than one (Z3).  Failure: fewer blocks.
 * Proved by tests/unit/test_nowait.c, tests/conc/steps.c.
 */
#include "heap.h"

/* Up to n blocks from what the node's threads share. */
static uint32_t shared_take(struct pcpi_request *req, struct pcpi_zone *z,
			    uint32_t *pfns, uint32_t n)
{
	bool reserve = req->flags & PCPA_RESERVE;
	/* acquire: pairs with isolation_over(), before the look. */
	uint32_t ends = pcpi_load_acquire(&z->isolated.ends), got = 0;

	/* What the depots have is the reserve's while that lacks pages. */
	if (req->order < PCPI_PCP_ORDERS &&
	    (reserve || !pcpi_zone_lacks_reserve(z)))
		got = pcpi_depot_try_get(&z->depots[req->order], pfns, n, &req->busy);
	if (got > 0)
		pcpi_fetch_add_relaxed(&z->depot_gets, 1); /* relaxed: counter */
	if (got < n)
		got += pcpi_zone_try_take(z, req->order, pfns + got, n - got,
					  reserve, &req->busy);
	/* A range that is looked for may give its pages back, or did so just now.
	 * acquire: pairs with isolation_over(); relaxed: it comes after that. */
	req->busy |= got < n && (pcpi_load_acquire(&z->isolated.got) > 0 ||
				 pcpi_load_relaxed(&z->isolated.ends) != ends);
	return got;
}

static uint32_t direct_take(struct pcpi_request *req, struct pcpi_zone *z,
			    uint32_t *pfns, uint32_t n)
{
	uint32_t got = shared_take(req, z, pfns, n);

	/* relaxed: counter */
	pcpi_fetch_add_relaxed(&z->direct_allocs, got);
	return got;
}

/* Blocks to ask for, of which n are wanted now: the others are for the ring. */
static uint32_t batch_for(const struct pcpi_request *req,
			  const struct pcpi_cache *c, uint32_t n)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	uint32_t blocks = pcpi_min(
		pcpi_policy_depot_blocks(ps.depot_batch, req->order), PCPI_CHUNK);
	uint64_t after = pcpi_cache_count(c) + ((uint64_t)blocks << req->order);

	if ((req->flags & PCPA_RESERVE) /* NW2 */ ||
	    pcpi_zone_is_disabled(c->zone) /* under the mark: C9 */ ||
	    after > c->high || blocks > pcpi_ring_room(&c->list[req->order].ring))
		return n;
	return pcpi_max(blocks, n);
}

/* With the mark: a batch, of which the first go to the caller. */
static uint32_t batch_take(struct pcpi_request *req, struct pcpi_cache *c,
			   uint32_t *pfns, uint32_t n)
{
	uint32_t batch[PCPI_CHUNK], got, i;

	got = shared_take(req, c->zone, batch, batch_for(req, c, n));
	n = pcpi_min(n, got);
	for (i = 0; i < n; i++)
		pfns[i] = batch[i];
	pcpi_counter_add(&c->in[req->order], got); /* C4 */
	pcpi_compiler_barrier(); /* pcpi_cache_list_frees() */
	pcpi_ring_append_cold(&c->list[req->order].ring, batch + n, got - n);
	(void)pcpi_allocs_add(&c->list[req->order].allocs, n);
	return n;
}

static uint32_t cached_take(struct pcpi_request *req, struct pcpi_cache *c,
			    uint32_t *pfns, uint32_t n)
{
	struct pcpi_pcp_list *list = &c->list[req->order];
	uint32_t got;

	if (!pcpi_cache_enter(c)) {
		req->busy |= pcpi_cache_len(c, req->order) > 0;
		return direct_take(req, c->zone, pfns, n);
	}
	got = pcpi_min(n, pcpi_ring_len(&list->ring));
	pcpi_ring_pop(&list->ring, pfns, got);
	(void)pcpi_allocs_add(&list->allocs, got);
	if (got < n)
		got += batch_take(req, c, pfns + got, n - got);
	pcpi_cache_leave(c);
	return got;
}

static uint32_t local_take(struct pcpi_request *req, uint32_t *pfns, uint32_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(&req->heap->hot);

	if (c && c->zone != pcpi_heap_local_zone(req->heap))
		pcpi_cache_ask_where(c); /* NW3 */
	if (req->order < PCPI_PCP_ORDERS && c && c->zone == req->zone)
		return cached_take(req, c, pfns, n);
	return direct_take(req, req->zone, pfns, n);
}

static uint32_t foreign_take(struct pcpi_request *req, struct pcpi_zone *z,
			     uint32_t *pfns, uint32_t n)
{
	uint32_t got = direct_take(req, z, pfns, n);

	/* relaxed: counters */
	pcpi_fetch_add_relaxed(&z->numa_miss, got);
	pcpi_fetch_add_relaxed(&req->zone->numa_foreign, got);
	return got;
}

uint32_t pcpi_nowait_take(struct pcpi_request *req, uint32_t *pfns, uint32_t n)
{
	struct pcpa_heap *heap = req->heap;
	const unsigned *order =
		&heap->fallback[req->zone->config.position * heap->nr_zones];
	uint32_t got = local_take(req, pfns, n);
	unsigned i;

	/* Settling waits for locks. */
	req->busy |= pcpi_deferred_any(&heap->env.deferred);
	for (i = 1; i < heap->nr_zones && got < n; i++)
		if (!(req->flags & PCPA_THISNODE))
			got += foreign_take(req, &heap->env.zones[order[i]],
					    pfns + got, n - got);
	return got;
}
