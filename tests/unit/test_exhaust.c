/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_exhaust.c - pools that are empty most of the time (lib/exhaust.c,
 * route.c): when a request that found nothing sweeps or grows, and that it finds
 * what there is.  The clock is the test's, and membarriers are counted: one is a
 * sweep.
 */
#include "../support/heap_fixture.h"
#include "../support/helper.h"
#include "heap.h"

#define MANY 4096u
#define LULL_NS UINT64_C(100000)

static void *blocks[MANY];

static struct pcpi_sys table;
static uint64_t now_ns;
static unsigned barriers, populates;
static int populate_rc;

static uint64_t clock_fixed(void)
{
	return now_ns;
}

static void yield_10us(void)
{
	now_ns += 10000;
}

static int barrier_counted(void)
{
	barriers++;
	return pcpi_sys_linux.membarrier();
}

static int populate_counted(void *addr, size_t bytes)
{
	populates++;
	return populate_rc ? populate_rc : pcpi_sys_linux.populate(addr, bytes);
}

static void setup(void)
{
	heap_end(heap_make(0, 2 * MIB, 0));
	table = *pcpi_sys;
	table.clock_ns = clock_fixed;
	table.yield = yield_10us;
	table.membarrier = barrier_counted;
	table.populate = populate_counted;
	now_ns = 1000000000;
	pcpi_sys = &table;
}

TestSuite(exhaust, .init = setup);

/* ---- What the other thread does ---------------------------------------------- */

struct other {
	struct helper helper;
	struct pcpa_heap *heap;
	unsigned order;
	size_t n, done; /* to free from the end of blocks; freed so far */
	void *mine[MANY];
};

static struct other other;

static void other_alloc(void *arg)
{
	struct other *o = arg;

	o->done = pcpa_alloc_bulk(o->heap, o->order, 0, o->mine, o->n);
}

static void other_free(void *arg)
{
	struct other *o = arg;

	for (size_t i = 0; i < o->n; i++)
		pcpa_free(o->heap, o->mine[--o->done]);
}

static void other_flush(void *arg)
{
	cr_expect_eq(pcpa_thread_flush(((struct other *)arg)->heap), 0);
}

static void other_start(struct pcpa_heap *heap, unsigned order, size_t n)
{
	other.heap = heap;
	other.order = order;
	other.n = n;
	helper_start(&other.helper);
	helper_call(&other.helper, other_alloc, &other);
	cr_assert_eq(other.done, n);
}

static void other_frees(size_t n)
{
	other.n = n;
	helper_call(&other.helper, other_free, &other);
}

static void other_end(void)
{
	other_frees(other.done);
	helper_end(&other.helper);
}

/* A heap of which the other has 200 blocks of order 0, and this thread all
 * others; it has just swept, and been refused. */
static struct pcpa_heap *exhausted(unsigned flags, size_t *n)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, flags);

	other_start(heap, 0, 201);
	other_frees(1);
	if (flags & PCPA_HEAP_NO_IPI)
		helper_call(&other.helper, other_flush, &other);
	*n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_assert_eq(*n, 1024 - 200);
	cr_assert((flags & PCPA_HEAP_NO_IPI) || heap->env.zones[0].lull_ns);
	barriers = 0;
	return heap;
}

