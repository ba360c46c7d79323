/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * contig.c - ranges of any number of pages.  Layer 5, part of heap.h.
 *
 * Owns: the order in which a range is looked for, node by node as blocks are
 * (route.c):
 *
 *   1  a range that is free                     one search, one hold of the lock
 *   2  under the CONTIG lock: the range that misses the fewest pages is isolated,
 *      then depots and caches are drained.  What it misses comes back by that, or
 *      is handed out: then such a page is noted, the range is given up, and the
 *      next is tried, which after the drain may be a free one
 *   3  an arena that has room for it            not with PCPA_NOGROW
 *
 * CG1 No page of a range is in anyone else's reach from the moment it is isolated,
 *     and a range is handed out whole or given back whole.
 * CG2 Step 2 ends: at most CANDIDATES ranges, a sweep of 100 us for each, and none
 *     where caches and depots don't hold as many pages as are missing.
 * CG3 The search takes the zone's lock, so it is in no read-side section: a fork's
 *     handler may have that lock while it waits for another whose holder waits
 *     for readers.  It works on a copy of where the arenas are.
 * CG4 A range lies in one arena.  What trims take meanwhile is not free, as the
 *     bits tell, but another arena may have come in its place: so where the range
 *     lies is asked once more when it is taken, from when on no arena can lose a
 *     part of it.  If it isn't in one, it goes back, and the next search, of which
 *     there are a few, sees the arenas anew.
 *
 * Concurrency: any thread.  Those who find a free range don't wait for each other;
 * in step 2 one at a time isolates, so that two can't hold parts of each other's
 * range.  The rest of the heap goes on: caches stay in use, and the zone's lock is
 * held for at most 64 chunks.
 * Cost: the search, some ns a candidate; step 2 up to four sweeps.
 * Failure: PCPI_NO_PFN.
 * Proved by tests/unit/test_contig*.c, tests/model/model_heap.c,
 * tests/conc/contig*.c.
 */
#include "heap.h"
#include "list.h"
#include "rcu.h"

#include "bits.h"

#define SWEEP_WAIT_NS UINT64_C(100000)
#define CANDIDATES 4u
#define TRIES 3u
#define SPANS 32u

/* Where an arena is. */
struct span {
	uint32_t from, end;
};

/* Adds to the SPANS with the lowest addresses, in their order. */
static unsigned span_add(struct span *spans, unsigned n, struct span s)
{
	unsigned i = pcpi_min(n, SPANS - 1);

	if (n == SPANS && spans[i].from <= s.from)
		return n;
	for (; i > 0 && spans[i - 1].from > s.from; i--)
		spans[i] = spans[i - 1];
	spans[i] = s;
	return pcpi_min(n + 1, SPANS);
}

/* The zone's next arenas at a page or after it: CG3. */
static unsigned spans_get(struct pcpi_zone *z, uint32_t from, struct span *spans)
{
	struct pcpi_section section;
	struct pcpi_arena *a;
	unsigned n = 0;

	section = pcpi_rcu_read_lock();
	pcpi_list_each(a, &z->arenas, link)
		if (a->first_pfn >= from)
			n = span_add(spans, n, (struct span){ a->first_pfn,
					a->first_pfn + a->pages });
	pcpi_rcu_read_unlock(section);
	return n;
}

/* The best candidate of the zone's arenas; none: missing is above pages. */
static struct pcpi_candidate zone_search(const struct pcpi_contig_request *want,
					 struct pcpi_zone *z,
					 const uint32_t *used, unsigned nr_used)
{
	struct pcpi_candidate best = { .missing = UINT32_MAX };
	struct span spans[SPANS];
	uint32_t from = 0;
	unsigned n, i;

	do {
		n = spans_get(z, from, spans);
		for (i = 0; i < n; i++) {
			struct pcpi_search s = {
				.from = spans[i].from,
				.end = spans[i].end,
				.pages = want->pages,
				.align_pages = want->align_pages,
				.used = used,
				.nr_used = nr_used,
			};

			pcpi_zone_search(z, &s, &best);
			from = spans[i].from + 1;
		}
	} while (n == SPANS);
	return best;
}

/* What must stay free: Z5. */
static uint64_t kept_pages(const struct pcpi_contig_request *want,
			   const struct pcpi_zone *z)
{
	return want->req.flags & PCPA_RESERVE
		       ? 0
		       : pcpi_load_relaxed(&z->reserve); /* relaxed: as in zone.c */
}

