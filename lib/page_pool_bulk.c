/* SPDX-License-Identifier: BSD-2-Clause */
/* page_pool_bulk.c - many buffers at once; see page_pool.h. */
#include <errno.h>

#include "page_pool.h"

PCPI_EXPORT size_t pcpa_pool_get_bulk(struct pcpa_pool *pool, void **bufs,
				      size_t n)
{
	int err = pcpi_pool_begin(pool);
	size_t got = 0;

	if (err) {
		errno = -err;
		return 0;
	}
	while (got < n && (bufs[got] = pcpi_pool_take(pool)))
		got++;
	return got;
}

/*
 * The first base page of the page that an address is in.  Only that one's order byte is
 * one of a block; the block is the first that is long enough.
 */
static bool head_find(const struct pcpa_heap *heap, uint64_t pfn, uint64_t *head)
{
	unsigned order, byte;

	for (order = 0; order <= PCPI_MAX_ORDER; order++) {
		*head = pfn & ~((UINT64_C(1) << order) - 1);
		byte = pcpi_page_read(heap->hot.orders, *head);
		if (byte - 1 <= PCPI_MAX_ORDER && byte - 1 >= order)
			return true;
	}
	return false;
}

struct pcpi_pool_page *pcpi_pool_page_of(const struct pcpa_heap *heap,
					 const void *buf, uint64_t *pfn)
{
	uint64_t off = (uint64_t)((uintptr_t)buf - (uintptr_t)heap->hot.base);
	struct pcpi_pool_page *pages = pcpi_pools_pages(&heap->pools);

	*pfn = off >> heap->hot.page_shift;
	if (off >= heap->space.bytes || !pages)
		return NULL;
	/* Further base pages have no word. */
	if (pcpi_pool_page_word(&pages[*pfn]) == 0 &&
	    !head_find(heap, *pfn, pfn))
		return NULL;
	return pcpi_pool_page_word(&pages[*pfn]) == 0 ? NULL : &pages[*pfn];
}

/* The pool of a buffer, or NULL. */
static struct pcpa_pool *pool_of(const struct pcpa_heap *heap, const void *buf)
{
	const struct pcpi_pool_page *p;
	uint64_t pfn;
	unsigned id;

	p = pcpi_pool_page_of(heap, buf, &pfn);
	id = p ? pcpi_pool_word_id(pcpi_pool_page_word(p)) : PCPI_POOL_LEFT;
	return id == PCPI_POOL_LEFT ? NULL : pcpi_pools_at(&heap->pools, id);
}

/* The first buffer of any pool, whose pool it returns; what is none, before it, is
 * refused.  *at: where it is. */
static struct pcpa_pool *next_pool(struct pcpa_heap *heap, void **bufs, size_t n,
				   size_t *at)
{
	struct pcpa_pool *pool;

	for (; *at < n; ++*at) {
		if (!bufs[*at])
			continue;
		pool = pool_of(heap, bufs[*at]);
		if (pool)
			return pool;
		pcpi_free_refuse(heap, bufs[*at], "no buffer of a pool", -1);
	}
	return NULL;
}

/* A buffer of the pool that comes back: true: for the ring, as *buf. */
static bool one_take(struct pcpa_pool *pool, void **buf, bool direct)
{
	void *back = *buf;
	uint64_t pfn;

	*buf = NULL;
	if (!pcpi_pool_return(pool, back, &pfn))
		return false;
	back = pcpi_pool_buf(pool, pfn);
	if (!pcpi_pool_recyclable(pool, pfn)) {
		pcpi_pool_let_go(pool, &back, 1);
		return false;
	}
	if (direct && pcpi_pool_cache(pool, pfn))
		return false;
	*buf = back;
	return true;
}

/*
 * All buffers of one pool: those for the ring come to the front.  How many.  The pool
 * is touched only where one of its buffers is in hand: without, others may put the
 * last that it waits for.  (Of a pool that we own nobody ends it meanwhile.)
 */
static uint32_t group_take(struct pcpa_heap *heap, struct pcpa_pool *pool,
			   void **bufs, size_t n)
{
	bool direct = pcpi_pool_owned(pool);
	uint32_t ready = 0;
	void *buf;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!bufs[i] || pool_of(heap, bufs[i]) != pool ||
		    !one_take(pool, &bufs[i], direct))
			continue;
		buf = bufs[i];
		bufs[i] = bufs[ready];
		bufs[ready++] = buf;
	}
	return ready;
}

static uint32_t group_put(struct pcpa_heap *heap, struct pcpa_pool *pool,
			  void **bufs, size_t n)
{
	uint32_t ready = group_take(heap, pool, bufs, n), done;

	if (ready > 0) {
		done = pcpi_pool_ring_put(pool, bufs, ready);
		if (done < ready)
			pcpi_pool_let_go(pool, bufs + done, ready - done);
	}
	return ready;
}

PCPI_EXPORT void pcpa_pool_put_bulk(struct pcpa_heap *heap, void **bufs, size_t n)
{
	struct pcpa_pool *pool;
	size_t at = 0;

	/* relaxed: set before the child had a second thread. */
	if (!heap || pcpi_load_relaxed(&heap->forked))
		return;
	while ((pool = next_pool(heap, bufs, n, &at)))
		at += group_put(heap, pool, bufs + at, n - at);
}
