/* SPDX-License-Identifier: BSD-2-Clause */
/* test_quarantine.c - freed blocks come back in the order in which they came, and
 * no sooner than they must.  Q1 of quarantine.h. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "quarantine.h"

#define PLENTY (UINT64_C(1) << 30)

static struct pcpi_quarantine *q;
static uint32_t out[64];

static void quarantine_make(void)
{
	size_t bytes = (pcpi_quarantine_bytes() + 63) / 64 * 64;

	q = aligned_alloc(64, bytes);
	cr_assert(q);
	memset(q, 0, bytes);
	pcpi_quarantine_init(q);
}

static void quarantine_end(void)
{
	pcpi_quarantine_fini(q);
	free(q);
}

TestSuite(quarantine, .init = quarantine_make, .fini = quarantine_end);

Test(quarantine, block_rests_until_so_many_others_have_come)
{
	for (unsigned o = 0; o <= PCPI_MAX_ORDER; o++) {
		for (uint32_t i = 0; i < PCPI_QUARANTINE_BLOCKS; i++)
			cr_assert_eq(pcpi_quarantine_put(q, o, i, PLENTY, out, 64), 0);
		for (uint32_t i = 0; i < 100; i++) {
			cr_assert_eq(pcpi_quarantine_put(q, o, 5000 + i, PLENTY,
							 out, 64), 1);
			cr_expect_eq(out[0], i, "order %u: %u", o, out[0]);
		}
	}
}

Test(quarantine, holds_an_eighth_of_the_memory)
{
	const uint64_t managed = 8 * 100;

	for (uint32_t i = 0; i < 100; i++)
		cr_assert_eq(pcpi_quarantine_put(q, 0, i, managed, out, 64), 0);
	cr_expect_eq(pcpi_quarantine_put(q, 0, 100, managed, out, 64), 1);
	cr_expect_eq(out[0], 0);
	cr_expect_eq(pcpi_quarantine_pages(q), 100);
}

Test(quarantine, block_that_is_too_large_does_not_rest)
{
	cr_expect_eq(pcpi_quarantine_put(q, 9, 512, 1024, out, 64), 1);
	cr_expect_eq(out[0], 512);
	cr_expect_eq(pcpi_quarantine_pages(q), 0);
}

Test(quarantine, memory_that_shrank_lets_more_go_at_once)
{
	for (uint32_t i = 0; i < 100; i++)
		pcpi_quarantine_put(q, 0, i, PLENTY, out, 64);
	cr_expect_eq(pcpi_quarantine_put(q, 0, 100, 8 * 80, out, 64), 21);
	for (uint32_t i = 0; i < 21; i++)
		cr_expect_eq(out[i], i);
	/* No more than the caller has room for. */
	cr_expect_eq(pcpi_quarantine_put(q, 0, 101, 8, out, 64), 63);
	cr_expect_eq(pcpi_quarantine_pages(q), 18);
}

Test(quarantine, shift_takes_all_and_pages_count_orders)
{
	pcpi_quarantine_put(q, 0, 1, PLENTY, out, 64);
	pcpi_quarantine_put(q, 3, 8, PLENTY, out, 64);
	pcpi_quarantine_put(q, 10, 1024, PLENTY, out, 64);
	cr_expect_eq(pcpi_quarantine_pages(q), 1 + 8 + 1024);
	cr_expect_eq(pcpi_quarantine_shift(q, 10, out, 64), 1);
	cr_expect_eq(out[0], 1024);
	cr_expect_eq(pcpi_quarantine_shift(q, 10, out, 64), 0);
	cr_expect_eq(pcpi_quarantine_pages(q), 9);
	cr_expect_eq(pcpi_quarantine_pages(NULL), 0);
}
