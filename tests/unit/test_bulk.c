/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bulk.c - many blocks straight between a cache's ring and an array.  The
 * thread's table and the heap's line are the test's own.
 */
#include <criterion/criterion.h>

#include "../support/core_fixture.h"
#include "bulk.h"
#include "convert.h"
#include "nest.h"
#include "page.h"

#define N 1000u

static struct pcpi_zone *const zone = &parts.zones[0];
static struct pcpi_cache *cache;
static struct pcpi_hot hot;
static struct pcpi_entry table[PCPI_ENTRIES];
static uint32_t pfns[N];
static void *blocks[N];

static void make(struct parts_spec spec)
{
	parts_make(spec);
	cache = parts_cache(0);
	hot = (struct pcpi_hot){
		.base = parts.env.base,
		.orders = parts.orders,
		.entry = 3 * sizeof(struct pcpi_entry),
		.page_shift = parts.env.page_shift,
		.wide_span = PCPI_WIDE_SPAN(pcpi_convert_wide()),
	};
	table[3] = (struct pcpi_entry){.heap = &hot, .cache = cache};
	pcpi_table = (char *)table;
}

/* A cache that keeps what it is given in these cases: high is 640. */
static void setup(void)
{
	struct pcpi_ring *ring;

	make((struct parts_spec){.nr_zones = 2});
	ring = &cache->list[0].ring;
	ring->limit = ring->mask + 1 - PCPI_RING_MARGIN / 2;
}

static void teardown(void)
{
	cr_expect_eq(cache->busy, 0);
	cr_expect(pcpi_cache_check(cache));
	parts_unmake();
}

TestSuite(bulk, .init = setup, .fini = teardown);

/* n blocks that are handed out, in pfns[] and blocks[]. */
static void hand_out(unsigned order, uint32_t n)
{
	parts_take(0, order, pfns, n);
	for (uint32_t i = 0; i < n; i++)
		blocks[i] = pcpi_space_addr(&parts.space, pfns[i]);
}

static void expect_ring_top(unsigned order, const uint32_t *want, uint32_t n)
{
	uint32_t got[N];

	cr_assert_eq(pcpi_cache_pop(cache, order, got, n), n);
	cr_expect_arr_eq(got, want, n * sizeof(*want));
}

/* ---- Push ------------------------------------------------------------------ */

Test(bulk, push_puts_all_into_the_ring_in_order)
{
	hand_out(0, N);
	cr_expect_eq(pcpi_bulk_push(&hot, 0, false, blocks, N), N);
	cr_expect_eq(pcpi_cache_len(cache, 0), N);
	cr_expect_eq(pcpi_cache_list_frees(cache, 0), N);
	expect_ring_top(0, pfns, N);
}

Test(bulk, push_of_a_named_order_reads_no_bytes)
{
	hand_out(2, 50);
	cr_expect_eq(pcpi_bulk_push(&hot, 2, true, blocks, 50), 50);
	cr_expect_eq(pcpi_cache_len(cache, 2), 50);
	expect_ring_top(2, pfns, 50);
}

/* Places to look at: first, in the wide part, last, in the rest. */
static const uint32_t places[] = {0, 5, 63, 64, 66};
#define NR_PLACES (sizeof(places) / sizeof(places[0]))

static void expect_refused(const char *why)
{
	cr_expect_eq(pcpi_bulk_push(&hot, 0, false, blocks, 67), 0, "%s", why);
	cr_expect_eq(pcpi_cache_count(cache), 0, "%s", why);
	cr_expect_eq(cache->busy, 0);
}

/* Puts a bad entry at each place in turn. */
static void expect_entry_refused(void *bad, const char *why)
{
	for (size_t i = 0; i < NR_PLACES; i++) {
		void *good = blocks[places[i]];

		blocks[places[i]] = bad;
		expect_refused(why);
		blocks[places[i]] = good;
	}
}

Test(bulk, chunk_with_a_bad_entry_is_not_touched)
{
	uint32_t far, large, away;

	hand_out(0, 67);
	parts_take(0, 1, &large, 1);
	parts_take(1, 0, &far, 1);
	parts_take(0, 0, &away, 1);
	pcpi_zone_give_bulk(zone, 0, &away, 1);
	expect_entry_refused(NULL, "NULL");
	expect_entry_refused((char *)blocks[1] + 8, "inside a page");
	expect_entry_refused(&hot, "of no heap");
	expect_entry_refused(pcpi_space_addr(&parts.space, far), "other zone");
	expect_entry_refused(pcpi_space_addr(&parts.space, large), "order 1");
	expect_entry_refused(pcpi_space_addr(&parts.space, large + 1), "tail");
	expect_entry_refused(pcpi_space_addr(&parts.space, away),
			     "in the buddy");
	cr_expect_eq(pcpi_bulk_push(&hot, 0, false, blocks, 67), 67);
}

