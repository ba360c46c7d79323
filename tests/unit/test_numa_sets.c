/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_numa_sets.c - heaps on machines whose nodes are many, few, oddly numbered,
 * denied or without memory, from outside; the nodes are invented, as in
 * test_numa.c.
 */
#include "../support/machine.h"

static void *block;

static void expect_served_by(struct pcpa_heap *heap, int cpu, int node)
{
	my_cpu = cpu;
	pcpa_thread_flush(heap);
	block = pcpa_alloc(heap, 0, 0);
	cr_assert(block);
	cr_expect_eq(pcpa_block_node(heap, block), node, "CPU %d: node %d", cpu,
		     pcpa_block_node(heap, block));
	pcpa_free(heap, block);
}

/* ---- Many ------------------------------------------------------------------- */

/* "100,105,110,..." */
static const char *numbers(unsigned n, unsigned first, unsigned step)
{
	static char text[4096];
	size_t at = 0;

	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u",
				       i ? "," : "", first + i * step);
	return text;
}

static void machine_of(unsigned n, unsigned first, unsigned step)
{
	static char text[5000];

	snprintf(text, sizeof(text),
		 "Package:%u [NUMANode(memory=1GiB indexes=%s)] PU:1", n,
		 numbers(n, first, step));
	machine("HWLOC_SYNTHETIC", text);
}

/* Each node serves its callers, and gets its blocks back from all others. */
Test(numa_sets, hundred_nodes_with_gaps_and_without_0)
{
	enum { N = 100, FIRST = 3, STEP = 5 };
	struct pcpa_heap *heap;
	struct pcpa_stats s;
	void *blocks[N];

	machine_of(N, FIRST, STEP);
	heap = heap_on(NULL, 0, 4 * MIB, 0);
	for (int i = 0; i < N; i++) {
		my_cpu = i;
		blocks[i] = pcpa_alloc(heap, 0, PCPA_THISNODE);
		cr_assert(blocks[i]);
		cr_expect_eq(pcpa_block_node(heap, blocks[i]), FIRST + i * STEP);
		pcpa_thread_flush(heap);
	}
	cr_expect_eq(stats_of(heap, -1).arenas, N);
	my_cpu = 70;
	pcpa_free_bulk(heap, blocks, N);
	pcpa_thread_flush(heap);
	s = stats_of(heap, FIRST + 99 * STEP);
	cr_expect_eq(s.used_blocks, 0);
	cr_expect_eq(s.cached_pages, 0);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NODE(0)));
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(pcpa_cache_disable(heap, FIRST + 70 * STEP), 0);
	cr_expect_eq(pcpa_cache_enable(heap, FIRST + 70 * STEP), 0);
	cr_expect_eq(pcpa_cache_disable(heap, FIRST + 1), -EINVAL);
	expect_all_free(heap);
	heap_end(heap);
}

/* Linux has 1,024 at most. */
Test(numa_sets, as_many_nodes_as_linux_can_have)
{
	struct pcpa_heap *heap;

	machine_of(1024, 0, 1);
	heap = heap_on("5,64-65,1023", 2 * MIB, 4 * MIB, 0);
	expect_served_by(heap, 1023, 1023);
	expect_served_by(heap, 64, 64);
	heap_end(heap);
	heap = heap_on(NULL, 0, 4 * MIB, 0);
	expect_served_by(heap, 1000, 1000);
	expect_served_by(heap, 0, 0);
	heap_end(heap);
}

Test(numa_sets, eight_sub_nodes_spill_inside_their_package)
{
	enum { EACH = 2 * MIB >> 12 };
	static void *blocks[5 * EACH];
	struct pcpa_heap *heap;
	unsigned seen[8] = {0};
	size_t n;

	machine("HWLOC_SYNTHETIC",
		"Package:2 Group:4 [NUMANode(memory=64GiB)] Core:6 PU:2");
	heap = heap_on(NULL, 2 * MIB, 0, PCPA_HEAP_FIXED);
	for (int cpu = 0; cpu < 96; cpu += 5)
		expect_served_by(heap, cpu, cpu / 12);
	expect_all_free(heap);
	n = pcpa_alloc_bulk(heap, 9, PCPA_NODE(6), blocks, 5);
	cr_assert_eq(n, 5);
	for (size_t i = 0; i < n; i++)
		seen[pcpa_block_node(heap, blocks[i])]++;
	for (unsigned i = 4; i < 8; i++)
		cr_expect_eq(seen[i], 1, "node %u: %u", i, seen[i]);
	cr_expect_eq(stats_of(heap, 6).numa_foreign, 4);
	pcpa_free_bulk(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- Without memory, denied, unknown ------------------------------------------ */

/* 1 and 2 have CPUs and no memory; 1 is next to 0, and 2 to 3. */
Test(numa_sets, callers_on_a_node_without_memory_are_served_by_the_nearest)
{
	struct pcpa_heap *heap;

	machine_file("no-memory.xml");
	heap = heap_on(NULL, 4 * MIB, 0, PCPA_HEAP_FIXED);
	expect_served_by(heap, 0, 0);
	expect_served_by(heap, 5, 0);
	expect_served_by(heap, 10, 3);
	expect_served_by(heap, 15, 3);
	cr_expect_gt(stats_of(heap, 3).low_pages, 0);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NODE(1)));
	cr_expect_eq(errno, EINVAL);
	expect_all_free(heap);
	heap_end(heap);
}

