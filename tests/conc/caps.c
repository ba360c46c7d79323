/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * caps.c - what all caches of a heap hold together, however many threads there
 * are: at rest no more than 1/8 of it, and its depots no more than 1/4.
 *
 *   crowd    up to a thousand threads, each of which has used every cached
 *            order, on a heap of 16 MiB; and the same beside a few that have
 *            filled their caches when they were alone
 *   uneven   ten threads allocate, four hundred free: what is stranded stays
 *            below the caps all the time, and no producer ever fails
 *   brief    threads that come, allocate and free 64 blocks, and go: nothing is
 *            cached after them
 */
#include "conc.h"

/* Initially as large as it may get, but for its depots a growing one. */
static struct pcpa_heap *bounded_heap(size_t bytes)
{
	struct pcpa_heap *heap;

	CHECK(heap_new(NULL, bytes, bytes, 0, &heap) == 0);
	return heap;
}

/* slack: what threads at work are just about to hand over. */
static void caps_hold(struct pcpa_heap *heap, uint64_t slack_pages)
{
	struct pcpa_stats s = conc_stats(heap);

	CHECK_U64(s.cached_pages, <=, s.managed_pages / 8 + slack_pages);
	CHECK_U64(s.depot_pages, <=, s.managed_pages / 4 + slack_pages);
}

/* ---- A crowd on a small heap ------------------------------------------------ */

#define CROWD_MAX 1000u
#define CROWD_ROUNDS 4u
#define CROWD_PAGES 8u
#define EARLY 3u
#define EARLY_BLOCKS 400u

struct crowd {
	struct pcpa_heap *heap;
	unsigned threads, early;
	bool come;
	pthread_barrier_t full, rest, work;
};

/* Blocks of each cached order in turn, held and given back. */
static void crowd_round(struct crowd *the, unsigned index, unsigned round)
{
	void *blocks[CROWD_PAGES];
	unsigned order = (index + round) % 4, n, i;

	for (n = 0; n < CROWD_PAGES >> order; n++) {
		blocks[n] = pcpa_alloc(the->heap, order, 0);
		if (!blocks[n]) {
			CHECK(errno == ENOMEM); /* all is in others' hands */
			break;
		}
	}
	for (i = 0; i < n; i++)
		pcpa_free(the->heap, blocks[i]);
}

/* Caches as large as they get while there are few. */
static void early_fill(struct crowd *the)
{
	void *blocks[EARLY_BLOCKS];
	unsigned i;

	for (i = 0; i < 20; i++) {
		CHECK(pcpa_alloc_bulk(the->heap, 0, 0, blocks, EARLY_BLOCKS) ==
		      EARLY_BLOCKS);
		pcpa_free_bulk(the->heap, blocks, EARLY_BLOCKS);
	}
}

static void crowd_member(unsigned index, void *arg)
{
	struct crowd *the = arg;
	unsigned r;

	for (r = 0; r < CROWD_ROUNDS; r++) {
		crowd_round(the, index, r);
		pthread_barrier_wait(&the->rest);
		pthread_barrier_wait(&the->work);
	}
}

/* Fills its cache before the others come; idles, then goes on beside them. */
static void crowd_early(unsigned index, void *arg)
{
	struct crowd *the = arg;
	unsigned r;

	early_fill(the);
	pthread_barrier_wait(&the->full);
	conc_await(&the->come);
	for (r = 0; r < CROWD_ROUNDS; r++) {
		if (r > 0)
			crowd_round(the, index, r);
		pthread_barrier_wait(&the->rest);
		pthread_barrier_wait(&the->work);
	}
}

static void early_come(struct crowd *the, struct conc_thread *threads)
{
	CHECK(pthread_barrier_init(&the->full, NULL, the->early + 1) == 0);
	conc_start(threads, the->early, crowd_early, the);
	pthread_barrier_wait(&the->full);
	caps_hold(the->heap, 0);
	if (the->early > 0)
		CHECK_U64(conc_stats(the->heap).cached_pages, >, 0);
}

static void crowd(unsigned threads, unsigned early)
{
	struct crowd the = {
		.heap = bounded_heap(16 * MIB),
		.threads = threads,
		.early = early,
	};
	struct conc_thread members[CROWD_MAX], firsts[EARLY];
	unsigned r;

	early_come(&the, firsts);
	CHECK(pthread_barrier_init(&the.rest, NULL, threads + early + 1) == 0);
	CHECK(pthread_barrier_init(&the.work, NULL, threads + early + 1) == 0);
	conc_raise(&the.come);
	conc_start(members, threads, crowd_member, &the);
	for (r = 0; r < CROWD_ROUNDS; r++) {
		pthread_barrier_wait(&the.rest);
		CHECK_U64(conc_stats(the.heap).caches, ==, threads + early);
		caps_hold(the.heap, 0);
		pthread_barrier_wait(&the.work);
	}
	conc_join(members, threads);
	conc_join(firsts, early);
	CHECK_U64(conc_stats(the.heap).cached_pages, ==, 0);
	pthread_barrier_destroy(&the.full);
	pthread_barrier_destroy(&the.rest);
	pthread_barrier_destroy(&the.work);
	conc_heap_end(the.heap);
}

