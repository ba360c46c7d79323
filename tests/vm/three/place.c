/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * place.c - blocks lie where they were asked for, in pages of the kernel's own
 * opinion: on the calling thread's node, on that of PCPA_NODE(n), and with
 * PCPA_THISNODE on no other; of each order, one by one, in bulk, and as a range.
 */
#include "../vm.h"

#define BLOCKS 32u

static struct pcpa_heap *heap;
static void *blocks[BLOCKS];

/* Adds where they are, and frees them. */
static void blocks_end(struct vm_where *sum)
{
	struct vm_where w = vm_where(heap, blocks, BLOCKS);

	for (unsigned node = 0; node < VM_NODES; node++)
		sum->on[node] += w.on[node];
	sum->all += w.all;
	pcpa_free_bulk(heap, blocks, BLOCKS);
}

static void take_order(unsigned order, unsigned flags)
{
	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = pcpa_alloc(heap, order, flags);
		CHECK(blocks[i] != NULL);
	}
}

static void check_range(unsigned node, unsigned flags)
{
	char *range = pcpa_alloc_contig(heap, 700, 1, flags);

	CHECK(range != NULL);
	CHECK_EQ(vm_node_of(range), node);
	CHECK_EQ(vm_node_of(range + 699 * 4096), node);
	pcpa_free_contig(heap, range, 700);
}

/* By each call, with the flags. */
static void check_calls(unsigned node, unsigned flags, const char *asked)
{
	struct vm_where sum = {{0}, 0};

	for (unsigned order = 0; order <= 9; order += 3) {
		take_order(order, flags);
		blocks_end(&sum);
	}
	CHECK_EQ(pcpa_alloc_bulk(heap, 0, flags, blocks, BLOCKS), BLOCKS);
	blocks_end(&sum);
	check_range(node, flags);
	vm_row(&sum, "%s", asked);
	CHECK_EQ(sum.on[node], sum.all);
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
	heap = vm_heap(80 * MIB, NULL, 0);
	for (unsigned at = 0; at < 2; at++)
		vm_thread_on(at, 1, thread_on);
	CHECK_EQ(pcpa_heap_destroy(heap), 0);
	return 0;
}
