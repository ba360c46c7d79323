/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool_end.c - pages that leave a pool, and its end; see page_pool.h.
 *
 *   destroy   the last claim -> nobody owns it -> fragments -> nothing enters the
 *             ring any more (PP4) -> cache -> ring -> the pool's own count: 0: free
 *   let go    a page's word -> count: 0: free -> the heap
 *
 * The kernel looks each second whether a pool's pages are all back.  Here the step that
 * counts a page out says so to who makes it; until then the heap's ticks tell, once
 * a minute, of a pool that waits (page_pool_table.c).
 */
#include <errno.h>

#include "page_pool.h"

void pcpi_pool_free(struct pcpa_pool *pool)
{
	void *mapping = (char *)pool - PCPI_POOL_MAP_OFFSET;
	size_t bytes = pool->bytes;

	pcpi_pools_remove(&pool->heap->pools, pool);
	pcpi_sys->unmap(pool->ring.slots, pool->slots_bytes);
	pcpi_pool_ring_fini(&pool->ring);
	pcpi_sys->unmap(mapping, bytes);
}

int32_t pcpi_pool_let_go(struct pcpa_pool *pool, void **bufs, uint32_t n)
{
	struct pcpa_heap *heap = pool->heap;
	unsigned order = pool->order;
	uint32_t i, free = 0;
	uint64_t pfn;
	int32_t left;

	for (i = 0; i < n; i++) {
		pfn = pcpi_pool_pfn(pool, bufs[i]);
		if (pcpi_pool_page_leave(&pool->pages[pfn]))
			bufs[free++] = pcpi_pool_block(pool, pfn);
	}
	pcpi_pool_overdue(pool);
	left = pcpi_pool_count_give(&pool->count_out, n);
	if (left == 0)
		pcpi_pool_free(pool);
	pcpa_free_bulk_sized(heap, order, bufs, free);
	return left;
}

/* ---- References -------------------------------------------------------------- */

static struct pcpi_pool_page *ref_page(const struct pcpa_heap *heap,
				       const void *buf, uint64_t *pfn)
{
	/* relaxed: set before the child had a second thread. */
	if (!heap || pcpi_load_relaxed(&heap->forked))
		return NULL;
	return pcpi_pool_page_of(heap, buf, pfn);
}

PCPI_EXPORT int pcpa_pool_ref(struct pcpa_heap *heap, void *buf)
{
	struct pcpi_pool_page *p;
	uint64_t pfn;

	p = ref_page(heap, buf, &pfn);
	return p && pcpi_pool_page_ref(p) ? 0 : -EINVAL;
}

PCPI_EXPORT int pcpa_pool_unref(struct pcpa_heap *heap, void *buf)
{
	struct pcpi_pool_page *p;
	uint64_t pfn;

	p = ref_page(heap, buf, &pfn);
	switch (p ? pcpi_pool_page_unref(p) : PCPI_POOL_REFUSED) {
	case PCPI_POOL_REFUSED:
		return -EINVAL;
	case PCPI_POOL_ALONE:
		pcpa_free(heap, pcpi_space_addr(&heap->space, (uint32_t)pfn));
		return 0;
	case PCPI_POOL_SHARED:
		break;
	}
	return 0;
}

/* ---- The end --------------------------------------------------------------------- */

/* PP4; from now on it is told of. */
static void entry_close(struct pcpa_pool *pool)
{
	uint64_t now_ns = pcpi_sys->coarse_ns();

	pcpi_lock_take(&pool->ring.producer_lock);
	pool->ending = true;
	pcpi_lock_drop(&pool->ring.producer_lock);
	pcpi_pools_ending(&pool->heap->pools);
	pool->ending_ns = now_ns;
	if (pool->heap->verbosity > 0)
		/* release: pairs with page_pool_table.c's overdue_look(). */
		pcpi_store_release(&pool->warn_ns, now_ns + PCPI_POOL_WARN_NS);
}

/* The consumer's side is the destroyer's now. */
static void ring_empty(struct pcpa_pool *pool)
{
	void *bufs[PCPI_POOL_REFILL];
	uint32_t n;

	do {
		pcpi_lock_take(&pool->ring.consumer_lock);
		for (n = 0; n < PCPI_POOL_REFILL; n++) {
			bufs[n] = pcpi_pool_ring_consume(&pool->ring);
			if (!bufs[n])
				break;
		}
		pcpi_lock_drop(&pool->ring.consumer_lock);
		if (n > 0)
			pcpi_pool_let_go(pool, bufs, n);
	} while (n > 0);
}

PCPI_EXPORT void pcpa_pool_use(struct pcpa_pool *pool)
{
	/* relaxed: the caller has a claim. */
	pcpi_fetch_add_relaxed(&pool->claims, 1);
}

PCPI_EXPORT int pcpa_pool_destroy(struct pcpa_pool *pool)
{
	int32_t left;

	if (!pool)
		return 0;
	/* relaxed: set before the child had a second thread. */
	if (pcpi_load_relaxed(&pool->heap->forked))
		return -ENODEV;
	/* acquire/release: pairs with itself; the last comes after the others. */
	if (pcpi_fetch_add_acq_rel(&pool->claims, -1u) > 1)
		return -EBUSY;
	/* relaxed: the owner's side is over. */
	pcpi_store_relaxed(&pool->hit_owner, NULL);
	pcpi_store_relaxed(&pool->owner, PCPI_POOL_NOBODY);
	pcpi_pool_frag_end(pool);
	entry_close(pool);
	if (pool->count > 0)
		pcpi_pool_let_go(pool, pool->cache, pool->count);
	ring_empty(pool);
	left = pcpi_pool_count_give(&pool->count_out, 1);
	if (left == 0)
		pcpi_pool_free(pool);
	return left;
}
