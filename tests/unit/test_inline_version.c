/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_inline_version.c - a program whose pcpalloc/inline.h is not the library's:
 * everything works, by calls.
 */
#define PCPA_INLINE_VERSION 4711u
#include <pcpalloc/inline.h>

#include "../support/heap_fixture.h"
#include "heap.h"

#define N 100u

Test(inline_version, other_version_makes_calls)
{
	struct pcpa_heap *heap = heap_fixed(8 * MIB, 0);
	struct pcpa_cache cache = pcpa_cache_self(heap);
	void *blocks[N], *one;

	cr_expect_not(pcpa_cache_is_inline(&cache));
	one = pcpa_cache_alloc(&cache, 2, 0);
	cr_assert_not_null(one);
	cr_assert_eq(pcpa_cache_alloc_bulk(&cache, 0, 0, blocks, N), N);
	cr_expect_eq(stats_of(heap, -1).used_blocks, N + 1);
	pcpa_cache_free(&cache, blocks[0]);
	pcpa_cache_free_sized(&cache, blocks[1], 0);
	pcpa_cache_free_bulk(&cache, blocks + 2, 20);
	pcpa_cache_free_bulk_sized(&cache, 0, blocks + 22, N - 22);
	pcpa_cache_free(&cache, (char *)one + 4096);
	cr_expect_eq(stats_of(heap, -1).bad_frees, 1);
	pcpa_cache_free(&cache, one);
	expect_all_free(heap);
	heap_end(heap);
}

Test(inline_version, no_heap_fails_as_the_calls_do)
{
	struct pcpa_cache cache = pcpa_cache_self(NULL);

	errno = 0;
	cr_expect_null(pcpa_cache_alloc(&cache, 0, 0));
	cr_expect_eq(errno, EINVAL);
	pcpa_cache_free(&cache, &cache);
}
