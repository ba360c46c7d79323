/* SPDX-License-Identifier: BSD-2-Clause */
/* replaced.c - see replaced.h. */
#include <assert.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_memory.h>
#include <rte_vfio.h>

#include "replaced.h"

#define REPLACED __attribute__((visibility("default")))

struct replaced replaced;

REPLACED enum rte_proc_type_t rte_eal_process_type(void)
{
	return replaced.secondary ? RTE_PROC_SECONDARY : RTE_PROC_PRIMARY;
}

REPLACED enum rte_iova_mode rte_eal_iova_mode(void)
{
	return replaced.physical ? RTE_IOVA_PA : RTE_IOVA_VA;
}

/* EAL's own doesn't tell without huge pages. */
REPLACED rte_iova_t rte_mem_virt2iova(const void *at)
{
	return (uintptr_t)at;
}

REPLACED int rte_vfio_is_enabled(const char *name)
{
	assert(strcmp(name, "vfio") == 0);
	return replaced.vfio;
}

REPLACED int rte_vfio_noiommu_is_enabled(void)
{
	return 0;
}

REPLACED int rte_vfio_container_dma_map(int fd, uint64_t va, uint64_t iova, uint64_t bytes)
{
	assert(fd == RTE_VFIO_DEFAULT_CONTAINER_FD && va == iova);
	replaced.mapped_bytes += bytes;
	return 0;
}

REPLACED int rte_vfio_container_dma_unmap(int fd, uint64_t va, uint64_t iova, uint64_t bytes)
{
	assert(fd == RTE_VFIO_DEFAULT_CONTAINER_FD && va == iova);
	replaced.unmapped_bytes += bytes;
	return 0;
}
