/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sweep.c - what a sweep asks of the system before it touches a cache, and
 * what is left where that is refused.  Races are for tests/conc/sweep.c.
 */
#include "../support/heap_fixture.h"
#include "heap.h"

static struct pcpi_sys sys;
static char asked[16]; /* 'b': membarrier, 'r': that for sequences */
static int first_rc, second_rc;

static int first(void)
{
	strcat(asked, "b");
	return first_rc;
}

static int second(void)
{
	strcat(asked, "r");
	return second_rc;
}

/* A heap whose sweeps need both, on whatever machine, and a block in the caller's
 * cache.  The caller is out of it, so that nothing depends on what the calls do. */
static struct pcpa_heap *heap_ready(unsigned flags)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, flags);

	heap->env.exchange = false;
	heap->env.rseq = true;
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	cr_assert_gt(stats_of(heap, -1).cached_pages, 0);
	sys = *pcpi_sys;
	sys.membarrier = first;
	sys.membarrier_rseq = second;
	pcpi_sys = &sys;
	return heap;
}

static struct pcpi_cache *own(struct pcpa_heap *heap)
{
	return pcpi_hot_cache(&heap->hot);
}

Test(sweep, asks_for_marks_and_then_for_sequences)
{
	struct pcpa_heap *heap = heap_ready(0);

	cr_expect_eq(pcpa_heap_drain(heap), 0);
	cr_expect_str_eq(asked, "br");
	cr_expect_eq(stats_of(heap, -1).cached_pages, 0);
	cr_expect_eq(own(heap)->claim, PCPI_CLAIM_NONE);
	heap_end(heap);
}

Test(sweep, asks_for_no_sequences_where_there_are_none)
{
	struct pcpa_heap *heap = heap_ready(0);

	heap->env.rseq = false;
	cr_expect_eq(pcpa_heap_drain(heap), 0);
	cr_expect_str_eq(asked, "b");
	heap_end(heap);
}

Test(sweep, asks_nothing_where_nobody_may_be_interrupted)
{
	struct pcpa_heap *heap = heap_ready(PCPA_HEAP_NO_IPI);

	cr_expect_eq(pcpa_heap_drain(heap), 0);
	cr_expect_str_eq(asked, "");
	heap_end(heap);
}

static void refused(const char *what)
{
	struct pcpa_heap *heap = heap_ready(0);
	uint64_t cached = stats_of(heap, -1).cached_pages;

	cr_expect_eq(pcpa_heap_drain(heap), -ETIMEDOUT);
	cr_expect_str_eq(asked, what);
	cr_expect_eq(stats_of(heap, -1).cached_pages, cached, "untouched");
	cr_expect_eq(own(heap)->claim, PCPI_CLAIM_PENDING);
	cr_expect_eq(stats_of(heap, -1).busy_skipped, 1);
	/* The owner answers at its next call. */
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	cr_expect_eq(own(heap)->claim, PCPI_CLAIM_NONE);
	heap_end(heap);
}

Test(sweep, leaves_caches_pending_where_marks_do_not_show)
{
	first_rc = -EPERM;
	refused("b");
}

Test(sweep, leaves_caches_pending_where_sequences_are_not_cut)
{
	second_rc = -EPERM;
	refused("br");
}
