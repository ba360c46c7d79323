/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pcp_move.c - the four moves of a hit, made in both ways: what each does,
 * and that nothing happens where it may not.  Races are for tests/conc/rseq.c.
 */
#include <criterion/criterion.h>

#include "../support/core_fixture.h"
#include "pcp_move.h"

static struct pcpi_cache *cache;
static struct pcpi_ring *ring;
static char blocks[2];

static void setup(void)
{
	parts_make((struct parts_spec){.rseq = true});
	cache = parts_cache(0);
	ring = &cache->list[1].ring;
}

static void teardown(void)
{
	parts_unmake();
}

TestSuite(pcp_move, .init = setup, .fini = teardown);

/* Each case in both ways; sequences where the machine has them, which the test of
 * setup says. */
#define BOTH_WAYS(by_mark)                                                     \
	for (int by_mark = cache->by_mark; by_mark <= 1; by_mark++)

Test(pcp_move, cache_of_the_fixture_can_do_without_the_mark)
{
	if (!parts.env.rseq)
		cr_skip_test("no restartable sequences here");
	cr_expect_eq(cache->state, 0);
}

static bool front_out(void *block, int by_mark)
{
	return by_mark ? pcpi_move_front_out(cache, block, true)
		       : pcpi_move_front_out(cache, block, false);
}

static bool front_in(void *block, int by_mark)
{
	return by_mark ? pcpi_move_front_in(cache, block, true)
		       : pcpi_move_front_in(cache, block, false);
}

static bool pop(uint32_t *pfn, int by_mark)
{
	return by_mark ? pcpi_move_pop(cache, ring, pfn, true)
		       : pcpi_move_pop(cache, ring, pfn, false);
}

static bool push(uint32_t pfn, uint32_t *head, int by_mark)
{
	return by_mark ? pcpi_move_push(cache, ring, pfn, head, true)
		       : pcpi_move_push(cache, ring, pfn, head, false);
}

Test(pcp_move, front_takes_one_and_gives_what_was_seen)
{
	BOTH_WAYS(by_mark) {
		cr_expect(front_in(&blocks[0], by_mark));
		cr_expect_eq(cache->front, &blocks[0]);
		cr_expect_not(front_in(&blocks[1], by_mark), "full");
		cr_expect_not(front_out(&blocks[1], by_mark), "another");
		cr_expect_eq(cache->front, &blocks[0]);
		cr_expect(front_out(&blocks[0], by_mark));
		cr_expect_null(cache->front);
		cr_expect_not(front_out(&blocks[0], by_mark), "empty");
		cache->front = PCPI_FRONT_OFF;
		cr_expect_not(front_in(&blocks[0], by_mark), "off");
		cache->front = NULL;
		cr_expect_eq(cache->busy, 0);
	}
}

Test(pcp_move, ring_gives_the_last_pushed_first)
{
	BOTH_WAYS(by_mark) {
		uint32_t head = 0, pfn = 0;

		ring->head = ring->tail = UINT32_MAX - 1; /* wraps */
		cr_expect_not(pop(&pfn, by_mark), "empty");
		for (uint32_t i = 1; i <= 5; i++) {
			cr_expect(push(10 + i, &head, by_mark));
			cr_expect_eq(head, UINT32_MAX - 1 + i);
			cr_expect_eq(ring->head, head);
		}
		for (uint32_t i = 5; i > 0; i--) {
			cr_expect(pop(&pfn, by_mark));
			cr_expect_eq(pfn, 10 + i);
		}
		cr_expect_not(pop(&pfn, by_mark), "empty again");
		cr_expect_eq(ring->head, ring->tail);
		cr_expect_eq(cache->busy, 0);
	}
}

static void expect_no_move(int by_mark)
{
	uint32_t head = 77, pfn = 78;
	uint64_t ends = ring->ends;

	cr_expect_not(front_in(&blocks[1], by_mark));
	cr_expect_not(front_out(&blocks[0], by_mark));
	cr_expect_not(pop(&pfn, by_mark));
	cr_expect_not(push(3, &head, by_mark));
	cr_expect_eq(cache->front, &blocks[0]);
	cr_expect_eq(ring->ends, ends);
}

Test(pcp_move, nothing_moves_beside_a_mark_or_a_claim)
{
	uint8_t mark = cache->by_mark;
	uint32_t head;

	cr_assert(push(1, &head, 1));
	cache->front = &blocks[0];
	BOTH_WAYS(by_mark) {
		cache->busy = 1;
		expect_no_move(by_mark);
		cr_expect_eq(cache->busy, 1, "it is another's");
		cache->busy = 0;
		for (uint8_t claim = 1; claim <= PCPI_CLAIM_WHERE; claim++) {
			cache->claim = claim;
			expect_no_move(by_mark);
			cr_expect_eq(cache->busy, 0);
		}
		cache->claim = 0;
	}
	if (PCPI_RSEQ) {
		cache->by_mark = 1;
		expect_no_move(0);
		cr_expect(front_out(&blocks[0], 1));
		cache->by_mark = mark;
	}
	cache->front = NULL;
}
