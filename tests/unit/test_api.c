/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_api.c - what every public call promises (lib/api.c), from outside.
 *
 * Each sentence of pcpalloc.h about arguments, errno and results is a case;
 * heaps are small and fixed, so that exhaustion is exact.
 */
#include <signal.h>
#include <stdint.h>

#include "../support/heap_fixture.h"

#define HEAP_BYTES (8 * MIB)
#define ORDERS (PCPA_MAX_ORDER + 1)
#define MAX_BLOCKS (HEAP_BYTES / 4096)

static struct pcpa_heap *heap;
static size_t page;
static unsigned top;
static void *blocks[MAX_BLOCKS + 1];

static void setup(void)
{
	heap = heap_fixed(HEAP_BYTES, 0);
	page = pcpa_heap_page_bytes(heap);
	top = pcpa_heap_max_order(heap);
}

static void teardown(void)
{
	heap_end(heap);
}

TestSuite(api, .init = setup, .fini = teardown);

static void *get(unsigned order, unsigned flags)
{
	void *block = pcpa_alloc(heap, order, flags);

	cr_assert(block, "order %u flags %#x: errno %d", order, flags, errno);
	return block;
}

static void expect_refused(unsigned order, unsigned flags, int error)
{
	errno = 0;
	cr_expect_null(pcpa_alloc(heap, order, flags));
	cr_expect_eq(errno, error, "order %u flags %#x: errno %d", order, flags,
		     errno);
}

static uint64_t bad_frees(void)
{
	return stats_of(heap, -1).bad_frees;
}

static bool is_filled(const void *block, int byte, size_t bytes)
{
	const unsigned char *b = block;

	return b[0] == (unsigned char)byte && memcmp(b, b + 1, bytes - 1) == 0;
}

/* ---- Blocks ---------------------------------------------------------------- */

Test(api, every_order_is_aligned_distinct_and_writable)
{
	void *block[ORDERS];
	unsigned o;

	cr_assert_leq(top, PCPA_MAX_ORDER);
	cr_assert_geq(top, 9);
	for (o = 0; o < top; o++) {
		block[o] = get(o, 0);
		cr_expect_eq((uintptr_t)block[o] % (page << o), 0);
		cr_expect_eq(pcpa_block_order(heap, block[o]), (int)o);
		memset(block[o], (int)o + 1, page << o);
	}
	for (o = 0; o < top; o++)
		cr_expect(is_filled(block[o], (int)o + 1, page << o));
	for (o = 0; o < top; o++)
		pcpa_free(heap, block[o]);
	block[0] = get(top, 0);
	cr_expect_eq((uintptr_t)block[0] % (page << top), 0);
	memset(block[0], 1, page << top);
	pcpa_free(heap, block[0]);
	expect_all_free(heap);
}

/* Start and end of a block lie in one page of the arena around it. */
static int expect_no_crossing(const struct pcpa_arena_info *a, void *arg)
{
	unsigned order = *(unsigned *)arg;
	size_t huge = a->page_bytes, bytes = page << order;
	uintptr_t start;

	for (size_t i = 0; blocks[i]; i++) {
		start = (uintptr_t)blocks[i];
		if (huge >= bytes && start >= (uintptr_t)a->base &&
		    start < (uintptr_t)a->base + a->bytes)
			cr_expect_eq(start / huge, (start + bytes - 1) / huge);
	}
	return 0;
}

