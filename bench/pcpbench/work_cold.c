/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_cold.c - what happens once in a process, or after memory was given away.
 *
 * A repetition is a process of its own: this program again, with the workload's name
 * as its argument, on both CPUs, as programs begin, with a pipe as WIRE_FD.
 *
 *   worker   t0  spawn ............................. read, wait
 *   child           exec, libraries  t1 main() .. t2 .. t3  write, end
 *
 *   start   t1 to t2: the allocator's own start and one block, a byte of which is
 *           written; the second figure is t0 to t2, so with what libraries do before
 *           main()
 *   grow    after that first block 32 MiB more, page by page, a byte of each written
 *   trim    the same, then all is freed, and the clock runs while the allocator
 *           gives what is free to the system; per page that went in that call.
 *           One that gave nearly all of it back in the frees, or gives none, is
 *           not applicable
 *
 * start-heap is no process: one heap more beside the one there is.
 *
 * All of it touches memory that the system hands out anew.  A huge page that was
 * free for some seconds may have gone to the hypervisor, and coming back takes 11 to
 * 14 us for 4 KiB; so these figures have two modes, and the turns share them out.
 *
 * Failure: a child that can't be started or says nothing is told as WIRE_FAILED.
 */
#include "lane.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tsc.h"

enum {
	START_MIB = 16,
	GROW_MIB = 128, /* how far it may grow */
	GROW_PAGES = 8192, /* 32 MiB */
	SWITCH_NS = 4000000,
	LEAST_RELEASED = GROW_PAGES / 4, /* less is nothing */
};

extern char **environ;

/* What a child says. */
struct cold {
	uint64_t end_ticks; /* when it was over */
	uint64_t ticks;	    /* of what is measured */
	uint64_t released;  /* pages */
	int64_t losses;	    /* of the CPU, meanwhile */
	uint32_t failed;
	char text[96];
};

/* ---- The child ---- */

static struct ops_shared cold_shared;
static struct ops cold_ops;
static void *cold_block[GROW_PAGES];

static void *written_take(void)
{
	char *p = ops_take(&cold_ops, 0);

	bench_consume(p);
	*(volatile char *)p = 1;
	return p;
}

/* The first block, which is kept; NULL with the reason in text. */
static void *cold_start(size_t mib, struct cold *c)
{
	if (ops_start(&cold_shared, mib, c->text, sizeof(c->text))) {
		c->failed = 1;
		return NULL;
	}
	ops_attach(&cold_ops, &cold_shared);
	return written_take();
}

static void clock_start(struct cold *c)
{
	c->losses = -bench_cpu_losses();
	c->ticks = bench_tsc_read();
}

static void clock_stop(struct cold *c)
{
	c->end_ticks = bench_tsc_read();
	c->ticks = c->end_ticks - c->ticks;
	c->losses += bench_cpu_losses();
}

static void start_measure(struct cold *c)
{
	clock_start(c);
	cold_start(START_MIB, c);
	clock_stop(c);
}

static void grow_measure(struct cold *c)
{
	if (!cold_start(GROW_MIB, c))
		return;
	clock_start(c);
	for (int i = 0; i < GROW_PAGES; i++)
		cold_block[i] = written_take();
	clock_stop(c);
}

