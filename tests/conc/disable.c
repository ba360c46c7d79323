/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * disable.c - caches disabled and enabled while threads churn.
 *
 *   churned     two threads disable beside three that churn and others that
 *               come and go: from a disable that returned 0 to its enable
 *               caches and depots are empty, at every look
 *   at rest     the churners stop in between, holding blocks that are counted:
 *               what statistics say is used is that
 *   NO_IPI      the same where owners are only asked
 *   apart       some only disable and others only enable, beside churn: as many
 *               enables are taken as disables have returned 0, however many were
 *               late, and then the caches are on.  While one thread makes no call,
 *               none succeeds where owners are only asked
 */
#include "conc.h"

#define CHURNERS 3u
#define SWITCHERS 2u
#define LOOKS 20u
#define MS 900u

struct disable_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	bool stop;
	unsigned disabled, late; /* a */
	/* at rest */
	pthread_barrier_t rest;
	uint64_t held; /* a: pages */
};

static void churner(unsigned index, void *arg)
{
	struct disable_case *the = arg;

	conc_churn_until(&the->stop, the->heap, the->seed, index, 6);
}

static void comer(unsigned index, void *arg)
{
	struct disable_case *the = arg;

	conc_churn_some(the->heap, the->seed + 1, CHURNERS + index, 3, 100);
}

static void comers(unsigned index, void *arg)
{
	struct disable_case *the = arg;

	(void)index;
	while (!conc_flag(&the->stop))
		conc_run(2, comer, the);
}

/* True: disabled. */
static bool disable(struct disable_case *the)
{
	int err = pcpa_cache_disable(the->heap, -1);

	CHECK(err == 0 || err == -ETIMEDOUT);
	pcpi_fetch_add_relaxed(err ? &the->late : &the->disabled, 1);
	return err == 0;
}

static void expect_empty(struct pcpa_heap *heap)
{
	struct pcpa_stats s = conc_stats(heap);

	CHECK_U64(s.cached_pages, ==, 0);
	CHECK_U64(s.depot_pages, ==, 0);
	CHECK_U64(s.free_pages + s.used_pages, ==, s.managed_pages);
}

static void switcher(unsigned index, void *arg)
{
	struct disable_case *the = arg;
	uint64_t end = conc_now_ms() + MS;
	unsigned i;

	(void)index;
	do {
		if (!disable(the))
			continue;
		for (i = 0; i < LOOKS; i++) {
			expect_empty(the->heap);
			sched_yield();
		}
		CHECK(pcpa_cache_enable(the->heap, -1) == 0);
		sched_yield();
	} while (conc_now_ms() < end);
}

static void churned(unsigned flags)
{
	struct disable_case the = {
		.heap = conc_heap(64 * MIB, flags),
		.seed = conc_seed(),
	};
	struct conc_thread threads[CHURNERS], more, switchers[SWITCHERS];

	conc_start(threads, CHURNERS, churner, &the);
	conc_start(&more, 1, comers, &the);
	conc_start(switchers, SWITCHERS, switcher, &the);
	conc_join(switchers, SWITCHERS);
	conc_raise(&the.stop);
	conc_join(threads, CHURNERS);
	conc_join(&more, 1);
	fprintf(stderr, "flags %#x: %u disabled, %u late\n", flags, the.disabled,
		the.late);
	CHECK(pcpa_cache_enable(the.heap, -1) == -EINVAL);
	conc_heap_end(the.heap);
}

/* ---- Exact while the callers rest ------------------------------------------- */

#define ROUNDS 12u

static uint64_t churn_pages(const struct conc_churn *churn)
{
	uint64_t pages = 0;
	unsigned i;

	for (i = 0; i < churn->n; i++)
		pages += UINT64_C(1) << churn->orders[i];
	return pages;
}

static void rester(unsigned index, void *arg)
{
	struct disable_case *the = arg;
	struct conc_churn churn;
	unsigned round;

	conc_churn_init(&churn, the->heap, the->seed, index, 6);
	for (round = 0; round < ROUNDS; round++) {
		conc_churn_steps(&churn, 2000);
		pcpi_fetch_add_relaxed(&the->held, churn_pages(&churn));
		pthread_barrier_wait(&the->rest);
		pthread_barrier_wait(&the->rest);
	}
	conc_churn_end(&churn);
}

