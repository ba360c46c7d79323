/* SPDX-License-Identifier: BSD-2-Clause */
/* replaced.c - see replaced.h. */
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <rte_vfio.h>

#include <pcpalloc/pcpalloc.h>

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
	return replaced.noiommu;
}

/* EAL's own, which the program's own name hides from RTLD_DEFAULT. */
REPLACED int rte_extmem_unregister(void *at, size_t bytes)
{
	__typeof__(&rte_extmem_unregister) own;

	*(void **)&own = dlsym(RTLD_NEXT, "rte_extmem_unregister");
	if (!replaced.attached)
		return own(at, bytes);
	rte_errno = EBUSY;
	return -1;
}

REPLACED int rte_vfio_container_dma_map(int fd, uint64_t va, uint64_t iova, uint64_t bytes)
{
	assert(fd == RTE_VFIO_DEFAULT_CONTAINER_FD && va == iova);
	if (replaced.unmappable) {
		rte_errno = ENOSPC;
		return -1;
	}
	replaced.mapped_bytes += bytes;
	return 0;
}

REPLACED int rte_vfio_container_dma_unmap(int fd, uint64_t va, uint64_t iova, uint64_t bytes)
{
	assert(fd == RTE_VFIO_DEFAULT_CONTAINER_FD && va == iova);
	replaced.unmapped_bytes += bytes;
	return 0;
}

REPLACED void *rte_zmalloc(const char *type, size_t bytes, unsigned align)
{
	if (type && strcmp(type, "pcpalloc") == 0 && replaced.zmalloc_fails > 0 &&
	    --replaced.zmalloc_fails == 0)
		return NULL;
	return rte_zmalloc_socket(type, bytes, align, SOCKET_ID_ANY);
}

/* EAL loads the library for the plugin alone, so RTLD_NEXT doesn't find it. */
REPLACED size_t pcpa_alloc_bulk(struct pcpa_heap *heap, unsigned order,
				unsigned flags, void **blocks, size_t n)
{
	void *library = dlopen("libpcpalloc.so.0", RTLD_NOW | RTLD_NOLOAD);
	__typeof__(&pcpa_alloc_bulk) own;

	assert(library);
	*(void **)&own = dlsym(library, "pcpa_alloc_bulk");
	dlclose(library);
	return own(heap, order, flags, blocks, n - (replaced.bulk_short && n > 0));
}
