/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_numa.c - heaps of several nodes, from outside.
 *
 * The nodes are invented: hwloc reads a description instead of the machine, and
 * each case is a process of its own, so that it is set before the first heap.
 * What memory the kernel takes is not looked at; which node the library thinks
 * a block is of, is.  Where a case depends on the node of the caller, the CPU is
 * a fake, too: each thread says where it is.
 */
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "../support/machine.h"

#define MAX_BLOCKS 8192u

static void *blocks[MAX_BLOCKS];

/* ---- Machines ----------------------------------------------------------------- */

static const char two_nodes[] = "Package:2 [NUMANode(memory=1GiB)] PU:4";

static struct pcpa_heap *heap_of_two(void)
{
	machine("HWLOC_SYNTHETIC", two_nodes);
	return heap_on(NULL, 4 * MIB, 0, PCPA_HEAP_FIXED);
}

static uint64_t node_pages(struct pcpa_heap *heap, int node)
{
	return stats_of(heap, node).managed_pages;
}

/* ---- Which node ------------------------------------------------------------------ */

Test(numa, block_comes_from_the_node_asked_for)
{
	struct pcpa_heap *heap = heap_of_two();
	unsigned order, node;

	cr_assert_eq(node_pages(heap, 0), node_pages(heap, 1));
	cr_assert_gt(node_pages(heap, 0), 0);
	for (node = 0; node < 2; node++)
		for (order = 0; order <= 9; order++) {
			void *block = pcpa_alloc(heap, order, PCPA_NODE(node));

			cr_assert(block);
			cr_expect_eq(pcpa_block_node(heap, block), (int)node);
			cr_expect_eq(pcpa_block_order(heap, block), (int)order);
			pcpa_free(heap, block);
			cr_assert_eq(pcpa_alloc_bulk(heap, order, PCPA_NODE(node),
						     blocks, 2), 2);
			for (unsigned i = 0; i < 2; i++)
				cr_expect_eq(pcpa_block_node(heap, blocks[i]),
					     (int)node);
			pcpa_free_bulk(heap, blocks, 2);
		}
	cr_expect_eq(stats_of(heap, -1).numa_miss, 0);
	expect_all_free(heap);
	heap_end(heap);
}

Test(numa, caller_without_a_node_gets_its_own)
{
	struct pcpa_heap *heap = heap_of_two();
	void *block;
	int node;

	for (unsigned i = 0; i < 40; i++) {
		my_cpu = i % 2 ? 1 : 6;
		pcpa_thread_flush(heap);
		/* A hit of the cache doesn't look where it runs. */
		for (unsigned n = 0; n < 200; n++) {
			block = pcpa_alloc(heap, 4, 0);
			cr_assert(block);
			node = pcpa_block_node(heap, block);
			cr_expect_eq(node, my_cpu < 4 ? 0 : 1);
			pcpa_free(heap, block);
		}
	}
	heap_end(heap);
}

