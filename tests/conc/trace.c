/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace.c - subscribing and unsubscribing while events fly: the function gets
 * the argument that it was subscribed with, and once pcpa_heap_trace() has
 * returned the former argument is no longer used.
 */
#include "conc.h"

#define THREADS 3u
#define MS 2000u
#define BURST 256u
#define ALIVE UINT64_C(0x5eed5eed5eed5eed)

struct subscriber {
	uint64_t alive;
	void (*fn)(const struct pcpa_event *, void *);
	uint64_t events; /* a */
};

struct trace_case {
	struct pcpa_heap *heap;
	bool stop;
};

static void event_check(const struct pcpa_event *e, struct subscriber *s)
{
	CHECK(s->alive == ALIVE);
	CHECK(e->struct_size == sizeof(*e));
	CHECK(e->kind <= PCPA_EVENT_ARENA_GROW);
	CHECK(e->order <= PCPA_MAX_ORDER);
	CHECK(e->pages > 0);
	pcpi_fetch_add_relaxed(&s->events, 1);
}

static void even(const struct pcpa_event *e, void *arg)
{
	struct subscriber *s = arg;

	CHECK(s->fn == even);
	event_check(e, s);
}

static void odd(const struct pcpa_event *e, void *arg)
{
	struct subscriber *s = arg;

	CHECK(s->fn == odd);
	event_check(e, s);
}

/* Refills, flushes and sweeps. */
static void cause(unsigned index, void *arg)
{
	struct trace_case *the = arg;
	void *blocks[BURST];
	size_t got;

	while (!conc_flag(&the->stop)) {
		got = pcpa_alloc_bulk(the->heap, index, 0, blocks, BURST);
		CHECK(got > 0);
		pcpa_free_bulk(the->heap, blocks, got);
		pcpa_thread_flush(the->heap);
		if (index == 0)
			pcpa_heap_drain(the->heap);
	}
}

/* Subscribes, perhaps over the former one, and ends that one. */
static struct subscriber *replace(struct pcpa_heap *heap, unsigned round,
				  struct subscriber *old, uint64_t *events)
{
	struct subscriber *s = NULL;

	if (round % 4 != 3) {
		s = malloc(sizeof(*s));
		CHECK(s);
		*s = (struct subscriber){ ALIVE, round % 2 ? odd : even, 0 };
	}
	CHECK(pcpa_heap_trace(heap, s ? s->fn : NULL, s) == 0);
	if (old) {
		*events += old->events;
		old->alive = 0;
		free(old);
	}
	return s;
}

int main(void)
{
	struct trace_case the = { .heap = conc_heap(64 * MIB, 0) };
	struct conc_thread threads[THREADS];
	struct subscriber *s = NULL;
	uint64_t end = conc_now_ms() + MS, events = 0;
	unsigned round = 0;

	conc_start(threads, THREADS, cause, &the);
	do {
		s = replace(the.heap, round++, s, &events);
		if (round % 16 == 0)
			conc_sleep_ms(5);
	} while (conc_now_ms() < end || events == 0);
	replace(the.heap, 3, s, &events);
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	fprintf(stderr, "%u subscriptions, %" PRIu64 " events\n", round, events);
	conc_heap_end(the.heap);
	return 0;
}
