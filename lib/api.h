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

/* Of an allocation that has counted itself in (outer: as the first of its thread):
 * negative errno, or 0 with *req filled. */
PCPI_COLD int pcpi_api_request(struct pcpa_heap *heap, unsigned order,
			       unsigned flags, bool outer,
			       struct pcpi_request *req);

/* Zeroes a block where the request says so. */
void pcpi_api_zero(const struct pcpi_request *req, void *block);

/* The error of a request that got fewer blocks than it asked for. */
int pcpi_api_shortage(const struct pcpi_request *req);

/* Frees a block that is no hit.  said: the order that the caller says, or -1. */
PCPI_COLD void pcpi_api_free(struct pcpa_heap *heap, void *block, int said);

#endif
