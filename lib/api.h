/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api.h - what the files of public functions share.  Layer 6.
 */
#ifndef PCPI_API_H
#define PCPI_API_H

#include <errno.h>

#include "heap.h"

/* Whether calls other than blocks' may go on: 0, -EINVAL without a heap, -ENODEV in
 * a forked child of one without PCPA_HEAP_COW. */
static inline int pcpi_api_check(const struct pcpa_heap *heap)
{
	if (!heap)
		return -EINVAL;
	/* relaxed: set before the child had a second thread. */
	return pcpi_load_relaxed(&heap->forked) ? -ENODEV : 0;
}

#endif
