/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inline.h - the hits of a thread's cache, compiled into the program.  Opt-in:
 * nothing else of the interface needs it.
 *
 *     struct pcpa_cache cache = pcpa_cache_self(heap);    once a thread
 *
 *     void *block = pcpa_cache_alloc(&cache, 0, 0);
 *     pcpa_cache_free(&cache, block);
 *
 * Each call means what the one of pcpalloc.h with `heap` instead of `cache`
 * means, errors, errno and statistics included, and makes that call where it
 * can't be served here: the list is empty, or at the length at which the
 * library looks at it; the block is none of the cache's node; somebody drains
 * the cache or has disabled it; a signal handler interrupted its thread here;
 * the heap is watched (PCPA_HEAP_CHECKS), or the kernel refuses membarrier; or
 * the library has another struct (below).  What was allocated one way may be
 * freed the other.
 *
 * A handle belongs to the thread that made it, until the thread ends or the
 * heap is destroyed; it must not be given to another thread.  It is a value,
 * which may be copied and made anew at any time.  Keep it in a local variable
 * of the loop that uses it, where its pointer stays in a register: a pair took
 * 1.7 ns so, and 2.4 where it was read from memory each time.  Destructors of
 * thread-specific data make calls instead.  Signal handlers may use their
 * thread's.  In a fork's child the handle of the thread that forked does as the
 * calls do.  A thread that moves to another node follows as with calls, and makes
 * a new one: the old is calls, until the thread is back.  Where NDEBUG is not defined, and either
 * PCPA_INLINE_DEBUG is or the compiler doesn't optimize, each use asserts that
 * the caller is the owner.
 *
 * struct pcpa_inline_cache (inline_cache.h) is all that a program knows of the
 * inside of the library.  pcpa_cache_self() asks for it by version and size, and a
 * library with another one has the program make calls.
 *
 * Cost: a hit has no lock or atomic read-modify-write, and no call but with every
 * 4,096th allocation, to see on which node the thread is; an alloc is some
 * 16 instructions of x86-64, a free some 20.  In bulk AVX2 is used where the
 * program is compiled for it, and else in functions of their own if the
 * processor has it, and BMI2.  Frees of 64 and more at once that aren't told the
 * order are faster as calls.  gcc 9 or clang 11 and later; C99, C++98.
 */
#ifndef PCPALLOC_INLINE_H
#define PCPALLOC_INLINE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#if !defined(NDEBUG) && (defined(PCPA_INLINE_DEBUG) || !defined(__OPTIMIZE__))
#define PCPA_INLINE_OWNER 1
#include <assert.h>
#else
#define PCPA_INLINE_OWNER 0
#endif

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <pcpalloc/inline_cache.h>
#include <pcpalloc/pcpalloc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A handle; its fields are not for programs. */
struct pcpa_cache {
	struct pcpa_heap *heap;
	struct pcpa_inline_cache *inside;
	const void *thread; /* an address that no other thread has */
};

/* ---- Inside -------------------------------------------------------------- */

#define PCPA_INLINE static inline __attribute__((always_inline, unused))
#define pcpa_inline_likely_(x) (__builtin_expect((x) ? 1 : 0, 1) != 0)
#define pcpa_inline_unlikely_(x) (__builtin_expect((x) ? 1 : 0, 0) != 0)

/* AVX2 where the program is compiled for it, inlined; else in functions of their
 * own, if the library has found that the processor has it. */
#if defined(__AVX2__)
#define PCPA_INLINE_TARGET
#define PCPA_INLINE_WIDE PCPA_INLINE
#else
#define PCPA_INLINE_TARGET __attribute__((target("avx2")))
#define PCPA_INLINE_WIDE                                                       \
	static __attribute__((noinline, unused)) PCPA_INLINE_TARGET
#endif

#if defined(__SANITIZE_THREAD__)
#define PCPA_INLINE_TSAN 1
#elif defined(__has_feature)
#define PCPA_INLINE_TSAN __has_feature(thread_sanitizer)
#else
#define PCPA_INLINE_TSAN 0
#endif

