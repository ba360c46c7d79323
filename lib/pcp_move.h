/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp_move.h - the four moves of the hot path between a caller and a cache.
 * Layer 4.
 *
 *   front_out   takes the block out of the front    front = NULL
 *   front_in    puts one there                      front = block
 *   pop         takes the ring's last               head = head - 1
 *   push        puts one behind it                  head = head + 1
 *
 * Each is made in one of two ways, which the caller picks at compile time
 * (`by_mark`) and the cache at run time (the byte by_mark):
 *
 *   as a restartable sequence (rseq.h): test of `state`, the move, whose last
 *     store commits.  A drainer cuts it short; nobody waits for it, and a signal
 *     handler finds the cache as before or after it.
 *   under the mark: set busy, test claim, the move, clear busy.  A drainer waits.
 *
 * MV1  A move that returns false has changed nothing.
 * MV2  `state` is zero iff a sequence may go on: no mark, which only this thread
 *     can have set (a signal handler finds it), no claim, and sequences work.
 * MV3  A move that returns true counts where the caller counts: an allocation is
 *     counted after its commit, so a drainer or a handler may find one too few.
 *
 * Concurrency: see pcp.h; docs/memory-order.md.  Cost: pcp_hot.h.
 * Proved by tests/unit/test_pcp_move.c, tests/conc/.
 */
#ifndef PCPI_PCP_MOVE_H
#define PCPI_PCP_MOVE_H

#include "pcp.h"
#include "rseq.h"

/* ---- The mark --------------------------------------------------------------- */

/* Sets the mark; false with the mark clear when the slow way must be taken. */
PCPI_INLINE bool pcpi_mark_enter(struct pcpi_cache *c)
{
	/* Nobody else writes it; set means that we interrupted ourselves. */
	if (pcpi_unlikely(c->busy))
		return false;
	/* relaxed: ordered by the drainer's membarrier. */
	pcpi_store_relaxed(&c->busy, 1);
	pcpi_compiler_barrier();
	/* acquire: pairs with pcpi_cache_claim_end(). */
	if (pcpi_likely(pcpi_zero_acquire(&c->claim)))
		return true;
	/* release: pairs with pcpi_cache_claimed_quiet(). */
	pcpi_store_release(&c->busy, 0);
	return false;
}

PCPI_INLINE void pcpi_mark_leave(struct pcpi_cache *c)
{
	/* release: pairs with pcpi_cache_claimed_quiet(). */
	pcpi_store_release(&c->busy, 0);
}

/* ---- Moves under the mark ------------------------------------------------------ */

/* relaxed (all of this section): C1, C5; statistics read late. */
PCPI_INLINE bool pcpi_marked_front(struct pcpi_cache *c, void *from, void *to)
{
	bool is;

	if (!pcpi_mark_enter(c))
		return false;
	is = pcpi_load_relaxed(&c->front) == from; /* relaxed: C1 */
	if (is)
		pcpi_store_relaxed(&c->front, to);
	pcpi_mark_leave(c);
	return is;
}

PCPI_INLINE bool pcpi_marked_pop(struct pcpi_cache *c, struct pcpi_ring *ring,
				 uint32_t *pfn)
{
	uint32_t head;
	bool some;

	if (!pcpi_mark_enter(c))
		return false;
	head = ring->head;
	some = head != ring->tail;
	if (pcpi_likely(some)) {
		*pfn = ring->slots[--head & ring->mask];
		pcpi_store_relaxed(&ring->head, head); /* relaxed: C1, C5 */
	}
	pcpi_mark_leave(c);
	return some;
}

PCPI_INLINE bool pcpi_marked_push(struct pcpi_cache *c, struct pcpi_ring *ring,
				  uint32_t pfn, uint32_t *head)
{
	if (!pcpi_mark_enter(c))
		return false;
	*head = ring->head;
	ring->slots[(*head)++ & ring->mask] = pfn;
	pcpi_store_relaxed(&ring->head, *head); /* relaxed: C1, C5 */
	pcpi_mark_leave(c);
	return true;
}

/* ---- Moves as sequences ---------------------------------------------------------- */

#if PCPI_RSEQ

/* What is read of the cache is read inside: MV2 must hold for it. */
#define PCPI_MOVE_BEGIN PCPI_RSEQ_BEGIN "cmpl $0, %[state]\n\tjne %l[out]\n\t"

#define PCPI_MOVE_CACHE(c) PCPI_RSEQ_OPERAND, [state] "m"((c)->state)

/* One register, where memory operands would take two. */
#define PCPI_MOVE_RING(ring)                                                   \
	[ring] "r"(ring), [rhead] "i"(offsetof(struct pcpi_ring, head)),       \
		[rtail] "i"(offsetof(struct pcpi_ring, tail)),                 \
		[rmask] "i"(offsetof(struct pcpi_ring, mask)),                 \
		[rslots] "i"(offsetof(struct pcpi_ring, slots))

