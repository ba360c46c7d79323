/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_inline.c - pcpalloc/inline.h on the library that it is from: what is a hit
 * without a call, and what makes the call.  Calls are counted by macros around the
 * names that the header uses.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/heap_fixture.h"
#include "convert.h"
#include "heap.h"
#include "sys/sys.h"

static unsigned calls;

#define pcpa_alloc(h, o, f) (calls++, pcpa_alloc(h, o, f))
#define pcpa_free(h, b) (calls++, pcpa_free(h, b))
#define pcpa_free_sized(h, b, o) (calls++, pcpa_free_sized(h, b, o))
#define pcpa_alloc_bulk(h, o, f, b, n) (calls++, pcpa_alloc_bulk(h, o, f, b, n))
#define pcpa_free_bulk(h, b, n) (calls++, pcpa_free_bulk(h, b, n))
#define pcpa_free_bulk_sized(h, o, b, n)                                       \
	(calls++, pcpa_free_bulk_sized(h, o, b, n))
#undef NDEBUG
#define PCPA_INLINE_DEBUG 1
#include <pcpalloc/inline.h>

#define MANY 600u

static struct pcpa_heap *heap;
static struct pcpa_cache cache;
static struct pcpi_cache *mine;
static void *blocks[MANY];

static void begin(unsigned flags)
{
	heap = heap_fixed(32 * MIB, flags);
	cache = pcpa_cache_self(heap);
	mine = pcpi_hot_cache(&heap->hot);
	cr_assert(pcpa_cache_is_inline(&cache));
	cr_assert_eq((void *)cache.inside, (void *)mine);
}

static void end(void)
{
	expect_all_free(heap);
	heap_end(heap);
}

/* n blocks of the order are in the ring, which has settled. */
static void fill(unsigned order, size_t n)
{
	cr_assert_eq(pcpa_alloc_bulk(heap, order, 0, blocks, n), n);
	for (size_t i = 0; i < n; i++)
		pcpa_free(heap, blocks[i]);
	calls = 0;
}

#define EXPECT_CALLS(n) cr_expect_eq(calls, (n), "%u calls, not %u", calls, (n))

/* ---- One ------------------------------------------------------------------------ */

Test(inline, hits_of_each_order_make_no_call_and_count)
{
	struct pcpa_stats before, after;
	void *a, *b;

	begin(0);
	for (unsigned o = 0; o < PCPA_INLINE_ORDERS; o++) {
		fill(o, 4);
		before = stats_of(heap, -1);
		a = pcpa_cache_alloc(&cache, o, 0);
		b = pcpa_cache_alloc(&cache, o, 0);
		cr_expect(a && b && a != b);
		cr_expect_eq(pcpa_block_order(heap, b), (int)o);
		cr_expect_eq(stats_of(heap, -1).used_blocks, 2);
		pcpa_cache_free(&cache, a);
		pcpa_cache_free_sized(&cache, b, o);
		EXPECT_CALLS(0);
		cr_expect_eq(mine->busy, 0);
		after = stats_of(heap, -1);
		cr_expect_eq(after.alloc_total - before.alloc_total, 2);
		cr_expect_eq(after.free_total - before.free_total, 2);
	}
	end();
}

Test(inline, block_freed_last_goes_through_the_front)
{
	void *a;

	begin(0);
	fill(0, 200);
	cr_assert_null(mine->front_rest, "no front");
	pcpa_cache_free(&cache, pcpa_cache_alloc(&cache, 0, 0));
	a = mine->front;
	cr_expect_gt((uintptr_t)a, 1);
	cr_expect_eq(pcpa_cache_alloc(&cache, 0, 0), a);
	cr_expect_null(mine->front);
	pcpa_cache_free(&cache, a);
	EXPECT_CALLS(0);
	end();
}

