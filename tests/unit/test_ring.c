/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ring.c - both ends of a ring, wrap-around, and random operations against
 * a naive deque.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "../support/core_fixture.h"
#include "ring.h"

#define CAPACITY 16u

static uint32_t slots[CAPACITY];
static struct pcpi_ring ring;

static void setup(void)
{
	pcpi_ring_init(&ring, slots, CAPACITY);
}

TestSuite(ring, .init = setup);

static void expect_entries(const uint32_t *got, const uint32_t *want, uint32_t n)
{
	cr_expect_arr_eq(got, want, n * sizeof(*got));
}

Test(ring, fresh_is_empty_with_all_its_room)
{
	cr_expect_eq(pcpi_ring_len(&ring), 0);
	cr_expect_eq(pcpi_ring_len_racy(&ring), 0);
	cr_expect_eq(pcpi_ring_room(&ring), CAPACITY);
	cr_expect_eq(ring.limit, CAPACITY);
}

Test(ring, pop_gives_the_hottest_last)
{
	static const uint32_t in[] = {1, 2, 3, 4}, hot[] = {3, 4};
	uint32_t out[2];

	pcpi_ring_push(&ring, in, 4);
	pcpi_ring_pop(&ring, out, 2);
	expect_entries(out, hot, 2);
	cr_expect_eq(pcpi_ring_len(&ring), 2);
}

Test(ring, shift_gives_the_oldest_first)
{
	static const uint32_t in[] = {1, 2, 3, 4}, cold[] = {1, 2, 3};
	uint32_t out[3];

	pcpi_ring_push(&ring, in, 4);
	pcpi_ring_shift(&ring, out, 3);
	expect_entries(out, cold, 3);
	cr_expect_eq(pcpi_ring_len(&ring), 1);
}

Test(ring, append_cold_on_empty_pops_in_the_order_given)
{
	static const uint32_t in[] = {10, 11, 12};
	uint32_t out;

	pcpi_ring_append_cold(&ring, in, 3);
	for (uint32_t i = 0; i < 3; i++) {
		pcpi_ring_pop(&ring, &out, 1);
		cr_expect_eq(out, in[i]);
	}
}

Test(ring, append_cold_goes_below_what_is_there)
{
	static const uint32_t old[] = {1, 2}, in[] = {10, 11};
	static const uint32_t want[] = {2, 1, 10, 11};
	uint32_t out;

	pcpi_ring_push(&ring, old, 2);
	pcpi_ring_append_cold(&ring, in, 2);
	for (uint32_t i = 0; i < 4; i++) {
		pcpi_ring_pop(&ring, &out, 1);
		cr_expect_eq(out, want[i]);
	}
}

Test(ring, settle_on_empty_goes_back_to_the_middle)
{
	static const uint32_t in[] = {1, 2, 3};
	uint32_t middle = (ring.mask + 1) / 2, out[3];
	uint64_t rest = (uint64_t)middle << 32 | middle;

	pcpi_ring_push(&ring, in, 3);
	pcpi_ring_shift(&ring, out, 2);
	cr_expect_eq(ring.tail, middle + 2, "not while there is something left");
	pcpi_ring_shift(&ring, out, 1);
	cr_expect_eq(ring.ends, rest);
	pcpi_ring_push(&ring, in, 3);
	pcpi_ring_pop(&ring, out, 3);
	cr_expect_eq(ring.ends, rest);
	pcpi_ring_append_cold(&ring, in, 1);
	pcpi_ring_pop(&ring, out, 1);
	cr_expect_eq(ring.ends, rest);
}

Test(ring, full_ring_holds_its_capacity)
{
	uint32_t in[CAPACITY], out[CAPACITY];

	for (uint32_t i = 0; i < CAPACITY; i++)
		in[i] = 100 + i;
	pcpi_ring_push(&ring, in, CAPACITY);
	cr_expect_eq(pcpi_ring_room(&ring), 0);
	cr_expect_eq(pcpi_ring_len_racy(&ring), CAPACITY);
	pcpi_ring_pop(&ring, out, CAPACITY);
	expect_entries(out, in, CAPACITY);
}

