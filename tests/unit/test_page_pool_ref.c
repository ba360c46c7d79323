/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_pool_ref.c - users and references of a page, and a pool's counts.
 */
#include <criterion/criterion.h>

#include "../../lib/page_pool_ref.h"

#define ID 7u
#define LEFT_WITH(refs) ((uint64_t)PCPI_POOL_LEFT << PCPI_POOL_SHIFT | (refs))

static struct pcpi_pool_page page;

static void own(void)
{
	pcpi_pool_page_own(&page, pcpi_pool_word(ID));
}

TestSuite(page_pool_ref, .init = own);

Test(page_pool_ref, fresh_page_has_one_user_and_one_reference)
{
	cr_expect_eq(page.users, 1);
	cr_expect_eq(page.word, (UINT64_C(7) << 32) + 1);
	cr_expect_eq(pcpi_pool_word_id(page.word), ID);
	cr_expect_eq(pcpi_pool_word_refs(page.word), 1);
}

Test(page_pool_ref, bias_is_half_of_the_largest)
{
	cr_expect_eq(PCPI_POOL_BIAS, INT64_C(0x3fffffffffffffff));
}

Test(page_pool_ref, only_user_leaves_without_a_trace)
{
	cr_expect(pcpi_pool_page_unuse(&page, 1));
	cr_expect_eq(page.users, 1);
}

Test(page_pool_ref, parts_that_are_out_when_the_bias_goes_wait_for_the_last)
{
	pcpi_pool_page_bias(&page);
	cr_expect_not(pcpi_pool_page_unuse(&page, 1), "put before");
	cr_expect_eq(page.users, PCPI_POOL_BIAS - 1);
	cr_expect_not(pcpi_pool_page_unuse(&page, PCPI_POOL_BIAS - 3));
	cr_expect_eq(page.users, 2);
	cr_expect_not(pcpi_pool_page_unuse(&page, 1));
	cr_expect(pcpi_pool_page_unuse(&page, 1));
	cr_expect_eq(page.users, 1);
}

Test(page_pool_ref, bias_goes_last_and_the_page_is_alone)
{
	pcpi_pool_page_bias(&page);
	cr_expect_not(pcpi_pool_page_unuse(&page, 1));
	cr_expect_not(pcpi_pool_page_unuse(&page, 1));
	cr_expect(pcpi_pool_page_unuse(&page, PCPI_POOL_BIAS - 2));
	cr_expect_eq(page.users, 1);
}

Test(page_pool_ref, pool_goes_first_then_the_reference)
{
	cr_expect(pcpi_pool_page_ref(&page));
	cr_expect_eq(page.word, pcpi_pool_word(ID) + 1);
	cr_expect_not(pcpi_pool_page_leave(&page));
	cr_expect_eq(page.word, LEFT_WITH(1));
	cr_expect_eq(pcpi_pool_page_unref(&page), PCPI_POOL_ALONE);
	cr_expect_eq(page.word, 0);
	cr_expect_eq(pcpi_pool_page_unref(&page), PCPI_POOL_REFUSED);
	cr_expect_not(pcpi_pool_page_ref(&page));
}

Test(page_pool_ref, reference_goes_first_then_the_pool)
{
	pcpi_pool_page_ref(&page);
	cr_expect_eq(pcpi_pool_page_unref(&page), PCPI_POOL_SHARED);
	cr_expect_eq(pcpi_pool_page_unref(&page), PCPI_POOL_REFUSED,
		     "the pool's own");
	cr_expect_eq(page.word, pcpi_pool_word(ID));
	cr_expect(pcpi_pool_page_leave(&page));
	cr_expect_eq(page.word, 0);
}

Test(page_pool_ref, left_page_can_be_referenced_again)
{
	pcpi_pool_page_ref(&page);
	pcpi_pool_page_leave(&page);
	cr_expect(pcpi_pool_page_ref(&page));
	cr_expect_eq(page.word, LEFT_WITH(2));
	cr_expect_eq(pcpi_pool_page_unref(&page), PCPI_POOL_SHARED);
	cr_expect_eq(pcpi_pool_page_unref(&page), PCPI_POOL_ALONE);
}

Test(page_pool_ref, emergency_page_leaves_whole)
{
	pcpi_pool_page_own(&page, pcpi_pool_word(ID) | PCPI_POOL_EMERGENCY);
	cr_expect_neq(pcpi_pool_page_word(&page), pcpi_pool_word(ID));
	cr_expect_eq(pcpi_pool_word_id(page.word), ID);
	cr_expect(pcpi_pool_page_leave(&page));
	cr_expect_eq(page.word, 0);
}

Test(page_pool_ref, idle_page_gets_no_reference)
{
	page.word |= PCPI_POOL_IDLE;
	cr_expect_not(pcpi_pool_page_ref(&page));
}

Test(page_pool_ref, inflight_is_right_where_the_counters_ran_over)
{
	cr_expect_eq(pcpi_pool_inflight(0, 0), 0);
	cr_expect_eq(pcpi_pool_inflight(100, 36), 64);
	cr_expect_eq(pcpi_pool_inflight(5, UINT32_C(0xfffffffe)), 7);
	cr_expect_eq(pcpi_pool_inflight(UINT32_C(0x80000010),
					UINT32_C(0x7ffffff0)), 32);
	cr_expect_eq(pcpi_pool_inflight(1, 3), -2);
	cr_expect_eq(pcpi_pool_inflight(0, UINT32_MAX), 1);
}

Test(page_pool_ref, hold_that_runs_over_leaves_release_alone)
{
	struct pcpi_pool_count c = { UINT64_C(0xffffffe0fffffff0) };

	pcpi_pool_count_take(&c, 64);
	cr_expect_eq(pcpi_pool_count_held(c.word), 0x30);
	cr_expect_eq(pcpi_pool_count_gone(c.word), UINT32_C(0xffffffe0));
	cr_expect_eq(pcpi_pool_count_give(&c, 79), 1);
	cr_expect_eq(pcpi_pool_count_gone(c.word), 0x2f);
	cr_expect_eq(pcpi_pool_count_give(&c, 1), 0, "the last");
}
