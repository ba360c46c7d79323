/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_follow.c - a thread that has moved to another node, where nothing ticks: after
 * so many calls of each kind its blocks are the new node's, and what it had of the
 * old one is not in its caches any more.  The clock stands still, and the test says
 * on which CPU the thread is.
 */
#include <pcpalloc/inline.h>
#include <signal.h>

#include "../../lib/heap.h"
#include "../support/heap_fixture.h"
#include "sys/sys.h"

/* What pcpalloc.h promises: allocations of an order. */
#define BOUND 4096u
#define MAX_BLOCKS 8192u
#define BULK 32u

/* CPUs 0 to 3 are of node 0. */
#define FAR_CPU 5

static struct pcpa_heap *heap;
static void *blocks[MAX_BLOCKS];
static struct pcpi_sys table;
static int my_cpu;

static uint64_t coarse_said(void)
{
	return 1000000000;
}

static int cpu_said(void)
{
	return my_cpu;
}

static void setup(void)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	table = pcpi_sys_linux;
	table.coarse_ns = coarse_said;
	table.cpu = cpu_said;
	pcpi_sys = &table;
	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4", 1);
	o.initial_bytes = 64 * MIB;
	o.flags = PCPA_HEAP_FIXED;
	o.verbosity = 0;
	cr_assert_eq(pcpa_heap_create(&o, &heap), 0);
}

static void end(void)
{
	cr_expect_eq(heap->env.ticks, 0, "the clock stands");
	heap_end(heap);
}

TestSuite(follow, .init = setup);

/* Enough of order 0 in its ring that what follows hits. */
static void warm(void)
{
	void *own[BULK];
	uint64_t refills = 0;

	cr_assert_eq(pcpa_thread_flush(heap), 0);
	for (unsigned i = 0; i < 4; i++) {
		refills = stats_of(heap, -1).refills;
		cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, own, BULK), BULK);
		pcpa_free_bulk(heap, own, BULK);
	}
	cr_assert_eq(stats_of(heap, -1).refills, refills);
}

/* Something of each order of the node in the thread's caches. */
static void fill(unsigned flags)
{
	void *own[40];

	for (unsigned order = 0; order < PCPI_PCP_ORDERS; order++) {
		cr_assert_eq(pcpa_alloc_bulk(heap, order, flags, own, 40), 40);
		pcpa_free_bulk_sized(heap, order, own, 40);
	}
}

static int home_node(void)
{
	return (int)pcpi_hot_cache(&heap->hot)->zone->config.os_node;
}

/* The thread's hits are of node 1, and it has kept nothing of node 0. */
static void expect_followed(void)
{
	cr_expect_eq(home_node(), 1);
	cr_expect_eq(stats_of(heap, 0).cached_pages, 0, "left behind");
}

/* What was in its hand as it followed is in an outbox, and goes home, too. */
static void expect_followed_after_calls(void)
{
	cr_expect_eq(home_node(), 1);
	cr_expect_leq(stats_of(heap, 0).cached_pages, BULK, "left behind");
	for (unsigned i = 0; i < BOUND; i++)
		pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	expect_followed();
}

/* ---- Calls that hit -------------------------------------------------------------- */

static void pairs_follow(unsigned order)
{
	void *block;
	int node = 0;
	unsigned n = 0;

	fill(0);
	for (unsigned i = 0; i < 100; i++)
		pcpa_free(heap, pcpa_alloc(heap, order, 0));
	my_cpu = FAR_CPU;
	while (node == 0 && n <= BOUND) {
		block = pcpa_alloc(heap, order, 0);
		node = pcpa_block_node(heap, block);
		pcpa_free(heap, block);
		n++;
	}
	cr_expect_leq(n, BOUND);
	expect_followed_after_calls();
	end();
}

Test(follow, pairs)
{
	pairs_follow(0);
}

Test(follow, pairs_of_order_1)
{
	pairs_follow(1);
}

Test(follow, pairs_of_order_3)
{
	pairs_follow(3);
}

