/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_disable_nodes.c - caches disabled on one of two invented nodes: its blocks
 * stay out of the outboxes of the other node's caches, which go on.
 */
#include "../support/heap_fixture.h"
#include "heap.h"
#include "sys/sys.h"

#define HELD 200u

static struct pcpa_heap *heap;
static struct pcpi_sys table;
static void *blocks[HELD];

/* All calls come from node 0. */
static int first_cpu(void)
{
	return 0;
}

static void setup(unsigned flags)
{
	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4", 1);
	table = pcpi_sys_linux;
	table.cpu = first_cpu;
	pcpi_sys = &table;
	heap = heap_fixed(8 * MIB, flags);
}

static void teardown(void)
{
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	expect_all_free(heap);
	heap_end(heap);
}

/* Both nodes' blocks are freed here; those of node 1 lie in an outbox then. */
static void pass(void)
{
	for (unsigned node = 0; node < 2; node++) {
		cr_assert_eq(pcpa_alloc_bulk(heap, 0, PCPA_NODE(node), blocks,
					     HELD), HELD);
		for (unsigned i = 0; i < HELD; i++)
			pcpa_free(heap, blocks[i]);
	}
}

static void expect_aside(int node, bool some)
{
	struct pcpa_stats s = stats_of(heap, node);

	cr_expect_eq(s.cached_pages + s.depot_pages > 0, some,
		     "node %d: %llu cached, %llu in the depot", node,
		     (unsigned long long)s.cached_pages,
		     (unsigned long long)s.depot_pages);
}

static void other_node_disabled(unsigned flags)
{
	setup(flags);
	pass();
	expect_aside(0, true);
	expect_aside(1, true);
	cr_assert_eq(pcpa_cache_disable(heap, 1), 0);
	expect_aside(1, false);
	pass();
	expect_aside(0, true);
	expect_aside(1, false);
	/* With node 0 as well, and its end alone. */
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	expect_aside(0, false);
	cr_assert_eq(pcpa_cache_enable(heap, 1), 0);
	pass();
	expect_aside(0, false);
	expect_aside(1, false);
	cr_expect_eq(pcpa_cache_enable(heap, 1), 0);
	cr_expect_eq(pcpa_cache_enable(heap, -1), -EINVAL, "node 1 is not");
	expect_aside(0, false);
	pass();
	expect_aside(0, false);
	expect_aside(1, true);
	cr_assert_eq(pcpa_cache_enable(heap, 0), 0);
	pass();
	expect_aside(0, true);
	teardown();
}

Test(disable_nodes, one_node)
{
	other_node_disabled(0);
}

Test(disable_nodes, one_node_with_checks)
{
	other_node_disabled(PCPA_HEAP_CHECKS);
}

Test(disable_nodes, one_node_without_interruption)
{
	other_node_disabled(PCPA_HEAP_NO_IPI);
}

/* ---- An enable beside a disable -------------------------------------------- */

static int said_of_all, said_of_one;
static unsigned looks;

/* Node 0 is being disabled, and node 1 has been. */
static uint64_t clock_of_enables(void)
{
	const struct pcpi_zone *zones = heap->env.zones;

	if (looks == 0 && zones[0].disable_depth > 0 &&
	    pcpi_lock_try(&heap->drain_lock)) {
		pcpi_lock_drop(&heap->drain_lock);
		looks++;
		said_of_all = pcpi_heap_enable(heap, NULL);
		said_of_one = pcpi_heap_enable(heap, &heap->env.zones[1]);
	}
	return pcpi_sys_linux.clock_ns();
}

static void enables_beside(int node, bool one_is_off)
{
	setup(0);
	cr_assert_eq(pcpa_cache_disable(heap, 1), 0);
	table.clock_ns = clock_of_enables;
	cr_assert_eq(pcpa_cache_disable(heap, node), 0);
	table.clock_ns = pcpi_sys_linux.clock_ns;
	cr_expect_eq(looks, 1);
	cr_expect_eq(said_of_all, -EINVAL, "node 0 is not disabled yet");
	cr_expect_eq(said_of_one, 0);
	pass();
	expect_aside(0, false);
	expect_aside(1, !one_is_off);
	cr_expect_eq(pcpa_cache_enable(heap, node), 0);
	pass();
	expect_aside(0, true);
	expect_aside(1, true);
	cr_expect_eq(pcpa_cache_enable(heap, 0), -EINVAL);
	cr_expect_eq(pcpa_cache_enable(heap, 1), -EINVAL);
	teardown();
}

Test(disable_nodes, enables_beside_a_disable_of_the_other_node)
{
	enables_beside(0, false);
}

Test(disable_nodes, enables_beside_a_disable_of_all_nodes)
{
	enables_beside(-1, true);
}

static pthread_barrier_t meet;
static uint64_t now_ns;

static uint64_t clock_said(void)
{
	return now_ns += UINT64_C(10000000);
}

static void *idler(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 10; i++)
		pcpa_free(heap, blocks[i]);
	pthread_barrier_wait(&meet);
	pthread_barrier_wait(&meet);
	return NULL;
}

/* Its only cache is of node 0, and has an outbox for node 1. */
Test(disable_nodes, idle_owner_of_an_outbox_is_late_without_interruption)
{
	pthread_t thread;

	setup(PCPA_HEAP_NO_IPI);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, PCPA_NODE(1), blocks, 10), 10);
	cr_assert_eq(pcpa_heap_drain(heap), 0);
	cr_assert_eq(stats_of(heap, 1).cached_pages, 0);
	cr_assert_eq(pthread_barrier_init(&meet, NULL, 2), 0);
	cr_assert_eq(pthread_create(&thread, NULL, idler, NULL), 0);
	pthread_barrier_wait(&meet);
	expect_aside(1, true);
	table.clock_ns = clock_said;
	cr_expect_eq(pcpa_cache_disable(heap, 1), -ETIMEDOUT);
	table.clock_ns = pcpi_sys_linux.clock_ns;
	pthread_barrier_wait(&meet);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(pcpa_cache_disable(heap, 1), 0);
	expect_aside(1, false);
	cr_expect_eq(pcpa_cache_enable(heap, 1), 0);
	pthread_barrier_destroy(&meet);
	teardown();
}

/* ---- Ranges ----------------------------------------------------------------- */

Test(disable_nodes, ranges_come_from_the_node_asked_for)
{
	struct pcpa_stats s;
	void *start, *more;

	setup(0);
	pass();
	start = pcpa_alloc_contig(heap, 2048, 1, PCPA_NODE(1) | PCPA_THISNODE);
	cr_assert(start, "out of caches and outboxes");
	cr_expect_eq(stats_of(heap, 1).used_pages, 2048);
	cr_expect_null(pcpa_alloc_contig(heap, 1, 1,
					 PCPA_NODE(1) | PCPA_THISNODE));
	more = pcpa_alloc_contig(heap, 1000, 1, PCPA_NODE(1));
	cr_assert(more);
	s = stats_of(heap, 0);
	cr_expect_eq(s.used_pages, 1000);
	cr_expect_eq(s.numa_miss, 1);
	cr_expect_eq(stats_of(heap, 1).numa_foreign, 1);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 2);
	pcpa_free_contig(heap, more, 1000);
	pcpa_free_contig(heap, start, 2048);
	teardown();
}
