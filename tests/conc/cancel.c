/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cancel.c - threads that are cancelled.
 *
 *   asynchronously, in a loop of allocations and frees that its cache serves:
 *       another goes on, the cache is taken over, and at most the block in the
 *       thread's hand is lost with each.  Loops that miss hold locks, which
 *       nothing can make safe for asynchronous cancellation.  Not under
 *       ThreadSanitizer, whose own code in that loop is no safer.
 *   deferred, with the request pending, in the creation of the first heap and
 *       calls that refill, grow, flush and drain: no call acts on it, so that no lock is lost
 *
 * Not under AddressSanitizer, which doesn't see that a cancelled thread's frames
 * are gone, and takes those of the destructors for overflows of them.
 */
#include "conc.h"

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define CANCEL_ASAN 1
#else
#define CANCEL_ASAN 0
#endif

#define ROUNDS 1000u
#define WARM 64u

struct cancel_case {
	struct pcpa_heap *heap;
	bool in;
};

struct bystander {
	struct pcpa_heap *heap;
	uint64_t steps; /* a */
	bool stop;
};

/* Goes on all the while. */
static void bystand(unsigned index, void *arg)
{
	struct bystander *the = arg;
	struct conc_churn churn;

	conc_churn_init(&churn, the->heap, 9, index, 5);
	while (!conc_flag(&the->stop)) {
		conc_churn_steps(&churn, 64);
		pcpi_fetch_add_relaxed(&the->steps, 64);
		conc_sleep_ms(1);
	}
	conc_churn_end(&churn);
}

static void *hitter(void *arg)
{
	struct cancel_case *the = arg;
	void *blocks[WARM], *block;
	int old;

	CHECK(pcpa_alloc_bulk(the->heap, 0, 0, blocks, WARM) == WARM);
	pcpa_free_bulk(the->heap, blocks, WARM);
	block = pcpa_alloc(the->heap, 0, 0);
	pcpa_free(the->heap, block);
	conc_raise(&the->in);
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	for (;;) {
		void *two = pcpa_alloc(the->heap, 0, 0);
		void *one = pcpa_alloc(the->heap, 0, 0);

		pcpa_free(the->heap, one);
		pcpa_free(the->heap, two);
	}
	return NULL;
}

static void cancelled_inside(void)
{
	struct pcpa_heap *heap = conc_heap(64 * MIB, 0);
	struct bystander beside = { .heap = heap };
	uint64_t spin = conc_seed(), steps = 0;
	struct conc_thread other;
	struct pcpa_stats s;
	pthread_t thread;
	unsigned i;
	void *end;

	conc_start(&other, 1, bystand, &beside);
	for (i = 0; i < ROUNDS; i++) {
		struct cancel_case the = { .heap = heap };

		CHECK(pthread_create(&thread, NULL, hitter, &the) == 0);
		conc_await(&the.in);
		for (unsigned n = (unsigned)(conc_random(&spin) % 2000); n > 0; n--)
			pcpi_compiler_barrier();
		CHECK(pthread_cancel(thread) == 0);
		CHECK(pthread_join(thread, &end) == 0);
		CHECK(end == PTHREAD_CANCELED);
		/* Nobody is shut out, and the cache comes back each time. */
		CHECK(pcpa_heap_drain(heap) == 0);
	}
	steps = pcpi_load_relaxed(&beside.steps);
	while (pcpi_load_relaxed(&beside.steps) == steps)
		conc_sleep_ms(1);
	conc_raise(&beside.stop);
	conc_join(&other, 1);
	CHECK(pcpa_heap_drain(heap) == 0);
	s = conc_stats(heap);
	fprintf(stderr, "%u cancelled, %" PRIu64 " pages lost\n", ROUNDS,
		s.used_pages);
	CHECK_U64(s.cached_pages, ==, 0);
	CHECK_U64(s.used_pages, <=, 3 * ROUNDS); /* two held, one in hand */
	CHECK_U64(conc_caches_made(heap), ==, 2);
	CHECK(pcpi_zone_check(&heap->env.zones[0]));
	/* The heap has lost blocks and so is left to the process's end. */
}

static void *deferred(void *arg)
{
	struct cancel_case *the = arg;
	struct conc_churn churn;
	void *large;

	CHECK(pthread_cancel(pthread_self()) == 0);
	the->heap = conc_growing_heap(64 * MIB, 0); /* the first of all */
	large = pcpa_alloc(the->heap, 9, 0); /* grows */
	CHECK(large);
	pcpa_free(the->heap, large);
	conc_churn_init(&churn, the->heap, 3, 0, 9);
	conc_churn_steps(&churn, 500);
	conc_churn_end(&churn);
	CHECK(pcpa_thread_flush(the->heap) == 0);
	CHECK(pcpa_heap_drain(the->heap) == 0);
	conc_raise(&the->in);
	for (;;)
		pthread_testcancel();
	return NULL;
}

static void cancelled_later(void)
{
	struct cancel_case the = { .heap = NULL };
	pthread_t thread;
	void *end;

	CHECK(pthread_create(&thread, NULL, deferred, &the) == 0);
	CHECK(pthread_join(thread, &end) == 0);
	CHECK(end == PTHREAD_CANCELED);
	CHECK(conc_flag(&the.in)); /* not earlier */
	conc_heap_end(the.heap);
}

int main(void)
{
	if (CANCEL_ASAN)
		return 77;
	cancelled_later();
	if (!CONC_TSAN)
		cancelled_inside();
	return 0;
}