Test(api, exhausted_heap_gave_each_page_once)
{
	uint64_t managed = stats_of(heap, -1).managed_pages;
	unsigned order;

	cr_assert_eq(managed * page, HEAP_BYTES);
	for (order = 0; order <= top; order++) {
		size_t n = alloc_all(heap, order, 0, blocks, MAX_BLOCKS + 1), i;

		cr_expect_eq(errno, ENOMEM);
		cr_expect_eq(n, managed >> order, "order %u: %zu", order, n);
		qsort(blocks, n, sizeof(blocks[0]), compare_pointers);
		for (i = 1; i < n; i++)
			cr_assert_geq((char *)blocks[i] - (char *)blocks[i - 1],
				      (long)(page << order));
		blocks[n] = NULL;
		pcpa_for_each_arena(heap, expect_no_crossing, &order);
		free_all(heap, blocks, n);
	}
	cr_expect_eq(stats_of(heap, -1).failed_total, top + 1);
	expect_all_free(heap);
}

Test(api, exhausted_heap_serves_again_after_one_free)
{
	size_t n = alloc_all(heap, 0, 0, blocks, MAX_BLOCKS + 1);

	expect_refused(0, 0, ENOMEM);
	pcpa_free(heap, blocks[n - 1]);
	blocks[n - 1] = get(0, 0);
	expect_refused(0, 0, ENOMEM);
	free_all(heap, blocks, n);
}

/* ---- Arguments -------------------------------------------------------------- */

Test(api, order_above_the_heaps_is_invalid)
{
	expect_refused(top + 1, 0, EINVAL);
	expect_refused(16, 0, EINVAL);
	expect_refused(UINT32_MAX, 0, EINVAL);
	cr_expect_eq(stats_of(heap, -1).alloc_total, 0);
}

/* Also those whose numbers look like orders, with blocks in the cache. */
Test(api, unknown_flag_is_invalid_whatever_is_cached)
{
	unsigned known = PCPA_ZERO | PCPA_NOGROW | PCPA_THISNODE |
			 PCPA_NOWAIT | PCPA_RESERVE;
	unsigned bit, o;
	void *one;

	for (o = 0; o < 4; o++)
		pcpa_free(heap, get(o, 0));
	for (bit = 0; bit < 16; bit++)
		for (o = 0; o < 5; o++)
			if (!(known & 1u << bit))
				expect_refused(o, 1u << bit, EINVAL);
	errno = 0;
	cr_expect_eq(pcpa_alloc_bulk(heap, 0, 1, &one, 1), 0);
	cr_expect_eq(errno, EINVAL);
}

Test(api, unused_node_is_invalid)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	expect_refused(0, PCPA_NODE(4000), EINVAL);
	expect_refused(0, PCPA_NODE(65534), EINVAL);
	cr_expect_eq(pcpa_stats_read(heap, 4000, &s), -EINVAL);
	cr_expect_eq(pcpa_stats_read(heap, -2, &s), -EINVAL);
	pcpa_free(heap, get(0, PCPA_NODE(0)));
}

Test(api, null_heap_is_invalid)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	void *slot = NULL, *block = get(0, 0);

	errno = 0;
	cr_expect_null(pcpa_alloc(NULL, 0, 0));
	cr_expect_eq(errno, EINVAL);
	errno = 0;
	cr_expect_eq(pcpa_alloc_bulk(NULL, 0, 0, &slot, 1), 0);
	cr_expect_eq(errno, EINVAL);
	errno = 0;
	cr_expect_eq(pcpa_refill(NULL, 0, 0, &slot, 1), 0);
	cr_expect_eq(errno, EINVAL);
	cr_expect_null(slot);
	KEEPS_ERRNO(pcpa_free(NULL, block));
	KEEPS_ERRNO(pcpa_free_sized(NULL, block, 0));
	KEEPS_ERRNO(pcpa_free_bulk(NULL, &block, 1));
	KEEPS_ERRNO(pcpa_free_bulk_sized(NULL, 0, &block, 1));
	cr_expect_eq(pcpa_block_order(NULL, block), -EINVAL);
	cr_expect_eq(pcpa_block_node(NULL, block), -EINVAL);
	cr_expect_eq(pcpa_heap_drain(NULL), -EINVAL);
	cr_expect_eq(pcpa_thread_flush(NULL), -EINVAL);
	cr_expect_eq(pcpa_heap_trace(NULL, NULL, NULL), -EINVAL);
	cr_expect_eq(pcpa_stats_read(NULL, -1, &s), -EINVAL);
	cr_expect_eq(pcpa_stats_format(NULL, PCPA_STATS_JSON, NULL, 0), -EINVAL);
	cr_expect_eq(pcpa_heap_destroy(NULL), -EINVAL);
	pcpa_free(heap, block);
}