Test(follow, bulk_pairs)
{
	int node = 0;
	unsigned n = 0;

	warm();
	my_cpu = FAR_CPU;
	while (node == 0 && n <= BOUND) {
		cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, BULK), BULK);
		node = pcpa_block_node(heap, blocks[0]);
		pcpa_free_bulk(heap, blocks, BULK);
		n += BULK;
	}
	cr_expect_leq(n, BOUND + BULK);
	cr_expect_eq(node, 1);
	expect_followed_after_calls();
	end();
}

/* Fewer than the wide moves are for, and an odd number: no count is met exactly. */
Test(follow, small_bulk_pairs)
{
	int node = 0;
	unsigned n = 0;

	warm();
	my_cpu = FAR_CPU;
	while (node == 0 && n <= BOUND + 3) {
		cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 3), 3);
		node = pcpa_block_node(heap, blocks[0]);
		pcpa_free_bulk(heap, blocks, 3);
		n += 3;
	}
	cr_expect_eq(node, 1);
	expect_followed_after_calls();
	end();
}

Test(follow, inline_pairs)
{
	struct pcpa_cache cache;
	void *block;
	int node = 0;
	unsigned n = 0;

	warm();
	cache = pcpa_cache_self(heap);
	cr_assert(pcpa_cache_is_inline(&cache));
	my_cpu = FAR_CPU;
	while (node == 0 && n <= BOUND) {
		block = pcpa_cache_alloc(&cache, 0, 0);
		node = pcpa_block_node(heap, block);
		pcpa_cache_free(&cache, block);
		n++;
	}
	cr_expect_eq(node, 1);
	cr_expect_gt(n, 100, "a new handle hits");
	expect_followed_after_calls();
	end();
}

Test(follow, inline_bulk_pairs)
{
	struct pcpa_cache cache = pcpa_cache_self(heap);
	int node = 0;
	unsigned n = 0;

	warm();
	my_cpu = FAR_CPU;
	while (node == 0 && n <= BOUND + BULK) {
		cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, BULK),
			     BULK);
		node = pcpa_block_node(heap, blocks[0]);
		pcpa_cache_free_bulk(&cache, blocks, BULK);
		n += BULK;
	}
	cr_expect_eq(node, 1);
	expect_followed_after_calls();
	end();
}

/* Blocks that were out as it moved don't come back into the cache that it left, nor
 * out of it. */
Test(follow, old_handle_is_calls)
{
	struct pcpa_cache cache = pcpa_cache_self(heap);
	void *block;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 10), 10);
	my_cpu = FAR_CPU;
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	pcpa_free(heap, pcpa_alloc(heap, 5, 0));
	expect_followed();
	cr_expect_eq(pcpa_cache_free_within(&cache, blocks[0], 0), 0);
	for (unsigned i = 0; i < 10; i++)
		pcpa_cache_free(&cache, blocks[i]);
	block = pcpa_cache_alloc(&cache, 0, 0);
	cr_expect_eq(pcpa_block_node(heap, block), 1);
	pcpa_cache_free(&cache, block);
	my_cpu = 0;
	block = pcpa_alloc(heap, 5, 0);
	pcpa_free(heap, block);
	cr_expect_eq(home_node(), 0);
	cr_expect_eq(cache.inside->claim, 0, "as good as before");
	end();
}

/* Frees look when the cache asks its policy. */
Test(follow, frees)
{
	unsigned n, high;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, MAX_BLOCKS), MAX_BLOCKS);
	fill(PCPA_NODE(0));
	high = (unsigned)pcpi_hot_cache(&heap->hot)->high_cap;
	my_cpu = FAR_CPU;
	for (n = 0; n < MAX_BLOCKS && home_node() == 0; n++)
		pcpa_free(heap, blocks[n]);
	cr_expect_leq(n, high);
	/* Of what it frees from now on there is an outbox. */
	expect_followed();
	pcpa_free_bulk(heap, blocks + n, MAX_BLOCKS - n);
	cr_expect_eq(home_node(), 1);
	end();
}

/* ---- Calls that don't ----------------------------------------------------------------- */

