/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetlb.c - a program whose mappings may be huge pages of the kernel's pool; for
 * tests/shim/hugetlb.
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
 *   hugetlb threads N  four threads count in such memory while it is forked and
 *                      protected in parts; no count may be lost
 *
 * Prints "pool: N" with how many of the first mappings were of the pool, as the kernel
 * sees it, then "churn: whole", and exits with 0; or says what was wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define UNIT ((size_t)2 << 20)
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define THREADS 4
#define MANY 256

#define CHECK(cond)                                                            \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "hugetlb: %d: not so: %s (%m)\n",      \
				__LINE__, #cond);                              \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static unsigned char *map(size_t bytes)
{
	unsigned char *p = mmap(NULL, bytes, RW, ANON, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static bool all(const unsigned char *p, unsigned char value, size_t bytes)
{
	return *p == value && (bytes == 1 || !memcmp(p, p + 1, bytes - 1));
}

/* Does the kernel say that the address is in huge pages of the pool? */
static bool pooled(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool inside = false, ht = false;
	unsigned long from, to;

	CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			ht = strstr(line, " ht") != NULL;
	}
	fclose(f);
	return ht;
}

/* So often that the library knows the sizes to be used. */
static void warm(void)
{
	for (size_t bytes = UNIT; bytes <= 4 * UNIT; bytes *= 2)
		for (int i = 0; i < 4; i++) {
			unsigned char *p = map(bytes);

			CHECK(all(p, 0, bytes));
			memset(p, 0xa5, bytes);
			CHECK(munmap(p, bytes) == 0);
		}
}

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

/* ---- Parts ----------------------------------------------------------------- */

static unsigned char *filled(void)
{
	unsigned char *p = map(UNIT);

	CHECK(all(p, 0, UNIT));
	memset(p, 7, UNIT);
	return p;
}

static void part_protect(unsigned char *p)
{
	int fds[2];

	CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
	CHECK(pipe(fds) == 0);
	CHECK(write(fds[1], p + PAGE, 1) == -1 && errno == EFAULT);
	CHECK(mprotect(p + PAGE, PAGE, RW) == 0);
	close(fds[0]);
	close(fds[1]);
	CHECK(all(p, 7, UNIT));
}

static void part_unmap(unsigned char *p)
{
	CHECK(munmap(p + 8 * PAGE, PAGE) == 0);
	CHECK(msync(p + 8 * PAGE, PAGE, MS_ASYNC) == -1 && errno == ENOMEM);
	CHECK(all(p, 7, 8 * PAGE));
	CHECK(mmap(p + 8 * PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) ==
	      p + 8 * PAGE);
	CHECK(all(p + 8 * PAGE, 0, PAGE));
	memset(p + 8 * PAGE, 7, PAGE);
}

static void part_replace(unsigned char *p)
{
	CHECK(mmap(p + PAGE, PAGE, PROT_READ, ANON | MAP_FIXED, -1, 0) ==
	      p + PAGE);
	CHECK(all(p + PAGE, 0, PAGE) && all(p, 7, PAGE));
	CHECK(mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + PAGE);
	memset(p + PAGE, 7, PAGE);
}

static void part_advise(unsigned char *p)
{
	CHECK(madvise(p + PAGE, PAGE, MADV_DONTNEED) == 0);
	CHECK(all(p + PAGE, 0, PAGE) && all(p + 2 * PAGE, 7, PAGE));
	CHECK(madvise(p + PAGE, UNIT / 2 + PAGE, MADV_DONTNEED) == 0);
	CHECK(all(p + PAGE, 0, UNIT / 2 + PAGE) && *p == 7);
	memset(p, 7, UNIT);
	CHECK(madvise(p + PAGE, PAGE, MADV_FREE) == 0);
	CHECK(madvise(p + PAGE, PAGE, MADV_WILLNEED) == 0);
	CHECK(madvise(p + PAGE, PAGE, MADV_COLD) == 0);
	CHECK(madvise(p, UNIT, MADV_POPULATE_WRITE) == 0);
	memset(p, 7, UNIT);
	CHECK(madvise(p + PAGE, PAGE, MADV_DONTFORK) == 0);
	CHECK(all(p, 7, UNIT));
}

static void part_lock(unsigned char *p)
{
	unsigned char seen;

	CHECK(mincore(p + PAGE, PAGE, &seen) == 0 && (seen & 1));
	CHECK(mlock(p + PAGE, PAGE) == 0 && munlock(p + PAGE, PAGE) == 0);
}

static void part_move(unsigned char *p)
{
	unsigned char *q = map(UNIT);

	CHECK(mremap(p, UNIT, UNIT, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	CHECK(all(q, 7, UNIT));
	CHECK(mremap(q, UNIT, UNIT / 2, 0) == q);
	q = mremap(q, UNIT / 2, UNIT, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED && all(q, 7, UNIT / 2));
	CHECK(all(q + UNIT / 2, 0, UNIT / 2));
	CHECK(munmap(q, UNIT) == 0);
}

static void part_moves_out(unsigned char *p)
{
	unsigned char *q = mremap(p + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);

	CHECK(q != MAP_FAILED && all(q, 7, PAGE) && all(q + PAGE, 0, PAGE));
	CHECK(munmap(q, 2 * PAGE) == 0);
	CHECK(mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) ==
	      p + PAGE);
	q = mremap(p + UNIT / 2, UNIT / 4, UNIT / 4,
		   MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
	CHECK(q != MAP_FAILED && all(q, 7, UNIT / 4));
	CHECK(all(p + UNIT / 2, 0, UNIT / 4) && *p == 7);
	CHECK(munmap(q, UNIT / 4) == 0);
}

static void large_parts(void)
{
	unsigned char *p = map(4 * UNIT);

	memset(p, 7, 4 * UNIT);
	CHECK(madvise(p + PAGE, 3 * UNIT, MADV_DONTNEED) == 0);
	CHECK(all(p, 7, PAGE) && all(p + PAGE, 0, 3 * UNIT));
	CHECK(all(p + PAGE + 3 * UNIT, 7, UNIT - PAGE));
	CHECK(mprotect(p + 2 * UNIT, PAGE, PROT_READ) == 0);
	CHECK(madvise(p, 4 * UNIT, MADV_DONTNEED) == 0);
	CHECK(all(p, 0, 4 * UNIT));
	memset(p + 3 * UNIT, 7, UNIT);
	CHECK(munmap(p + 2 * UNIT + PAGE, UNIT) == 0);
	CHECK(all(p + 3 * UNIT + PAGE, 7, UNIT - PAGE));
	CHECK(munmap(p, 4 * UNIT) == 0);
	p = map(4 * UNIT);
	memset(p, 7, 4 * UNIT);
	CHECK(munmap(p + UNIT + PAGE, 3 * UNIT - PAGE) == 0);
	CHECK(all(p, 7, UNIT + PAGE));
	p = mremap(p, UNIT + PAGE, 4 * UNIT, MREMAP_MAYMOVE);
	CHECK(all(p, 7, UNIT + PAGE));
	CHECK(all(p + UNIT + PAGE, 0, 3 * UNIT - PAGE));
	CHECK(munmap(p, 4 * UNIT) == 0);
}

static void parts(void)
{
	static void (*const each[])(unsigned char *) = {
		part_protect, part_unmap, part_replace,   part_advise,
		part_lock,    part_move,  part_moves_out,
	};
	int count = 0;

	warm();
	for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) {
		unsigned char *p = filled();

		count += pooled(p);
		each[i](p);
		CHECK(munmap(p, UNIT) == 0);
		large_parts();
		warm();
	}
	printf("pool: %d\n", count);
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

	for (int i = 0; i < THREADS; i++)
		held[i] = map(UNIT);
	__atomic_store_n(&ends, false, __ATOMIC_RELAXED);
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, count_up,
				     held[i] + i * 64) == 0);
	usleep(1000);
	if (k % 2) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(munmap(held[0], UNIT) != 0);
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		CHECK(mprotect(held[i] + PAGE, PAGE, PROT_READ) == 0);
		CHECK(munmap(held[i] + 3 * PAGE, PAGE) == 0);
	}
	__atomic_store_n(&ends, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK(munmap(held[i], UNIT) == 0);
	}
}

/* Each round in a process of its own, as a fork ends it. */
static void threads(int n)
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
			threads_round(k);
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
		threads(n);
	} else {
		return 2;
	}
	puts("churn: whole");
	return 0;
}