/* ---- errno ------------------------------------------------------------------ */

Test(api, success_leaves_errno_alone)
{
	unsigned o;
	void *block = NULL;

	for (o = 0; o <= top; o++) {
		KEEPS_ERRNO(block = pcpa_alloc(heap, o, 0));
		cr_assert(block);
		KEEPS_ERRNO(pcpa_free(heap, block));
		KEEPS_ERRNO(block = pcpa_alloc(heap, o, PCPA_ZERO));
		KEEPS_ERRNO(pcpa_free_sized(heap, block, o));
	}
	KEEPS_ERRNO(pcpa_alloc_bulk(heap, 0, 0, blocks, 300));
	KEEPS_ERRNO(pcpa_refill(heap, 0, 0, blocks, 400));
	KEEPS_ERRNO(pcpa_free_bulk(heap, blocks, 200));
	KEEPS_ERRNO(pcpa_free_bulk_sized(heap, 0, blocks + 200, 200));
	KEEPS_ERRNO(pcpa_thread_flush(heap));
	KEEPS_ERRNO(pcpa_heap_drain(heap));
}

Test(api, free_leaves_errno_alone_when_it_refuses)
{
	char *block = get(2, 0);

	KEEPS_ERRNO(pcpa_free(heap, NULL));
	KEEPS_ERRNO(pcpa_free(heap, block + page));
	KEEPS_ERRNO(pcpa_free(heap, &block));
	KEEPS_ERRNO(pcpa_free_sized(heap, block + 1, 0));
	KEEPS_ERRNO(pcpa_free_sized(heap, NULL, 0));
	pcpa_free(heap, block);
}

Test(api, bulk_sets_errno_exactly_when_it_returns_fewer)
{
	static const unsigned orders[] = {0, 2, 5};
	size_t all = MAX_BLOCKS, got = 0;
	unsigned i;

	for (i = 0; i < 3; i++) {
		KEEPS_ERRNO(got = pcpa_alloc_bulk(heap, orders[i], 0, blocks,
						  all >> orders[i]));
		cr_expect_eq(got, all >> orders[i]);
		pcpa_free(heap, blocks[--got]);
		errno = 0;
		cr_expect_eq(pcpa_alloc_bulk(heap, orders[i], 0, blocks + got, 2),
			     1);
		cr_expect_eq(errno, ENOMEM);
		KEEPS_ERRNO(pcpa_alloc_bulk(heap, orders[i], 0, blocks, 0));
		pcpa_free_bulk(heap, blocks, got + 1);
	}
	errno = 0;
	cr_expect_eq(pcpa_alloc_bulk(heap, top + 1, 0, blocks, 4), 0);
	cr_expect_eq(errno, EINVAL);
	expect_all_free(heap);
}

Test(api, bulk_of_nothing_succeeds)
{
	KEEPS_ERRNO(cr_expect_eq(pcpa_alloc_bulk(heap, 0, PCPA_ZERO, NULL, 0), 0));
	KEEPS_ERRNO(cr_expect_eq(pcpa_alloc_bulk(heap, 7, 0, NULL, 0), 0));
	KEEPS_ERRNO(cr_expect_eq(pcpa_refill(heap, 0, 0, NULL, 0), 0));
	KEEPS_ERRNO(pcpa_free_bulk(heap, NULL, 0));
	KEEPS_ERRNO(pcpa_free_bulk_sized(heap, 0, NULL, 0));
}

/* ---- Flags ------------------------------------------------------------------ */