/* Pages of the resident set. */
static uint64_t resident_read(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long long pages = 0;

	if (f && fscanf(f, "%*u %llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages;
}

static void trim_measure(struct cold *c)
{
	uint64_t before, after;
	size_t bytes;

	grow_measure(c);
	if (c->failed)
		return;
	for (int i = 0; i < GROW_PAGES; i++)
		ops_give(&cold_ops, cold_block[i], 0);
	before = resident_read();
	clock_start(c);
	bytes = ops_release(&cold_shared);
	clock_stop(c);
	after = resident_read();
	if (bytes != OPS_RESIDENT)
		c->released = bytes / OPS_PAGE_BYTES;
	else
		c->released = before > after ? before - after : 0;
}

int bench_cold_main(const char *workload)
{
	struct cold c = {.failed = 0};

	switch (bench_workload_find(workload)) {
	case BENCH_START:
		start_measure(&c);
		break;
	case BENCH_GROW:
		grow_measure(&c);
		break;
	case BENCH_TRIM:
		trim_measure(&c);
		break;
	default:
		bench_die("no such measurement");
	}
	return !wire_send(WIRE_FD, &c, sizeof(c));
}

/* ---- The worker ---- */

/* Returns 0 or an errno; the child's end of the pipe is its WIRE_FD. */
static int child_spawn(pid_t *pid, const char *workload, int fd)
{
	posix_spawn_file_actions_t actions;
	char name[32], *argv[] = {(char[]){"pcpbench-worker"}, name, NULL};
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return err;
	snprintf(name, sizeof(name), "%s", workload);
	err = posix_spawn_file_actions_adddup2(&actions, fd, WIRE_FD);
	if (!err)
		err = posix_spawn(pid, "/proc/self/exe", &actions, NULL, argv,
				  environ);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

/* A child inherits where it may run.  Some allocators have helpers of their own
 * when they start. */
static void both_cpus_allow(const struct bench_worker *w)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < 2; i++)
		if (w->cpu[i] >= 0)
			CPU_SET((unsigned)w->cpu[i], &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Returns 0 or an errno. */
static int child_run(const struct bench_worker *w, const char *workload,
		     struct cold *c)
{
	int fd[2], status = 0, err;
	pid_t pid;

	if (pipe2(fd, O_CLOEXEC))
		return errno;
	both_cpus_allow(w);
	err = child_spawn(&pid, workload, fd[1]);
	bench_pin(w->cpu[0]);
	close(fd[1]);
	if (!err) {
		if (!wire_receive(fd[0], c, sizeof(*c)))
			err = ECHILD;
		waitpid(pid, &status, 0);
	}
	close(fd[0]);
	return err;
}

static void cold_fill(const struct bench_worker *w, unsigned workload,
		      const struct cold *c, uint64_t spawned,
		      struct wire_reply *r)
{
	double ns = (double)c->ticks / w->ticks_per_ns;

	/* In so long a time the kernel's own threads come by, for microseconds:
	 * now and then one is no loss. */
	r->lost = (double)c->losses > ns / SWITCH_NS;
	r->pages = GROW_PAGES;
	switch (workload) {
	case BENCH_START:
		r->pages = 1;
		r->value = ns / 1e3;
		r->second = (double)(c->end_ticks - spawned) /
			    w->ticks_per_ns / 1e3;
		return;
	case BENCH_GROW:
		r->value = ns / GROW_PAGES;
		return;
	default:
		r->pages = c->released;
		r->second = (double)c->released * OPS_PAGE_BYTES / (1 << 20);
		/* Told while it is prepared; afterwards it is a disturbance. */
		if (c->released < LEAST_RELEASED)
			r->status = WIRE_NOT_APPLICABLE;
		r->lost |= c->released < LEAST_RELEASED;
		r->value = ns / (double)(c->released ? c->released : 1);
	}
}

void bench_cold_run(struct bench_worker *w, unsigned workload,
		    struct wire_reply *r)
{
	const char *name = bench_workloads[workload].name;
	struct cold c = {.failed = 0};
	uint64_t spawned = bench_tsc_read();
	int err = child_run(w, name, &c);

	if (err || c.failed) {
		r->status = WIRE_FAILED;
		snprintf(r->text, sizeof(r->text), "%s: a new process: %s", name,
			 err ? strerror(err) : c.text);
		return;
	}
	cold_fill(w, workload, &c, spawned, r);
}

/* ---- A heap more ---- */

void bench_heap_run(struct bench_worker *w, struct wire_reply *r)
{
	struct ops_shared shared;
	struct ops ops;
	long losses = -bench_cpu_losses();
	uint64_t start = bench_tsc_read();
	char *block;

	memset(&shared, 0, sizeof(shared));
	if (ops_start(&shared, START_MIB, r->text, sizeof(r->text))) {
		r->status = WIRE_FAILED;
		return;
	}
	ops_attach(&ops, &shared);
	block = ops_take(&ops, 0);
	bench_consume(block);
	*(volatile char *)block = 1;
	r->value = (double)(bench_tsc_read() - start) / w->ticks_per_ns / 1e3;
	r->pages = 1;
	r->lost = losses + bench_cpu_losses() > 0;
	ops_give(&ops, block, 0);
	ops_detach(&ops);
	ops_close(&shared);
}