/* A block's byte of orders[].  It is its holder's, and so a plain load does; only
 * the free of a block that somebody else has would race. */
PCPA_INLINE unsigned pcpa_inline_order_(const uint8_t *order)
{
#if PCPA_INLINE_TSAN
	return __atomic_load_n(order, __ATOMIC_RELAXED);
#else
	return *order;
#endif
}

/* What a handle without a cache has: always busy, of no pages. */
static const struct pcpa_inline_cache pcpa_inline_none_
	__attribute__((unused)) = {
		1, 0, {0, 0, 0, 0, 0, 0}, 0, 0, 0,
		{{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0},
		 {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}},
		0, 0, 0, 0, 0};

/* The handle's cache. */
PCPA_INLINE struct pcpa_inline_cache *pcpa_inline_of_(const struct pcpa_cache *c)
{
#if PCPA_INLINE_OWNER
	assert(c->thread == (const void *)&errno && "another thread's pcpa_cache");
#endif
	return c->inside;
}

/*
 * The mark and the claim: docs/memory-order.md of the library has the proof.  Sets
 * the mark; 0: the call must be made, and nothing has changed.  Only this thread
 * writes `busy`: set means that we are a signal handler that interrupted it inside.
 * The store is ordered before the load by who claims, who has every processor
 * pass a barrier in between; the acquire pairs with the end of a claim.
 */
