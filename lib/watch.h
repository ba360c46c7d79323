/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.h - telling the program when a node runs low, and when no longer.
 * Layer 4.
 *
 * Owns: the watchers, which are the subscriber's function and the event descriptor,
 * and what each was last told of a zone (zone->level).
 *
 *     free + depot pages  < low watermark    told once: low
 *                        >= high watermark   told once: available
 *
 *     level:  0 --low--> LOW|TELLING --told--> LOW --available--> TELLING --> 0
 *
 * WA1  One thread at a time tells a watcher of a zone, so that what is told last is
 *     true; it looks again when it has told, and whoever finds it at that leaves it
 *     to it.
 * WA2  A watcher begins with nothing told: two subscribers, of which one follows
 *     the other, have levels of their own.
 * WA3  A look comes after the change that it is for, with no lock and no mark held.
 *
 * Concurrency: any thread.  Cost: a load where nobody watches; else a
 * read-modify-write and some loads at each slow path, and nothing on hits.
 * Failure: none.  Proved by tests/unit/test_watch.c, tests/conc/watch.c.
 */
#ifndef PCPI_WATCH_H
#define PCPI_WATCH_H

#include "trace.h"
#include "zone.h"

enum pcpi_level {
	PCPI_LEVEL_LOW = 1,	/* told last: low */
	PCPI_LEVEL_TELLING = 2, /* by a thread at this moment: WA1 */
};

/* Watchers, indexes of zone->level: a subscriber in either place of sink. */
enum pcpi_watcher {
	PCPI_WATCHER_SINK = 0,
	PCPI_WATCHER_EVENT_FD = 2,
	PCPI_WATCHERS,
};

struct pcpi_watch {
	bool on;		/* a: somebody watches */
	struct pcpi_trace sink; /* the subscriber */
	int event_fd;		/* a: -1: none */
};

void pcpi_watch_init(struct pcpi_watch *w);

/* Closes the descriptor. */
void pcpi_watch_fini(struct pcpi_watch *w);

/* Replaces the subscriber, as pcpi_trace_set(). */
void pcpi_watch_set(struct pcpi_watch *w,
		    void (*fn)(const struct pcpa_event *, void *), void *arg,
		    struct pcpi_zone *zones, unsigned nr_zones);

/* The event descriptor, made at need, or a negative errno.  Requires that the
 * caller serialises. */
int pcpi_watch_event_fd(struct pcpi_watch *w);

/* In a forked child, which has a subscriber as the parent but not its descriptor:
 * nobody is at telling. */
void pcpi_watch_forked(struct pcpi_watch *w, struct pcpi_zone *zones,
		       unsigned nr_zones);

void pcpi_watch_look(struct pcpi_watch *w, struct pcpi_zone *z);

/* After a change of what the zone has free: WA3. */
PCPI_INLINE void pcpi_watch_zone(struct pcpi_watch *w, struct pcpi_zone *z)
{
	/* relaxed: news from before the subscription may be told or not. */
	if (pcpi_unlikely(pcpi_load_relaxed(&w->on)))
		pcpi_watch_look(w, z);
}

PCPI_INLINE void pcpi_watch_zones(struct pcpi_watch *w, struct pcpi_zone *zones,
				  unsigned nr_zones)
{
	unsigned i;

	/* relaxed: as above. */
	if (pcpi_unlikely(pcpi_load_relaxed(&w->on)))
		for (i = 0; i < nr_zones; i++)
			pcpi_watch_look(w, &zones[i]);
}

#endif
