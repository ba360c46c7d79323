/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcpa_mempool.c - a mempool handler for DPDK, "pcpalloc": each object of a pool
 * lies in a block of a heap.
 *
 * Owns: a heap of fixed size for each pool; what EAL and the pool's list of memory
 * are told of it.  Which part of a block is the object is layout.h's, and the rest
 * the library's, of which this sees the public interface only.
 *
 *  M1  A block is free, with its object in it, constructed; or taken, which is what
 *      dequeued objects are, and blocks beyond mp->size for ever.  The heap leaves
 *      free blocks alone (PCPA_HEAP_CONTENTS).
 *  M2  Only a process that has made a pool has heaps.  In any other one (EAL's
 *      secondary) `maker` is false, and pool_data means nothing.
 *  M3  A thread keeps a handle of its cache of the pool that it used last (`bound`).
 *
 * Cost: a bulk call of the library and a pass over the objects; for one object to
 * put back a call.  Making a pool populates its memory.
 * Concurrency: any thread may get and put, known to EAL or not, but no signal
 * handler, as with all of rte_mempool.  A pool is made and freed by one thread.
 * Failure: a get that finds fewer than n objects gives them back.  A pool that
 * can't be made leaves nothing, and the log says why.
 * Proved by tests/dpdk/.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_vfio.h>
#include <unistd.h>

#include <pcpalloc/inline.h>
#include <pcpalloc/stats.h>

#include "layout.h"
#include "say.h"

RTE_LOG_REGISTER(pcpa_mempool_log, mempool.pcpalloc, NOTICE)

/* Objects that an enqueue converts at once: what a flush of a lcore's cache of
 * the default size puts is a few of them. */
#define CHUNK 128u

/* A heap of fixed size has one for each kind of pages, and some more where these
 * were short. */
#define ARENAS_MAX 64u

struct pool {
	struct pcpa_heap *heap;
	uint64_t id; /* unique in the process */
	struct layout layout;
	unsigned nr_arenas, nr_registered;
	struct pcpa_arena_info arenas[ARENAS_MAX];
};

static bool maker; /* M2 */
static uint64_t last_id;

static __thread struct {
	uint64_t of_pages; /* id, where blocks are pages */
	uint64_t id;	   /* 0: of none */
	struct pcpa_cache cache;
} bound __attribute__((tls_model("initial-exec"))); /* M3 */

/* ---- Get and put ----------------------------------------------------------- */

/* M3, and M2: false where this process has none of the pool. */
static __rte_noinline __rte_cold bool bind(const struct rte_mempool *mp)
{
	const struct pool *p = mp->pool_data;

	if (!maker) {
		SAY(ERR, "%s: only the process that made the pool can use it, no "
			 "secondary one", mp->name);
		return false;
	}
	bound.cache = pcpa_cache_self(p->heap);
	bound.id = p->id;
	bound.of_pages = p->layout.order == 0 ? p->id : 0;
	return true;
}

