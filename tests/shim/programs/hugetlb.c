/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetlb.c - a program whose mappings may be huge pages of the kernel's pool; with
 * hugetlb_parts.c, for tests/shim/hugetlb.
 *
 *   hugetlb hold N     N mappings of 2 MiB at a time, written and read
 *   hugetlb parts      all that can be done to a part of one
 *   hugetlb returns    what was freed and not used is given back after some seconds
 *   hugetlb fork N     N mappings, which parent and child write to after a fork while
 *                      both read the old, and the pool is empty
 *   hugetlb clone N    the same with clone(), in turn with syscall(SYS_clone)
 *   hugetlb clone3 N   the same with syscall(SYS_clone3)
 *   hugetlb bare       a fork by a bare instruction
 *   hugetlb bareclone  the same, and the child's first call is a fork, too
 *   hugetlb barenew    the same; the child maps what was free in the pool
 *   hugetlb replaced   a mapping that was protected by a bare instruction, freed, and
 *                      then another one at its place; a fork doesn't touch that
 *   hugetlb full N     the same as fork, once, with no descriptor free
 *   hugetlb stack N    forks and protects parts while its own stack is such memory
 *   hugetlb threads N  four threads count in such memory while it is forked and
 *                      protected in parts; no count may be lost
 *
 * Prints "pool: N" with how many of the first mappings were of the pool, as the kernel
 * sees it, then "churn: whole", and exits with 0; or says what was wrong.
 */
#define _GNU_SOURCE
#include "hugetlb.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#define THREADS 4
#define MANY 256

static unsigned char *held[MANY];

static void hold(int n)
{
	int count = 0;

	CHECK(n <= MANY);
	warm();
	for (int i = 0; i < n; i++) {
		held[i] = map(UNIT);
		CHECK(all(held[i], 0, UNIT));
		memset(held[i], i + 1, UNIT);
		count += pooled(held[i]);
	}
	printf("pool: %d\n", count);
	fflush(stdout);
}

static void release(int n)
{
	for (int i = 0; i < n; i++) {
		CHECK(all(held[i], (unsigned char)(i + 1), UNIT));
		CHECK(munmap(held[i], UNIT) == 0);
	}
	warm();
}

/* ---- Giving back ----------------------------------------------------------- */

/* Of this process; how many the pool has is also other processes' doing. */
static long own_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long n = -1;

	CHECK(f);
	while (n < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "Private_Hugetlb: %ld", &n);
	fclose(f);
	return n;
}

static void returns(int n)
{
	long left;

	hold(n);
	CHECK(own_kib() >= n * 2048L);
	release(n);
	left = own_kib();
	/* A call now and then is what time passes by; of a size of its own. */
	for (int i = 0; i < 300 && left > 0; i++) {
		for (int k = 0; k < 5000; k++)
			CHECK(munmap(map(16 * PAGE), 16 * PAGE) == 0);
		usleep(100000);
		left = own_kib();
	}
	CHECK(left == 0);
}

/* ---- Forks ----------------------------------------------------------------- */

/* Nobody else gets a page of the pool any more. */
static void drain(void)
{
	for (int i = 0; i < 4 * MANY; i++)
		if (mmap(NULL, UNIT, RW, ANON | MAP_HUGETLB, -1, 0) == MAP_FAILED)
			return;
}

static void both_write(int n, int pid, int fds[2])
{
	unsigned char byte = 0;

	if (pid == 0)
		alarm(60);
	/* The parent is first: what it takes the child must not miss. */
	if (pid > 0)
		for (int i = 0; i < n; i++)
			memset(held[i], 200, UNIT);
	if (pid > 0)
		CHECK(write(fds[1], &byte, 1) == 1);
	else
		CHECK(read(fds[0], &byte, 1) == 1);
	if (pid > 0) {
		int status;

		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		for (int i = 0; i < n; i++) {
			CHECK(all(held[i], 200, UNIT));
			memset(held[i], i + 1, UNIT);
		}
		return;
	}
	for (int i = 0; i < n; i++)
		CHECK(all(held[i], (unsigned char)(i + 1), UNIT));
	for (int i = 0; i < n; i++)
		memset(held[i], i + 1, UNIT);
	release(n);
	/* A child may have the pool's pages, too. */
	hold(n);
	release(n);
	_exit(0);
}

static int copied(void *arg)
{
	int *fds = arg;

	both_write(fds[2], 0, fds);
	return 0;
}

/* A fork by syscall(SYS_clone3), where that is allowed. */
static int fork_clone3(void)
{
	/* First the flags; the fifth is the signal. */
	uint64_t args[8] = {[4] = SIGCHLD};
	int pid = (int)syscall(SYS_clone3, args, sizeof(args));

	return pid < 0 && (errno == ENOSYS || errno == EPERM) ? fork() : pid;
}

