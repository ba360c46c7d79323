/* SPDX-License-Identifier: BSD-2-Clause */
/* page_pool.c - get and put; see page_pool.h. */
#include "page_pool.h"

#include <errno.h>
#include <stdlib.h>

/* ---- The cache ---------------------------------------------------------------- */

/* relaxed: the owner's; statistics may see it late. */
PCPI_INLINE uint32_t count_get(const struct pcpa_pool *pool)
{
	return pcpi_load_relaxed(&pool->count);
}

PCPI_INLINE void count_set(struct pcpa_pool *pool, uint32_t count)
{
	pcpi_store_relaxed(&pool->count, count); /* relaxed: see above */
}

/* Requires that there is one. */
PCPI_INLINE void *cache_pop(struct pcpa_pool *pool)
{
	uint32_t count = count_get(pool) - 1;
	void *buf = pool->cache[count];

	count_set(pool, count);
	return buf;
}

PCPI_INLINE void cache_push(struct pcpa_pool *pool, void *buf)
{
	uint32_t count = count_get(pool);

	pool->cache[count] = buf;
	count_set(pool, count + 1);
}

bool pcpi_pool_cache(struct pcpa_pool *pool, uint64_t pfn)
{
	if (count_get(pool) == PCPI_POOL_CACHE) {
		pcpi_counter_add(&pool->recycle_cache_full, 1);
		return false;
	}
	cache_push(pool, pcpi_pool_buf(pool, pfn));
	pcpi_counter_add(&pool->recycle_cached, 1);
	return true;
}

/* ---- Behind the cache ----------------------------------------------------------- */

/* The zone whose pages are right for the owner now, NULL where all are. */
static const struct pcpi_zone *zone_wanted(const struct pcpa_pool *pool)
{
	if (pool->heap->nr_zones == 1)
		return NULL;
	return pool->zone ? pool->zone : pcpi_heap_local_zone(pool->heap);
}

/* From the ring to the cache, up to a refill; the last of them, or NULL. */
static void *ring_refill(struct pcpa_pool *pool)
{
	const struct pcpi_zone *want;
	void *buf;

	if (!pcpi_pool_ring_peek(&pool->ring)) {
		pcpi_counter_add(&pool->alloc_empty, 1);
		return NULL;
	}
	want = zone_wanted(pool);
	while (count_get(pool) < PCPI_POOL_REFILL &&
	       (buf = pcpi_pool_ring_consume(&pool->ring))) {
		if (want &&
		    pcpi_zone_of(&pool->heap->env,
				 (uint32_t)pcpi_pool_pfn(pool, buf)) != want) {
			pcpi_counter_add(&pool->alloc_waive, 1);
			pcpi_pool_let_go(pool, &buf, 1);
			break;
		}
		cache_push(pool, buf);
	}
	if (count_get(pool) == 0)
		return NULL;
	pcpi_counter_add(&pool->alloc_refill, 1);
	return cache_pop(pool);
}

/* Pages of the heap to bufs[]; how many.  Of the reserve only one, and only where
 * there is no other: a pool keeps none of it. */
static uint32_t heap_take(struct pcpa_pool *pool, void **bufs, uint32_t n)
{
	unsigned flags = pool->alloc_flags;
	uint64_t word = pool->mine | (pool->checked ? PCPI_POOL_IDLE : 0);
	int saved = errno;
	uint64_t pfn;
	uint32_t i, got;

	got = (uint32_t)pcpa_alloc_bulk(pool->heap, pool->order,
					flags & ~PCPA_RESERVE, bufs, n);
	if (got == 0 && flags & PCPA_RESERVE) {
		got = (uint32_t)pcpa_alloc_bulk(pool->heap, pool->order, flags,
						bufs, 1);
		word |= PCPI_POOL_EMERGENCY;
	}
	for (i = 0; i < got; i++) {
		pfn = pcpi_pool_pfn(pool, bufs[i]);
		pcpi_pool_page_own(&pool->pages[pfn], word);
		bufs[i] = pcpi_pool_buf(pool, pfn);
	}
	if (got > 0) {
		pcpi_pool_count_take(&pool->count_out, got);
		errno = saved;
	}
	return got;
}