Test(api, zero_clears_blocks_that_were_used_before)
{
	size_t n, i;
	unsigned o;

	for (o = 0; o <= top; o += 3) {
		n = alloc_all(heap, o, 0, blocks, MAX_BLOCKS);
		for (i = 0; i < n; i++)
			memset(blocks[i], 0xa5, page << o);
		free_all(heap, blocks, n);
		for (i = 0; i < n / 2; i++) {
			blocks[i] = get(o, PCPA_ZERO);
			cr_assert(is_filled(blocks[i], 0, page << o));
			memset(blocks[i], 0x5a, page << o);
		}
		free_all(heap, blocks, n / 2);
		cr_assert_eq(pcpa_alloc_bulk(heap, o, PCPA_ZERO, blocks, n), n);
		for (i = 0; i < n; i++)
			cr_assert(is_filled(blocks[i], 0, page << o));
		pcpa_free_bulk(heap, blocks, n);
	}
}

Test(api, refill_with_zero_clears_only_what_it_fills)
{
	blocks[0] = get(0, 0);
	blocks[2] = get(0, 0);
	memset(blocks[0], 1, page);
	memset(blocks[2], 2, page);
	blocks[1] = blocks[3] = NULL;
	cr_assert_eq(pcpa_refill(heap, 0, PCPA_ZERO, blocks, 4), 4);
	cr_expect(is_filled(blocks[0], 1, page));
	cr_expect(is_filled(blocks[1], 0, page));
	cr_expect(is_filled(blocks[2], 2, page));
	cr_expect(is_filled(blocks[3], 0, page));
	pcpa_free_bulk(heap, blocks, 4);
}

Test(api, nogrow_fails_where_a_plain_request_grows)
{
	struct pcpa_heap *small = heap_make(2 * MIB, 8 * MIB, 0);
	uint64_t managed = stats_of(small, -1).managed_pages;
	size_t n = alloc_all(small, 0, PCPA_NOGROW, blocks, MAX_BLOCKS);

	cr_expect_eq(n, managed);
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(stats_of(small, -1).managed_pages, managed);
	blocks[n] = pcpa_alloc(small, 0, 0);
	cr_assert(blocks[n]);
	cr_expect_gt(stats_of(small, -1).managed_pages, managed);
	free_all(small, blocks, n + 1);
	heap_end(small);
}

/* ---- Bad frees -------------------------------------------------------------- */

Test(api, bad_free_is_counted_and_changes_nothing)
{
	struct pcpa_heap *other = heap_fixed(2 * MIB, 0);
	char *foreign = pcpa_alloc(other, 0, 0), *block = get(2, 0);
	struct pcpa_stats before, after;
	int local = 0;

	cr_assert(foreign);
	before = stats_summed(heap);
	pcpa_free(heap, &local);                   /* no heap's           */
	pcpa_free(heap, foreign);                  /* another heap's      */
	pcpa_free(heap, block + page);             /* interior            */
	pcpa_free(heap, block + 3 * page);
	pcpa_free(heap, block + 1);                /* misaligned          */
	pcpa_free(heap, block + page + 8);
	pcpa_free(heap, (void *)(uintptr_t)page);
	pcpa_free(heap, (void *)(UINTPTR_MAX - page + 1));
	after = stats_summed(heap);
	cr_expect_eq(after.bad_frees, before.bad_frees + 8);
	cr_expect_eq(after.used_blocks, before.used_blocks);
	cr_expect_eq(after.free_total, before.free_total);
	cr_expect_eq(after.cached_pages, before.cached_pages);
	cr_expect_eq(pcpa_block_order(heap, block), 2);
	pcpa_free(heap, block);
	pcpa_free(other, foreign);
	heap_end(other);
}

Test(api, free_of_null_is_not_counted)
{
	pcpa_free(heap, NULL);
	pcpa_free_sized(heap, NULL, 3);
	cr_expect_eq(bad_frees(), 0);
}

