/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.c - threads that churn while a handler of each, 5,000 times a second,
 * allocates and frees as well, wherever it interrupts them (nest.h).
 *
 * What the handler gets is stamped as any block is; at the end every page is
 * accounted for.  A call that waits for itself is found by alarm().
 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "conc.h"
#include "nest.h"

#define THREADS 3u
#define PERIOD_NS 200000
#define HELD 64u
#define AT_ONCE 12u
#define ROUND_MS (CONC_TSAN ? 1500u : 700u)

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* What the handler of a thread works with. */
struct handler {
	struct pcpa_heap *heap;
	uint64_t random, stamp;
	unsigned n;
	void *blocks[HELD];
	unsigned orders[HELD];
};

static __thread struct handler *mine;
static uint64_t interrupts, nested, refused;

static uint64_t *count(uint64_t *counter)
{
	pcpi_fetch_add_relaxed(counter, 1); /* relaxed: a count */
	return counter;
}

static void handler_give(struct handler *h)
{
	void *block = h->blocks[--h->n];
	unsigned order = h->orders[h->n];

	conc_unstamp(h->heap, block, order, h->stamp);
	if (conc_random(&h->random) & 1)
		pcpa_free(h->heap, block);
	else
		pcpa_free_sized(h->heap, block, order);
}

static void handler_keep(struct handler *h, void *block, unsigned order)
{
	conc_stamp(h->heap, block, order, h->stamp);
	h->blocks[h->n] = block;
	h->orders[h->n++] = order;
}

static void handler_take(struct handler *h, bool inside)
{
	unsigned order = (unsigned)(conc_random(&h->random) % 16);
	unsigned flags = conc_random(&h->random) & 1 ? PCPA_NOWAIT : 0;
	void *block;

	order = order < 9 ? order / 3 : order - 8; /* 0 to 7, rather low */
	block = pcpa_alloc(h->heap, order, flags);
	if (block) {
		handler_keep(h, block, order);
		return;
	}
	if (inside)
		CHECK(errno == EAGAIN);
	else
		CHECK(errno == ENOMEM || errno == EAGAIN);
	count(&refused);
}

static void handler_bulk(struct handler *h)
{
	unsigned order = (unsigned)(conc_random(&h->random) % 4);
	void *blocks[AT_ONCE];
	size_t got, i;

	got = pcpa_alloc_bulk(h->heap, order, 0, blocks, AT_ONCE);
	for (i = 0; i < got; i++) {
		conc_stamp(h->heap, blocks[i], order, h->stamp);
		conc_unstamp(h->heap, blocks[i], order, h->stamp);
	}
	pcpa_free_bulk(h->heap, blocks, got);
}

/* Calls that a nested one is refused, and what must not wait for itself. */
static void handler_control(struct handler *h, bool inside)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	int err;

	switch (conc_random(&h->random) % 4) {
	case 0:
		err = pcpa_thread_flush(h->heap);
		break;
	case 1:
		err = pcpa_heap_tick(h->heap);
		break;
	case 2:
		err = pcpa_stats_read(h->heap, -1, &s);
		break;
	default:
		err = inside ? pcpa_heap_drain(h->heap) : 0;
	}
	CHECK(err == (inside ? -EAGAIN : 0));
}

static void on_signal(int number)
{
	struct handler *h = mine;
	int saved = errno;
	unsigned n;
	bool inside;

	(void)number;
	if (!h)
		return;
	inside = pcpi_load_relaxed(&pcpi_nest_depth) > 0; /* relaxed: ours */
	count(&interrupts);
	if (inside)
		count(&nested);
	for (n = (unsigned)(conc_random(&h->random) % AT_ONCE); n > 0; n--)
		if (h->n == HELD || (h->n > 0 && conc_random(&h->random) % 2))
			handler_give(h);
		else
			handler_take(h, inside);
	if (conc_random(&h->random) % 16 == 0)
		handler_bulk(h);
	if (conc_random(&h->random) % 64 == 0)
		handler_control(h, inside);
	errno = saved;
}

/* ---- Interrupted threads ----------------------------------------------------- */

static timer_t timer_begin(struct handler *h, struct pcpa_heap *heap,
			   uint64_t seed, uint64_t stamp)
{
	const struct itimerspec every = {
		.it_value.tv_nsec = PERIOD_NS, .it_interval.tv_nsec = PERIOD_NS };
	struct sigevent to = { .sigev_notify = SIGEV_THREAD_ID,
			       .sigev_signo = SIGPROF };
	timer_t timer;

	*h = (struct handler){ .heap = heap,
			       .random = (seed * 31 + stamp) | 1,
			       .stamp = stamp };
	mine = h;
	to.sigev_notify_thread_id = (int)syscall(SYS_gettid);
	CHECK(timer_create(CLOCK_MONOTONIC, &to, &timer) == 0);
	CHECK(timer_settime(timer, 0, &every, NULL) == 0);
	return timer;
}

static void timer_end(timer_t timer, struct handler *h)
{
	CHECK(timer_delete(timer) == 0);
	mine = NULL;
	while (h->n > 0)
		handler_give(h);
}

struct round {
	struct pcpa_heap *heap;
	uint64_t seed;
	bool grows;
};

