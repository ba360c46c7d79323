/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * churn.c - random allocations and frees of all orders by several threads at
 * once, on a heap that grows under them: no block is handed out twice, and in
 * the end every page is back and has merged.
 */
#include "conc.h"

#define THREADS 4u
#define MS 1700u

struct churn_case {
	struct pcpa_heap *heap;
	uint64_t seed;
};

static void churner(unsigned index, void *arg)
{
	const struct churn_case *the = arg;
	struct conc_churn churn;

	conc_churn_init(&churn, the->heap, the->seed, index,
			pcpa_heap_max_order(the->heap));
	conc_churn_for(&churn, MS);
}

/* After all pages are back the largest blocks can be had again. */
static void merged(struct pcpa_heap *heap)
{
	unsigned order = pcpa_heap_max_order(heap);
	struct pcpa_stats s = conc_stats(heap);
	uint64_t n = s.free_pages >> order, got = 0;
	void **blocks = calloc(n + 1, sizeof(*blocks));

	CHECK(blocks);
	got = pcpa_alloc_bulk(heap, order, PCPA_NOGROW, blocks, n);
	CHECK_U64(got, ==, n);
	pcpa_free_bulk(heap, blocks, got);
	free(blocks);
}

static void churned(uint64_t seed, unsigned flags)
{
	struct churn_case the = { conc_growing_heap(128 * MIB, flags), seed };

	conc_run(THREADS, churner, &the);
	conc_heap_at_rest(the.heap);
	merged(the.heap);
	conc_heap_end(the.heap);
}

int main(void)
{
	uint64_t seed = conc_seed();

	churned(seed, 0);
	churned(seed, PCPA_HEAP_LEGACY);
	churned(seed, PCPA_HEAP_CHECKS);
	return 0;
}