/* The cache of the old node is flushed, and the next refill is of the new. */
Test(numa, caller_that_moved_gets_the_new_node_after_a_refill)
{
	struct pcpa_heap *heap = heap_of_two();
	size_t n = 0;

	my_cpu = 0;
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect_eq(pcpa_block_node(heap, blocks[0]), 0);
	my_cpu = 5;
	while (n < 600 && pcpa_block_node(heap, blocks[n - 1]) == 0) {
		blocks[n] = pcpa_alloc(heap, 0, 0);
		cr_assert(blocks[n++]);
	}
	cr_expect_eq(pcpa_block_node(heap, blocks[n - 1]), 1);
	pcpa_free_bulk(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

Test(numa, exhausted_node_takes_from_the_other_and_counts_it)
{
	struct pcpa_heap *heap = heap_of_two();
	size_t all = node_pages(heap, 0), n;
	struct pcpa_stats s0, s1;

	n = pcpa_alloc_bulk(heap, 0, PCPA_NODE(0), blocks, all + 10);
	cr_assert_eq(n, all + 10);
	s0 = stats_of(heap, 0);
	s1 = stats_of(heap, 1);
	cr_expect_eq(s0.numa_hit, all);
	cr_expect_eq(s0.numa_foreign, 10);
	cr_expect_eq(s0.numa_miss, 0);
	cr_expect_eq(s1.numa_miss, 10);
	cr_expect_eq(s1.numa_foreign, 0);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(pcpa_block_node(heap, blocks[i]), i >= all);
	pcpa_free_bulk(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

Test(numa, thisnode_fails_rather_than_take_from_the_other)
{
	struct pcpa_heap *heap = heap_of_two();
	size_t all = node_pages(heap, 1), n;

	n = pcpa_alloc_bulk(heap, 0, PCPA_NODE(1) | PCPA_THISNODE, blocks,
			    all + 1);
	cr_expect_eq(n, all);
	cr_expect_eq(errno, ENOMEM);
	my_cpu = 7; /* alone it means the caller's */
	errno = 0;
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_THISNODE));
	cr_expect_eq(errno, ENOMEM);
	my_cpu = 0;
	blocks[n] = pcpa_alloc(heap, 0, PCPA_THISNODE);
	cr_assert(blocks[n]);
	cr_expect_eq(pcpa_block_node(heap, blocks[n]), 0);
	cr_expect_eq(stats_of(heap, -1).numa_miss, 0);
	pcpa_free_bulk(heap, blocks, n + 1);
	expect_all_free(heap);
	heap_end(heap);
}

Test(numa, growth_is_tried_on_the_node_before_the_other_is_asked)
{
	struct pcpa_heap *heap;
	size_t n;

	machine("HWLOC_SYNTHETIC", two_nodes);
	heap = heap_on(NULL, 2 * MIB, 4 * MIB, 0);
	n = pcpa_alloc_bulk(heap, 9, PCPA_NODE(0), blocks, 2);
	cr_assert_eq(n, 2);
	cr_expect_eq(pcpa_block_node(heap, blocks[1]), 0);
	cr_expect_eq(stats_of(heap, -1).numa_miss, 0);
	n += pcpa_alloc_bulk(heap, 9, PCPA_NODE(0) | PCPA_NOGROW, blocks + n, 3);
	cr_expect_eq(n, 3, "node 1 has one and must not grow");
	n += pcpa_alloc_bulk(heap, 9, PCPA_NODE(0), blocks + n, 2);
	cr_expect_eq(n, 4, "both are at their maximum");
	pcpa_free_bulk(heap, blocks, n);
	heap_end(heap);
}

/* ---- The way home ------------------------------------------------------------------ */

Test(numa, remote_blocks_go_home)
{
	struct pcpa_heap *heap = heap_of_two();
	struct pcpa_stats before, s;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, PCPA_NODE(1), blocks, 300), 300);
	before = stats_of(heap, 1);
	my_cpu = 0;
	for (unsigned i = 0; i < 300; i++)
		pcpa_free(heap, blocks[i]);
	s = stats_of(heap, 1);
	cr_expect_eq(s.free_total, before.free_total + 300);
	cr_expect_gt(s.depot_pages, before.depot_pages, "full batches went");
	cr_expect_eq(s.managed_pages, s.free_pages + s.cached_pages +
					      s.depot_pages);
	pcpa_thread_flush(heap);
	s = stats_of(heap, 1);
	cr_expect_eq(s.cached_pages, 0);
	stats_summed(heap);
	expect_all_free(heap);
	cr_expect_eq(stats_of(heap, 0).free_pages, node_pages(heap, 0));
	cr_expect_eq(stats_of(heap, 1).free_pages, node_pages(heap, 1));
	heap_end(heap);
}

static void *free_300(void *arg)
{
	my_cpu = 0;
	for (unsigned i = 0; i < 300; i++)
		pcpa_free_sized(arg, blocks[i], 1);
	return NULL;
}

Test(numa, ended_threads_outbox_goes_home)
{
	struct pcpa_heap *heap = heap_of_two();

	cr_assert_eq(pcpa_alloc_bulk(heap, 1, PCPA_NODE(1), blocks, 300), 300);
	pcpa_thread_flush(heap);
	thread_run(free_300, heap);
	cr_expect_eq(stats_summed(heap).cached_pages, 0);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 0);
	expect_all_free(heap);
	heap_end(heap);
}

Test(numa, bulk_free_of_mixed_nodes_and_orders_frees_all)
{
	struct pcpa_heap *heap = heap_of_two();
	size_t n = 0;

	for (unsigned i = 0; i < 300; i++) {
		blocks[n] = pcpa_alloc(heap, i % 4, PCPA_NODE(i / 3 % 2));
		cr_assert(blocks[n++]);
		if (i % 10 == 0)
			blocks[n++] = NULL;
	}
	pcpa_free_bulk(heap, blocks, n);
	cr_expect_eq(stats_summed(heap).used_blocks, 0);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 0);
	expect_all_free(heap);
	heap_end(heap);
}

