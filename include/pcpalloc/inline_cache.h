/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inline_cache.h - what inline.h knows of the inside of the library, and how it asks
 * for it.  Not for programs.
 *
 * It is frozen: a change is a new version.
 */
#ifndef PCPALLOC_INLINE_CACHE_H
#define PCPALLOC_INLINE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pcpa_heap;

/* A test may ask for another, to see the calls. */
#ifndef PCPA_INLINE_VERSION
#define PCPA_INLINE_VERSION 2u
#endif

#define PCPA_INLINE_ORDERS 4u

/* More blocks at once are a call. */
#define PCPA_INLINE_BULK 256u

/* One order's blocks, as page indices: slots[tail & mask] to
 * slots[(head - 1) & mask], of which the last goes out first. */
struct pcpa_inline_list {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	uint32_t tail, head;
#else
	uint32_t head, tail;
#endif
	uint32_t mask;
	uint32_t limit; /* frees that would bring it to this length are calls */
	uint32_t *slots;
	uint64_t allocs; /* see inline.h, pcpa_inline_count_() */
};

/* The first lines of a thread's cache, for the functions of inline.h only. */
struct pcpa_inline_cache {
	uint8_t busy;  /* the mark: the owner is inside */
	uint8_t claim; /* not 0: it must not be */
	uint8_t reserved[6];
	void *front; /* one block of order 0 as an address; NULL; or 1: off */
	uint64_t first, pages; /* page indices of the cache's node */
	struct pcpa_inline_list list[PCPA_INLINE_ORDERS];
	char *base;  /* address of page index 0 */
	char *start; /* address of page index `first` */
	const uint8_t *orders; /* [pages] order + 1 where a block begins */
	uint32_t page_shift;
	uint32_t wide; /* the processor has AVX2 and BMI2 */
};

/*
 * For pcpa_cache_self(): the calling thread's cache of the heap and its node,
 * made at need.  NULL, with nothing done, where version or bytes are not the
 * library's, without a heap, and in a forked child of one without
 * PCPA_HEAP_COW; NULL also where a cache can't be made: memory is short, the
 * thread is past its end, or the caller is a signal handler that interrupted
 * the library before its thread had one.  Leaves errno alone.
 * Cost: as a thread's first call; else some 20 ns.
 */
struct pcpa_inline_cache *pcpa_inline_bind(struct pcpa_heap *heap,
					   unsigned version, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
