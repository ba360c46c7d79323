/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * convert_wide.h - the conversions of convert.h with AVX2, to be inlined where the
 * whole of a bulk move is compiled for it, and for BMI2 (bulk.h).  Layer 2.
 *
 * The bits of all offsets are collected, and looked at once, as those of one offset:
 * it is at least as large as each of them.  Where a range's length is no power of two
 * that may be outside and they are not.
 * Eight entries at a time; where their number is no multiple of eight the last
 * eight are done once more, which writes the same.
 *
 * Requires eight entries at least (n), and a processor for which
 * pcpi_convert_wide() says yes.
 */
#ifndef PCPI_CONVERT_WIDE_H
#define PCPI_CONVERT_WIDE_H

#if defined(__x86_64__)

#include <immintrin.h>

#include "convert.h"

#define PCPI_WIDE __attribute__((target("avx2,bmi2")))
#define PCPI_WIDE_INLINE                                                       \
	static inline __attribute__((always_inline, target("avx2,bmi2")))

PCPI_WIDE_INLINE void pcpi_wide_addrs_step(const uint32_t *pfns, void **out,
					   __m256i base, __m128i shift)
{
	__m128i lo = _mm_loadu_si128((const void *)pfns);
	__m128i hi = _mm_loadu_si128((const void *)(pfns + 4));
	__m256i a = _mm256_sll_epi64(_mm256_cvtepu32_epi64(lo), shift);
	__m256i b = _mm256_sll_epi64(_mm256_cvtepu32_epi64(hi), shift);

	_mm256_storeu_si256((void *)out, _mm256_add_epi64(a, base));
	_mm256_storeu_si256((void *)(out + 4), _mm256_add_epi64(b, base));
}

PCPI_WIDE_INLINE void pcpi_wide_to_addrs(const struct pcpi_range *r,
					 const uint32_t *pfns, void **out,
					 uint32_t n)
{
	__m256i base = _mm256_set1_epi64x((long long)(uintptr_t)r->base);
	__m128i shift = _mm_cvtsi32_si128((int)r->page_shift);
	size_t i = 0;

	do {
		pcpi_wide_addrs_step(pfns + i, out + i, base, shift);
		i += PCPI_WIDE_STEP;
	} while (i + PCPI_WIDE_STEP <= n);
	if (pcpi_unlikely(n % PCPI_WIDE_STEP))
		pcpi_wide_addrs_step(pfns + n - PCPI_WIDE_STEP,
				     out + n - PCPI_WIDE_STEP, base, shift);
}

/* Four addresses to four offsets from the range's start. */
PCPI_WIDE_INLINE __m256i pcpi_wide_offsets(void *const *blocks, __m256i start)
{
	return _mm256_sub_epi64(_mm256_loadu_si256((const void *)blocks), start);
}

/* The low halves of eight numbers of 64 bits, in order. */
PCPI_WIDE_INLINE __m256i pcpi_wide_halves(__m256i a, __m256i b)
{
	/* a0 a1 b0 b1 a2 a3 b2 b3 */
	__m256 low = _mm256_shuffle_ps(_mm256_castsi256_ps(a),
				       _mm256_castsi256_ps(b), 0x88);

	return _mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xd8);
}

/* Eight addresses to indices.  Returns the bits of their offsets, together. */
PCPI_WIDE_INLINE __m256i pcpi_wide_pfns_step(void *const *blocks, uint32_t *out,
					     __m256i start, __m256i first,
					     __m128i shift)
{
	__m256i a = pcpi_wide_offsets(blocks, start);
	__m256i b = pcpi_wide_offsets(blocks + 4, start);
	__m256i pfns = pcpi_wide_halves(_mm256_srl_epi64(a, shift),
					_mm256_srl_epi64(b, shift));

	_mm256_storeu_si256((void *)out, _mm256_add_epi32(pfns, first));
	return _mm256_or_si256(a, b);
}

/* The bits of four numbers, together. */
PCPI_WIDE_INLINE uint64_t pcpi_wide_or(__m256i v)
{
	__m128i two = _mm_or_si128(_mm256_castsi256_si128(v),
				   _mm256_extracti128_si256(v, 1));

	return (uint64_t)_mm_cvtsi128_si64(
		_mm_or_si128(two, _mm_unpackhi_epi64(two, two)));
}

/* False also where all are inside and their bits together are not, for which there
 * is pcpi_convert_to_pfns(). */
PCPI_WIDE_INLINE bool pcpi_wide_to_pfns(const struct pcpi_range *r,
					void *const *blocks, uint32_t *out,
					uint32_t n)
{
	__m256i start = _mm256_set1_epi64x((long long)(uintptr_t)r->start);
	__m256i first = _mm256_set1_epi32((int)r->first_pfn);
	__m128i shift = _mm_cvtsi32_si128((int)r->page_shift);
	__m256i bits = _mm256_setzero_si256();
	size_t i = 0;
	uint64_t off;

	do {
		bits = _mm256_or_si256(bits, pcpi_wide_pfns_step(
			blocks + i, out + i, start, first, shift));
		i += PCPI_WIDE_STEP;
	} while (i + PCPI_WIDE_STEP <= n);
	if (pcpi_unlikely(n % PCPI_WIDE_STEP)) {
		i = n - PCPI_WIDE_STEP;
		bits = _mm256_or_si256(bits, pcpi_wide_pfns_step(
			blocks + i, out + i, start, first, shift));
	}
	off = pcpi_wide_or(bits);
	return pcpi_range_page(r, off) < r->nr_pfns;
}

#endif

#endif
