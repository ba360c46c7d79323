/* SPDX-License-Identifier: BSD-2-Clause */
/* bulk.c - see bulk.h. */
#include "bulk.h"

/* The front's block, and of the n hottest the part that lies in one piece at the
 * hot end. */
static uint32_t pop_piece(const struct pcpi_hot *hot, struct pcpi_cache *c,
			  unsigned order, void **blocks, uint32_t n)
{
	struct pcpi_range range = pcpi_bulk_range(hot, c);
	struct pcpi_pcp_list *list = &c->list[order];
	struct pcpi_ring *ring = &list->ring;
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
	pcpi_counter_add(&list->allocs, n);
	pcpi_mark_leave(c);
	return n;
}

size_t pcpi_bulk_pop(const struct pcpi_hot *hot, unsigned order, void **blocks,
		     size_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	size_t got = 0;
	uint32_t more;

	while (c && got < n) {
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
	/* As in bulk_chunk.inc, two slots stay. */
	room = pcpi_ring_room(ring);
	slots = pcpi_ring_run(ring, ring->head, pcpi_min(n, room - pcpi_min(room, 2u)),
			      &run);
	ok = pcpi_convert_to_pfns(&range, wide, blocks, slots, run) &&
	     (sized || pcpi_convert_single(hot->orders, wide, slots, run));
	if (!ok)
		run = 0;
	/* relaxed: the mark, C1. */
	pcpi_store_relaxed(&ring->head, ring->head + run);
	pcpi_mark_leave(c);
	return run;
}

size_t pcpi_bulk_push(const struct pcpi_hot *hot, unsigned order, bool sized,
		      void *const *blocks, size_t n)
{
	struct pcpi_cache *c = pcpi_hot_cache(hot);
	size_t done = 0;
	uint32_t more;

	while (c && done < n) {
		/* Room for a whole chunk and the front, however long the call. */
		if (pcpi_ring_room(&c->list[order].ring) <= PCPI_BULK_CHUNK)
			pcpi_cache_trim_hit(c, order);
		more = push_piece(hot, c, order, sized, blocks + done,
				  (uint32_t)pcpi_min(n - done,
						     (size_t)PCPI_BULK_CHUNK));
		if (more == 0)
			break;
		done += more;
	}
	return done;
}
