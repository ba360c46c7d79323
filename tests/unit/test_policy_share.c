/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_policy_share.c - F1-F5 of section C of the specification: the division
 * of a drain among order lists, against a naive reference and against what the
 * first high-order caches of 2016 did.  W1-W4 of policy_share.c.
 */
#include <string.h>

#include "../support/policy_sim.h"

#define LISTS_MAX 14

/* The 14 lists of today's kernel: three mobilities of orders 0..3, and two
 * more. */
static const uint8_t kernel_orders[LISTS_MAX] = {0, 0, 0, 1, 1, 1, 2,
						 2, 2, 3, 3, 3, 3, 3};

static const struct pcpi_split_shape kernel_shape = {
	.lists = LISTS_MAX,
	.quantum = 8,
	.orders = kernel_orders,
};

static uint32_t count_pages(const struct pcpi_split_shape *shape,
			    const uint32_t *lens)
{
	uint32_t pages = 0;

	for (uint32_t i = 0; i < shape->lists; i++)
		pages += lens[i] << shape->orders[i];
	return pages;
}

static void remove_taken(uint32_t *lens, const uint32_t *take, uint32_t lists)
{
	for (uint32_t i = 0; i < lists; i++)
		lens[i] -= take[i];
}

#define EXPECT_TAKE(take, ...)                                                 \
	do {                                                                   \
		static const uint32_t want_[] = {__VA_ARGS__};                 \
		for (size_t i_ = 0; i_ < sizeof(want_) / sizeof(*want_); i_++) \
			cr_expect_eq((take)[i_], want_[i_], "list %zu: %u",    \
				     i_, (take)[i_]);                          \
	} while (0)

/* ---- Exact --------------------------------------------------------------- */

Test(policy_share, split_gives_each_order_eight_pages_a_turn)
{
	const uint32_t lens[] = {100, 100, 100, 100};
	struct pcpi_split_cursor cursor = {0, 0};
	uint32_t take[4];

	cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, lens, NULL, 32,
				       &cursor, take),
		     32);
	EXPECT_TAKE(take, 8, 4, 2, 1);
	/* Four more pages of order 0; the turn goes on where it stopped. */
	pcpi_policy_split(&pcpi_split_cache, lens, NULL, 4, &cursor, take);
	EXPECT_TAKE(take, 4, 0, 0, 0);
	pcpi_policy_split(&pcpi_split_cache, lens, NULL, 8, &cursor, take);
	EXPECT_TAKE(take, 4, 2, 0, 0);
	/* The last block overshoots. */
	cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, lens, NULL, 13,
				       &cursor, take),
		     20);
	EXPECT_TAKE(take, 0, 2, 2, 1);
}

Test(policy_share, split_drawn_in_the_opening_comment_overshoots_by_five)
{
	const uint32_t lens[] = {8, 8, 2, 8};
	struct pcpi_split_cursor cursor = {0, 0};
	uint32_t take[4];

	cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, lens, NULL, 27,
				       &cursor, take),
		     32);
	EXPECT_TAKE(take, 8, 4, 2, 1);
}

Test(policy_share, split_of_one_list_takes_exactly_the_budget)
{
	static const uint32_t budget[] = {63, 126, 252, 504, 751};
	const uint32_t lens[] = {814, 0, 0, 0};
	struct pcpi_split_cursor cursor = {0, 0};
	uint32_t take[4];

	for (size_t i = 0; i < 5; i++) {
		cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, lens, NULL,
					       budget[i], &cursor, take),
			     budget[i]);
		EXPECT_TAKE(take + 1, 0, 0, 0);
	}
}

Test(policy_share, split_of_nothing_takes_nothing)
{
	const uint32_t none[4] = {0}, some[] = {5, 0, 0, 1};
	struct pcpi_split_cursor cursor = {2, 4};
	uint32_t take[4];

	cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, none, NULL, 100,
				       &cursor, take),
		     0);
	EXPECT_TAKE(take, 0, 0, 0, 0);
	cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, some, NULL, 0,
				       &cursor, take),
		     0);
	EXPECT_TAKE(take, 0, 0, 0, 0);
}

Test(policy_share, split_beyond_the_count_takes_all)
{
	const uint32_t lens[] = {5, 0, 3, 1};
	struct pcpi_split_cursor cursor = {0, 0};
	uint32_t take[4];

	cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, lens, NULL,
				       UINT32_MAX, &cursor, take),
		     25);
	EXPECT_TAKE(take, 5, 0, 3, 1);
}

/* ---- Protection (F4) ----------------------------------------------------- */

