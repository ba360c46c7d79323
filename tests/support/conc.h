/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conc.h - what the programs of tests/conc share: a check that ends the
 * process, threads by index, stamps in blocks, and the churn that several of
 * them let loose on heaps of different kinds.
 *
 * A stamp is the holder's number at both ends of a block, written and read with
 * plain accesses: a block that is handed out twice is found by the value, and
 * by ThreadSanitizer as a race, and so is a block whose last holder's writes
 * the library has not ordered before the next one's.  Free blocks are stamped 0,
 * which is what fresh memory holds (but see conc_expect_free()).
 *
 * Loops run for a time, so that a loaded machine only does fewer rounds; no
 * verdict depends on the time.
 *
 * With CONC_WHOLE in the environment, as tests/run --soak sets it, programs run
 * their cases in full size, which takes minutes.
 */
#ifndef CONC_H
#define CONC_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <inttypes.h>
#include <pcpalloc/stats.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "atomics.h"
#include "heap.h"
#include "heap_new.h"
#include "list.h"
#include "rcu.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define CONC_TSAN 1
#else
#define CONC_TSAN 0
#endif

#define MIB ((size_t)1 << 20)

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond))                                                   \
			conc_fail(__FILE__, __LINE__, #cond);                  \
	} while (0)

/* a op b, printing both when it does not hold. */
#define CHECK_U64(a, op, b)                                                    \
	do {                                                                   \
		uint64_t left_ = (uint64_t)(a), right_ = (uint64_t)(b);        \
		if (!(left_ op right_)) {                                      \
			fprintf(stderr, "%" PRIu64 " %s %" PRIu64 "\n", left_, \
				#op, right_);                                  \
			conc_fail(__FILE__, __LINE__, #a " " #op " " #b);      \
		}                                                              \
	} while (0)

/* Ends the process at once: other threads may be anywhere. */
static inline _Noreturn void conc_fail(const char *file, int line,
				       const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	_Exit(1);
}

/* ---- Randomness and time ------------------------------------------------- */

/* From the environment (CONC_SEED) or the clock, printed. */
static inline uint64_t conc_seed(void)
{
	const char *text = getenv("CONC_SEED");
	struct timespec now;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = text ? strtoull(text, NULL, 0)
		    : (uint64_t)now.tv_nsec * 2654435761u + (uint64_t)getpid();
	fprintf(stderr, "CONC_SEED=%" PRIu64 "\n", seed);
	return seed;
}

/* xorshift; *state is not 0. */
static inline uint64_t conc_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

static inline uint64_t conc_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static inline void conc_sleep_ms(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000,
			      .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) != 0)
		;
}

/* How much of a case: a part in everyday runs, a smaller one under
 * ThreadSanitizer, all of it with CONC_WHOLE. */
static inline unsigned conc_size(unsigned whole, unsigned part, unsigned tsan)
{
	if (getenv("CONC_WHOLE"))
		return whole;
	return CONC_TSAN ? tsan : part;
}

/* ---- Threads --------------------------------------------------------------- */

struct conc_thread {
	pthread_t id;
	void (*fn)(unsigned index, void *arg);
	unsigned index;
	void *arg;
};

static inline void *conc_thread_main(void *arg)
{
	struct conc_thread *t = arg;

	t->fn(t->index, t->arg);
	return NULL;
}

/* Starts threads 0..n-1. */
static inline void conc_start(struct conc_thread *threads, unsigned n,
			      void (*fn)(unsigned, void *), void *arg)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		threads[i] = (struct conc_thread){
			.fn = fn, .index = i, .arg = arg };
		CHECK(pthread_create(&threads[i].id, NULL, conc_thread_main,
				     &threads[i]) == 0);
	}
}

static inline void conc_join(struct conc_thread *threads, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		CHECK(pthread_join(threads[i].id, NULL) == 0);
}

static inline void conc_run(unsigned n, void (*fn)(unsigned, void *), void *arg)
{
	struct conc_thread threads[n];

	conc_start(threads, n, fn, arg);
	conc_join(threads, n);
}

/* A thread for each function, with 1, 2, ... as its argument; until the flag, which
 * is raised after some time. */
