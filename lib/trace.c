/* SPDX-License-Identifier: BSD-2-Clause */
/* trace.c - see trace.h. */
#include "trace.h"

#include <errno.h>

#include "nest.h"
#include "rcu.h"

PCPI_COLD void pcpi_trace_emit(struct pcpi_trace *t, enum pcpa_event_kind kind,
			       int node, unsigned order, uint64_t pages,
			       uint64_t count, uint64_t high)
{
	struct pcpi_section section;
	struct pcpa_event event = {
		.struct_size = sizeof(event),
		.kind = kind,
		.node = node,
		.order = order,
		.pages = pages,
		.count = count,
		.high = high,
	};
	struct pcpi_trace_sink *sink;
	int saved = errno;
	unsigned depth;

	section = pcpi_rcu_read_lock();
	/* acquire: pairs with pcpi_trace_set(). */
	sink = pcpi_load_acquire(&t->sink);
	if (sink) {
		depth = pcpi_nest_suspend(); /* NE3 */
		sink->fn(&event, sink->arg);
		pcpi_nest_resume(depth);
	}
	pcpi_rcu_read_unlock(section);
	errno = saved; /* the subscriber may change it */
}

void pcpi_trace_set(struct pcpi_trace *t,
		    void (*fn)(const struct pcpa_event *, void *), void *arg)
{
	/* relaxed: the caller is the only writer. */
	struct pcpi_trace_sink *old = pcpi_load_relaxed(&t->sink);
	struct pcpi_trace_sink *sink = NULL;

	if (fn) {
		sink = &t->sinks[old == &t->sinks[0]];
		*sink = (struct pcpi_trace_sink){ .fn = fn, .arg = arg };
	}
	/* release: pairs with pcpi_trace_emit(). */
	pcpi_store_release(&t->sink, sink);
	pcpi_rcu_synchronize();
}