Test(policy_share, kept_is_a_refill_while_recently_allocated)
{
	const struct pcpi_pageset ps = {.batch = 63};
	const struct pcpi_pageset tiny = {.batch = 1};

	cr_expect_eq(pcpi_policy_kept(&ps, 1, 100, 0), 31);
	cr_expect_eq(pcpi_policy_kept(&ps, 2, 100, 1), 15);
	cr_expect_eq(pcpi_policy_kept(&ps, 3, 100, 1), 7);
	cr_expect_eq(pcpi_policy_kept(&ps, 3, 5, 1), 5);
	cr_expect_eq(pcpi_policy_kept(&ps, 3, 100, PCPI_KEEP_TICKS), 0);
	cr_expect_eq(pcpi_policy_kept(&ps, 0, 100, 0), 0);
	cr_expect_eq(pcpi_policy_kept(&tiny, 3, 100, 0), 1);
}

Test(policy_share, split_protection_clamps_the_budget)
{
	const uint32_t lens[] = {10, 0, 0, 9}, kept[] = {0, 0, 0, 7};
	struct pcpi_split_cursor cursor = {0, 0};
	uint32_t take[4];

	cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, lens, kept, 100,
				       &cursor, take),
		     26);
	EXPECT_TAKE(take, 10, 0, 0, 2);
}

Test(policy_share, split_protection_is_ignored_when_nothing_else_is_left)
{
	const uint32_t lens[] = {0, 3, 0, 5}, kept[] = {0, 31, 0, 7};
	struct pcpi_split_cursor cursor = {0, 0};
	uint32_t take[4];

	cr_expect_eq(pcpi_policy_split(&pcpi_split_cache, lens, kept, 20,
				       &cursor, take),
		     22);
	EXPECT_TAKE(take, 0, 3, 0, 2);
}

/* Frees of order 0 only, drained at 814, beside 20 blocks of order 3. */
static uint32_t burst_singles(uint32_t ticks_since_alloc, int drains)
{
	const struct pcpi_pageset ps = {.batch = 63};
	uint32_t lens[4] = {0, 0, 0, 20}, kept[4] = {0}, take[4];
	struct pcpi_split_cursor cursor = {0, 0};

	for (int i = 0; i < drains; i++) {
		lens[0] += 814 - count_pages(&pcpi_split_cache, lens);
		kept[3] = pcpi_policy_kept(&ps, 3, lens[3], ticks_since_alloc);
		pcpi_policy_split(&pcpi_split_cache, lens, kept, 63, &cursor,
				  take);
		remove_taken(lens, take, 4);
	}
	return lens[3];
}

Test(policy_share, burst_of_singles_leaves_a_refill_of_an_active_order)
{
	cr_expect_eq(burst_singles(0, 1000), 7);
	cr_expect_eq(burst_singles(PCPI_KEEP_TICKS - 1, 1000), 7);
	cr_expect_eq(burst_singles(PCPI_KEEP_TICKS, 1000), 0);
	/* And even an idle one isn't the first to go. */
	cr_expect_geq(burst_singles(PCPI_KEEP_TICKS, 1), 16);
}

/* ---- Progress (F1) ------------------------------------------------------- */

/* The longest that a list which never empties waits, in drains. */
static uint32_t longest_wait(const struct pcpi_split_shape *shape,
			     uint32_t budget, int drains)
{
	uint32_t lens[LISTS_MAX], take[LISTS_MAX], wait[LISTS_MAX] = {0};
	struct pcpi_split_cursor cursor = {0, 0};
	uint32_t longest = 0;

	for (uint32_t i = 0; i < shape->lists; i++)
		lens[i] = 100000;
	for (int n = 0; n < drains; n++) {
		pcpi_policy_split(shape, lens, NULL, budget, &cursor, take);
		for (uint32_t i = 0; i < shape->lists; i++) {
			wait[i] = take[i] ? 0 : wait[i] + 1;
			longest = wait[i] > longest ? wait[i] : longest;
		}
	}
	return longest;
}

Test(policy_share, progress_batch_7_of_14_lists_within_17_drains)
{
	/* Served by the 17th drain: 16 without are the most. */
	cr_expect_leq(longest_wait(&kernel_shape, 7, 1000), 16);
	cr_expect_geq(longest_wait(&kernel_shape, 7, 1000), 1);
	/* Batch 7 reaches order 3 of the cache's own four lists, too. */
	cr_expect_leq(longest_wait(&pcpi_split_cache, 7, 1000), 5);
	cr_expect_leq(longest_wait(&pcpi_split_cache, 1, 1000), 32);
}

Test(policy_share, progress_beside_a_flood_of_singles)
{
	uint32_t lens[4] = {814, 0, 0, 3}, take[4], drains = 0;
	struct pcpi_split_cursor cursor = {0, 0};

	while (lens[3] != 0 && drains < 100) {
		pcpi_policy_split(&pcpi_split_cache, lens, NULL, 7, &cursor,
				  take);
		remove_taken(lens, take, 4);
		lens[0] += take[0];
		drains++;
	}
	/* A drain in about two gives one of its blocks back. */
	cr_expect_leq(drains, 8);
}

