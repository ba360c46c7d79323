/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep.c - draining all of a heap's caches.  Layer 5, part of heap.h.
 *
 * Owns: the drainer's side of the claim protocol (pcp.h, design.md D5).
 *
 *   lock DRAIN
 *   claim every cache                 one store each
 *   membarrier                        once: owners that read "no claim" before
 *                                     it have their mark visible after it
 *   until the deadline: each claimed cache whose owner is out is emptied
 *   what is left stays pending: its owner flushes it at its next call
 *   empty the depots
 *
 * W1  One drainer a heap; while it waits for marks it holds no lock but DRAIN.
 * W2  Every claim ends, in NONE or PENDING, before the lock is dropped.
 *
 * The caller's own cache needs no exception: it is not marked on slow paths
 * (C2), so it is found quiet.
 *
 * Cost: some 15-50 us with threads running, most of it membarrier.
 * Failure: -ETIMEDOUT, counted in the caches' busy_skipped.
 */
#include <errno.h>
#include <urcu/rculist.h>

#include "heap.h"
#include "rcu.h"

uint64_t pcpi_heap_cached_pages(struct pcpa_heap *heap,
				const struct pcpi_zone *zone)
{
	uint64_t pages = 0, own, remote[heap->nr_zones];
	struct pcpi_cache *c;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		remote[z] = 0;
	pcpi_rcu_read_lock();
	cds_list_for_each_entry_rcu(c, &heap->caches, registry) {
		own = pcpi_cache_pages(c, remote);
		if (!zone || c->zone == zone)
			pages += own;
	}
	pcpi_rcu_read_unlock();
	for (z = 0; z < heap->nr_zones; z++)
		if (!zone || zone == &heap->env.zones[z])
			pages += remote[z];
	return pages;
}

/* Whether a cache may be claimed: with PCPA_HEAP_NO_IPI only one without an
 * owner; the others are asked to flush at their next call. */
static bool may_claim(const struct pcpa_heap *heap, struct pcpi_cache *c)
{
	/* acquire: pairs with thread.c's cache_own() and caches_leave(). */
	if (!(heap->options_flags & PCPA_HEAP_NO_IPI) ||
	    !pcpi_load_acquire(&c->owner))
		return true;
	pcpi_cache_ask(c);
	return false;
}

static unsigned claim_all(struct pcpa_heap *heap)
{
	struct pcpi_cache *c;
	unsigned n = 0;

	cds_list_for_each_entry_rcu(c, &heap->caches, registry) {
		c->claimed = may_claim(heap, c) && pcpi_cache_claim(c);
		n += c->claimed;
	}
	return n;
}

/* One pass over the claimed caches; returns how many are still marked. */
static unsigned empty_quiet(struct pcpa_heap *heap, uint64_t *pages)
{
	struct pcpi_cache *c;
	unsigned left = 0;

	cds_list_for_each_entry_rcu(c, &heap->caches, registry) {
		if (!c->claimed)
			continue;
		if (!pcpi_cache_claimed_quiet(c)) {
			left++;
			continue;
		}
		*pages += pcpi_cache_empty_claimed(c);
		c->claimed = false;
	}
	return left;
}

static void postpone_rest(struct pcpa_heap *heap)
{
	struct pcpi_cache *c;

	cds_list_for_each_entry_rcu(c, &heap->caches, registry)
		if (c->claimed) {
			pcpi_cache_claim_postpone(c);
			c->claimed = false;
		}
}

static int caches_empty(struct pcpa_heap *heap, uint64_t wait_ns,
			uint64_t *pages)
{
	uint64_t deadline = pcpi_sys->clock_ns() + wait_ns;
	unsigned left;

	if (claim_all(heap) == 0)
		return 0;
	if (!heap->env.exchange)
		pcpi_sys->membarrier();
	while ((left = empty_quiet(heap, pages)) > 0 &&
	       pcpi_sys->clock_ns() < deadline)
		pcpi_sys->yield();
	if (left == 0)
		return 0;
	postpone_rest(heap); /* W2 */
	return -ETIMEDOUT;
}

int pcpi_heap_sweep(struct pcpa_heap *heap, uint64_t wait_ns, uint64_t *pages)
{
	unsigned z;
	int err;

	*pages = 0;
	pcpi_lock_take(&heap->drain_lock);
	pcpi_rcu_read_lock();
	err = caches_empty(heap, wait_ns, pages);
	pcpi_rcu_read_unlock();
	for (z = 0; z < heap->nr_zones; z++)
		*pages += pcpi_depots_empty(&heap->env.zones[z]);
	pcpi_lock_drop(&heap->drain_lock);
	return err;
}
