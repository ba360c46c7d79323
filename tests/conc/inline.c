/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inline.c - threads that allocate and free by pcpalloc/inline.h, and by calls in
 * between, while a handler of each does so 5,000 times a second, and others drain,
 * disable, tick and fork.
 *
 *   churned    every block is stamped by its holder; at the end each page is free and
 *              each block counted
 *   handed     blocks taken inline by one thread and freed inline by another
 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "conc.h"

#undef NDEBUG
#define PCPA_INLINE_DEBUG 1
#include <pcpalloc/inline.h>

#define THREADS 3u
#define PERIOD_NS 200000
#define HELD 96u
#define BULK 40u
#define MS (CONC_TSAN ? 1500u : 1000u)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* What a thread, or its handler, holds. */
struct holder {
	struct pcpa_cache cache;
	uint64_t random, stamp;
	unsigned n;
	void *blocks[HELD];
	unsigned orders[HELD];
};

struct inline_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	bool stop;
	uint64_t interrupts; /* a */
	/* handed */
	pthread_mutex_t lock;
	void *box[BULK];
	size_t boxed;
};

static __thread struct holder *of_handler;
static struct inline_case the;

static void holder_begin(struct holder *h, uint64_t stamp)
{
	*h = (struct holder){ .cache = pcpa_cache_self(the.heap),
			      .random = (the.seed * 31 + stamp) | 1,
			      .stamp = stamp };
}

static void keep(struct holder *h, void *block, unsigned order)
{
	conc_stamp(the.heap, block, order, h->stamp);
	h->blocks[h->n] = block;
	h->orders[h->n++] = order;
}

static void *drop(struct holder *h, unsigned *order)
{
	void *block = h->blocks[--h->n];

	*order = h->orders[h->n];
	conc_unstamp(the.heap, block, *order, h->stamp);
	return block;
}

static void take_one(struct holder *h)
{
	unsigned order = (unsigned)(conc_random(&h->random) % 5);
	void *block = conc_random(&h->random) % 4
			      ? pcpa_cache_alloc(&h->cache, order, 0)
			      : pcpa_alloc(the.heap, order, 0);

	if (block)
		keep(h, block, order);
	else
		CHECK(errno == ENOMEM || errno == EAGAIN);
}

static void give_one(struct holder *h)
{
	unsigned order;
	void *block = drop(h, &order);

	switch (conc_random(&h->random) % 4) {
	case 0:
		pcpa_free(the.heap, block);
		break;
	case 1:
		pcpa_cache_free_sized(&h->cache, block, order);
		break;
	default:
		pcpa_cache_free(&h->cache, block);
	}
}

static void bulk(struct holder *h)
{
	unsigned order = (unsigned)(conc_random(&h->random) % 4), ignored;
	size_t n = conc_random(&h->random) % BULK + 1, got, i;
	void *blocks[BULK];

	if (h->n + BULK > HELD)
		return;
	got = pcpa_cache_alloc_bulk(&h->cache, order, 0, blocks, n);
	for (i = 0; i < got; i++)
		keep(h, blocks[i], order);
	for (i = 0; i < got; i++)
		blocks[i] = drop(h, &ignored);
	if (conc_random(&h->random) % 2)
		pcpa_cache_free_bulk(&h->cache, blocks, got);
	else
		pcpa_cache_free_bulk_sized(&h->cache, order, blocks, got);
}

static void step(struct holder *h)
{
	if (conc_random(&h->random) % 8 == 0)
		bulk(h);
	else if (h->n == HELD || (h->n > 0 && conc_random(&h->random) % 2))
		give_one(h);
	else
		take_one(h);
}

/* ---- Handlers ---------------------------------------------------------------- */

static void on_signal(int number)
{
	struct holder *h = of_handler;
	int saved = errno;
	unsigned n;

	(void)number;
	if (!h)
		return;
	for (n = (unsigned)(conc_random(&h->random) % 8); n > 0; n--)
		step(h);
	pcpi_fetch_add_relaxed(&the.interrupts, 1); /* relaxed: a count */
	errno = saved;
}