/* What takes the locks that the churn rarely comes to. */
static void step_control(struct round *r, struct conc_churn *c)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	char text[512];
	void *range;

	switch (conc_random(&c->random) % 8) {
	case 0:
		CHECK(pcpa_thread_flush(r->heap) == 0);
		break;
	case 1:
		pcpa_heap_drain(r->heap); /* a handler may keep it from its end */
		break;
	case 2:
		CHECK(pcpa_heap_tick(r->heap) == 0);
		break;
	case 3:
		CHECK(pcpa_stats_read(r->heap, -1, &s) == 0);
		break;
	case 4:
		CHECK(pcpa_stats_format(r->heap, PCPA_STATS_JSON, text,
					sizeof(text)) > 0);
		break;
	case 5:
		range = pcpa_alloc_contig(r->heap, 37, 1, 0);
		if (range)
			pcpa_free_contig(r->heap, range, 37);
		break;
	case 6:
		if (r->grows)
			pcpa_heap_trim(r->heap, 0);
		break;
	default:
		if (pcpa_cache_disable(r->heap, -1) == 0)
			CHECK(pcpa_cache_enable(r->heap, -1) == 0);
	}
}

static void churn(unsigned index, void *arg)
{
	struct round *r = arg;
	struct conc_churn c;
	struct handler h;
	uint64_t end = conc_now_ms() + ROUND_MS;
	timer_t timer = timer_begin(&h, r->heap, r->seed, 100 + index);

	/* The first call of the thread is one that is interrupted. */
	conc_churn_init(&c, r->heap, r->seed, index, 7);
	while (conc_now_ms() < end) {
		conc_churn_steps(&c, 64);
		if (conc_random(&c.random) % 4 == 0)
			step_control(r, &c);
	}
	conc_churn_end(&c);
	timer_end(timer, &h);
}

static void round_run(struct pcpa_heap *heap, uint64_t seed, bool grows)
{
	struct round r = { .heap = heap, .seed = seed, .grows = grows };

	nested = interrupts = refused = 0;
	conc_run(THREADS, churn, &r);
	fprintf(stderr, "%" PRIu64 " interrupts, %" PRIu64 " nested, %" PRIu64
		" refused\n", interrupts, nested, refused);
	CHECK(interrupts > 0);
	CHECK(nested > 0);
	conc_heap_end(heap);
}

/* ---- Threads that begin and end under signals ----------------------------------- */

static pthread_key_t late_key; /* made after the library's: later in a round */

static void late(void *arg)
{
	struct round *r = arg;
	struct handler h;
	timer_t timer = timer_begin(&h, r->heap, r->seed, 300);

	CHECK(raise(SIGPROF) == 0);
	conc_sleep_ms(1);
	timer_end(timer, &h);
}

static void brief(unsigned index, void *arg)
{
	struct round *r = arg;
	struct conc_churn c;
	struct handler h;
	timer_t timer = timer_begin(&h, r->heap, r->seed, 200 + index);

	CHECK(pthread_setspecific(late_key, r) == 0);
	conc_churn_init(&c, r->heap, r->seed, index, 3);
	conc_churn_steps(&c, 300);
	conc_churn_end(&c);
	timer_end(timer, &h);
}

static void ends_run(uint64_t seed)
{
	struct round r = { .heap = conc_growing_heap(64 * MIB, 0), .seed = seed };
	unsigned i;

	CHECK(pthread_key_create(&late_key, late) == 0);
	for (i = 0; i < 20; i++)
		conc_run(THREADS, brief, &r);
	conc_heap_end(r.heap);
}

/* ---- Heaps that come and go ------------------------------------------------------- */

static void heaps_run(uint64_t seed)
{
	struct pcpa_heap *heap = conc_heap(8 * MIB, 0), *other;
	uint64_t end = conc_now_ms() + ROUND_MS;
	struct handler h;
	timer_t timer = timer_begin(&h, heap, seed, 400);
	void *block;

	while (conc_now_ms() < end) {
		other = conc_heap(4 * MIB, 0);
		block = pcpa_alloc(other, 0, 0);
		CHECK(block);
		pcpa_free(other, block);
		CHECK(pcpa_heap_destroy(other) == 0);
	}
	timer_end(timer, &h);
	conc_heap_end(heap);
}

/* ---- Forks -------------------------------------------------------------------------- */

/* Registered before the library's, so called between them: all locks are taken. */
static void at_fork(void)
{
	unsigned i;

	for (i = 0; mine && i < 8; i++)
		CHECK(raise(SIGPROF) == 0);
}

__attribute__((constructor(101))) static void at_load(void)
{
	CHECK(pthread_atfork(at_fork, at_fork, at_fork) == 0);
}

static void forks_run(uint64_t seed)
{
	struct pcpa_heap *heap = conc_heap(8 * MIB, PCPA_HEAP_COW);
	struct handler h = { .heap = heap, .random = seed | 1, .stamp = 500 };
	unsigned i;
	int status;
	pid_t pid;

	nested = 0;
	mine = &h;
	for (i = 0; i < 10; i++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			mine = NULL;
			while (h.n > 0)
				handler_give(&h);
			conc_heap_end(heap);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	CHECK(nested > 0);
	mine = NULL;
	while (h.n > 0)
		handler_give(&h);
	conc_heap_end(heap);
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART };
	uint64_t seed = conc_seed();

	alarm(100);
	CHECK(sigaction(SIGPROF, &action, NULL) == 0);
	round_run(conc_growing_heap(256 * MIB, 0), seed, true);
	round_run(conc_heap(8 * MIB, 0), seed, false);
	round_run(conc_heap(16 * MIB, PCPA_HEAP_CHECKS), seed, false);
	round_run(conc_heap(16 * MIB, PCPA_HEAP_NO_IPI), seed, false);
	ends_run(seed);
	heaps_run(seed);
	if (!CONC_TSAN)
		forks_run(seed);
	return 0;
}
