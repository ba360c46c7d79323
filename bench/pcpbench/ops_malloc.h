/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops_malloc.h - an allocator of the malloc family, linked before libc.
 *
 * Each is asked for pages in the fastest way that gives blocks aligned to 4
 * KiB, which ops_open() verifies: OPS_PLAIN_ORDERS is the number of orders for
 * which plain malloc() does (more than it promises); above, aligned_alloc().
 */
#ifndef BENCH_OPS_MALLOC_H
#define BENCH_OPS_MALLOC_H

#include <stdlib.h>

#define OPS_BULK 0
#define OPS_STREAM 0
#define OPS_REMOTE 1
#define OPS_TOUCH 1
#define OPS_ORDER 0
#define OPS_COALESCE 0
#define OPS_COUNTERS 0

struct ops_shared {
	int none;
};

struct ops {
	int none;
};

static inline void *ops_take(struct ops *o, unsigned order)
{
	(void)o;
	if ((int)order < OPS_PLAIN_ORDERS)
		return malloc(OPS_PAGE_BYTES << order);
	return aligned_alloc(OPS_PAGE_BYTES, OPS_PAGE_BYTES << order);
}

static inline void ops_give(struct ops *o, void *block, unsigned order)
{
	(void)o;
	(void)order;
	free(block);
}

/* Blocks side by side, since a single one may be aligned by chance. */
static inline int ops_open(struct ops_shared *s, size_t mib, char *text,
			   size_t size)
{
	enum { PROBES = 64 };
	void *probe[PROBES];
	uintptr_t bits = 0;

	(void)s;
	(void)mib;
	for (unsigned order = 0; order < OPS_ORDERS; order++) {
		for (int i = 0; i < PROBES; i++) {
			probe[i] = ops_take(NULL, order);
			bits |= (uintptr_t)probe[i];
		}
		for (int i = 0; i < PROBES; i++)
			ops_give(NULL, probe[i], order);
	}
	if (bits % OPS_PAGE_BYTES) {
		snprintf(text, size, "its blocks are not aligned to 4096");
		return -1;
	}
	snprintf(text, size, "its own");
	return 0;
}

static inline void ops_close(struct ops_shared *s)
{
	(void)s;
}

static inline void ops_attach(struct ops *o, struct ops_shared *s)
{
	(void)o;
	(void)s;
}

static inline void ops_detach(struct ops *o)
{
	(void)o;
}

#endif
