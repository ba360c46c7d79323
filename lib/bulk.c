/* SPDX-License-Identifier: BSD-2-Clause */
/* bulk.c - see bulk.h. */
#include "bulk.h"

#include "nest.h"

/* The front's block, and of the n hottest the part that lies in one piece at the
 * hot end. */
static size_t pop_piece(const struct pcpi_hot *hot, struct pcpi_cache *c,
			  unsigned order, void **blocks, uint32_t n)
{
	struct pcpi_range range = pcpi_bulk_range(hot, c);
	struct pcpi_pcp_list *list = &c->list[order];
	struct pcpi_ring *ring = &list->ring;
	bool look;
	uint32_t end;

	if (!pcpi_mark_enter(c))
		return 0;
	pcpi_cache_tuck(c);
	end = ((ring->head - 1) & ring->mask) + 1;
	n = pcpi_min(pcpi_min(n, pcpi_ring_len(ring)), end);
	pcpi_convert_to_addrs(&range, hot->wide_span > 0,
			      ring->slots + (end - n), blocks, n);
	/* relaxed: the mark, C1. */
	pcpi_store_relaxed(&ring->head, ring->head - n);
	look = pcpi_allocs_add(&list->allocs, n);
	pcpi_mark_leave(c);
	return pcpi_unlikely(look) ? pcpi_hit_look_bulk(c, n) : n;
}

size_t pcpi_bulk_pop(const struct pcpi_hot *hot, unsigned order, void **blocks,
		     size_t n)
{
	struct pcpi_cache *c;
	size_t got = 0, more;

	while (got < n && (c = pcpi_hot_cache(hot))) {
		more = pop_piece(hot, c, order, blocks + got,
				 (uint32_t)pcpi_min(n - got,
						    (size_t)PCPI_BULK_CHUNK));
		if (more == 0)
			break;
		got += more;
	}
	return got;
}

/* Converts into the free slots behind the hot end as far as they lie in one piece,
 * and makes them part of the ring when all were good: U2. */
static uint32_t push_piece(const struct pcpi_hot *hot, struct pcpi_cache *c,
			   unsigned order, bool sized, void *const *blocks,
			   uint32_t n)
{
	struct pcpi_range range = pcpi_bulk_range(hot, c);
	struct pcpi_ring *ring = &c->list[order].ring;
	bool wide = hot->wide_span > 0, ok;
	uint32_t *slots, run, room;

	if (!pcpi_mark_enter(c))
		return 0;
	/* A slot stays for the front, which the next to enter tucks in, and one
	 * for a handler's hit, which then sees the limit. */
	room = pcpi_ring_room(ring);
	slots = pcpi_ring_run(ring, ring->head, pcpi_min(n, room - pcpi_min(room, 2u)),
			      &run);
	ok = pcpi_convert_to_pfns(&range, wide, blocks, slots, run) &&
	     (sized || pcpi_convert_single(&range, hot->orders, blocks, run));
	if (!ok)
		run = 0;
	/* relaxed: the mark, C1. */
	pcpi_store_relaxed(&ring->head, ring->head + run);
	pcpi_mark_leave(c);
	return run;
}

/* The thread's cache with room for a whole chunk and the front, however long the
 * call; or NULL. */
static struct pcpi_cache *roomy_cache(const struct pcpi_hot *hot, unsigned order)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);

	if (!c || pcpi_ring_room(&c->list[order].ring) > PCPI_BULK_CHUNK)
		return c;
	pcpi_hit_trim(c, order);
	return pcpi_hot_cache(hot); /* HO3 */
}

size_t pcpi_bulk_push(const struct pcpi_hot *hot, unsigned order, bool sized,
		      void *const *blocks, size_t n)
{
	struct pcpi_cache *c;
	size_t done = 0;
	uint32_t more;

	while (done < n && (c = roomy_cache(hot, order))) {
		more = push_piece(hot, c, order, sized, blocks + done,
				  (uint32_t)pcpi_min(n - done,
						     (size_t)PCPI_BULK_CHUNK));
		if (more == 0)
			break;
		done += more;
	}
	return done;
}

