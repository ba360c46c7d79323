/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * convert.c - see convert.h.
 *
 * Both directions are a shift and an addition.  A pointer is checked by
 * rotating its offset right by the page shift: the bits below the page, which
 * must be 0, come to the top, so that one unsigned compare with the length of
 * the range refuses what is outside, before or not page-aligned.  The wide code
 * has no rotate and no unsigned compare; it collects the low bits and the
 * signs of two differences, and looks at them once at the end.
 */
#include "convert.h"

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

/* The bits that are set in a bad offset: below the page, or the sign of
 * (off - start) or of (last - off). */
__attribute__((target("avx2"), always_inline)) static inline __m256i
offset_faults(__m256i off, __m256i start, __m256i last, __m256i low_bits,
	      __m256i sign)
{
	__m256i outside = _mm256_or_si256(_mm256_sub_epi64(off, start),
					  _mm256_sub_epi64(last, off));

	return _mm256_or_si256(_mm256_and_si256(off, low_bits),
			       _mm256_and_si256(outside, sign));
}

__attribute__((target("avx2"))) uint32_t
pcpi_convert_to_pfns_wide(const struct pcpi_range *r, void *const *blocks, uint32_t *out,
	     uint32_t n, bool *ok)
{
	long long first = (long long)((uint64_t)r->first_pfn << r->page_shift);
	long long bytes = (long long)((uint64_t)r->nr_pfns << r->page_shift);
	__m256i base = _mm256_set1_epi64x((long long)(uintptr_t)r->base);
	__m256i start = _mm256_set1_epi64x(first);
	__m256i last = _mm256_set1_epi64x(first + bytes - 1);
	__m256i low_bits = _mm256_set1_epi64x((1ll << r->page_shift) - 1);
	__m256i sign = _mm256_set1_epi64x((long long)(UINT64_C(1) << 63));
	__m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
	__m128i shift = _mm_cvtsi32_si128((int)r->page_shift);
	__m256i bad = _mm256_setzero_si256();
	uint32_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		__m256i a = _mm256_sub_epi64(
			_mm256_loadu_si256((const void *)(blocks + i)), base);
		__m256i b = _mm256_sub_epi64(
			_mm256_loadu_si256((const void *)(blocks + i + 4)), base);
		__m256i pa, pb;

		bad = _mm256_or_si256(
			bad, offset_faults(a, start, last, low_bits, sign));
		bad = _mm256_or_si256(
			bad, offset_faults(b, start, last, low_bits, sign));
		pa = _mm256_permutevar8x32_epi32(_mm256_srl_epi64(a, shift), even);
		pb = _mm256_permutevar8x32_epi32(_mm256_srl_epi64(b, shift), even);
		_mm256_storeu_si256((void *)(out + i),
				    _mm256_blend_epi32(pa, pb, 0xf0));
	}
	*ok = _mm256_testz_si256(bad, bad);
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

#endif
