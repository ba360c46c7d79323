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
 * and, where it has something to say beyond the defaults below:
 *   OPS_MIXED     0: blocks of one size only
 *   OPS_CROWD     0: comes to a standstill with more threads than CPUs
 *   OPS_THREADS   0: no thousand threads
 *   OPS_START     0: has nothing that could be started; 1: ops_open() starts it;
 *                 2: ops_start(), of the same form, does, in a process where
 *                 nothing of it was called yet; what it gives may grow to mib
 *   OPS_HEAPS     1: a process may have several
 *   OPS_GROWS     1: gets its memory page by page or so, not at the start
 *   OPS_RELEASE   1: ops_release(shared): what is free goes back to the system;
 *                 bytes, or OPS_RESIDENT where the resident set has to tell
 *   OPS_CACHED    1: ops_cached(shared): pages that are free, but kept for
 *                 threads; below 0 where it is not known
 *   OPS_VALUE     0: struct ops is written by the calls; else loops keep a copy of it
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
#define OPS_RESIDENT SIZE_MAX

/* Of what loops call: with -O2 alone compilers make some of them functions, and a
 * pair of pcpalloc-inline took 3.0 ns instead of 1.4. */
#define OPS_ALWAYS static inline __attribute__((always_inline))

#include BENCH_OPS

#ifndef OPS_MIXED
#define OPS_MIXED 1
#endif
#ifndef OPS_CROWD
#define OPS_CROWD 1
#endif
#ifndef OPS_THREADS
#define OPS_THREADS 1
#endif
#ifndef OPS_START
#define OPS_START 1
#endif
#ifndef OPS_HEAPS
#define OPS_HEAPS 0
#endif
#ifndef OPS_GROWS
#define OPS_GROWS 0
#endif
#ifndef OPS_RELEASE
#define OPS_RELEASE 0
#endif
#ifndef OPS_CACHED
#define OPS_CACHED 0
#endif

#if OPS_START < 2
static inline int ops_start(struct ops_shared *s, size_t mib, char *text,
			    size_t size)
{
	return ops_open(s, mib, text, size);
}
#endif

#if !OPS_RELEASE
static inline size_t ops_release(struct ops_shared *s)
{
	(void)s;
	return 0;
}
#endif

#if !OPS_CACHED
static inline double ops_cached(struct ops_shared *s)
{
	(void)s;
	return -1;
}
#endif

#ifndef OPS_VALUE
#define OPS_VALUE 1
#endif

#if !OPS_BULK
OPS_ALWAYS size_t ops_take_bulk(struct ops *o, void **blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(blocks[i] = ops_take(o, 0)))
			return i;
	return n;
}

OPS_ALWAYS void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ops_give(o, blocks[i], 0);
}
#endif

#if !OPS_STREAM
/* One burst for the producer; false: none yet, try again. */
OPS_ALWAYS bool ops_take_burst(struct ops *o, void **burst)
{
	if (ops_take_bulk(o, burst, SPSC_BURST) == SPSC_BURST)
		return true;
	fprintf(stderr, "pcpbench: %s ran out of blocks\n", BENCH_NAME);
	exit(1);
}

OPS_ALWAYS void ops_give_burst(struct ops *o, void **burst)
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