Test(api, double_free_of_a_page_in_the_buddy_is_counted)
{
	unsigned o;
	void *block;

	for (o = 0; o <= top; o++) {
		block = get(o, 0);
		pcpa_free(heap, block);
		cr_assert_eq(pcpa_heap_drain(heap), 0);
		pcpa_free(heap, block);
		cr_expect_eq(bad_frees(), o + 1);
		cr_expect_eq(pcpa_block_order(heap, block), -EINVAL);
		cr_expect_eq(pcpa_block_node(heap, block), -EINVAL);
	}
	expect_all_free(heap);
}

Test(api, free_of_unbacked_address_space_is_counted)
{
	struct pcpa_heap *grows = heap_make(2 * MIB, 64 * MIB, 0);
	char *block = pcpa_alloc(grows, 0, 0);

	cr_assert(block);
	pcpa_free(grows, (char *)((uintptr_t)block & ~(4 * MIB - 1)) + 32 * MIB);
	cr_expect_eq(stats_of(grows, -1).bad_frees, 1);
	pcpa_free(grows, block);
	heap_end(grows);
}

/* ---- Bulk frees and refills ---------------------------------------------------- */

Test(api, bulk_free_takes_mixed_orders_nulls_and_bad_entries)
{
	size_t n = 0, bad = 0;
	char *inner = get(3, 0);

	for (size_t i = 0; i < 200; i++) {
		if (i % 7 == 3) {
			blocks[n++] = NULL;
		} else if (i % 11 == 5) {
			blocks[n++] = inner + page * (1 + i % 7);
			bad++;
		} else if (i % 13 == 6) {
			blocks[n++] = (char *)&n + i;
			bad++;
		} else {
			blocks[n++] = get((unsigned)(i % 6), 0);
		}
	}
	KEEPS_ERRNO(pcpa_free_bulk(heap, blocks, n));
	cr_expect_eq(bad_frees(), bad);
	cr_expect_eq(stats_summed(heap).used_blocks, 1);
	pcpa_free(heap, inner);
	expect_all_free(heap);
}

Test(api, sized_bulk_free_takes_nulls_of_every_order)
{
	unsigned o;
	size_t i, n;

	for (o = 0; o <= top; o++) {
		n = pcpa_alloc_bulk(heap, o, 0, blocks, 100 >> o);
		for (i = 0; i < n; i++)
			blocks[n + i] = NULL;
		pcpa_free_bulk_sized(heap, o, blocks, 2 * n);
		cr_expect_eq(stats_summed(heap).used_blocks, 0, "order %u", o);
	}
	cr_expect_eq(bad_frees(), 0);
	expect_all_free(heap);
}

/* A block before the ring, and a call that is longer than the ring. */
Test(api, long_bulk_free_after_a_single_one_keeps_every_block)
{
	size_t n, i;
	void *one;

	for (i = 0; i < 8; i++) {
		one = get(0, 0);
		n = pcpa_alloc_bulk(heap, 0, 0, blocks, 1700 - 100 * i);
		pcpa_free(heap, one);
		pcpa_free_bulk(heap, blocks, n);
		cr_expect_eq(stats_summed(heap).used_pages, 0);
		one = get(0, 0);
		n = pcpa_alloc_bulk(heap, 0, 0, blocks, 1700 - 100 * i);
		pcpa_free(heap, one);
		pcpa_free_bulk_sized(heap, 0, blocks, n);
		cr_expect_eq(stats_summed(heap).used_pages, 0);
	}
	expect_all_free(heap);
}

