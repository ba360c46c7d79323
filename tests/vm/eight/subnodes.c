/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * subnodes.c - nodes that are parts of a package, one of them without memory: each
 * thread's blocks lie on its node, those of a thread on the one without memory on
 * a node of its package, and a full node's requests go to its own package first.
 */
#include "../vm.h"

#define EACH 2u /* blocks of 2 MiB a node */
#define EMPTY 3u

static struct pcpa_heap *heap;

static void one_each(unsigned node)
{
	void *blocks[EACH];
	struct vm_where w;

	for (unsigned i = 0; i < EACH; i++) {
		blocks[i] = pcpa_alloc(heap, 9, PCPA_THISNODE);
		CHECK(blocks[i]);
		memset(blocks[i], 1, 2 * MIB);
	}
	w = vm_where(heap, blocks, EACH);
	if (node == EMPTY)
		CHECK_EQ(w.on[0] + w.on[1] + w.on[2], EACH);
	else
		CHECK_EQ(w.on[node], EACH);
	pcpa_free_bulk(heap, blocks, EACH);
}

/* What a package has, asked of one of its nodes. */
static void spill(unsigned from)
{
	void *blocks[4 * EACH];
	struct vm_where w;
	unsigned first = from / 4 * 4;
	uint64_t foreign = vm_stats(heap, (int)from).numa_foreign;

	CHECK_EQ(pcpa_alloc_bulk(heap, 9, PCPA_NODE(from), blocks, 4 * EACH),
		 4 * EACH);
	w = vm_where(heap, blocks, 4 * EACH);
	for (unsigned node = first; node < first + 4; node++)
		CHECK_EQ(w.on[node], EACH);
	CHECK_EQ(vm_stats(heap, (int)from).numa_foreign - foreign, 3 * EACH);
	pcpa_free_bulk(heap, blocks, 4 * EACH);
	CHECK_EQ(pcpa_heap_drain(heap), 0);
}

int main(void)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	heap = vm_heap(EACH * 2 * MIB, NULL, PCPA_HEAP_FIXED | PCPA_HEAP_BOUND);
	CHECK_EQ(pcpa_stats_read(heap, (int)EMPTY, &s), -EINVAL);
	CHECK(!pcpa_alloc(heap, 0, PCPA_NODE(EMPTY)) && errno == EINVAL);
	for (unsigned node = 0; node < VM_NODES; node++)
		vm_thread_on(node, 0, one_each);
	for (unsigned node = 4; node < 8; node++)
		spill(node);
	CHECK_EQ(vm_stats(heap, -1).misplaced_pages, 0);
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
	return 0;
}
