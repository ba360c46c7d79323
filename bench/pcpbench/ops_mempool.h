/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops_mempool.h - DPDK's rte_mempool, one pool of pages.
 *
 * MEMPOOL_OPS is the pool's handler ("ring_mp_mc", "stack"), MEMPOOL_CACHE the
 * objects that each thread's cache holds (0: none).  The calls are DPDK's own
 * inline functions.
 *
 * A pool puts a header of 64 bytes before each object.  Objects of 4,032 bytes in
 * memory that begins 64 bytes before a page are page-aligned and a page apart,
 * as everybody else's blocks; what is lost is the end of each page:
 *
 *   |      page 0      |      page 1      |      page 2      |
 *                   [hd| object 0      [hd| object 1      [hd|
 *
 * EAL is started with nothing but memory: no devices, no telemetry, no files
 * shared with other processes, silent.  Threads other than the one that started it
 * are registered with it, since a thread that EAL doesn't know has no cache.
 *
 * Failure: ops_open() says which step failed; EAL starts once in a process.
 */
#ifndef BENCH_OPS_MEMPOOL_H
#define BENCH_OPS_MEMPOOL_H

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>
#include <sched.h>
#include <sys/mman.h>

#define OPS_BULK 1
#define OPS_STREAM 0
#define OPS_REMOTE 1
#define OPS_TOUCH 1
#define OPS_ORDER 0
#define OPS_COALESCE 0
#define OPS_COUNTERS 0
#define OPS_MIXED 0
/* Whoever loses its CPU in the ring or the stack holds up all others, for a
 * time slice each. */
#define OPS_CROWD (MEMPOOL_CACHE > 0)
#define OPS_THREADS 0 /* EAL knows at most RTE_MAX_LCORE, 128 */
#define OPS_HEAPS 1

enum {
	MEMPOOL_HEADER = RTE_MEMPOOL_ALIGN,
	MEMPOOL_OBJECT = 4096 - MEMPOOL_HEADER,
	HUGE_MIB = 2,
	/* What EAL has for the pools' own rings and caches. */
	MEMPOOL_EAL_MIB = 128,
};

struct ops_shared {
	struct rte_mempool *pool;
	char *base; /* the objects are in here */
	size_t bytes;
};

struct ops {
	struct rte_mempool *pool;
};

/* Free pages of 2 MiB that the system has reserved. */
static inline long ops_huge_free(void)
{
	FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/"
			"free_hugepages", "r");
	long n = 0;

	if (f && fscanf(f, "%ld", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

/* Once; the caller's thread is lcore 0 from then on, and its affinity, which EAL
 * changes, is put back.  EAL takes no --in-memory without huge pages.  Returns 0
 * or -1. */
static inline int ops_eal_start(void)
{
	char lcores[32], memory[16], name[] = "pcpbench";
	bool huge = ops_huge_free() * HUGE_MIB > 2 * MEMPOOL_EAL_MIB;
	char *argv[] = {name, "--lcores", lcores, "-m", memory,
			"--no-pci", "--no-telemetry", "--iova-mode=va",
			"--log-level=1", huge ? "--in-memory" : "--no-shconf",
			huge ? NULL : "--no-huge", NULL};
	cpu_set_t before;
	int argc = huge ? 10 : 11;

	if (rte_lcore_id() != LCORE_ID_ANY)
		return 0;
	if (sched_getaffinity(0, sizeof(before), &before))
		return -1;
	snprintf(lcores, sizeof(lcores), "0@%d", sched_getcpu());
	snprintf(memory, sizeof(memory), "%d", MEMPOOL_EAL_MIB);
	if (rte_eal_init(argc, argv) < 0)
		return -1;
	return sched_setaffinity(0, sizeof(before), &before);
}

/* Populated: reserved huge pages, else transparent ones.  NULL: no memory. */
static inline char *ops_pages_map(size_t bytes, const char **backing)
{
	const int prot = PROT_READ | PROT_WRITE;
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	char *p = mmap(NULL, bytes, prot, flags | MAP_HUGETLB | MAP_POPULATE,
		       -1, 0);

	*backing = "hugetlb";
	if (p != MAP_FAILED)
		return p;
	*backing = "thp";
	p = mmap(NULL, bytes, prot, flags, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_HUGEPAGE);
	for (size_t at = 0; at < bytes; at += OPS_PAGE_BYTES)
		*(volatile char *)(p + at) = 0;
	return p;
}

/* Whether the header has the size that this file counts on. */
static inline bool ops_pool_aligned(struct rte_mempool *pool)
{
	void *block;

	if (rte_mempool_get(pool, &block))
		return false;
	rte_mempool_put(pool, block);
	return (uintptr_t)block % OPS_PAGE_BYTES == 0;
}

/* The pool and its objects; NULL with what failed in *step. */
static inline struct rte_mempool *ops_pool_make(char *base, unsigned pages,
						const char **step)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *pool;

	snprintf(name, sizeof(name), "%p", (void *)base);
	*step = "rte_mempool_create_empty";
	pool = rte_mempool_create_empty(
		name, pages, MEMPOOL_OBJECT, MEMPOOL_CACHE, 0, SOCKET_ID_ANY,
		RTE_MEMPOOL_F_NO_SPREAD | RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (!pool)
		return NULL;
	*step = "the handler " MEMPOOL_OPS;
	if (rte_mempool_set_ops_byname(pool, MEMPOOL_OPS, NULL))
		goto no_pool;
	*step = "rte_mempool_populate_iova";
	if (rte_mempool_populate_iova(
		    pool, base + OPS_PAGE_BYTES - MEMPOOL_HEADER, RTE_BAD_IOVA,
		    (size_t)pages * OPS_PAGE_BYTES, NULL, NULL) != (int)pages)
		goto no_pool;
	*step = "blocks aligned to 4096";
	if (!ops_pool_aligned(pool))
		goto no_pool;
	return pool;

no_pool:
	rte_mempool_free(pool);
	return NULL;
}

/* One page of the memory is lost to the first header. */
static inline int ops_open(struct ops_shared *s, size_t mib, char *text,
			   size_t size)
{
	const char *step, *backing;

	if (ops_eal_start()) {
		snprintf(text, size, "rte_eal_init: %s",
			 rte_strerror(rte_errno));
		return -1;
	}
	s->bytes = mib << 20;
	s->base = ops_pages_map(s->bytes, &backing);
	if (!s->base) {
		snprintf(text, size, "%zu MiB: no memory", mib);
		return -1;
	}
	s->pool = ops_pool_make(
		s->base, (unsigned)(s->bytes / OPS_PAGE_BYTES - 1), &step);
	if (!s->pool) {
		snprintf(text, size, "%s: %s", step, rte_strerror(rte_errno));
		munmap(s->base, s->bytes);
		return -1;
	}
	snprintf(text, size, "%s", backing);
	return 0;
}

static inline void ops_close(struct ops_shared *s)
{
	rte_mempool_free(s->pool);
	munmap(s->base, s->bytes);
}

static inline void ops_attach(struct ops *o, struct ops_shared *s)
{
	o->pool = s->pool;
	if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register()) {
		fprintf(stderr, "pcpbench: %s: rte_thread_register: %s\n",
			BENCH_NAME, rte_strerror(rte_errno));
		exit(1);
	}
}

/* The lcore's number, and with it the cache, may go to another thread. */
static inline void ops_detach(struct ops *o)
{
	rte_mempool_cache_flush(NULL, o->pool);
	if (rte_lcore_id() != rte_get_main_lcore())
		rte_thread_unregister();
}

OPS_ALWAYS void *ops_take(struct ops *o, unsigned order)
{
	void *block;

	(void)order;
	return rte_mempool_get(o->pool, &block) ? NULL : block;
}

OPS_ALWAYS void ops_give(struct ops *o, void *block, unsigned order)
{
	(void)order;
	rte_mempool_put(o->pool, block);
}

OPS_ALWAYS size_t ops_take_bulk(struct ops *o, void **blocks, size_t n)
{
	return rte_mempool_get_bulk(o->pool, blocks, (unsigned)n) ? 0 : n;
}

OPS_ALWAYS void ops_give_bulk(struct ops *o, void **blocks, size_t n)
{
	rte_mempool_put_bulk(o->pool, blocks, (unsigned)n);
}

#endif