static int pool_dequeue(struct rte_mempool *mp, void **objects, unsigned n)
{
	const struct pool *p = mp->pool_data;
	size_t got;

	if (unlikely(bound.id != p->id) && !bind(mp))
		return -ENOTSUP;
	got = pcpa_cache_alloc_bulk(&bound.cache, p->layout.order, 0, objects, n);
	if (unlikely(got < n)) {
		pcpa_free_bulk_sized(p->heap, p->layout.order, objects, got);
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
		pcpa_free_bulk_sized(p->heap, p->layout.order, blocks, some);
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
	struct pcpa_stats s = PCPA_STATS_INIT;

	if (!maker || pcpa_stats_read(p->heap, -1, &s))
		return 0;
	return (unsigned)((s.managed_pages - s.used_pages) >> p->layout.order);
}

/* ---- Memory ---------------------------------------------------------------- */

static int arena_note(const struct pcpa_arena_info *arena, void *arg)
{
	struct pool *p = arg;

	if (p->nr_arenas == ARENAS_MAX)
		return -ENOSPC;
	p->arenas[p->nr_arenas++] = *arena;
	return 0;
}

/* Pages that stay where they are while they are mapped. */
static size_t page_bytes(const struct pcpa_arena_info *arena)
{
	return arena->backing == PCPA_BACKING_HUGETLB ? arena->page_bytes
						      : (size_t)sysconf(_SC_PAGESIZE);
}

static bool iovas_are_addresses(void)
{
	return rte_eal_iova_mode() == RTE_IOVA_VA;
}

/* Devices behind an IOMMU see what is mapped for them. */
static void arena_map(const struct rte_mempool *mp,
		      const struct pcpa_arena_info *arena, bool map)
{
	size_t bytes = iovas_are_addresses() ? arena->bytes : page_bytes(arena);

	if (!rte_vfio_is_enabled("vfio") || rte_vfio_noiommu_is_enabled() == 1)
		return;
	for (size_t at = 0; at < arena->bytes; at += bytes) {
		char *va = (char *)arena->base + at;
		rte_iova_t iova = rte_mem_virt2iova(va);
		int err = map ? rte_vfio_container_dma_map(
					RTE_VFIO_DEFAULT_CONTAINER_FD,
					(uintptr_t)va, iova, bytes)
			      : rte_vfio_container_dma_unmap(
					RTE_VFIO_DEFAULT_CONTAINER_FD,
					(uintptr_t)va, iova, bytes);

		if (err && map)
			SAY(WARNING, "%s: not mapped for VFIO: %s", mp->name,
			    rte_strerror(rte_errno));
	}
}

static int arena_register(const struct rte_mempool *mp,
			  const struct pcpa_arena_info *arena)
{
	size_t page = page_bytes(arena), n = arena->bytes / page;
	rte_iova_t *iovas = calloc(n, sizeof(*iovas));
	int err = iovas ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		iovas[i] = rte_mem_virt2iova((char *)arena->base + i * page);
		if (iovas[i] == RTE_BAD_IOVA ||
		    (!iovas_are_addresses() &&
		     arena->backing != PCPA_BACKING_HUGETLB))
			err = -ENOTSUP;
	}
	if (err == -ENOTSUP)
		SAY(ERR, "%s: %zu KiB have no physical addresses, which are known of "
			 "hugetlb pages only: reserve more of these, or add "
			 "--iova-mode=va", mp->name, arena->bytes >> 10);
	else if (!err && rte_extmem_register(arena->base, arena->bytes, iovas,
					     (unsigned)n, page)) {
		err = -rte_errno;
		SAY(ERR, "%s: EAL takes no more memory: %s", mp->name,
		    rte_strerror(rte_errno));
	}
	free(iovas);
	return err;
}

/* Every block that is in use, by whatever, so that the heap may go. */
static int blocks_take_back(const struct pool *p)
{
	int err = pcpa_heap_drain(p->heap);

	for (unsigned a = 0; a < p->nr_arenas && !err; a++) {
		char *base = p->arenas[a].base;

		for (size_t at = 0; at < p->arenas[a].bytes; at += p->layout.block_bytes)
			if (pcpa_block_order(p->heap, base + at) >= 0)
				pcpa_free(p->heap, base + at);
	}
	return err ? err : pcpa_heap_destroy(p->heap);
}

static void pool_free(struct rte_mempool *mp)
{
	struct pool *p = mp->pool_data;
	int err;

	if (!maker || !p)
		return;
	while (p->nr_registered > 0) {
		const struct pcpa_arena_info *a = &p->arenas[--p->nr_registered];

		arena_map(mp, a, false);
		rte_extmem_unregister(a->base, a->bytes);
	}
	err = p->heap ? blocks_take_back(p) : 0;
	if (err)
		SAY(ERR, "%s: its memory stays, a thread is inside of it: %s",
		    mp->name, rte_strerror(-err));
	rte_free(p);
	mp->pool_data = NULL;
}

/* ---- A pool begins ------------------------------------------------------------ */

