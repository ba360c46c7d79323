/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy_share.c - which lists a drain takes its pages from.
 *
 * Owns the division of a number of pages among the order lists of a cache.
 * Owns neither the number (policy_pcp.c) nor the blocks.
 *
 * Deficit round robin: lists take turns, and a turn is worth a quantum of
 * pages, not of blocks.  A drain that ends within a turn leaves the rest of it
 * to the next drain.
 *
 *   order   0          1        2      3         quantum 8, budget 27
 *           oooooooo   oo oo    oooo   oooooooo
 *           ^ 8 pages  oo oo    oooo   ^ 3 left of the budget: one block, and
 *             a turn   ^ turn   ^ turn   the overshoot is 5
 *
 * The quantum is a multiple of every block, so a turn that ends leaves no
 * remainder, and what the cursor's list has spent of its turn is all the
 * deficit there is to remember.
 *
 * Whole rounds are taken at once: as many as the budget and the shortest list
 * allow.  They leave the cursor where it is.  So does a drain from the only
 * list that has pages: there is nobody to take turns with.
 *
 * Invariants (W: policy, sharing):
 * W1 take[i] <= lens[i]; and take[i] <= lens[i] - kept[i] unless no list has
 *    more than it keeps (F4).
 * W2 B <= pages taken < B + the largest block, where B is the budget or all
 *    that isn't kept, whichever is less (F3).
 * W3 between two turns of a list every other list has at most one turn, so it
 *    is served within ceil(lists * quantum / batch) + 1 drains (F1), and two
 *    lists that are never empty differ by at most a quantum (F2).
 * W4 spent <= quantum, and is a multiple of the cursor's list's block.
 *
 * Concurrency: pure; one cursor belongs to one owner.  Cost: at most about
 * lists^3 steps whatever the budget; one division for a set of rounds.
 * Failure: none.  Proved by tests/unit/test_policy_share.c.
 */
#include "policy.h"

#include "check.h"

static const uint8_t cache_orders[PCPI_PCP_ORDERS] = {0, 1, 2, 3};

const struct pcpi_split_shape pcpi_split_cache = {
	.lists = PCPI_PCP_ORDERS,
	.quantum = 1u << (PCPI_PCP_ORDERS - 1),
	.orders = cache_orders,
};

/* One call's arguments and its answer so far. */
struct split {
	const struct pcpi_split_shape *shape;
	const uint32_t *lens;
	const uint32_t *kept; /* NULL: nothing is */
	uint32_t *take;
};

/* Pages that list i can still give. */
static uint32_t count_left(const struct split *s, uint32_t i)
{
	uint32_t blocks = s->lens[i] - s->take[i];
	uint32_t kept = s->kept != NULL ? s->kept[i] : 0;

	return (blocks > kept ? blocks - kept : 0) << s->shape->orders[i];
}

/* What the lists can give, seen together. */
struct survey {
	uint32_t pages;    /* in all                             */
	uint32_t live;     /* lists that have any                */
	uint32_t shortest; /* pages of the one that has fewest   */
	uint32_t last;     /* one of them                        */
};

static struct survey survey_lists(const struct split *s)
{
	struct survey all = {0, 0, UINT32_MAX, 0};

	for (uint32_t i = 0; i < s->shape->lists; i++) {
		uint32_t left = count_left(s, i);

		if (left == 0)
			continue;
		all.pages += left;
		all.live++;
		all.shortest = pcpi_min(all.shortest, left);
		all.last = i;
	}
	return all;
}

/* Takes pages, rounded up to whole blocks, from list i. */
static uint32_t take_pages(struct split *s, uint32_t i, uint32_t pages)
{
	unsigned order = s->shape->orders[i];
	uint32_t blocks = pages >> order;

	if (blocks << order != pages)
		blocks++;
	s->take[i] += blocks;
	return blocks << order;
}

/* As many whole rounds as every list that has pages can give in full. */
static uint32_t take_rounds(struct split *s, uint32_t budget)
{
	uint32_t quantum = s->shape->quantum;
	struct survey all;
	uint32_t rounds;

	if (budget < quantum)
		return 0;
	all = survey_lists(s);
	rounds = pcpi_min(all.shortest / quantum, budget / quantum / all.live);
	if (rounds == 0)
		return 0;
	for (uint32_t i = 0; i < s->shape->lists; i++)
		if (count_left(s, i) != 0)
			take_pages(s, i, rounds * quantum);
	return rounds * quantum * all.live;
}

/* What is left of the turn of the cursor's list, as far as list and budget
 * last. */
static uint32_t take_turn(struct split *s, struct pcpi_split_cursor *cursor,
			  uint32_t budget)
{
	uint32_t turn = s->shape->quantum - cursor->spent;
	uint32_t left = count_left(s, cursor->list);
	uint32_t pages = pcpi_min(turn, left);

	pages = take_pages(s, cursor->list, pcpi_min(pages, budget));
	cursor->spent += pages;
	return pages;
}

static void pass_turn(const struct split *s, struct pcpi_split_cursor *cursor)
{
	cursor->list++;
	if (cursor->list == s->shape->lists)
		cursor->list = 0;
	cursor->spent = 0;
}

uint32_t pcpi_policy_kept(const struct pcpi_pageset *ps, unsigned order,
			  uint32_t len, uint32_t ticks_since_alloc)
{
	uint32_t refill = pcpi_max(ps->batch >> order, ps->batch > 1 ? 2u : 1u);

	if (order == 0 || ticks_since_alloc >= PCPI_KEEP_TICKS)
		return 0;
	return pcpi_min(len, refill);
}

uint32_t pcpi_policy_split(const struct pcpi_split_shape *shape,
			   const uint32_t *lens, const uint32_t *kept,
			   uint32_t budget, struct pcpi_split_cursor *cursor,
			   uint32_t *take)
{
	struct split s = {shape, lens, kept, take};
	struct survey all;
	uint32_t taken = 0;

	PCPA_ASSERT(cursor->list < shape->lists);
	PCPA_ASSERT(cursor->spent <= shape->quantum); /* W4 */
	for (uint32_t i = 0; i < shape->lists; i++)
		take[i] = 0;
	all = survey_lists(&s);
	if (all.pages == 0) {
		s.kept = NULL; /* W1 */
		all = survey_lists(&s);
	}
	budget = pcpi_min(budget, all.pages); /* W2 */
	if (all.live == 1)
		return take_pages(&s, all.last, budget);
	while (taken < budget) {
		if (cursor->spent == shape->quantum ||
		    count_left(&s, cursor->list) == 0) {
			pass_turn(&s, cursor);
			continue;
		}
		/* A page less: the last turn leaves the cursor where single
		 * steps would. */
		taken += take_rounds(&s, budget - taken - 1);
		taken += take_turn(&s, cursor, budget - taken);
	}
	return taken;
}
