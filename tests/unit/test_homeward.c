/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_homeward.c - frees of another node's blocks, many and one at a time: what
 * goes to the outbox at once (pcpi_bulk_push_home()) and what doesn't.
 */
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "../support/machine.h"

#define N 512u

static void *blocks[N];
static struct pcpa_heap *heap;

/* The caller is on node 0. */
static void setup(void)
{
	machine("HWLOC_SYNTHETIC", "Package:3 [NUMANode(memory=1GiB)] PU:2");
	heap = heap_on(NULL, 16 * MIB, 0, PCPA_HEAP_FIXED);
	my_cpu = 0;
	/* A cache to free into. */
	pcpa_free(heap, pcpa_alloc(heap, 0, 0));
}

static void teardown(void)
{
	expect_all_free(heap);
	cr_expect_eq(stats_of(heap, 1).free_pages, stats_of(heap, 1).managed_pages);
	heap_end(heap);
}

TestSuite(homeward, .init = setup, .fini = teardown);

static void take(unsigned node, unsigned order, void **out, size_t n)
{
	cr_assert_eq(pcpa_alloc_bulk(heap, order, PCPA_NODE(node), out, n), n);
	pcpa_thread_flush(heap);
}

static void expect_node(unsigned node, uint64_t cached, uint64_t depot)
{
	struct pcpa_stats s = stats_of(heap, (int)node);

	cr_expect_eq(s.cached_pages, cached, "node %u: %lu cached", node,
		     (unsigned long)s.cached_pages);
	cr_expect_geq(s.depot_pages, depot);
	cr_expect_eq(s.used_pages, 0);
	cr_expect_eq(s.used_blocks, 0);
}

Test(homeward, bulk_goes_in_batches_and_the_rest_waits)
{
	take(1, 0, blocks, 300);
	KEEPS_ERRNO(pcpa_free_bulk(heap, blocks, 300));
	expect_node(1, 300 % 64, 256);
	expect_node(0, stats_of(heap, 0).cached_pages, 0);
}

Test(homeward, calls_of_any_length_add_up_to_batches)
{
	take(1, 0, blocks, 320);
	for (size_t at = 0, n = 1; at < 320; at += n, n = n % 11 + 1) {
		n = pcpi_min(n, 320 - at);
		if (n == 1)
			KEEPS_ERRNO(pcpa_free(heap, blocks[at]));
		else
			pcpa_free_bulk(heap, blocks + at, n);
	}
	expect_node(1, 0, 320);
}

Test(homeward, all_orders_sized_or_not)
{
	for (unsigned order = 0; order < 4; order++) {
		unsigned batch = 64 >> order;

		take(2, order, blocks, 3 * batch + 1);
		pcpa_free_bulk_sized(heap, order, blocks, batch);
		pcpa_free_bulk(heap, blocks + batch, batch);
		for (unsigned i = 0; i < batch; i++)
			pcpa_free_sized(heap, blocks[2 * batch + i], order);
		cr_expect_eq(stats_of(heap, 2).cached_pages, 0);
		pcpa_free(heap, blocks[3 * batch]);
		cr_expect_eq(stats_of(heap, 2).cached_pages, 1u << order);
		pcpa_thread_flush(heap);
		expect_node(2, 0, 0);
	}
	cr_expect_eq(stats_of(heap, -1).bad_frees, 0);
}

/* Nodes 0, 1, 2, orders 0 to 3, in runs of 1 to 7, and holes. */
Test(homeward, mixed_arrays_are_freed_whole)
{
	unsigned seed = 7;
	size_t n = 0;

	while (n + 8 < N) {
		unsigned node = seed % 3, order = seed / 3 % 4;

		for (unsigned k = 0; k <= seed / 16 % 7; k++) {
			blocks[n] = pcpa_alloc(heap, order, PCPA_NODE(node));
			cr_assert(blocks[n++]);
		}
		if (seed / 128 % 5 == 0)
			blocks[n++] = NULL;
		seed = seed * 1103515245u + 12345u;
		seed >>= 3;
	}
	pcpa_free_bulk(heap, blocks, n);
	cr_expect_eq(stats_summed(heap).used_blocks, 0);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 0);
}

Test(homeward, bad_entries_are_refused_and_the_others_freed)
{
	char *inside, *third;

	take(1, 0, blocks, 200);
	take(1, 3, blocks + 200, 1);
	inside = blocks[200];
	third = blocks[3];
	blocks[201] = inside + 4096;     /* no start of a block */
	blocks[202] = third + 1;         /* no page */
	blocks[203] = inside + (1ul << 40); /* not of this heap */
	pcpa_free(heap, blocks[10]);
	pcpa_heap_drain(heap); /* in the buddy: a second free is seen */
	pcpa_free_bulk(heap, blocks, 203);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 3);
	pcpa_free(heap, blocks[203]);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 4);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 0);
}

Test(homeward, another_order_than_said_is_refused)
{
	take(1, 2, blocks, 40);
	pcpa_free_bulk_sized(heap, 0, blocks, 40);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 40);
	pcpa_free_sized(heap, blocks[0], 3);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 41);
	pcpa_free_bulk_sized(heap, 2, blocks, 40);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 41);
}

Test(homeward, disabled_node_keeps_nothing_of_it)
{
	take(1, 0, blocks, 100);
	cr_assert_eq(pcpa_cache_disable(heap, 1), 0);
	pcpa_free_bulk(heap, blocks, 99);
	pcpa_free(heap, blocks[99]);
	expect_node(1, 0, 0);
	cr_expect_eq(stats_of(heap, 1).depot_pages, 0);
	cr_assert_eq(pcpa_cache_enable(heap, 1), 0);
}

Test(homeward, first_call_of_a_thread_may_be_one)
{
	struct pcpa_heap *other = heap_on(NULL, 4 * MIB, 0, PCPA_HEAP_FIXED);
	void *block = pcpa_alloc(other, 4, PCPA_NODE(1)); /* past the cache */

	cr_assert(block);
	pcpa_free(other, block);
	take(1, 0, blocks, 64);
	my_cpu = 3;
	pcpa_free_bulk(heap, blocks, 64);
	cr_expect_eq(stats_of(heap, 1).used_blocks, 0);
	heap_end(other);
}

static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	(void)sig;
	pcpa_free_bulk(heap, blocks + 100, 100);
	handled = 1;
}

/* A handler's frees wait for nothing; here it interrupts no call. */
Test(homeward, signal_handler_frees_too)
{
	take(1, 0, blocks, 200);
	cr_assert_neq(signal(SIGUSR1, on_signal), SIG_ERR);
	pcpa_free_bulk(heap, blocks, 100);
	raise(SIGUSR1);
	cr_expect(handled);
	cr_expect_eq(stats_of(heap, 1).used_blocks, 0);
}