static void *heap_refill(struct pcpa_pool *pool)
{
	uint32_t got;
	void *buf;

	if (pool->order > 0) {
		if (heap_take(pool, &buf, 1) == 0)
			return NULL;
		pcpi_counter_add(&pool->alloc_slow_ho, 1);
		return buf;
	}
	got = heap_take(pool, pool->cache, PCPI_POOL_REFILL);
	if (got == 0)
		return NULL;
	count_set(pool, got);
	pcpi_counter_add(&pool->alloc_slow, 1);
	return cache_pop(pool);
}

/* PP5: somebody has it from now on. */
static void idle_clear(struct pcpa_pool *pool, const void *buf)
{
	struct pcpi_pool_page *p = &pool->pages[pcpi_pool_pfn(pool, buf)];

	/* relaxed: nobody else has the page. */
	pcpi_store_relaxed(&p->word, pcpi_load_relaxed(&p->word) & ~PCPI_POOL_IDLE);
}

void *pcpi_pool_take(struct pcpa_pool *pool)
{
	void *buf;

	if (count_get(pool) > 0) {
		pcpi_counter_add(&pool->alloc_fast, 1);
		buf = cache_pop(pool);
	} else {
		buf = ring_refill(pool);
		if (!buf)
			buf = heap_refill(pool);
	}
	if (buf && pool->checked)
		idle_clear(pool, buf);
	return buf;
}

static PCPI_NOINLINE void *get_slow(struct pcpa_pool *pool)
{
	int err = pcpi_pool_begin(pool);

	if (err) {
		errno = -err;
		return NULL;
	}
	return pcpi_pool_take(pool);
}

PCPI_EXPORT PCPI_HOT void *pcpa_pool_get(struct pcpa_pool *pool)
{
	/* relaxed: equal only if this thread has stored it. */
	if (pcpi_likely(pool != NULL) &&
	    pcpi_likely(pcpi_load_relaxed(&pool->hit_owner) ==
			pcpi_pool_self()) &&
	    pcpi_likely(count_get(pool) > 0)) {
		pcpi_counter_add(&pool->alloc_fast, 1);
		return cache_pop(pool);
	}
	return get_slow(pool);
}

/* ---- Coming back ------------------------------------------------------------------ */

void pcpi_pool_refuse(struct pcpa_pool *pool, const void *buf, const char *why)
{
	/* relaxed: a counter, and a message that may come twice. */
	pcpi_fetch_add_relaxed(&pool->bad_puts, 1);
	if (pool->checked ||
	    (pool->heap->verbosity > 0 && !pcpi_load_relaxed(&pool->said))) {
		pcpi_store_relaxed(&pool->said, true);
		pcpi_sys_say("pool %p: refused to take %p back: %s",
			     (void *)pool, buf, why);
	}
	if (pool->checked)
		abort();
}

/* PP5: false: nobody had it. */
static bool idle_mark(struct pcpi_pool_page *p)
{
	/* relaxed: the swap decides. */
	uint64_t word = pcpi_load_relaxed(&p->word);

	do {
		if (word & PCPI_POOL_IDLE)
			return false;
		/* acquire/release: pairs with itself; one of two puts is first. */
	} while (!pcpi_cas_acq_rel(&p->word, &word, word | PCPI_POOL_IDLE));
	return true;
}

static const char *put_fault(const struct pcpa_pool *pool, uint64_t pfn)
{
	uint64_t word;

	if (pfn >= pool->nr_pfns)
		return "not of the pool's heap";
	word = pcpi_pool_page_word(&pool->pages[pfn]);
	if (pcpi_pool_word_id(word) != pool->id)
		return "no buffer of the pool";
	return word & PCPI_POOL_IDLE ? "put already" : NULL;
}

bool pcpi_pool_return(struct pcpa_pool *pool, void *buf, uint64_t *pfn)
{
	struct pcpi_pool_page *p;
	const char *why;

	*pfn = pcpi_pool_pfn(pool, buf);
	why = put_fault(pool, *pfn);
	if (!why) {
		p = &pool->pages[*pfn];
		if (!pcpi_pool_unuse(pool, p, 1))
			return false;
		if (!pool->checked || idle_mark(p))
			return true;
		why = "put already";
	}
	pcpi_pool_refuse(pool, buf, why);
	return false;
}

