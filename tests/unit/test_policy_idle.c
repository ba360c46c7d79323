/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_policy_idle.c - section F of the specification, its tick: when a store of
 * pages that nobody uses gives them back.
 */
#include <criterion/criterion.h>

#include "policy.h"

#define BATCH 63u

Test(policy_idle, pages_go_at_every_third_tick)
{
	static const uint32_t gives[] = {0, 0, 63, 0, 0, 63, 0, 0,
					 63, 0, 0, 11, 0, 0,  0};
	struct pcpi_idle idle = {0};
	uint32_t count = 200, n;

	for (unsigned tick = 0; tick < 15; tick++) {
		n = pcpi_policy_idle(&idle, tick == 0, count, BATCH);
		cr_expect_eq(n, gives[tick], "tick %u: %u", tick + 1, n);
		count -= n;
	}
	cr_expect_eq(count, 0);
}

Test(policy_idle, use_begins_the_count_again)
{
	struct pcpi_idle idle = {0};

	for (unsigned tick = 0; tick < 20; tick++)
		cr_expect_eq(pcpi_policy_idle(&idle, tick % 2 == 0, 200, BATCH),
			     0);
	for (unsigned tick = 0; tick < 20; tick++)
		cr_expect_eq(pcpi_policy_idle(&idle, true, 200, BATCH), 0);
	cr_expect_eq(pcpi_policy_idle(&idle, false, 200, BATCH), 0);
	cr_expect_eq(pcpi_policy_idle(&idle, false, 200, BATCH), BATCH);
}

Test(policy_idle, nothing_is_given_of_nothing)
{
	struct pcpi_idle idle = {0};

	for (unsigned tick = 0; tick < 10; tick++)
		cr_expect_eq(pcpi_policy_idle(&idle, tick == 0, 0, BATCH), 0);
	/* Pages that came without use of the store, as by a claim. */
	cr_expect_eq(pcpi_policy_idle(&idle, false, 5, BATCH), 0);
	cr_expect_eq(pcpi_policy_idle(&idle, false, 5, BATCH), 0);
	cr_expect_eq(pcpi_policy_idle(&idle, false, 5, BATCH), 5);
}