static void forks(int n, const char *how)
{
	bool clones = strcmp(how, "clone") == 0;
	static unsigned char stack[1 << 18];
	int fds[3] = {-1, -1, n};

	hold(n);
	drain();
	CHECK(pipe(fds) == 0);
	for (int i = 0; i < 4; i++) {
		int pid;

		if (clones && i % 2)
			pid = clone(copied, stack + sizeof(stack), SIGCHLD, fds);
		else if (clones)
			pid = (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL,
					   NULL);
		else if (strcmp(how, "clone3") == 0)
			pid = fork_clone3();
		else
			pid = fork();
		CHECK(pid >= 0);
		both_write(n, pid, fds);
	}
	release(n);
}

/* A system call that the library doesn't see, of which there are numbers for x86-64. */
static long bare_call(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long r = number;

	__asm__ volatile("syscall"
			 : "+a"(r)
			 : "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return r;
#else
	return syscall(number, a, b, c);
#endif
}

static pid_t bare_fork(void)
{
#if defined(__x86_64__)
	long pid = bare_call(SYS_fork, 0, 0, 0);
#else
	long pid = fork();
#endif
	CHECK(pid >= 0);
	return (pid_t)pid;
}

static void await(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Of which nothing hears: the child gets copies of pages of the pool, and what it does
 * first turns those into others. */
static void bare(void)
{
	pid_t pid;

	hold(2);
	pid = bare_fork();
	if (pid == 0) {
		CHECK(munmap(map(PAGE), PAGE) == 0);
		CHECK(!pooled(held[0]));
		release(2);
		_exit(0);
	}
	await(pid);
	release(2);
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* A process that has forked takes nothing from the pool any more, even if that was the
 * first that the library heard of it. */
static void bare_clone(void)
{
	static unsigned char stack[1 << 16];
	pid_t pid;

	hold(2);
	pid = bare_fork();
	if (pid == 0) {
		alarm(60);
		await(clone(nothing, stack + sizeof(stack), SIGCHLD, NULL));
		CHECK(!pooled(held[0]) && !pooled(filled()));
		release(2);
		_exit(0);
	}
	await(pid);
	release(2);
}

/* The parent takes the child's copies of what both have free. */
static void bare_new(int n)
{
	unsigned char byte = 0;
	int fds[2];
	pid_t pid;

	hold(n);
	CHECK(pipe(fds) == 0);
	for (int i = 0; i < n; i++)
		CHECK(munmap(held[i], UNIT) == 0);
	drain();
	pid = bare_fork();
	if (pid > 0)
		for (int i = 0; i < n; i++)
			held[i] = filled();
	if (pid > 0)
		CHECK(write(fds[1], &byte, 1) == 1);
	else
		CHECK(read(fds[0], &byte, 1) == 1);
	if (pid == 0) {
		for (int i = 0; i < n; i++)
			filled();
		_exit(0);
	}
	await(pid);
}

/* What the library finds out to be changed it unmaps, and knows no more. */
static void replaced(void)
{
	unsigned char *p, *q;
	pid_t pid;
	int fd;

	warm();
	p = filled();
	printf("pool: %d\n", pooled(p));
	fflush(stdout);
	CHECK(bare_call(SYS_mprotect, (long)p, UNIT, PROT_READ) == 0);
	CHECK(munmap(p, UNIT) == 0);
	fd = memfd_create("replaced", 0);
	CHECK(fd >= 0 && ftruncate(fd, UNIT) == 0);
	q = mmap(p, UNIT, RW, MAP_SHARED, fd, 0);
	CHECK(q != MAP_FAILED);
	*q = 1;
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		*q = 7;
		_exit(0);
	}
	await(pid);
	CHECK(*q == 7);
}

/* Nothing can be asked by a file, and nobody held up by a descriptor. */
static void full(int n)
{
	struct rlimit few = {64, 64};
	int fds[2];
	pid_t pid;

	hold(n);
	CHECK(pipe(fds) == 0 && setrlimit(RLIMIT_NOFILE, &few) == 0);
	while (dup(fds[0]) >= 0)
		;
	pid = fork();
	CHECK(pid >= 0);
	if (pid > 0)
		drain();
	for (int fd = 3; fd < 64; fd++)
		if (fd != fds[0] && fd != fds[1])
			close(fd);
	both_write(n, pid, fds);
	release(n);
}

/* ---- Threads --------------------------------------------------------------- */

static bool ends; /* atomic */

static void *count_up(void *arg)
{
	/* In each of 16 pages. */
	volatile uint64_t *p = arg;
	uint64_t n = 0;

	while (!__atomic_load_n(&ends, __ATOMIC_RELAXED)) {
		n++;
		for (int i = 0; i < 16; i++)
			p[(size_t)i * UNIT / 16 / sizeof(*p)] = n;
		for (int i = 0; i < 16; i++)
			CHECK(p[(size_t)i * UNIT / 16 / sizeof(*p)] == n);
	}
	return NULL;
}

static void threads_round(int k)
{
	pthread_t threads[THREADS];
	int status, pid;

	for (int i = 0; i < THREADS; i++) {
		held[i] = map(2 * UNIT);
		memset(held[i], 1, 2 * UNIT);
		/* Half of what they count in is given back, and new. */
		if (k & 2)
			CHECK(madvise(held[i] + UNIT, UNIT, MADV_DONTNEED) == 0);
	}
	__atomic_store_n(&ends, false, __ATOMIC_RELAXED);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, count_up,
				     held[i] + UNIT / 2 + i * 64) == 0);
	usleep(1000);
	if (k % 2) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(munmap(held[0], 2 * UNIT) != 0);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		CHECK(mprotect(held[i] + PAGE, PAGE, PROT_READ) == 0);
		CHECK(munmap(held[i] + 3 * PAGE, PAGE) == 0);
	}
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK(munmap(held[i], 2 * UNIT) == 0);
	}
}

