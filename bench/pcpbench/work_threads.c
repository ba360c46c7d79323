/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_threads.c - threads that an allocator sees for the first time.
 *
 *   threads        1,000 that live at once, on two CPUs: each takes 16 blocks and
 *                  gives them back, four times, and ends when all have done so.
 *                  The time is CPU time of the threads themselves, from before
 *                  the first block to behind the last: not that they wait for a
 *                  CPU or a lock asleep, as a thousand on two CPUs always do
 *   threads-short  one after another on the first CPU, with the same work: the time
 *                  from pthread_create() until pthread_join() is back, so with
 *                  what an allocator does at a thread's end
 *
 * Afterwards, where the allocator says it: pages that are still cached.
 *
 * Failure: threads that can't be had (a limit of the system's) make the
 * workload not applicable, and are told on stderr.
 */
#include "lane.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "tsc.h"

enum {
	CROWD = 1000,
	SHORT = 100,
	ROUNDS = 4,
	AT_ONCE = 16,
	STACK_BYTES = 256 << 10,
};

struct crowd {
	struct ops_shared *shared;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned used; /* mutex; threads that have done their work */
	bool go, leave; /* mutex */
};

struct newcomer {
	struct crowd *crowd;
	pthread_t thread;
	uint64_t ns;
};

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void blocks_use(struct ops *o)
{
	void *block[AT_ONCE];

	for (int r = 0; r < ROUNDS; r++) {
		for (int i = 0; i < AT_ONCE; i++) {
			block[i] = ops_take(o, 0);
			bench_consume(block[i]);
		}
		for (int i = 0; i < AT_ONCE; i++)
			ops_give(o, block[i], 0);
	}
}

static void wait_for(struct crowd *c, const bool *what)
{
	pthread_mutex_lock(&c->mutex);
	while (!*what)
		pthread_cond_wait(&c->changed, &c->mutex);
	pthread_mutex_unlock(&c->mutex);
}

static void say(struct crowd *c, bool *what)
{
	pthread_mutex_lock(&c->mutex);
	*what = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
}

static void *crowd_main(void *arg)
{
	struct newcomer *t = arg;
	struct crowd *c = t->crowd;
	struct ops ops;

	wait_for(c, &c->go);
	t->ns = cpu_ns();
	ops_attach(&ops, c->shared);
	blocks_use(&ops);
	t->ns = cpu_ns() - t->ns;
	pthread_mutex_lock(&c->mutex);
	if (++c->used == CROWD)
		pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
	wait_for(c, &c->leave);
	ops_detach(&ops);
	return NULL;
}

static void *short_main(void *arg)
{
	struct newcomer *t = arg;
	struct ops ops;

	ops_attach(&ops, t->crowd->shared);
	blocks_use(&ops);
	ops_detach(&ops);
	return NULL;
}

/* Returns 0 or an errno. */
static int newcomer_start(struct newcomer *t, int cpu, void *(*fn)(void *))
{
	pthread_attr_t attr;
	cpu_set_t set;
	int err;

	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	err = pthread_create(&t->thread, &attr, fn, t);
	pthread_attr_destroy(&attr);
	return err;
}

static void too_few(unsigned started, int err, struct wire_reply *r)
{
	fprintf(stderr, "pcpbench: %s: the thread after %u others: %s\n",
		BENCH_NAME, started, strerror(err));
	r->status = WIRE_NOT_APPLICABLE;
}

static void crowd_run(struct crowd *c, struct bench_worker *w,
		      struct wire_reply *r)
{
	static struct newcomer crowd[CROWD];
	unsigned n;
	int err = 0;
	uint64_t ns = 0;

	for (n = 0; n < CROWD && !err; n += !err) {
		crowd[n].crowd = c;
		err = newcomer_start(&crowd[n], w->cpu[n % 2], crowd_main);
	}
	say(c, &c->go);
	pthread_mutex_lock(&c->mutex);
	while (!err && c->used < CROWD)
		pthread_cond_wait(&c->changed, &c->mutex);
	pthread_mutex_unlock(&c->mutex);
	say(c, &c->leave);
	for (unsigned i = 0; i < n; i++) {
		pthread_join(crowd[i].thread, NULL);
		ns += crowd[i].ns;
	}
	if (err)
		too_few(n, err, r);
	r->pages = (uint64_t)CROWD * ROUNDS * AT_ONCE;
	r->value = (double)ns / (double)r->pages;
}

static void short_run(struct crowd *c, struct bench_worker *w,
		      struct wire_reply *r)
{
	struct newcomer t = {.crowd = c};
	uint64_t start = bench_tsc_read(), last = start, longest = 0;

	for (unsigned i = 0; i < SHORT; i++) {
		int err = newcomer_start(&t, w->cpu[0], short_main);

		if (err) {
			too_few(i, err, r);
			return;
		}
		pthread_join(t.thread, NULL);
		uint64_t now = bench_tsc_read();

		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	r->pages = (uint64_t)SHORT * ROUNDS * AT_ONCE;
	r->value = (double)(last - start) / w->ticks_per_ns / 1e3 / SHORT;
	r->lost = longest > LANE_GAP_FACTOR * (last - start) / SHORT +
				    (uint64_t)(LANE_GAP_NS * w->ticks_per_ns);
}

void bench_threads_run(struct bench_worker *w, unsigned workload,
		       struct wire_reply *r)
{
	struct crowd c = {
		.shared = &w->shared,
		.mutex = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};

	if (workload == BENCH_THREADS)
		crowd_run(&c, w, r);
	else
		short_run(&c, w, r);
	r->second = ops_cached(&w->shared);
}