/* To where bulk calls take from, whatever part of the block is named. */
Test(inline, free_within_a_block_is_a_hit_of_its_list)
{
	size_t page;

	begin(PCPA_HEAP_FIXED);
	page = pcpa_heap_page_bytes(heap);
	for (unsigned order = 0; order <= 3; order++) {
		size_t inside[] = {0, 1, 64, (page << order) - 1};

		fill(order, 40);
		for (size_t i = 0; i < 4; i++) {
			char *block = NULL, *again = NULL;
			void *list;

			cr_assert_eq(pcpa_cache_alloc_bulk(&cache, order, 0,
							   (void **)&block, 1), 1u);
			calls = 0;
			list = mine->front;
			cr_expect(pcpa_cache_free_within(&cache, block + inside[i],
							 order));
			cr_expect_eq(mine->front, list, "the front is left alone");
			EXPECT_CALLS(0u);
			cr_assert_eq(pcpa_cache_alloc_bulk(&cache, order, 0,
							   (void **)&again, 1), 1u);
			cr_expect_eq(again, block);
			pcpa_free_sized(heap, again, order);
		}
	}
	end();
}

Test(inline, free_within_says_where_nothing_was_done)
{
	static char foreign[8192];
	char *block;

	begin(PCPA_HEAP_FIXED);
	fill(0, 40);
	block = pcpa_alloc(heap, 0, 0);
	cr_expect_not(pcpa_cache_free_within(&cache, foreign, 0));
	cr_expect_not(pcpa_cache_free_within(&cache, NULL, 0));
	cr_expect_not(pcpa_cache_free_within(&cache, block, PCPA_INLINE_ORDERS));
	mine->claim = 2;
	cr_expect_not(pcpa_cache_free_within(&cache, block + 100, 0));
	mine->claim = 0;
	mine->busy = 1;
	cr_expect_not(pcpa_cache_free_within(&cache, block + 100, 0));
	mine->busy = 0;
	cr_expect(pcpa_cache_free_within(&cache, block + 100, 0));
	end();
}

/* Of every length and order, whatever part of each block is named. */
Test(inline, bulk_within_blocks_is_a_hit_of_their_list)
{
	static const size_t lengths[] = {1, 5, 8, 16, 37, 255, 256};
	void *at[PCPA_INLINE_BULK], *again[PCPA_INLINE_BULK];
	size_t block;

	begin(PCPA_HEAP_FIXED);
	for (unsigned order = 0; order <= 3; order++) {
		struct pcpi_ring *list = &mine->list[order].ring;

		block = pcpa_heap_page_bytes(heap) << order;
		for (size_t l = 0; l < sizeof(lengths) / sizeof(*lengths); l++) {
			size_t n = lengths[l];

			fill(order, n);
			cr_assert_eq(pcpa_alloc_bulk(heap, order, 0, blocks, n), n);
			for (size_t i = 0; i < n; i++)
				at[i] = (char *)blocks[i] + i * 64 * 67 % block;
			calls = 0;
			list->tail = list->head = 0;
			list->limit = (uint32_t)n + 1;
			cr_assert_geq(list->mask, n);
			cr_expect(pcpa_cache_free_bulk_within(&cache, order, at, n),
				  "%zu of order %u", n, order);
			EXPECT_CALLS(0u);
			cr_expect_eq(pcpi_ring_len(list), n);
			cr_assert_eq(pcpa_cache_alloc_bulk(&cache, order, 0, again,
							   n), n);
			cr_expect_eq(memcmp(again, blocks, n * sizeof(*again)), 0,
				     "%zu of order %u", n, order);
			pcpa_free_bulk_sized(heap, order, again, n);
			cr_assert_eq(pcpa_heap_drain(heap), 0);
		}
	}
	end();
}

