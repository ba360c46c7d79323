/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops_calls.h - no allocator at all: two calls into a shared library whose
 * functions return at once.  No allocator behind calls can be faster.
 */
#ifndef BENCH_OPS_CALLS_H
#define BENCH_OPS_CALLS_H

#include "calls.h"

#define OPS_BULK 1
#define OPS_STREAM 0
#define OPS_REMOTE 0
#define OPS_TOUCH 0
#define OPS_ORDER 0
#define OPS_COALESCE 0
#define OPS_COUNTERS 0
#define OPS_START 0

struct ops_shared {
	int none;
};

struct ops {
	void *heap;
};

static inline int ops_open(struct ops_shared *s, size_t mib, char *text,
			   size_t size)
{
	(void)s;
	(void)mib;
	snprintf(text, size, "none");
	return 0;
}

static inline void ops_close(struct ops_shared *s)
{
	(void)s;
}

static inline void ops_attach(struct ops *o, struct ops_shared *s)
{
	o->heap = s;
}

static inline void ops_detach(struct ops *o)
{
	(void)o;
}

OPS_ALWAYS void *ops_take(struct ops *o, unsigned order)
{
	return bench_empty_alloc(o->heap, order, 0);
}

OPS_ALWAYS void ops_give(struct ops *o, void *block, unsigned order)
{
	(void)order;
	bench_empty_free(o->heap, block);
}

OPS_ALWAYS size_t ops_take_bulk(struct ops *o, void **blocks, size_t n)
{
	return bench_empty_alloc_bulk(o->heap, 0, 0, blocks, n);
}

OPS_ALWAYS void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	bench_empty_free_bulk(o->heap, blocks, n);
}

#endif
