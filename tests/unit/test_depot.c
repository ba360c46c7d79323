/* SPDX-License-Identifier: BSD-2-Clause */
/* test_depot.c - batches in and out, and what a second shows to be surplus. */
#include <criterion/criterion.h>

#include "../support/core_fixture.h"
#include "depot_guess.h"

#define CAPACITY 256u
#define SECOND PARTS_SECOND

static struct pcpi_depot depot;
static uint32_t slots[CAPACITY];

static void setup(void)
{
	pcpi_depot_init(&depot, slots, CAPACITY);
}

static void teardown(void)
{
	cr_expect(pcpi_depot_check(&depot)); /* D2, D3 */
	pcpi_depot_fini(&depot);
}

TestSuite(depot, .init = setup, .fini = teardown);

/* Puts blocks first .. first + n - 1. */
static bool put(uint32_t first, uint32_t n)
{
	uint32_t pfns[CAPACITY + 1];

	for (uint32_t i = 0; i < n; i++)
		pfns[i] = first + i;
	return pcpi_depot_put(&depot, pfns, n);
}

static void expect_run(const uint32_t *pfns, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		cr_expect_eq(pfns[i], first + i);
}

Test(depot, empty_gives_nothing)
{
	uint32_t pfns[4];

	cr_expect_eq(pcpi_depot_get(&depot, pfns, 4), 0);
	cr_expect_eq(pcpi_depot_shift(&depot, pfns, 4), 0);
	cr_expect_eq(pcpi_depot_len(&depot), 0);
}

Test(depot, last_batch_in_is_first_out)
{
	uint32_t pfns[CAPACITY];

	for (uint32_t b = 0; b < 3; b++)
		cr_expect(put(b * 100, 64));
	for (uint32_t b = 3; b-- > 0;) {
		cr_assert_eq(pcpi_depot_get(&depot, pfns, 64), 64);
		expect_run(pfns, b * 100, 64);
	}
	cr_expect_eq(pcpi_depot_len(&depot), 0);
}

/* One cache takes 32 at a time, another gives 64 for every two of that: where the first
 * get after each put reads, and each put writes, is known before. */
Test(depot, next_gets_and_puts_slots_are_guessed)
{
	struct pcpi_depot_guess taker = {0}, freer = {0};
	uint32_t pfns[64];

	for (uint32_t b = 0; b < 8; b++) {
		if (b % 2 == 0) {
			cr_assert(put(b * 64, 64));
			cr_expect(b == 0 || freer.put.at[63] == b * 64 + 63);
			pcpi_depot_guess_given(&freer, &depot, 64);
			cr_expect_eq(freer.put.at[0], b * 64);
			cr_expect(b == 0 || taker.get.at[0] == b * 64 + 32);
		} else {
			cr_expect_eq(taker.get.nr, 0, "its own processor has them");
		}
		cr_assert_eq(pcpi_depot_get(&depot, pfns, 32), 32);
		pcpi_depot_guess_got(&taker, &depot, 32, 64);
	}
}

/* A batch as small as a get: each comes after a put. */
Test(depot, batches_of_a_get_are_guessed_every_time)
{
	struct pcpi_depot_guess g = {0};
	uint32_t pfns[32];

	for (uint32_t b = 0; b < 8; b++) {
		cr_assert(put(b * 32, 32));
		cr_expect(b == 0 || g.get.at[0] == b * 32);
		cr_assert_eq(pcpi_depot_get(&depot, pfns, 32), 32);
		pcpi_depot_guess_got(&g, &depot, 32, 32);
	}
}

static void expect_within(const struct pcpi_depot_slots *s)
{
	cr_assert(s->nr == 0 || (s->at >= slots && s->at + s->nr <= slots + CAPACITY));
	cr_assert(s->nr == 0 || (s->at - slots) % PCPI_SLOTS_PER_LINE == 0);
}

/* Whatever others do meanwhile. */
Test(depot, guesses_are_whole_lines_within_the_slots)
{
	struct pcpi_depot_guess g = {0};
	uint32_t pfns[CAPACITY], n;

	for (uint32_t i = 0; i < 1000; i++) {
		n = 1 + i * 2654435761u % 64;
		if (put(0, n)) {
			pcpi_depot_guess_given(&g, &depot, n);
			expect_within(&g.put);
		}
		n = 1 + i * 40503u % 64;
		n = i % 3 ? pcpi_depot_get(&depot, pfns, n)
			  : pcpi_depot_shift(&depot, pfns, n);
		pcpi_depot_guess_got(&g, &depot, n, 64);
		expect_within(&g.get);
	}
}

Test(depot, shift_takes_the_coldest)
{
	uint32_t pfns[CAPACITY];

	put(0, 64);
	put(100, 64);
	cr_assert_eq(pcpi_depot_shift(&depot, pfns, 64), 64);
	expect_run(pfns, 0, 64);
}

Test(depot, get_of_more_than_there_is_gives_what_there_is)
{
	uint32_t pfns[CAPACITY];

	put(7, 10);
	cr_expect_eq(pcpi_depot_get(&depot, pfns, 64), 10);
	expect_run(pfns, 7, 10);
}