Test(inline, bulk_within_says_where_nothing_was_done)
{
	static char foreign[8192];
	void *at[PCPA_INLINE_BULK + 1];
	uint32_t head;

	begin(PCPA_HEAP_FIXED);
	fill(0, MANY);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, at, 257), 257u);
	cr_assert_eq(pcpa_heap_drain(heap), 0);
	mine->list[0].ring.tail = mine->list[0].ring.head = 0;
	mine->list[0].ring.limit = 300; /* room is not what is missing */
	cr_assert_geq(mine->list[0].ring.mask, 300);
	head = mine->list[0].ring.head;
	cr_expect_not(pcpa_cache_free_bulk_within(&cache, 0, at, 257));
	cr_expect_not(pcpa_cache_free_bulk_within(&cache, PCPA_INLINE_ORDERS, at, 8));
	for (size_t n = 7; n <= 71; n += 64)
		for (size_t i = 0; i < n; i++) {
			void *good = at[i];

			at[i] = foreign + 64;
			cr_expect_not(pcpa_cache_free_bulk_within(&cache, 0, at, n));
			at[i] = NULL;
			cr_expect_not(pcpa_cache_free_bulk_within(&cache, 0, at, n));
			at[i] = good;
		}
	mine->claim = 2;
	cr_expect_not(pcpa_cache_free_bulk_within(&cache, 0, at, 32));
	mine->claim = 0;
	cr_expect_eq(mine->list[0].ring.head, head);
	pcpa_free_bulk(heap, at, 257);
	end();
}

Test(inline, empty_list_calls)
{
	void *a;

	begin(0);
	calls = 0;
	a = pcpa_cache_alloc(&cache, 1, 0);
	cr_expect_not_null(a);
	EXPECT_CALLS(1);
	pcpa_cache_free(&cache, a);
	end();
}

Test(inline, list_at_its_limit_calls)
{
	size_t n;

	begin(0);
	n = pcpa_alloc_bulk(heap, 0, 0, blocks, MANY);
	cr_assert_eq(n, MANY);
	mine->list[0].ring.limit = pcpi_ring_len(&mine->list[0].ring) + 3;
	mine->front = PCPI_FRONT_OFF;
	calls = 0;
	pcpa_cache_free(&cache, blocks[--n]);
	pcpa_cache_free(&cache, blocks[--n]);
	EXPECT_CALLS(0);
	pcpa_cache_free(&cache, blocks[--n]);
	EXPECT_CALLS(1);
	pcpa_free_bulk(heap, blocks, n);
	end();
}

Test(inline, flags_and_high_orders_call)
{
	char *a, *b;

	begin(0);
	fill(0, 4);
	a = pcpa_cache_alloc(&cache, 0, PCPA_ZERO);
	b = pcpa_cache_alloc(&cache, 4, 0);
	EXPECT_CALLS(2);
	cr_expect_eq(a[0] | a[4095], 0);
	cr_expect_eq(pcpa_block_order(heap, b), 4);
	pcpa_cache_free(&cache, b);
	EXPECT_CALLS(3);
	pcpa_cache_free(&cache, a);
	end();
}

Test(inline, bad_frees_are_refused_and_counted)
{
	char *a, stray;

	begin(0);
	a = pcpa_cache_alloc(&cache, 2, 0);
	calls = 0;
	pcpa_cache_free(&cache, a + 4096);  /* inside */
	pcpa_cache_free(&cache, a + 1);	    /* not aligned */
	pcpa_cache_free(&cache, &stray);    /* foreign */
	pcpa_cache_free(&cache, heap->hot.base - 4096);
	EXPECT_CALLS(4);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 4);
	pcpa_cache_free(&cache, NULL);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 4);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 1);
	pcpa_cache_free(&cache, a);
	end();
}

/* ---- When the cache is not to be touched ------------------------------------------ */

static void expect_calls_both_ways(void)
{
	void *a;

	fill(0, 200);
	pcpa_cache_free(&cache, pcpa_cache_alloc(&cache, 0, 0));
	calls = 0;
	a = pcpa_cache_alloc(&cache, 0, 0);
	cr_expect_not_null(a);
	pcpa_cache_free(&cache, a);
	pcpa_cache_free_sized(&cache, pcpa_cache_alloc(&cache, 0, 0), 0);
	EXPECT_CALLS(4);
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, 9), 9);
	pcpa_cache_free_bulk(&cache, blocks, 9);
	EXPECT_CALLS(6);
	cr_expect_eq(mine->busy, 0);
}

