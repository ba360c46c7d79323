/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.h - free extents at hand, a few for each size class and shard.
 *
 * A slot is a word that holds an extent's first page, or nothing.  Whoever swaps it
 * against nothing has the extent: no lock, so it doesn't matter where a signal, a fork
 * or the end of a thread parts two steps; at most an extent is lost to a child.
 *
 * A shard is chosen by where the caller's stack is.  That needs no thread-local
 * storage, gives threads different shards mostly, and is only a matter of speed.
 *
 * S1  What is in a slot has the kind FREE, is its class's, and is this copy's of the
 *     process: whoever swaps it out need not say so first, when another thread may
 *     already ask for its pages (pool_fork.c has the one exception).
 */
#ifndef SHIM_SLOTS_H
#define SHIM_SLOTS_H

#include "atomics.h"
#include "extent.h"

enum { SHIM_SHARDS = 4, SHIM_SLOTS = 8 };

struct shim_slots {
	uint32_t slot[SHIM_SLOTS]; /* a: first page + 1, or 0 */
	uint32_t countdown;        /* a: takes until shim_slots_due() */
	uint32_t aged;             /* a: takes, at the last tick */
	uint64_t takes;            /* a: count */
	uint64_t hits;             /* a: count */
	uint64_t cleared_pages;    /* a: count */
} PCPI_ALIGNED(64);

extern struct shim_slots shim_slots[SHIM_ORDERS][SHIM_SHARDS];

PCPI_INLINE struct shim_slots *shim_slots_of(unsigned order)
{
	uintptr_t stack = (uintptr_t)__builtin_frame_address(0);

	/* 8 MiB is the usual distance of stacks, 2 MiB the least. */
	return &shim_slots[order][(stack >> 23 ^ stack >> 21) % SHIM_SHARDS];
}

/* How many slots of a shard the class may use: 16 MiB of them, at least one. */
PCPI_INLINE unsigned shim_slots_depth(unsigned order)
{
	return order <= SHIM_UNIT_ORDER
		       ? SHIM_SLOTS
		       : pcpi_max(1u, (unsigned)SHIM_SLOTS >>
					      (order - SHIM_UNIT_ORDER));
}

/* An extent, now the caller's, or PCPI_NO_PFN. */
PCPI_INLINE uint32_t shim_slots_take(struct shim_slots *s)
{
	for (unsigned i = 0; i < SHIM_SLOTS; i++) {
		/* relaxed: the swap looks again. */
		uint32_t v = pcpi_load_relaxed(&s->slot[i]);

		/* pairs with shim_slots_put(). */
		if (v && pcpi_cas_acq_rel(&s->slot[i], &v, UINT32_C(0)))
			return v - 1;
	}
	return PCPI_NO_PFN;
}

/* False when all slots are taken. */
PCPI_INLINE bool shim_slots_put(struct shim_slots *s, unsigned order,
				uint32_t pfn)
{
	unsigned depth = shim_slots_depth(order);

	for (unsigned i = 0; i < depth; i++) {
		/* relaxed: the swap looks again. */
		uint32_t v = pcpi_load_relaxed(&s->slot[i]);

		/* pairs with shim_slots_take(). */
		if (!v && pcpi_cas_acq_rel(&s->slot[i], &v, pfn + 1))
			return true;
	}
	return false;
}

/* Gives all extents back to the pool. */
void shim_slots_empty(void);

/* The same for those of classes that nobody took from since the last call, from 2 MiB
 * up. */
void shim_slots_age(void);

/* In a child of a fork, before any of its threads takes one: makes S1 true. */
void shim_slots_inherit(void);

#endif
