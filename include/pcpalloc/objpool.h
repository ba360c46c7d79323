/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * objpool.h - a pool of objects: a fixed number of them, each in a block of its own,
 * which any thread gets and puts, and which stay as they are while they are free.
 *
 *     struct pcpa_objpool pool;
 *
 *     pcpa_objpool_create(&options, &pool);
 *     void *object = pcpa_objpool_get(&pool);
 *     pcpa_objpool_put(&pool, object);
 *     pcpa_objpool_destroy(&pool);
 *
 * A pool has a heap of its own, of fixed size and on one node.  Its objects may be
 * constructed once, by who gets all of them first, and be used again as they were
 * put (PCPA_HEAP_CONTENTS).  For packets that one thread receives, with references
 * and fragments, page_pool.h is made; for blocks of any order, pcpalloc.h.
 *
 *     block: 2^order pages, aligned to its size
 *     | colour | head_bytes | object_bytes | rest |
 *                           ^ object
 *
 * Blocks begin at pages, and without a colour the first lines of all objects would
 * share one set of a first-level cache.  The colour is a number of lines of 64 bytes
 * that the block's address gives, as many as there is room for, a power of two up
 * to 64: so both ways between object and block are arithmetic, and a pool of
 * objects that fill their blocks has one.  An object takes a page at least: for
 * small ones a pool isn't made.  The heap has whole huge pages, of which no more than
 * nr_objects blocks are handed out.
 *
 * Gets and puts are compiled into the program, as inline.h is, on a handle of the
 * thread's cache that the thread keeps of the pool that it used last; another pool
 * costs some 20 ns to find again.  Those of blocks above order 3 (32 KiB) are calls.  A
 * shared library that uses them should be compiled with -ftls-model=initial-exec (40
 * bytes for each source file that does).
 *
 * Concurrency: any thread may get and put, at any time as long as the pool
 * exists, but no signal handler, nor a destructor of pthread_key_create(); those of
 * C++'s thread_local variables may.  A preempted thread blocks no other.
 *
 * A pool is its process's.  In a forked child, and in another process that sees struct
 * pcpa_objpool in shared memory, gets fail with ENODEV, and puts do nothing and return
 * -ENODEV, but for those of the thread that forked, which may return 0.
 */
#ifndef PCPALLOC_OBJPOOL_H
#define PCPALLOC_OBJPOOL_H

#include <stdlib.h>
#include <string.h>

#include <pcpalloc/inline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Start from PCPA_OBJPOOL_OPTIONS_INIT. */
struct pcpa_objpool_options {
	size_t struct_size;
	size_t nr_objects;
	size_t object_bytes;
	/* Room before each object, the program's, too.  The object is aligned to the
	 * largest power of two up to 64 that divides this; to 64 where it is 0. */
	size_t head_bytes;
	/* Of the pool's heap; NULL: defaults.  `nodes` is one node; NULL: the
	 * caller's, or the nearest to it with memory.  The pool sets
	 * initial_bytes, max_bytes and PCPA_HEAP_FIXED, which are 0 here, and
	 * PCPA_HEAP_CONTENTS.  No PCPA_HEAP_COW and no reserve_pages. */
	const struct pcpa_heap_options *heap;
};

#define PCPA_OBJPOOL_OPTIONS_INIT                                              \
	{                                                                      \
		sizeof(struct pcpa_objpool_options), 0u, 0u, 0u, NULL          \
	}

/* A pool, in the program's memory, where it may be moved while nobody uses it.  Of it a
 * program reads `heap` only: for statistics, arenas, drains, not for blocks.  It is
 * frozen: a change is a new soname. */
struct pcpa_objpool {
	struct pcpa_heap *heap;
	uint64_t id;	  /* no other pool has it */
	uint64_t process; /* whose it is */
	uint64_t block_mask, colour_mask; /* of an address's bits */
	uint32_t colour_shift, order;
	uint64_t head_bytes;
	uint64_t nr_objects;
};

/*
 * Makes a pool, all of whose objects are free.  Returns 0, or a negative errno with
 * *pool untouched: -EINVAL for what can't be (named on stderr where the heap's
 * verbosity is 1): no objects, bytes for which no block is large enough, a heap on
 * several nodes; and as pcpa_heap_create(), -ENOMEM above all.
 * Cost: the population of the memory.
 */
int pcpa_objpool_create(const struct pcpa_objpool_options *opts,
			struct pcpa_objpool *pool);

/*
 * Ends a pool, and with it the objects that are out.  NULL is allowed.  Requires that
 * no call on the pool or its heap is running or will follow.  Returns 0, with *pool
 * zeroed, which is no process's pool; or with the pool as it was: -ETIMEDOUT where a thread is inside all the same (it is seen unless
 * the heap has PCPA_HEAP_NO_IPI), -ENODEV in another process, -EBUSY where the heap
 * has a packet pool, -EAGAIN in a signal handler.
 */
