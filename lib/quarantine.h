/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quarantine.h - where the freed blocks of a watched heap rest.  Layer 3.
 *
 * Owns: how long a block stays out of use after it was freed.  A cache hands out
 * first what was freed last, so that an address would belong to somebody again
 * at once, and neither a second free nor an access could be told from right ones.
 * So blocks of watched heaps (checks.h) go to the end of a queue, and to the
 * depot or the zone when enough others have come after them.
 *
 *     free --put--> [ new ... old ] --put of another--> depot, zone
 *                              |
 *                              +--shift: all of it, before memory is short
 *
 * Q1  A node's queue of one order holds up to PCPI_QUARANTINE_BLOCKS blocks, and
 *     up to 1/8 of the node's memory.
 *
 * The queues are depots of which only the cold end is used to take; blocks in
 * them are counted as the depot's.
 *
 * Concurrency: any thread; locks of rank DEPOT.
 * Cost: two lock operations a block.  Failure: none.
 * Proved by tests/unit/test_quarantine.c.
 */
#ifndef PCPI_QUARANTINE_H
#define PCPI_QUARANTINE_H

#include "depot.h"

#define PCPI_QUARANTINE_BLOCKS 2048u /* a power of two */

struct pcpi_quarantine {
	struct pcpi_depot queues[PCPI_MAX_ORDER + 1];
};

/* Bytes with its queues' slots. */
size_t pcpi_quarantine_bytes(void);

/* In zero memory of pcpi_quarantine_bytes(). */
void pcpi_quarantine_init(struct pcpi_quarantine *q);

void pcpi_quarantine_fini(struct pcpi_quarantine *q);

/* Takes a block in; the up to n that have rested enough go to out. */
uint32_t pcpi_quarantine_put(struct pcpi_quarantine *q, unsigned order,
			     uint32_t pfn, uint64_t managed_pages,
			     uint32_t *out, uint32_t n);

/* Takes up to n blocks out; how many. */
uint32_t pcpi_quarantine_shift(struct pcpi_quarantine *q, unsigned order,
			       uint32_t *pfns, uint32_t n);

/* Closed it takes nothing: blocks come out again at once. */
void pcpi_quarantine_close(struct pcpi_quarantine *q, bool closed);

/* Pages held; may race.  q may be NULL. */
uint64_t pcpi_quarantine_pages(const struct pcpi_quarantine *q);

#endif
