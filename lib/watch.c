/* SPDX-License-Identifier: BSD-2-Clause */
/* watch.c - see watch.h. */
#include "watch.h"

#include <errno.h>

#include "nest.h"
#include "rcu.h"
#include "sys/sys.h"

void pcpi_watch_init(struct pcpi_watch *w)
{
	*w = (struct pcpi_watch){ .event_fd = -1 };
}

void pcpi_watch_fini(struct pcpi_watch *w)
{
	if (w->event_fd >= 0)
		pcpi_sys->fd_close(w->event_fd);
	w->event_fd = -1;
}

static uint64_t pages_available(const struct pcpi_zone *z)
{
	/* relaxed: ordered by level_fence(). */
	return pcpi_load_relaxed(&z->free_pages) + pcpi_zone_depot_pages(z);
}

/* LOW or 0, given what was told last. */
static uint8_t level_now(const struct pcpi_zone *z, uint8_t told)
{
	/* relaxed: watermarks change with the zone, which is then looked at. */
	uint64_t mark = told & PCPI_LEVEL_LOW ? pcpi_load_relaxed(&z->marks.high)
					      : pcpi_load_relaxed(&z->marks.low);

	return pages_available(z) < mark ? PCPI_LEVEL_LOW : 0;
}

/* Changes by other threads that looked before are seen after it, and ours by who
 * looks later. */
static uint8_t level_fence(uint8_t *level)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(level);

	/* acquire/release: pairs with itself. */
	while (!pcpi_cas_acq_rel(level, &seen, seen))
		;
	return seen;
}

static void level_told(uint8_t *level)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(level);

	/* acquire/release: pairs with level_fence(). */
	while (!pcpi_cas_acq_rel(level, &seen,
				 (uint8_t)(seen & ~PCPI_LEVEL_TELLING)))
		;
}

static void subscriber_tell(const struct pcpi_trace_sink *sink,
			    const struct pcpi_zone *z, uint8_t level)
{
	struct pcpa_event event = {
		.struct_size = sizeof(event),
		.kind = level ? PCPA_EVENT_LOW : PCPA_EVENT_AVAILABLE,
		.node = (int)z->config.os_node,
		.pages = pages_available(z),
		.count = pcpi_load_relaxed(&z->marks.low), /* relaxed: as above */
		.high = pcpi_load_relaxed(&z->marks.high), /* relaxed: ditto */
	};
	unsigned depth;

	depth = pcpi_nest_suspend(); /* NE3 */
	sink->fn(&event, sink->arg);
	pcpi_nest_resume(depth);
}

/* sink NULL: the watcher is the descriptor. */
static void watcher_look(const struct pcpi_trace_sink *sink, int fd,
			 struct pcpi_zone *z, uint8_t *level)
{
	uint8_t told = level_fence(level), now;

	while (!(told & PCPI_LEVEL_TELLING) &&
	       (now = level_now(z, told)) != told) {
		/* acquire/release: pairs with level_fence(). */
		if (pcpi_cas_acq_rel(level, &told,
				     (uint8_t)(now | PCPI_LEVEL_TELLING))) {
			if (sink)
				subscriber_tell(sink, z, now);
			else
				pcpi_sys->event_raise(fd);
			level_told(level);
		}
		told = level_fence(level);
	}
}

PCPI_COLD void pcpi_watch_look(struct pcpi_watch *w, struct pcpi_zone *z)
{
	struct pcpi_section section;
	int saved = errno;

	/* relaxed: a descriptor lives as long as its heap. */
	int fd = pcpi_load_relaxed(&w->event_fd);
	const struct pcpi_trace_sink *sink;

	/* Whoever replaces the subscriber waits until we have told. */
	section = pcpi_rcu_read_lock();
	/* acquire: pairs with pcpi_trace_set(). */
	sink = pcpi_load_acquire(&w->sink.sink);
	if (sink)
		watcher_look(sink, -1, z, &z->level[sink - w->sink.sinks]);
	pcpi_rcu_read_unlock(section);
	if (fd >= 0)
		watcher_look(NULL, fd, z, &z->level[PCPI_WATCHER_EVENT_FD]);
	errno = saved; /* the subscriber may change it */
}

void pcpi_watch_set(struct pcpi_watch *w,
		    void (*fn)(const struct pcpa_event *, void *), void *arg,
		    struct pcpi_zone *zones, unsigned nr_zones)
{
	/* relaxed: the caller is the only writer.  It will be in the other place,
	 * which nobody looks at (WA2). */
	unsigned place = pcpi_load_relaxed(&w->sink.sink) == &w->sink.sinks[0], i;

	for (i = 0; i < nr_zones; i++)
		/* relaxed: published with the subscriber. */
		pcpi_store_relaxed(&zones[i].level[PCPI_WATCHER_SINK + place], 0);
	pcpi_trace_set(&w->sink, fn, arg);
	/* relaxed: see pcpi_watch_zone(). */
	pcpi_store_relaxed(&w->on, fn || w->event_fd >= 0);
}

int pcpi_watch_event_fd(struct pcpi_watch *w)
{
	int fd = w->event_fd;

	if (fd >= 0)
		return fd;
	fd = pcpi_sys->event_make();
	if (fd < 0)
		return fd;
	/* relaxed: both, see pcpi_watch_zone(). */
	pcpi_store_relaxed(&w->event_fd, fd);
	pcpi_store_relaxed(&w->on, true);
	return fd;
}

void pcpi_watch_forked(struct pcpi_watch *w, struct pcpi_zone *zones,
		       unsigned nr_zones)
{
	unsigned i, l;

	pcpi_watch_fini(w);
	/* relaxed: the child has one thread. */
	pcpi_store_relaxed(&w->on, pcpi_trace_on(&w->sink));
	for (i = 0; i < nr_zones; i++)
		for (l = 0; l < PCPI_WATCHERS; l++)
			/* relaxed: as above; nobody is told yet, WA2. */
			pcpi_store_relaxed(&zones[i].level[l], 0);
}