/* U2 is of chunks: what was good before stays freed. */
Test(bulk, bad_entry_stops_at_its_chunk)
{
	hand_out(0, 600);
	blocks[300] = NULL;
	cr_expect_eq(pcpi_bulk_push(&hot, 0, false, blocks, 600), 256);
	cr_expect_eq(pcpi_cache_len(cache, 0), 256);
}

Test(bulk, sized_push_refuses_bad_addresses_only)
{
	uint32_t far;

	hand_out(1, 20);
	parts_take(1, 1, &far, 1);
	blocks[11] = pcpi_space_addr(&parts.space, far);
	cr_expect_eq(pcpi_bulk_push(&hot, 1, true, blocks, 20), 0);
	blocks[11] = NULL;
	cr_expect_eq(pcpi_bulk_push(&hot, 1, true, blocks, 20), 0);
	cr_expect_eq(pcpi_bulk_push(&hot, 1, true, blocks, 11), 11);
}

/* ---- Pop ------------------------------------------------------------------- */

Test(bulk, pop_gives_the_hottest_and_counts_them)
{
	void *got[N];

	hand_out(0, 500);
	pcpi_bulk_push(&hot, 0, false, blocks, 500);
	cr_expect_eq(pcpi_bulk_pop(&hot, 0, got, 100), 100);
	cr_expect_arr_eq(got, blocks + 400, 100 * sizeof(*got));
	cr_expect_eq(pcpi_allocs(&cache->list[0].allocs), 100);
	cr_expect_eq(pcpi_cache_len(cache, 0), 400);
}

Test(bulk, pop_of_more_than_there_is_gives_each_block_once)
{
	void *got[N];
	bool seen[N] = {false};
	uint32_t n = 700;

	hand_out(0, n);
	pcpi_bulk_push(&hot, 0, false, blocks, n);
	cr_assert_eq(pcpi_bulk_pop(&hot, 0, got, N), n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < n; k++)
			if (got[i] == blocks[k]) {
				cr_assert_not(seen[k]);
				seen[k] = true;
			}
	for (uint32_t k = 0; k < n; k++)
		cr_assert(seen[k]);
	cr_expect_eq(pcpi_bulk_pop(&hot, 0, got, 1), 0);
}

Test(bulk, pop_takes_the_front_too)
{
	void *got[4];

	hand_out(0, 2);
	cr_assert(pcpi_hot_push(cache, 1, pfns[0], blocks[0], true));
	cr_assert(pcpi_hot_push(cache, 1, pfns[1], blocks[1], true));
	cr_assert_eq(pcpi_cache_front_len(cache, 0), 1);
	cr_expect_eq(pcpi_bulk_pop(&hot, 0, got, 4), 2);
	cr_expect_eq(pcpi_cache_count(cache), 0);
}

/* ---- Wrap-around ------------------------------------------------------------ */

Test(bulk, ring_that_wraps_is_moved_in_pieces)
{
	struct pcpi_ring *ring = &cache->list[0].ring;
	void *got[600];
	uint32_t n = 600;

	pcpi_ring_commit(ring, UINT32_MAX - 99, UINT32_MAX - 99);
	hand_out(0, n);
	cr_expect_eq(pcpi_bulk_push(&hot, 0, false, blocks, n), n);
	cr_expect_eq(pcpi_cache_len(cache, 0), n);
	cr_expect_eq(ring->head, n - 100);
	cr_expect_eq(pcpi_bulk_pop(&hot, 0, got, n), n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; blocks[i] != got[k]; k++)
			cr_assert_lt(k, n - 1, "block %u is lost", i);
}

/* ---- Who must go the slow way ------------------------------------------------ */

static void expect_nothing_moves(void)
{
	void *got[8];
	uint32_t count = pcpi_cache_count(cache);

	cr_expect_eq(pcpi_bulk_pop(&hot, 0, got, 4), 0);
	cr_expect_eq(pcpi_bulk_push(&hot, 0, false, blocks + 8, 8), 0);
	cr_expect_eq(pcpi_cache_count(cache), count);
}

Test(bulk, claim_mark_or_other_heap_moves_nothing)
{
	hand_out(0, 16);
	pcpi_bulk_push(&hot, 0, false, blocks, 8);
	cr_assert(pcpi_cache_claim(cache));
	expect_nothing_moves();
	cr_expect_eq(cache->busy, 0);
	pcpi_cache_claim_end(cache, PCPI_CLAIM_PENDING);
	expect_nothing_moves();
	pcpi_cache_claim_end(cache, PCPI_CLAIM_NONE);
	cr_assert(pcpi_cache_enter(cache));
	expect_nothing_moves();
	cr_expect_eq(cache->busy, 1);
	pcpi_cache_leave(cache);
	table[3].heap = NULL;
	expect_nothing_moves();
}

