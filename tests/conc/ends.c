/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ends.c - threads that use a heap while they end.
 *
 * A thread's end runs the destructors of C++ thread_local objects, which C
 * reaches by the function that compilers call for them, and then those of keys,
 * in rounds, as long as destructors set keys again: here of a key that is older
 * than the library's and of one that is younger, which so come before and after
 * the library's own in each round.  Each of them allocates, holds a block to the
 * next round and frees.
 *
 *   used before   the library's destructor ran in the first round: what comes
 *                 later is served without a cache
 *   not before    the first call of the thread comes in a round
 *
 * Either way nothing is left: no block, no cache that is taken, and no more
 * caches than there were threads at a time.  But one: a thread whose first call
 * comes in the last round, after the turn of the library's key, leaves its cache
 * taken, as no destructor runs any more; a drain finds its blocks.
 */
#include "conc.h"

#include <limits.h>

#define AT_ONCE 6u
/* ThreadSanitizer takes its leave in the last round, to which our
 * destructor comes when it is set two rounds before. */
#define ROUNDS ((unsigned)PTHREAD_DESTRUCTOR_ITERATIONS - 2 * CONC_TSAN)
#define LIVES (CONC_TSAN ? 10u : 100u)

/* glibc's and musl's C++ runtimes use this; the object names the library that
 * the destructor is part of. */
extern int __cxa_thread_atexit_impl(void (*fn)(void *), void *arg, void *object)
	__attribute__((weak));
extern void *__dso_handle;

static pthread_key_t older, younger;
static struct pcpa_heap *heap;

/* What one thread's destructors do; freed by nobody before the join. */
struct end {
	unsigned first;	      /* round of the first call; 0: before the end */
	bool younger_only;    /* the older key's destructor makes no calls */
	unsigned round[2];    /* of the destructors of either key */
	void *held[2];
	bool locals, cached_late;
};

static void ends_once(struct end *e, unsigned which)
{
	unsigned round = ++e->round[which], order = round % 4;
	void *block;

	if (round >= e->first && (which == 1 || !e->younger_only)) {
		block = pcpa_alloc(heap, order, 0);
		CHECK(block);
		conc_stamp(heap, block, order, 7);
		conc_unstamp(heap, block, order, 7);
		pcpa_free(heap, e->held[which]);
		e->held[which] = block;
		if (round == ROUNDS) {
			pcpa_free(heap, block);
			e->held[which] = NULL;
		}
	}
	/* Ours, which came between these two in the first round, is over. */
	if (e->first == 0 && round > 1)
		e->cached_late |= pcpi_hot_cache(&heap->hot) != NULL;
	if (round < ROUNDS)
		CHECK(pthread_setspecific(which ? younger : older, e) == 0);
}

static void older_end(void *e)
{
	ends_once(e, 0);
}

static void younger_end(void *e)
{
	ends_once(e, 1);
}

static void local_end(void *arg)
{
	struct end *e = arg;
	void *blocks[8];

	if (e->first == 0) {
		CHECK(pcpa_alloc_bulk(heap, 1, 0, blocks, 8) == 8);
		pcpa_free_bulk(heap, blocks, 8);
	}
	e->locals = true;
}

static void life(unsigned index, void *arg)
{
	struct end *e = (struct end *)arg + index;

	if (e->first == 0)
		pcpa_free(heap, pcpa_alloc(heap, index % 4, 0));
	CHECK(pthread_setspecific(older, e) == 0);
	CHECK(pthread_setspecific(younger, e) == 0);
	if (__cxa_thread_atexit_impl)
		CHECK(__cxa_thread_atexit_impl(local_end, e, &__dso_handle) == 0);
}

static void lives(unsigned first, bool younger_only)
{
	struct end ends[AT_ONCE];
	struct pcpa_stats s;
	unsigned i;

	memset(ends, 0, sizeof(ends));
	for (i = 0; i < AT_ONCE; i++)
		ends[i].first = first, ends[i].younger_only = younger_only;
	conc_run(AT_ONCE, life, ends);
	for (i = 0; i < AT_ONCE; i++) {
		CHECK_U64(ends[i].round[0], ==, ROUNDS);
		CHECK_U64(ends[i].round[1], ==, ROUNDS);
		CHECK(ends[i].locals || !__cxa_thread_atexit_impl);
		CHECK(!ends[i].cached_late);
	}
	s = conc_stats(heap);
	CHECK_U64(s.used_pages, ==, 0);
	CHECK_U64(s.cached_pages, ==, 0);
	CHECK_U64(s.caches, ==, 0);
	CHECK_U64(conc_caches_made(heap), <=, AT_ONCE);
}

static void too_late(void)
{
	struct end ends[AT_ONCE] = { { .first = 0 } };
	unsigned i;

	for (i = 0; i < AT_ONCE; i++)
		ends[i] = (struct end){ .first = ROUNDS, .younger_only = true };
	conc_run(AT_ONCE, life, ends);
	CHECK_U64(conc_stats(heap).used_pages, ==, 0);
	CHECK_U64(conc_stats(heap).caches, <=, AT_ONCE);
	CHECK(pcpa_heap_drain(heap) == 0);
	CHECK_U64(conc_stats(heap).cached_pages, ==, 0);
}

int main(void)
{
	unsigned i, first;

	alarm(100);
	CHECK(pthread_key_create(&older, older_end) == 0);
	heap = conc_heap(64 * MIB, 0);
	CHECK(pthread_key_create(&younger, younger_end) == 0);
	for (i = 0; i < LIVES; i++)
		for (first = 0; first < ROUNDS; first++)
			lives(first, i % 2);
	if (!CONC_TSAN)
		too_late();
	conc_heap_end(heap);
	return 0;
}
