/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcpa_mempool.c - a mempool handler for DPDK, "pcpalloc": each object of a pool
 * lies in a block of a heap.
 *
 * Owns: who has a pool's blocks, and a thread's handle of its cache.  What blocks
 * lie in is pool_memory.h's, where in a block the object is layout.h's, and the rest
 * the library's, of which all of this sees the public interface only.
 *
 *   alloc      memory, all blocks taken
 *   populate   in mp->size blocks an object constructed, and these freed
 *   dequeue    blocks -> objects
 *   enqueue    objects -> blocks
 *
 *  M1  A block is free, with its object in it, constructed; or taken, which is what
 *      dequeued objects are, and blocks beyond mp->size for ever.  The heap leaves
 *      free blocks alone (PCPA_HEAP_CONTENTS).
 *  M2  Only EAL's primary process makes pools and has heaps.  In a secondary one
 *      pool_data means nothing.
 *  M3  A thread keeps a handle of its cache of the pool that it used last (`bound`).
 *
 * Cost: a bulk call of the library and a pass over the objects; for one object to
 * put back a call.  Making a pool populates its memory.
 * Concurrency: any thread may get and put, known to EAL or not, but no signal
 * handler, as with all of rte_mempool.  A pool is made and freed by one thread,
 * while others may make theirs: they share `last_id` only, which is atomic (relaxed:
 * it must be unique, and orders nothing).
 * Failure: a get that finds fewer than n objects gives them back.  A pool that
 * can't be made leaves nothing, and the log says why.
 * Proved by tests/dpdk/.
 */
#include <errno.h>
#include <stdbool.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mempool.h>

#include <pcpalloc/inline.h>

#include "layout.h"
#include "pool_memory.h"
#include "say.h"

RTE_LOG_REGISTER(pcpa_mempool_log, mempool.pcpalloc, NOTICE)

/* Objects at once: more are no hit of the thread's cache.  What a lcore's cache of
 * the default size gets or puts is two of these. */
#define CHUNK PCPA_INLINE_BULK

struct pool {
	struct pool_memory memory;
	struct layout layout;
	uint64_t id; /* unique in the process */
};

static uint64_t last_id;

static __thread struct {
	uint64_t of_pages; /* id, where blocks are pages */
	uint64_t id;	   /* 0: of none */
	struct pcpa_cache cache;
} bound __attribute__((tls_model("initial-exec"))); /* M3 */

static bool primary(void) /* M2 */
{
	return rte_eal_process_type() == RTE_PROC_PRIMARY;
}

/* ---- Get and put ----------------------------------------------------------- */

/* M3, and M2: false where this process has none of the pool. */
static __rte_noinline __rte_cold bool bind(const struct rte_mempool *mp)
{
	const struct pool *p = mp->pool_data;

	if (!primary()) {
		SAY(ERR, "%s: only the process that made the pool can use it, no "
			 "secondary one", mp->name);
		return false;
	}
	bound.cache = pcpa_cache_self(p->memory.heap);
	bound.id = p->id;
	bound.of_pages = p->layout.order == 0 ? p->id : 0;
	return true;
}

static int pool_dequeue(struct rte_mempool *mp, void **objects, unsigned n)
{
	const struct pool *p = mp->pool_data;
	unsigned got = 0, want, more;

	if (unlikely(bound.id != p->id) && !bind(mp))
		return -ENOTSUP;
	do {
		want = RTE_MIN(n - got, CHUNK);
		more = (unsigned)pcpa_cache_alloc_bulk(
			&bound.cache, p->layout.order, 0, objects + got, want);
		got += more;
	} while (more == want && got < n);
	if (unlikely(got < n)) {
		pcpa_free_bulk_sized(p->memory.heap, p->layout.order, objects, got);
		return -ENOBUFS;
	}
	layout_objects(&p->layout, objects, n);
	return 0;
}

