/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The day of `fragment' (bench/pcpbench/day.h): the same for a seed, within its
 * bounds, and of the mixture that it says.
 */
#include <criterion/criterion.h>
#include <stdbool.h>

#include "day.h"

enum { BLOCKS = 100000 };

Test(day, same_seed_same_blocks)
{
	struct day a = day_begin(5), b = day_begin(5), c = day_begin(6);
	unsigned differ = 0;

	for (unsigned i = 0; i < 1000; i++) {
		struct day_block x = day_next(&a, i), y = day_next(&b, i);
		struct day_block z = day_next(&c, i);

		cr_assert_eq(x.order, y.order);
		cr_assert_eq(x.end, y.end);
		differ += x.order != z.order || x.end != z.end;
	}
	cr_assert_gt(differ, 500);
}

Test(day, load_goes_with_the_sun)
{
	cr_assert_eq(day_load(0, 16384), 6144);
	cr_assert_eq(day_load(DAY_STEPS / 2, 16384), 14336);
	cr_assert_eq(day_load(DAY_STEPS, 16384), 6144);
	for (unsigned step = 0; step < DAY_STEPS / 2; step++)
		cr_assert_leq(day_load(step, 16384), day_load(step + 1, 16384));
	for (unsigned step = 0; step <= DAY_STEPS; step++)
		cr_assert_eq(day_load(step, 16384),
			     day_load(DAY_STEPS - step, 16384));
}

static bool about(unsigned n, unsigned percent)
{
	unsigned want = BLOCKS / 100 * percent;

	return n > want * 9 / 10 && n < want * 11 / 10;
}

Test(day, mixture)
{
	unsigned order[DAY_ORDERS] = {0}, brief = 0, hours = 0, rest = 0;
	struct day d = day_begin(0);

	for (unsigned i = 0; i < BLOCKS; i++) {
		struct day_block b = day_next(&d, 100);

		cr_assert_lt(b.order, DAY_ORDERS);
		order[b.order]++;
		brief += b.end >= 105 && b.end <= 130;
		hours += b.end >= 160 && b.end <= 460;
		rest += b.end == DAY_STEPS;
	}
	cr_assert(about(order[0], 60) && about(order[1], 20) &&
		  about(order[2], 12) && about(order[3], 8));
	cr_assert(about(brief, 95) && about(hours, 4) && about(rest, 1));
	cr_assert_eq(brief + hours + rest, BLOCKS);
}

Test(day, nothing_ends_after_the_day)
{
	struct day d = day_begin(1);

	for (unsigned i = 0; i < BLOCKS; i++) {
		struct day_block b = day_next(&d, DAY_STEPS - 1);

		cr_assert_eq(b.end, DAY_STEPS);
	}
}
