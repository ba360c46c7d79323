/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * move.c - a thread that goes to another node: its blocks follow, and nothing stays
 * behind in a cache of the old one.
 *
 *   bursts    it takes more than its cache has: at the next refill
 *   pairs     it only ever hits its cache: at the first call after a tick, whoever
 *             makes that
 */
#include "../vm.h"

#define BURST 32u
#define ROUNDS 64u

static struct pcpa_heap *heap;
static void *blocks[ROUNDS * BURST];

/* Operations until a block of the node comes. */
static unsigned ops_until(unsigned node)
{
	unsigned ops = 0;
	int at;

	do {
		blocks[0] = pcpa_alloc(heap, 0, 0);
		CHECK(blocks[0] != NULL);
		at = vm_node_of(blocks[0]);
		pcpa_free(heap, blocks[0]);
		ops += 2;
	} while (at != (int)node && ops < 100000);
	return ops;
}

static void traffic(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pcpa_alloc_bulk(heap, 0, 0, blocks, BURST), BURST);
		pcpa_free_bulk(heap, blocks, BURST);
	}
}

static void check_left(unsigned node, const char *what, const char *when)
{
	struct vm_where w;

	CHECK_EQ(vm_cached(heap, node), 0);
	CHECK_EQ(pcpa_alloc_bulk(heap, 0, 0, blocks, BURST), BURST);
	w = vm_where(heap, blocks, BURST);
	CHECK_EQ(w.on[!node], BURST);
	pcpa_free_bulk(heap, blocks, BURST);
	printf("| a thread goes from node %u to %u, %s | on node %u %s; 0 pages "
	       "of node %u left in its caches |\n",
	       node, !node, what, !node, when, node);
}

/* What it has cached is used up first. */
static void bursts(unsigned from)
{
	uint64_t cached;
	unsigned n = 0;

	vm_run_on(from, 0);
	ops_until(from);
	traffic();
	cached = vm_cached(heap, from);
	CHECK(cached > 0);
	vm_run_on(!from, 1);
	do {
		blocks[n] = pcpa_alloc(heap, 0, 0);
		CHECK(blocks[n] != NULL);
	} while (vm_node_of(blocks[n++]) == (int)from && n < ROUNDS * BURST);
	CHECK_EQ(n, cached + 1);
	pcpa_free_bulk(heap, blocks, n);
	pcpa_thread_flush(heap); /* what it freed of the old node: one batch */
	check_left(from, "taking without giving back",
		   "after what its cache had");
}

static void pairs(unsigned from)
{
	vm_run_on(from, 0);
	traffic();
	vm_run_on(!from, 1);
	usleep(1100 * 1000);
	CHECK_EQ(pcpa_heap_tick(heap), 0);
	CHECK_EQ(ops_until(!from), 2);
	check_left(from, "taking and giving back one block",
		   "at its first call after a tick");
}

int main(void)
{
	heap = vm_heap(64 * MIB, NULL, 0);
	for (unsigned from = 0; from < 2; from++) {
		bursts(from);
		pairs(from);
	}
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
	return 0;
}