/* On the node that pool_config names, or else the pool's socket, or the caller's. */
static int heap_make(struct pool *p, const struct rte_mempool *mp)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	int socket = mp->socket_id, err;
	char node[16];

	if (socket == SOCKET_ID_ANY)
		socket = rte_socket_id() == (unsigned)SOCKET_ID_ANY
				 ? rte_socket_id_by_idx(0)
				 : (int)rte_socket_id();
	snprintf(node, sizeof(node), "%d", socket);
	opts.nodes = mp->pool_config ? mp->pool_config : node;
	opts.flags = PCPA_HEAP_FIXED | PCPA_HEAP_CONTENTS;
	opts.initial_bytes = mp->size * p->layout.block_bytes;
	err = pcpa_heap_create(&opts, &p->heap);
	if (err)
		SAY(ERR, "%s: no heap of %zu MiB on node %s: %s", mp->name,
		    opts.initial_bytes >> 20, opts.nodes, rte_strerror(-err));
	else
		SAY(INFO, "%s: %u objects, a block of %zu bytes each, node %s",
		    mp->name, mp->size, p->layout.block_bytes, opts.nodes);
	return err;
}

static int pool_alloc(struct rte_mempool *mp)
{
	struct pool *p;
	int err;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		SAY(ERR, "%s: no pools in a secondary process", mp->name);
		return -ENOTSUP;
	}
	p = rte_zmalloc("pcpalloc", sizeof(*p), 0);
	if (!p)
		return -ENOMEM;
	maker = true;
	p->id = ++last_id;
	mp->pool_data = p;
	err = layout_fill(&p->layout, mp);
	if (!err)
		err = heap_make(p, mp);
	if (!err)
		err = pcpa_for_each_arena(p->heap, arena_note, p);
	for (unsigned a = 0; !err && a < p->nr_arenas; a++) {
		err = arena_register(mp, &p->arenas[a]);
		if (!err) {
			p->nr_registered++;
			arena_map(mp, &p->arenas[a], true);
		}
	}
	if (err)
		pool_free(mp);
	return err;
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

/* rte_mempool frees it. */
static int arena_list(struct rte_mempool *mp, const struct pcpa_arena_info *arena)
{
	struct rte_mempool_memhdr *m = rte_zmalloc("pcpalloc", sizeof(*m), 0);

	if (!m)
		return -ENOMEM;
	m->mp = mp;
	m->addr = arena->base;
	m->len = arena->bytes;
	m->iova = iovas_are_addresses() ? (uintptr_t)m->addr : RTE_BAD_IOVA;
	STAILQ_INSERT_TAIL(&mp->mem_list, m, next);
	mp->nb_mem_chunks++;
	return 0;
}

/* Constructs objects in the arena's blocks, all of which are taken. */
static unsigned arena_fill(struct rte_mempool *mp,
			   const struct pcpa_arena_info *arena, unsigned max,
			   rte_mempool_populate_obj_cb_t *construct, void *arg)
{
	const struct pool *p = mp->pool_data;
	size_t page = page_bytes(arena), at;
	rte_iova_t iova = RTE_BAD_IOVA;
	char *start = arena->base; /* of the page */
	unsigned n = 0;

	for (at = 0; at < arena->bytes && n < max; at += p->layout.block_bytes, n++) {
		char *block = (char *)arena->base + at;
		char *object = layout_object(&p->layout, block);

		if (at % page == 0) {
			start = block;
			iova = rte_mem_virt2iova(start);
		}
		construct(mp, arg, object, iova + (rte_iova_t)(object - start));
	}
	return n;
}

static void blocks_free(const struct pool *p, unsigned n)
{
	for (unsigned a = 0; a < p->nr_arenas; a++) {
		char *base = p->arenas[a].base;
		size_t at = 0;

		for (; at < p->arenas[a].bytes && n > 0; at += p->layout.block_bytes, n--)
			pcpa_free_sized(p->heap, base + at, p->layout.order);
	}
}

static int pool_populate(struct rte_mempool *mp, unsigned max, void *memory,
			 rte_iova_t iova, size_t bytes,
			 rte_mempool_populate_obj_cb_t *construct, void *arg)
{
	const struct pool *p = mp->pool_data;
	void *blocks[CHUNK];
	unsigned n = 0;
	size_t got;

	(void)memory, (void)iova, (void)bytes;
	do
		got = pcpa_alloc_bulk(p->heap, p->layout.order, 0, blocks, CHUNK);
	while (got == CHUNK);
	for (unsigned a = 0; a < p->nr_arenas; a++) {
		if (arena_list(mp, &p->arenas[a]))
			return -ENOMEM;
		n += arena_fill(mp, &p->arenas[a], max - n, construct, arg);
	}
	blocks_free(p, n);
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
