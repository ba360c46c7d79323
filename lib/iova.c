/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iova.c - where a heap's memory is for a device.  Layer 5, part of heap.h.
 *
 * Owns: which addresses have an answer.  The kernel moves base pages and
 * transparent huge pages as it likes, so that their frames are no answer, whatever
 * the page map says; hugetlb pages stay for as long as they are mapped.
 *
 *   page map entry   63: present   54..0: frame, 0 where it is hidden
 *
 * IO1  An address is told only where an arena of hugetlb pages has it.
 *
 * Concurrency: any thread; the arena may go meanwhile if the caller doesn't hold a
 * block of it.  Cost: a walk over the arenas, and four system calls.
 * Failure: a negative errno.  Proved by tests/unit/test_iova.c, tests/sys/.
 */
#include <errno.h>

#include "heap.h"
#include "list.h"
#include "rcu.h"

#define PRESENT (UINT64_C(1) << 63)
#define FRAME_MASK ((UINT64_C(1) << 55) - 1)

/* 0 where an arena of hugetlb pages has the page. */
static int arena_check(struct pcpi_zone *z, uint32_t pfn)
{
	struct pcpi_section section;
	struct pcpi_arena *a;
	int rc = -EINVAL;

	section = pcpi_rcu_read_lock();
	pcpi_list_each(a, &z->arenas, link)
		if (pfn - a->first_pfn < a->pages)
			rc = a->backing == PCPA_BACKING_HUGETLB ? 0 : -ENOTSUP;
	pcpi_rcu_read_unlock(section);
	return rc;
}

int pcpi_heap_iova(struct pcpa_heap *heap, const void *addr, uint64_t *out)
{
	uint64_t off = (uint64_t)((uintptr_t)addr - (uintptr_t)heap->hot.base);
	unsigned shift = heap->hot.page_shift;
	uint32_t pfn = (uint32_t)(off >> shift);
	uint64_t entry;
	int rc;

	if (off >= heap->space.bytes)
		return -EINVAL;
	rc = arena_check(pcpi_zone_of(&heap->env, pfn), pfn);
	if (rc == 0)
		rc = pcpi_sys->pagemap(addr, &entry);
	if (rc != 0)
		return rc == -EACCES ? -EPERM : rc;
	if (!(entry & PRESENT))
		return -EAGAIN;
	if ((entry & FRAME_MASK) == 0)
		return -EPERM;
	*out = (entry & FRAME_MASK) << shift |
	       (off & ((UINT64_C(1) << shift) - 1));
	return 0;
}
