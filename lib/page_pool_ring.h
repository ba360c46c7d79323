/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool_ring.h - the ring of a packet pool: pointers, NULL where there is
 * none, as in the kernel's ptr_ring.  Layer 2.
 *
 * Owns: the rules of producing and consuming, and the two locks.  Does not own the
 * slots' memory.
 *
 *     slots   . . 0 0 0 0 x x x x p p p p p 0 0 . .
 *                         ^tail   ^head     ^producer
 *     x: consumed, not yet NULL; p: to be consumed
 *
 * Each side has an index of its own that the other never reads: what is full or
 * empty is seen in the slots.  So a producer and a consumer that are far apart
 * share no line but that of a slot.
 *
 * PR1  Full: slots[producer] is not NULL.  Empty: slots[head] is NULL.
 * PR2  Consumed slots become NULL a batch at a time, from the last to the first, so
 *      that a producer at the first one begins when all are free: `batch` of them,
 *      two cache lines' worth, or one where that is more than half of the ring; and
 *      what is left at the end of the slots.
 * PR3  tail <= head < size, and tail is 0 after the end.
 *
 * Concurrency: producers under PRODUCER.  Consumers: one thread that no other call
 * of this side runs beside, with no lock; or any under CONSUMER, where that thread
 * is out.  Resize and unconsume take CONSUMER, then PRODUCER, beside producers.
 * Cost: a store each; a batch of stores for 16 consumed.
 * Failure: none.  Proved by tests/unit/test_page_pool_ring.c.
 */
#ifndef PCPI_PAGE_POOL_RING_H
#define PCPI_PAGE_POOL_RING_H

#include "atomics.h"
#include "base.h"
#include "lock.h"

/* Two lines of slots. */
#define PCPI_POOL_RING_BATCH                                                    \
	((uint32_t)(2 * PCPI_CACHELINE / sizeof(void *)))

struct pcpi_pool_ring {
	struct pcpi_lock producer_lock PCPI_ALIGNED(PCPI_CACHELINE);
	uint32_t producer; /* producer_lock */

	struct pcpi_lock consumer_lock PCPI_ALIGNED(PCPI_CACHELINE);
	uint32_t head, tail; /* the consumer's */

	/* Both sides'; changed with both locks. */
	void **slots PCPI_ALIGNED(PCPI_CACHELINE); /* a: each of slots[size] */
	uint32_t size;
	uint32_t batch; /* PR2 */
};

/* slots[size], all NULL; size > 0. */
void pcpi_pool_ring_init(struct pcpi_pool_ring *r, void **slots, uint32_t size);
void pcpi_pool_ring_fini(struct pcpi_pool_ring *r);

/* With the producer's lock: false where the ring is full. */
PCPI_INLINE bool pcpi_pool_ring_produce(struct pcpi_pool_ring *r, void *p)
{
	/* relaxed: that it is free says nothing of other memory. */
	if (pcpi_load_relaxed(&r->slots[r->producer]))
		return false; /* PR1 */
	/* release: pairs with pcpi_pool_ring_peek(). */
	pcpi_store_release(&r->slots[r->producer], p);
	r->producer = r->producer + 1 < r->size ? r->producer + 1 : 0;
	return true;
}

/* The consumer: what comes next, or NULL. */
PCPI_INLINE void *pcpi_pool_ring_peek(const struct pcpi_pool_ring *r)
{
	/* acquire: pairs with pcpi_pool_ring_produce(). */
	return pcpi_load_acquire(&r->slots[r->head]);
}

/* Slots [tail, end) become NULL, backwards. */
PCPI_INLINE void pcpi_pool_ring_clear(struct pcpi_pool_ring *r, uint32_t end)
{
	while (end > r->tail)
		/* relaxed: the consumer has read it, and gives nothing on. */
		pcpi_store_relaxed(&r->slots[--end], NULL);
}

/* The consumer: takes what comes next, or NULL. */
PCPI_INLINE void *pcpi_pool_ring_consume(struct pcpi_pool_ring *r)
{
	void *p = pcpi_pool_ring_peek(r);
	uint32_t head = r->head + 1;

	if (!p)
		return NULL;
	if (head - r->tail >= r->batch || head >= r->size) {
		pcpi_pool_ring_clear(r, head); /* PR2 */
		r->tail = head;
	}
	if (head >= r->size)
		head = r->tail = 0; /* PR3 */
	r->head = head;
	return p;
}

/* The consumer: puts n back as if they had not been consumed, p[0] first; from
 * p[n - 1] on until the ring is full.  Returns how many are left: p[0] and so on. */
uint32_t pcpi_pool_ring_unconsume(struct pcpi_pool_ring *r, void **p, uint32_t n);

/* The consumer: moves to slots[size], all NULL; what is left, because there is no
 * room, begins at *old, the slots until now.  Returns how many that are. */
uint32_t pcpi_pool_ring_resize(struct pcpi_pool_ring *r, void **slots,
			       uint32_t size, void ***old);

#endif
