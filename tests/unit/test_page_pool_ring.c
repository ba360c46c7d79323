/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool_ring.c - the rules of the kernel's ptr_ring, to the slot.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "../../lib/page_pool_ring.h"

#define MOST 256u

static void *slots[MOST], *others[MOST];
static struct pcpi_pool_ring ring;

TestSuite(page_pool_ring);

static void *item(uintptr_t n)
{
	return (void *)n;
}

static void ring_make(uint32_t size)
{
	for (uint32_t i = 0; i < MOST; i++)
		slots[i] = others[i] = NULL;
	pcpi_pool_ring_init(&ring, slots, size);
}

/* Produces first, first + 1, ... until the ring is full, at most n; how many. */
static uint32_t produce(uintptr_t first, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && pcpi_pool_ring_produce(&ring, item(first + i)))
		i++;
	return i;
}

/* Consumes n, which are first, first + 1, ... */
static void consume(uintptr_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		cr_assert_eq(pcpi_pool_ring_consume(&ring), item(first + i),
			     "%u of %u", i, n);
}

static void expect_empty(void)
{
	cr_expect_null(pcpi_pool_ring_peek(&ring));
	cr_expect_null(pcpi_pool_ring_consume(&ring));
}

Test(page_pool_ring, batch_is_16_or_1_where_that_is_more_than_half)
{
	static const struct { uint32_t size, batch; } cases[] = {
		{ 1, 1 }, { 2, 1 }, { 16, 1 }, { 31, 1 }, { 32, 16 },
		{ 33, 16 }, { 64, 16 }, { 200, 16 } };

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ring_make(cases[i].size);
		cr_expect_eq(ring.batch, cases[i].batch, "size %u",
			     cases[i].size);
	}
}

Test(page_pool_ring, full_64_is_still_full_after_15_and_has_16_free_after_16)
{
	ring_make(64);
	cr_assert_eq(produce(1, 100), 64);
	consume(1, 15);
	cr_expect_eq(produce(1000, 100), 0);
	consume(16, 1);
	cr_expect_eq(produce(65, 100), 16);
	consume(17, 64);
	expect_empty();
}

Test(page_pool_ring, consumed_slots_become_null_at_the_end_of_the_slots)
{
	ring_make(40);
	cr_assert_eq(produce(1, 100), 40);
	consume(1, 32);
	cr_expect_eq(produce(41, 100), 32);
	consume(33, 7);
	cr_expect_eq(produce(1000, 1), 0, "39 consumed: a batch of 7 waits");
	consume(40, 1);
	cr_expect_eq(ring.head, 0);
	cr_expect_eq(ring.tail, 0);
	cr_expect_eq(produce(73, 100), 8, "and the end is the end of a batch");
	consume(41, 40);
	expect_empty();
}

Test(page_pool_ring, small_ring_frees_each_slot_at_once)
{
	ring_make(20);
	cr_assert_eq(produce(1, 100), 20);
	for (uintptr_t i = 1; i <= 100; i++) {
		consume(i, 1);
		cr_assert_eq(produce(i + 20, 2), 1);
	}
}

Test(page_pool_ring, ring_of_one)
{
	ring_make(1);
	for (uintptr_t i = 1; i < 5; i++) {
		cr_assert_eq(produce(i, 2), 1);
		consume(i, 1);
		expect_empty();
	}
}

/* The producer looks at the first of a batch; that is NULL only when all are. */
Test(page_pool_ring, clearing_ends_with_the_lowest_slot)
{
	ring_make(64);
	produce(1, 64);
	ring.tail = 8;
	pcpi_pool_ring_clear(&ring, 24);
	cr_expect_not_null(slots[7]);
	for (uint32_t i = 8; i < 24; i++)
		cr_expect_null(slots[i]);
	cr_expect_not_null(slots[24]);
}

