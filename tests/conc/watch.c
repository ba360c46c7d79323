/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch.c - threads that drive a small heap's level up and down while it is
 * watched, the subscriber comes and goes, and threads end.
 *
 * What one subscriber is told alternates, one call at a time; and when all rest,
 * what it was told last is true.
 */
#include <poll.h>

#include "conc.h"

#define MS 700u
#define THREADS 4u
#define SLICE 200u /* of 512 pages */

struct watch_case {
	struct pcpa_heap *heap;
	bool stop;
};

/* What a subscriber has heard; written by one thread at a time. */
struct heard {
	unsigned inside; /* a: calls that run */
	unsigned nr;
	enum pcpa_event_kind last;
};

static void hear(const struct pcpa_event *e, void *arg)
{
	struct heard *h = arg;

	CHECK(pcpi_fetch_add_relaxed(&h->inside, 1) == 0);
	CHECK(h->nr > 0 || e->kind == PCPA_EVENT_LOW);
	CHECK(h->nr == 0 || e->kind != h->last);
	h->last = e->kind;
	h->nr++;
	sched_yield();
	pcpi_fetch_add_relaxed(&h->inside, -1u);
}

static void wave(struct watch_case *the, unsigned n)
{
	void *blocks[SLICE];
	size_t got = 0;

	while (got < n && (blocks[got] = pcpa_alloc(the->heap, 0, 0)))
		got++;
	pcpa_free_bulk(the->heap, blocks, got);
}

static void waves(unsigned index, void *arg)
{
	struct watch_case *the = arg;
	uint64_t random = index + 1;

	while (!conc_flag(&the->stop))
		wave(the, (unsigned)(conc_random(&random) % SLICE));
}

static void one_wave(unsigned index, void *arg)
{
	(void)index;
	wave(arg, SLICE);
}

static void comers(unsigned index, void *arg)
{
	struct watch_case *the = arg;

	(void)index;
	while (!conc_flag(&the->stop))
		conc_run(1, one_wave, the);
}

static bool is_low(struct pcpa_heap *heap, enum pcpa_event_kind last)
{
	struct pcpa_stats s = conc_stats(heap);
	uint64_t mark = last == PCPA_EVENT_LOW ? s.high_pages : s.low_pages;

	return s.free_pages + s.depot_pages < mark;
}

/* At rest: as told last, or never told because it never was low. */
static void told_truly(struct pcpa_heap *heap, const struct heard *h)
{
	enum pcpa_event_kind last = h->nr ? h->last : PCPA_EVENT_AVAILABLE;

	CHECK(is_low(heap, last) == (last == PCPA_EVENT_LOW));
}

static void watched(unsigned rounds)
{
	struct watch_case the = { .heap = conc_heap(2 * MIB, 0) };
	struct pollfd p = { .fd = pcpa_heap_eventfd(the.heap), .events = POLLIN };
	struct conc_thread threads[THREADS], more;
	struct heard heard[8] = { 0 };
	unsigned i, nr = 0;

	CHECK(p.fd >= 0 && rounds <= 8);
	conc_start(threads, THREADS, waves, &the);
	conc_start(&more, 1, comers, &the);
	for (i = 0; i < rounds; i++) {
		CHECK(pcpa_heap_watch(the.heap, hear, &heard[i]) == 0);
		conc_sleep_ms(MS / rounds);
	}
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	conc_join(&more, 1);
	told_truly(the.heap, &heard[rounds - 1]);
	CHECK(pcpa_heap_watch(the.heap, NULL, NULL) == 0);
	for (i = 0; i < rounds; i++) {
		CHECK_U64(heard[i].inside, ==, 0);
		nr += heard[i].nr;
	}
	CHECK_U64(nr, >, 0);
	CHECK(poll(&p, 1, 0) == 1);
	fprintf(stderr, "%u events\n", nr);
	conc_heap_end(the.heap);
}

int main(void)
{
	watched(1);
	watched(8);
	return 0;
}
