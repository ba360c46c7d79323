/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * disable.c - keeping the caches of a node empty for a time.  Layer 5, part of
 * heap.h.
 *
 * Owns: the depth of a zone's disables, how many of them are done, and OFF in the
 * caches' claims (C9).
 *
 *   disable  lock DRAIN, THREADS
 *            depth + 1; the depots refuse puts; the numbers for caches are 0
 *            OFF into the claim of each cache: hits go the slow way, and there
 *            they see the depth
 *            sweep: whoever read the depth before has left its cache when the
 *            sweep empties it, and whoever comes later keeps its blocks out
 *            lock THREADS; one more is done
 *   enable   one less is done, depth - 1; at 0 the depots take puts, the numbers
 *            are those of the zone as it is now, and OFF goes
 *
 * DS1  A cache that is in the registry has OFF iff pcpi_heap_hits_off() of its
 *     zone: both change under the threads lock, and so is it added; all of a heap
 *     that a forked child can't use (thread.c).
 * DS2  After a disable that returned 0 until the enable that ends it, nothing of
 *     the zone is in a cache, an outbox or a depot.
 * DS3  A disable that fails takes its own depth back and no other's.
 * DS4  disables_done <= disable_depth; what is more of the latter are disables
 *     under way.  An enable ends one that is done, so that nobody's depth goes
 *     while he waits for owners.
 *
 * With PCPA_HEAP_NO_IPI no owner may be interrupted.  Each is asked after OFF was
 * set; once it has answered it doesn't hit, and marks by exchange, so that its
 * cache can be claimed without membarrier.  All caches of the heap are off then,
 * as those of other nodes may have outboxes for the disabled one.  A cache that is
 * empty says nothing: its owner may have read its claim before OFF.
 *
 * Concurrency: any thread; locks DRAIN and THREADS, inside them DEPOT and ZONE,
 * for the change of the depth; none while it waits.
 * Cost: a sweep; while disabled each call takes the zone's lock.
 * Failure: -ETIMEDOUT after 100 ms.
 * Proved by tests/unit/test_disable*.c, tests/conc/disable.c, tests/spin/.
 */
#include <errno.h>

#include "heap.h"
#include "list.h"
#include "rcu.h"

#define DISABLE_WAIT_NS UINT64_C(100000000)

static bool is_quiet_heap(const struct pcpa_heap *heap)
{
	return heap->options_flags & PCPA_HEAP_NO_IPI;
}

bool pcpi_heap_hits_off(const struct pcpa_heap *heap,
			const struct pcpi_zone *zone)
{
	unsigned z;
	bool any = false;

	/* relaxed: the child has one thread. */
	if (pcpi_load_relaxed(&heap->forked))
		return true;
	for (z = 0; z < heap->nr_zones; z++)
		any |= pcpi_zone_is_disabled(&heap->env.zones[z]);
	return is_quiet_heap(heap) ? any : pcpi_zone_is_disabled(zone);
}

/* DS1; a cache that goes off is asked where it can't be claimed. */
static void caches_switch_locked(struct pcpa_heap *heap)
{
	struct pcpi_cache *c;
	bool off;

	pcpi_list_each(c, &heap->caches, registry) {
		off = pcpi_heap_hits_off(heap, c->zone);
		if (off == pcpi_cache_is_off(c))
			continue;
		pcpi_cache_off(c, off);
		/* relaxed: owners come and go under the lock that is held. */
		if (off && is_quiet_heap(heap) && pcpi_load_relaxed(&c->owner))
			pcpi_cache_ask(c);
	}
}

/* Whether there is a disable for an enable to end: DS4. */
static bool any_done_locked(const struct pcpa_heap *heap,
			    const struct pcpi_zone *zone)
{
	bool all = true;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		if (!zone || zone == &heap->env.zones[z])
			all &= heap->env.zones[z].disables_done > 0;
	return all;
}

static void done_add_locked(struct pcpa_heap *heap,
			    const struct pcpi_zone *zone, int by)
{
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		if (!zone || zone == &heap->env.zones[z])
			heap->env.zones[z].disables_done += (uint32_t)by;
}

