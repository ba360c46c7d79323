/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sweep.c - draining all of a heap's caches.  Layer 5, part of heap.h.
 *
 * Owns: the drainer's side of the claim protocol (pcp.h, design.md D5).
 *
 *   lock DRAIN
 *   claim every cache                 one compare and swap each
 *   membarrier                        once: owners that read "no claim" before
 *                                     it have their mark visible after it
 *   membarrier for sequences          once: hits that read "no claim" begin again
 *   until the deadline: each claimed cache whose owner is out is emptied
 *   what is left stays pending: its owner flushes it at its next call; if it
 *                                     has ended meanwhile, it is out: emptied
 *   empty the depots
 *
 * SW1  One drainer a heap; while it waits for marks it holds no lock but DRAIN.
 * SW2  Every claim ends, in NONE or PENDING, before the lock is dropped.
 *
 * SW3  A claim of a cache without an owner doesn't end in PENDING: nobody would
 *     answer it.
 *
 * The caller's own cache needs no exception: it is not marked on slow paths
 * (C2), so it is found quiet.  With PCPA_HEAP_NO_IPI, where caches that have an
 * owner are only asked, the caller answers at once: requests of orders that
 * caches don't hold never come to it.
 *
 * Cost: one membarrier of each kind, which interrupts every processor that runs a
 * thread of the process, and a zone lock a batch of blocks.
 * Failure: caches that are late, counted in their busy_skipped.
 */
#include "annotate.h"
#include "heap.h"
#include "list.h"
#include "rcu.h"

uint64_t pcpi_heap_cached_pages(struct pcpa_heap *heap,
				const struct pcpi_zone *zone)
{
	struct pcpi_section section;
	uint64_t pages = 0, remote[heap->nr_zones];
	struct pcpi_cache *c;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		remote[z] = 0;
	section = pcpi_rcu_read_lock();
	pcpi_list_each(c, &heap->caches, registry) {
		pcpi_cache_remote_pages(c, remote);
		if (!zone || c->zone == zone)
			pages += pcpi_cache_count(c);
	}
	pcpi_rcu_read_unlock(section);
	for (z = 0; z < heap->nr_zones; z++)
		if (!zone || zone == &heap->env.zones[z])
			pages += remote[z];
	return pages;
}

/* With PCPA_HEAP_NO_IPI a cache with an owner is not claimed but asked, unless
 * its owner is known to mark it by exchange (disable.c). */
static bool cache_claim(const struct pcpa_heap *heap, struct pcpi_cache *c)
{
	/* acquire: pairs with thread.c's cache_offer_locked(). */
	if ((heap->options_flags & PCPA_HEAP_NO_IPI) &&
	    pcpi_load_acquire(&c->owner) && !pcpi_cache_off_answered(c)) {
		pcpi_cache_ask(c);
		return false;
	}
	return pcpi_cache_claim(c);
}

/* How many are claimed; *asked: the others. */
static unsigned claim_all(struct pcpa_heap *heap, unsigned *asked)
{
	struct pcpi_cache *c;
	unsigned n = 0;

	*asked = 0;
	/* No cache gets an owner between the question and the claim. */
	pcpi_lock_take(&heap->threads_lock);
	pcpi_list_each(c, &heap->caches, registry) {
		c->claimed = cache_claim(heap, c);
		n += c->claimed;
		*asked += !c->claimed;
	}
	pcpi_lock_drop(&heap->threads_lock);
	return n;
}

/* False: marks may be hidden in the processors' store buffers, or owners inside a
 * sequence.  In this order: a sequence that begins after the first barrier sees
 * the claim, one that began before it is cut short by the second. */
bool pcpi_heap_owners_show(const struct pcpa_heap *heap)
{
	if (heap->env.exchange || (heap->options_flags & PCPA_HEAP_NO_IPI))
		return true;
	return pcpi_sys->membarrier() == 0 &&
	       (!heap->env.rseq || pcpi_sys->membarrier_rseq() == 0);
}

/* One pass over the claimed caches; returns how many are still marked. */
static unsigned empty_quiet(struct pcpa_heap *heap, uint64_t *moved)
{
	struct pcpi_cache *c;
	unsigned left = 0;

	pcpi_list_each(c, &heap->caches, registry) {
		if (!c->claimed)
			continue;
		if (!pcpi_cache_claimed_quiet(c)) {
			left++;
			continue;
		}
		pcpi_cache_empty_claimed(c, moved);
		c->claimed = false;
	}
	return left;
}

/* False: its owner has ended since and is out. */
static bool cache_postpone(struct pcpi_cache *c, uint64_t *moved)
{
	/* acquire: pairs with thread.c's cache_offer_locked(). */
	if (pcpi_load_acquire(&c->owner)) {
		pcpi_cache_claim_postpone(c);
		return true;
	}
	pcpi_cache_empty_claimed(c, moved);
	return false;
}

/* Ends the claims that are left; returns how many stay pending. */
static unsigned postpone_rest(struct pcpa_heap *heap, uint64_t *moved)
{
	struct pcpi_cache *c;
	unsigned left = 0;

	/* No owner ends between the question and the answer: SW3. */
	pcpi_lock_take(&heap->threads_lock);
	pcpi_list_each(c, &heap->caches, registry)
		if (c->claimed) {
			left += cache_postpone(c, moved);
			c->claimed = false;
		}
	pcpi_lock_drop(&heap->threads_lock);
	return left;
}

