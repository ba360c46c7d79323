/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buddy_bits.h - the blocks of 2^order ones in a word of 64 bits.  Part of the
 * module buddy, for buddy.c only; PURE.
 *
 * A block of order j is 2^j ones that begin at a multiple of 2^j; it is stood
 * for by its head, the bit at which it begins.  A bit need not be a page: from
 * order 6 on buddy.c works on a word that has a bit for each full word.
 *
 * Each function is a fixed, small number of operations without a branch on the
 * data, but for the loops over orders.  Proved by tests/model/model_buddy.c.
 */
#ifndef PCPI_BUDDY_BITS_H
#define PCPI_BUDDY_BITS_H

#include "base.h"

#define WORD_ORDER 6

/* The pages of a word at which a block of order j can start. */
static const uint64_t starts[WORD_ORDER + 1] = {
	UINT64_C(0xffffffffffffffff), UINT64_C(0x5555555555555555),
	UINT64_C(0x1111111111111111), UINT64_C(0x0101010101010101),
	UINT64_C(0x0001000100010001), UINT64_C(0x0000000100000001),
	UINT64_C(0x0000000000000001),
};

/* The bits of a block that starts at bit 0, by its order; from 6 on those that
 * it has in one word. */
static const uint64_t blocks[PCPI_MAX_ORDER + 2] = {
	UINT64_C(0x1),
	UINT64_C(0x3),
	UINT64_C(0xf),
	UINT64_C(0xff),
	UINT64_C(0xffff),
	UINT64_C(0xffffffff),
	UINT64_C(0xffffffffffffffff),
	UINT64_C(0xffffffffffffffff),
	UINT64_C(0xffffffffffffffff),
	UINT64_C(0xffffffffffffffff),
	UINT64_C(0xffffffffffffffff),
	UINT64_C(0xffffffffffffffff),
};

/* In plain operations, as the builtin is a call into libgcc on older CPUs. */
static inline uint32_t count_bits(uint64_t x)
{
	x -= (x >> 1) & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) +
	    ((x >> 2) & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (uint32_t)((x * UINT64_C(0x0101010101010101)) >> 56);
}

static inline unsigned lowest_bit(uint64_t x)
{
	return (unsigned)__builtin_ctzll(x);
}

/* n ones at the bottom; requires 1 <= n <= 64. */
static inline uint64_t low_bits(uint32_t n)
{
	return ~UINT64_C(0) >> (64u - n);
}

/* Heads of the free blocks of order j -> of those of order j + 1 <= 6. */
static inline uint64_t pair_up(uint64_t heads, unsigned j)
{
	return heads & (heads >> (1u << j)) & starts[j + 1];
}

/* Heads of blocks of order `to` -> heads of all blocks of order `from` that
 * they consist of. */
static inline uint64_t spread(uint64_t heads, unsigned from, unsigned to)
{
	for (unsigned j = from; j < to; j++)
		heads |= heads << (1u << j);
	return heads;
}

/* 1 + the largest order of a free block in the word, 0 when it is zero. */
static inline unsigned word_top(uint64_t x)
{
	unsigned j = 0;

	while (x != 0 && j < WORD_ORDER)
		x = pair_up(x, j++);
	return x != 0 ? j + 1 : j;
}

/* Chooses up to *left blocks of `order`, the lowest first, out of the free
 * blocks of order j; returns their heads. */
static inline uint64_t pick(uint64_t from, unsigned j, unsigned order,
			    uint32_t *left)
{
	uint32_t per = 1u << (j - order), all = count_bits(from) * per;
	uint64_t heads = 0;

	if (all <= *left) {
		*left -= all;
		return spread(from, order, j);
	}
	while (*left != 0) {
		uint32_t n = pcpi_min(per, *left);

		heads |= (starts[order] & low_bits(n << order))
			 << lowest_bit(from);
		from &= from - 1;
		*left -= n;
	}
	return heads;
}

#endif
