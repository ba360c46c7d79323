/* SPDX-License-Identifier: BSD-2-Clause */
/* page_pool_ring.c - see page_pool_ring.h. */
#include "page_pool_ring.h"

static void size_set(struct pcpi_pool_ring *r, void **slots, uint32_t size)
{
	r->slots = slots;
	r->size = size;
	r->batch = PCPI_POOL_RING_BATCH > size / 2 ? 1 : PCPI_POOL_RING_BATCH;
	r->head = r->tail = 0;
}

void pcpi_pool_ring_init(struct pcpi_pool_ring *r, void **slots, uint32_t size)
{
	pcpi_lock_init(&r->producer_lock, PCPI_RANK_PRODUCER);
	pcpi_lock_init(&r->consumer_lock, PCPI_RANK_CONSUMER);
	r->producer = 0;
	size_set(r, slots, size);
}

void pcpi_pool_ring_fini(struct pcpi_pool_ring *r)
{
	pcpi_lock_fini(&r->producer_lock);
	pcpi_lock_fini(&r->consumer_lock);
}

static void both_take(struct pcpi_pool_ring *r)
{
	pcpi_lock_take(&r->consumer_lock);
	pcpi_lock_take(&r->producer_lock);
}

static void both_drop(struct pcpi_pool_ring *r)
{
	pcpi_lock_drop(&r->producer_lock);
	pcpi_lock_drop(&r->consumer_lock);
}

uint32_t pcpi_pool_ring_unconsume(struct pcpi_pool_ring *r, void **p, uint32_t n)
{
	uint32_t at;

	both_take(r);
	/* Now a slot that isn't NULL is one to be consumed. */
	pcpi_pool_ring_clear(r, r->head);
	r->tail = r->head;
	while (n > 0) {
		at = (r->head > 0 ? r->head : r->size) - 1;
		/* relaxed: with the producer's lock. */
		if (pcpi_load_relaxed(&r->slots[at]))
			break;
		/* release: pairs with pcpi_pool_ring_peek(). */
		pcpi_store_release(&r->slots[at], p[--n]);
		r->head = r->tail = at;
	}
	both_drop(r);
	return n;
}

/* Moves what is not consumed to the first slots; how many that are. */
static uint32_t rest_gather(struct pcpi_pool_ring *r)
{
	uint32_t i, n = 0;

	pcpi_pool_ring_clear(r, r->head);
	for (i = 0; i < r->size; i++)
		if (r->slots[i])
			r->slots[n++] = r->slots[i];
	return n;
}

uint32_t pcpi_pool_ring_resize(struct pcpi_pool_ring *r, void **slots,
			       uint32_t size, void ***old)
{
	uint32_t n = 0, over;
	void *p;

	both_take(r);
	while (n < size && (p = pcpi_pool_ring_consume(r)))
		slots[n++] = p;
	over = rest_gather(r);
	*old = r->slots;
	size_set(r, slots, size);
	r->producer = n < size ? n : 0;
	both_drop(r);
	return over;
}