static void at_rest(void)
{
	struct disable_case the = {
		.heap = conc_heap(64 * MIB, 0),
		.seed = conc_seed(),
	};
	struct conc_thread threads[CHURNERS];
	unsigned round;
	bool off;

	CHECK(pthread_barrier_init(&the.rest, NULL, CHURNERS + 1) == 0);
	conc_start(threads, CHURNERS, rester, &the);
	for (round = 0; round < ROUNDS; round++) {
		off = disable(&the); /* somewhere in the churn */
		pthread_barrier_wait(&the.rest);
		if (off) {
			expect_empty(the.heap);
			CHECK_U64(conc_stats(the.heap).used_pages, ==, the.held);
			CHECK(pcpa_cache_enable(the.heap, -1) == 0);
		}
		the.held = 0;
		pthread_barrier_wait(&the.rest);
	}
	conc_join(threads, CHURNERS);
	pthread_barrier_destroy(&the.rest);
	conc_heap_end(the.heap);
}

/* ---- Disables and enables of different threads --------------------------------- */

#define APART_MS 500u

struct apart_case {
	struct pcpa_heap *heap;
	bool stop, seated, sat;
	unsigned disabled, late, enabled; /* a */
};

static void apart_disabler(unsigned index, void *arg)
{
	struct apart_case *the = arg;

	int err;

	while (!conc_flag(&the->stop)) {
		err = pcpa_cache_disable(the->heap, index & 1 ? 0 : -1);
		CHECK(err == 0 || err == -ETIMEDOUT);
		if (the->heap->options_flags & PCPA_HEAP_NO_IPI && !err)
			CHECK(conc_flag(&the->sat));
		pcpi_fetch_add_relaxed(err ? &the->late : &the->disabled, 1);
	}
}

static void apart_enabler(unsigned index, void *arg)
{
	struct apart_case *the = arg;

	while (!conc_flag(&the->stop)) {
		if (pcpa_cache_enable(the->heap, index & 1 ? 0 : -1) == 0)
			pcpi_fetch_add_relaxed(&the->enabled, 1);
		else
			sched_yield();
	}
}

static void apart_churner(unsigned index, void *arg)
{
	struct apart_case *the = arg;

	conc_churn_until(&the->stop, the->heap, 7, index, 6);
}

/* Has a cache and makes no call: without interruption disables are late. */
static void sitter(unsigned index, void *arg)
{
	struct apart_case *the = arg;

	(void)index;
	pcpa_free(the->heap, pcpa_alloc(the->heap, 0, 0));
	conc_raise(&the->seated);
	conc_await(&the->sat);
}

static void apart(unsigned flags)
{
	struct apart_case the = { .heap = conc_heap(64 * MIB, flags) };
	struct conc_thread disablers[2], enablers[2], churners[2], one;

	conc_start(&one, 1, sitter, &the);
	conc_await(&the.seated);
	conc_start(churners, 2, apart_churner, &the);
	conc_start(disablers, 2, apart_disabler, &the);
	conc_start(enablers, 2, apart_enabler, &the);
	conc_sleep_ms(APART_MS / 2);
	conc_raise(&the.sat);
	conc_join(&one, 1);
	conc_sleep_ms(APART_MS / 2);
	conc_raise(&the.stop);
	conc_join(disablers, 2);
	conc_join(enablers, 2);
	conc_join(churners, 2);
	fprintf(stderr, "flags %#x: %u disabled, %u late, %u enabled\n", flags,
		the.disabled, the.late, the.enabled);
	while (pcpa_cache_enable(the.heap, 0) == 0)
		the.enabled++;
	CHECK_U64(the.enabled, ==, the.disabled);
	CHECK(!pcpi_zone_is_disabled(&the.heap->env.zones[0]));
	conc_heap_end(the.heap);
}

int main(void)
{
	at_rest();
	churned(0);
	churned(PCPA_HEAP_CHECKS);
	churned(PCPA_HEAP_NO_IPI);
	apart(0);
	apart(PCPA_HEAP_NO_IPI);
	return 0;
}