static void depth_add_locked(struct pcpa_heap *heap,
			     const struct pcpi_zone *zone, int by)
{
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		if (!zone || zone == &heap->env.zones[z])
			pcpi_zone_disable(&heap->env.zones[z], by);
	caches_switch_locked(heap);
}

static void locks_take(struct pcpa_heap *heap)
{
	/* No claim is in the making while OFF changes. */
	pcpi_lock_take(&heap->drain_lock);
	pcpi_lock_take(&heap->threads_lock);
}

static void locks_drop(struct pcpa_heap *heap)
{
	pcpi_lock_drop(&heap->threads_lock);
	pcpi_lock_drop(&heap->drain_lock);
}

/* Whether each owner that was asked has answered. */
static bool all_answered(struct pcpa_heap *heap)
{
	struct pcpi_section section;
	struct pcpi_cache *c;
	bool all = true;

	section = pcpi_rcu_read_lock();
	pcpi_list_each(c, &heap->caches, registry)
		/* acquire: pairs with thread.c's cache_offer_locked(). */
		all &= !pcpi_load_acquire(&c->owner) ||
		       pcpi_cache_off_answered(c);
	pcpi_rcu_read_unlock(section);
	return all;
}

/* The caller answers for itself. */
static void answers_await(struct pcpa_heap *heap, uint64_t deadline)
{
	pcpi_thread_flush(heap);
	while (!all_answered(heap) && pcpi_sys->clock_ns() < deadline)
		pcpi_sys->yield();
}

/* Threads that came while caches were off have lowered the bounds unseen. */
static void bounds_enforce(struct pcpa_heap *heap)
{
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		pcpi_heap_bounds_enforce(heap, &heap->env.zones[z]);
}

static void disable_done(struct pcpa_heap *heap, const struct pcpi_zone *zone)
{
	pcpi_lock_take(&heap->threads_lock);
	done_add_locked(heap, zone, 1);
	pcpi_lock_drop(&heap->threads_lock);
}

static void disable_undo(struct pcpa_heap *heap, const struct pcpi_zone *zone)
{
	locks_take(heap);
	depth_add_locked(heap, zone, -1); /* DS3 */
	locks_drop(heap);
	bounds_enforce(heap);
}

int pcpi_heap_disable(struct pcpa_heap *heap, struct pcpi_zone *zone)
{
	uint64_t deadline = pcpi_sys->clock_ns() + DISABLE_WAIT_NS, now;
	struct pcpi_swept swept;

	locks_take(heap);
	depth_add_locked(heap, zone, 1);
	locks_drop(heap);
	if (is_quiet_heap(heap))
		answers_await(heap, deadline);
	now = pcpi_sys->clock_ns();
	swept = pcpi_heap_sweep(heap, deadline - pcpi_min(now, deadline));
	/* An owner that was only asked may put a block into an empty cache. */
	if (swept.late + swept.asked > 0) {
		disable_undo(heap, zone);
		return -ETIMEDOUT;
	}
	disable_done(heap, zone);
	return 0;
}

int pcpi_heap_enable(struct pcpa_heap *heap, struct pcpi_zone *zone)
{
	bool any;

	locks_take(heap);
	any = any_done_locked(heap, zone);
	if (any) {
		done_add_locked(heap, zone, -1);
		depth_add_locked(heap, zone, -1);
	}
	locks_drop(heap);
	if (any)
		bounds_enforce(heap);
	return any ? 0 : -EINVAL;
}

void pcpi_heap_disable_forked(struct pcpa_heap *heap)
{
	struct pcpi_zone *zone;
	unsigned z;

	locks_take(heap);
	for (z = 0; z < heap->nr_zones; z++) {
		zone = &heap->env.zones[z];
		while (zone->disable_depth > zone->disables_done) /* DS4 */
			depth_add_locked(heap, zone, -1);
	}
	locks_drop(heap);
}