Test(depot, put_that_does_not_fit_is_refused_whole)
{
	uint32_t pfns[CAPACITY];

	cr_expect(put(0, CAPACITY - 10));
	cr_expect_not(put(1000, 11)); /* D2 */
	cr_expect_eq(pcpi_depot_len(&depot), CAPACITY - 10);
	cr_expect(put(1000, 10));
	cr_expect_not(put(2000, 1));
	cr_expect_eq(pcpi_depot_get(&depot, pfns, 10), 10);
	expect_run(pfns, 1000, 10);
}

/* Every block that went in comes out once: D1. */
Test(depot, random_batches_lose_and_double_nothing)
{
	uint64_t seed = parts_seed();
	bool inside[CAPACITY] = {false};
	uint32_t pfns[64], n, got;

	for (unsigned i = 0; i < 20000; i++) {
		uint64_t r = parts_random(&seed) >> 8;

		n = 0;
		if (r % 3 == 0) {
			for (uint32_t p = (uint32_t)(r >> 8) % 64;
			     p < CAPACITY && n < (r >> 20) % 64; p++)
				if (!inside[p])
					pfns[n++] = p;
			cr_assert(pcpi_depot_put(&depot, pfns, n));
			for (uint32_t k = 0; k < n; k++)
				inside[pfns[k]] = true;
			continue;
		}
		n = (uint32_t)(r >> 20) % 65;
		got = r % 3 == 1 ? pcpi_depot_get(&depot, pfns, n)
				 : pcpi_depot_shift(&depot, pfns, n);
		for (uint32_t k = 0; k < got; k++) {
			cr_assert(inside[pfns[k]]);
			inside[pfns[k]] = false;
		}
		cr_assert(pcpi_depot_check(&depot));
	}
}

/* ---- Surplus ------------------------------------------------------------- */

/* All of it, in pieces of n. */
static uint32_t surplus_all(uint64_t now, uint32_t n, uint32_t *pfns)
{
	uint32_t all = 0, got;

	while ((got = pcpi_depot_surplus(&depot, now, pfns + all, n)))
		all += got;
	return all;
}

Test(depot, surplus_needs_a_second_of_watching)
{
	uint32_t pfns[CAPACITY];

	put(0, 100);
	cr_expect_eq(surplus_all(5 * SECOND, 64, pfns), 0, "nothing seen yet");
	cr_expect_eq(surplus_all(6 * SECOND - 1, 64, pfns), 0);
	cr_expect_eq(surplus_all(6 * SECOND, 64, pfns), 100);
	expect_run(pfns, 0, 100);
}

Test(depot, surplus_is_the_low_water_mark)
{
	uint32_t pfns[CAPACITY];

	put(0, 100);
	surplus_all(5 * SECOND, 64, pfns);
	pcpi_depot_get(&depot, pfns, 60);
	put(200, 90);
	cr_expect_eq(depot.low, 40);
	cr_expect_eq(surplus_all(6 * SECOND, 64, pfns), 40);
	expect_run(pfns, 0, 40);
	cr_expect_eq(pcpi_depot_len(&depot), 90);
}

/* In pieces smaller than the mark, it is not more. */
Test(depot, surplus_in_pieces_is_not_more_than_the_mark)
{
	uint32_t pfns[CAPACITY];

	put(0, 100);
	surplus_all(5 * SECOND, 64, pfns);
	put(200, 100);
	cr_expect_eq(surplus_all(6 * SECOND, 64, pfns), 100);
	expect_run(pfns, 0, 100);
	cr_expect_eq(pcpi_depot_len(&depot), 100);
}

Test(depot, surplus_in_pieces_that_divide_the_mark_is_not_more_either)
{
	uint32_t pfns[CAPACITY];

	put(0, 128);
	surplus_all(5 * SECOND, 64, pfns);
	put(200, 100);
	cr_expect_eq(surplus_all(6 * SECOND, 64, pfns), 128);
}

Test(depot, surplus_begins_anew_after_each_look)
{
	uint32_t pfns[CAPACITY];

	put(0, 100);
	surplus_all(5 * SECOND, 64, pfns);
	pcpi_depot_get(&depot, pfns, 100);
	put(200, 100);
	cr_expect_eq(surplus_all(6 * SECOND, 64, pfns), 0, "all was needed");
	cr_expect_eq(surplus_all(7 * SECOND - 1, 64, pfns), 0);
	cr_expect_eq(surplus_all(7 * SECOND, 64, pfns), 100);
}

Test(depot, shift_lowers_the_mark_too)
{
	uint32_t pfns[CAPACITY];

	put(0, 100);
	surplus_all(5 * SECOND, 64, pfns);
	pcpi_depot_shift(&depot, pfns, 70);
	cr_expect_eq(depot.low, 30); /* D3 */
	cr_expect_eq(surplus_all(6 * SECOND, 64, pfns), 30);
}
