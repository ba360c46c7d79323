/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops.h - one allocator, as the workloads see it.
 *
 * A worker is built once per allocator: BENCH_OPS names the header that
 * defines the operations below as inline functions.  So a measured loop calls
 * the allocator as a program linked with it does, with no pointer in between.
 *
 *   struct ops_shared   what one process has of it (a heap, a lock)
 *   struct ops          what one thread has of it; copied where OPS_VALUE says so
 *
 *   int    ops_open(shared, mib, text, size)  0, or -1 with the reason in text;
 *                                             else what the memory is made of
 *   void   ops_close(shared)
 *   void   ops_attach(ops, shared)            by the thread that will use it
 *   void   ops_detach(ops)
 *   void  *ops_take(ops, order)               NULL: none left
 *   void   ops_give(ops, block, order)
 *
 * Every header states in macros what its allocator can do:
 *   OPS_BULK      ops_take_bulk, ops_give_bulk: n blocks of order 0 by one call
 *   OPS_STREAM    ops_take_burst, ops_give_burst of its own for `remote`
 *   OPS_REMOTE    0: no blocks that a second thread could free
 *   OPS_TOUCH     blocks are memory
 *   OPS_ORDER     ops_give reads the order
 *   OPS_COALESCE  ops_drain(shared): all that is free has merged afterwards
 *   OPS_COUNTERS  ops_counters(shared, out): running totals
 *   OPS_MIXED     0: blocks of one size only (1 where it is not stated)
 *   OPS_VALUE     (1 where not stated) struct ops is only read, and loops keep a copy
 *                 in local variables, as a program would
 */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "spsc.h"
#include "wire.h"

#define OPS_PAGE_BYTES ((size_t)4096)
#define OPS_ORDERS 4

#include BENCH_OPS

#ifndef OPS_MIXED
#define OPS_MIXED 1
#endif

#ifndef OPS_VALUE
#define OPS_VALUE 1
#endif

#if !OPS_BULK
static inline size_t ops_take_bulk(struct ops *o, void **blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(blocks[i] = ops_take(o, 0)))
			return i;
	return n;
}

static inline void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ops_give(o, blocks[i], 0);
}
#endif

#if !OPS_STREAM
/* One burst for the producer; false: none yet, try again. */
static inline bool ops_take_burst(struct ops *o, void **burst)
{
	if (ops_take_bulk(o, burst, SPSC_BURST) == SPSC_BURST)
		return true;
	fprintf(stderr, "pcpbench: %s ran out of blocks\n", BENCH_NAME);
	exit(1);
}

static inline void ops_give_burst(struct ops *o, void **burst)
{
	ops_give_bulk(o, burst, SPSC_BURST);
}
#endif

#if !OPS_COALESCE
static inline void ops_drain(struct ops_shared *s)
{
	(void)s;
}
#endif

#if !OPS_COUNTERS
static inline void ops_counters(struct ops_shared *s, struct wire_counters *out)
{
	(void)s;
	(void)out;
}
#endif

#endif