int pcpa_objpool_destroy(struct pcpa_objpool *pool);

/* Objects that are free, those in threads' caches included; exact while the callers
 * rest.  0 in another process, and without a pool.  Cost: that of statistics. */
size_t pcpa_objpool_count(const struct pcpa_objpool *pool);

/* Whether the pool is this process's: 0, or -ENODEV; -EINVAL without a pool. */
int pcpa_objpool_check(const struct pcpa_objpool *pool);

/* ---- Inside -------------------------------------------------------------- */

/* The thread's handle of the pool that it used last. */
struct pcpa_objpool_bound_ {
	uint64_t of_pages; /* id, where blocks are pages, else NONE */
	uint64_t id;
	struct pcpa_cache cache;
};

/* Blocks that a get takes on the stack. */
#define PCPA_OBJPOOL_FEW_ 512u

/* No pool's id, nor what memory has where there is none yet. */
#define PCPA_OBJPOOL_NONE_ 1u

static __thread struct pcpa_objpool_bound_ pcpa_objpool_bound_
	__attribute__((unused)) = {PCPA_OBJPOOL_NONE_, PCPA_OBJPOOL_NONE_, {0, 0, 0}};

/* NULL: it isn't this process's pool. */
static __attribute__((noinline, cold, unused)) struct pcpa_cache *
pcpa_objpool_bind_(const struct pcpa_objpool *pool)
{
	if (pcpa_objpool_check(pool))
		return 0;
	pcpa_objpool_bound_.cache = pcpa_cache_self(pool->heap);
	pcpa_objpool_bound_.id = pool->id;
	pcpa_objpool_bound_.of_pages = pool->order == 0 ? pool->id : PCPA_OBJPOOL_NONE_;
	return &pcpa_objpool_bound_.cache;
}

PCPA_INLINE struct pcpa_cache *pcpa_objpool_self_(const struct pcpa_objpool *pool)
{
	if (pcpa_inline_likely_(pcpa_objpool_bound_.id == pool->id))
		return &pcpa_objpool_bound_.cache;
	return pcpa_objpool_bind_(pool);
}

PCPA_INLINE void *pcpa_objpool_object_(const struct pcpa_objpool *pool, void *block)
{
	uint64_t colour = (uint64_t)(uintptr_t)block >> pool->colour_shift &
			  pool->colour_mask;

	return (char *)block + pool->head_bytes + colour;
}

PCPA_INLINE void *pcpa_objpool_block_(const struct pcpa_objpool *pool, void *object)
{
	return (char *)object - ((uintptr_t)object & pool->block_mask);
}

#if defined(__x86_64__)
PCPA_INLINE_WIDE void pcpa_objpool_objects_wide_(const struct pcpa_objpool *pool,
						 void **blocks, size_t n)
{
	__m256i mask = _mm256_set1_epi64x((int64_t)pool->colour_mask);
	__m256i head = _mm256_set1_epi64x((int64_t)pool->head_bytes);
	__m128i shift = _mm_cvtsi32_si128((int)pool->colour_shift);
	size_t fours = n & ~(size_t)3, i;

	for (i = 0; i < fours; i += 4) {
		__m256i *four = (__m256i *)(void *)(blocks + i);
		__m256i at = _mm256_loadu_si256(four);
		__m256i colour = _mm256_and_si256(_mm256_srl_epi64(at, shift),
						  mask);

		_mm256_storeu_si256(four, _mm256_add_epi64(
			at, _mm256_add_epi64(head, colour)));
	}
	for (i = fours; i < n; i++)
		blocks[i] = pcpa_objpool_object_(pool, blocks[i]);
}
#endif

/* Blocks become their objects. */
PCPA_INLINE void pcpa_objpool_objects_(const struct pcpa_objpool *pool,
				       const struct pcpa_cache *cache,
				       void **blocks, size_t n)
{
	size_t i;

#if defined(__x86_64__)
	if (pcpa_inline_is_wide_(cache->inside, (uint32_t)n)) {
		pcpa_objpool_objects_wide_(pool, blocks, n);
		return;
	}
#else
	(void)cache;
#endif
	for (i = 0; i < n; i++)
		blocks[i] = pcpa_objpool_object_(pool, blocks[i]);
}