/* Blocks of the node where it is now, of which its cache knows nothing. */
Test(follow, frees_of_the_new_node)
{
	unsigned n;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, PCPA_NODE(1), blocks, 200), 200);
	fill(0);
	my_cpu = FAR_CPU;
	for (n = 0; n < 200 && home_node() == 0; n++)
		pcpa_free(heap, blocks[n]);
	cr_expect_leq(n, PCPI_CHUNK);
	expect_followed();
	pcpa_free_bulk(heap, blocks + n, 200 - n);
	end();
}

Test(follow, requests_for_a_node)
{
	fill(0);
	my_cpu = FAR_CPU;
	pcpa_free(heap, pcpa_alloc(heap, 0, PCPA_NODE(1)));
	expect_followed();
	end();
}

Test(follow, requests_for_the_old_node)
{
	fill(0);
	my_cpu = FAR_CPU;
	blocks[0] = pcpa_alloc(heap, 0, PCPA_NODE(0));
	cr_expect_eq(pcpa_block_node(heap, blocks[0]), 0);
	cr_expect_eq(home_node(), 1);
	pcpa_free(heap, blocks[0]);
	end();
}

Test(follow, blocks_that_caches_dont_hold)
{
	blocks[0] = pcpa_alloc(heap, 5, 0);
	blocks[1] = pcpa_alloc(heap, 5, 0);
	fill(0);
	my_cpu = FAR_CPU;
	pcpa_free(heap, blocks[0]);
	expect_followed();
	my_cpu = 0;
	fill(0);
	my_cpu = FAR_CPU;
	blocks[0] = pcpa_alloc(heap, 5, 0);
	cr_expect_eq(pcpa_block_node(heap, blocks[0]), 1);
	expect_followed();
	pcpa_free(heap, blocks[0]);
	pcpa_free(heap, blocks[1]);
	end();
}

Test(follow, requests_past_the_cache)
{
	fill(0);
	my_cpu = FAR_CPU;
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, MAX_BLOCKS), MAX_BLOCKS);
	expect_followed();
	pcpa_free_bulk(heap, blocks, MAX_BLOCKS);
	end();
}

Test(follow, ranges)
{
	void *range;

	fill(0);
	my_cpu = FAR_CPU;
	range = pcpa_alloc_contig(heap, 100, 1, 0);
	cr_assert_not_null(range);
	expect_followed();
	my_cpu = 0;
	fill(0);
	my_cpu = FAR_CPU;
	pcpa_free_contig(heap, range, 100);
	expect_followed();
	end();
}

/* One that mustn't wait can't give back; the next one that may does. */
Test(follow, requests_that_dont_wait)
{
	fill(0);
	blocks[0] = pcpa_alloc(heap, 0, 0);
	my_cpu = FAR_CPU;
	blocks[1] = pcpa_alloc(heap, 0, PCPA_NOWAIT);
	cr_expect_eq(pcpa_block_node(heap, blocks[1]), 1);
	cr_expect_eq(home_node(), 0);
	pcpa_free(heap, blocks[0]);
	expect_followed_after_calls();
	pcpa_free(heap, blocks[1]);
	end();
}

/* A thread that never allocates from its cache. */
Test(follow, outbox_of_large_blocks_caller)
{
	blocks[0] = pcpa_alloc(heap, 0, 0);
	my_cpu = FAR_CPU;
	pcpa_free(heap, pcpa_alloc(heap, 5, 0));
	pcpa_free(heap, blocks[0]);
	cr_expect_eq(stats_of(heap, 0).cached_pages, 1, "in the outbox");
	for (unsigned i = 0; i < 64; i++)
		pcpa_free(heap, pcpa_alloc(heap, 5, 0));
	expect_followed();
	end();
}

/* ---- In between ------------------------------------------------------------------------ */