static int waits[2], told[2];

/* Holds pages of node 1 in its cache of that node. */
static void *cache_of_node_1(void *arg)
{
	void *mine[200];
	size_t n;
	char byte = 0;

	my_cpu = 4;
	n = pcpa_alloc_bulk(arg, 0, PCPA_THISNODE, mine, 200);
	cr_expect_eq(n, 200);
	pcpa_free_bulk(arg, mine + 100, n - 100);
	pcpa_free_bulk(arg, mine, 100);
	cr_expect_eq(write(told[1], &byte, 1), 1);
	cr_expect_eq(read(waits[0], &byte, 1), 1);
	return NULL;
}

/* ENOMEM means that all caches were drained, also those of other nodes. */
Test(numa, other_nodes_caches_are_drained_before_a_request_fails)
{
	struct pcpa_heap *heap = heap_of_two();
	size_t each = node_pages(heap, 0), n;
	pthread_t t;
	char byte = 0;

	cr_assert_eq(pipe(waits), 0);
	cr_assert_eq(pipe(told), 0);
	cr_assert_eq(pthread_create(&t, NULL, cache_of_node_1, heap), 0);
	cr_assert_eq(read(told[0], &byte, 1), 1);
	my_cpu = 0;
	cr_expect_gt(stats_of(heap, 1).cached_pages, 0);
	n = pcpa_alloc_bulk(heap, 4, PCPA_NODE(0), blocks, 2 * each >> 4);
	cr_expect_eq(n, 2 * each >> 4, "%zu of %zu", n, 2 * each >> 4);
	pcpa_free_bulk(heap, blocks, n);
	cr_assert_eq(write(waits[1], &byte, 1), 1);
	cr_assert_eq(pthread_join(t, NULL), 0);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- Statistics --------------------------------------------------------------------- */

Test(numa, nodes_add_up_to_the_sum)
{
	struct pcpa_heap *heap = heap_of_two();
	struct pcpa_stats s[3];
	size_t n;

	n = pcpa_alloc_bulk(heap, 0, PCPA_NODE(0), blocks, 100);
	n += pcpa_alloc_bulk(heap, 2, PCPA_NODE(1), blocks + n, 50);
	pcpa_free_bulk(heap, blocks + 90, 20);
	for (int node = -1; node < 2; node++)
		s[node + 1] = stats_of(heap, node);
	cr_expect_eq(s[0].managed_pages, s[1].managed_pages + s[2].managed_pages);
	cr_expect_eq(s[0].free_pages, s[1].free_pages + s[2].free_pages);
	cr_expect_eq(s[0].cached_pages, s[1].cached_pages + s[2].cached_pages);
	cr_expect_eq(s[0].used_pages, s[1].used_pages + s[2].used_pages);
	cr_expect_eq(s[0].alloc_total, s[1].alloc_total + s[2].alloc_total);
	cr_expect_eq(s[0].free_total, s[1].free_total + s[2].free_total);
	cr_expect_eq(s[1].used_pages, 90);
	cr_expect_eq(s[2].used_pages, 40 * 4);
	cr_expect_eq(s[1].used_blocks, 90);
	cr_expect_eq(s[2].used_blocks, 40);
	pcpa_free_bulk(heap, blocks, 90);
	pcpa_free_bulk(heap, blocks + 110, n - 110);
	expect_all_free(heap);
	heap_end(heap);
}

static int node_note(const struct pcpa_arena_info *a, void *arg)
{
	((uint64_t *)arg)[a->node] += a->bytes;
	return 0;
}

Test(numa, arenas_say_their_node)
{
	struct pcpa_heap *heap = heap_of_two();
	uint64_t bytes[2] = {0, 0};

	cr_expect_eq(pcpa_for_each_arena(heap, node_note, bytes), 0);
	cr_expect_eq(bytes[0], 4 * MIB);
	cr_expect_eq(bytes[1], 4 * MIB);
	heap_end(heap);
}

/* ---- Nodes chosen --------------------------------------------------------------------- */

Test(numa, heap_of_one_node_of_two_refuses_the_other)
{
	struct pcpa_heap *heap;
	struct pcpa_stats s = PCPA_STATS_INIT;
	void *block;

	machine("HWLOC_SYNTHETIC", two_nodes);
	heap = heap_on("0", 2 * MIB, 0, PCPA_HEAP_FIXED);
	errno = 0;
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NODE(1)));
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(pcpa_stats_read(heap, 1, &s), -EINVAL);
	my_cpu = 6; /* of node 1: served by the nearest */
	block = pcpa_alloc(heap, 0, 0);
	cr_assert(block);
	cr_expect_eq(pcpa_block_node(heap, block), 0);
	pcpa_free(heap, block);
	expect_all_free(heap);
	heap_end(heap);
}