static struct pcpi_swept caches_empty(struct pcpa_heap *heap,
				      uint64_t deadline_ns, uint64_t *moved)
{
	struct pcpi_swept swept;

	swept.late = claim_all(heap, &swept.asked);
	if (swept.late > 0 && pcpi_heap_owners_show(heap))
		while ((swept.late = empty_quiet(heap, moved)) > 0 &&
		       pcpi_sys->clock_ns() < deadline_ns)
			pcpi_sys->yield();
	if (swept.late > 0)
		swept.late = postpone_rest(heap, moved); /* SW2 */
	return swept;
}

/* DRAIN is held; adds to moved[zone]. */
static struct pcpi_swept sweep_locked(struct pcpa_heap *heap,
				      uint64_t deadline_ns, uint64_t *moved)
{
	struct pcpi_section section;
	struct pcpi_swept swept;
	unsigned z;

	section = pcpi_rcu_read_lock();
	pcpi_annotate_claim_begin();
	swept = caches_empty(heap, deadline_ns, moved);
	pcpi_annotate_claim_end();
	pcpi_rcu_read_unlock(section);
	pcpi_deferred_look(&heap->env);
	for (z = 0; z < heap->nr_zones; z++)
		moved[z] += pcpi_depots_empty(&heap->env.zones[z]);
	pcpi_counter_add(&heap->sweeps, 1);
	return swept;
}

struct pcpi_swept pcpi_sweep_run(struct pcpa_heap *heap, uint64_t wait_ns,
				 uint64_t *moved)
{
	struct pcpi_swept swept;

	pcpi_lock_take(&heap->drain_lock);
	swept = sweep_locked(heap, pcpi_sys->clock_ns() + wait_ns, moved);
	pcpi_lock_drop(&heap->drain_lock);
	return swept;
}

void pcpi_sweep_tell(struct pcpa_heap *heap, const uint64_t *moved)
{
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		if (moved[z] > 0 && pcpi_trace_on(&heap->env.trace))
			pcpi_trace_emit(&heap->env.trace, PCPA_EVENT_PCPU_DRAIN,
					(int)heap->env.zones[z].config.os_node, 0,
					moved[z], moved[z], 0);
	pcpi_watch_zones(&heap->env.watch, heap->env.zones, heap->nr_zones);
}

struct pcpi_swept pcpi_heap_sweep(struct pcpa_heap *heap, uint64_t wait_ns)
{
	uint64_t moved[heap->nr_zones];
	struct pcpi_swept swept;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		moved[z] = 0;
	if (heap->options_flags & PCPA_HEAP_NO_IPI)
		pcpi_thread_flush(heap);
	swept = pcpi_sweep_run(heap, wait_ns, moved);
	pcpi_sweep_tell(heap, moved);
	return swept;
}

bool pcpi_heap_sweep_until(struct pcpa_heap *heap, uint64_t seen_sweeps,
			   uint64_t deadline_ns, uint64_t *moved)
{
	bool mine;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		moved[z] = 0;
	while (!pcpi_lock_try(&heap->drain_lock)) {
		if (pcpi_sys->clock_ns() >= deadline_ns)
			return false;
		pcpi_sys->yield();
	}
	mine = heap->sweeps == seen_sweeps;
	if (mine)
		sweep_locked(heap, deadline_ns, moved);
	pcpi_lock_drop(&heap->drain_lock);
	pcpi_sweep_tell(heap, moved);
	return mine;
}

/* ---- Bounds that have fallen --------------------------------------------------- */

static bool any_above(struct pcpa_heap *heap, const struct pcpi_zone *zone,
		      uint32_t bound)
{
	struct pcpi_section section;
	struct pcpi_cache *c;
	bool above = false;

	section = pcpi_rcu_read_lock();
	pcpi_list_each(c, &heap->caches, registry)
		above |= c->zone == zone && pcpi_cache_count(c) > bound;
	pcpi_rcu_read_unlock(section);
	return above;
}

void pcpi_heap_bounds_enforce(struct pcpa_heap *heap,
			      const struct pcpi_zone *zone)
{
	uint32_t bound = pcpi_zone_pageset(zone).high_max;
	bool tight = pcpi_policy_is_tight(bound);
	struct pcpi_cache *c;

	if (pcpi_zone_is_disabled(zone)) /* empty; enable comes here again */
		return;
	if (any_above(heap, zone, bound))
		pcpi_heap_sweep(heap, 0);
	pcpi_lock_take(&heap->threads_lock);
	pcpi_list_each(c, &heap->caches, registry) {
		/* acquire: pairs with thread.c's cache_offer_locked(); relaxed: a cache
		 * that grows beyond the bound later reads it first. */
		if (c->zone == zone && pcpi_load_acquire(&c->owner) &&
		    (tight || pcpi_load_relaxed(&c->high) > bound))
			pcpi_cache_ask_look(c);
	}
	pcpi_lock_drop(&heap->threads_lock);
}
