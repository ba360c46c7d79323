/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dpdk.h - heaps whose memory DPDK knows: for a program or a mempool handler that
 * gives blocks to DPDK's drivers.  Needs DPDK's headers, 22.11 or later, none of its
 * experimental interfaces, and the program to be linked with it.
 *
 *     pcpa_dpdk_register(heap);      once, after rte_eal_init(); the heap is destroyed,
 *                                    or pcpa_heap_notify(heap, NULL, NULL) called,
 *                                    before rte_eal_cleanup()
 *
 *     arena added    -> EAL's table of memory, in huge pages, with their addresses for
 *                       devices
 *                    -> VFIO, where it is in use
 *     arena removed  -> both forget
 *
 *     cc ... $(pkg-config --cflags --libs libpcpalloc libdpdk)
 *
 * A heap may grow and shrink meanwhile.  EAL forgets what it was told of as a whole
 * only, so a trim that wants a part of an arena is refused (trim_vetoed); each arena
 * takes one of EAL's places for memory (128 lists for everything), and the heap doesn't
 * grow when there is none.  Devices that are added to the program later need
 * rte_dev_dma_map().  For EAL's primary process: what a secondary one enters into the
 * table stays there when it dies.  One that has attached to the memory
 * (rte_extmem_attach()) detaches before the heap ends, or EAL keeps what it knows.
 *
 * Addresses for devices are the virtual ones, or with --iova-mode=pa physical ones,
 * which only hugetlb pages have: the kernel moves others.
 */
#ifndef PCPALLOC_DPDK_H
#define PCPALLOC_DPDK_H

#include <errno.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_mempool.h>
#include <rte_vfio.h>

#include <pcpalloc/pcpalloc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PCPA_DPDK_SAY_(level, ...) RTE_LOG(level, EAL, "pcpalloc: " __VA_ARGS__)

/* Devices behind an IOMMU see what is mapped for them; addresses that are the virtual
 * ones are contiguous. */
static inline void pcpa_dpdk_map_(const struct pcpa_arena_info *arena, int map)
{
	size_t bytes = rte_eal_iova_mode() == RTE_IOVA_VA ? arena->bytes
							  : arena->granule_bytes;
	size_t at;

	if (!rte_vfio_is_enabled("vfio") || rte_vfio_noiommu_is_enabled() == 1)
		return;
	for (at = 0; at < arena->bytes; at += bytes) {
		void *va = (char *)arena->base + at;
		uint64_t iova = rte_mem_virt2iova(va);

		if (!map)
			rte_vfio_container_dma_unmap(RTE_VFIO_DEFAULT_CONTAINER_FD,
						     (uintptr_t)va, iova, bytes);
		else if (rte_vfio_container_dma_map(RTE_VFIO_DEFAULT_CONTAINER_FD,
						    (uintptr_t)va, iova, bytes))
			PCPA_DPDK_SAY_(WARNING, "%zu KiB not mapped for VFIO: %s\n",
				       bytes >> 10, rte_strerror(rte_errno));
	}
}

/* Fills iovas[n] of the arena's huge pages.  Returns 0 or -ENOTSUP. */
static inline int pcpa_dpdk_iovas_(const struct pcpa_arena_info *arena,
				   rte_iova_t *iovas, size_t n)
{
	int known = rte_eal_iova_mode() == RTE_IOVA_VA ||
		    arena->backing == PCPA_BACKING_HUGETLB;
	size_t i;

	for (i = 0; i < n && known; i++) {
		iovas[i] = rte_mem_virt2iova((char *)arena->base +
					     i * arena->granule_bytes);
		known = iovas[i] != RTE_BAD_IOVA;
	}
	if (known)
		return 0;
	PCPA_DPDK_SAY_(ERR, "%zu KiB have no physical addresses, which are known of "
			    "hugetlb pages only: reserve more of these, or add "
			    "--iova-mode=va\n", arena->bytes >> 10);
	return -ENOTSUP;
}