static timer_t timer_begin(struct holder *h, uint64_t stamp)
{
	const struct itimerspec every = {
		.it_value.tv_nsec = PERIOD_NS, .it_interval.tv_nsec = PERIOD_NS };
	struct sigevent to = { .sigev_notify = SIGEV_THREAD_ID,
			       .sigev_signo = SIGPROF };
	timer_t timer;

	holder_begin(h, stamp);
	of_handler = h;
	to.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	CHECK(timer_create(CLOCK_MONOTONIC, &to, &timer) == 0);
	CHECK(timer_settime(timer, 0, &every, NULL) == 0);
	return timer;
}

/* ---- Threads ------------------------------------------------------------------- */

/* What lies in the box was taken by another thread, mostly. */
static void hand(struct holder *h)
{
	void *mine[BULK], *theirs[BULK];
	size_t got = pcpa_cache_alloc_bulk(&h->cache, 0, 0, mine, BULK), n;

	pthread_mutex_lock(&the.lock);
	n = the.boxed;
	memcpy(theirs, the.box, n * sizeof(*theirs));
	memcpy(the.box, mine, got * sizeof(*mine));
	the.boxed = got;
	pthread_mutex_unlock(&the.lock);
	pcpa_cache_free_bulk(&h->cache, theirs, n);
}

static void churner(unsigned index, void *arg)
{
	struct holder h, handlers;
	timer_t timer;

	(void)arg;
	holder_begin(&h, 1 + index);
	timer = timer_begin(&handlers, 101 + index);
	while (!conc_flag(&the.stop)) {
		step(&h);
		if (conc_random(&h.random) % 16 == 0)
			hand(&h);
	}
	CHECK(timer_delete(timer) == 0);
	of_handler = NULL;
	while (h.n > 0)
		give_one(&h);
	while (handlers.n > 0)
		give_one(&handlers);
}

static void child(const struct pcpa_cache *cache, bool cow)
{
	char *block = pcpa_cache_alloc(cache, 0, 0);

	if (cow != (block != NULL))
		_exit(1);
	if (block)
		block[0] = 0;
	pcpa_cache_free(cache, block);
	_exit(0);
}

static void fork_once(const struct pcpa_cache *cache, bool cow)
{
	int status = -1;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		child(cache, cow);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(status == 0);
}

static void disturb(const struct pcpa_cache *cache, bool cow)
{
	int err = pcpa_heap_drain(the.heap);

	CHECK(err == 0 || err == -ETIMEDOUT);
	err = pcpa_cache_disable(the.heap, -1);
	CHECK(err == 0 || err == -ETIMEDOUT);
	if (err == 0) {
		CHECK_U64(conc_stats(the.heap).cached_pages, ==, 0);
		CHECK(pcpa_cache_enable(the.heap, -1) == 0);
	}
	CHECK(pcpa_heap_tick(the.heap) == 0);
	CHECK_U64(conc_stats(the.heap).free_total, <=,
		  conc_stats(the.heap).alloc_total);
	fork_once(cache, cow);
	conc_sleep_ms(1);
}

static void round_run(unsigned flags)
{
	struct conc_thread threads[THREADS];
	struct pcpa_cache cache;
	uint64_t end = conc_now_ms() + MS;

	the.heap = conc_heap(32 * MIB, flags);
	the.stop = false;
	the.boxed = 0;
	cache = pcpa_cache_self(the.heap);
	conc_start(threads, THREADS, churner, NULL);
	do
		disturb(&cache, flags & PCPA_HEAP_COW);
	while (conc_now_ms() < end);
	conc_raise(&the.stop);
	conc_join(threads, THREADS);
	pcpa_cache_free_bulk(&cache, the.box, the.boxed);
	fprintf(stderr, "%" PRIu64 " interrupts\n",
		pcpi_load_relaxed(&the.interrupts));
	conc_heap_end(the.heap);
}

int main(void)
{
	struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	alarm(100);
	CHECK(sigaction(SIGPROF, &act, NULL) == 0);
	pthread_mutex_init(&the.lock, NULL);
	the.seed = conc_seed();
	round_run(0);
	round_run(PCPA_HEAP_COW);
	round_run(PCPA_HEAP_NO_IPI);
	CHECK_U64(the.interrupts, >, 0);
	return 0;
}
