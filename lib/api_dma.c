/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api_dma.c - public functions for memory that devices or other processes use.
 * Layer 6, part of api.
 *
 * Proved by tests/unit/test_notify.c, test_iova.c and tests/abi/.
 */
#include <errno.h>
#include <pcpalloc/pcpalloc.h>

#include "api.h"

PCPI_EXPORT int pcpa_heap_notify(struct pcpa_heap *heap,
				 int (*fn)(enum pcpa_arena_change,
					   const struct pcpa_arena_info *, void *),
				 void *arg)
{
	int saved = errno, err = pcpi_api_check(heap);

	if (!err && heap->options_flags & PCPA_HEAP_COW)
		err = -EINVAL;
	if (!err)
		err = pcpi_api_begin(heap);
	if (err)
		return err;
	err = pcpi_heap_notify(heap, fn, arg);
	pcpi_api_end(saved);
	return err;
}

PCPI_EXPORT int pcpa_virt_to_iova(struct pcpa_heap *heap, const void *addr,
				  uint64_t *out)
{
	int saved = errno, err = out ? pcpi_api_begin(heap) : -EINVAL;

	if (err)
		return err;
	err = pcpi_heap_iova(heap, addr, out);
	pcpi_api_end(saved);
	return err;
}
