/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * signals.c - a profiler's timer strikes threads anywhere in the library, and its
 * handler asks with PCPA_NOWAIT: it gets a block or is refused, it never hangs, and
 * what the threads are doing goes on undisturbed.
 *
 * The handler puts what it gets where its thread finds it, which frees it: a free
 * may wait for a lock that the thread had when it was interrupted.
 */
#include "conc.h"

#include <signal.h>
#include <sys/time.h>

#define THREADS 4u
#define MS 1500u
#define STASH 32u
#define PERIOD_US 200u
#define HANG_SECONDS 60u

static struct pcpa_heap *heap;
static uint64_t seed;
static bool stop;

/* Of the thread that is interrupted; a: put by the handler, taken by the thread. */
static __thread void *stash[STASH];
static __thread uint64_t served, refused;
static uint64_t all_served, all_refused; /* a */

static void handler(int signo)
{
	int before = errno;
	unsigned i = 0;
	void *block;

	(void)signo;
	while (i < STASH && pcpi_load_relaxed(&stash[i])) /* relaxed: own thread */
		i++;
	if (i == STASH)
		return;
	block = pcpa_alloc(heap, i % 5, PCPA_NOWAIT);
	if (block) {
		conc_stamp(heap, block, i % 5, 1000);
		pcpi_store_relaxed(&stash[i], block); /* relaxed: own thread */
		served++;
	} else {
		CHECK(errno == EAGAIN || errno == ENOMEM);
		refused++;
	}
	errno = before;
}

static void stash_free(void)
{
	unsigned i;
	void *block;

	for (i = 0; i < STASH; i++) {
		block = pcpi_load_relaxed(&stash[i]); /* relaxed: own thread */
		if (!block)
			continue;
		conc_unstamp(heap, block, i % 5, 1000);
		pcpa_free(heap, block);
		pcpi_store_relaxed(&stash[i], NULL); /* relaxed: own thread */
	}
}

static void churner(unsigned index, void *arg)
{
	struct conc_churn churn;
	sigset_t set;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	conc_churn_init(&churn, heap, seed, index, 6);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
	while (!conc_flag(&stop)) {
		conc_churn_steps(&churn, 100);
		stash_free();
		if (index == 0)
			pcpa_heap_drain(heap);
	}
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	conc_churn_end(&churn);
	stash_free();
	/* relaxed: counters */
	pcpi_fetch_add_relaxed(&all_served, served);
	pcpi_fetch_add_relaxed(&all_refused, refused);
}

static void timer_set(unsigned us)
{
	struct itimerval t = { .it_interval.tv_usec = us, .it_value.tv_usec = us };

	CHECK(setitimer(ITIMER_PROF, &t, NULL) == 0);
}

/* The kernel ticks less often than the timer asks: signals of our own, too. */
static void strike(struct conc_thread *threads)
{
	uint64_t end = conc_now_ms() + MS, random = seed | 1;

	while (conc_now_ms() < end)
		CHECK(pthread_kill(threads[conc_random(&random) % THREADS].id,
				   SIGPROF) == 0);
}

int main(void)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct conc_thread threads[THREADS];
	sigset_t set;

	alarm(HANG_SECONDS);
	seed = conc_seed();
	heap = conc_heap(32 * MIB, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	CHECK(sigaction(SIGPROF, &act, NULL) == 0);
	conc_start(threads, THREADS, churner, NULL);
	timer_set(PERIOD_US);
	strike(threads);
	timer_set(0);
	conc_raise(&stop);
	conc_join(threads, THREADS);
	fprintf(stderr, "in handlers %" PRIu64 " served, %" PRIu64 " refused\n",
		all_served, all_refused);
	CHECK_U64(all_served, >, 0);
	conc_heap_end(heap);
	return 0;
}