Test(numa_sets, denied_nodes_are_used_by_none)
{
	struct pcpa_heap *heap;
	struct pcpa_stats s = PCPA_STATS_INIT;

	machine_file("restricted.xml");
	heap = heap_on(NULL, 2 * MIB, 0, PCPA_HEAP_FIXED);
	cr_expect_eq(pcpa_stats_read(heap, 1, &s), -EINVAL);
	expect_served_by(heap, 3, 0);
	heap_end(heap);
}

/* A CPU that was offline, or denied, when the machine was read. */
Test(numa_sets, cpu_that_came_later_is_of_the_node_that_the_kernel_says)
{
	struct pcpa_heap *heap;

	machine("HWLOC_SYNTHETIC",
		"Package:2 [NUMANode(memory=1GiB indexes=4,9)] PU:4");
	heap = heap_on(NULL, 2 * MIB, 0, PCPA_HEAP_FIXED);
	my_node = 9;
	expect_served_by(heap, 8, 9);
	expect_served_by(heap, 2, 4);
	my_node = 4;
	expect_served_by(heap, 8, 4);
	my_node = 5; /* not allowed: any */
	expect_served_by(heap, 8, 4);
	my_node = -1;
	expect_served_by(heap, 8, 4);
	heap_end(heap);
}

/* ---- Bound -------------------------------------------------------------------- */

static unsigned asked;
static int bind_rc; /* of node 1 */

static int bind_some(void *addr, size_t bytes, unsigned os_node,
		     enum pcpi_binding how)
{
	(void)addr;
	(void)bytes;
	(void)how;
	return os_node == 1 ? bind_rc : 0;
}

/* 3 of 4 pages of node 1. */
static ssize_t elsewhere_some(const void *addr, size_t bytes, size_t step,
			      unsigned os_node)
{
	(void)addr;
	asked++;
	return os_node == 1 ? (ssize_t)(bytes / 4 * 3 / step) : 0;
}

static void machine_of_two(void)
{
	machine("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4");
	table.bind = bind_some;
	table.elsewhere = elsewhere_some;
}

static int create_bound(const char *nodes, struct pcpa_heap **heap)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.nodes = nodes;
	o.initial_bytes = 4 * MIB;
	o.max_bytes = 8 * MIB;
	o.flags = PCPA_HEAP_BOUND;
	o.verbosity = 0;
	return pcpa_heap_create(&o, heap);
}

Test(numa_sets, bound_heap_is_refused_where_a_node_is)
{
	struct pcpa_heap *heap = NULL;

	machine_of_two();
	bind_rc = -EPERM;
	cr_expect_eq(create_bound(NULL, &heap), -EPERM);
	cr_expect_null(heap);
	cr_assert_eq(create_bound("0", &heap), 0);
	expect_served_by(heap, 7, 0);
	cr_expect_eq(stats_of(heap, -1).misplaced_pages, 0);
	heap_end(heap);
}

Test(numa_sets, bound_heap_has_no_memory_of_another_node)
{
	struct pcpa_heap *heap = NULL;

	machine_of_two();
	cr_expect_eq(create_bound(NULL, &heap), -ENOMEM);
	cr_expect_null(heap);
	cr_expect_gt(asked, 1);
}

Test(numa_sets, misplaced_memory_is_counted_for_its_node)
{
	struct pcpa_heap *heap;

	machine_of_two();
	heap = heap_on(NULL, 4 * MIB, 8 * MIB, 0);
	cr_expect_eq(stats_of(heap, 0).misplaced_pages, 0);
	cr_expect_eq(stats_of(heap, 1).misplaced_pages, 3 * MIB >> 12);
	cr_expect_eq(stats_of(heap, -1).misplaced_pages, 3 * MIB >> 12);
	heap_end(heap);
}

Test(numa_sets, one_node_is_asked_nothing)
{
	struct pcpa_heap *heap = NULL;

	machine_of_two();
	setenv("HWLOC_SYNTHETIC", "NUMANode:1(memory=1GiB indexes=1) PU:4", 1);
	cr_assert_eq(create_bound(NULL, &heap), 0);
	expect_served_by(heap, 2, 1);
	cr_expect_eq(asked, 0);
	heap_end(heap);
}
