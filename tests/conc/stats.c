/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.c - statistics that are read while everything moves: counters never
 * fall, a state is never more than there is, and texts are whole.
 */
#include "conc.h"

#include <stddef.h>

#define THREADS 3u
#define MS 2500u

struct stats_case {
	struct pcpa_heap *heap;
	bool stop;
};

static void worker(unsigned index, void *arg)
{
	struct stats_case *the = arg;
	struct conc_churn churn;
	unsigned lives;

	conc_churn_init(&churn, the->heap, 31, index, 6);
	for (lives = 0; !conc_flag(&the->stop); lives++) {
		conc_churn_steps(&churn, 200);
		if (lives % 4 == index)
			CHECK(pcpa_thread_flush(the->heap) == 0);
		if (index == 0)
			pcpa_heap_drain(the->heap);
	}
	conc_churn_end(&churn);
}

/* Owners that come and go, so that caches change hands under the reader. */
static void visitor(unsigned index, void *arg)
{
	worker(index % THREADS, arg);
}

static void guests(unsigned index, void *arg)
{
	struct stats_case *the = arg;
	struct stats_case once = { .heap = the->heap, .stop = true };
	void *block;

	(void)index;
	while (!conc_flag(&the->stop)) {
		conc_run(2, visitor, &once);
		block = pcpa_alloc(the->heap, 1, 0);
		CHECK(block);
		pcpa_free(the->heap, block);
	}
}

#define FIELD(f) offsetof(struct pcpa_stats, f)

static const size_t counters[] = {
	FIELD(alloc_total), FIELD(free_total), FIELD(failed_total),
	FIELD(bad_frees), FIELD(zone_locks), FIELD(zone_contended),
	FIELD(drains), FIELD(drains_high), FIELD(drains_freer),
	FIELD(drains_flush), FIELD(drains_sweep), FIELD(refills),
	FIELD(depot_gets), FIELD(depot_puts), FIELD(busy_skipped),
	FIELD(numa_hit), FIELD(numa_miss), FIELD(numa_foreign),
	FIELD(managed_pages), FIELD(arenas), /* these only grow, too */
};

static uint64_t field(const struct pcpa_stats *s, size_t offset)
{
	return *(const uint64_t *)(const void *)((const char *)s + offset);
}

/* More than that in one step is a torn value. */
#define STEP_MAX (UINT64_C(1) << 32)

static void counters_check(const struct pcpa_stats *then,
			   const struct pcpa_stats *now)
{
	size_t i;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		uint64_t before = field(then, counters[i]);
		uint64_t after = field(now, counters[i]);

		if (after < before || after - before > STEP_MAX)
			fprintf(stderr, "counter %zu (offset %zu)\n", i,
				counters[i]);
		CHECK_U64(after, >=, before);
		CHECK_U64(after - before, <=, STEP_MAX);
	}
}

static void states_check(const struct pcpa_stats *s)
{
	CHECK_U64(s->free_pages, <=, s->managed_pages);
	CHECK_U64(s->depot_pages, <=, s->managed_pages);
	CHECK_U64(s->used_pages, <=, s->managed_pages);
	CHECK_U64(s->cached_pages, <=, s->managed_pages);
	CHECK_U64(s->bad_frees, ==, 0);
}

static void text_check(struct pcpa_heap *heap, enum pcpa_stats_format format)
{
	static char text[1 << 16];
	int len = pcpa_stats_format(heap, format, text, sizeof(text));

	CHECK(len > 0 && (size_t)len < sizeof(text));
	CHECK_U64(strlen(text), ==, (size_t)len);
}

int main(void)
{
	struct stats_case the = { .heap = conc_growing_heap(64 * MIB, 0) };
	struct conc_thread threads[THREADS], guest;
	uint64_t end = conc_now_ms() + MS, reads = 0;
	struct pcpa_stats then, now;

	then = conc_stats(the.heap);
	conc_start(threads, THREADS, worker, &the);
	conc_start(&guest, 1, guests, &the);
	do {
		now = conc_stats(the.heap);
		counters_check(&then, &now);
		states_check(&now);
		then = now;
		if (reads++ % 32 == 0)
			text_check(the.heap,
				   (enum pcpa_stats_format)(reads / 32 % 4));
	} while (conc_now_ms() < end);
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	conc_join(&guest, 1);
	fprintf(stderr, "%" PRIu64 " reads, %" PRIu64 " blocks\n", reads,
		now.alloc_total);
	conc_heap_end(the.heap);
	return 0;
}