PCPI_INLINE bool pcpi_section_front_out(struct pcpi_cache *c, void *block)
{
	void *tmp, *at;

	__asm__ __volatile__ goto(PCPI_MOVE_BEGIN
				  "cmpq %[block], %[front]\n\t"
				  "jne %l[out]\n\t"
				  "movq $0, %[front]"
				  PCPI_RSEQ_END
				  : [tmp] "=&r"(tmp), [at] "=&r"(at)
				  : PCPI_MOVE_CACHE(c), [front] "m"(c->front), [block] "r"(block)
				  : "memory", "cc"
				  : out);
	return true;
out:
	return false;
}

PCPI_INLINE bool pcpi_section_front_in(struct pcpi_cache *c, void *block)
{
	void *tmp, *at;

	__asm__ __volatile__ goto(PCPI_MOVE_BEGIN
				  "cmpq $0, %[front]\n\t"
				  "jne %l[out]\n\t"
				  "movq %[block], %[front]"
				  PCPI_RSEQ_END
				  : [tmp] "=&r"(tmp), [at] "=&r"(at)
				  : PCPI_MOVE_CACHE(c), [front] "m"(c->front), [block] "r"(block)
				  : "memory", "cc"
				  : out);
	return true;
out:
	return false;
}

PCPI_INLINE bool pcpi_section_pop(struct pcpi_cache *c, struct pcpi_ring *ring,
				  uint32_t *pfn)
{
	uint32_t head;
	void *tmp, *at;

	__asm__ __volatile__ goto(PCPI_MOVE_BEGIN
				  "movl %c[rhead](%[ring]), %[head]\n\t"
				  "cmpl %c[rtail](%[ring]), %[head]\n\t"
				  "je %l[out]\n\t"
				  "subl $1, %[head]\n\t"
				  "movl %c[rmask](%[ring]), %k[at]\n\t"
				  "andl %[head], %k[at]\n\t"
				  "movq %c[rslots](%[ring]), %[tmp]\n\t"
				  "movl (%[tmp],%q[at],4), %k[at]\n\t"
				  "movl %[head], %c[rhead](%[ring])"
				  PCPI_RSEQ_END
				  : [tmp] "=&r"(tmp), [head] "=&r"(head), [at] "=&r"(at)
				  : PCPI_MOVE_CACHE(c), PCPI_MOVE_RING(ring)
				  : "memory", "cc"
				  : out);
	*pfn = (uint32_t)(uintptr_t)at;
	return true;
out:
	return false;
}

/* The slot is outside of the ring until the commit: R2. */
PCPI_INLINE bool pcpi_section_push(struct pcpi_cache *c, struct pcpi_ring *ring,
				   uint32_t pfn, uint32_t *head)
{
	uint32_t next;
	void *tmp, *at;

	__asm__ __volatile__ goto(PCPI_MOVE_BEGIN
				  "movl %c[rhead](%[ring]), %[next]\n\t"
				  "movl %c[rmask](%[ring]), %k[at]\n\t"
				  "andl %[next], %k[at]\n\t"
				  "addl $1, %[next]\n\t"
				  "movq %c[rslots](%[ring]), %[tmp]\n\t"
				  "movl %[pfn], (%[tmp],%q[at],4)\n\t"
				  "movl %[next], %c[rhead](%[ring])"
				  PCPI_RSEQ_END
				  : [tmp] "=&r"(tmp), [next] "=&r"(next), [at] "=&r"(at)
				  : PCPI_MOVE_CACHE(c), PCPI_MOVE_RING(ring), [pfn] "r"(pfn)
				  : "memory", "cc"
				  : out);
	*head = next;
	return true;
out:
	return false;
}

#else

#define pcpi_section_front_out(c, block) pcpi_marked_front((c), (block), NULL)
#define pcpi_section_front_in(c, block) pcpi_marked_front((c), NULL, (block))
#define pcpi_section_pop(c, ring, pfn) pcpi_marked_pop((c), (ring), (pfn))
#define pcpi_section_push(c, ring, pfn, head) pcpi_marked_push((c), (ring), (pfn), (head))

#endif

/* ---- Either ------------------------------------------------------------------------ */

/* Takes `block`, which was seen there, out of the front. */
PCPI_INLINE bool pcpi_move_front_out(struct pcpi_cache *c, void *block,
				     bool by_mark)
{
	return by_mark ? pcpi_marked_front(c, block, NULL)
		       : pcpi_section_front_out(c, block);
}

/* Puts a block into the front, which was seen empty. */
PCPI_INLINE bool pcpi_move_front_in(struct pcpi_cache *c, void *block,
				    bool by_mark)
{
	return by_mark ? pcpi_marked_front(c, NULL, block)
		       : pcpi_section_front_in(c, block);
}

/* False also where the ring is empty. */
PCPI_INLINE bool pcpi_move_pop(struct pcpi_cache *c, struct pcpi_ring *ring,
			       uint32_t *pfn, bool by_mark)
{
	return by_mark ? pcpi_marked_pop(c, ring, pfn)
		       : pcpi_section_pop(c, ring, pfn);
}

/* Requires room, which the ring's limit sees to (PCPI_RING_MARGIN); *head: the
 * ring's new one. */
PCPI_INLINE bool pcpi_move_push(struct pcpi_cache *c, struct pcpi_ring *ring,
				uint32_t pfn, uint32_t *head, bool by_mark)
{
	return by_mark ? pcpi_marked_push(c, ring, pfn, head)
		       : pcpi_section_push(c, ring, pfn, head);
}

#endif
