/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * convert.c - see convert.h.
 *
 * Both directions are a shift and an addition.  A pointer is checked by
 * rotating its offset right by the page shift: the bits below the page, which
 * must be 0, come to the top, so that one unsigned compare with the length of
 * the range refuses what is outside, before or not page-aligned.  The wide code
 * has no rotate and no unsigned compare; it collects the low bits and the signs
 * of the differences with both ends of the range, and looks at them at the end.
 */
#include "convert.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__x86_64__)

bool pcpi_convert_wide(void)
{
	return __builtin_cpu_supports("avx2");
}

__attribute__((target("avx2"))) uint32_t
pcpi_convert_to_addrs_wide(const struct pcpi_range *r, const uint32_t *pfns, void **out,
	      uint32_t n)
{
	__m256i base = _mm256_set1_epi64x((long long)(uintptr_t)r->base);
	__m128i shift = _mm_cvtsi32_si128((int)r->page_shift);
	uint32_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m128i lo = _mm_loadu_si128((const void *)(pfns + i));
		__m128i hi = _mm_loadu_si128((const void *)(pfns + i + 4));
		__m256i a = _mm256_sll_epi64(_mm256_cvtepu32_epi64(lo), shift);
		__m256i b = _mm256_sll_epi64(_mm256_cvtepu32_epi64(hi), shift);

		_mm256_storeu_si256((void *)(out + i), _mm256_add_epi64(a, base));
		_mm256_storeu_si256((void *)(out + i + 4),
				    _mm256_add_epi64(b, base));
	}
	return i;
}

__attribute__((target("avx2"))) uint32_t
pcpi_convert_to_pfns_wide(const struct pcpi_range *r, void *const *blocks, uint32_t *out,
	     uint32_t n, bool *ok)
{
	uint64_t start = (uint64_t)(uintptr_t)r->base +
			 ((uint64_t)r->first_pfn << r->page_shift);
	uint64_t bytes = (uint64_t)r->nr_pfns << r->page_shift;
	__m256i base = _mm256_set1_epi64x((long long)start);
	__m256i last = _mm256_set1_epi64x((long long)(start + bytes - 1));
	__m256i low_bits = _mm256_set1_epi64x((1ll << r->page_shift) - 1);
	__m256i sign = _mm256_set1_epi64x((long long)(UINT64_C(1) << 63));
	__m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
	__m256i first = _mm256_set1_epi32((int)r->first_pfn);
	__m128i shift = _mm_cvtsi32_si128((int)r->page_shift);
	__m256i outside = _mm256_setzero_si256(), unaligned = outside;
	uint32_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m256i pa = _mm256_loadu_si256((const void *)(blocks + i));
		__m256i pb = _mm256_loadu_si256((const void *)(blocks + i + 4));
		__m256i a = _mm256_sub_epi64(pa, base);
		__m256i b = _mm256_sub_epi64(pb, base);

		unaligned = _mm256_or_si256(unaligned, _mm256_or_si256(a, b));
		pa = _mm256_or_si256(a, _mm256_sub_epi64(last, pa));
		pb = _mm256_or_si256(b, _mm256_sub_epi64(last, pb));
		outside = _mm256_or_si256(outside, _mm256_or_si256(pa, pb));
		a = _mm256_permutevar8x32_epi32(_mm256_srl_epi64(a, shift), even);
		b = _mm256_permutevar8x32_epi32(_mm256_srl_epi64(b, shift), even);
		_mm256_storeu_si256((void *)(out + i),
				    _mm256_add_epi32(_mm256_blend_epi32(a, b, 0xf0),
						     first));
	}
	*ok = _mm256_testz_si256(outside, sign) &&
	      _mm256_testz_si256(unaligned, low_bits);
	return i;
}

/* Two indices a load, and each byte straight into a vector: half the
 * instructions of loading, comparing and merging it in a register. */
__attribute__((target("avx2"))) uint32_t
pcpi_convert_single_wide(const uint8_t *orders, const uint32_t *pfns, uint32_t n,
			 bool *ok)
{
	__m128i one = _mm_set1_epi8(1), all = _mm_set1_epi8(-1);
	uint32_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m128i v = _mm_setzero_si128();
		uint64_t p0, p1, p2, p3;

		memcpy(&p0, pfns + i, sizeof(p0));
		memcpy(&p1, pfns + i + 2, sizeof(p1));
		memcpy(&p2, pfns + i + 4, sizeof(p2));
		memcpy(&p3, pfns + i + 6, sizeof(p3));
		v = _mm_insert_epi8(v, orders[(uint32_t)p0], 0);
		v = _mm_insert_epi8(v, orders[p0 >> 32], 1);
		v = _mm_insert_epi8(v, orders[(uint32_t)p1], 2);
		v = _mm_insert_epi8(v, orders[p1 >> 32], 3);
		v = _mm_insert_epi8(v, orders[(uint32_t)p2], 4);
		v = _mm_insert_epi8(v, orders[p2 >> 32], 5);
		v = _mm_insert_epi8(v, orders[(uint32_t)p3], 6);
		v = _mm_insert_epi8(v, orders[p3 >> 32], 7);
		all = _mm_and_si128(all, _mm_cmpeq_epi8(v, one));
	}
	*ok = (_mm_movemask_epi8(all) & 0xff) == 0xff;
	return i;
}

#else

bool pcpi_convert_wide(void)
{
	return false;
}

/* Nobody calls these, but whoever asks first needs them to link. */
uint32_t pcpi_convert_to_addrs_wide(const struct pcpi_range *r,
				    const uint32_t *pfns, void **out, uint32_t n)
{
	(void)r, (void)pfns, (void)out, (void)n;
	return 0;
}

uint32_t pcpi_convert_to_pfns_wide(const struct pcpi_range *r,
				   void *const *blocks, uint32_t *out,
				   uint32_t n, bool *ok)
{
	(void)r, (void)blocks, (void)out, (void)n, (void)ok;
	return 0;
}

uint32_t pcpi_convert_single_wide(const uint8_t *orders, const uint32_t *pfns,
				  uint32_t n, bool *ok)
{
	(void)orders, (void)pfns, (void)n, (void)ok;
	return 0;
}

#endif