static __rte_noinline int enqueue_many(struct rte_mempool *mp,
				       void *const *objects, unsigned n)
{
	const struct pool *p = mp->pool_data;
	void *blocks[CHUNK];

	if (bound.id != p->id && !bind(mp))
		return -ENOTSUP;
	while (n > 0) {
		unsigned some = RTE_MIN(n, CHUNK);

		layout_blocks(&p->layout, objects, blocks, some);
		pcpa_free_bulk_sized(p->memory.heap, p->layout.order, blocks, some);
		objects += some;
		n -= some;
	}
	return 0;
}

static int pool_enqueue(struct rte_mempool *mp, void *const *objects, unsigned n)
{
	const struct pool *p = mp->pool_data;

	if (unlikely((n != 1) | (bound.of_pages != p->id)))
		return enqueue_many(mp, objects, n);
	if (likely(pcpa_cache_free_within(&bound.cache, *objects, 0)))
		return 0;
	return enqueue_many(mp, objects, 1);
}

/* Blocks beyond mp->size count as used: M1. */
static unsigned pool_count(const struct rte_mempool *mp)
{
	const struct pool *p = mp->pool_data;

	if (!primary())
		return 0;
	return (unsigned)(pool_memory_free_pages(&p->memory) >> p->layout.order);
}

/* ---- A pool begins and ends --------------------------------------------------- */

static void pool_free(struct rte_mempool *mp)
{
	struct pool *p = mp->pool_data;

	if (!primary() || !p)
		return;
	pool_memory_end(&p->memory, mp->name);
	rte_free(p);
	mp->pool_data = NULL;
}

static int no_memory(const struct rte_mempool *mp)
{
	SAY(ERR, "%s: no pool for want of memory", mp->name);
	return -ENOMEM;
}

static int pool_alloc(struct rte_mempool *mp)
{
	struct pool *p;
	int err;

	if (!primary()) {
		SAY(ERR, "%s: no pools in a secondary process", mp->name);
		return -ENOTSUP;
	}
	p = rte_zmalloc("pcpalloc", sizeof(*p), 0);
	if (!p)
		return no_memory(mp);
	layout_fill(&p->layout, mp);
	err = pool_memory_make(&p->memory, mp, p->layout.order);
	if (err) {
		rte_free(p);
		return err == -ENOMEM ? no_memory(mp) : err;
	}
	p->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	mp->pool_data = p;
	return 0;
}

/* EAL's own memory is not used, but asked for. */
static ssize_t pool_mem_size(const struct rte_mempool *mp, uint32_t n,
			     uint32_t page_shift, size_t *min_chunk_bytes,
			     size_t *align)
{
	(void)mp, (void)n, (void)page_shift;
	*min_chunk_bytes = RTE_CACHE_LINE_SIZE;
	*align = RTE_CACHE_LINE_SIZE;
	return RTE_CACHE_LINE_SIZE;
}

static int pool_populate(struct rte_mempool *mp, unsigned max, void *memory,
			 rte_iova_t iova, size_t bytes,
			 rte_mempool_populate_obj_cb_t *construct, void *arg)
{
	const struct pool *p = mp->pool_data;
	unsigned n;

	(void)memory, (void)iova, (void)bytes;
	if (pool_memory_list(&p->memory, mp))
		return no_memory(mp);
	for (n = 0; n < max && n < p->memory.nr_blocks; n++) {
		void *object = layout_object(&p->layout, p->memory.blocks[n]);

		construct(mp, arg, object, pool_memory_iova(object));
		pcpa_free_sized(p->memory.heap, p->memory.blocks[n], p->layout.order);
	}
	return (int)n;
}

static const struct rte_mempool_ops ops = {
	.name = "pcpalloc",
	.alloc = pool_alloc,
	.free = pool_free,
	.enqueue = pool_enqueue,
	.dequeue = pool_dequeue,
	.get_count = pool_count,
	.calc_mem_size = pool_mem_size,
	.populate = pool_populate,
};

RTE_INIT(pcpa_mempool_register)
{
	int err = rte_mempool_register_ops(&ops);

	if (err < 0)
		SAY(ERR, "not registered: %s%s", rte_strerror(-err),
		    err == -ENOSPC ? "; all of the program's "
				     RTE_STR(RTE_MEMPOOL_MAX_OPS_IDX) " places for "
				     "mempool handlers are taken" : "");
}
