/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool_nodes.c - pools on a machine of two nodes, which is made up: the
 * ring's pages of a wrong node.
 */
#include "../support/pool_fixture.h"

static struct pcpa_heap *heap;
static void *bufs[256];
static int my_cpu;

static int cpu_said(void)
{
	return my_cpu;
}

static void setup(void)
{
	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4", 1);
	pool_sys_install();
	pool_sys.cpu = cpu_said;
	heap = heap_fixed(16 * MIB, 0);
}

TestSuite(page_pool_nodes, .init = setup);

Test(page_pool_nodes, pages_come_from_the_node_asked_for)
{
	struct pcpa_pool *pool = pool_with(heap, .alloc_flags = PCPA_NODE(1));

	get_all(pool, bufs, 100);
	for (unsigned i = 0; i < 100; i++) {
		char *page = (char *)bufs[i] - (uintptr_t)bufs[i] % PAGE;

		cr_expect_eq(pcpa_block_node(heap, page), 1);
	}
	put_elsewhere(pool, bufs, 100);
	get_all(pool, bufs, 1);
	expect_stats(pool, .alloc_empty = 2, .alloc_slow = 2, .alloc_fast = 98 + 1,
		     .recycle_ring = 100);
	pcpa_pool_put(pool, bufs[0]);
	pool_and_heap_end(pool, heap);
}

/* The first wrong one goes, and the refill is over. */
Test(page_pool_nodes, wrong_first_page_is_waived_and_the_heap_asked)
{
	struct pcpa_pool *pool = pool_with(heap, 0);

	get_all(pool, bufs, 64);
	put_elsewhere(pool, bufs, 64);
	my_cpu = 4;
	get_all(pool, bufs, 1);
	cr_expect_eq(pcpa_block_node(heap, (char *)bufs[0] -
				     (uintptr_t)bufs[0] % PAGE), 1);
	expect_stats(pool, .alloc_empty = 1, .alloc_slow = 2, .alloc_fast = 63,
		     .alloc_waive = 1, .recycle_ring = 64, .hold = 128,
		     .release = 1, .inflight = 127, .cached = 63);
	pcpa_pool_put(pool, bufs[0]);
	pool_and_heap_end(pool, heap);
}

Test(page_pool_nodes, wrong_later_page_ends_the_refill_which_gave_some)
{
	struct pcpa_pool *pool = pool_with(heap, 0);
	void *mixed[7], *first;

	get_all(pool, bufs, 64);
	my_cpu = 4;
	get_all(pool, bufs + 64, 64);
	memcpy(mixed, bufs + 64, 5 * sizeof(*mixed));
	memcpy(mixed + 5, bufs, 2 * sizeof(*mixed));
	put_elsewhere(pool, mixed, 7);
	get_all(pool, &first, 1);
	cr_expect_eq(first, mixed[4]);
	expect_stats(pool, .alloc_empty = 2, .alloc_slow = 2, .alloc_fast = 126,
		     .alloc_refill = 1, .alloc_waive = 1, .recycle_ring = 7,
		     .hold = 128, .release = 1, .inflight = 127, .cached = 4);
	put_elsewhere(pool, &first, 1);
	put_elsewhere(pool, bufs + 2, 62);
	put_elsewhere(pool, bufs + 69, 59);
	pool_and_heap_end(pool, heap);
}