Test(inline, claimed_cache_is_gone_around)
{
	struct pcpi_ring ring;
	void *a;

	begin(0);
	fill(0, 200);
	cr_assert(pcpi_cache_claim(mine));
	ring = mine->list[0].ring;
	a = pcpa_cache_alloc(&cache, 0, 0);
	cr_expect_not_null(a);
	pcpa_cache_free(&cache, a);
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, 9), 9);
	pcpa_cache_free_bulk(&cache, blocks, 9);
	EXPECT_CALLS(4);
	cr_expect_eq(mine->list[0].ring.ends, ring.ends);
	cr_expect_eq(mine->busy, 0);
	pcpi_cache_claim_end(mine, PCPI_CLAIM_PENDING);
	pcpa_cache_free(&cache, pcpa_cache_alloc(&cache, 0, 0));
	cr_expect_eq(mine->claim, 0, "the call has settled it");
	end();
}

Test(inline, disabled_caches_are_not_filled)
{
	begin(0);
	cr_assert_eq(pcpa_cache_disable(heap, -1), 0);
	fill(0, 1);
	pcpa_cache_free(&cache, pcpa_cache_alloc(&cache, 0, 0));
	EXPECT_CALLS(2);
	cr_expect_eq(pcpi_cache_count(mine), 0);
	cr_assert_eq(pcpa_cache_enable(heap, -1), 0);
	fill(1, 4);
	pcpa_cache_free(&cache, pcpa_cache_alloc(&cache, 1, 0));
	EXPECT_CALLS(0);
	end();
}

Test(inline, watched_heap_calls)
{
	begin(PCPA_HEAP_CHECKS);
	expect_calls_both_ways();
	end();
}

static int refuse(void)
{
	return -EPERM;
}

Test(inline, heap_without_membarrier_calls)
{
	static struct pcpi_sys table;
	const struct pcpi_sys *before = pcpi_sys;

	table = *pcpi_sys;
	table.membarrier_register = refuse;
	table.membarrier = refuse;
	pcpi_sys = &table;
	begin(0);
	cr_assert(heap->env.exchange);
	expect_calls_both_ways();
	end();
	pcpi_sys = before;
}

/* As a handler finds it that interrupted its thread inside. */
Test(inline, handler_inside_goes_around)
{
	void *a;

	begin(0);
	fill(0, 4);
	mine->busy = 1;
	a = pcpa_cache_alloc(&cache, 0, 0);
	cr_expect_not_null(a);
	pcpa_cache_free(&cache, a);
	EXPECT_CALLS(2);
	cr_expect_eq(mine->busy, 1, "it belongs to who was interrupted");
	mine->busy = 0;
	end();
}

/* ---- Many ------------------------------------------------------------------------- */

static void expect_distinct(size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			cr_assert_neq(blocks[i], blocks[j], "%zu, %zu", i, j);
}

Test(inline, bulk_of_any_length_is_whole)
{
	begin(0);
	for (unsigned o = 0; o < PCPA_INLINE_ORDERS; o++) {
		fill(o, 100 >> o);
		for (size_t n = 0; n <= 90u >> o; n += n < 20 ? 1 : 7) {
			calls = 0;
			cr_assert_eq(pcpa_cache_alloc_bulk(&cache, o, 0, blocks, n), n);
			expect_distinct(n);
			for (size_t i = 0; i < n; i++)
				cr_assert_eq(pcpa_block_order(heap, blocks[i]), (int)o);
			cr_expect_eq(stats_of(heap, -1).used_blocks, n);
			if (o == 0 && n % 2)
				pcpa_cache_free_bulk(&cache, blocks, n);
			else
				pcpa_cache_free_bulk_sized(&cache, o, blocks, n);
			EXPECT_CALLS(0);
			cr_expect_eq(stats_of(heap, -1).used_blocks, 0);
		}
		cr_assert_eq(pcpa_thread_flush(heap), 0);
	}
	end();
}

