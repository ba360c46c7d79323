/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.h - the heap's trace hook.  Layer 1 with pcpalloc.h.
 *
 * Owns: one subscriber, a pair of function and argument published as a whole.
 * An event is emitted with no lock and no mark held; with no subscriber it
 * costs one load.  The pair in use stays valid while a reader is in its
 * read-side section: pcpi_trace_set() waits for them.
 *
 * Proved by tests/unit/test_trace.c.
 */
#ifndef PCPI_TRACE_H
#define PCPI_TRACE_H

#include <pcpalloc/pcpalloc.h>

#include "atomics.h"
#include "base.h"

struct pcpi_trace_sink {
	void (*fn)(const struct pcpa_event *, void *);
	void *arg;
};

struct pcpi_trace {
	struct pcpi_trace_sink *sink; /* a: NULL, or one of sinks */
	struct pcpi_trace_sink sinks[2];
};

PCPI_INLINE bool pcpi_trace_on(const struct pcpi_trace *t)
{
	/* relaxed: an event more or less around the moment of subscription. */
	return pcpi_unlikely(pcpi_load_relaxed(&t->sink) != NULL);
}

/* Calls the subscriber, if there is one. */
void pcpi_trace_emit(struct pcpi_trace *t, enum pcpa_event_kind kind, int node,
		     unsigned order, uint64_t pages, uint64_t count,
		     uint64_t high);

/* Replaces the subscriber (fn NULL: none); afterwards the old one is not
 * running and will not be called.  Requires that the caller serialises. */
void pcpi_trace_set(struct pcpi_trace *t,
		    void (*fn)(const struct pcpa_event *, void *), void *arg);

#endif