bool pcpi_pool_recyclable(struct pcpa_pool *pool, uint64_t pfn)
{
	if ((pcpi_pool_page_word(&pool->pages[pfn]) & ~PCPI_POOL_IDLE) ==
	    pool->mine)
		return true;
	/* relaxed: counter */
	pcpi_fetch_add_relaxed(&pool->recycle_released_ref, 1);
	return false;
}

uint32_t pcpi_pool_ring_put(struct pcpa_pool *pool, void **bufs, uint32_t n)
{
	uint32_t done = 0;

	pcpi_lock_take(&pool->ring.producer_lock);
	if (pcpi_likely(!pool->ending)) { /* PP4 */
		while (done < n &&
		       pcpi_pool_ring_produce(&pool->ring, bufs[done]))
			done++;
		pcpi_counter_add(&pool->recycle_ring, done);
		if (done < n)
			pcpi_counter_add(&pool->recycle_ring_full, 1);
	}
	pcpi_lock_drop(&pool->ring.producer_lock);
	return done;
}

void pcpi_pool_keep(struct pcpa_pool *pool, uint64_t pfn)
{
	void *buf = pcpi_pool_buf(pool, pfn);

	if (pcpi_pool_recyclable(pool, pfn)) {
		if (pcpi_pool_owned(pool) && pcpi_pool_cache(pool, pfn))
			return;
		if (pcpi_pool_ring_put(pool, &buf, 1) == 1)
			return;
	}
	pcpi_pool_let_go(pool, &buf, 1);
}

static PCPI_NOINLINE void put_slow(struct pcpa_pool *pool, void *buf)
{
	uint64_t pfn;

	/* relaxed: set before the child had a second thread. */
	if (!pool || !buf || pcpi_load_relaxed(&pool->heap->forked))
		return;
	if (pcpi_pool_return(pool, buf, &pfn))
		pcpi_pool_keep(pool, pfn);
}

/* The owner's, of a page with more users. */
static PCPI_NOINLINE PCPI_HOT void put_part(struct pcpa_pool *pool, uint64_t pfn)
{
	if (pcpi_unlikely(pcpi_pool_owner_unuse(pool, &pool->pages[pfn], 1)))
		pcpi_pool_keep(pool, pfn);
}

/* The owner's, whose cache is full: it may be kept. */
static PCPI_NOINLINE void put_full(struct pcpa_pool *pool, uint64_t pfn)
{
	void *buf = pcpi_pool_buf(pool, pfn);

	pcpi_counter_add(&pool->recycle_cache_full, 1);
	if (pcpi_pool_ring_put(pool, &buf, 1) == 0)
		pcpi_pool_let_go(pool, &buf, 1);
}

/*
 * One user, one reference, not of the reserve, the owner: two compares of what was read
 * in this order: a reference of somebody whose put has left us alone was taken before
 * that put.
 */
PCPI_EXPORT PCPI_HOT void pcpa_pool_put(struct pcpa_pool *pool, void *buf)
{
	const struct pcpi_pool_page *p;
	uint64_t pfn;
	int64_t users;

	/* relaxed: equal only if this thread has stored it. */
	if (pcpi_likely(pool != NULL) &&
	    pcpi_likely(pcpi_load_relaxed(&pool->hit_owner) ==
			pcpi_pool_self())) {
		pfn = pcpi_pool_pfn(pool, buf);
		p = &pool->pages[pfn];
		if (pcpi_unlikely(pfn >= pool->nr_pfns))
			return put_slow(pool, buf);
		/* acquire: pairs with pcpi_pool_page_unuse(). */
		users = pcpi_load_acquire(&p->users);
		if (pcpi_unlikely(pcpi_pool_page_word(p) != pool->mine))
			return put_slow(pool, buf);
		if (users != 1)
			return put_part(pool, pfn);
		if (pcpi_unlikely(count_get(pool) == PCPI_POOL_CACHE))
			return put_full(pool, pfn);
		cache_push(pool, pcpi_pool_buf(pool, pfn));
		pcpi_counter_add(&pool->recycle_cached, 1);
		return;
	}
	put_slow(pool, buf);
}
