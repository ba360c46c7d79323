/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_new.h - heaps that say nothing, for all kinds of tests; what to do where there
 * is none is each kind's own.
 */
#ifndef HEAP_NEW_H
#define HEAP_NEW_H

#include <pcpalloc/pcpalloc.h>

static inline int heap_new(const char *nodes, size_t initial, size_t max,
			   unsigned flags, struct pcpa_heap **heap)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.nodes = nodes;
	o.initial_bytes = initial;
	o.max_bytes = max;
	o.flags = flags;
	o.verbosity = 0;
	return pcpa_heap_create(&o, heap);
}

#endif
