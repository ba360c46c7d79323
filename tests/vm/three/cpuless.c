/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpuless.c - a node without CPUs gives huge pages as any other, and what a cache
 * may hold of it is the low watermark over all processors of the machine, where
 * that of a node with processors is divided by its own.
 */
#include "../vm.h"

#define CPUS 4u      /* of the machine */
#define NODE_CPUS 2u /* of nodes 0 and 1 */

static unsigned hugetlb[3];

static int count_arena(const struct pcpa_arena_info *arena, void *arg)
{
	(void)arg;
	CHECK_EQ(vm_node_of(arena->base), arena->node);
	if (arena->backing == PCPA_BACKING_HUGETLB)
		hugetlb[arena->node] += (unsigned)(arena->bytes / (2 * MIB));
	return 0;
}

/* Has the thread make a cache of each node. */
static void touch(struct pcpa_heap *heap)
{
	for (unsigned node = 0; node < 3; node++)
		pcpa_free(heap, pcpa_alloc(heap, 0, PCPA_NODE(node)));
}

int main(void)
{
	struct pcpa_heap *heap;

	vm_run_on(0, 0);
	heap = vm_heap(160 * MIB, NULL, 0);
	CHECK_EQ(pcpa_for_each_arena(heap, count_arena, NULL), 0);
	touch(heap);
	for (unsigned node = 0; node < 3; node++) {
		unsigned sharers = node == 2 ? CPUS : NODE_CPUS;
		struct pcpa_stats s = vm_stats(heap, (int)node);

		CHECK_EQ(hugetlb[node], 80);
		CHECK_EQ(vm_text(heap, node, "high_min:"),
			 s.low_pages / sharers);
		CHECK_EQ(vm_text(heap, node, "high_max:"),
			 s.managed_pages / 8 / sharers);
		printf("| a cache's bounds for node %u, which has %u processors | "
		       "low watermark %" PRIu64 " / %u = %" PRIu64
		       " pages, at most 1/8 / %u = %" PRIu64
		       "; %u huge pages of node %u |\n",
		       node, node == 2 ? 0 : NODE_CPUS, s.low_pages, sharers,
		       vm_text(heap, node, "high_min:"), sharers,
		       vm_text(heap, node, "high_max:"), hugetlb[node], node);
	}
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
	return 0;
}
