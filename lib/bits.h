/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bits.h - powers of two.  Layer 0, pure.  Proved by tests/unit/test_bits.c.
 */
#ifndef PCPI_BITS_H
#define PCPI_BITS_H

#include "base.h"

/* floor(log2(x)); requires x > 0. */
static inline unsigned pcpi_log2(uint64_t x)
{
	return 63u - (unsigned)__builtin_clzll(x);
}

static inline bool pcpi_is_pow2(uint64_t x)
{
	return x != 0 && (x & (x - 1)) == 0;
}

/* The smallest power of two >= x; requires 0 < x <= 2^63. */
static inline uint64_t pcpi_pow2_ceil(uint64_t x)
{
	return pcpi_is_pow2(x) ? x : UINT64_C(2) << pcpi_log2(x);
}

/* x rounded to a multiple of a; requires a to be a power of two. */
static inline uint64_t pcpi_round_up(uint64_t x, uint64_t a)
{
	return (x + a - 1) & ~(a - 1);
}

static inline uint64_t pcpi_round_down(uint64_t x, uint64_t a)
{
	return x & ~(a - 1);
}

#endif
