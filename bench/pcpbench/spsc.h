/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spsc.h - a ring of pointers from one thread to one other, in whole bursts.
 *
 *      head (producer)                tail (consumer)
 *        |  seen_tail: its last look    |  seen_head: its last look
 *        v                              v
 *   [ ][ ][x][x][x][x][ ][ ]   each side's words are on lines of their own
 *
 * Invariants: R1 head - tail <= SPSC_BURSTS.  R2 the producer alone writes
 * head and the slots from head on, the consumer alone writes tail.
 * Concurrency: one producer, one consumer; wait-free.  A side looks at the
 * other's index only when its last look no longer tells enough, so that in a
 * flowing stream the lines move once in many bursts.
 */
#ifndef BENCH_SPSC_H
#define BENCH_SPSC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { SPSC_BURST = 32, SPSC_BURSTS = 32 };

struct spsc {
	_Alignas(128) _Atomic size_t head;
	size_t seen_tail;
	_Alignas(128) _Atomic size_t tail;
	size_t seen_head;
	_Alignas(128) void *slots[SPSC_BURSTS][SPSC_BURST];
};

static inline void spsc_init(struct spsc *r)
{
	memset(r, 0, sizeof(*r));
}

/* Puts one burst in; false when the ring is full. */
static inline bool spsc_push(struct spsc *r, void *const *burst)
{
	/* relaxed: R2, only this thread writes head. */
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head - r->seen_tail == SPSC_BURSTS) {
		/* pairs with spsc_pop(): the slots were read. */
		r->seen_tail =
			atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head - r->seen_tail == SPSC_BURSTS)
			return false;
	}
	memcpy(r->slots[head % SPSC_BURSTS], burst, sizeof(r->slots[0]));
	/* pairs with spsc_pop(): publishes the slots. */
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return true;
}

/* Takes one burst out; false when the ring is empty. */
static inline bool spsc_pop(struct spsc *r, void **burst)
{
	/* relaxed: R2, only this thread writes tail. */
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (r->seen_head == tail) {
		/* pairs with spsc_push(): the slots are filled. */
		r->seen_head =
			atomic_load_explicit(&r->head, memory_order_acquire);
		if (r->seen_head == tail)
			return false;
	}
	memcpy(burst, r->slots[tail % SPSC_BURSTS], sizeof(r->slots[0]));
	/* pairs with spsc_push(): the slots may be filled again. */
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

#endif