static void end_exhausted(struct pcpa_heap *heap, size_t n)
{
	other_end();
	free_all(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

static uint64_t batch_of(struct pcpa_heap *heap)
{
	return pcpi_zone_pageset(&heap->env.zones[0]).depot_batch;
}

/* ---- Failing fast ------------------------------------------------------------- */

Test(exhaust, failures_do_not_sweep_while_little_is_freed)
{
	size_t n;
	struct pcpa_heap *heap = exhausted(0, &n);

	for (unsigned i = 0; i + 1 < batch_of(heap); i++) {
		other_frees(1);
		cr_expect_null(pcpa_alloc(heap, 0, 0));
		cr_expect_eq(errno, ENOMEM);
	}
	cr_expect_gt(stats_of(heap, -1).cached_pages, 0, "it could be had");
	cr_expect_eq(barriers, 0);
	now_ns += LULL_NS;
	n += alloc_all(heap, 0, 0, blocks + n, MANY - n);
	cr_expect_eq(n, 1024 - 200 + batch_of(heap) - 1);
	cr_expect_eq(barriers, 1);
	end_exhausted(heap, n);
}

Test(exhaust, thousands_of_failures_sweep_once_in_100_us)
{
	size_t n;
	struct pcpa_heap *heap = exhausted(0, &n);

	other_frees(1);
	for (unsigned i = 0; i < 4000; i++) {
		now_ns += 1000;
		blocks[n] = pcpa_alloc(heap, 0, 0);
		if (blocks[n]) {
			cr_expect_geq(i, 99, "found after %u us", i + 1);
			n++;
			other_frees(1);
		}
	}
	cr_expect_eq(barriers, 40);
	end_exhausted(heap, n);
}

Test(exhaust, one_page_is_found_after_100_us)
{
	size_t n;
	struct pcpa_heap *heap = exhausted(0, &n);

	other_frees(1);
	now_ns += LULL_NS - 1;
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	now_ns++;
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n - 1]);
	end_exhausted(heap, n);
}

Test(exhaust, batch_in_a_cache_is_found_at_once)
{
	size_t n, batch;
	struct pcpa_heap *heap = exhausted(0, &n);

	batch = batch_of(heap);
	other_frees(batch);
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n - 1], "of %zu", batch);
	end_exhausted(heap, n);
}

Test(exhaust, what_the_depot_has_is_never_missed)
{
	size_t n;
	struct pcpa_heap *heap = exhausted(0, &n);

	for (unsigned i = 0; i < 20; i++) {
		other_frees(1);
		helper_call(&other.helper, other_flush, &other);
		blocks[n++] = pcpa_alloc(heap, 0, 0);
		cr_expect(blocks[n - 1]);
		cr_expect_null(pcpa_alloc(heap, 0, 0));
	}
	cr_expect_eq(barriers, 0);
	end_exhausted(heap, n);
}

/* Its own blocks of other orders need no sweep. */
Test(exhaust, own_cache_is_never_missed)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	size_t n = alloc_all(heap, 0, 0, blocks, MANY);

	pcpa_free(heap, blocks[--n]);
	cr_expect_null(pcpa_alloc(heap, 1, 0));
	pcpa_free(heap, blocks[--n]);
	blocks[n] = pcpa_alloc(heap, 1, 0); /* buddies: taken ascending */
	cr_expect(blocks[n]);
	pcpa_free(heap, blocks[n]);
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n - 2] && blocks[n - 1]);
	free_all(heap, blocks, n);
	heap_end(heap);
}

/* The one page of another cache that a large block lacks: it is waited for. */
Test(exhaust, large_request_waits_for_the_next_sweep)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t n;

	other_start(heap, 0, 1);
	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_assert_eq(n, 1023);
	free_all(heap, blocks, n);
	cr_expect_eq(alloc_all(heap, 9, 0, blocks, 2), 1);
	barriers = 0;
	cr_expect_null(pcpa_alloc(heap, 9, 0));
	cr_expect_eq(barriers, 0);
	other_frees(1);
	blocks[1] = pcpa_alloc(heap, 9, 0);
	cr_expect(blocks[1]);
	cr_expect_eq(barriers, 1);
	free_all(heap, blocks, 2);
	other_end();
	heap_end(heap);
}

/* pcpa_heap_drain() of another thread may take 100 ms. */
Test(exhaust, other_drainers_are_waited_for_100_us)
{
	size_t n;
	struct pcpa_heap *heap = exhausted(0, &n);
	uint64_t before;

	now_ns += LULL_NS;
	other_frees(1);
	before = now_ns;
	pcpi_lock_take(&heap->drain_lock);
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	pcpi_lock_drop(&heap->drain_lock);
	cr_expect_geq(now_ns - before, LULL_NS);
	cr_expect_leq(now_ns - before, LULL_NS + 30000);
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n - 1]);
	end_exhausted(heap, n);
}