/* The high-order caches of 2016: one block of each list in turn, whatever its
 * size. */
static uint32_t split_v5(uint32_t *lens, const uint8_t *orders, uint32_t lists,
			 int budget, uint32_t first, uint32_t *take)
{
	uint32_t pages = 0;

	for (uint32_t i = first; budget > 0; i = (i + 1) % lists) {
		if (take[i] == lens[i])
			continue;
		take[i]++;
		budget -= 1 << orders[i];
		pages += 1u << orders[i];
	}
	return pages;
}

Test(policy_share, split_against_2016_a_small_batch_reaches_order_3)
{
	static const uint8_t orders[] = {0, 0, 0, 1, 2, 3};
	const struct pcpi_split_shape shape = {6, 8, orders};
	uint32_t lens[6] = {10, 10, 10, 10, 10, 10}, take[6] = {0};
	struct pcpi_split_cursor cursor = {0, 0};
	uint32_t drains = 1;

	/* Budget 7 freed 9 pages and never one of order 3; starting at the
	 * second list, 8. */
	cr_expect_eq(split_v5(lens, orders, 6, 7, 0, take), 9);
	EXPECT_TAKE(take, 1, 1, 1, 1, 1, 0);
	memset(take, 0, sizeof(take));
	cr_expect_eq(split_v5(lens, orders, 6, 7, 1, take), 8);
	EXPECT_TAKE(take, 0, 1, 1, 1, 1, 0);
	/* Here the cursor persists: 6 * 8 / 7 rounded up, and one. */
	for (; drains < 100; drains++) {
		pcpi_policy_split(&shape, lens, NULL, 7, &cursor, take);
		if (take[5] != 0)
			break;
		remove_taken(lens, take, 6);
	}
	cr_expect_leq(drains, 8);
}

Test(policy_share, split_against_2016_gives_pages_not_blocks_alike)
{
	static const uint8_t orders[] = {0, 0, 0, 1, 2, 3};
	const struct pcpi_split_shape shape = {6, 8, orders};
	uint32_t lens[6] = {100, 100, 100, 100, 100, 100}, take[6] = {0};
	struct pcpi_split_cursor cursor = {0, 0};

	/* Budget 63 took about four blocks of each: 4 pages of order 0, but
	 * 24 to 32 of order 3. */
	cr_expect_eq(split_v5(lens, orders, 6, 63, 0, take), 68);
	EXPECT_TAKE(take, 4, 4, 4, 4, 4, 4);
	pcpi_policy_split(&shape, lens, NULL, 48, &cursor, take);
	EXPECT_TAKE(take, 8, 8, 8, 4, 2, 1);
}

/* ---- Random -------------------------------------------------------------- */

struct job {
	struct pcpi_split_shape shape;
	uint8_t orders[LISTS_MAX];
	uint32_t lens[LISTS_MAX], kept[LISTS_MAX], take[LISTS_MAX];
	struct pcpi_split_cursor cursor;
	unsigned top;
};

static void draw_lens(struct job *j)
{
	for (uint32_t i = 0; i < j->shape.lists; i++) {
		j->lens[i] = draw(3) ? draw(1u << draw(10)) : 0;
		j->kept[i] = draw(3) ? 0 : draw(40);
	}
}

static void draw_job(struct job *j)
{
	memset(j, 0, sizeof(*j));
	j->shape.lists = 1 + draw(LISTS_MAX);
	for (uint32_t i = 0; i < j->shape.lists; i++) {
		j->orders[i] = (uint8_t)draw(5);
		j->top = j->orders[i] > j->top ? j->orders[i] : j->top;
	}
	j->shape.orders = j->orders;
	j->shape.quantum = (1 + draw(4)) << j->top;
	draw_lens(j);
}

static uint32_t left_blocks(const struct job *j, uint32_t i, bool keep)
{
	uint32_t blocks = j->lens[i] - j->take[i];
	uint32_t kept = keep ? j->kept[i] : 0;

	return blocks > kept ? blocks - kept : 0;
}

static uint32_t left_pages(const struct job *j, bool keep)
{
	uint32_t pages = 0;

	for (uint32_t i = 0; i < j->shape.lists; i++)
		pages += left_blocks(j, i, keep) << j->orders[i];
	return pages;
}

static bool is_alone(const struct job *j, bool keep)
{
	uint32_t live = 0;

	for (uint32_t i = 0; i < j->shape.lists; i++)
		live += left_blocks(j, i, keep) != 0;
	return live == 1;
}