/* Of a range that was taken: CG4. */
static bool is_in_one_arena(struct pcpi_zone *z, uint32_t pfn, uint32_t pages)
{
	struct pcpi_section section;
	struct pcpi_arena *a;
	bool inside = false;

	section = pcpi_rcu_read_lock();
	pcpi_list_each(a, &z->arenas, link)
		inside |= pfn - a->first_pfn < a->pages &&
			  pages <= a->first_pfn + a->pages - pfn;
	pcpi_rcu_read_unlock(section);
	return inside;
}

/* False: it went back. */
static bool taken_keep(struct pcpi_zone *z, uint32_t pfn, uint32_t pages)
{
	bool inside = is_in_one_arena(z, pfn, pages);

	if (!inside)
		pcpi_zone_give_range(z, pfn, pages);
	return inside;
}

/* Step 1. */
static uint32_t free_take(const struct pcpi_contig_request *want,
			  struct pcpi_zone *z)
{
	struct pcpi_candidate best;
	unsigned tries;

	if (want->pages > pcpi_zone_take_range_max(z))
		return PCPI_NO_PFN;
	for (tries = 0; tries < TRIES; tries++) {
		best = zone_search(want, z, NULL, 0);
		if (best.missing > 0)
			break;
		if (pcpi_zone_take_range(z, best.pfn, want->pages,
					 kept_pages(want, z)) &&
		    taken_keep(z, best.pfn, want->pages))
			return best.pfn;
	}
	return PCPI_NO_PFN;
}

static uint64_t pages_aside(struct pcpa_heap *heap, const struct pcpi_zone *z)
{
	return pcpi_heap_cached_pages(heap, z) + pcpi_zone_depot_pages(z) +
	       pcpi_quarantine_pages(z->quarantine);
}

/* Isolates one range and drains what it misses: CG1.  *used: a page that is not
 * to be had, or PCPI_NO_PFN. */
static bool isolated_take(struct pcpa_heap *heap, struct pcpi_zone *z,
			  uint32_t pfn, uint32_t pages, uint64_t kept,
			  uint64_t *moved, uint32_t *used)
{
	if (!pcpi_zone_isolate(z, pfn, pages) && pages_aside(heap, z) > 0)
		pcpi_sweep_run(heap, SWEEP_WAIT_NS, moved);
	if (!pcpi_zone_isolate_end(z, kept, used))
		return false;
	*used = PCPI_NO_PFN;
	return taken_keep(z, pfn, pages);
}

static uint32_t candidates_take_locked(const struct pcpi_contig_request *want,
				       struct pcpi_zone *z, uint64_t *moved)
{
	struct pcpa_heap *heap = want->req.heap;
	struct pcpi_candidate best;
	uint32_t used[CANDIDATES];
	unsigned n;

	for (n = 0; n < CANDIDATES; n++) {
		best = zone_search(want, z, used, n);
		if (best.missing > want->pages ||
		    best.missing > pages_aside(heap, z))
			break; /* CG2 */
		if (isolated_take(heap, z, best.pfn, want->pages,
				  kept_pages(want, z), moved, &used[n]))
			return best.pfn;
	}
	return PCPI_NO_PFN;
}

/* Step 2. */
static uint32_t drained_take(const struct pcpi_contig_request *want,
			     struct pcpi_zone *z)
{
	struct pcpa_heap *heap = want->req.heap;
	uint64_t moved[heap->nr_zones];
	uint32_t pfn;
	unsigned i;

	for (i = 0; i < heap->nr_zones; i++)
		moved[i] = 0;
	if (heap->options_flags & PCPA_HEAP_NO_IPI)
		pcpi_thread_flush(heap);
	pcpi_lock_take(&heap->contig_lock);
	pfn = candidates_take_locked(want, z, moved);
	pcpi_lock_drop(&heap->contig_lock);
	pcpi_sweep_tell(heap, moved);
	return pfn;
}

/* Step 3: an arena in which the range fits wherever the arena begins. */
static bool zone_grow(const struct pcpi_contig_request *want,
		      struct pcpi_zone *z, uint64_t seen_managed)
{
	struct pcpa_heap *heap = want->req.heap;
	uint64_t chunk = UINT64_C(1) << heap->space.top_order, grown, bytes;
	uint64_t slack = want->align_pages > chunk ? want->align_pages - chunk : 0;

