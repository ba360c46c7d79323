/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * steps.c - what somebody sees who looks after any single instruction of a call
 * (steps.h).
 *
 *   counts      statistics: no more is free, cached or used than there is, and no
 *               more blocks were allocated and freed than calls have begun with
 *   isolations  an isolation that ends between any two instructions of a request
 *               with PCPA_NOWAIT, and such a request between any two of its end:
 *               the request is served or told to try again, never that there is
 *               no memory
 */
#include "steps.h"

#if STEPS

static struct pcpa_heap *heap;

/* ---- Counts ----------------------------------------------------------------- */

#define BULK 70u /* more than a batch */

static uint64_t allocs_begun, frees_begun;
static void *blocks[BULK];

static void counts_look(void)
{
	struct pcpa_stats s;

	pcpi_stats_collect(heap, NULL, &s);
	CHECK_U64(s.free_pages, <=, s.managed_pages);
	CHECK_U64(s.cached_pages, <=, s.managed_pages);
	CHECK_U64(s.depot_pages, <=, s.managed_pages);
	CHECK_U64(s.used_pages, <=, s.managed_pages);
	CHECK_U64(s.alloc_total, <=, allocs_begun);
	CHECK_U64(s.free_total, <=, frees_begun);
}

static void take_one(unsigned order, unsigned flags, unsigned i)
{
	allocs_begun++;
	steps_begin();
	blocks[i] = pcpa_alloc(heap, order, flags);
	steps_end();
	CHECK(blocks[i]);
}

static void give_one(unsigned i)
{
	frees_begun++;
	steps_begin();
	pcpa_free(heap, blocks[i]);
	steps_end();
}

static void take_and_give_many(unsigned order, unsigned flags)
{
	size_t n;

	allocs_begun += BULK;
	steps_begin();
	n = pcpa_alloc_bulk(heap, order, flags, blocks, BULK);
	steps_end();
	CHECK(n == BULK);
	frees_begun += BULK;
	steps_begin();
	pcpa_free_bulk(heap, blocks, BULK);
	steps_end();
}

/* A batch comes into the cache, and goes: into the depot, and then to the zone. */
static void batch_pass(unsigned order, unsigned flags)
{
	CHECK(pcpa_heap_drain(heap) == 0);
	take_one(order, flags, 0);
	take_one(order, flags, 1);
	give_one(0);
	give_one(1);
	steps_begin();
	CHECK(pcpa_thread_flush(heap) == 0);
	steps_end();
	take_one(order, flags, 0); /* from the depot */
	give_one(0);
}

/* A heap that grows by the first call. */
static void growth_counts(void)
{
	struct pcpa_heap *other = conc_growing_heap(2 * MIB, 0);

	/* A thread's first call registers it, with signals blocked. */
	pcpa_free(other, pcpa_alloc(other, 0, 0));
	heap = conc_growing_heap(2 * MIB, 0);
	take_one(0, 0, 0);
	give_one(0);
	conc_heap_end(heap);
	conc_heap_end(other);
}

/* One whose caches take batches. */
static void batch_counts(void)
{
	heap = conc_heap(64 * MIB, 0);
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	allocs_begun++;
	frees_begun++;
	batch_pass(0, PCPA_NOWAIT);
	batch_pass(1, 0);
	take_and_give_many(0, 0);
	conc_heap_end(heap);
}

static void counts(void)
{
	steps_setup(counts_look);
	growth_counts();
	allocs_begun = frees_begun = 0;
	batch_counts();
	fprintf(stderr, "counts: %" PRIu64 " steps\n", steps_taken);
}

/* ---- Isolations ------------------------------------------------------------------ */

static struct pcpi_zone *zone;
static unsigned before_end; /* steps */
static bool ended, had, refused;

/* Served, or told to try again. */
static void served_or_not_yet(void *block)
{
	CHECK(block || errno == EAGAIN);
	had |= block != NULL;
	refused |= !block;
	pcpa_free(heap, block);
}

static void all_isolate(void)
{
	CHECK(pcpi_zone_isolate(zone, zone->first_pfn,
				(uint32_t)zone->managed_pages));
	ended = false;
}

static void all_end(void)
{
	uint32_t missing;

	CHECK(!pcpi_zone_isolate_end(zone, UINT64_MAX, &missing));
	ended = true;
}

static void end_at_a_step(void)
{
	if (before_end > 0) {
		before_end--;
	} else if (!ended && pcpi_lock_try(&zone->lock)) {
		pcpi_lock_drop(&zone->lock);
		all_end();
		steps_over = true;
	}
}

/* False: the request has not so many steps. */
static bool ended_within(unsigned steps)
{
	bool within;
	void *block;

	all_isolate();
	before_end = steps;
	steps_begin();
	block = pcpa_alloc(heap, 9, PCPA_NOWAIT);
	within = ended;
	steps_end();
	if (!within)
		all_end();
	served_or_not_yet(block);
	return within;
}

static void request_at_a_step(void)
{
	served_or_not_yet(pcpa_alloc(heap, 9, PCPA_NOWAIT));
}

static void isolations(void)
{
	unsigned steps = 0;

	heap = conc_heap(2 * MIB, 0);
	zone = &heap->env.zones[0];
	steps_setup(end_at_a_step);
	while (ended_within(steps))
		steps++;
	CHECK(had && refused);
	steps_setup(request_at_a_step);
	had = refused = false;
	all_isolate();
	steps_begin();
	all_end();
	steps_end();
	CHECK(had && refused);
	fprintf(stderr, "isolations: %u steps of a request\n", steps);
	conc_heap_end(heap);
}

#endif

int main(void)
{
#if STEPS
	counts();
	isolations();
	return 0;
#else
	fprintf(stderr, "no steps here: skipped\n");
	return 77;
#endif
}