/* ---- Whole calls, in both widths ------------------------------------------------- */

static PCPI_WIDE bool pop_wide(void **to, uint32_t n)
{
	bool look;

	return pcpi_chunk_pop_wide(&hot, cache, 0, to, n, &look);
}

static PCPI_WIDE bool push_wide(void *const *from, uint32_t n, bool sized)
{
	return pcpi_chunk_push_wide(&hot, cache, 0, sized, from, n);
}

static bool whole_pop(bool wide, void **to, uint32_t n)
{
	bool look;

	return wide ? pop_wide(to, n)
		    : pcpi_chunk_pop_plain(&hot, cache, 0, to, n, &look);
}

static bool whole_push(bool wide, void *const *from, uint32_t n, bool sized)
{
	return wide ? push_wide(from, n, sized)
		    : pcpi_chunk_push_plain(&hot, cache, 0, sized, from, n);
}

static bool other_width(bool *wide)
{
	*wide = !*wide && pcpi_convert_wide();
	return *wide;
}

Test(bulk, whole_calls_move_all_and_count)
{
	void *got[64];
	bool wide = false;

	hand_out(0, 64);
	do
		for (uint32_t n = 8; n <= 64; n++) {
			uint64_t allocs = pcpi_allocs(&cache->list[0].allocs);

			cr_assert(whole_push(wide, blocks, n, n % 2));
			cr_assert_eq(pcpi_cache_len(cache, 0), n);
			cr_assert(whole_pop(wide, got, n));
			cr_assert_eq(pcpi_cache_len(cache, 0), 0);
			cr_assert_arr_eq(got, blocks, n * sizeof(*got));
			cr_assert_eq(pcpi_allocs(&cache->list[0].allocs) - allocs, n);
		}
	while (other_width(&wide));
	pcpi_bulk_push(&hot, 0, false, blocks, 64);
}

static void expect_no_whole_move(bool wide, void *const *from, uint32_t n)
{
	uint32_t count = pcpi_cache_count(cache);
	void *got[64];

	cr_expect_not(whole_push(wide, from, n, false));
	cr_expect_not(whole_pop(wide, got, n));
	cr_expect_eq(pcpi_cache_count(cache), count);
	cr_expect_eq(cache->busy, 0);
}

Test(bulk, whole_calls_do_nothing_where_they_cannot_do_all)
{
	struct pcpi_ring *ring = &cache->list[0].ring;
	/* A block of order 1, its second page, one of the buddy's. */
	uint32_t middle = ring->head, other[3];
	bool wide = false;

	parts_take(0, 0, &other[2], 1);
	parts_take(0, 1, other, 1);
	other[1] = other[0] + 1;
	hand_out(0, 64);
	pcpi_zone_give_bulk(zone, 0, &other[2], 1);
	do {
		/* Too few, and the first slot a few blocks on. */
		cr_assert(whole_push(wide, blocks, 8, false));
		pcpi_ring_commit(ring, ring->mask - 6, ring->mask - 14);
		expect_no_whole_move(wide, blocks + 8, 9);
		pcpi_ring_commit(ring, middle + 8, middle);
		/* One page that is none in the other's place. */
		blocks[63] = blocks[20];
		blocks[20] = (char *)blocks[63] + 1;
		expect_no_whole_move(wide, blocks + 8, 32);
		for (unsigned i = 0; i < 3; i++) {
			blocks[20] = pcpi_space_addr(&parts.space, other[i]);
			expect_no_whole_move(wide, blocks + 8, 32);
		}
		blocks[20] = blocks[63];
		/* A claim. */
		cr_assert(pcpi_cache_claim(cache));
		expect_no_whole_move(wide, blocks + 8, 8);
		pcpi_cache_claim_end(cache, PCPI_CLAIM_NONE);
		cr_assert(whole_pop(wide, blocks, 8));
	} while (other_width(&wide));
	hand_out(0, 1);
}

