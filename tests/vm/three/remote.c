/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remote.c - a thread that frees blocks of another node: they go home in batches, no
 * more than one batch of each order is ever kept by the freer, and the thread that
 * takes there gets them from the depot, without the zone's lock.
 */
#include "../vm.h"

#define BLOCKS 1024u

static struct pcpa_heap *heap;
static void *blocks[BLOCKS];
static unsigned order;

static void take(unsigned node)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		CHECK((blocks[i] = pcpa_alloc(heap, order, 0)) != NULL);
	CHECK_EQ(vm_where(heap, blocks, BLOCKS).on[node], BLOCKS);
}

/* Frees blocks of the other node. */
static void give(unsigned node)
{
	uint64_t batch = vm_text(heap, !node, "depot_batch:"), most = 0;
	struct pcpa_stats before = vm_stats(heap, !node), after;

	if (batch > 64) /* what an outbox has place for */
		batch = 64;
	for (unsigned i = 0; i < BLOCKS; i++) {
		pcpa_free(heap, blocks[i]);
		if (vm_cached(heap, !node) > most)
			most = vm_cached(heap, !node);
	}
	after = vm_stats(heap, !node);
	CHECK(most < batch);
	CHECK_EQ(after.depot_puts - before.depot_puts,
		 (BLOCKS << order) / batch);
	CHECK_EQ(after.zone_locks, before.zone_locks);
	if (node == 1)
		return;
	printf("| %u blocks of order %u of node %u, freed by a thread on node %u | "
	       "in the depot of node %u after %u batches of %" PRIu64
	       " pages; at most %" PRIu64 " pages in the freer's cache |\n",
	       BLOCKS, order, !node, node, !node,
	       (unsigned)((BLOCKS << order) / batch), batch, most);
}

/* What came home is taken again there. */
static void take_again(unsigned node)
{
	struct pcpa_stats before = vm_stats(heap, (int)node), after;

	take(node);
	after = vm_stats(heap, (int)node);
	CHECK(after.depot_gets > before.depot_gets);
	printf("order %u: %" PRIu64 " batches from the depot, %" PRIu64
	       " locks of the zone\n",
	       order, after.depot_gets - before.depot_gets,
	       after.zone_locks - before.zone_locks);
}

int main(void)
{
	heap = vm_heap(64 * MIB, NULL, PCPA_HEAP_FIXED);
	for (order = 0; order < 4; order++) {
		vm_thread_on(1, 0, take);
		vm_thread_on(0, 0, give);
		vm_thread_on(1, 1, take_again);
		pcpa_free_bulk(heap, blocks, BLOCKS);
		vm_thread_on(0, 1, take);
		vm_thread_on(1, 1, give);
		CHECK_EQ(pcpa_heap_drain(heap), 0);
	}
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
	return 0;
}