/* One block at a time: slow, and obviously what is meant. */
static uint32_t split_naive(struct job *j, uint32_t budget)
{
	bool keep = left_pages(j, true) != 0;
	struct pcpi_split_cursor was = j->cursor;
	bool alone = is_alone(j, keep);
	uint32_t pages = 0;

	while (pages < budget && left_pages(j, keep) != 0) {
		uint32_t i = j->cursor.list;

		if (j->cursor.spent == j->shape.quantum ||
		    left_blocks(j, i, keep) == 0) {
			j->cursor.list = (i + 1) % j->shape.lists;
			j->cursor.spent = 0;
			continue;
		}
		j->take[i]++;
		j->cursor.spent += 1u << j->orders[i];
		pages += 1u << j->orders[i];
	}
	if (alone) /* nobody to take turns with */
		j->cursor = was;
	return pages;
}

static uint32_t split_job(struct job *j, uint32_t budget)
{
	return pcpi_policy_split(&j->shape, j->lens, j->kept, budget,
				 &j->cursor, j->take);
}

Test(policy_share, split_random_jobs_equal_the_naive_reference)
{
	start_random();
	for (int i = 0; i < 2000; i++) {
		struct job a, b;

		draw_job(&a);
		for (int k = 0; k < 10; k++) {
			uint32_t budget = draw(1u << draw(12));

			b = a;
			b.shape.orders = b.orders;
			memset(b.take, 0, sizeof(b.take));
			cr_assert_eq(split_job(&a, budget),
				     split_naive(&b, budget));
			cr_assert_arr_eq(a.take, b.take,
					 a.shape.lists * sizeof(a.take[0]));
			cr_assert_eq(a.cursor.list, b.cursor.list);
			cr_assert_eq(a.cursor.spent, b.cursor.spent);
			remove_taken(a.lens, a.take, a.shape.lists);
			if (draw(3) == 0)
				draw_lens(&a);
		}
	}
}

Test(policy_share, split_random_jobs_overshoot_by_less_than_a_block)
{
	start_random();
	for (int i = 0; i < 20000; i++) {
		uint32_t budget = draw(1u << draw(14)), unkept, all, least, got;
		struct job j;

		draw_job(&j);
		unkept = left_pages(&j, true);
		all = left_pages(&j, false);
		least = unkept ? unkept : all;
		least = budget < least ? budget : least;
		got = split_job(&j, budget);
		cr_assert_geq(got, least);
		cr_assert_lt(got, least + (1u << j.top));
		cr_assert_eq(got, count_pages(&j.shape, j.take));
		for (uint32_t l = 0; l < j.shape.lists; l++) {
			cr_assert_leq(j.take[l], j.lens[l]);
			if (unkept != 0 && j.take[l] != 0)
				cr_assert_leq(j.kept[l], j.lens[l] - j.take[l]);
		}
	}
}

Test(policy_share, split_random_full_lists_differ_by_a_quantum)
{
	start_random();
	for (int i = 0; i < 500; i++) {
		uint64_t given[LISTS_MAX] = {0};
		struct job j;

		draw_job(&j);
		memset(j.kept, 0, sizeof(j.kept));
		for (uint32_t l = 0; l < j.shape.lists; l++)
			j.lens[l] = 100000;
		/* Any window: it starts wherever the cursor has got to. */
		split_job(&j, draw(500));
		for (int k = 0; k < 50; k++) {
			uint64_t least = UINT64_MAX, most = 0;

			split_job(&j, draw(200));
			for (uint32_t l = 0; l < j.shape.lists; l++) {
				given[l] += (uint64_t)j.take[l] << j.orders[l];
				least = given[l] < least ? given[l] : least;
				most = given[l] > most ? given[l] : most;
			}
			cr_assert_leq(most - least, j.shape.quantum);
		}
	}
}

Test(policy_share, split_random_shapes_serve_each_list_in_time)
{
	start_random();
	for (int i = 0; i < 500; i++) {
		uint32_t batch = 1 + draw(100), turns;
		struct job j;

		draw_job(&j);
		turns = j.shape.lists * j.shape.quantum;
		cr_assert_leq(longest_wait(&j.shape, batch, 100),
			      (turns + batch - 1) / batch);
	}
}

Test(policy_share, split_repeated_drains_to_zero)
{
	start_random();
	for (int i = 0; i < 500; i++) {
		uint32_t count, drains = 0;
		struct job j;

		draw_job(&j);
		count = count_pages(&j.shape, j.lens);
		while (count != 0) {
			uint32_t got = split_job(&j, 7);

			cr_assert(got > 0 && got <= count);
			remove_taken(j.lens, j.take, j.shape.lists);
			count -= got;
			/* sum(len << order) == count after each (F5) */
			cr_assert_eq(count, count_pages(&j.shape, j.lens));
			cr_assert_lt(++drains, 100000u);
		}
	}
}