/* And leave the front alone. */
Test(bulk, whole_calls_stay_below_the_limit)
{
	struct pcpi_ring *ring = &cache->list[0].ring;
	uint32_t size = ring->mask + 1, middle = ring->head;
	void *got[8], *front;
	bool wide = false;

	hand_out(0, 9);
	front = blocks[8];
	do {
		pcpi_ring_commit(ring, size + 4, size + 12 - ring->limit);
		cr_expect_not(whole_push(wide, blocks, 8, true));
		pcpi_ring_commit(ring, size + 4, size + 13 - ring->limit);
		cr_expect(whole_push(wide, blocks, 8, true));
		pcpi_ring_commit(ring, middle, middle);
		cr_assert(whole_push(wide, blocks, 8, true));
		cache->front = front;
		cr_expect_not(whole_pop(wide, got, 8));
		cr_expect_eq(cache->front, front);
		cache->front = NULL;
		cr_assert(whole_pop(wide, got, 8));
	} while (other_width(&wide));
}

/* ---- Thresholds --------------------------------------------------------------- */

Test(bulk, end_looks_at_the_threshold_once)
{
	const uint32_t n = 2 * PARTS_BATCH + 72;

	hand_out(0, n);
	pcpi_bulk_push(&hot, 0, false, blocks, n);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FREER], 0);
	cache->list[0].ring.limit = n;
	pcpi_bulk_end(cache, 0);
	cr_expect_eq(cache->drains[PCPI_DRAIN_FREER], 1);
	cr_expect_eq(pcpi_cache_count(cache), 72);
}

Test(bulk, end_below_the_threshold_does_nothing)
{
	hand_out(0, 200);
	pcpi_bulk_push(&hot, 0, false, blocks, 200);
	pcpi_bulk_end(cache, 0);
	cr_expect_eq(pcpi_cache_count(cache), 200);
}

/* However long the call: a trim makes room where the ring has none. */
Test(bulk, long_pushes_never_fill_the_ring)
{
	struct pcpi_ring *ring = &cache->list[0].ring;
	uint32_t most = 0;

	for (unsigned i = 0; i < 100; i++) {
		hand_out(0, N);
		cr_assert_eq(pcpi_bulk_push(&hot, 0, false, blocks, N), N);
		most = pcpi_max(most, pcpi_ring_len(ring));
		pcpi_depots_empty(zone);
	}
	cr_expect_leq(most, ring->mask + 1);
	cr_expect_gt(cache->drains[PCPI_DRAIN_FREER], 0);
	cr_expect_eq(parts_pages_held(0), zone->managed_pages);
}

/* Where a push can't have it trimmed, in a handler that is nested, and the limit is
 * never reached: room is left for the front, and for the hit of a handler. */
Test(bulk, full_ring_has_room_for_the_front_and_a_hit)
{
	struct pcpi_ring *ring = &cache->list[0].ring;
	uint32_t capacity = ring->mask + 1, pfn[2], coldest;
	void *block;

	ring->limit = 2 * capacity;
	pcpi_nest_enter();
	do
		hand_out(0, N);
	while (pcpi_bulk_push(&hot, 0, false, blocks, N) == N);
	pcpi_nest_leave();
	cr_assert_lt(pcpi_ring_len(ring), capacity);
	coldest = ring->slots[ring->tail & ring->mask];
	parts_take(0, 0, pfn, 2);
	for (unsigned i = 0; i < 2; i++) {
		block = pcpi_space_addr(&parts.space, pfn[i]);
		cr_assert(pcpi_hot_push(cache, 1, pfn[i], block, true));
	}
	cr_assert_eq(pcpi_cache_front_len(cache, 0), 1);
	cr_assert(pcpi_cache_enter(cache));
	pcpi_cache_leave(cache);
	cr_expect_leq(pcpi_ring_len(ring), capacity);
	cr_expect_eq(ring->slots[ring->tail & ring->mask], coldest);
}

/* As the public call does it: push and end, with few allocations between. */
Test(bulk, bulk_frees_stay_below_high)
{
	void *got[8];

	parts_unmake();
	make((struct parts_spec){.batch = 63, .high = 814});
	for (unsigned i = 0; i < 500; i++) {
		hand_out(0, 256);
		cr_assert_eq(pcpi_bulk_push(&hot, 0, false, blocks, 256), 256);
		pcpi_bulk_end(cache, 0);
		cr_assert_leq(pcpi_cache_count(cache), 814, "call %u: %u", i,
			      pcpi_cache_count(cache));
		if (i % 2 && pcpi_bulk_pop(&hot, 0, got, 8) == 8)
			pcpi_bulk_push(&hot, 0, false, got, 8);
		pcpi_depots_empty(zone);
	}
}

/* U1: the mark is out between chunks, so that a drainer waits for one only. */
Test(bulk, chunk_is_256_conversions)
{
	hand_out(0, 257);
	blocks[256] = NULL;
	cr_expect_eq(PCPI_BULK_CHUNK, 256);
	cr_expect_eq(pcpi_bulk_push(&hot, 0, false, blocks, 257), 256);
}
