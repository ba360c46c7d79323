/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcpa_mempool.c - a mempool handler for DPDK, "pcpalloc": a pool's objects are
 * those of a pool of the library's (pcpalloc/objpool.h).
 *
 * Owns: what rte_mempool asks for, in words of the library.  EAL and VFIO are told of
 * the memory by pcpalloc/dpdk.h.
 *
 *   alloc      objects, of rte_mempool's header, element and trailer
 *   populate   memory -> mp->mem_list; all objects got, constructed, put
 *   dequeue    get, or nothing: what was in objects[] a lcore's cache counts on
 *   enqueue    put          get_count   what is free
 *   free       no objects, whoever has them
 *
 *  M1  A free object stays constructed.
 *  M2  Only EAL's primary process makes pools and has heaps.  pool_data is in memory
 *      that secondary ones see, too, and tells them that it isn't theirs.
 *
 * Concurrency: any thread may get and put, known to EAL or not, but no signal
 * handler, as with all of rte_mempool.  A pool is made and freed by one thread,
 * while others may make theirs.
 * Cost: that of objpool.h.  Making a pool populates its memory.
 * Failure: a pool that can't be made leaves nothing, and the log says why.
 * Proved by tests/dpdk/.
 */
#include <rte_malloc.h>
#include <rte_mempool.h>

#include <pcpalloc/dpdk.h>
#include <pcpalloc/objpool.h>

RTE_LOG_REGISTER(pcpa_mempool_log, mempool.pcpalloc, NOTICE)

static int fail(const struct rte_mempool *mp, const char *what, int err)
{
	rte_log(RTE_LOG_ERR, (uint32_t)pcpa_mempool_log, "pcpalloc: %s: %s: %s\n",
		mp->name, what, rte_strerror(-err));
	return err;
}

static int fail_elsewhere(const struct rte_mempool *mp) /* M2 */
{
	return fail(mp, "only EAL's primary process makes and uses pools", -ENOTSUP);
}

/* ---- Get and put ----------------------------------------------------------- */

static int pool_dequeue(struct rte_mempool *mp, void **objects, unsigned n)
{
	if (likely(pcpa_objpool_get_bulk(mp->pool_data, objects, n)))
		return 0;
	return errno == ENODEV ? fail_elsewhere(mp) : -ENOBUFS;
}

static __rte_noinline int put(struct rte_mempool *mp, void *const *objects, unsigned n)
{
	int err = pcpa_objpool_put_bulk(mp->pool_data, objects, n);

	return likely(!err) ? 0 : fail_elsewhere(mp);
}

/* Programs that put one by one do so for each packet. */
static int pool_enqueue(struct rte_mempool *mp, void *const *objects, unsigned n)
{
	if (likely(n == 1) && likely(pcpa_objpool_put_hit(mp->pool_data, *objects)))
		return 0;
	return put(mp, objects, n);
}

static unsigned pool_count(const struct rte_mempool *mp)
{
	return (unsigned)pcpa_objpool_count(mp->pool_data);
}

/* ---- A pool begins and ends --------------------------------------------------- */

static void pool_free(struct rte_mempool *mp)
{
	int err = pcpa_objpool_destroy(mp->pool_data);

	if (err) {
		fail(mp, "its memory stays", err);
		return;
	}
	rte_free(mp->pool_data);
	mp->pool_data = NULL; /* rte_mempool calls it for a pool that failed, too */
}

static int pool_alloc(struct rte_mempool *mp)
{
	struct pcpa_heap_options heap = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_objpool_options opts = PCPA_OBJPOOL_OPTIONS_INIT;
	struct rte_mempool_objsz size;
	struct pcpa_objpool *pool;
	char node[16];
	int err;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY)
		return fail_elsewhere(mp);
	snprintf(node, sizeof(node), "%d", mp->socket_id);
	/* mp->trailer_size also has what spreads neighbours over memory channels. */
	rte_mempool_calc_obj_size(mp->elt_size, mp->flags | RTE_MEMPOOL_F_NO_SPREAD,
				  &size);
	heap.nodes = mp->pool_config;
	if (!heap.nodes && mp->socket_id != SOCKET_ID_ANY)
		heap.nodes = node;
	opts.nr_objects = mp->size;
	opts.head_bytes = size.header_size;
	opts.object_bytes = (size_t)size.elt_size + size.trailer_size;
	opts.heap = &heap;
	pool = rte_zmalloc("pcpalloc", sizeof(*pool), 0);
	err = pool ? pcpa_objpool_create(&opts, pool) : -ENOMEM;
	if (err) {
		rte_free(pool);
		return fail(mp, "no objects on its node", err);
	}
	mp->pool_data = pool;
	err = pcpa_dpdk_register(pool->heap);
	if (err) {
		pool_free(mp);
		return fail(mp, "EAL doesn't take its memory", err);
	}
	rte_log(RTE_LOG_INFO, (uint32_t)pcpa_mempool_log,
		"pcpalloc: %s: %u objects, node %s\n", mp->name, mp->size,
		heap.nodes ? heap.nodes : "(any)");
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

/* An error is none constructed: for a negative number DPDK 22.11 frees its chunk
 * twice. */
static int pool_populate(struct rte_mempool *mp, unsigned max, void *memory,
			 rte_iova_t iova, size_t bytes,
			 rte_mempool_populate_obj_cb_t *construct, void *arg)
{
	struct pcpa_objpool *pool = mp->pool_data;
	void **objects = calloc(max, sizeof(*objects));
	unsigned n = 0;

	(void)memory, (void)iova, (void)bytes;
	if (objects && !pcpa_dpdk_list(pool->heap, mp) &&
	    pcpa_objpool_get_bulk(pool, objects, max))
		for (; n < max; n++)
			construct(mp, arg, objects[n], pcpa_dpdk_iova(objects[n]));
	else
		fail(mp, "no objects in its memory", -ENOMEM);
	pcpa_objpool_put_bulk(pool, objects, n);
	free(objects);
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
	if (rte_mempool_register_ops(&ops) < 0)
		rte_log(RTE_LOG_ERR, (uint32_t)pcpa_mempool_log,
			"pcpalloc: not registered: all of the program's "
			RTE_STR(RTE_MEMPOOL_MAX_OPS_IDX) " places for mempool "
			"handlers are taken\n");
}
