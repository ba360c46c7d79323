/* SPDX-License-Identifier: BSD-2-Clause */
/* test_page.c - the order bytes: their encoding, and that neighbours stay. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "page.h"

#define PAGES 4096u
#define BLOCK 2048u /* a multiple of every block */

static uint8_t orders[PAGES] PCPI_ALIGNED(PCPI_CACHELINE);

/* A value that no function writes. */
#define OTHER 0x55

static void setup(void)
{
	memset(orders, OTHER, sizeof(orders));
}

TestSuite(page, .init = setup);

static void expect_neighbours_untouched(unsigned order)
{
	uint32_t size = 1u << order;

	for (uint32_t i = 0; i < BLOCK; i++)
		cr_assert_eq(orders[i], OTHER, "order %u, page %u", order, i);
	for (uint32_t i = BLOCK + size; i < PAGES; i++)
		cr_assert_eq(orders[i], OTHER, "order %u, page %u", order, i);
}

Test(page, mark_writes_order_and_tails_of_each_order)
{
	for (unsigned o = 0; o <= PCPI_MAX_ORDER; o++) {
		memset(orders, OTHER, sizeof(orders));
		pcpi_page_mark(orders, BLOCK, o);
		cr_expect_eq(pcpi_page_read(orders, BLOCK), o + 1);
		for (uint32_t i = 1; i < 1u << o; i++)
			cr_assert_eq(orders[BLOCK + i], 0x80, "order %u", o);
		expect_neighbours_untouched(o);
	}
}

Test(page, clear_makes_every_page_of_a_block_none)
{
	for (unsigned o = 0; o <= PCPI_MAX_ORDER; o++) {
		memset(orders, OTHER, sizeof(orders));
		pcpi_page_mark(orders, BLOCK, o);
		pcpi_page_clear(orders, BLOCK, o);
		for (uint32_t i = 0; i < 1u << o; i++)
			cr_assert_eq(orders[BLOCK + i], 0, "order %u", o);
		expect_neighbours_untouched(o);
	}
}

/* A free is refused by its byte alone, so no two states may share one. */
Test(page, states_are_told_apart_by_the_byte)
{
	bool seen[256] = {false};

	seen[PCPI_PAGE_NONE] = true;
	cr_expect_not(seen[PCPI_PAGE_TAIL]);
	seen[PCPI_PAGE_TAIL] = true;
	seen[PCPI_PAGE_CONTIG] = true;
	cr_expect_not(seen[PCPI_PAGE_ISOLATED]);
	seen[PCPI_PAGE_ISOLATED] = true;
	for (unsigned o = 0; o <= PCPI_MAX_ORDER; o++) {
		pcpi_page_mark(orders, BLOCK, o);
		cr_expect_not(seen[orders[BLOCK]]);
		seen[orders[BLOCK]] = true;
		cr_expect_not(seen[orders[BLOCK] | PCPI_PAGE_HELD]);
		seen[orders[BLOCK] | PCPI_PAGE_HELD] = true;
	}
}

/* Small blocks lie at odd places of the words that larger ones are written by. */
Test(page, small_blocks_mark_their_own_bytes_at_any_place)
{
	for (unsigned o = 0; o < 3; o++)
		for (uint32_t at = 0; at < 16; at += 1u << o) {
			memset(orders, OTHER, sizeof(orders));
			pcpi_page_mark(orders, at, o);
			for (uint32_t i = 0; i < 24; i++)
				if (i < at || i >= at + (1u << o))
					cr_assert_eq(orders[i], OTHER);
		}
}

Test(page, range_of_any_length_fills_its_own_bytes)
{
	for (uint32_t at = 0; at < 10; at++)
		for (uint32_t n = 1; n < 40; n++) {
			memset(orders, OTHER, sizeof(orders));
			pcpi_page_fill_range(orders, at, n, PCPI_PAGE_TAIL);
			for (uint32_t i = 0; i < 64; i++)
				cr_assert_eq(orders[i], i < at || i >= at + n
								? OTHER
								: PCPI_PAGE_TAIL);
		}
}

Test(page, contiguous_range_ends_at_the_next_first_page)
{
	memset(orders, 0, sizeof(orders));
	pcpi_page_fill_range(orders, 4, 7, PCPI_PAGE_TAIL);
	pcpi_page_write(orders, 4, PCPI_PAGE_CONTIG);
	cr_expect_eq(pcpi_page_contig(orders, 4, 64), 7);
	cr_expect_eq(pcpi_page_contig(orders, 4, 5), 5, "as far as asked");
	cr_expect_eq(pcpi_page_contig(orders, 5, 64), 0);
	cr_expect_eq(pcpi_page_contig(orders, 11, 64), 0);
	pcpi_page_mark(orders, 11, 0);
	cr_expect_eq(pcpi_page_contig(orders, 4, 64), 7);
	pcpi_page_write(orders, 11, PCPI_PAGE_CONTIG);
	cr_expect_eq(pcpi_page_contig(orders, 4, 64), 7);
	pcpi_page_write(orders, 11, PCPI_PAGE_ISOLATED);
	cr_expect_eq(pcpi_page_contig(orders, 4, 64), 7);
}

/* ---- Beside the free of a range before it: P2 ------------------------------------- */

static bool stop_marking;

static void *mark_and_clear(void *arg)
{
	unsigned order = *(unsigned *)arg;

	while (!pcpi_load_relaxed(&stop_marking)) {
		if (order > PCPI_MAX_ORDER) {
			pcpi_page_mark_range(orders, BLOCK, 20);
			pcpi_page_fill_range(orders, BLOCK, 20, PCPI_PAGE_NONE);
		} else {
			pcpi_page_mark(orders, BLOCK, order);
			pcpi_page_clear(orders, BLOCK, order);
		}
	}
	return NULL;
}

/* One past the orders stands for a range. */
Test(page, first_byte_is_a_tail_at_no_time)
{
	for (unsigned order = 0; order <= PCPI_MAX_ORDER + 1; order++) {
		pthread_t t;

		stop_marking = false;
		memset(orders, 0, sizeof(orders));
		cr_assert_eq(pthread_create(&t, NULL, mark_and_clear, &order), 0);
		for (unsigned i = 0; i < 1000000; i++)
			cr_assert_neq(pcpi_page_read(orders, BLOCK),
				      PCPI_PAGE_TAIL, "order %u", order);
		pcpi_store_relaxed(&stop_marking, true);
		cr_assert_eq(pthread_join(t, NULL), 0);
	}
}
