/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bulk.h - many blocks of the thread's cache in one call.  Layer 5.
 *
 * Owns: the conversion straight between a cache's ring and the caller's array,
 * a chunk at a time while the cache is marked.  What the cache can't serve is
 * left to route.c.
 *
 * U1  The mark is held for PCPI_BULK_CHUNK conversions at most (C2).
 * U2  A chunk with an entry that is no order-0 block (or not of the order named)
 *     of the cache's zone is not touched: the caller frees it singly.
 *
 * Cost: 64 blocks some 20 ns each way with AVX2, and for unsized frees a byte
 * read a block.  Proved by tests/unit/test_bulk.c.
 */
#ifndef PCPI_BULK_H
#define PCPI_BULK_H

#include "pcp_hot.h"

#define PCPI_BULK_CHUNK 256u

/* Takes up to n blocks from the cache into blocks; how many. */
size_t pcpi_bulk_pop(const struct pcpi_hot *hot, unsigned order, void **blocks,
		     size_t n);

/* Frees a leading part of blocks[0..n-1] that are all of the order (order 0
 * where none is named, checked); how many.  0: the first chunk has another. */
size_t pcpi_bulk_push(const struct pcpi_hot *hot, unsigned order, bool sized,
		      void *const *blocks, size_t n);

/* Looks at the cache's threshold, once a call. */
void pcpi_bulk_end(const struct pcpi_hot *hot, unsigned order);

#endif