	bytes = (want->pages + slack) << heap->hot.page_shift;
	bytes = pcpi_round_up(bytes, (uint64_t)heap->space.granule_bytes);
	if (pcpi_zone_grow(z, seen_managed,
			   pcpi_max(bytes, (uint64_t)heap->arena_bytes), true,
			   &grown) != 0 &&
	    pcpi_zone_grow(z, seen_managed, bytes, true, &grown) != 0)
		return false;
	if (grown > 0 && pcpi_trace_on(&heap->env.trace))
		pcpi_trace_emit(&heap->env.trace, PCPA_EVENT_ARENA_GROW,
				(int)z->config.os_node, heap->space.top_order,
				grown, 0, 0);
	return true;
}

/* All steps for a node.  What a growth or a drain brings, others may take first:
 * again, for as often as that can be meant well. */
static uint32_t zone_take(const struct pcpi_contig_request *want,
			  struct pcpi_zone *z)
{
	unsigned tries = 0;
	uint64_t seen;
	uint32_t pfn;

	while (tries < TRIES) {
		/* acquire: pairs with pcpi_zone_settle(). */
		seen = pcpi_load_acquire(&z->managed_pages);
		pfn = free_take(want, z);
		if (pfn == PCPI_NO_PFN && seen >= want->pages)
			pfn = drained_take(want, z);
		if (pfn != PCPI_NO_PFN)
			return pfn;
		if (!(want->req.flags & PCPA_NOGROW) && zone_grow(want, z, seen))
			continue;
		if (pages_aside(want->req.heap, z) == 0)
			break;
		tries++;
	}
	return PCPI_NO_PFN;
}

static uint32_t others_take(const struct pcpi_contig_request *want)
{
	struct pcpa_heap *heap = want->req.heap;
	struct pcpi_zone *home = want->req.zone, *z;
	const unsigned *order =
		&heap->fallback[home->config.position * heap->nr_zones];
	uint32_t pfn = PCPI_NO_PFN;
	unsigned i;

	for (i = 1; i < heap->nr_zones && pfn == PCPI_NO_PFN; i++) {
		z = &heap->env.zones[order[i]];
		pfn = zone_take(want, z);
		if (pfn != PCPI_NO_PFN) {
			/* relaxed: counters */
			pcpi_fetch_add_relaxed(&z->numa_miss, 1);
			pcpi_fetch_add_relaxed(&home->numa_foreign, 1);
		}
	}
	return pfn;
}

uint32_t pcpi_contig_take(const struct pcpi_contig_request *want)
{
	struct pcpa_heap *heap = want->req.heap;
	uint32_t pfn;

	pcpi_thread_look(heap);
	pcpi_deferred_look(&heap->env);
	pfn = zone_take(want, want->req.zone);
	if (pfn == PCPI_NO_PFN && !(want->req.flags & PCPA_THISNODE))
		pfn = others_take(want);
	/* relaxed: counters */
	if (pfn == PCPI_NO_PFN) {
		pcpi_fetch_add_relaxed(&heap->failed, 1);
		return pfn;
	}
	pcpi_fetch_add_relaxed(&pcpi_zone_of(&heap->env, pfn)->direct_allocs, 1);
	if (heap->env.watched)
		pcpi_checks_take_range(&heap->checks, pfn, want->pages);
	pcpi_watch_zones(&heap->env.watch, heap->env.zones, heap->nr_zones);
	return pfn;
}

void pcpi_contig_give(struct pcpa_heap *heap, uint32_t pfn, uint32_t pages,
		      bool outer)
{
	struct pcpi_zone *z = pcpi_zone_of(&heap->env, pfn);

	pcpi_fetch_add_relaxed(&z->direct_frees, 1); /* relaxed: counter */
	if (!outer) {
		pcpi_defer_range(&heap->env, pfn, pages);
		return;
	}
	pcpi_thread_look(heap);
	if (heap->env.watched)
		pcpi_checks_give_range(&heap->checks, pfn, pages);
	pcpi_zone_give_range(z, pfn, pages);
	pcpi_watch_zones(&heap->env.watch, heap->env.zones, heap->nr_zones);
}
