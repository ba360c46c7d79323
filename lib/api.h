/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * api.h - what the files of public functions share.  Layer 6.
 */
#ifndef PCPI_API_H
#define PCPI_API_H

#include <errno.h>

#include "heap.h"
#include "nest.h"

/* Whether calls other than blocks' may go on: 0, -EINVAL without a heap, -ENODEV in
 * a forked child of one without PCPA_HEAP_COW. */
static inline int pcpi_api_check(const struct pcpa_heap *heap)
{
	if (!heap)
		return -EINVAL;
	/* relaxed: set before the child had a second thread. */
	return pcpi_load_relaxed(&heap->forked) ? -ENODEV : 0;
}

/* Begins such a call, which pcpi_api_end() ends if this is 0: as above, or -EAGAIN
 * where it interrupted another one of its thread. */
static inline int pcpi_api_begin(const struct pcpa_heap *heap)
{
	int err = pcpi_api_check(heap);

	if (err || pcpi_nest_enter())
		return err;
	pcpi_nest_leave();
	return -EAGAIN;
}

static inline void pcpi_api_end(int saved_errno)
{
	pcpi_nest_leave();
	errno = saved_errno;
}

#endif
