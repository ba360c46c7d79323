/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool_frag.c - parts of pages; see page_pool.h.
 *
 * The page that parts come off has BIAS users from its first part on, so that no put
 * can bring it to 0; frag_users counts the parts.  When the next part doesn't fit,
 * the BIAS less these are taken off: what is left are the parts that are out, of
 * which the last one to be put finds itself alone.  Where none is, the page is
 * used again at once.
 */
#include <errno.h>

#include "page_pool.h"

/* Takes back what the page waits for beside its parts: true: nobody has any. */
static bool bias_drop(struct pcpa_pool *pool)
{
	uint64_t pfn = pcpi_pool_pfn(pool, pool->frag_page);

	return pcpi_pool_page_unuse(&pool->pages[pfn],
				    PCPI_POOL_BIAS - (int64_t)pool->frag_users);
}

/* The page has no room: whether it is empty, and may be used again. */
static bool page_again(struct pcpa_pool *pool)
{
	void *page = pool->frag_page;

	if (!bias_drop(pool))
		return false;
	if (!pcpi_pool_recyclable(pool, pcpi_pool_pfn(pool, page))) {
		pcpi_pool_let_go(pool, &page, 1);
		return false;
	}
	pcpi_counter_add(&pool->recycle_cached, 1);
	pcpi_counter_add(&pool->alloc_fast, 1);
	return true;
}

/* A page whose first part is cut off. */
static void *page_begin(struct pcpa_pool *pool)
{
	uint64_t pfn;

	if (!pool->frag_page || !page_again(pool))
		pool->frag_page = pcpi_pool_take(pool);
	pool->frag_offset = pool->frag_end = 0;
	if (!pool->frag_page)
		return NULL;
	pfn = pcpi_pool_pfn(pool, pool->frag_page);
	pcpi_pool_page_bias(&pool->pages[pfn]);
	pool->frag_page = pcpi_pool_block(pool, pfn);
	pool->frag_users = 0;
	pool->frag_end = pool->page_bytes;
	return pool->frag_page;
}

void pcpi_pool_frag_end(struct pcpa_pool *pool)
{
	void *page = pool->frag_page;

	if (page && bias_drop(pool))
		pcpi_pool_let_go(pool, &page, 1);
	pool->frag_page = NULL;
	pool->frag_offset = pool->frag_end = 0;
}

/* A part of so many bytes, rounded, of the page that has room for it. */
PCPI_INLINE void *part_cut(struct pcpa_pool *pool, size_t bytes, size_t *offset)
{
	size_t at = pool->frag_offset;

	pool->frag_offset = at + bytes;
	pool->frag_users++;
	if (offset)
		*offset = at;
	return (char *)pool->frag_page + at;
}

static PCPI_NOINLINE void *frag_slow(struct pcpa_pool *pool, size_t bytes,
				     size_t *offset)
{
	int err = pcpi_pool_begin(pool);

	if (!err && (bytes == 0 || bytes > pool->page_bytes))
		err = -EINVAL;
	if (err) {
		errno = -err;
		return NULL;
	}
	bytes = (bytes + pool->align_bytes - 1) & ~(pool->align_bytes - 1);
	if (!pool->frag_page || pool->frag_offset + bytes > pool->page_bytes)
		if (!page_begin(pool))
			return NULL;
	return part_cut(pool, bytes, offset);
}

PCPI_EXPORT PCPI_HOT void *pcpa_pool_get_frag(struct pcpa_pool *pool,
					      size_t bytes, size_t *offset)
{
	size_t mask;

	/* relaxed: equal only if this thread has stored it. */
	if (pcpi_likely(pool != NULL) &&
	    pcpi_likely(pcpi_load_relaxed(&pool->hit_owner) ==
			pcpi_pool_self())) {
		mask = pool->align_bytes - 1;
		/* 0 bytes are too many here.  frag_end is 0 without a page, as is frag_offset. */
		if (pcpi_likely(bytes - 1 < pool->frag_end - pool->frag_offset) &&
		    pcpi_likely(((bytes + mask) & ~mask) <=
				pool->frag_end - pool->frag_offset))
			return part_cut(pool, (bytes + mask) & ~mask, offset);
	}
	return frag_slow(pool, bytes, offset);
}
