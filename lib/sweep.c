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
 * Cost: one membarrier, which interrupts every processor that runs a thread of
 * the process, and a zone lock a batch of blocks.
 * Failure: -ETIMEDOUT, counted in the caches' busy_skipped.
 */
#include <errno.h>

#include "annotate.h"
#include "heap.h"
#include "list.h"
#include "rcu.h"

uint64_t pcpi_heap_cached_pages(struct pcpa_heap *heap,
				const struct pcpi_zone *zone)
{
	uint64_t pages = 0, remote[heap->nr_zones];
	struct pcpi_cache *c;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		remote[z] = 0;
	pcpi_rcu_read_lock();
	pcpi_list_each(c, &heap->caches, registry) {
		pcpi_cache_remote_pages(c, remote);
		if (!zone || c->zone == zone)
			pages += pcpi_cache_count(c);
	}
	pcpi_rcu_read_unlock();
	for (z = 0; z < heap->nr_zones; z++)
		if (!zone || zone == &heap->env.zones[z])
			pages += remote[z];
	return pages;
}

/* With PCPA_HEAP_NO_IPI a cache with an owner is not claimed but asked. */
static bool cache_claim(const struct pcpa_heap *heap, struct pcpi_cache *c)
{
	/* acquire: pairs with thread.c's cache_disown(). */
	if ((heap->options_flags & PCPA_HEAP_NO_IPI) &&
	    pcpi_load_acquire(&c->owner)) {
		pcpi_cache_ask(c);
		return false;
	}
	return pcpi_cache_claim(c);
}

static unsigned claim_all(struct pcpa_heap *heap)
{
	struct pcpi_cache *c;
	unsigned n = 0;

	/* No cache gets an owner between the question and the claim. */
	pcpi_lock_take(&heap->threads_lock);
	pcpi_list_each(c, &heap->caches, registry) {
		c->claimed = cache_claim(heap, c);
		n += c->claimed;
	}
	pcpi_lock_drop(&heap->threads_lock);
	return n;
}

/* False: marks may be hidden in the processors' store buffers. */
static bool marks_show(const struct pcpa_heap *heap)
{
	if (heap->env.exchange || (heap->options_flags & PCPA_HEAP_NO_IPI))
		return true;
	return pcpi_sys->membarrier() == 0;
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
	/* acquire: pairs with thread.c's cache_disown(). */
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

static int caches_empty(struct pcpa_heap *heap, uint64_t wait_ns,
			uint64_t *moved)
{
	uint64_t deadline = pcpi_sys->clock_ns() + wait_ns;
	unsigned left = claim_all(heap);

	if (left > 0 && marks_show(heap))
		while ((left = empty_quiet(heap, moved)) > 0 &&
		       pcpi_sys->clock_ns() < deadline)
			pcpi_sys->yield();
	if (left > 0)
		left = postpone_rest(heap, moved); /* SW2 */
	return left > 0 ? -ETIMEDOUT : 0;
}

int pcpi_heap_sweep(struct pcpa_heap *heap, uint64_t wait_ns, uint64_t *pages)
{
	uint64_t moved[heap->nr_zones];
	unsigned z;
	int err;

	for (z = 0; z < heap->nr_zones; z++)
		moved[z] = 0;
	if (heap->options_flags & PCPA_HEAP_NO_IPI)
		pcpi_thread_flush(heap);
	pcpi_lock_take(&heap->drain_lock);
	pcpi_rcu_read_lock();
	pcpi_annotate_claim_begin();
	err = caches_empty(heap, wait_ns, moved);
	pcpi_annotate_claim_end();
	pcpi_rcu_read_unlock();
	for (z = 0; z < heap->nr_zones; z++)
		moved[z] += pcpi_depots_empty(&heap->env.zones[z]);
	pcpi_lock_drop(&heap->drain_lock);
	*pages = 0;
	for (z = 0; z < heap->nr_zones; z++) {
		*pages += moved[z];
		if (moved[z] > 0 && pcpi_trace_on(&heap->env.trace))
			pcpi_trace_emit(&heap->env.trace, PCPA_EVENT_PCPU_DRAIN,
					(int)heap->env.zones[z].config.os_node, 0,
					moved[z], moved[z], 0);
	}
	return err;
}
