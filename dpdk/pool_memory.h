/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_memory.h - the memory of a pool: a heap that EAL knows of.
 *
 * Owns: a heap of fixed size on one node; what EAL, VFIO and the pool's list of
 * memory are told of its arenas; a list of its blocks.
 *
 *   make   heap -> each arena: EAL's table of memory, in pages of the size that it
 *               |             has, with their addresses for devices
 *               |             VFIO, where it is in use
 *               -> all blocks: taken, and the caller's
 *   list   each arena -> mp->mem_list
 *   end    EAL and VFIO forget -> blocks that are out: freed -> no heap
 *
 * Addresses for devices are the virtual ones (RTE_IOVA_VA), or physical ones, which
 * only hugetlb pages have: others are moved by the kernel.
 *
 * Concurrency: none; a pool is made and freed by one thread.
 * Failure: make leaves nothing.  That VFIO doesn't map is a warning.
 * Cost: of make, the heap's population, and for physical addresses a look at the
 * page map for each page; a pointer for each block.
 * Proved by tests/dpdk/.
 */
#ifndef PCPALLOC_DPDK_POOL_MEMORY_H
#define PCPALLOC_DPDK_POOL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <rte_mempool.h>

#include <pcpalloc/pcpalloc.h>

struct pool_memory {
	struct pcpa_heap *heap;
	void **blocks; /* all there are */
	size_t nr_blocks;
};

/* mp->size blocks of the order and what more there is room for, on the node that
 * mp->pool_config names, or else the pool's socket, or the caller's.  Returns 0, or a
 * negative errno with *m undefined: -EINVAL where the heap has no blocks so large. */
int pool_memory_make(struct pool_memory *m, const struct rte_mempool *mp,
		     unsigned order);

/* Requires that nobody is inside the heap: otherwise it stays, which the log says. */
void pool_memory_end(struct pool_memory *m, const char *name);

/* Pages that nobody has. */
uint64_t pool_memory_free_pages(const struct pool_memory *m);

/* Adds a chunk for each arena, which rte_mempool frees.  Returns 0 or -ENOMEM. */
int pool_memory_list(const struct pool_memory *m, struct rte_mempool *mp);

/* The address for devices of a byte of a block. */
rte_iova_t pool_memory_iova(const void *at);

#endif