static inline void conc_mix(void *(*const fns[])(void *), uintptr_t n,
			    unsigned ms, bool *stop)
{
	pthread_t threads[n];
	uintptr_t i;

	pcpi_store_relaxed(stop, false); /* relaxed: threads start after */
	for (i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, fns[i],
				     (void *)(i + 1)) == 0);
	conc_sleep_ms(ms);
	pcpi_store_relaxed(stop, true); /* relaxed: polled */
	for (i = 0; i < n; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

/* A flag that threads look at and wait for. */
static inline bool conc_flag(const bool *flag)
{
	/* acquire: pairs with conc_raise(). */
	return pcpi_load_acquire(flag);
}

static inline void conc_raise(bool *flag)
{
	/* release: pairs with conc_flag(). */
	pcpi_store_release(flag, true);
}

static inline void conc_await(const bool *flag)
{
	while (!conc_flag(flag))
		sched_yield();
}

/* ---- Heaps ------------------------------------------------------------------ */

/* All of it backed at once. */
static inline struct pcpa_heap *conc_heap(size_t bytes, unsigned flags)
{
	struct pcpa_heap *heap;

	CHECK(heap_new(NULL, bytes, 0, flags | PCPA_HEAP_FIXED, &heap) == 0);
	return heap;
}

/* Empty, growing. */
static inline struct pcpa_heap *conc_growing_heap(size_t max_bytes,
						  unsigned flags)
{
	struct pcpa_heap *heap;

	CHECK(heap_new(NULL, 0, max_bytes, flags, &heap) == 0);
	return heap;
}

static inline struct pcpa_stats conc_stats(struct pcpa_heap *heap)
{
	struct pcpa_stats s = PCPA_STATS_INIT;

	CHECK(pcpa_stats_read(heap, -1, &s) == 0);
	return s;
}

/* The callers rest and hold nothing: every page is free, every block counted,
 * and the buddies are sound. */
static inline void conc_heap_at_rest(struct pcpa_heap *heap)
{
	struct pcpa_stats s;
	unsigned z;

	/* The caller's own cache of a heap without interruption. */
	CHECK(pcpa_thread_flush(heap) == 0);
	CHECK(pcpa_heap_drain(heap) == 0);
	s = conc_stats(heap);
	CHECK_U64(s.cached_pages, ==, 0);
	CHECK_U64(s.depot_pages, ==, 0);
	CHECK_U64(s.used_pages, ==, 0);
	CHECK_U64(s.free_pages, ==, s.managed_pages);
	CHECK_U64(s.alloc_total, ==, s.free_total);
	CHECK_U64(s.bad_frees, ==, 0);
	for (z = 0; z < heap->nr_zones; z++)
		CHECK(pcpi_zone_check(&heap->env.zones[z]));
}

static inline void conc_heap_end(struct pcpa_heap *heap)
{
	conc_heap_at_rest(heap);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

/* Drains for some time, and says how often; owners at work may make some late, whose
 * number it returns. */
static inline unsigned conc_drain_for(struct pcpa_heap *heap, unsigned ms)
{
	uint64_t end = conc_now_ms() + ms;
	unsigned drains = 0, late = 0;

	do {
		int err = pcpa_heap_drain(heap);

		CHECK(err == 0 || err == -ETIMEDOUT);
		drains++;
		late += err != 0;
	} while (conc_now_ms() < end);
	fprintf(stderr, "%u drains, %u late\n", drains, late);
	return late;
}

/* Caches that were ever made. */
static inline unsigned conc_caches_made(struct pcpa_heap *heap)
{
	struct pcpi_section section;
	struct pcpi_cache *c;
	unsigned n = 0;

	section = pcpi_rcu_read_lock();
	pcpi_list_each(c, &heap->caches, registry)
		n++;
	pcpi_rcu_read_unlock(section);
	return n;
}

/* ---- Stamps ------------------------------------------------------------------- */

static inline uint64_t *conc_last_word(struct pcpa_heap *heap, void *block,
				       unsigned order)
{
	size_t bytes = pcpa_heap_page_bytes(heap) << order;

	return (uint64_t *)(void *)((char *)block + bytes - sizeof(uint64_t));
}

/* With PCPA_HEAP_CHECKS a block that was freed is full of a pattern. */
static inline void conc_expect_free(const struct pcpa_heap *heap, uint64_t word)
{
	if (word != 0 && heap->options_flags & PCPA_HEAP_CHECKS)
		CHECK_U64(word, ==, UINT64_C(0xa5a5a5a5a5a5a5a5));
	else
		CHECK_U64(word, ==, 0);
}

/* A fresh block becomes the holder's; stamp is not 0. */
static inline void conc_stamp(struct pcpa_heap *heap, void *block,
			      unsigned order, uint64_t stamp)
{
	uint64_t *first = block, *last = conc_last_word(heap, block, order);

	conc_expect_free(heap, *first);
	conc_expect_free(heap, *last);
	*first = *last = stamp;
}

/* Before a free. */
static inline void conc_unstamp(struct pcpa_heap *heap, void *block,
				unsigned order, uint64_t stamp)
{
	uint64_t *first = block, *last = conc_last_word(heap, block, order);

	CHECK_U64(*first, ==, stamp);
	CHECK_U64(*last, ==, stamp);
	*first = *last = 0;
}

/* A stamp at the start of each page of a range. */
static inline void conc_stamp_pages(struct pcpa_heap *heap, char *start,
				    size_t pages, uint64_t from, uint64_t to)
{
	size_t bytes = pcpa_heap_page_bytes(heap), i;

	for (i = 0; i < pages; i++) {
		uint64_t *word = (uint64_t *)(void *)(start + i * bytes);

		CHECK_U64(*word, ==, from);
		*word = to;
	}
}

/* ---- Churn ---------------------------------------------------------------------- */

#define CONC_HOLD 48u
#define CONC_BULK 40u

/* What one thread holds, and how it goes about it. */
struct conc_churn {
	struct pcpa_heap *heap;
	uint64_t random, stamp;
	unsigned max_order;
	unsigned n;
	void *blocks[CONC_HOLD];
	unsigned orders[CONC_HOLD];
};

static inline void conc_churn_init(struct conc_churn *c, struct pcpa_heap *heap,
				   uint64_t seed, unsigned index,
				   unsigned max_order)
{
	c->heap = heap;
	c->random = (seed ^ (index + 1) * UINT64_C(0x9e3779b97f4a7c15)) | 1;
	c->stamp = (uint64_t)index + 1;
	c->max_order = max_order;
	c->n = 0;
}

/* Low orders are common, as in life: half of the blocks are of order 0. */
static inline unsigned conc_churn_order(struct conc_churn *c)
{
	unsigned order = (unsigned)__builtin_ctzll(conc_random(&c->random) |
						   UINT64_C(1) << 20);

	return pcpi_min(order, c->max_order);
}

static inline void conc_churn_take(struct conc_churn *c)
{
	unsigned order = conc_churn_order(c);
	void *block = pcpa_alloc(c->heap, order, 0);

	if (!block) {
		CHECK(errno == ENOMEM);
		return;
	}
	conc_stamp(c->heap, block, order, c->stamp);
	c->blocks[c->n] = block;
	c->orders[c->n++] = order;
}

static inline void conc_churn_give(struct conc_churn *c)
{
	unsigned i = (unsigned)(conc_random(&c->random) % c->n);
	unsigned order = c->orders[i];
	void *block = c->blocks[i];

	c->blocks[i] = c->blocks[--c->n];
	c->orders[i] = c->orders[c->n];
	conc_unstamp(c->heap, block, order, c->stamp);
	if (conc_random(&c->random) & 1)
		pcpa_free(c->heap, block);
	else
		pcpa_free_sized(c->heap, block, order);
}

/* A bulk allocation and the bulk free of it. */
static inline void conc_churn_bulk(struct conc_churn *c)
{
	size_t n = 1 + conc_random(&c->random) % CONC_BULK, got, i;
	unsigned order = (unsigned)(conc_random(&c->random) % 3);
	void *blocks[CONC_BULK];

	got = pcpa_alloc_bulk(c->heap, order, 0, blocks, n);
	for (i = 0; i < got; i++)
		conc_stamp(c->heap, blocks[i], order, c->stamp);
	for (i = 0; i < got; i++)
		conc_unstamp(c->heap, blocks[i], order, c->stamp);
	if (conc_random(&c->random) & 1)
		pcpa_free_bulk(c->heap, blocks, got);
	else
		pcpa_free_bulk_sized(c->heap, order, blocks, got);
}

static inline void conc_churn_steps(struct conc_churn *c, unsigned steps)
{
	while (steps-- > 0) {
		if (conc_random(&c->random) % 64 == 0)
			conc_churn_bulk(c);
		else if (c->n < CONC_HOLD && (conc_random(&c->random) & 1))
			conc_churn_take(c);
		else if (c->n > 0)
			conc_churn_give(c);
	}
}

static inline void conc_churn_end(struct conc_churn *c)
{
	while (c->n > 0)
		conc_churn_give(c);
}

/* Some steps; ends with nothing held. */
static inline void conc_churn_some(struct pcpa_heap *heap, uint64_t seed,
				   unsigned index, unsigned max_order,
				   unsigned steps)
{
	struct conc_churn churn;

	conc_churn_init(&churn, heap, seed, index, max_order);
	conc_churn_steps(&churn, steps);
	conc_churn_end(&churn);
}

/* Churns until the flag is raised; ends with nothing held. */
static inline void conc_churn_until(const bool *stop, struct pcpa_heap *heap,
				    uint64_t seed, unsigned index,
				    unsigned max_order)
{
	struct conc_churn churn;

	conc_churn_init(&churn, heap, seed, index, max_order);
	while (!conc_flag(stop))
		conc_churn_steps(&churn, 128);
	conc_churn_end(&churn);
}

/* Churns for some time; ends with nothing held. */
static inline void conc_churn_for(struct conc_churn *c, unsigned ms)
{
	uint64_t end = conc_now_ms() + ms;

	while (conc_now_ms() < end)
		conc_churn_steps(c, 256);
	conc_churn_end(c);
}

#endif