static unsigned char *own_stack;

/* On that stack; a fork and a guard page make memory leave that is in use just now. */
static void stack_change(int k)
{
	pid_t pid;

	if (k % 2) {
		CHECK(mprotect(own_stack, PAGE, PROT_NONE) == 0);
		CHECK(mprotect(own_stack, PAGE, RW) == 0);
	}
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		_exit(0);
	await(pid);
	CHECK(!pooled(own_stack));
}

static void *stack_thread(void *arg)
{
	volatile int before = *(int *)arg;

	stack_change(*(int *)arg);
	CHECK(before == *(int *)arg && sched_getcpu() >= 0);
	return arg;
}

static ucontext_t outside, within;

static void stack_switched(int k)
{
	stack_change(k);
}

/* A thread whose stack and thread-local memory are there, while others want the
 * processors; or a program's own stack, of its only thread. */
static void stack_round(int k)
{
	pthread_t others[THREADS], thread;
	pthread_attr_t attr;

	own_stack = map(UNIT);
	if (k % 4 >= 2) {
		CHECK(getcontext(&within) == 0);
		within.uc_stack.ss_sp = own_stack;
		within.uc_stack.ss_size = UNIT;
		within.uc_link = &outside;
		makecontext(&within, (void (*)(void))stack_switched, 1, k);
		CHECK(swapcontext(&outside, &within) == 0);
		return;
	}
	__atomic_store_n(&ends, false, __ATOMIC_RELAXED);
	for (size_t i = 0; i < THREADS; i++) {
		held[i] = map(UNIT);
		CHECK(pthread_create(&others[i], NULL, count_up,
				     held[i] + i * 64) == 0);
	}
	CHECK(pthread_attr_init(&attr) == 0);
	CHECK(pthread_attr_setstack(&attr, own_stack, UNIT) == 0);
	CHECK(pthread_create(&thread, &attr, stack_thread, &k) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(others[i], NULL) == 0);
}

/* Each round in a process of its own, as a fork ends it. */
static void rounds(int n, void (*each)(int))
{
	int count = 0;

	warm();
	for (int k = 0; k < n; k++) {
		int fds[2], status, pid;
		unsigned char byte;

		CHECK(pipe(fds) == 0);
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			alarm(60);
			held[0] = map(UNIT);
			byte = pooled(held[0]);
			CHECK(munmap(held[0], UNIT) == 0);
			CHECK(write(fds[1], &byte, 1) == 1);
			each(k);
			_exit(0);
		}
		CHECK(read(fds[0], &byte, 1) == 1);
		count += byte;
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
		close(fds[0]);
		close(fds[1]);
	}
	printf("pool: %d\n", count);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 4;

	if (strcmp(what, "hold") == 0) {
		hold(n);
		release(n);
	} else if (strcmp(what, "parts") == 0) {
		parts();
	} else if (strcmp(what, "returns") == 0) {
		returns(n);
	} else if (strcmp(what, "fork") == 0 || strcmp(what, "clone") == 0 ||
		   strcmp(what, "clone3") == 0) {
		forks(n, what);
	} else if (strcmp(what, "bare") == 0) {
		bare();
	} else if (strcmp(what, "bareclone") == 0) {
		bare_clone();
	} else if (strcmp(what, "barenew") == 0) {
		bare_new(n);
	} else if (strcmp(what, "replaced") == 0) {
		replaced();
	} else if (strcmp(what, "full") == 0) {
		full(n);
	} else if (strcmp(what, "threads") == 0) {
		rounds(n, threads_round);
	} else if (strcmp(what, "stack") == 0) {
		rounds(n, stack_round);
	} else {
		return 2;
	}
	puts("churn: whole");
	return 0;
}
