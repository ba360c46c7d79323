/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spill.c - a node whose part of a heap is used up takes from the others, the
 * nearest first, and counts it: numa_hit and numa_foreign where it was asked, numa_miss
 * where it came from.  With PCPA_THISNODE it fails instead.
 */
#include "../vm.h"

#define EACH 2048u /* pages of 8 MiB, of each node */

static void *blocks[3 * EACH];
static struct pcpa_heap *heap;

/* Takes all pages, one by one. */
static void take_all(unsigned flags)
{
	size_t n = 0;

	while (n < 3 * EACH && (blocks[n] = pcpa_alloc(heap, 0, flags)))
		n++;
	CHECK_EQ(n, 3 * EACH);
	CHECK(!pcpa_alloc(heap, 0, flags) && errno == ENOMEM);
}

static void check_counters(unsigned asked)
{
	for (unsigned node = 0; node < 3; node++) {
		struct pcpa_stats s = vm_stats(heap, (int)node);
		bool here = node == asked;

		CHECK_EQ(s.numa_hit, here ? EACH : 0);
		CHECK_EQ(s.numa_foreign, here ? 2 * EACH : 0);
		CHECK_EQ(s.numa_miss, here ? 0 : EACH);
		CHECK_EQ(vm_text(heap, node, "numa_hit"), s.numa_hit);
		CHECK_EQ(vm_text(heap, node, "numa_foreign"), s.numa_foreign);
		CHECK_EQ(vm_text(heap, node, "numa_miss"), s.numa_miss);
	}
}

static void spill(unsigned asked, unsigned second, unsigned third,
		  unsigned flags, const char *how)
{
	const unsigned order[3] = {asked, second, third};

	heap = vm_heap(8 * MIB, NULL, PCPA_HEAP_FIXED);
	take_all(flags);
	for (unsigned i = 0; i < 3; i++) {
		struct vm_where w = vm_where(heap, blocks + i * EACH, EACH);

		CHECK_EQ(w.on[order[i]], EACH);
	}
	check_counters(asked);
	printf("| all pages of a heap of three nodes, %s | %u on node %u, then "
	       "%u on node %u, then %u on node %u |\n",
	       how, EACH, asked, EACH, second, EACH, third);
	pcpa_free_bulk(heap, blocks, 3 * EACH);
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
}

static void refused(unsigned node)
{
	size_t n = 0;

	heap = vm_heap(8 * MIB, NULL, PCPA_HEAP_FIXED);
	while (n < EACH && (blocks[n] = pcpa_alloc(heap, 0, PCPA_THISNODE)))
		n++;
	CHECK_EQ(n, EACH);
	CHECK_EQ(vm_where(heap, blocks, n).on[node], EACH);
	errno = 0;
	CHECK(!pcpa_alloc(heap, 0, PCPA_THISNODE) && errno == ENOMEM);
	printf("| one page more than node %u has, THISNODE | %zu on node %u, "
	       "then ENOMEM |\n",
	       node, n, node);
	pcpa_free_bulk(heap, blocks, n);
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
}

static void thread_on(unsigned node)
{
	if (node == 0)
		spill(0, 2, 1, 0, "thread on node 0");
	else
		spill(1, 0, 2, 0, "thread on node 1");
	spill(2, 0, 1, PCPA_NODE(2),
	      node == 0 ? "thread on node 0, NODE(2)"
			: "thread on node 1, NODE(2)");
	refused(node);
}

int main(void)
{
	vm_thread_on(0, 0, thread_on);
	vm_thread_on(1, 0, thread_on);
	return 0;
}
