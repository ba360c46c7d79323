/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * convert_wide.h - the conversions of convert.h with AVX2, to be inlined where the
 * whole of a bulk move is compiled for it (bulk.h).  Layer 2.
 *
 * The wide code has no rotate and no unsigned compare: it collects the low bits
 * and the signs of the differences with both ends of the range, and looks at them
 * at the end.  Eight entries at a time; where their number is no multiple of eight
 * the last eight are done once more, which writes the same.
 *
 * Requires eight entries at least (n), and a processor for which
 * pcpi_convert_wide() says yes.
 */
#ifndef PCPI_CONVERT_WIDE_H
#define PCPI_CONVERT_WIDE_H

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "convert.h"

#define PCPI_WIDE __attribute__((target("avx2")))
#define PCPI_WIDE_INLINE                                                       \
	static inline __attribute__((always_inline, target("avx2")))

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

/* What the indices are computed from, and what all entries have shown so far. */
struct pcpi_wide_pfns {
	__m256i from, last, first;
	__m128i shift;
	__m256i outside;   /* sign bits */
	__m256i unaligned; /* bits below the page */
};

/* Four addresses to four offsets from the range's start. */
PCPI_WIDE_INLINE __m256i pcpi_wide_offsets(void *const *blocks,
					   struct pcpi_wide_pfns *w)
{
	__m256i p = _mm256_loadu_si256((const void *)blocks);
	__m256i off = _mm256_sub_epi64(p, w->from);

	w->unaligned = _mm256_or_si256(w->unaligned, off);
	p = _mm256_or_si256(off, _mm256_sub_epi64(w->last, p));
	w->outside = _mm256_or_si256(w->outside, p);
	return off;
}

PCPI_WIDE_INLINE void pcpi_wide_pfns_step(void *const *blocks, uint32_t *out,
					  struct pcpi_wide_pfns *w)
{
	__m256i a = _mm256_srl_epi64(pcpi_wide_offsets(blocks, w), w->shift);
	__m256i b = _mm256_srl_epi64(pcpi_wide_offsets(blocks + 4, w), w->shift);
	/* The low halves: a0 a1 b0 b1 a2 a3 b2 b3, then in order. */
	__m256 low = _mm256_shuffle_ps(_mm256_castsi256_ps(a),
				       _mm256_castsi256_ps(b), 0x88);
	__m256i pfns = _mm256_permute4x64_epi64(_mm256_castps_si256(low), 0xd8);

	_mm256_storeu_si256((void *)out, _mm256_add_epi32(pfns, w->first));
}

PCPI_WIDE_INLINE bool pcpi_wide_to_pfns(const struct pcpi_range *r,
					void *const *blocks, uint32_t *out,
					uint32_t n)
{
	uint64_t from = (uint64_t)(uintptr_t)r->base +
			((uint64_t)r->first_pfn << r->page_shift);
	uint64_t bytes = (uint64_t)r->nr_pfns << r->page_shift;
	__m256i low_bits = _mm256_set1_epi64x((1ll << r->page_shift) - 1);
	struct pcpi_wide_pfns w = {
		.from = _mm256_set1_epi64x((long long)from),
		.last = _mm256_set1_epi64x((long long)(from + bytes - 1)),
		.first = _mm256_set1_epi32((int)r->first_pfn),
		.shift = _mm_cvtsi32_si128((int)r->page_shift),
		.outside = _mm256_setzero_si256(),
		.unaligned = _mm256_setzero_si256(),
	};
	size_t i = 0;

	do {
		pcpi_wide_pfns_step(blocks + i, out + i, &w);
		i += PCPI_WIDE_STEP;
	} while (i + PCPI_WIDE_STEP <= n);
	if (pcpi_unlikely(n % PCPI_WIDE_STEP))
		pcpi_wide_pfns_step(blocks + n - PCPI_WIDE_STEP,
				    out + n - PCPI_WIDE_STEP, &w);
	return !_mm256_movemask_pd(_mm256_castsi256_pd(w.outside)) &&
	       _mm256_testz_si256(w.unaligned, low_bits);
}

/* (The intrinsic is a macro in a build without optimization.) */
#define PCPI_WIDE_BYTE(pfn) ((char)orders[pfn])

/* Two indices a load, and each byte straight into a vector: half the
 * instructions of loading, comparing and merging it in a register.  (A gather
 * takes twice the time.) */
PCPI_WIDE_INLINE __m128i pcpi_wide_bytes(const uint8_t *orders,
					 const uint32_t *pfns)
{
	__m128i v = _mm_setzero_si128();
	uint64_t p0, p1, p2, p3;

	memcpy(&p0, pfns, sizeof(p0));
	memcpy(&p1, pfns + 2, sizeof(p1));
	memcpy(&p2, pfns + 4, sizeof(p2));
	memcpy(&p3, pfns + 6, sizeof(p3));
	v = _mm_insert_epi8(v, PCPI_WIDE_BYTE((uint32_t)p0), 0);
	v = _mm_insert_epi8(v, PCPI_WIDE_BYTE(p0 >> 32), 1);
	v = _mm_insert_epi8(v, PCPI_WIDE_BYTE((uint32_t)p1), 2);
	v = _mm_insert_epi8(v, PCPI_WIDE_BYTE(p1 >> 32), 3);
	v = _mm_insert_epi8(v, PCPI_WIDE_BYTE((uint32_t)p2), 4);
	v = _mm_insert_epi8(v, PCPI_WIDE_BYTE(p2 >> 32), 5);
	v = _mm_insert_epi8(v, PCPI_WIDE_BYTE((uint32_t)p3), 6);
	return _mm_insert_epi8(v, PCPI_WIDE_BYTE(p3 >> 32), 7);
}

PCPI_WIDE_INLINE bool pcpi_wide_single(const uint8_t *orders,
				       const uint32_t *pfns, uint32_t n)
{
	__m128i one = _mm_set1_epi8(1), other = _mm_setzero_si128();
	size_t i = 0;

	do {
		other = _mm_or_si128(other, _mm_xor_si128(
			pcpi_wide_bytes(orders, pfns + i), one));
		i += PCPI_WIDE_STEP;
	} while (i + PCPI_WIDE_STEP <= n);
	if (pcpi_unlikely(n % PCPI_WIDE_STEP))
		other = _mm_or_si128(other, _mm_xor_si128(
			pcpi_wide_bytes(orders, pfns + n - PCPI_WIDE_STEP), one));
	return _mm_cvtsi128_si64(other) == 0;
}

#endif

#endif
