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

#include <malloc.h>
#include <stdlib.h>

#define OPS_BULK 0
#define OPS_STREAM 0
#define OPS_REMOTE 1
#define OPS_TOUCH 1
#define OPS_ORDER 0
#define OPS_COALESCE 0
#define OPS_COUNTERS 0
#define OPS_START 2
#define OPS_GROWS 1
#define OPS_RELEASE 1
#define OPS_CACHED 1

/* Each library has some of these, or none. */
__attribute__((weak)) void MallocExtension_MarkThreadIdle(void);
__attribute__((weak)) void MallocExtension_ReleaseFreeMemory(void);
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char *name,
							     size_t *value);
__attribute__((weak)) int mallctl(const char *name, void *old, size_t *old_size,
				  void *now, size_t now_size);
__attribute__((weak)) void mi_collect(_Bool force);

struct ops_shared {
	int none;
};

struct ops {
	int none;
};

OPS_ALWAYS void *ops_take(struct ops *o, unsigned order)
{
	(void)o;
	if ((int)order < OPS_PLAIN_ORDERS)
		return malloc(OPS_PAGE_BYTES << order);
	return aligned_alloc(OPS_PAGE_BYTES, OPS_PAGE_BYTES << order);
}

OPS_ALWAYS void ops_give(struct ops *o, void *block, unsigned order)
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

/* There is nothing to do, and not even a call to be made. */
static inline int ops_start(struct ops_shared *s, size_t mib, char *text,
			    size_t size)
{
	(void)s;
	(void)mib;
	snprintf(text, size, "its own");
	return 0;
}

/* The thread's cache too, where the library has a call for it. */
static inline size_t ops_release(struct ops_shared *s)
{
	(void)s;
	if (MallocExtension_ReleaseFreeMemory) {
		MallocExtension_MarkThreadIdle();
		MallocExtension_ReleaseFreeMemory();
	} else if (mi_collect) {
		mi_collect(1);
	} else if (mallctl) {
		mallctl("thread.tcache.flush", NULL, NULL, NULL, 0);
		/* 4096: MALLCTL_ARENAS_ALL */
		mallctl("arena.4096.purge", NULL, NULL, NULL, 0);
	} else {
		malloc_trim(0);
	}
	return OPS_RESIDENT;
}

/* Of these libraries tcmalloc alone says it. */
static inline double ops_cached(struct ops_shared *s)
{
	static const char *const names[] = {
		"tcmalloc.current_total_thread_cache_bytes",
		"tcmalloc.central_cache_free_bytes",
		"tcmalloc.transfer_cache_free_bytes",
	};
	size_t sum = 0;

	(void)s;
	if (!MallocExtension_GetNumericProperty)
		return -1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t bytes = 0;

		if (!MallocExtension_GetNumericProperty(names[i], &bytes))
			return -1;
		sum += bytes;
	}
	return (double)sum / OPS_PAGE_BYTES;
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
