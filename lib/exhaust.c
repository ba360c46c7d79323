/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exhaust.c - when a request that found nothing may sweep or grow.  Layer 5,
 * part of heap.h.
 *
 * Owns: the patience of a pool that is empty most of the time.  A receive ring
 * refills, fails and refills again; if each failure swept, it would interrupt
 * every thread of the process each time and find a handful of pages.
 *
 *   after a sweep that found less than    until 100 us have passed, or the
 *   a depot batch: nothing is swept       caches have gained a batch
 *   after growth failed twice in a row:   until 10 ms have passed; with several nodes,
 *   none is tried                         after each further failure twice as long, at
 *                                         most 1 s
 *
 * EX1  The depot and the zone are looked at by every request before it comes
 *     here: what was freed to them is never missed.
 * EX2  What went into caches since the last sweep is found after 100 us, or once
 *     it is a batch.  One page of it may complete a block of an order that caches
 *     don't hold: such a request waits for that moment instead of failing.
 * EX3  A request waits 100 us in all for other drainers, for marks, for EX2, and
 *     for a range that is isolated (contig.c), on all nodes together.
 *
 * EX4  Other nodes serve meanwhile who doesn't insist on one; and each try may populate
 *     what its node can't hold, and give it back (arena_node.c).
 *
 * Cost of a request that is refused: a clock, and two to four lines of each cache.
 * Failure: false.  Proved by tests/unit/test_exhaust.c, tests/conc/exhaust.c.
 */
#include "heap.h"

#define SWEEP_LULL_NS UINT64_C(100000)
#define GROW_LULL_NS UINT64_C(10000000)
#define GROW_LULL_DOUBLINGS 7u
#define GROW_LULL_MOST_NS UINT64_C(1000000000)
#define GROW_FAILURES 2u

/* relaxed (all of this file): hints; stale ones make a request sweep once more,
 * or leave it to the next. */
#define GET(field) pcpi_load_relaxed(&(field))

/* Whether caches have pages that the last sweep didn't leave there, and one of
 * them may complete a block. */
static bool worth_waiting(const struct pcpi_request *req,
			  const struct pcpi_zone *z, uint64_t cached)
{
	uint64_t pages = GET(z->free_pages) + pcpi_zone_depot_pages(z) + cached;

	return req->order >= PCPI_PCP_ORDERS && cached > GET(z->lull_left) &&
	       pages >> req->order > 0;
}

/* A range that is being looked for has pages out of the buddy (zone_range.c), and
 * may give them back; true: it was so. */
static bool isolation_wait(const struct pcpi_request *req,
			   const struct pcpi_zone *z)
{
	bool was = false;

	/* acquire: pairs with zone_range.c's isolation_over(). */
	while (pcpi_load_acquire(&z->isolated.got) > 0 &&
	       pcpi_sys->clock_ns() < req->deadline_ns) {
		was = true;
		pcpi_sys->yield();
	}
	return was;
}

static bool sweep_due(const struct pcpi_request *req, const struct pcpi_zone *z)
{
	uint64_t since = GET(z->lull_ns), now, cached;

	for (;;) {
		cached = pcpi_heap_cached_pages(req->heap, z);
		if (cached == 0)
			return false;
		now = pcpi_sys->clock_ns();
		if (since == 0 || now - since >= SWEEP_LULL_NS ||
		    cached >= GET(z->lull_left) + GET(z->pageset.depot_batch))
			return true;
		if (now >= req->deadline_ns || !worth_waiting(req, z, cached))
			return false;
		pcpi_sys->yield();
	}
}

/* A zone for which the sweep found less than a batch is left alone for a while. */
static void lulls_begin(struct pcpa_heap *heap, const uint64_t *moved)
{
	uint64_t now = pcpi_sys->clock_ns();
	unsigned i;

	for (i = 0; i < heap->nr_zones; i++) {
		struct pcpi_zone *z = &heap->env.zones[i];
		bool little = moved[i] < GET(z->pageset.depot_batch);

		/* relaxed (both): as above. */
		pcpi_store_relaxed(&z->lull_left,
				   little ? pcpi_heap_cached_pages(heap, z) : 0);
		pcpi_store_relaxed(&z->lull_ns, little ? now : 0);
	}
}

bool pcpi_exhaust_sweep(struct pcpi_request *req, struct pcpi_zone *z)
{
	struct pcpa_heap *heap = req->heap;
	uint64_t moved[heap->nr_zones], seen = GET(heap->sweeps);

	if (req->deadline_ns == 0)
		req->deadline_ns = pcpi_sys->clock_ns() + SWEEP_LULL_NS;
	if (!sweep_due(req, z))
		return isolation_wait(req, z);
	if (pcpi_heap_sweep_until(heap, seen, req->deadline_ns, moved))
		lulls_begin(heap, moved);
	return true;
}

/* Enough for n blocks, and not less than the heap's step. */
static uint64_t growth_bytes(const struct pcpi_request *req,
			     uint64_t seen_managed, uint64_t n)
{
	unsigned shift = req->heap->hot.page_shift;
	uint64_t step = pcpi_clamp(seen_managed << shift,
				   (uint64_t)req->heap->arena_bytes,
				   PCPI_GROWTH_BYTES_MAX);

	return pcpi_max(n << (req->order + shift), step);
}

static uint64_t grow_lull_ns(const struct pcpa_heap *heap, uint32_t failures)
{
	uint32_t more = pcpi_min(failures - GROW_FAILURES, GROW_LULL_DOUBLINGS);

	if (heap->nr_zones == 1) /* EX4 */
		return GROW_LULL_NS;
	return pcpi_min(GROW_LULL_NS << more, GROW_LULL_MOST_NS);
}

static bool grow_due(const struct pcpa_heap *heap, const struct pcpi_zone *z,
		     uint64_t seen_managed)
{
	uint32_t failures = GET(z->grow_failures);

	if (seen_managed >= z->config.max_pages)
		return false;
	return failures < GROW_FAILURES ||
	       pcpi_sys->clock_ns() - GET(z->grow_failed_ns) >=
		       grow_lull_ns(heap, failures);
}

bool pcpi_exhaust_grow(struct pcpi_request *req, struct pcpi_zone *z,
		       uint64_t seen_managed, uint64_t n)
{
	struct pcpi_trace *trace = &req->heap->env.trace;
	uint64_t grown;
	uint32_t failures = GET(z->grow_failures);

	if (!grow_due(req->heap, z, seen_managed))
		return false;
	if (pcpi_zone_grow(z, seen_managed, growth_bytes(req, seen_managed, n),
			   false, &grown) != 0) {
		/* relaxed: as above. */
		pcpi_store_relaxed(&z->grow_failed_ns, pcpi_sys->clock_ns());
		/* acquire/release: pairs with itself; those that were refused together
		 * count as one. */
		(void)pcpi_cas_acq_rel(&z->grow_failures, &failures, failures + 1);
		return false;
	}
	pcpi_store_relaxed(&z->grow_failures, 0); /* relaxed: as above */
	if (grown > 0 && pcpi_trace_on(trace))
		pcpi_trace_emit(trace, PCPA_EVENT_ARENA_GROW,
				(int)z->config.os_node, req->order, grown, 0, 0);
	return true;
}
