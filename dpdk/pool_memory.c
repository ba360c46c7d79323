/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_memory.c - see pool_memory.h. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_vfio.h>

#include <pcpalloc/stats.h>

#include "pool_memory.h"
#include "say.h"

/* ---- What EAL is told ---------------------------------------------------------- */

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

static int arena_register(const struct pcpa_arena_info *arena, const char *name)
{
	size_t page = page_bytes(arena), n = arena->bytes / page;
	rte_iova_t *iovas = calloc(n, sizeof(*iovas));
	bool known = iovas_are_addresses() ||
		     arena->backing == PCPA_BACKING_HUGETLB;
	int err = 0;

	if (!iovas)
		return -ENOMEM;
	for (size_t i = 0; i < n && known; i++) {
		iovas[i] = rte_mem_virt2iova((char *)arena->base + i * page);
		known = iovas[i] != RTE_BAD_IOVA;
	}
	if (!known) {
		err = -ENOTSUP;
		SAY(ERR, "%s: %zu KiB have no physical addresses, which are known of "
			 "hugetlb pages only: reserve more of these, or add "
			 "--iova-mode=va", name, arena->bytes >> 10);
	} else if (rte_extmem_register(arena->base, arena->bytes, iovas,
				       (unsigned)n, page)) {
		err = -rte_errno;
		SAY(ERR, "%s: EAL takes no more memory: %s", name,
		    rte_strerror(rte_errno));
	}
	free(iovas);
	return err;
}

/* Devices behind an IOMMU see what is mapped for them. */
static void arena_map(const struct pcpa_arena_info *arena, const char *name, bool map)
{
	size_t bytes = iovas_are_addresses() ? arena->bytes : page_bytes(arena);
	int (*change)(int, uint64_t, uint64_t, uint64_t) =
		map ? rte_vfio_container_dma_map : rte_vfio_container_dma_unmap;

	if (!rte_vfio_is_enabled("vfio") || rte_vfio_noiommu_is_enabled() == 1)
		return;
	for (size_t at = 0; at < arena->bytes; at += bytes) {
		char *va = (char *)arena->base + at;

		if (change(RTE_VFIO_DEFAULT_CONTAINER_FD, (uintptr_t)va,
			   rte_mem_virt2iova(va), bytes) && map)
			SAY(WARNING, "%s: not mapped for VFIO: %s", name,
			    rte_strerror(rte_errno));
	}
}

/* A heap of fixed size has whole arenas only: what trims give back EAL couldn't
 * forget. */
static int arena_change(enum pcpa_arena_change change,
			const struct pcpa_arena_info *arena, void *name)
{
	bool add = change == PCPA_ARENA_ADD;
	int err = add ? arena_register(arena, name) : 0;

	if (err)
		return err;
	arena_map(arena, name, add);
	if (!add)
		rte_extmem_unregister(arena->base, arena->bytes);
	return 0;
}

static int arena_list(const struct pcpa_arena_info *arena, void *arg)
{
	struct rte_mempool_memhdr *chunk = rte_zmalloc("pcpalloc", sizeof(*chunk), 0);
	struct rte_mempool *mp = arg;

	if (!chunk)
		return -ENOMEM;
	chunk->mp = mp;
	chunk->addr = arena->base;
	chunk->len = arena->bytes;
	chunk->iova = iovas_are_addresses() ? (uintptr_t)arena->base : RTE_BAD_IOVA;
	STAILQ_INSERT_TAIL(&mp->mem_list, chunk, next);
	mp->nb_mem_chunks++;
	return 0;
}

int pool_memory_list(const struct pool_memory *m, struct rte_mempool *mp)
{
	return pcpa_for_each_arena(m->heap, arena_list, mp);
}

rte_iova_t pool_memory_iova(const void *at)
{
	const struct rte_memseg *page = rte_mem_virt2memseg(at, NULL);

	return page->iova + RTE_PTR_DIFF(at, page->addr);
}

