/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.c - the road of a request that the cache alone could not serve.
 * Layer 5, part of heap.h.
 *
 * Owns: the order in which memory is looked for.  Every step is tried only if
 * the ones before it gave too little:
 *
 *   0  the depot, for a single block of an order that the thread only takes: the
 *      short way of step 1, which does all that the long one does but what is
 *      sure to find nothing
 *   1  the thread's cache of the node, refilled from depot or zone
 *   2  the thread's caches and the node's depots emptied into its buddy, whose
 *      blocks may merge
 *   3  all threads' caches emptied likewise (sweep.c)  when due (exhaust.c)
 *   4  a further arena for the node                    not with PCPA_NOGROW
 *   5  the other nodes by distance: depot, zone, emptied depots, emptied
 *      caches, arena                                   not with PCPA_THISNODE
 *
 * With PCPA_RESERVE a node's reserve follows whatever the zone gave, in each step;
 * with PCPA_NOWAIT there are the steps of nowait.c instead; and more blocks than
 * the cache may hold come from the zone first, past the cache.
 *
 * O1  No lock is held between two steps.
 * O2  Orders that caches don't hold go to the zone, in and out.
 *
 * Cost: step 1 is two lock operations a batch, 3 a sweep, 4 the population of an
 * arena.  Failure: fewer blocks than asked for.
 */
#include "heap.h"
#include "pcp_tune.h"

#define SWEEP_TRIES 3u

static uint32_t direct_take(struct pcpi_request *req, struct pcpi_zone *z,
			    uint32_t *pfns, uint32_t n)
{
	uint32_t got = pcpi_direct_take(z, req->order, pfns, n);

	if (got > 0)
		/* relaxed: counter */
		pcpi_fetch_add_relaxed(&z->direct_allocs, got);
	return got;
}

static uint32_t cached_take(struct pcpi_request *req,
			    struct pcpi_cache *c, uint32_t *pfns, uint32_t n)
{
	uint32_t got = 0, more;

	pcpi_cache_settle(c);
	if (pcpi_zone_is_disabled(c->zone)) /* spares the refill: C9 */
		return direct_take(req, c->zone, pfns, n);
	while (got < n) {
		more = 0;
		if (pcpi_cache_len(c, req->order) > 0)
			more = pcpi_cache_pop(c, req->order, pfns + got, n - got);
		if (more == 0)
			more = pcpi_cache_refill(c, req->order, pfns + got,
						 n - got);
		if (more == 0)
			break;
		got += more;
	}
	return got;
}

/* Step 1. */
static uint32_t local_take(struct pcpi_request *req, uint32_t *pfns,
			   uint32_t n)
{
	struct pcpi_cache *c = NULL;

	if (n == 0)
		return 0;
	if (req->order < PCPI_PCP_ORDERS)
		c = pcpi_thread_cache(req->heap, req->named ? req->zone : NULL);
	/* Not where it has no memory for a cache here, or has just moved. */
	if (c && c->zone != req->zone)
		c = NULL;
	return c ? cached_take(req, c, pfns, n)
		 : direct_take(req, req->zone, pfns, n);
}

/* What the reserve keeps, for who may have it. */
static uint32_t reserve_take(struct pcpi_request *req, struct pcpi_zone *z,
			     uint32_t *pfns, uint32_t n)
{
	uint32_t got;

	if (n == 0 || !(req->flags & PCPA_RESERVE))
		return 0;
	got = pcpi_zone_take_reserve(z, req->order, pfns, n);
	/* relaxed: counter */
	pcpi_fetch_add_relaxed(&z->direct_allocs, got);
	return got;
}

static uint32_t zone_take(struct pcpi_request *req, struct pcpi_zone *z,
			  uint32_t *pfns, uint32_t n)
{
	uint32_t got;

	/* What the depots have is the reserve's while that lacks pages. */
	if (pcpi_zone_lacks_reserve(z) && !(req->flags & PCPA_RESERVE))
		pcpi_depots_empty(z);
	got = z == req->zone ? local_take(req, pfns, n)
			     : direct_take(req, z, pfns, n);
	return got + reserve_take(req, z, pfns + got, n - got);
}

/* Step 3; again where others took first what the sweep brought, for as often as
 * that can be meant well. */
