/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tick.c - ticks from two threads and a background thread beside threads that
 * churn, pause, end and come anew, with a clock that runs a hundred times faster
 * than the real one, so that idle caches come and go.
 *
 * Blocks carry stamps; at the end every page is accounted for, and when all
 * rest, nothing is cached.
 */
#include "conc.h"

#define HELD 400u
#define RUN_MS 1500u
#define FASTER 100u

static struct pcpi_sys sys;
static struct pcpa_heap *heap;
static uint64_t first_seed, hired;
static bool stop;

static uint64_t fast_ns(void)
{
	return pcpi_sys_linux.coarse_ns() * FASTER;
}

static void burst(uint64_t mark, uint64_t *seed)
{
	uint64_t *held[HELD];
	unsigned n = 0, i, order = (unsigned)(conc_random(seed) % 4);

	for (i = 0; i < HELD; i++) {
		held[n] = pcpa_alloc(heap, order, 0);
		if (held[n])
			*held[n++] = mark;
	}
	for (i = 0; i < n; i++) {
		CHECK_U64(*held[i], ==, mark);
		*held[i] = 0;
		pcpa_free(heap, held[i]);
	}
}

/* Works for a while, and rests for some ticks with a full cache. */
static void *work(void *arg)
{
	/* relaxed: any number that is new */
	uint64_t mark = (uintptr_t)arg,
		 seed = first_seed + pcpi_fetch_add_relaxed(&hired, 16) + mark;
	unsigned n = 1 + (unsigned)(conc_random(&seed) % 200);

	while (n-- > 0 && !pcpi_load_relaxed(&stop)) /* relaxed: polled */
		burst(mark, &seed);
	conc_sleep_ms((unsigned)(conc_random(&seed) % 60));
	burst(mark, &seed);
	return NULL;
}

static void *hire(void *arg)
{
	pthread_t t;

	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		CHECK(pthread_create(&t, NULL, work, arg) == 0);
		pthread_join(t, NULL);
	}
	return NULL;
}

static void *tick(void *arg)
{
	(void)arg;
	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		CHECK(pcpa_heap_tick(heap) == 0);
		sched_yield();
	}
	return NULL;
}

static void *sweep(void *arg)
{
	(void)arg;
	while (!pcpi_load_relaxed(&stop)) { /* relaxed: polled */
		int err = pcpa_heap_drain(heap);

		CHECK(err == 0 || err == -ETIMEDOUT);
		conc_sleep_ms(150);
	}
	return NULL;
}

static void expect_rest(unsigned flags)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	CHECK(pcpa_stats_read(heap, -1, &s) == 0);
	CHECK_U64(s.used_pages, ==, 0);
	CHECK_U64(s.free_pages + s.cached_pages + s.depot_pages, ==,
		  s.managed_pages);
	/* The callers' caches are gone with them; this thread has none. */
	for (unsigned i = 0; i < 1000 && s.cached_pages + s.depot_pages > 0; i++) {
		conc_sleep_ms(12);
		CHECK(pcpa_heap_tick(heap) == 0);
		CHECK(pcpa_stats_read(heap, -1, &s) == 0);
	}
	CHECK_U64(s.cached_pages, ==, 0);
	CHECK_U64(s.depot_pages, ==, 0);
	if (!(flags & PCPA_HEAP_NO_IPI))
		CHECK_U64(s.drains_decay, >, 0);
}

static void run(unsigned flags)
{
	void *(*const fns[])(void *) = { hire, hire, hire, tick, tick, sweep };

	heap = conc_heap(64 * MIB, flags);
	conc_mix(fns, sizeof(fns) / sizeof(fns[0]), RUN_MS, &stop);
	expect_rest(flags);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

int main(void)
{
	first_seed = conc_seed();
	sys = pcpi_sys_linux;
	sys.coarse_ns = fast_ns;
	pcpi_sys = &sys;
	run(0);
	run(PCPA_HEAP_BACKGROUND);
	run(PCPA_HEAP_NO_IPI);
	return 0;
}