/* ---- The heap ------------------------------------------------------------------- */

static int heap_make(const struct rte_mempool *mp, unsigned order,
		     struct pcpa_heap **heap)
{
	size_t block_bytes = (size_t)sysconf(_SC_PAGESIZE) << order;
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	int socket = mp->socket_id, err;
	char node[16];

	if (socket == SOCKET_ID_ANY)
		socket = (int)rte_socket_id();
	if (socket == SOCKET_ID_ANY)
		socket = rte_socket_id_by_idx(0);
	snprintf(node, sizeof(node), "%d", socket);
	opts.nodes = mp->pool_config ? mp->pool_config : node;
	opts.flags = PCPA_HEAP_FIXED | PCPA_HEAP_CONTENTS;
	opts.initial_bytes = mp->size * block_bytes;
	err = pcpa_heap_create(&opts, heap);
	if (err)
		SAY(ERR, "%s: no heap of %zu MiB on node %s: %s", mp->name,
		    opts.initial_bytes >> 20, opts.nodes, rte_strerror(-err));
	else
		SAY(INFO, "%s: %u objects, a block of %zu bytes each, node %s",
		    mp->name, mp->size, block_bytes, opts.nodes);
	return err;
}

/* Which depends on the size of the node's huge pages. */
static int order_serve(const struct pool_memory *m, const struct rte_mempool *mp,
		       unsigned order)
{
	unsigned max = pcpa_heap_max_order(m->heap);

	if (order <= max)
		return 0;
	SAY(ERR, "%s: objects of %u bytes and their headers are larger than a block "
		 "can be, %zu", mp->name, mp->elt_size,
	    pcpa_heap_page_bytes(m->heap) << max);
	return -EINVAL;
}

uint64_t pool_memory_free_pages(const struct pool_memory *m)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	return pcpa_stats_read(m->heap, -1, &s) ? 0
						: s.managed_pages - s.used_pages;
}

static int blocks_take(struct pool_memory *m, const struct rte_mempool *mp,
		       unsigned order)
{
	size_t n = pool_memory_free_pages(m) >> order;

	m->blocks = calloc(n, sizeof(*m->blocks));
	if (!m->blocks)
		return -ENOMEM;
	m->nr_blocks = pcpa_alloc_bulk(m->heap, order, 0, m->blocks, n);
	if (m->nr_blocks >= mp->size)
		return 0;
	SAY(ERR, "%s: %zu of %u blocks are there", mp->name, m->nr_blocks, mp->size);
	return -ENOMEM;
}

int pool_memory_make(struct pool_memory *m, const struct rte_mempool *mp,
		     unsigned order)
{
	int err;

	*m = (struct pool_memory){.nr_blocks = 0};
	err = heap_make(mp, order, &m->heap);
	if (err)
		return err;
	err = order_serve(m, mp, order);
	if (!err)
		err = pcpa_heap_notify(m->heap, arena_change,
				       (void *)(uintptr_t)mp->name);
	if (!err)
		err = blocks_take(m, mp, order);
	if (err)
		pool_memory_end(m, mp->name);
	return err;
}

/* In a drained heap what has an order is in use. */
void pool_memory_end(struct pool_memory *m, const char *name)
{
	int err;

	pcpa_heap_notify(m->heap, NULL, NULL);
	err = pcpa_heap_drain(m->heap);
	for (size_t i = 0; i < m->nr_blocks && !err; i++)
		if (pcpa_block_order(m->heap, m->blocks[i]) >= 0)
			pcpa_free(m->heap, m->blocks[i]);
	if (!err)
		err = pcpa_heap_destroy(m->heap);
	if (err)
		SAY(ERR, "%s: its memory stays: %s%s", name, rte_strerror(-err),
		    err == -ETIMEDOUT ? ", a thread is inside of it" : "");
	free(m->blocks);
}
