/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops_kernel.h - a page allocator as a kernel without caches in front would
 * have it: free lists by order behind one lock.
 *
 * The lock is taken once a call, in bulk too.  There is no cache and no depot:
 * what the library's save is the difference.
 */
#ifndef BENCH_OPS_KERNEL_H
#define BENCH_OPS_KERNEL_H

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "buddy_list.h"

#define OPS_BULK 1
#define OPS_STREAM 0
#define OPS_REMOTE 1
#define OPS_TOUCH 1
#define OPS_ORDER 1
#define OPS_COALESCE 1
#define OPS_COUNTERS 0
#define OPS_HEAPS 1

/* 2 MiB chunks of 4 KiB pages. */
enum { KERNEL_TOP_ORDER = 9, KERNEL_BULK = 64 };

struct ops_shared {
	_Alignas(64) pthread_mutex_t lock;
	struct pcpi_buddy_list buddy; /* lock */
	char *base;
	size_t bytes;
	void *meta;
};

struct ops {
	struct ops_shared *shared;
};

static inline void *ops_pages_map(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	for (size_t at = 0; at < bytes; at += OPS_PAGE_BYTES)
		*(volatile char *)(p + at) = 0;
	return p;
}

static inline int ops_open(struct ops_shared *s, size_t mib, char *text,
			   size_t size)
{
	uint32_t chunks = (uint32_t)(mib / 2);

	pthread_mutex_init(&s->lock, NULL);
	s->bytes = (size_t)chunks << 21;
	s->base = ops_pages_map(s->bytes);
	s->meta =
		calloc(1, pcpi_buddy_list_meta_bytes(chunks, KERNEL_TOP_ORDER));
	if (!s->base || !s->meta) {
		snprintf(text, size, "%zu MiB: %s", mib, strerror(ENOMEM));
		return -1;
	}
	pcpi_buddy_list_init(&s->buddy, s->meta, 0, chunks, KERNEL_TOP_ORDER);
	pcpi_buddy_list_add(&s->buddy, 0, chunks << KERNEL_TOP_ORDER);
	snprintf(text, size, "thp");
	return 0;
}

static inline void ops_close(struct ops_shared *s)
{
	munmap(s->base, s->bytes);
	free(s->meta);
	pthread_mutex_destroy(&s->lock);
}

static inline void ops_attach(struct ops *o, struct ops_shared *s)
{
	o->shared = s;
}

static inline void ops_detach(struct ops *o)
{
	(void)o;
}

static inline void *ops_block(const struct ops_shared *s, uint32_t pfn)
{
	return s->base + pfn * OPS_PAGE_BYTES;
}

static inline uint32_t ops_pfn(const struct ops_shared *s, const void *block)
{
	size_t offset = (size_t)((const char *)block - s->base);

	return (uint32_t)(offset / OPS_PAGE_BYTES);
}

OPS_ALWAYS void *ops_take(struct ops *o, unsigned order)
{
	struct ops_shared *s = o->shared;
	uint32_t pfn;

	pthread_mutex_lock(&s->lock);
	pfn = pcpi_buddy_list_take(&s->buddy, order);
	pthread_mutex_unlock(&s->lock);
	return pfn == PCPI_NO_PFN ? NULL : ops_block(s, pfn);
}

OPS_ALWAYS void ops_give(struct ops *o, void *block, unsigned order)
{
	struct ops_shared *s = o->shared;

	pthread_mutex_lock(&s->lock);
	pcpi_buddy_list_give(&s->buddy, ops_pfn(s, block), order);
	pthread_mutex_unlock(&s->lock);
}

/* n is at most KERNEL_BULK. */
OPS_ALWAYS size_t ops_take_bulk(struct ops *o, void **blocks, size_t n)
{
	struct ops_shared *s = o->shared;
	uint32_t pfns[KERNEL_BULK], got;

	pthread_mutex_lock(&s->lock);
	got = pcpi_buddy_list_take_bulk(&s->buddy, 0, pfns, (uint32_t)n);
	pthread_mutex_unlock(&s->lock);
	for (uint32_t i = 0; i < got; i++)
		blocks[i] = ops_block(s, pfns[i]);
	return got;
}

OPS_ALWAYS void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	struct ops_shared *s = o->shared;
	uint32_t pfns[KERNEL_BULK];

	for (size_t i = 0; i < n; i++)
		pfns[i] = ops_pfn(s, blocks[i]);
	pthread_mutex_lock(&s->lock);
	pcpi_buddy_list_give_bulk(&s->buddy, 0, pfns, (uint32_t)n);
	pthread_mutex_unlock(&s->lock);
}

/* Nothing is ever held back. */
static inline void ops_drain(struct ops_shared *s)
{
	(void)s;
}

#endif
