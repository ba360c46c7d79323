/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.h - page indices in a ring with a hot and a cold end.  Layer 2, PURE.
 *
 * Owns: the arithmetic of one ring.  Does not own the slots' memory, nor who
 * may use the ring when (pcp.h, depot.h say that).
 *
 *     slots:  . . . [c c c w w w h h h] . . .
 *                    ^tail            ^head      len = head - tail
 *            cold end: oldest          hot end: most recently freed
 *
 * head and tail run freely over 32 bits and are masked on access.  Both live
 * in one 64-bit word, so that every operation, whatever it moves, commits with
 * one store; slots are written before it.
 *
 * R1  head - tail <= mask + 1.
 * R2  slots outside [tail, head) have no meaning.
 *
 * Concurrency: one user at a time; readers of the length may race (relaxed).
 * Cost: O(1) for one, two memcpy for many.  Failure: none; the caller sees to
 * the room.  Proved by tests/unit/test_ring.c.
 */
#ifndef PCPI_RING_H
#define PCPI_RING_H

#include <string.h>

#include "atomics.h"
#include "base.h"
#include "check.h"

struct pcpi_ring {
	union {
		struct {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
			uint32_t tail, head;
#else
			uint32_t head, tail;
#endif
		}; /* head is the low half of ends */
		uint64_t ends;
	};
	uint32_t mask;	/* capacity - 1; a power of two less one */
	uint32_t limit; /* the user's: length at which a push asks its policy */
	uint32_t *slots;
};

/* Where an empty ring begins again: blocks come at both ends, and from the middle
 * both run long before the ring's edge cuts a move in two. */
PCPI_INLINE uint32_t pcpi_ring_middle(const struct pcpi_ring *r)
{
	return (r->mask + 1) / 2;
}

static inline void pcpi_ring_init(struct pcpi_ring *r, uint32_t *slots,
				  uint32_t capacity)
{
	r->mask = capacity - 1;
	r->limit = capacity;
	r->slots = slots;
	r->head = r->tail = pcpi_ring_middle(r);
}

/* For the ring's user.  Two narrow loads, because the hot path stores head
 * alone and a wide load would wait for that store. */
PCPI_INLINE uint32_t pcpi_ring_len(const struct pcpi_ring *r)
{
	/* relaxed: exclusion comes from the ring's owner, see above. */
	return pcpi_load_relaxed(&r->head) - pcpi_load_relaxed(&r->tail);
}

/* For anyone.  relaxed: a length that was true a moment ago. */
PCPI_INLINE uint32_t pcpi_ring_len_racy(const struct pcpi_ring *r)
{
	uint64_t ends = pcpi_load_relaxed(&r->ends);

	return (uint32_t)ends - (uint32_t)(ends >> 32);
}

PCPI_INLINE uint32_t pcpi_ring_room(const struct pcpi_ring *r)
{
	return r->mask + 1 - pcpi_ring_len(r);
}

/* relaxed: exclusion comes from the ring's owner, see above. */
PCPI_INLINE void pcpi_ring_commit(struct pcpi_ring *r, uint32_t head,
				  uint32_t tail)
{
	pcpi_store_relaxed(&r->ends, (uint64_t)tail << 32 | head);
}

/* Contiguous slots from index `at`, at most n: *run of them. */
PCPI_INLINE uint32_t *pcpi_ring_run(const struct pcpi_ring *r, uint32_t at,
				    uint32_t n, uint32_t *run)
{
	uint32_t pos = at & r->mask;

	*run = pcpi_min(n, r->mask + 1 - pos);
	return r->slots + pos;
}

/* Both ends to the middle when the ring is empty, which keeps the slots in use
 * few and warm. */
PCPI_INLINE void pcpi_ring_settle(struct pcpi_ring *r, uint32_t head,
				  uint32_t tail)
{
	if (head == tail)
		head = tail = pcpi_ring_middle(r);
	pcpi_ring_commit(r, head, tail);
}

/* Copies n entries in at the hot end; the last is the hottest.  Requires room. */
static inline void pcpi_ring_push(struct pcpi_ring *r, const uint32_t *pfns,
				  uint32_t n)
{
	uint32_t run;
	uint32_t *at = pcpi_ring_run(r, r->head, n, &run);

	PCPA_ASSERT(n <= pcpi_ring_room(r)); /* R1 */
	memcpy(at, pfns, run * sizeof(*pfns));
	if (pcpi_unlikely(run < n))
		memcpy(r->slots, pfns + run, (n - run) * sizeof(*pfns));
	pcpi_ring_commit(r, r->head + n, r->tail);
}

/* Appends n entries at the cold end, so that pfns[0] comes out first of them,
 * pfns[n - 1] last.  Requires room. */
static inline void pcpi_ring_append_cold(struct pcpi_ring *r,
					 const uint32_t *pfns, uint32_t n)
{
	uint32_t i;

	PCPA_ASSERT(n <= pcpi_ring_room(r)); /* R1 */
	for (i = 0; i < n; i++)
		r->slots[(r->tail - 1 - i) & r->mask] = pfns[i];
	pcpi_ring_commit(r, r->head, r->tail - n);
}

/* Copies the n hottest out, hottest last.  Requires n <= len. */
static inline void pcpi_ring_pop(struct pcpi_ring *r, uint32_t *pfns, uint32_t n)
{
	uint32_t run;
	uint32_t *at = pcpi_ring_run(r, r->head - n, n, &run);

	PCPA_ASSERT(n <= pcpi_ring_len(r));
	memcpy(pfns, at, run * sizeof(*pfns));
	if (pcpi_unlikely(run < n))
		memcpy(pfns + run, r->slots, (n - run) * sizeof(*pfns));
	pcpi_ring_settle(r, r->head - n, r->tail);
}

/* Copies the n coldest out, coldest first.  Requires n <= len. */
static inline void pcpi_ring_shift(struct pcpi_ring *r, uint32_t *pfns,
				   uint32_t n)
{
	uint32_t run;
	uint32_t *at = pcpi_ring_run(r, r->tail, n, &run);

	PCPA_ASSERT(n <= pcpi_ring_len(r));
	memcpy(pfns, at, run * sizeof(*pfns));
	if (pcpi_unlikely(run < n))
		memcpy(pfns + run, r->slots, (n - run) * sizeof(*pfns));
	pcpi_ring_settle(r, r->head, r->tail + n);
}

#endif