Test(api, refill_fills_holes_and_counts_the_prefix)
{
	size_t n = 100, i;
	void *kept[100];

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, n), n);
	for (i = 0; i < n; i++) {
		kept[i] = blocks[i];
		if (i % 3 == 1 || i > 90) {
			pcpa_free(heap, blocks[i]);
			blocks[i] = NULL;
		}
	}
	KEEPS_ERRNO(cr_expect_eq(pcpa_refill(heap, 0, 0, blocks, n), n));
	for (i = 0; i < n; i++) {
		cr_expect(blocks[i]);
		if (i % 3 != 1 && i <= 90)
			cr_expect_eq(blocks[i], kept[i]);
	}
	cr_expect_eq(stats_of(heap, -1).used_blocks, n);
	pcpa_free_bulk(heap, blocks, n);
}

Test(api, refill_of_a_full_array_returns_n_and_allocates_nothing)
{
	uint64_t before;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 64), 64);
	before = stats_of(heap, -1).alloc_total;
	KEEPS_ERRNO(cr_expect_eq(pcpa_refill(heap, 0, 0, blocks, 64), 64));
	cr_expect_eq(stats_of(heap, -1).alloc_total, before);
	pcpa_free_bulk(heap, blocks, 64);
}

Test(api, refill_of_a_full_array_succeeds_in_an_exhausted_heap)
{
	size_t n = alloc_all(heap, 0, 0, blocks, MAX_BLOCKS + 1);

	KEEPS_ERRNO(cr_expect_eq(pcpa_refill(heap, 0, 0, blocks, n), n));
	free_all(heap, blocks, n);
}

Test(api, refill_stops_at_the_first_hole_it_cannot_fill)
{
	size_t n = alloc_all(heap, 0, 0, blocks, MAX_BLOCKS + 1);
	void *slots[8] = {NULL};

	slots[1] = blocks[0];
	slots[4] = blocks[1];
	pcpa_free(heap, blocks[2]);
	pcpa_free(heap, blocks[3]);
	errno = 0;
	/* 0 and 2 are filled, 1 was; 3 is the hole, 4 is not counted. */
	cr_expect_eq(pcpa_refill(heap, 0, 0, slots, 8), 3);
	cr_expect_eq(errno, ENOMEM);
	cr_expect(slots[0] && slots[1] == blocks[0] && slots[2]);
	cr_expect(!slots[3] && slots[4] == blocks[1] && !slots[5]);
	blocks[2] = slots[0];
	blocks[3] = slots[2];
	free_all(heap, blocks, n);
}

/* ---- Checks ------------------------------------------------------------------ */

static struct pcpa_heap *checked(void)
{
	return heap_fixed(4 * MIB, PCPA_HEAP_CHECKS);
}

Test(api_checks, correct_use_passes)
{
	heap = checked();
	page = pcpa_heap_page_bytes(heap);
	for (unsigned round = 0; round < 50; round++)
		for (unsigned o = 0; o < 6; o++) {
			size_t n = pcpa_alloc_bulk(heap, o, 0, blocks, 200 >> o);

			cr_assert_eq(n, 200 >> o);
			memset(blocks[0], 7, page << o);
			pcpa_free_sized(heap, blocks[0], o);
			pcpa_free_bulk_sized(heap, o, blocks + 1, n / 2);
			pcpa_free_bulk(heap, blocks + 1 + n / 2, n - 1 - n / 2);
		}
	cr_expect_eq(bad_frees(), 0);
	expect_all_free(heap);
	heap_end(heap);
}

Test(api_checks, double_free_in_the_cache_aborts, .signal = SIGABRT)
{
	heap = checked();
	void *block = get(0, 0);

	pcpa_free(heap, block);
	pcpa_free(heap, block);
}

Test(api_checks, double_free_in_the_depot_aborts, .signal = SIGABRT)
{
	heap = checked();
	void *block = get(1, 0);

	pcpa_free(heap, block);
	pcpa_thread_flush(heap);
	pcpa_free(heap, block);
}

Test(api_checks, double_free_within_a_bulk_aborts, .signal = SIGABRT)
{
	heap = checked();
	void *two[2];

	two[0] = two[1] = get(0, 0);
	pcpa_free_bulk(heap, two, 2);
}