/* What is no hit as a whole, in parts, which may be hits.  Returns 0 with blocks[] as they were. */
static __attribute__((noinline, unused)) int
pcpa_objpool_get_call_(struct pcpa_objpool *pool, const struct pcpa_cache *cache,
		       void **blocks, size_t n)
{
	void *few[PCPA_OBJPOOL_FEW_], **taken = few;
	size_t got = 0, want, some;

	if (n > pool->nr_objects) {
		errno = ENOMEM;
		return 0;
	}
	if (n > PCPA_OBJPOOL_FEW_)
		taken = (void **)malloc(n * sizeof(*taken));
	if (!taken)
		return 0;
	do {
		want = n - got < PCPA_INLINE_BULK ? n - got : PCPA_INLINE_BULK;
		some = pcpa_cache_alloc_bulk(cache, pool->order, 0, taken + got,
					     want);
		got += some;
	} while (some == want && got < n);
	if (got == n)
		memcpy(blocks, taken, n * sizeof(*taken));
	else
		pcpa_free_bulk_sized(pool->heap, pool->order, taken, got);
	if (taken != few)
		free(taken);
	return got == n;
}

/* At most PCPA_INLINE_BULK objects. */
static __attribute__((noinline, unused)) void
pcpa_objpool_put_call_(struct pcpa_objpool *pool, void *const *objects, size_t n)
{
	void *blocks[PCPA_INLINE_BULK];
	size_t i;

	for (i = 0; i < n; i++)
		blocks[i] = pcpa_objpool_block_(pool, objects[i]);
	pcpa_free_bulk_sized(pool->heap, pool->order, blocks, n);
}

static __attribute__((noinline, unused)) int
pcpa_objpool_put_many_(struct pcpa_objpool *pool, void *const *objects, size_t n)
{
	const struct pcpa_cache *cache = pcpa_objpool_self_(pool);
	size_t some;

	if (pcpa_inline_unlikely_(!cache))
		return -ENODEV;
	for (; n > 0; objects += some, n -= some) {
		some = n < PCPA_INLINE_BULK ? n : PCPA_INLINE_BULK;
		if (!pcpa_cache_free_bulk_within(cache, pool->order, objects, some))
			pcpa_objpool_put_call_(pool, objects, some);
	}
	return 0;
}

/* ---- Calls ------------------------------------------------------------------ */

/*
 * Stores n objects in objects[0..n-1] and returns 1; or returns 0 with errno, having got
 * none, with objects[] as they were: ENOMEM where fewer are free, or are in other
 * threads' hands at that moment, who may be about to find that they got too few, too;
 * ENODEV in another process.  What other threads have in their caches is found before it
 * fails, unless the heap has PCPA_HEAP_NO_IPI, but no more often than pcpa_alloc() says:
 * less than a batch that has come there since is found after 100 us, so that ENOMEM may
 * be seen with objects free, and a get soon after has them.
 * Cost: of up to 256 that the thread's cache has in one piece of its ring, that of a hit
 * and some instructions for each four; of others a call for each 256, a copy and 5 KiB
 * of stack; of more than 512 memory of malloc()'s, too.
 */
PCPA_INLINE int pcpa_objpool_get_bulk(struct pcpa_objpool *pool, void **objects,
				      size_t n)
{
	const struct pcpa_cache *cache = pcpa_objpool_self_(pool);

	if (pcpa_inline_unlikely_(!cache)) {
		errno = ENODEV;
		return 0;
	}
	if (pcpa_inline_unlikely_(
		    !pcpa_inline_take_bulk_(cache, pool->order, objects, n)) &&
	    !pcpa_objpool_get_call_(pool, cache, objects, n))
		return 0;
	pcpa_objpool_objects_(pool, cache, objects, n);
	return 1;
}

/* Puts one back where its block is a page, there is room in the thread's cache, and the
 * last pool that the thread used was this one; 0: nothing was done. */
PCPA_INLINE int pcpa_objpool_put_hit(struct pcpa_objpool *pool, void *object)
{
	return pcpa_inline_likely_(pcpa_objpool_bound_.of_pages == pool->id) &&
	       pcpa_inline_likely_(pcpa_cache_free_within(
		       &pcpa_objpool_bound_.cache, object, 0));
}

/*
 * Puts objects[0..n-1] of the pool back, which leaves them as they are.  What was not
 * got from it, or is put twice, corrupts the pool; with PCPA_HEAP_CHECKS that is said,
 * and the program aborts.
 * Returns 0, or -ENODEV in another process.
 * Cost: as of a get; of a single one in a page some 30 instructions.
 */
PCPA_INLINE int pcpa_objpool_put_bulk(struct pcpa_objpool *pool,
				      void *const *objects, size_t n)
{
	if (n == 1 && pcpa_objpool_put_hit(pool, objects[0]))
		return 0;
	return pcpa_objpool_put_many_(pool, objects, n);
}

/* An object, or NULL with errno as above. */
PCPA_INLINE void *pcpa_objpool_get(struct pcpa_objpool *pool)
{
	void *object;

	return pcpa_objpool_get_bulk(pool, &object, 1) ? object : 0;
}

/* Puts one back, as above. */
PCPA_INLINE int pcpa_objpool_put(struct pcpa_objpool *pool, void *object)
{
	return pcpa_objpool_put_bulk(pool, &object, 1);
}

#ifdef __cplusplus
}
#endif

#endif