Test(inline, bulk_over_the_rings_wrap_calls)
{
	struct pcpi_ring *ring;
	uint32_t at;

	begin(0);
	fill(0, 100);
	ring = &mine->list[0].ring;
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 100), 100);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	at = ring->mask + 1 - 10;
	pcpi_ring_commit(ring, at, at);
	ring->limit = 200;
	calls = 0;
	pcpa_cache_free_bulk(&cache, blocks, 10); /* up to the end */
	EXPECT_CALLS(0);
	pcpi_ring_commit(ring, at, at);
	pcpa_cache_free_bulk(&cache, blocks, 40); /* over it */
	EXPECT_CALLS(1);
	cr_expect_eq(pcpi_ring_len(ring), 40);
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, 40), 40);
	EXPECT_CALLS(2);
	expect_distinct(40);
	pcpa_free_bulk(heap, blocks, 100);
	end();
}

Test(inline, bulk_with_a_bad_entry_frees_the_others)
{
	void *other;

	begin(0);
	other = pcpa_alloc(heap, 1, 0);
	for (size_t n = 3; n <= 67; n += 32) {
		fill(0, 100);
		cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, n), n);
		pcpa_cache_free(&cache, blocks[n - 2]);
		blocks[n - 2] = (char *)other + 4096;
		calls = 0;
		pcpa_cache_free_bulk(&cache, blocks, n);
		EXPECT_CALLS(1);
		cr_expect_eq(stats_of(heap, -1).used_blocks, 1);
	}
	cr_expect_eq(stats_of(heap, -1).bad_frees, 3);
	/* Of another order: both go where they belong. */
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, 31), 31);
	blocks[31] = other;
	pcpa_cache_free_bulk(&cache, blocks, 32);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 0);
	end();
}

Test(inline, bulk_of_more_calls)
{
	size_t n = PCPA_INLINE_BULK + 1;

	begin(0);
	fill(0, 400);
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, n), n);
	pcpa_cache_free_bulk(&cache, blocks, n);
	EXPECT_CALLS(2);
	end();
}

/* The plain conversion, as on a processor without AVX2, gives the same.  (Compiled for
 * AVX2, as unit/inline_avx2 is, the header asks nobody.) */
Test(inline, bulk_without_avx2)
{
	void *again[64];

	begin(0);
	fill(0, 100);
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, 64), 64);
	pcpa_cache_free_bulk(&cache, blocks, 64);
	mine->wide = 0;
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, again, 64), 64);
	cr_expect_arr_eq(again, blocks, sizeof(again));
	pcpa_cache_free_bulk(&cache, again, 64);
	mine->wide = pcpi_convert_wide();
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, again, 64), 64);
	cr_expect_arr_eq(again, blocks, sizeof(again));
	pcpa_cache_free_bulk_sized(&cache, 0, again, 64);
	EXPECT_CALLS(0);
	end();
}

/* ---- Nodes, forks, handles ----------------------------------------------------------- */

static int first_cpu(void)
{
	return 0;
}

Test(inline, block_of_another_node_calls)
{
	static struct pcpi_sys table;
	void *far[2];

	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4", 1);
	table = pcpi_sys_linux;
	table.cpu = first_cpu;
	pcpi_sys = &table;
	heap = heap_fixed(8 * MIB, 0);
	cache = pcpa_cache_self(heap);
	cr_assert_eq(pcpa_alloc_bulk(heap, 0, PCPA_NODE(1), far, 2), 2);
	fill(0, 20);
	pcpa_cache_free(&cache, far[0]);
	EXPECT_CALLS(1);
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, 18), 18);
	blocks[18] = far[1];
	pcpa_cache_free_bulk(&cache, blocks, 19);
	EXPECT_CALLS(2);
	cr_expect_eq(stats_of(heap, -1).used_blocks, 0);
	cr_assert_eq(pcpa_thread_flush(heap), 0);
	end();
}

static int fifth_cpu(void)
{
	return 4;
}