static uint32_t swept_take(struct pcpi_request *req, struct pcpi_zone *z,
			   uint32_t *pfns, uint32_t n)
{
	uint32_t got = 0;
	unsigned tries;

	for (tries = 0; tries < SWEEP_TRIES && got < n; tries++) {
		if (!pcpi_exhaust_sweep(req, z))
			break;
		got += zone_take(req, z, pfns + got, n - got);
	}
	return got;
}

/* Step 4; without growth a last look, as another thread may have swept first. */
static uint32_t grown_take(struct pcpi_request *req, struct pcpi_zone *z,
			   uint32_t *pfns, uint32_t n)
{
	uint32_t got = 0;
	uint64_t seen;

	while (got < n) {
		/* acquire: pairs with zone.c's pcpi_zone_settle(): what is managed
		 * by then is found by the take below. */
		seen = pcpi_load_acquire(&z->managed_pages);
		got += zone_take(req, z, pfns + got, n - got);
		if (got < n && (req->flags & PCPA_NOGROW ||
				!pcpi_exhaust_grow(req, z, seen, n - got)))
			break;
	}
	return got;
}

/* Step 2; again where others took first, or moved on what was brought. */
static uint32_t merged_take(struct pcpi_request *req, struct pcpi_zone *z,
			    uint32_t *pfns, uint32_t n)
{
	uint32_t got = 0;
	unsigned tries;

	for (tries = 0; tries < SWEEP_TRIES && got < n; tries++) {
		if (pcpi_depots_empty(z) == 0)
			break;
		got += zone_take(req, z, pfns + got, n - got);
	}
	return got;
}

/* Steps 2 to 4 for a node. */
static uint32_t zone_exhaust(struct pcpi_request *req, struct pcpi_zone *z,
			     uint32_t *pfns, uint32_t n)
{
	uint32_t got = 0;

	pcpi_deferred_look(&req->heap->env);
	/* What the thread itself has needs no sweep. */
	pcpi_thread_flush_for(req->heap, z);
	got = merged_take(req, z, pfns, n);
	got += swept_take(req, z, pfns + got, n - got);
	got += grown_take(req, z, pfns + got, n - got);
	/* Growth of another thread's may have gone into caches, too. */
	got += swept_take(req, z, pfns + got, n - got);
	/* The time for sweeps may be over because this thread had no processor,
	 * while others moved all there is through their caches into depots. */
	return got + merged_take(req, z, pfns + got, n - got);
}

/* Step 5 for one node. */
static uint32_t foreign_take(struct pcpi_request *req,
			     struct pcpi_zone *z, uint32_t *pfns, uint32_t n)
{
	uint32_t got = zone_take(req, z, pfns, n);

	if (got < n)
		got += zone_exhaust(req, z, pfns + got, n - got);
	/* relaxed: counters */
	pcpi_fetch_add_relaxed(&z->numa_miss, got);
	pcpi_fetch_add_relaxed(&req->zone->numa_foreign, got);
	return got;
}

static uint32_t others_take(struct pcpi_request *req, uint32_t *pfns,
			    uint32_t n)
{
	struct pcpa_heap *heap = req->heap;
	const unsigned *order =
		&heap->fallback[req->zone->config.position * heap->nr_zones];
	uint32_t got = 0;
	unsigned i;

	for (i = 1; i < heap->nr_zones && got < n; i++)
		got += foreign_take(req, &heap->env.zones[order[i]], pfns + got,
				    n - got);
	return got;
}

static void watched_take(struct pcpa_heap *heap, unsigned order,
			 const uint32_t *pfns, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		pcpi_checks_take(&heap->checks, pfns[i], order,
				 pcpi_zone_of(&heap->env, pfns[i])->config.os_node);
}

static void levels_look(struct pcpa_heap *heap)
{
	pcpi_watch_zones(&heap->env.watch, heap->env.zones, heap->nr_zones);
}

