/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * move.c - a thread that goes to another node: its blocks follow, and nothing stays
 * behind in a cache of the old one.
 *
 *   bursts    it takes more than its cache has: at the next refill
 *   pairs     it only ever hits its cache: at the first call after a tick, whoever
 *             makes that
 *   hits      the same where nothing ticks: after 4,096 allocations
 *   handle    the same of a handle of pcpalloc/inline.h
 *   frees     it only frees into its cache: before that is full
 */
#include "../vm.h"

#include <pcpalloc/inline.h>

#define BURST 32u
#define ROUNDS 64u
#define BOUND 4096u /* pcpalloc.h */
#define MANY 6000u

static struct pcpa_heap *heap;
static void *blocks[ROUNDS * BURST], *many[MANY];

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

/* At home there, with something in its cache; a tick, if there was one, is answered. */
static void settle(unsigned from)
{
	vm_run_on(from, 0);
	ops_until(from);
	traffic();
	CHECK_EQ(ops_until(from), 2);
	CHECK(vm_cached(heap, from) > 0);
}

/* What it has cached is used up first. */
static void bursts(unsigned from)
{
	uint64_t cached;
	unsigned n = 0;

	settle(from);
	cached = vm_cached(heap, from);
	vm_run_on(!from, 1);
	do {
		blocks[n] = pcpa_alloc(heap, 0, 0);
		CHECK(blocks[n] != NULL);
	} while (vm_node_of(blocks[n++]) == (int)from && n < ROUNDS * BURST);
	CHECK(n <= cached + 1);
	pcpa_free_bulk(heap, blocks, n);
	pcpa_thread_flush(heap); /* what it freed of the old node: one batch */
	check_left(from, "taking without giving back",
		   "after what its cache had");
}

static void pairs(unsigned from)
{
	settle(from);
	vm_run_on(!from, 1);
	usleep(1100 * 1000);
	CHECK_EQ(pcpa_heap_tick(heap), 0);
	CHECK_EQ(ops_until(!from), 2);
	check_left(from, "taking and giving back one block",
		   "at its first call after a tick");
}

static void pairs_more(void)
{
	for (unsigned i = 0; i < BOUND; i++)
		pcpa_free(heap, pcpa_alloc(heap, 0, 0));
}

static void hits(unsigned from)
{
	unsigned ops;

	settle(from);
	vm_run_on(!from, 1);
	ops = ops_until(!from);
	printf("%u operations\n", ops);
	CHECK(ops <= 2 * BOUND);
	pairs_more(); /* what was in its hand */
	check_left(from, "the same, and nothing ticks",
		   "after 4096 allocations at most");
}

static void handle(unsigned from)
{
	struct pcpa_cache cache;
	unsigned n = 0;
	int at;

	settle(from);
	cache = pcpa_cache_self(heap);
	CHECK(pcpa_cache_is_inline(&cache));
	vm_run_on(!from, 1);
	do {
		blocks[0] = pcpa_cache_alloc(&cache, 0, 0);
		CHECK(blocks[0] != NULL);
		at = vm_node_of(blocks[0]);
		pcpa_cache_free(&cache, blocks[0]);
		n++;
	} while (at == (int)from && n <= BOUND);
	printf("%u allocations\n", n);
	CHECK_EQ(at, !from);
	CHECK(n > 1); /* a new handle hits */
	pairs_more();
	check_left(from, "the same by a handle of inline.h, and nothing ticks",
		   "after 4096 allocations at most");
}

static void frees(unsigned from)
{
	unsigned n;

	settle(from);
	CHECK_EQ(pcpa_alloc_bulk(heap, 0, 0, many, MANY), MANY);
	traffic();
	vm_run_on(!from, 1);
	for (n = 0; n < MANY && vm_cached(heap, from) > 0; n++)
		pcpa_free(heap, many[n]);
	printf("%u frees\n", n);
	CHECK(n < MANY);
	pcpa_free_bulk(heap, many + n, MANY - n);
	CHECK_EQ(pcpa_thread_flush(heap), 0); /* less than a batch, in its outbox */
	check_left(from, "only giving back, and nothing ticks",
		   "before its cache is full");
}

int main(void)
{
	heap = vm_heap(64 * MIB, NULL, 0);
	for (unsigned from = 0; from < 2; from++) {
		bursts(from);
		pairs(from);
		hits(from);
		handle(from);
		frees(from);
	}
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
	return 0;
}
