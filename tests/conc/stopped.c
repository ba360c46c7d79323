/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stopped.c - owners that are stopped wherever they are, as by a debugger or a
 * collector, while others drain, allocate and give up.
 *
 * A child process stops one thread of ours at a time (ptrace), which is in a hit or
 * a slow path; seldom it has a lock, then it is let go on, since nobody can but
 * wait.  Otherwise two threads drain at once and everybody goes on: a drain ends,
 * late or not, and what is late is counted and done by the owner when it runs
 * again.  Nothing is lost in the end.  77 where tracing isn't allowed.
 */
#include "conc.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define OWNERS 3u
#define ROUNDS 60u
#define LOCKED_MAX 4u /* rounds that cost PATIENCE_MS */

struct stopped_case {
	struct pcpa_heap *heap;
	bool stop;
	int tids[OWNERS]; /* a */
};

/* ---- The child that stops threads ------------------------------------------------- */

static int ask[2], answer[2];

static int thread_stop(int tid)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0)
		return errno;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0 ||
	    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
		return EIO;
	return 0;
}

static void tracer(void)
{
	int tid, stopped = 0, err;

	/* A thread's number stops it, 0 lets the last one go on. */
	while (read(ask[0], &tid, sizeof(tid)) == sizeof(tid)) {
		if (tid != 0) {
			err = thread_stop(tid);
			stopped = tid;
		} else {
			err = ptrace(PTRACE_DETACH, stopped, NULL, NULL) ? errno : 0;
		}
		if (write(answer[1], &err, sizeof(err)) != sizeof(err))
			break;
	}
	_exit(0);
}

static int tracer_ask(int tid)
{
	int err;

	CHECK(write(ask[1], &tid, sizeof(tid)) == sizeof(tid));
	CHECK(read(answer[0], &err, sizeof(err)) == sizeof(err));
	return err;
}

/* ---- Owners --------------------------------------------------------------------------- */

static void owner(unsigned index, void *arg)
{
	struct stopped_case *the = arg;
	struct conc_churn churn;
	unsigned i;
	void *block;

	pcpi_store_relaxed(&the->tids[index], (int)syscall(SYS_gettid));
	conc_churn_init(&churn, the->heap, 17, index, 3);
	while (!conc_flag(&the->stop)) {
		for (i = 0; i < 20000; i++) {
			block = pcpa_alloc(the->heap, 0, 0);
			CHECK(block);
			conc_stamp(the->heap, block, 0, index + 1);
			conc_unstamp(the->heap, block, 0, index + 1);
			pcpa_free(the->heap, block);
		}
		conc_churn_steps(&churn, 50);
	}
	conc_churn_end(&churn);
}

struct drains {
	struct pcpa_heap *heap;
	unsigned late; /* a */
	bool done;
};

static void drain(unsigned index, void *arg)
{
	struct drains *d = arg;
	int err = pcpa_heap_drain(d->heap);

	(void)index;
	CHECK(err == 0 || err == -ETIMEDOUT);
	if (err)
		pcpi_fetch_add_relaxed(&d->late, 1);
}

/* What the others do while one is stopped. */
static void go_on(unsigned index, void *arg)
{
	struct drains *d = arg;
	void *block;

	(void)index;
	conc_run(2, drain, d);
	block = pcpa_alloc(d->heap, 9, 0);
	CHECK(block);
	pcpa_free(d->heap, block);
	conc_raise(&d->done);
}

#define PATIENCE_MS 2000u

/* True: all ended while the thread was stopped. */
static bool round_run(struct drains *d, int tid, int *err)
{
	uint64_t end = conc_now_ms() + PATIENCE_MS;
	struct conc_thread others;
	bool ended;

	d->done = false;
	*err = tracer_ask(tid);
	if (*err)
		return false;
	conc_start(&others, 1, go_on, d);
	while (!(ended = conc_flag(&d->done)) && conc_now_ms() < end)
		conc_sleep_ms(1);
	CHECK(tracer_ask(0) == 0);
	conc_join(&others, 1);
	return ended;
}

int main(void)
{
	struct stopped_case the = { .stop = false };
	struct conc_thread threads[OWNERS];
	struct drains d = { .late = 0 };
	unsigned i, rounds = 0, locked = 0;
	struct pcpa_stats s;
	pid_t child;
	int err = 0;

	CHECK(pipe(ask) == 0 && pipe(answer) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(ask[1]);
		tracer();
	}
	prctl(PR_SET_PTRACER, child, 0, 0, 0); /* where that is asked for */
	d.heap = the.heap = conc_heap(64 * MIB, 0);
	conc_start(threads, OWNERS, owner, &the);
	for (i = 0; i < OWNERS; i++)
		while (pcpi_load_relaxed(&the.tids[i]) == 0)
			sched_yield();
	for (i = 0; i < ROUNDS && !err && locked < LOCKED_MAX; i++) {
		if (round_run(&d, pcpi_load_relaxed(&the.tids[i % OWNERS]), &err))
			rounds++;
		else
			locked += !err;
	}
	conc_raise(&the.stop);
	conc_join(threads, OWNERS);
	close(ask[1]);
	CHECK(waitpid(child, NULL, 0) == child);
	s = conc_stats(the.heap);
	fprintf(stderr, "%u stops, %u with a lock, %u drains late, %" PRIu64
		" skipped\n", rounds + locked, locked, d.late, s.busy_skipped);
	CHECK_U64(s.busy_skipped, >=, d.late > 0);
	conc_heap_end(the.heap);
	if (err) {
		fprintf(stderr, "can't trace: %s\n", strerror(err));
		return 77;
	}
	CHECK_U64(rounds, >, 0);
	return 0;
}