/* Steps 1 to 5. */
static uint32_t any_take(struct pcpi_request *req, uint32_t *pfns, uint32_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(&req->heap->hot);
	uint32_t got;

	if (c && c->zone == req->zone && req->order < PCPI_PCP_ORDERS)
		pcpi_cache_expect_refill(c, req->order);
	pcpi_thread_look(req->heap);
	pcpi_deferred_look(&req->heap->env);
	got = zone_take(req, req->zone, pfns, n);
	if (got < n)
		got += zone_exhaust(req, req->zone, pfns + got, n - got);
	if (got < n && !(req->flags & PCPA_THISNODE))
		got += others_take(req, pfns + got, n - got);
	return got;
}

uint32_t pcpi_route_take(struct pcpi_request *req, uint32_t *pfns, uint32_t n)
{
	uint32_t got = req->flags & PCPA_NOWAIT ? pcpi_nowait_take(req, pfns, n)
						: any_take(req, pfns, n);

	if (got < n)
		pcpi_fetch_add_relaxed(&req->heap->failed, 1); /* relaxed: counter */
	if (req->heap->env.watched)
		watched_take(req->heap, req->order, pfns, got);
	if (!(req->flags & PCPA_NOWAIT)) {
		pcpi_heap_tick_poll(req->heap);
		levels_look(req->heap);
	}
	return got;
}

bool pcpi_route_at_once(struct pcpa_heap *heap, unsigned order, uint32_t *pfn)
{
	struct pcpi_cache *c = pcpi_hot_cache(&heap->hot);

	if (!c || order >= PCPI_PCP_ORDERS)
		return false;
	if (!pcpi_tune_is_taker(c, order))
		return false;
	pcpi_cache_expect_refill(c, order);
	if (pcpi_thread_look(heap) != c->zone)
		return false;
	pcpi_deferred_look(&heap->env);
	/* relaxed: what comes just now is for the next refill. */
	if (pcpi_hot_cache(&heap->hot) != c ||
	    pcpi_load_relaxed(&c->claim) != PCPI_CLAIM_NONE ||
	    pcpi_zone_lacks_reserve(c->zone) ||
	    pcpi_cache_refill_at_once(c, order, pfn, 1) == 0)
		return false;
	pcpi_heap_tick_poll(heap);
	levels_look(heap);
	return true;
}

bool pcpi_route_is_large(const struct pcpi_request *r, size_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(&r->heap->hot);
	uint64_t high = c && c->zone == r->zone
				? c->high
				: pcpi_zone_pageset(r->zone).high_min;

	return r->order < PCPI_PCP_ORDERS && !(r->flags & PCPA_NOWAIT) &&
	       n > high >> r->order && n > PCPI_CHUNK;
}

uint32_t pcpi_route_take_past(struct pcpi_request *req, uint32_t *pfns, uint32_t n)
{
	uint32_t got;

	pcpi_thread_look(req->heap);
	pcpi_deferred_look(&req->heap->env);
	got = pcpi_zone_take_bulk(req->zone, req->order, pfns, n, NULL);

	/* relaxed: counter */
	pcpi_fetch_add_relaxed(&req->zone->direct_allocs, got);
	if (req->heap->env.watched)
		watched_take(req->heap, req->order, pfns, got);
	levels_look(req->heap);
	return got;
}

static void block_give(struct pcpa_heap *heap, uint32_t pfn, unsigned order)
{
	struct pcpi_zone *z = pcpi_zone_of(&heap->env, pfn);
	struct pcpi_cache *c = NULL;

	if (heap->env.watched) {
		pcpi_fetch_add_relaxed(&z->direct_frees, 1); /* relaxed: counter */
		pcpi_watched_give(z, order, pfn);
		return;
	}
	if (order < PCPI_PCP_ORDERS)
		c = pcpi_thread_cache(heap, NULL);
	if (!c) {
		/* relaxed: counter */
		pcpi_fetch_add_relaxed(&z->direct_frees, 1);
		pcpi_direct_give(z, order, &pfn, 1);
		return;
	}
	pcpi_cache_settle(c);
	if (c->zone == z)
		pcpi_cache_push(c, order, &pfn, 1);
	else
		pcpi_cache_push_remote(c, z, order, &pfn, 1);
}

void pcpi_route_give(struct pcpa_heap *heap, uint32_t pfn, unsigned order)
{
	pcpi_thread_look(heap);
	pcpi_deferred_look(&heap->env);
	block_give(heap, pfn, order);
	levels_look(heap);
}
