/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * depot.h - where caches exchange batches of blocks.  Layer 3.
 *
 * Owns: one node's blocks of one order that are between caches.  Does not call
 * the zone; direct.c moves between the two.
 *
 *     freeing thread --put--> [ cold ... hot ] --get--> allocating thread
 *                               |
 *                               +--surplus: what was not needed for a second
 *
 * A ring under a lock: put and get at the hot end, for warmth; the surplus is
 * taken at the cold end.  The surplus is the low-water mark, the least length
 * since the mark was last set: what nobody needed in that time.
 *
 * D1  A block is in one ring only: moved, never shared.
 * D2  len <= capacity; a put is taken whole or not at all.
 * D3  low <= len.
 * D4  A closed depot takes nothing.
 *
 * Concurrency: any thread; the lock (rank DEPOT) is held around two memcpy.
 * Cost: two uncontended lock operations a batch, of any size.
 * Failure: put refuses when full or closed; the caller goes to the zone.
 * Proved by tests/unit/test_depot.c.
 */
#ifndef PCPI_DEPOT_H
#define PCPI_DEPOT_H

#include "lock.h"
#include "ring.h"

struct pcpi_depot {
	struct pcpi_lock lock PCPI_ALIGNED(PCPI_CACHELINE);
	struct pcpi_ring ring;	/* d */
	uint32_t low;		/* d: D3 */
	uint64_t low_since_ns;	/* d */
	uint64_t contended;	/* d */
	bool closed;		/* d: D4 */
} PCPI_ALIGNED(PCPI_CACHELINE);

void pcpi_depot_init(struct pcpi_depot *d, uint32_t *slots, uint32_t capacity);

void pcpi_depot_fini(struct pcpi_depot *d);

/* Before a get or put, the earlier the better: has the depot's line fetched from whoever
 * wrote it last.  A get does it by itself, but late. */
PCPI_INLINE void pcpi_depot_expect(const struct pcpi_depot *d)
{
	pcpi_prefetch_write(d);
}

/* The same for the lines of up to n blocks that a get would take; waits for that of
 * the depot. */
PCPI_INLINE void pcpi_depot_expect_blocks(const struct pcpi_depot *d, uint32_t n)
{
	/* relaxed: nothing depends on it. */
	uint32_t head = pcpi_load_relaxed(&d->ring.head), i;

	n = pcpi_min(n, pcpi_ring_len_racy(&d->ring));
	for (i = 1; i <= n; i += PCPI_CACHELINE / sizeof(uint32_t))
		__builtin_prefetch(&d->ring.slots[(head - i) & d->ring.mask]);
}

/* Takes all n blocks, or returns false. */
bool pcpi_depot_put(struct pcpi_depot *d, const uint32_t *pfns, uint32_t n);

/* From its return on, puts are refused (D4), or taken again. */
void pcpi_depot_close(struct pcpi_depot *d, bool closed);

/* Moves up to n blocks to pfns; returns how many. */
uint32_t pcpi_depot_get(struct pcpi_depot *d, uint32_t *pfns, uint32_t n);

/* The same without a wait; *busy becomes true where the lock was not free. */
uint32_t pcpi_depot_try_get(struct pcpi_depot *d, uint32_t *pfns, uint32_t n,
			    bool *busy);

/* Moves up to n of the coldest blocks to pfns; returns how many. */
uint32_t pcpi_depot_shift(struct pcpi_depot *d, uint32_t *pfns, uint32_t n);

/* Up to n blocks of the surplus, once a second by now_ns; else 0. */
uint32_t pcpi_depot_surplus(struct pcpi_depot *d, uint64_t now_ns,
			    uint32_t *pfns, uint32_t n);

/* Blocks held; may race. */
uint32_t pcpi_depot_len(const struct pcpi_depot *d);

bool pcpi_depot_check(struct pcpi_depot *d);

#endif
