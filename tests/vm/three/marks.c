/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * marks.c - the watermarks of a node are those of the memory that it really has in
 * the heap: they rise with growth, sink with a trim, and don't know of the bound.
 */
#include "../vm.h"

#define FIRST (8 * MIB)
#define BLOCKS 20u /* of 2 MiB */

static void *blocks[BLOCKS];

static uint64_t root(uint64_t x)
{
	uint64_t r = 0;

	while ((r + 1) * (r + 1) <= x)
		r++;
	return r;
}

/* As Linux has them for so many pages. */
static void check_marks(struct pcpa_heap *heap, unsigned node)
{
	struct pcpa_stats s = vm_stats(heap, (int)node);
	uint64_t min = root(16 * s.managed_pages * 4) / 4, gap;

	gap = min / 4 > s.managed_pages / 1000 ? min / 4
					       : s.managed_pages / 1000;
	CHECK_EQ(s.min_pages, min);
	CHECK_EQ(s.low_pages, min + gap);
	CHECK_EQ(s.high_pages, min + 2 * gap);
	CHECK_EQ(vm_text(heap, node, "min "), min);
}

static void grow_and_trim(struct pcpa_heap *heap, unsigned node)
{
	struct pcpa_stats before = vm_stats(heap, (int)node), after;

	CHECK_EQ(before.managed_pages, FIRST / 4096);
	check_marks(heap, node);
	CHECK_EQ(pcpa_alloc_bulk(heap, 9, PCPA_NODE(node) | PCPA_THISNODE,
				 blocks, BLOCKS),
		 BLOCKS);
	CHECK_EQ(vm_where(heap, blocks, BLOCKS).on[node], BLOCKS);
	after = vm_stats(heap, (int)node);
	CHECK(after.min_pages > before.min_pages);
	check_marks(heap, node);
	pcpa_free_bulk(heap, blocks, BLOCKS);
	CHECK(pcpa_heap_trim(heap, 3 * FIRST) > 0);
	CHECK_EQ(vm_stats(heap, -1).managed_pages, 3 * FIRST / 4096);
	check_marks(heap, node);
	printf("| low watermark of node %u, with %" PRIu64 " and %" PRIu64
	       " MiB backed of at most 256 | %" PRIu64 " and %" PRIu64
	       " pages |\n",
	       node, before.managed_pages >> 8, after.managed_pages >> 8,
	       before.low_pages, after.low_pages);
}

int main(void)
{
	struct pcpa_heap_options options = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	options.initial_bytes = FIRST;
	options.max_bytes = 256 * MIB;
	for (unsigned node = 0; node < 3; node++) {
		CHECK_EQ(pcpa_heap_create(&options, &heap), 0);
		grow_and_trim(heap, node);
		CHECK_EQ(pcpa_heap_destroy(heap), 0);
	}
	return 0;
}