/* The other is found inside its cache, for ever. */
static void other_enter(void *arg)
{
	struct other *o = arg;

	cr_expect(pcpi_cache_enter(pcpi_hot_cache(&o->heap->hot)));
}

static void other_leave(void *arg)
{
	pcpi_cache_leave(pcpi_hot_cache(&((struct other *)arg)->heap->hot));
}

Test(exhaust, busy_owner_is_waited_for_100_us_in_all)
{
	size_t n;
	struct pcpa_heap *heap = exhausted(0, &n);
	uint64_t before;

	other_frees(5);
	helper_call(&other.helper, other_enter, &other);
	now_ns += LULL_NS;
	before = now_ns;
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	cr_expect_leq(now_ns - before, LULL_NS + 10000);
	cr_expect_eq(barriers, 1);
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	cr_expect_eq(barriers, 1, "it was asked already");
	helper_call(&other.helper, other_leave, &other);
	other_frees(1); /* flushes first */
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n - 1]);
	end_exhausted(heap, n);
}

Test(exhaust, heap_without_interrupts_asks_once_in_100_us)
{
	size_t n;
	struct pcpa_heap *heap = exhausted(PCPA_HEAP_NO_IPI, &n);

	now_ns += LULL_NS;
	other_frees(5);
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	other_frees(1); /* flushes first */
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n - 1]);
	cr_expect_eq(barriers, 0);
	end_exhausted(heap, n);
}

/* ---- Ranges that are isolated ------------------------------------------------------ */

/* An isolation of the first half of a zone of 1024 pages, which ends when those who
 * wait have yielded so often; 0: not by itself. */
#define HALF 512u

static struct pcpi_zone *half_of;
static unsigned yields;

static void half_end(void)
{
	uint32_t missing;

	cr_expect_not(pcpi_zone_isolate_end(half_of, UINT64_MAX, &missing));
}

static void yield_towards_the_end(void)
{
	now_ns += 10000;
	if (yields > 0 && --yields == 0)
		half_end();
}

static void half_isolate(struct pcpa_heap *heap, unsigned until)
{
	half_of = &heap->env.zones[0];
	yields = until;
	table.yield = yield_towards_the_end;
	cr_assert(pcpi_zone_isolate(half_of, half_of->first_pfn, HALF));
}

static void expect_waited(unsigned order)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t n;

	half_isolate(heap, 3);
	n = alloc_all(heap, order, 0, blocks, HALF >> order);
	cr_assert_eq(n, HALF >> order);
	cr_assert_eq(yields, 3);
	KEEPS_ERRNO(blocks[n] = pcpa_alloc(heap, order, 0));
	cr_expect(blocks[n], "order %u", order);
	cr_expect_eq(yields, 0);
	free_all(heap, blocks, n + 1);
	expect_all_free(heap);
	heap_end(heap);
}

Test(exhaust, pages_of_an_isolated_range_are_waited_for)
{
	for (unsigned order = 0; order <= 9; order++)
		expect_waited(order);
}

/* Some pages in a cache, for which no sweep is due. */
Test(exhaust, isolated_pages_are_waited_for_while_little_is_cached)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t n;

	half_isolate(heap, 0);
	other_start(heap, 0, 201);
	other_frees(1);
	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_assert_eq(n, HALF - 200);
	other_frees(1);
	cr_assert(blocks[n++] = pcpa_alloc(heap, 0, 0));
	cr_assert_eq(heap->env.zones[0].lull_ns, now_ns);
	other_frees(1);
	barriers = 0;
	yields = 3;
	blocks[n] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n++]);
	cr_expect_eq(yields, 0);
	cr_expect_eq(barriers, 0);
	end_exhausted(heap, n);
}