Test(page_pool_ring, unconsume_gives_back_in_the_order_that_was)
{
	void *p[20];

	ring_make(64);
	produce(1, 64);
	for (unsigned i = 0; i < 20; i++)
		p[i] = pcpi_pool_ring_consume(&ring);
	/* 16 free, and 4 consumed that are not yet. */
	cr_expect_eq(pcpi_pool_ring_unconsume(&ring, p, 20), 0);
	cr_expect_eq(produce(1000, 1), 0);
	consume(1, 64);
	expect_empty();
}

Test(page_pool_ring, unconsume_frees_what_waits_for_its_batch)
{
	ring_make(64);
	produce(1, 64);
	consume(1, 5);
	cr_expect_eq(produce(1000, 1), 0);
	cr_expect_eq(pcpi_pool_ring_unconsume(&ring, NULL, 0), 0);
	cr_expect_eq(ring.tail, 5);
	cr_expect_eq(produce(65, 100), 5);
	consume(6, 64);
}

Test(page_pool_ring, unconsume_leaves_the_first_where_the_ring_is_full)
{
	void *p[10];

	ring_make(64);
	produce(1, 60);
	for (uintptr_t i = 0; i < 10; i++)
		p[i] = item(100 + i);
	cr_expect_eq(pcpi_pool_ring_unconsume(&ring, p, 10), 6);
	cr_expect_eq(p[5], item(105));
	consume(106, 4);
	consume(1, 60);
	expect_empty();
}

Test(page_pool_ring, unconsume_into_an_empty_ring_goes_over_its_begin)
{
	void *p[3] = { item(1), item(2), item(3) };

	ring_make(64);
	cr_expect_eq(pcpi_pool_ring_unconsume(&ring, p, 3), 0);
	cr_expect_eq(ring.head, 61);
	cr_expect_eq(produce(4, 100), 61);
	consume(1, 64);
	expect_empty();
}

Test(page_pool_ring, resize_keeps_order_and_leaves_the_last)
{
	void **old;
	uint32_t left;

	ring_make(64);
	produce(1, 64);
	consume(1, 20);
	produce(65, 16);
	left = pcpi_pool_ring_resize(&ring, others, 40, &old);
	cr_expect_eq(left, 20, "%u", left);
	cr_expect_eq(old, slots);
	for (unsigned i = 0, sum = 0; i < left; i++) {
		sum += (unsigned)(uintptr_t)old[i];
		cr_expect_geq((uintptr_t)old[i], 61);
		if (i == left - 1)
			cr_expect_eq(sum, 20 * (61 + 80) / 2);
	}
	cr_expect_eq(produce(1000, 1), 0, "40 of 40");
	consume(21, 40);
	expect_empty();
}

Test(page_pool_ring, resize_to_more_has_room_behind_what_was)
{
	void **old;

	ring_make(32);
	produce(1, 32);
	consume(1, 3);
	cr_expect_eq(pcpi_pool_ring_resize(&ring, others, 100, &old), 0);
	cr_expect_eq(ring.batch, 16);
	cr_expect_eq(produce(33, 200), 71);
	consume(4, 100);
	expect_empty();
}

/* Against a queue that knows what is in it and what is not yet NULL. */
Test(page_pool_ring, random_steps_are_those_of_a_queue)
{
	for (unsigned seed = 1; seed < 60; seed++) {
		uint32_t size = 1 + seed * 7 % 100, held = 0, pending = 0;
		uint32_t batch = size / 2 < 16 ? 1 : 16;
		uintptr_t next = 1, oldest = 1;

		srand(seed);
		ring_make(size);
		for (unsigned step = 0; step < 3000; step++) {
			if (rand() % 2) {
				cr_assert_eq(produce(next, 1),
					     held + pending < size, "seed %u",
					     seed);
				if (held + pending < size) {
					next++;
					held++;
				}
			} else if (held > 0) {
				consume(oldest, 1);
				held--;
				pending++;
				if (pending == batch || oldest % size == 0)
					pending = 0;
				oldest++;
			} else {
				expect_empty();
			}
		}
	}
}
