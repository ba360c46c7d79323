/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops_mmap.h - the kernel itself: a populated mapping per block.
 *
 * Not populated, a block would be a promise and no memory; so MAP_POPULATE is
 * part of the price.  In bulk, one mapping of n pages and one munmap.
 */
#ifndef BENCH_OPS_MMAP_H
#define BENCH_OPS_MMAP_H

#include <sys/mman.h>

#define OPS_BULK 1
#define OPS_STREAM 0
#define OPS_REMOTE 1
#define OPS_TOUCH 1
#define OPS_ORDER 1
#define OPS_COALESCE 0
#define OPS_COUNTERS 0
#define OPS_GROWS 1

struct ops_shared {
	int none;
};

struct ops {
	int none;
};

static inline int ops_open(struct ops_shared *s, size_t mib, char *text,
			   size_t size)
{
	(void)s;
	(void)mib;
	snprintf(text, size, "base");
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

static inline void *ops_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

OPS_ALWAYS void *ops_take(struct ops *o, unsigned order)
{
	(void)o;
	return ops_map(OPS_PAGE_BYTES << order);
}

OPS_ALWAYS void ops_give(struct ops *o, void *block, unsigned order)
{
	(void)o;
	munmap(block, OPS_PAGE_BYTES << order);
}

OPS_ALWAYS size_t ops_take_bulk(struct ops *o, void **blocks, size_t n)
{
	char *base = ops_map(n * OPS_PAGE_BYTES);

	(void)o;
	if (!base)
		return 0;
	for (size_t i = 0; i < n; i++)
		blocks[i] = base + i * OPS_PAGE_BYTES;
	return n;
}

OPS_ALWAYS void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	(void)o;
	munmap(blocks[0], n * OPS_PAGE_BYTES);
}

#endif