Test(exhaust, isolated_range_is_waited_for_100_us)
{
	struct pcpa_heap *heap = heap_fixed(4 * MIB, 0);
	size_t n;
	uint64_t before;

	half_isolate(heap, 0);
	n = alloc_all(heap, 0, 0, blocks, HALF);
	before = now_ns;
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	cr_expect_eq(errno, ENOMEM);
	cr_expect_geq(now_ns - before, LULL_NS);
	cr_expect_leq(now_ns - before, LULL_NS + 10000);
	half_end();
	free_all(heap, blocks, n);
	expect_all_free(heap);
	heap_end(heap);
}

/* ---- Growth that is refused ------------------------------------------------------ */

Test(exhaust, refused_growth_is_not_tried_at_every_failure)
{
	struct pcpa_heap *heap = heap_make(2 * MIB, 8 * MIB, 0);
	size_t n;
	unsigned tried;

	populate_rc = -ENOMEM;
	n = alloc_all(heap, 0, 0, blocks, MANY);
	cr_assert_eq(n, 512);
	cr_expect_null(pcpa_alloc(heap, 0, 0));
	tried = populates;
	for (unsigned i = 0; i < 1000; i++)
		cr_expect_null(pcpa_alloc(heap, 0, 0));
	cr_expect_eq(populates, tried);
	populate_rc = 0;
	now_ns += 10000000;
	blocks[n++] = pcpa_alloc(heap, 0, 0);
	cr_expect(blocks[n - 1]);
	free_all(heap, blocks, n);
	heap_end(heap);
}

static void setup_two_nodes(void)
{
	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4", 1);
	setup();
}

TestSuite(exhaust_nodes, .init = setup_two_nodes);

/* Milliseconds until growth of node 0 is tried again. */
static unsigned ms_to_the_next_try(struct pcpa_heap *heap)
{
	unsigned before = populates, ms = 0;

	while (populates == before) {
		now_ns += 1000000;
		ms++;
		cr_expect_null(pcpa_alloc(heap, 0, PCPA_NODE(0) | PCPA_THISNODE));
		cr_assert_leq(ms, 2000);
	}
	return ms;
}

/* There each try may populate what is given back at once. */
Test(exhaust_nodes, refused_growth_is_tried_ever_more_rarely)
{
	static const unsigned lulls[] = {10, 20, 40, 80, 160, 320, 640,
					 1000, 1000};
	struct pcpa_heap *heap = heap_make(2 * MIB, 8 * MIB, 0);
	void *block;
	size_t n;

	populate_rc = -ENOMEM;
	n = alloc_all(heap, 0, PCPA_NODE(0) | PCPA_THISNODE, blocks, MANY);
	cr_assert_eq(n, 512);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NODE(0) | PCPA_THISNODE));
	for (unsigned i = 0; i < sizeof(lulls) / sizeof(lulls[0]); i++)
		cr_expect_eq(ms_to_the_next_try(heap), lulls[i], "lull %u", i);
	block = pcpa_alloc(heap, 0, PCPA_NODE(0));
	cr_expect_eq(pcpa_block_node(heap, block), 1, "served meanwhile");
	pcpa_free(heap, block);
	populate_rc = 0;
	now_ns += 1000000000;
	n += alloc_all(heap, 0, PCPA_NODE(0) | PCPA_THISNODE, blocks + n, 512);
	cr_expect_eq(n, 1024);
	populate_rc = -ENOMEM;
	n += alloc_all(heap, 0, PCPA_NODE(0) | PCPA_THISNODE, blocks + n,
		       MANY - n);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NODE(0) | PCPA_THISNODE));
	cr_expect_eq(ms_to_the_next_try(heap), 10, "from the beginning");
	free_all(heap, blocks, n);
	heap_end(heap);
}

#define REFUSED 8u

static pthread_barrier_t together;

/* So slow that all are refused before the first one's refusal is known. */
static int populate_refused(void *addr, size_t bytes)
{
	(void)addr;
	(void)bytes;
	usleep(20000);
	return -ENOMEM;
}

static void *alloc_refused(void *heap)
{
	pthread_barrier_wait(&together);
	cr_expect_null(pcpa_alloc(heap, 0, PCPA_NODE(0) | PCPA_THISNODE));
	return NULL;
}