/* Of a node whose first page isn't the heap's. */
Test(inline, bulk_within_blocks_of_the_second_node_is_a_hit)
{
	static struct pcpi_sys table;
	void *at[40], *again[40];

	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4", 1);
	table = pcpi_sys_linux;
	table.cpu = fifth_cpu;
	pcpi_sys = &table;
	begin(0);
	cr_assert_gt(cache.inside->first, 0);
	for (size_t n = 5; n <= 40; n += 35) {
		fill(1, n);
		cr_assert_eq(pcpa_alloc_bulk(heap, 1, 0, blocks, n), n);
		cr_assert_eq(pcpa_block_node(heap, blocks[0]), 1);
		for (size_t i = 0; i < n; i++)
			at[i] = (char *)blocks[i] + 64 * i;
		mine->list[1].ring.tail = mine->list[1].ring.head = 0;
		mine->list[1].ring.limit = (uint32_t)n + 1;
		cr_assert_geq(mine->list[1].ring.mask, n);
		cr_expect(pcpa_cache_free_bulk_within(&cache, 1, at, n));
		cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 1, 0, again, n), n);
		cr_expect_eq(memcmp(again, blocks, n * sizeof(*again)), 0, "%zu", n);
		pcpa_free_bulk(heap, again, n);
		cr_assert_eq(pcpa_heap_drain(heap), 0);
	}
	end();
}

static int child_status(void (*fn)(void))
{
	int status = -1;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		fn();
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

static void child_without_heap(void)
{
	errno = 0;
	if (pcpa_cache_alloc(&cache, 0, 0) || errno != ENODEV)
		_exit(1);
	pcpa_cache_free(&cache, blocks[0]);
	if (pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, 8) != 0)
		_exit(2);
	cache = pcpa_cache_self(heap);
	if (pcpa_cache_is_inline(&cache))
		_exit(3);
}

Test(inline, forked_child_of_a_plain_heap_gets_nothing)
{
	begin(0);
	fill(0, 200);
	pcpa_cache_free(&cache, pcpa_cache_alloc(&cache, 0, 0));
	cr_expect_eq(child_status(child_without_heap), 0);
	end();
}

static void child_beside_disable(void)
{
	if (!(cache.inside->claim & PCPI_CLAIM_OFF))
		_exit(4);
	child_without_heap();
}

/* A disable of another thread is under way: its depth is there, and it isn't done. */
Test(inline, forked_child_of_a_plain_heap_beside_a_disable_gets_nothing)
{
	begin(0);
	fill(0, 200);
	pcpi_zone_disable(&heap->env.zones[0], 1);
	cr_expect_eq(child_status(child_beside_disable), 0);
	pcpi_zone_disable(&heap->env.zones[0], -1);
	end();
}

static void child_with_heap(void)
{
	char *a = pcpa_cache_alloc(&cache, 0, 0);

	if (!a)
		_exit(1);
	a[0] = 1;
	pcpa_cache_free(&cache, a);
	_exit(calls != 0);
}

Test(inline, forked_child_of_a_cow_heap_goes_on)
{
	begin(PCPA_HEAP_COW);
	fill(0, 200);
	cr_expect_eq(child_status(child_with_heap), 0);
	end();
}

static void *use_theirs(void *arg)
{
	return pcpa_cache_alloc(arg, 0, 0);
}

static void thread_misuses(void)
{
	pthread_t thread;

	signal(SIGABRT, SIG_DFL);
	close(STDERR_FILENO);
	pthread_create(&thread, NULL, use_theirs, &cache);
	pthread_join(thread, NULL);
}

Test(inline, another_threads_handle_is_found_in_debug_builds)
{
	int status;

	begin(PCPA_HEAP_COW);
	status = child_status(thread_misuses);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
		  "status 0x%x", status);
	end();
}

Test(inline, other_struct_or_no_heap_gets_nothing)
{
	size_t bytes = sizeof(struct pcpa_inline_cache);

	begin(0);
	errno = 7;
	cr_expect_null(pcpa_inline_bind(heap, PCPA_INLINE_VERSION + 1, bytes));
	cr_expect_null(pcpa_inline_bind(heap, PCPA_INLINE_VERSION - 1, bytes));
	cr_expect_null(pcpa_inline_bind(heap, PCPA_INLINE_VERSION, bytes + 8));
	cr_expect_null(pcpa_inline_bind(NULL, PCPA_INLINE_VERSION, bytes));
	cr_expect_not_null(pcpa_inline_bind(heap, PCPA_INLINE_VERSION, bytes));
	cr_expect_eq(errno, 7);
	end();
}
