/* SPDX-License-Identifier: BSD-2-Clause */
/* test_bits.c - powers of two, around each of them. */
#include <criterion/criterion.h>

#include "bits.h"

Test(bits, log2_of_and_around_each_power_is_its_exponent)
{
	cr_expect_eq(pcpi_log2(1), 0);
	for (unsigned k = 1; k < 64; k++) {
		uint64_t p = UINT64_C(1) << k;

		cr_expect_eq(pcpi_log2(p), k);
		cr_expect_eq(pcpi_log2(p - 1), k - 1);
		cr_expect_eq(pcpi_log2(p | 1), k);
	}
	cr_expect_eq(pcpi_log2(UINT64_MAX), 63);
}

Test(bits, is_pow2_holds_for_single_bits_only)
{
	cr_expect_not(pcpi_is_pow2(0));
	cr_expect(pcpi_is_pow2(1));
	cr_expect_not(pcpi_is_pow2(UINT64_MAX));
	for (unsigned k = 1; k < 64; k++) {
		cr_expect(pcpi_is_pow2(UINT64_C(1) << k));
		cr_expect_not(pcpi_is_pow2(UINT64_C(1) << k | 1));
	}
}

Test(bits, pow2_ceil_is_the_next_power)
{
	cr_expect_eq(pcpi_pow2_ceil(1), 1);
	cr_expect_eq(pcpi_pow2_ceil(3), 4);
	for (unsigned k = 2; k < 63; k++) {
		uint64_t p = UINT64_C(1) << k;

		cr_expect_eq(pcpi_pow2_ceil(p), p);
		cr_expect_eq(pcpi_pow2_ceil(p - 1), p);
		cr_expect_eq(pcpi_pow2_ceil(p + 1), p * 2);
	}
	cr_expect_eq(pcpi_pow2_ceil(UINT64_C(1) << 63), UINT64_C(1) << 63);
}

Test(bits, round_goes_to_the_multiple_on_either_side)
{
	for (unsigned k = 0; k < 40; k++) {
		uint64_t a = UINT64_C(1) << k, x = 5 * a;

		cr_expect_eq(pcpi_round_up(0, a), 0);
		cr_expect_eq(pcpi_round_up(x, a), x);
		cr_expect_eq(pcpi_round_down(x, a), x);
		cr_expect_eq(pcpi_round_up(x - a + 1, a), x - a + (k ? a : 1));
		cr_expect_eq(pcpi_round_down(x + a - 1, a), x);
	}
}

Test(bits, min_max_clamp_evaluate_once_and_nest)
{
	int calls = 0;

	cr_expect_eq(pcpi_min(++calls, 5), 1);
	cr_expect_eq(calls, 1);
	cr_expect_eq(pcpi_max(pcpi_min(3, 7), pcpi_min(2, 9)), 3);
	cr_expect_eq(pcpi_clamp(1, 4, 8), 4);
	cr_expect_eq(pcpi_clamp(9, 4, 8), 8);
	cr_expect_eq(pcpi_clamp(6, 4, 8), 6);
}