/* ---- Ten allocate, four hundred free ------------------------------------------ */

#define PRODUCERS 10u
#define CONSUMERS_MAX 400u
#define FLIGHT 2048u

struct uneven {
	struct pcpa_heap *heap;
	unsigned consumers;
	bool stop;
	pthread_mutex_t mutex;
	pthread_cond_t filled, emptied;
	void *flight[FLIGHT]; /* mutex */
	unsigned n;	      /* mutex */
	bool closed;	      /* mutex */
	uint64_t made;	      /* mutex */
};

static void producer(unsigned index, void *arg)
{
	struct uneven *the = arg;
	void *block;

	(void)index;
	while (!conc_flag(&the->stop)) {
		block = pcpa_alloc(the->heap, 0, 0);
		CHECK(block);
		pthread_mutex_lock(&the->mutex);
		while (the->n == FLIGHT)
			pthread_cond_wait(&the->emptied, &the->mutex);
		the->flight[the->n++] = block;
		the->made++;
		pthread_cond_signal(&the->filled);
		pthread_mutex_unlock(&the->mutex);
	}
}

static void *flight_take(struct uneven *the)
{
	void *block = NULL;

	pthread_mutex_lock(&the->mutex);
	while (the->n == 0 && !the->closed)
		pthread_cond_wait(&the->filled, &the->mutex);
	if (the->n > 0)
		block = the->flight[--the->n];
	pthread_cond_signal(&the->emptied);
	pthread_mutex_unlock(&the->mutex);
	return block;
}

static void consumer(unsigned index, void *arg)
{
	struct uneven *the = arg;
	void *block;

	(void)index;
	while ((block = flight_take(the)))
		pcpa_free(the->heap, block);
}

static void uneven_watch(struct uneven *the, unsigned ms)
{
	uint64_t end = conc_now_ms() + ms;

	do {
		/* A page of each thread, and a batch of each processor. */
		caps_hold(the->heap, PRODUCERS + the->consumers + 256);
		conc_sleep_ms(5);
	} while (conc_now_ms() < end);
}

static void uneven(unsigned ms)
{
	static struct uneven the;
	struct conc_thread producers[PRODUCERS], consumers[CONSUMERS_MAX];

	the.heap = bounded_heap(32 * MIB);
	the.consumers = conc_size(CONSUMERS_MAX, 400, 60);
	CHECK(pthread_mutex_init(&the.mutex, NULL) == 0);
	CHECK(pthread_cond_init(&the.filled, NULL) == 0);
	CHECK(pthread_cond_init(&the.emptied, NULL) == 0);
	conc_start(consumers, the.consumers, consumer, &the);
	conc_start(producers, PRODUCERS, producer, &the);
	uneven_watch(&the, ms);
	conc_raise(&the.stop);
	conc_join(producers, PRODUCERS);
	pthread_mutex_lock(&the.mutex);
	the.closed = true;
	pthread_cond_broadcast(&the.filled);
	pthread_mutex_unlock(&the.mutex);
	conc_join(consumers, the.consumers);
	CHECK_U64(the.made, >, FLIGHT);
	CHECK_U64(conc_stats(the.heap).cached_pages, ==, 0);
	caps_hold(the.heap, 0);
	conc_heap_end(the.heap);
}

/* ---- Short lives ------------------------------------------------------------------ */

#define AT_ONCE 8u
#define BRIEF_BLOCKS 64u

static void brief_life(unsigned index, void *arg)
{
	struct pcpa_heap *heap = arg;
	void *blocks[BRIEF_BLOCKS];
	unsigned i;

	for (i = 0; i < BRIEF_BLOCKS; i++) {
		blocks[i] = pcpa_alloc(heap, index % 4, 0);
		CHECK(blocks[i]);
	}
	for (i = 0; i < BRIEF_BLOCKS; i++)
		pcpa_free(heap, blocks[i]);
}

static void brief(unsigned threads)
{
	struct pcpa_heap *heap = bounded_heap(32 * MIB);
	unsigned done;

	for (done = 0; done < threads; done += AT_ONCE) {
		conc_run(AT_ONCE, brief_life, heap);
		CHECK_U64(conc_stats(heap).cached_pages, ==, 0);
	}
	caps_hold(heap, 0);
	CHECK_U64(conc_stats(heap).caches, ==, 0);
	CHECK_U64(conc_caches_made(heap), <=, AT_ONCE);
	conc_heap_end(heap);
}

int main(void)
{
	crowd(20, 0);
	crowd(60, EARLY);
	crowd(conc_size(CROWD_MAX, 300, 120), 0);
	crowd(conc_size(CROWD_MAX, 200, 100), EARLY);
	uneven(conc_size(60000, 2000, 1000));
	brief(conc_size(100000, 2000, 200));
	return 0;
}
