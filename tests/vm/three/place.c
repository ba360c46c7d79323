/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place.c - blocks lie where they were asked for, in pages of the kernel's own
 * opinion: on the calling thread's node, on that of PCPA_NODE(n), and with
 * PCPA_THISNODE on no other; of each order, one by one, in bulk, and as a range.
 */
#include "../vm.h"

#define BLOCKS 64u

static struct pcpa_heap *heap;
static void *blocks[BLOCKS];

static void check_all_on(unsigned node, const char *how, const char *asked)
{
	struct vm_where w = vm_where(heap, blocks, BLOCKS);

	vm_row(&w, "%s, %s", how, asked);
	CHECK_EQ(w.on[node], BLOCKS);
	pcpa_free_bulk(heap, blocks, BLOCKS);
}

/* By each call, with the flags. */
static void check_calls(unsigned node, unsigned flags, const char *asked)
{
	void *range;

	for (unsigned order = 0; order <= 9; order += 3) {
		char how[32];

		for (unsigned i = 0; i < BLOCKS; i++) {
			blocks[i] = pcpa_alloc(heap, order, flags);
			CHECK(blocks[i] != NULL);
			memset(blocks[i], 1, (size_t)4096 << order);
		}
		snprintf(how, sizeof(how), "order %u", order);
		check_all_on(node, how, asked);
	}
	CHECK_EQ(pcpa_alloc_bulk(heap, 0, flags, blocks, BLOCKS), BLOCKS);
	check_all_on(node, "in bulk", asked);
	range = pcpa_alloc_contig(heap, 700, 1, flags);
	CHECK(range != NULL);
	CHECK_EQ(vm_node_of(range), node);
	CHECK_EQ(vm_node_of((char *)range + 699 * 4096), node);
	pcpa_free_contig(heap, range, 700);
}

static void thread_on(unsigned at)
{
	char asked[64];

	snprintf(asked, sizeof(asked), "thread on node %u", at);
	check_calls(at, 0, asked);
	snprintf(asked, sizeof(asked), "thread on node %u, THISNODE", at);
	check_calls(at, PCPA_THISNODE, asked);
	for (unsigned node = 0; node < 3; node++) {
		snprintf(asked, sizeof(asked), "thread on node %u, NODE(%u)",
			 at, node);
		check_calls(node, PCPA_NODE(node), asked);
		snprintf(asked, sizeof(asked),
			 "thread on node %u, NODE(%u) and THISNODE", at, node);
		check_calls(node, PCPA_NODE(node) | PCPA_THISNODE, asked);
	}
}

int main(void)
{
	heap = vm_heap(160 * MIB, NULL, 0);
	for (unsigned at = 0; at < 2; at++)
		vm_thread_on(at, 1, thread_on);
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
	return 0;
}