/* A claim keeps it from giving back as it moves: that is made up for. */
Test(follow, cache_that_was_claimed_meanwhile)
{
	struct pcpi_cache *old;

	fill(0);
	old = pcpi_hot_cache(&heap->hot);
	cr_assert(pcpi_cache_claim(old));
	my_cpu = FAR_CPU;
	pcpa_free(heap, pcpa_alloc(heap, 5, 0));
	cr_expect_eq(home_node(), 1);
	cr_expect_gt(stats_of(heap, 0).cached_pages, 0);
	pcpi_cache_claim_end(old, PCPI_CLAIM_NONE);
	for (unsigned i = 0; i < BOUND; i++)
		pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	expect_followed();
	end();
}

/* A thread that goes to and fro has its caches, and hits, where it is. */
Test(follow, to_and_fro)
{
	uint64_t refills;

	for (unsigned i = 0; i < 10; i++) {
		my_cpu = i % 2 ? FAR_CPU : 0;
		for (unsigned k = 0; k < 2 * BOUND; k++)
			pcpa_free(heap, pcpa_alloc(heap, 0, 0));
		cr_expect_eq(home_node(), (int)(i % 2));
		cr_expect_eq(stats_of(heap, !(i % 2)).cached_pages, 0);
		refills = stats_of(heap, -1).refills;
		for (unsigned k = 0; k < 10 * BOUND; k++)
			pcpa_free(heap, pcpa_alloc(heap, 0, 0));
		cr_expect_eq(stats_of(heap, -1).refills, refills);
	}
	cr_expect_eq(stats_of(heap, -1).caches, 2);
	end();
}

/* ---- In the middle of something ---------------------------------------------------- */

/* A free is interrupted under its mark by a signal handler, whose call finds that the
 * thread has moved; then it puts its blocks into the cache that was left. */
Test(follow, free_that_the_move_interrupted)
{
	struct pcpi_cache *c;
	struct pcpi_ring *ring;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, BULK), BULK);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	c = pcpi_hot_cache(&heap->hot);
	ring = &c->list[0].ring;
	cr_assert(pcpi_mark_enter(c));
	my_cpu = FAR_CPU;
	pcpa_free(heap, pcpa_alloc(heap, 5, 0));
	for (unsigned i = 0; i < BULK; i++)
		ring->slots[(ring->head + i) & ring->mask] =
			(uint32_t)(((char *)blocks[i] - heap->hot.base) >>
				   heap->hot.page_shift);
	pcpi_store_relaxed(&ring->head, ring->head + BULK);
	pcpi_mark_leave(c);
	for (unsigned i = 0; i < 2 * BOUND; i++)
		pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	expect_followed();
	end();
}

static unsigned nr_available;

static void note(const struct pcpa_event *e, void *arg)
{
	(void)arg;
	nr_available += e->node == 0 && e->kind == PCPA_EVENT_AVAILABLE;
}

static uint64_t available(const struct pcpi_zone *z)
{
	return pcpi_load_relaxed(&z->free_pages) + pcpi_zone_depot_pages(z);
}

/* A node is low, and the pages that make it available go home with a thread's hits. */
Test(follow, hits_tell_that_memory_is_available)
{
	static void *all[40000];
	struct pcpi_zone *z = &heap->env.zones[0];
	size_t n = 0, got;

	my_cpu = FAR_CPU;
	warm();
	cr_assert_eq(pcpa_heap_watch(heap, note, NULL), 0);
	while ((got = pcpa_alloc_bulk(heap, 0, PCPA_NODE(0) | PCPA_THISNODE, all + n, 64)))
		n += got;
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	while (available(z) + BULK < z->marks.high) {
		pcpa_free(heap, all[--n]);
		cr_assert_eq(pcpa_thread_flush(heap), 0);
	}
	for (uint64_t left = z->marks.high - available(z); left > 0; left--)
		pcpa_free(heap, all[--n]);
	cr_expect_eq(nr_available, 0);
	for (unsigned i = 0; i < 2 * BOUND; i++)
		pcpa_free(heap, pcpa_alloc(heap, 0, 0));
	cr_expect_geq(available(z), z->marks.high);
	cr_expect_eq(nr_available, 1);
	pcpa_free_bulk(heap, all, n);
	end();
}