PCPA_INLINE int pcpa_inline_enter_(struct pcpa_inline_cache *in)
{
	if (pcpa_inline_unlikely_(in->busy))
		return 0;
	__atomic_store_n(&in->busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (pcpa_inline_likely_(
		    __atomic_load_n(&in->claim, __ATOMIC_ACQUIRE) == 0))
		return 1;
	__atomic_store_n(&in->busy, 0, __ATOMIC_RELEASE);
	return 0;
}

/* The release pairs with who waits for the mark. */
PCPA_INLINE void pcpa_inline_leave_(struct pcpa_inline_cache *in)
{
	__atomic_store_n(&in->busy, 0, __ATOMIC_RELEASE);
}

#define PCPA_INLINE_ALLOCS_SHIFT_ 51

typedef uint32_t pcpa_inline_half_ __attribute__((may_alias));

/*
 * After n blocks have left, or statistics would show too many.  The mark is set, so
 * nobody else counts; a plain addition is one instruction, an atomic one isn't.
 * Not 0: it is time to see on which node the thread is, pcpa_inline_look_().  The
 * highest bit comes with every 4,096 allocations, and is counted in the lowest.
 */
PCPA_INLINE int pcpa_inline_count_(struct pcpa_inline_list *list, uint32_t n)
{
	pcpa_inline_half_ *high = (pcpa_inline_half_ *)(void *)&list->allocs;
	int look;

#if __BYTE_ORDER__ != __ORDER_BIG_ENDIAN__
	high += 1;
#endif
	n <<= PCPA_INLINE_ALLOCS_SHIFT_ - 32;
	__atomic_signal_fence(__ATOMIC_RELEASE);
#if PCPA_INLINE_TSAN
	__atomic_store_n(high, *high + n, __ATOMIC_RELAXED);
#else
	*high = *high + n;
#endif
	look = (int32_t)*high < 0;
	if (pcpa_inline_unlikely_(look))
		__atomic_store_n(&list->allocs,
				 list->allocs + 1 - ((uint64_t)1 << 63),
				 __ATOMIC_RELAXED);
	return look;
}

/* Not with the mark. */
static __attribute__((cold, noinline, unused)) void
pcpa_inline_look_(struct pcpa_heap *heap)
{
	pcpa_inline_bind(heap, PCPA_INLINE_VERSION,
			 sizeof(struct pcpa_inline_cache));
}

/* The mark is set: a block of the list, or NULL.  *look: as pcpa_inline_count_(). */
PCPA_INLINE void *pcpa_inline_pop_(struct pcpa_inline_cache *in,
				   struct pcpa_inline_list *list, int *look)
{
	uint32_t head = list->head;

	if (pcpa_inline_unlikely_(head == list->tail))
		return 0;
	head--;
	__atomic_store_n(&list->head, head, __ATOMIC_RELAXED);
	*look = pcpa_inline_count_(list, 1);
	return in->base + ((size_t)list->slots[head & list->mask] << in->page_shift);
}

/* The mark is set: 0 where the call must look at the list's length. */
PCPA_INLINE int pcpa_inline_push_(struct pcpa_inline_list *list, uint32_t page)
{
	uint32_t head = list->head;

	if (pcpa_inline_unlikely_(head + 1 - list->tail >= list->limit))
		return 0;
	list->slots[head & list->mask] = page;
	__atomic_store_n(&list->head, head + 1, __ATOMIC_RELAXED);
	return 1;
}

/* off: bytes from the cache's first page, in pages; 0: it begins none of its pages. */
PCPA_INLINE int pcpa_inline_off_(const struct pcpa_inline_cache *in, uint64_t off,
				 uint64_t *page)
{
	*page = off >> in->page_shift | off << (-in->page_shift & 63);
	return pcpa_inline_likely_(*page < in->pages);
}

/* The block's distance from the cache's first page; 0: it is none of its pages. */
PCPA_INLINE int pcpa_inline_page_(const struct pcpa_inline_cache *in,
				  const void *block, uint64_t *page)
{
	return pcpa_inline_off_(in,
				(uint64_t)((uintptr_t)block - (uintptr_t)in->start),
				page);
}

/* byte: of the order, as in orders[]. */
PCPA_INLINE int pcpa_inline_give_(struct pcpa_inline_cache *in, unsigned byte,
				  uint64_t page, void *block)
{
	int done = 0;

	if (pcpa_inline_likely_(byte == 1)) {
		if (!pcpa_inline_enter_(in))
			return 0;
		if (pcpa_inline_likely_(!in->front)) {
			__atomic_store_n(&in->front, block, __ATOMIC_RELAXED);
			pcpa_inline_leave_(in);
			return 1;
		}
	} else if (byte - 1 >= PCPA_INLINE_ORDERS || !pcpa_inline_enter_(in)) {
		return 0;
	}
	done = pcpa_inline_push_(&in->list[byte - 1],
				 (uint32_t)(in->first + page));
	pcpa_inline_leave_(in);
	return done;
}

/* ---- Many at once ------------------------------------------------------------ */

/* blocks[i] = address of pages[i], i < n. */
PCPA_INLINE void pcpa_inline_addrs_(const struct pcpa_inline_cache *in,
				    const uint32_t *pages, void **blocks,
				    uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		blocks[i] = in->base + ((size_t)pages[i] << in->page_shift);
}

/* pages[i] = page index of blocks[i], i < n; 0: one is none of the cache's, and
 * what the pages are has no meaning. */
PCPA_INLINE int pcpa_inline_pages_(const struct pcpa_inline_cache *in,
				   void *const *blocks, uint32_t *pages,
				   uint32_t n)
{
	uint64_t page;
	int ok = 1;
	uint32_t i;

	for (i = 0; i < n; i++) {
		ok &= pcpa_inline_page_(in, blocks[i], &page);
		pages[i] = (uint32_t)(in->first + page);
	}
	return ok;
}

/* pages[i] = page index of the block that at[i] points into, as above. */
PCPA_INLINE int pcpa_inline_within_(const struct pcpa_inline_cache *in,
				    void *const *at, uint32_t *pages, uint32_t n,
				    uint32_t keep)
{
	int ok = 1;
	uint32_t i;

	for (i = 0; i < n; i++) {
		uint64_t off = (uint64_t)((uintptr_t)at[i] - (uintptr_t)in->start);
		uint64_t page = off >> in->page_shift;

		ok &= page < in->pages;
		pages[i] = (uint32_t)(in->first + (page & keep));
	}
	return ok;
}

/* Whether all are blocks of order 0. */
PCPA_INLINE int pcpa_inline_single_(const struct pcpa_inline_cache *in,
				    const uint32_t *pages, uint32_t n)
{
	const uint8_t *orders = in->orders - in->first;
	uint32_t i;

	for (i = 0; i < n; i++)
		if (pcpa_inline_unlikely_(pcpa_inline_order_(orders + pages[i]) !=
					  1))
			return 0;
	return 1;
}

#if defined(__x86_64__)
/* Below, its latency is more than it saves. */
#define PCPA_INLINE_WIDE_MIN 16u

/* Whether n at once are for AVX2. */
PCPA_INLINE int pcpa_inline_is_wide_(const struct pcpa_inline_cache *in, uint32_t n)
{
#if defined(__AVX2__)
	(void)in; /* the program wouldn't run here without it */
	return n >= PCPA_INLINE_WIDE_MIN;
#else
	return in->wide && n >= PCPA_INLINE_WIDE_MIN;
#endif
}

/* The same three for 8 at a time, n >= 8; where their number is no multiple of 8 the
 * last 8 are done once more, which writes the same. */
PCPA_INLINE PCPA_INLINE_TARGET void
pcpa_inline_addrs8_(const uint32_t *pages, void **blocks, __m256i base, __m128i shift)
{
	__m128i lo = _mm_loadu_si128((const __m128i *)(const void *)pages);
	__m128i hi = _mm_loadu_si128((const __m128i *)(const void *)(pages + 4));
	__m256i a = _mm256_sll_epi64(_mm256_cvtepu32_epi64(lo), shift);
	__m256i b = _mm256_sll_epi64(_mm256_cvtepu32_epi64(hi), shift);

	_mm256_storeu_si256((__m256i *)(void *)blocks, _mm256_add_epi64(a, base));
	_mm256_storeu_si256((__m256i *)(void *)(blocks + 4),
			    _mm256_add_epi64(b, base));
}

PCPA_INLINE_WIDE void pcpa_inline_addrs_wide_(const struct pcpa_inline_cache *in,
					      const uint32_t *pages,
					      void **blocks, uint32_t n)
{
	__m256i base = _mm256_set1_epi64x((int64_t)(uintptr_t)in->base);
	__m128i shift = _mm_cvtsi32_si128((int)in->page_shift);
	uint32_t i;

	for (i = 0; i + 8 <= n; i += 8)
		pcpa_inline_addrs8_(pages + i, blocks + i, base, shift);
	if (n % 8)
		pcpa_inline_addrs8_(pages + n - 8, blocks + n - 8, base, shift);
}

/* The bits of the eight distances from the cache's first page, together.  keep: which of
 * the pages' indices. */
PCPA_INLINE PCPA_INLINE_TARGET __m256i
pcpa_inline_pages8_(void *const *blocks, uint32_t *pages, __m256i start,
		    __m256i first, __m256i keep, __m128i shift)
{
	__m256i p = _mm256_loadu_si256((const __m256i *)(const void *)blocks);
	__m256i q = _mm256_loadu_si256((const __m256i *)(const void *)(blocks + 4));
	__m256i a = _mm256_sub_epi64(p, start), b = _mm256_sub_epi64(q, start);
	/* The low halves, a0 a1 b0 b1 a2 a3 b2 b3, then in order. */
	__m256i low = _mm256_castps_si256(_mm256_shuffle_ps(
		_mm256_castsi256_ps(_mm256_srl_epi64(a, shift)),
		_mm256_castsi256_ps(_mm256_srl_epi64(b, shift)), 0x88));

	low = _mm256_and_si256(_mm256_permute4x64_epi64(low, 0xd8), keep);
	_mm256_storeu_si256((__m256i *)(void *)pages, _mm256_add_epi32(low, first));
	return _mm256_or_si256(a, b);
}

/* The bits of all distances together: one distance, at least as large as each, and
 * aligned if all are. */
PCPA_INLINE PCPA_INLINE_TARGET uint64_t
pcpa_inline_convert_wide_(const struct pcpa_inline_cache *in, void *const *blocks,
			  uint32_t *pages, uint32_t n, uint32_t keep)
{
	__m256i start = _mm256_set1_epi64x((int64_t)(uintptr_t)in->start);
	__m256i first = _mm256_set1_epi32((int)in->first);
	__m256i keeps = _mm256_set1_epi32((int)keep);
	__m128i shift = _mm_cvtsi32_si128((int)in->page_shift);
	__m256i bits = _mm256_setzero_si256();
	__m128i two;
	uint32_t i;

	for (i = 0; i + 8 <= n; i += 8)
		bits = _mm256_or_si256(bits, pcpa_inline_pages8_(
			blocks + i, pages + i, start, first, keeps, shift));
	if (n % 8)
		bits = _mm256_or_si256(bits, pcpa_inline_pages8_(
			blocks + n - 8, pages + n - 8, start, first, keeps, shift));
	two = _mm_or_si128(_mm256_castsi256_si128(bits),
			   _mm256_extracti128_si256(bits, 1));
	return (uint64_t)_mm_cvtsi128_si64(
		_mm_or_si128(two, _mm_unpackhi_epi64(two, two)));
}

/* 0 also where all are the cache's and their bits together are not, as may be where
 * its length is no power of two: the call says. */
PCPA_INLINE_WIDE int pcpa_inline_pages_wide_(const struct pcpa_inline_cache *in,
					     void *const *blocks, uint32_t *pages,
					     uint32_t n, int sized)
{
	uint64_t off = pcpa_inline_convert_wide_(in, blocks, pages, n, ~(uint32_t)0);
	uint64_t page;

	return pcpa_inline_off_(in, off, &page) &&
	       (sized || pcpa_inline_single_(in, pages, n));
}

PCPA_INLINE_WIDE int pcpa_inline_within_wide_(const struct pcpa_inline_cache *in,
					      void *const *at, uint32_t *pages,
					      uint32_t n, uint32_t keep)
{
	uint64_t off = pcpa_inline_convert_wide_(in, at, pages, n, keep);

	return off >> in->page_shift < in->pages;
}
#endif

/* The mark is set: all n or none, from one piece of the ring. */
PCPA_INLINE int pcpa_inline_pop_bulk_(struct pcpa_inline_cache *in,
				      struct pcpa_inline_list *list, void **blocks,
				      uint32_t n, int *look)
{
	uint32_t head = list->head, at = (head - n) & list->mask;

	if (pcpa_inline_unlikely_((head - list->tail < n) |
				  (n > list->mask + 1 - at)))
		return 0;
#if defined(__x86_64__)
	if (pcpa_inline_is_wide_(in, n))
		pcpa_inline_addrs_wide_(in, list->slots + at, blocks, n);
	else
#endif
		pcpa_inline_addrs_(in, list->slots + at, blocks, n);
	__atomic_store_n(&list->head, head - n, __ATOMIC_RELAXED);
	*look = pcpa_inline_count_(list, n);
	return 1;
}

enum pcpa_inline_how_ {
	PCPA_INLINE_UNSIZED_, /* of order 0, if they are */
	PCPA_INLINE_SIZED_,
	PCPA_INLINE_WITHIN_ /* not their begins */
};

PCPA_INLINE int pcpa_inline_convert_(struct pcpa_inline_cache *in, unsigned order,
				     enum pcpa_inline_how_ how,
				     void *const *blocks, uint32_t *slots,
				     uint32_t n)
{
	uint32_t keep = ~(uint32_t)0 << order;

#if defined(__x86_64__)
	if (pcpa_inline_is_wide_(in, n))
		return how == PCPA_INLINE_WITHIN_
			       ? pcpa_inline_within_wide_(in, blocks, slots, n, keep)
			       : pcpa_inline_pages_wide_(
					 in, blocks, slots, n,
					 how == PCPA_INLINE_SIZED_);
#endif
	if (how == PCPA_INLINE_WITHIN_)
		return pcpa_inline_within_(in, blocks, slots, n, keep);
	return pcpa_inline_pages_(in, blocks, slots, n) &&
	       (how == PCPA_INLINE_SIZED_ || pcpa_inline_single_(in, slots, n));
}

/* The mark is set: into the slots behind the last, which become part of the ring
 * when all were good. */
PCPA_INLINE int pcpa_inline_push_bulk_(struct pcpa_inline_cache *in, unsigned order,
				       enum pcpa_inline_how_ how,
				       void *const *blocks, uint32_t n)
{
	struct pcpa_inline_list *list = &in->list[order];
	uint32_t head = list->head, at = head & list->mask;

	if (pcpa_inline_unlikely_((head + n - list->tail >= list->limit) |
				  (n > list->mask + 1 - at)) ||
	    !pcpa_inline_convert_(in, order, how, blocks, list->slots + at, n))
		return 0;
	__atomic_store_n(&list->head, head + n, __ATOMIC_RELAXED);
	return 1;
}

/* ---- Calls ------------------------------------------------------------------ */

/*
 * A handle to the calling thread's cache, which is made at need.  Never fails: where
 * pcpa_inline_bind() has none, every use of the handle is a call.
 */
PCPA_INLINE struct pcpa_cache pcpa_cache_self(struct pcpa_heap *heap)
{
	struct pcpa_cache c;

	c.heap = heap;
	c.inside = pcpa_inline_bind(heap, PCPA_INLINE_VERSION,
				    sizeof(struct pcpa_inline_cache));
	if (!c.inside)
		/* Not written: it is always busy. */
		c.inside = (struct pcpa_inline_cache *)(uintptr_t)&pcpa_inline_none_;
	c.thread = &errno;
	return c;
}

/* Whether hits are served without a call, unless the heap is watched or its
 * caches are disabled. */
PCPA_INLINE int pcpa_cache_is_inline(const struct pcpa_cache *c)
{
	return pcpa_inline_of_(c)->pages > 0;
}

/* As pcpa_alloc().  Calls where flags are set, and above order 3. */
PCPA_INLINE void *pcpa_cache_alloc(const struct pcpa_cache *c, unsigned order,
				   unsigned flags)
{
	struct pcpa_inline_cache *in = pcpa_inline_of_(c);
	void *block;
	int look = 0;

	if (pcpa_inline_likely_((flags == 0) & (order < PCPA_INLINE_ORDERS)) &&
	    pcpa_inline_enter_(in)) {
		block = in->front;
		if (pcpa_inline_likely_((uintptr_t)block > 1) && order == 0) {
			__atomic_store_n(&in->front, (void *)0, __ATOMIC_RELAXED);
			look = pcpa_inline_count_(&in->list[0], 1);
		} else {
			block = pcpa_inline_pop_(in, &in->list[order], &look);
		}
		pcpa_inline_leave_(in);
		if (pcpa_inline_unlikely_(look))
			pcpa_inline_look_(c->heap);
		if (pcpa_inline_likely_(block != 0))
			return block;
	}
	return pcpa_alloc(c->heap, order, flags);
}

/* As pcpa_free(): what is no block is refused and counted there. */
PCPA_INLINE void pcpa_cache_free(const struct pcpa_cache *c, void *block)
{
	struct pcpa_inline_cache *in = pcpa_inline_of_(c);
	uint64_t page;

	if (!pcpa_inline_page_(in, block, &page) ||
	    !pcpa_inline_give_(in,
			       pcpa_inline_order_(in->orders + page),
			       page, block))
		pcpa_free(c->heap, block);
}

/* As pcpa_free_sized(), whose requirements it has. */
PCPA_INLINE void pcpa_cache_free_sized(const struct pcpa_cache *c, void *block,
				       unsigned order)
{
	struct pcpa_inline_cache *in = pcpa_inline_of_(c);
	uint64_t page;

	if (!pcpa_inline_page_(in, block, &page) ||
	    !pcpa_inline_give_(in, order + 1, page, block))
		pcpa_free_sized(c->heap, block, order);
}

/*
 * Frees the block of this order that `at` points into, for those who hand out a part
 * of each block, behind a header or a headroom; where that is a hit.  0: nothing was
 * done, and pcpa_free_sized() with the block itself does it.  Requires what that one
 * requires.  The block goes to where bulk calls take theirs from, which is not where
 * pcpa_cache_alloc() looks first.
 */
PCPA_INLINE int pcpa_cache_free_within(const struct pcpa_cache *c, const void *at,
				       unsigned order)
{
	struct pcpa_inline_cache *in = pcpa_inline_of_(c);
	uint64_t off = (uint64_t)((uintptr_t)at - (uintptr_t)in->start);
	uint64_t page = off >> in->page_shift & ~(((uint64_t)1 << order) - 1);
	int done;

	if (pcpa_inline_unlikely_((page >= in->pages) |
				  (order >= PCPA_INLINE_ORDERS)) ||
	    !pcpa_inline_enter_(in))
		return 0;
	done = pcpa_inline_push_(&in->list[order], (uint32_t)(in->first + page));
	pcpa_inline_leave_(in);
	return done;
}

/* 0: nothing was done. */
PCPA_INLINE int pcpa_inline_take_bulk_(const struct pcpa_cache *c, unsigned order,
				       void **blocks, size_t n)
{
	struct pcpa_inline_cache *in = pcpa_inline_of_(c);
	int done, look = 0;

	if (pcpa_inline_unlikely_((n > PCPA_INLINE_BULK) |
				  (order >= PCPA_INLINE_ORDERS)) ||
	    !pcpa_inline_enter_(in))
		return 0;
	done = pcpa_inline_pop_bulk_(in, &in->list[order], blocks, (uint32_t)n,
				     &look);
	pcpa_inline_leave_(in);
	if (pcpa_inline_unlikely_(look))
		pcpa_inline_look_(c->heap);
	return done;
}

/* As pcpa_alloc_bulk().  Calls where the cache has fewer than n, n is above 256,
 * flags are set, or the order is above 3. */
PCPA_INLINE size_t pcpa_cache_alloc_bulk(const struct pcpa_cache *c,
					 unsigned order, unsigned flags,
					 void **blocks, size_t n)
{
	if (pcpa_inline_likely_(flags == 0) &&
	    pcpa_inline_likely_(pcpa_inline_take_bulk_(c, order, blocks, n)))
		return n;
	return pcpa_alloc_bulk(c->heap, order, flags, blocks, n);
}

PCPA_INLINE int pcpa_inline_give_bulk_(const struct pcpa_cache *c, unsigned order,
				       enum pcpa_inline_how_ how,
				       void *const *blocks, size_t n)
{
	struct pcpa_inline_cache *in = pcpa_inline_of_(c);
	int done;

	if (pcpa_inline_unlikely_((n > PCPA_INLINE_BULK) |
				  (order >= PCPA_INLINE_ORDERS)) ||
	    !pcpa_inline_enter_(in))
		return 0;
	done = pcpa_inline_push_bulk_(in, order, how, blocks, (uint32_t)n);
	pcpa_inline_leave_(in);
	return done;
}

/* As pcpa_free_bulk().  Calls unless all are blocks of order 0 and of the cache's
 * node, and there are at most 256. */
PCPA_INLINE void pcpa_cache_free_bulk(const struct pcpa_cache *c, void **blocks,
				      size_t n)
{
	if (!pcpa_inline_give_bulk_(c, 0, PCPA_INLINE_UNSIZED_, blocks, n))
		pcpa_free_bulk(c->heap, blocks, n);
}

/* As pcpa_free_bulk_sized(), and pcpa_free_sized() for what it requires. */
PCPA_INLINE void pcpa_cache_free_bulk_sized(const struct pcpa_cache *c,
					    unsigned order, void **blocks, size_t n)
{
	if (!pcpa_inline_give_bulk_(c, order, PCPA_INLINE_SIZED_, blocks, n))
		pcpa_free_bulk_sized(c->heap, order, blocks, n);
}

/* The same for the blocks that at[0..n-1] point into, as pcpa_cache_free_within(): 0:
 * nothing was done, and pcpa_free_bulk_sized() with the blocks themselves does it. */
PCPA_INLINE int pcpa_cache_free_bulk_within(const struct pcpa_cache *c,
					    unsigned order, void *const *at, size_t n)
{
	return pcpa_inline_give_bulk_(c, order, PCPA_INLINE_WITHIN_, at, n);
}

#ifdef __cplusplus
}
#endif

#endif