Test(numa, unknown_node_is_no_device)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	machine("HWLOC_SYNTHETIC", two_nodes);
	o.verbosity = 0;
	o.nodes = "0-2";
	cr_expect_eq(pcpa_heap_create(&o, &heap), -ENODEV);
	o.nodes = "7";
	cr_expect_eq(pcpa_heap_create(&o, &heap), -ENODEV);
}

Test(numa, nodes_without_memory_are_left_out)
{
	struct pcpa_heap *heap;
	struct pcpa_stats s = PCPA_STATS_INIT;

	machine_file("no-memory.xml");
	heap = heap_on(NULL, 2 * MIB, 0, PCPA_HEAP_FIXED);
	cr_expect_eq(pcpa_stats_read(heap, 0, &s), 0);
	cr_expect_eq(pcpa_stats_read(heap, 1, &s), -EINVAL);
	cr_expect_eq(pcpa_stats_read(heap, 2, &s), -EINVAL);
	cr_expect_eq(pcpa_stats_read(heap, 3, &s), 0);
	heap_end(heap);
}

/* 48 + 48 CPUs, and a node of 248 GiB that has none. */
Test(numa, node_without_cpus_serves_who_asks_for_it)
{
	struct pcpa_heap *heap;
	size_t all, n;

	machine_file("memory-package.xml");
	heap = heap_on(NULL, 4 * MIB, 0, PCPA_HEAP_FIXED);
	all = node_pages(heap, 2);
	my_cpu = 50;
	n = pcpa_alloc_bulk(heap, 0, PCPA_NODE(2) | PCPA_THISNODE, blocks,
			    all + 1);
	cr_expect_eq(n, all);
	for (size_t i = 0; i < n; i++)
		cr_assert_eq(pcpa_block_node(heap, blocks[i]), 2);
	for (size_t i = 0; i < n; i++)
		pcpa_free(heap, blocks[i]);
	blocks[0] = pcpa_alloc(heap, 3, 0);
	cr_assert(blocks[0]);
	cr_expect_eq(pcpa_block_node(heap, blocks[0]), 1);
	pcpa_free(heap, blocks[0]);
	expect_all_free(heap);
	heap_end(heap);
}

/* 0 and 2 are near each other: node 0's requests go there before node 1. */
Test(numa, nearest_node_is_asked_first)
{
	struct pcpa_heap *heap;
	size_t all, n;

	machine_file("memory-package.xml");
	heap = heap_on(NULL, 2 * MIB, 0, PCPA_HEAP_FIXED);
	all = node_pages(heap, 0);
	n = pcpa_alloc_bulk(heap, 0, PCPA_NODE(0), blocks, all + 1);
	cr_assert_eq(n, all + 1);
	cr_expect_eq(pcpa_block_node(heap, blocks[all]), 2);
	pcpa_free_bulk(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

Test(numa, numbers_with_gaps_are_used_as_they_are)
{
	struct pcpa_heap *heap;
	void *block;

	machine("HWLOC_SYNTHETIC",
		"Package:4 [NUMANode(memory=1GiB indexes=0,2,5,7)] PU:2");
	heap = heap_on("2,7", 2 * MIB, 0, PCPA_HEAP_FIXED);
	block = pcpa_alloc(heap, 0, PCPA_NODE(7));
	cr_assert(block);
	cr_expect_eq(pcpa_block_node(heap, block), 7);
	pcpa_free(heap, block);
	errno = 0;
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NODE(5)));
	cr_expect_eq(errno, EINVAL);
	heap_end(heap);
}

/* ---- With checks ------------------------------------------------------------------------ */

Test(numa, double_free_in_an_outbox_aborts_with_checks, .signal = SIGABRT)
{
	struct pcpa_heap *heap;
	void *block;

	machine("HWLOC_SYNTHETIC", two_nodes);
	heap = heap_on(NULL, 2 * MIB, 0, PCPA_HEAP_FIXED | PCPA_HEAP_CHECKS);
	block = pcpa_alloc(heap, 0, PCPA_NODE(1));
	my_cpu = 0;
	pcpa_free(heap, block);
	pcpa_free(heap, block);
}
