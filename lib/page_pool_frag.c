/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool_frag.c - parts of pages; see page_pool.h.
 *
 * The page that parts come off has BIAS users from its first part on, so that no put
 * can bring it to 0; frag_users counts the parts.  When the next part doesn't fit,
 * the BIAS less these are taken off: what is left are the parts that are out, of
 * which the last one to be put finds itself alone.  Where none is, the page is
 * used again at once.
 *
 * That is two changes of a page's count for two packets.  An atomic step costs more than
 * all the rest, and where one thread gets and puts nobody else counts: PP6.
 */
#include <errno.h>

#include "page_pool.h"

/* ---- Who counts them: PP6 ---------------------------------------------------- */

/* So long another thread waits for the owner's mark: one that was cancelled inside
 * never clears it, and one of lower priority may get no processor to do so.  If that
 * one goes on later, a page's users may stay too many, and it is out for good. */
#define PARTS_WAIT_NS UINT64_C(100000000)

/* Before another thread than the owner counts: once a pool, by all that come
 * meanwhile. */
static PCPI_COLD void parts_share(struct pcpa_pool *pool)
{
	uint64_t deadline = pcpi_sys->clock_ns() + PARTS_WAIT_NS;
	uint32_t owners = PCPI_PARTS_OWNERS;

	/* acquire/release: pairs with pcpi_pool_owner_unuse(). */
	(void)pcpi_cas_acq_rel(&pool->parts, &owners, PCPI_PARTS_CLAIMED);
	/* It is refused where memory is short for a moment, or a filter came since:
	 * the time is enough for a store to be seen, too. */
	while (pcpi_sys->membarrier() != 0 && pcpi_sys->clock_ns() < deadline)
		pcpi_sys->yield();
	/* acquire: pairs with pcpi_pool_owner_unuse(). */
	while (pcpi_load_acquire(&pool->counting) && pcpi_sys->clock_ns() < deadline)
		pcpi_sys->yield();
	/* release: pairs with pcpi_pool_unuse(). */
	pcpi_store_release(&pool->parts, PCPI_PARTS_SHARED);
}

bool pcpi_pool_unuse(struct pcpa_pool *pool, struct pcpi_pool_page *p, int64_t n)
{
	/* acquire: pairs with parts_share().  relaxed: n: these are the last, and nobody
	 * else is left who writes it. */
	if (pcpi_unlikely(pcpi_load_acquire(&pool->parts) != PCPI_PARTS_SHARED) &&
	    pcpi_load_relaxed(&p->users) != n) {
		if (pcpi_pool_owned(pool))
			return pcpi_pool_owner_unuse(pool, p, n);
		parts_share(pool);
	}
	return pcpi_pool_page_unuse(p, n);
}

/* ---- The page that they come off ---------------------------------------------- */

/* What the page waits for beside its parts. */
PCPI_INLINE int64_t bias_left(const struct pcpa_pool *pool)
{
	return PCPI_POOL_BIAS - (int64_t)pool->frag_users;
}

/* The page has no room, and is empty: whether it may be used again. */
static PCPI_NOINLINE bool page_again(struct pcpa_pool *pool)
{
	void *page = pool->frag_page;

	if (!pcpi_pool_recyclable(pool, pcpi_pool_pfn(pool, page))) {
		pcpi_pool_let_go(pool, &page, 1);
		return false;
	}
	pcpi_counter_add(&pool->recycle_cached, 1);
	pcpi_counter_add(&pool->alloc_fast, 1);
	return true;
}

/* A page off which nothing is cut, or none. */
static bool page_begin(struct pcpa_pool *pool)
{
	uint64_t pfn;

	if (!pool->frag_page ||
	    pcpi_likely(!pcpi_pool_owner_unuse(pool, pool->frag_counts,
					       bias_left(pool))) ||
	    !page_again(pool))
		pool->frag_page = pcpi_pool_take(pool);
	pool->frag_offset = pool->frag_end = 0;
	if (!pool->frag_page)
		return false;
	pfn = pcpi_pool_pfn(pool, pool->frag_page);
	pool->frag_page = pcpi_pool_block(pool, pfn);
	pool->frag_counts = &pool->pages[pfn];
	pcpi_pool_page_bias(pool->frag_counts);
	pool->frag_users = 0;
	pool->frag_end = pool->page_bytes;
	return true;
}

void pcpi_pool_frag_end(struct pcpa_pool *pool)
{
	void *page = pool->frag_page;

	if (page && pcpi_pool_unuse(pool, pool->frag_counts, bias_left(pool)))
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

/* The last byte of a part that begins at 0; none of 0 bytes ends in the page. */
PCPI_INLINE size_t part_last(const struct pcpa_pool *pool, size_t bytes)
{
	return (bytes - 1) | (pool->align_bytes - 1);
}

/* frag_end is 0 without a page, as is frag_offset. */
PCPI_INLINE bool has_room(const struct pcpa_pool *pool, size_t last)
{
	return last < pool->frag_end - pool->frag_offset;
}

/* The first part of the next page. */
static PCPI_NOINLINE PCPI_HOT void *frag_next(struct pcpa_pool *pool, size_t last,
					      size_t *offset)
{
	return page_begin(pool) ? part_cut(pool, last + 1, offset) : NULL;
}

static PCPI_NOINLINE void *frag_slow(struct pcpa_pool *pool, size_t bytes,
				     size_t *offset)
{
	int err = pcpi_pool_begin(pool);
	size_t last;

	if (!err && part_last(pool, bytes) >= pool->page_bytes)
		err = -EINVAL;
	if (err) {
		errno = -err;
		return NULL;
	}
	last = part_last(pool, bytes);
	return has_room(pool, last) ? part_cut(pool, last + 1, offset)
				    : frag_next(pool, last, offset);
}

PCPI_EXPORT PCPI_HOT void *pcpa_pool_get_frag(struct pcpa_pool *pool,
					      size_t bytes, size_t *offset)
{
	size_t last;

	/* relaxed: equal only if this thread has stored it. */
	if (pcpi_likely(pool != NULL) &&
	    pcpi_likely(pcpi_load_relaxed(&pool->hit_owner) ==
			pcpi_pool_self())) {
		last = part_last(pool, bytes);
		if (pcpi_likely(has_room(pool, last)))
			return part_cut(pool, last + 1, offset);
		if (pcpi_likely(last < pool->page_bytes))
			return frag_next(pool, last, offset);
	}
	return frag_slow(pool, bytes, offset);
}
