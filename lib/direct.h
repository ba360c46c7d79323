/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * direct.h - blocks between a node's depots and its zone, past any cache.
 * Layer 4.
 *
 * Owns: the rule which of the two a block goes to or comes from: the depot
 * while it may hold more and the zone's reserve is whole, from the depot while it
 * has some; orders that caches don't hold know only the zone.
 *
 * DI1  No lock is held between the depot's and the zone's.
 *
 * Cost: two lock operations a call.  Failure: fewer blocks.
 * Proved by tests/unit/test_direct.c.
 */
#ifndef PCPI_DIRECT_H
#define PCPI_DIRECT_H

#include "zone.h"

/* Blocks moved at a time, and the size of private batches on the stack on the way to
 * the zone and back. */
#define PCPI_CHUNK 64u

/* The most blocks of a depot batch (policy.h), and of a private batch on the way to
 * the depot and back; a pure freer hands over two. */
#define PCPI_DEPOT_CHUNK 256u

/* The most that a refill takes from there: the other half is as near then, and a
 * single allocation waits for half as many lines of another processor's. */
#define PCPI_DEPOT_GET 128u

/* To the depot, or where it is full to the zone; true: the depot.
 * Requires order < PCPI_PCP_ORDERS. */
bool pcpi_blocks_return(struct pcpi_zone *z, unsigned order,
			const uint32_t *pfns, uint32_t n);

/* What the depot did not need for a second, to the zone. */
void pcpi_surplus_return(struct pcpi_zone *z, unsigned order);

/* Up to n blocks, from the depot first; how many. */
uint32_t pcpi_direct_take(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			  uint32_t n);

void pcpi_direct_give(struct pcpi_zone *z, unsigned order, const uint32_t *pfns,
		      uint32_t n);

/* A freed block of a watched heap (checks.h), past the caches, which would hand it
 * out first of all: into the quarantine, and what that lets out further. */
void pcpi_watched_give(struct pcpi_zone *z, unsigned order, uint32_t pfn);

/* Everything in a zone's depots to its buddy; pages moved. */
uint64_t pcpi_depots_empty(struct pcpi_zone *z);

#endif