Test(exhaust_nodes, refusals_together_count_as_one)
{
	struct pcpa_heap *heap = heap_make(2 * MIB, 8 * MIB, 0);
	pthread_t threads[REFUSED];
	size_t n;

	n = alloc_all(heap, 0, PCPA_NODE(0) | PCPA_THISNODE | PCPA_NOGROW, blocks,
		      MANY);
	table.populate = populate_refused;
	pthread_barrier_init(&together, NULL, REFUSED);
	for (unsigned i = 0; i < REFUSED; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, alloc_refused, heap), 0);
	for (unsigned i = 0; i < REFUSED; i++)
		pthread_join(threads[i], NULL);
	cr_expect_geq(heap->env.zones[0].grow_failures, 1);
	cr_expect_leq(heap->env.zones[0].grow_failures, 2, "%u",
		      heap->env.zones[0].grow_failures);
	free_all(heap, blocks, n);
	heap_end(heap);
}

/* ---- Nothing stays behind ---------------------------------------------------------- */

/* Of 32 blocks the other holds one, has some more in its cache, and is blocked
 * in read(2). */
static void expect_31_of_32(unsigned order)
{
	size_t pages = pcpi_max((size_t)32 << order, (size_t)512), n;
	struct pcpa_heap *heap = heap_fixed(pages * pcpi_sys_page_bytes(), 0);
	size_t rest = (pages >> order) - 32;

	cr_assert_eq(pcpa_alloc_bulk(heap, order, 0, blocks, rest), rest);
	cr_assert_eq(pcpa_heap_drain(heap), 0);
	other_start(heap, order, 12);
	other_frees(11);
	n = alloc_all(heap, order, 0, blocks + rest, 40);
	cr_expect_eq(n, 31, "order %u: %zu", order, n);
	cr_expect_eq(errno, ENOMEM);
	free_all(heap, blocks, rest + n);
	other_end();
	heap_end(heap);
}

Test(exhaust, of_32_blocks_31_can_be_had_whatever_the_order)
{
	for (unsigned order = 0; order <= 9; order++)
		expect_31_of_32(order);
}

/* The last huge blocks of a machine's pool could not be had while single pages of
 * each sat in caches. */
Test(exhaust, every_huge_block_is_had_while_many_caches_hold_pages)
{
	static struct other many[4];
	struct pcpa_heap *heap = heap_fixed(16 * MIB, 0);
	size_t n;

	for (unsigned i = 0; i < 4; i++) {
		many[i].heap = heap;
		many[i].n = 1024;
		helper_start(&many[i].helper);
		helper_call(&many[i].helper, other_alloc, &many[i]);
		cr_assert_eq(many[i].done, 1024);
	}
	for (unsigned i = 0; i < 4; i++)
		helper_call(&many[i].helper, other_free, &many[i]);
	cr_assert_gt(stats_summed(heap).cached_pages, 0);
	n = alloc_all(heap, 9, 0, blocks, MANY);
	cr_expect_eq(n, 8, "%zu of 8", n);
	free_all(heap, blocks, n);
	for (unsigned i = 0; i < 4; i++)
		helper_end(&many[i].helper);
	heap_end(heap);
}

/* All pages are free, but in the cache of an idle thread as blocks of a lower
 * order, and in the depot. */
static void expect_merged(unsigned order, unsigned lower)
{
	struct pcpa_heap *heap = heap_fixed(2 * MIB, 0);
	size_t n;

	other_start(heap, lower, 512 >> lower);
	other_frees(other.done);
	n = alloc_all(heap, order, 0, blocks, MANY);
	cr_expect_eq(n, 512u >> order, "order %u from %u: %zu", order, lower, n);
	free_all(heap, blocks, n);
	other_end();
	heap_end(heap);
}

Test(exhaust, every_order_is_made_of_what_caches_hold_as_others)
{
	for (unsigned order = 0; order <= 9; order++)
		for (unsigned lower = 0; lower < 4; lower++)
			expect_merged(order, lower);
}