/* head and tail pass 2^32 on the way. */
Test(ring, ends_wrap_around_32_bits)
{
	static const uint32_t in[] = {7, 8, 9, 10, 11};
	uint32_t out[5];

	pcpi_ring_commit(&ring, UINT32_MAX - 1, UINT32_MAX - 1);
	pcpi_ring_push(&ring, in, 5);
	cr_expect_eq(ring.head, 3);
	cr_expect_eq(pcpi_ring_len(&ring), 5);
	cr_expect_eq(pcpi_ring_len_racy(&ring), 5);
	pcpi_ring_shift(&ring, out, 5);
	expect_entries(out, in, 5);
}

Test(ring, run_ends_at_the_last_slot)
{
	uint32_t run;

	cr_expect_eq(pcpi_ring_run(&ring, CAPACITY - 3, 8, &run),
		     slots + CAPACITY - 3);
	cr_expect_eq(run, 3);
	cr_expect_eq(pcpi_ring_run(&ring, CAPACITY + 2, 8, &run), slots + 2);
	cr_expect_eq(run, 8);
}

/* ---- Against a deque that moves everything ------------------------------- */

struct deque {
	uint32_t at[CAPACITY]; /* coldest first */
	uint32_t len;
};

static void deque_insert(struct deque *d, uint32_t where, const uint32_t *v,
			 uint32_t n)
{
	memmove(d->at + where + n, d->at + where, (d->len - where) * sizeof(*v));
	memcpy(d->at + where, v, n * sizeof(*v));
	d->len += n;
}

static void deque_remove(struct deque *d, uint32_t where, uint32_t *v,
			 uint32_t n)
{
	memcpy(v, d->at + where, n * sizeof(*v));
	d->len -= n;
	memmove(d->at + where, d->at + where + n, (d->len - where) * sizeof(*v));
}

static void step_in(struct deque *d, uint64_t *seed, bool hot)
{
	static uint32_t next;
	uint32_t in[CAPACITY], turned[CAPACITY];
	uint32_t n = (uint32_t)(parts_random(seed) % (CAPACITY - d->len + 1));

	for (uint32_t i = 0; i < n; i++)
		in[i] = next++;
	for (uint32_t i = 0; i < n; i++)
		turned[i] = in[n - 1 - i];
	if (hot) {
		pcpi_ring_push(&ring, in, n);
		deque_insert(d, d->len, in, n);
	} else {
		pcpi_ring_append_cold(&ring, in, n);
		deque_insert(d, 0, turned, n);
	}
}

static void step_out(struct deque *d, uint64_t *seed, bool hot)
{
	uint32_t got[CAPACITY], want[CAPACITY];
	uint32_t n = (uint32_t)(parts_random(seed) % (d->len + 1));

	if (hot)
		pcpi_ring_pop(&ring, got, n);
	else
		pcpi_ring_shift(&ring, got, n);
	deque_remove(d, hot ? d->len - n : 0, want, n);
	cr_assert_arr_eq(got, want, n * sizeof(*got));
}

Test(ring, random_operations_agree_with_a_deque)
{
	uint64_t seed = parts_seed();
	struct deque d = {.len = 0};

	pcpi_ring_commit(&ring, UINT32_MAX - 40, UINT32_MAX - 40);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t op = parts_random(&seed) >> 20;

		if (op & 1)
			step_in(&d, &seed, op & 2);
		else
			step_out(&d, &seed, op & 2);
		cr_assert_eq(pcpi_ring_len(&ring), d.len, "step %u", i);
		cr_assert_eq(pcpi_ring_len_racy(&ring), d.len);
		cr_assert_eq(pcpi_ring_room(&ring), CAPACITY - d.len); /* R1 */
	}
}