Test(api_checks, double_free_in_the_buddy_aborts, .signal = SIGABRT)
{
	heap = checked();
	void *block = get(5, 0);

	pcpa_free(heap, block);
	pcpa_free(heap, block);
}

Test(api_checks, sized_free_with_a_wrong_order_aborts, .signal = SIGABRT)
{
	heap = checked();
	pcpa_free_sized(heap, get(1, 0), 0);
}

Test(api_checks, sized_bulk_free_with_a_wrong_order_aborts, .signal = SIGABRT)
{
	heap = checked();
	void *block = get(0, 0);

	pcpa_free_bulk_sized(heap, 4, &block, 1);
}

Test(api_checks, foreign_free_aborts, .signal = SIGABRT)
{
	int local = 0;

	heap = checked();
	pcpa_free(heap, &local);
}

/* ---- Queries and control -------------------------------------------------------- */

struct arenas {
	uint64_t bytes;
	unsigned count, stop_at;
};

static int arena_add(const struct pcpa_arena_info *a, void *arg)
{
	struct arenas *sum = arg;

	cr_expect_eq(a->struct_size, sizeof(*a));
	cr_expect_eq((uintptr_t)a->base % page, 0);
	cr_expect_geq(a->node, 0);
	cr_expect_geq(a->page_bytes, page);
	sum->bytes += a->bytes;
	return ++sum->count == sum->stop_at ? 42 : 0;
}

Test(api, arenas_cover_what_is_managed)
{
	struct pcpa_heap *grows = heap_make(2 * MIB, 16 * MIB, 0);
	struct arenas sum = {0, 0, 0}, first = {0, 0, 1};
	size_t n = alloc_all(grows, 9, 0, blocks, 6);

	cr_assert_eq(n, 6);
	cr_expect_eq(pcpa_for_each_arena(grows, arena_add, &sum), 0);
	cr_expect_eq(sum.bytes, stats_of(grows, -1).managed_pages * page);
	cr_expect_eq(sum.count, stats_of(grows, -1).arenas);
	cr_expect_gt(sum.count, 1);
	cr_expect_eq(pcpa_for_each_arena(grows, arena_add, &first), 42);
	cr_expect_eq(first.count, 1);
	cr_expect_eq(pcpa_for_each_arena(grows, NULL, NULL), -EINVAL);
	free_all(grows, blocks, n);
	heap_end(grows);
}

Test(api, block_queries_refuse_what_is_no_block)
{
	char *block = get(3, 0);

	cr_expect_eq(pcpa_block_order(heap, block), 3);
	cr_expect_geq(pcpa_block_node(heap, block), 0);
	cr_expect_eq(pcpa_block_order(heap, block + page), -EINVAL);
	cr_expect_eq(pcpa_block_node(heap, block + page), -EINVAL);
	cr_expect_eq(pcpa_block_order(heap, block + 1), -EINVAL);
	cr_expect_eq(pcpa_block_order(heap, NULL), -EINVAL);
	cr_expect_eq(pcpa_block_node(heap, &block), -EINVAL);
	cr_expect_eq(bad_frees(), 0);
	pcpa_free(heap, block);
}

Test(api, flush_moves_the_cache_to_the_depot_and_drain_to_the_buddy)
{
	struct pcpa_stats s;

	cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, 100), 100);
	pcpa_free_bulk(heap, blocks, 100);
	cr_expect_gt(stats_summed(heap).cached_pages, 0);
	cr_expect_eq(pcpa_thread_flush(heap), 0);
	s = stats_summed(heap);
	cr_expect_eq(s.cached_pages, 0);
	cr_expect_gt(s.depot_pages, 0);
	expect_all_free(heap);
}

Test(api, version_is_that_of_the_header)
{
	cr_expect_str_eq(pcpa_version(), PCPA_VERSION);
}