/* ---- Blocks of other nodes --------------------------------------------------- */

/* The zone of an address, where it isn't the cache's own. */
static struct pcpi_zone *other_zone(const struct pcpi_hot *hot,
				    const struct pcpi_cache *c, const void *block)
{
	const struct pcpi_pcp_env *env = c->env;
	const struct pcpi_zone *last = &env->zones[env->nr_zones - 1];
	uint64_t off = (uint64_t)((uintptr_t)block - (uintptr_t)hot->base);
	uint64_t pfn = off >> hot->page_shift;
	struct pcpi_zone *z;

	if (pfn >= (uint64_t)last->first_pfn + last->nr_pfns)
		return NULL;
	z = pcpi_zone_of(env, (uint32_t)pfn);
	return z == c->zone ? NULL : z;
}

/* The same order in each byte. */
static bool is_of_order(const struct pcpi_hot *hot, unsigned order,
			const uint32_t *pfns, uint32_t n)
{
	unsigned other = 0;

	for (uint32_t i = 0; i < n; i++)
		other |= pcpi_page_read(hot->orders, pfns[i]) ^ (order + 1);
	return other == 0;
}

static bool convert(const struct pcpi_hot *hot, const struct pcpi_zone *z,
		    unsigned order, void *const *blocks, uint32_t *pfns,
		    uint32_t n)
{
	struct pcpi_range range = {
		.base = hot->base,
		.start = hot->base + ((size_t)z->first_pfn << hot->page_shift),
		.page_shift = hot->page_shift,
		.first_pfn = z->first_pfn,
		.nr_pfns = z->nr_pfns,
	};

	return pcpi_convert_to_pfns(&range, hot->wide_span > 0, blocks, pfns,
				    n) &&
	       is_of_order(hot, order, pfns, n);
}

/* Of blocks[0..n-1] all, or those before the first that is of another zone or order,
 * or bad. */
static uint32_t convert_some(const struct pcpi_hot *hot,
			     const struct pcpi_zone *z, unsigned order,
			     void *const *blocks, uint32_t *pfns, uint32_t n)
{
	uint32_t i = 0;

	if (n > 1 && convert(hot, z, order, blocks, pfns, n))
		return n;
	while (i < n && convert(hot, z, order, blocks + i, pfns + i, 1))
		i++;
	return i;
}

static uint32_t push_home(const struct pcpi_hot *hot, struct pcpi_cache *c,
			  struct pcpi_zone *z, unsigned order,
			  void *const *blocks, uint32_t n)
{
	uint32_t pfns[PCPI_CHUNK];

	n = convert_some(hot, z, order, blocks, pfns, n);
	if (n == 0)
		return 0;
	if (pcpi_cache_push_remote(c, z, order, pfns, n))
		pcpi_outer_look(c);
	pcpi_watch_zone(&c->env->watch, z);
	return n;
}

/* Of its first page. */
static unsigned order_of(const struct pcpi_hot *hot, const void *block)
{
	uintptr_t off = (uintptr_t)block - (uintptr_t)hot->base;

	return pcpi_page_read(hot->orders, off >> hot->page_shift) - 1u;
}

size_t pcpi_bulk_push_home(const struct pcpi_hot *hot, unsigned order, bool sized,
			   void *const *blocks, size_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	struct pcpi_zone *z;
	size_t done = 0;

	if (!c || !c->outbox || c->env->watched)
		return 0;
	z = other_zone(hot, c, blocks[0]);
	if (!z)
		return 0;
	if (!sized)
		order = order_of(hot, blocks[0]);
	/* relaxed: a claim that comes now is found at the mark. */
	if (order >= PCPI_PCP_ORDERS || pcpi_load_relaxed(&c->claim) != 0)
		return 0;
	if (pcpi_nest_enter()) {
		pcpi_deferred_look(c->env);
		done = push_home(hot, c, z, order, blocks,
				 (uint32_t)pcpi_min(n, (size_t)PCPI_CHUNK));
	}
	pcpi_nest_leave();
	return done;
}