static inline int pcpa_dpdk_add_(const struct pcpa_arena_info *arena)
{
	size_t n = arena->bytes / arena->granule_bytes;
	rte_iova_t *iovas = (rte_iova_t *)calloc(n, sizeof(*iovas));
	int err = iovas ? pcpa_dpdk_iovas_(arena, iovas, n) : -ENOMEM;

	if (!err && rte_extmem_register(arena->base, arena->bytes, iovas,
					(unsigned)n, arena->granule_bytes)) {
		err = -rte_errno;
		PCPA_DPDK_SAY_(ERR, "EAL takes no %zu KiB more memory: %s\n",
			       arena->bytes >> 10, rte_strerror(rte_errno));
	}
	free(iovas);
	if (!err)
		pcpa_dpdk_map_(arena, 1);
	return err;
}

static inline int pcpa_dpdk_remove_(const struct pcpa_arena_info *arena)
{
	const struct rte_memseg_list *list = rte_mem_virt2memseg_list(arena->base);

	if (!list || list->base_va != arena->base || list->len != arena->bytes)
		return -EBUSY;
	/* Refused while another process is attached: then devices go on. */
	if (rte_extmem_unregister(arena->base, arena->bytes))
		return -rte_errno;
	pcpa_dpdk_map_(arena, 0);
	return 0;
}

static inline int pcpa_dpdk_change_(enum pcpa_arena_change change,
				    const struct pcpa_arena_info *arena, void *arg)
{
	(void)arg;
	return change == PCPA_ARENA_ADD ? pcpa_dpdk_add_(arena)
					: pcpa_dpdk_remove_(arena);
}

/*
 * Has EAL and VFIO know the heap's memory until the heap is destroyed, as the heap's
 * subscriber (pcpa_heap_notify(), whose errors it has).  Returns 0, or with nothing
 * registered: -ENOTSUP where memory has no address for devices, what EAL refuses
 * with (-ENOSPC: its table is full), -ENOMEM; the log says which.  That VFIO refuses
 * is a warning.  Cost: for physical addresses a look at the page map for each huge
 * page.
 */
static inline int pcpa_dpdk_register(struct pcpa_heap *heap)
{
	return pcpa_heap_notify(heap, pcpa_dpdk_change_, NULL);
}

/* The address for devices of a byte of a registered heap; of any other address
 * RTE_BAD_IOVA, or that address where they are the virtual ones.  Cost: where it is a
 * physical one a walk of EAL's lists. */
static inline rte_iova_t pcpa_dpdk_iova(const void *at)
{
	const struct rte_memseg *page;

	if (rte_eal_iova_mode() == RTE_IOVA_VA)
		return (uintptr_t)at;
	page = rte_mem_virt2memseg(at, NULL);
	return page ? page->iova + RTE_PTR_DIFF(at, page->addr) : RTE_BAD_IOVA;
}

static inline int pcpa_dpdk_chunk_(const struct pcpa_arena_info *arena, void *arg)
{
	struct rte_mempool *mp = (struct rte_mempool *)arg;
	struct rte_mempool_memhdr *chunk = (struct rte_mempool_memhdr *)rte_zmalloc(
		"pcpalloc", sizeof(*chunk), 0);

	if (!chunk)
		return -ENOMEM;
	chunk->mp = mp;
	chunk->addr = arena->base;
	chunk->len = arena->bytes;
	chunk->iova = rte_eal_iova_mode() == RTE_IOVA_VA ? (uintptr_t)arena->base
							 : RTE_BAD_IOVA;
	STAILQ_INSERT_TAIL(&mp->mem_list, chunk, next);
	mp->nb_mem_chunks++;
	return 0;
}

/*
 * Adds a chunk for each arena that the heap has to a mempool's mem_list, in which some
 * drivers look for its memory; rte_mempool frees them with the pool.  Returns 0 or
 * -ENOMEM.
 */
static inline int pcpa_dpdk_list(struct pcpa_heap *heap, struct rte_mempool *mp)
{
	return pcpa_for_each_arena(heap, pcpa_dpdk_chunk_, mp);
}

#ifdef __cplusplus
}
#endif

#endif
