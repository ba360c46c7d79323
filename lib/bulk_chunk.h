/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bulk_chunk.h - the moves of a whole bulk call that hits, with the mark; bulk.h
 * includes it once for each width.  Layer 5.
 *
 * The includer defines
 *   CHUNK(name)    the name of this width's function
 *   CHUNK_INLINE   how its functions are declared
 *   CONVERT(name)  the conversions of the width (convert.h, convert_wide.h)
 *
 * They are made where all n blocks lie in one piece in the ring, and the front has
 * none; else nothing is done, and bulk.c does it in pieces.
 */

/* Takes the n hottest blocks. */
CHUNK_INLINE bool CHUNK(pop)(const struct pcpi_hot *hot, struct pcpi_cache *c,
			     unsigned order, void **blocks, uint32_t n)
{
	struct pcpi_pcp_list *list = &c->list[order];
	struct pcpi_range range = pcpi_bulk_range(hot, c);
	uint32_t head, end;

	__asm__("" : "+r"(list)); /* keeps the address, as in pcpi_hot_push() */
	if (!pcpi_mark_enter(c))
		return false;
	head = list->ring.head;
	end = ((head - 1) & list->ring.mask) + 1;
	if (pcpi_unlikely(pcpi_min(head - list->ring.tail, end) < n) ||
	    pcpi_unlikely(pcpi_cache_front_len(c, 0))) {
		pcpi_mark_leave(c);
		return false;
	}
	CONVERT(to_addrs)(&range, list->ring.slots + (end - n), blocks, n);
	/* relaxed: the mark, C1. */
	pcpi_store_relaxed(&list->ring.head, head - n);
	pcpi_counter_add(&list->allocs, n);
	pcpi_mark_leave(c);
	return true;
}

/* Converts into the free slots behind the ring's hot end, and makes them part of
 * it when all were good: U2.  A slot stays for the front, which the next to enter
 * tucks in, and one for a handler's hit, which then sees the limit. */
CHUNK_INLINE bool CHUNK(push)(const struct pcpi_hot *hot, struct pcpi_cache *c,
			      unsigned order, bool sized, void *const *blocks,
			      uint32_t n)
{
	struct pcpi_ring *ring = &c->list[order].ring;
	struct pcpi_range range = pcpi_bulk_range(hot, c);
	uint32_t *slots, head, pos, size;
	bool ok;

	__asm__("" : "+r"(ring)); /* keeps the address, as in pcpi_hot_push() */
	if (!pcpi_mark_enter(c))
		return false;
	head = ring->head;
	size = ring->mask + 1;
	pos = head & ring->mask;
	slots = ring->slots + pos;
	ok = pcpi_likely(head - ring->tail + n + 2 <= size) &&
	     pcpi_likely(pos + n <= size) &&
	     CONVERT(to_pfns)(&range, blocks, slots, n) &&
	     (sized || CONVERT(single)(hot->orders, slots, n));
	if (pcpi_likely(ok))
		/* relaxed: the mark, C1. */
		pcpi_store_relaxed(&ring->head, head + n);
	pcpi_mark_leave(c);
	return ok;
}

#undef CHUNK
#undef CHUNK_INLINE
#undef CONVERT
