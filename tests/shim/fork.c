/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork.c - rule 14: forks copy on write, both ways, whatever was free at the time;
 * children work right after a fork, of whichever kind it was.
 */
#define _GNU_SOURCE
#include "contract.h"
#include "direct.h"

#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

#define BLOCKS 6u

struct blocks {
	unsigned char *p[BLOCKS];
	size_t bytes[BLOCKS];
	int to_child[2], to_parent[2];
};

static void blocks_take(struct blocks *b)
{
	static const size_t bytes[BLOCKS] = {PAGE,    64 * KIB, 512 * KIB,
					     2 * MIB, 3 * MIB,  16 * MIB};

	for (unsigned i = 0; i < BLOCKS; i++) {
		b->bytes[i] = bytes[i];
		b->p[i] = map_soiled(bytes[i]);
	}
	OK(pipe(b->to_child));
	OK(pipe(b->to_parent));
}

static void blocks_expect(const struct blocks *b, unsigned char value,
			  const char *what)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		expect_bytes(b->p[i], b->bytes[i], value, what);
}

static void blocks_fill(struct blocks *b, unsigned char value)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		memset(b->p[i], value, b->bytes[i]);
}

static void blocks_free(struct blocks *b)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		unmap(b->p[i], b->bytes[i]);
}

/* Frees all, maps the same sizes again and writes them. */
static void blocks_reuse(struct blocks *b)
{
	blocks_free(b);
	for (unsigned i = 0; i < BLOCKS; i++) {
		b->p[i] = map(b->bytes[i]);
		expect_zero(b->p[i], b->bytes[i], "mapped after a fork");
		memset(b->p[i], 1, b->bytes[i]);
	}
}

static void tell(const int pipe_of[2])
{
	EXPECT(write(pipe_of[1], "", 1) == 1);
}

static void await(const int pipe_of[2])
{
	char byte;

	EXPECT(read(pipe_of[0], &byte, 1) == 1);
}

static void rule14_child_writes(void)
{
	struct blocks b;
	pid_t pid;

	blocks_take(&b);
	pid = fork();
	if (pid == 0) {
		blocks_expect(&b, SOIL, "inherited");
		blocks_fill(&b, 1);
		blocks_expect(&b, 1, "the child's");
		_exit(0);
	}
	child_await(pid);
	blocks_expect(&b, SOIL, "the parent's");
}

static void rule14_parent_writes(void)
{
	struct blocks b;
	pid_t pid;

	blocks_take(&b);
	pid = fork();
	if (pid == 0) {
		await(b.to_child);
		blocks_expect(&b, SOIL, "the child's");
		_exit(0);
	}
	blocks_fill(&b, 1);
	tell(b.to_child);
	child_await(pid);
	blocks_expect(&b, 1, "the parent's");
}

/* As a server does that saves itself to a file in a child. */
static void rule14_parent_reuses_while_child_reads(void)
{
	struct blocks b;
	pid_t pid;

	blocks_take(&b);
	pid = fork();
	if (pid == 0) {
		blocks_expect(&b, SOIL, "read by a child");
		tell(b.to_parent);
		await(b.to_child);
		blocks_expect(&b, SOIL, "read by a child, later");
		_exit(0);
	}
	if (pid > 0)
		await(b.to_parent);
	for (unsigned i = 0; i < 5; i++)
		blocks_reuse(&b);
	tell(b.to_child);
	child_await(pid);
	blocks_expect(&b, 1, "the parent's");
}

static void rule14_child_reuses_while_parent_reads(void)
{
	struct blocks b;
	pid_t pid;

	blocks_take(&b);
	pid = fork();
	if (pid == 0) {
		for (unsigned i = 0; i < 5; i++)
			blocks_reuse(&b);
		tell(b.to_parent);
		await(b.to_child);
		blocks_expect(&b, 1, "the child's");
		_exit(0);
	}
	if (pid > 0)
		await(b.to_parent);
	blocks_expect(&b, SOIL, "read by the parent");
	tell(b.to_child);
	child_await(pid);
	blocks_free(&b);
	expect_clean(2 * MIB);
}

/* Both take what was free at the time. */
static void rule14_both_reuse_what_was_free(void)
{
	struct blocks b;
	pid_t pid;

	blocks_take(&b);
	blocks_free(&b);
	pid = fork();
	for (unsigned i = 0; i < BLOCKS; i++) {
		b.p[i] = map(b.bytes[i]);
		expect_zero(b.p[i], b.bytes[i], "free at a fork");
		memset(b.p[i], pid == 0 ? 1 : 2, b.bytes[i]);
	}
	blocks_expect(&b, pid == 0 ? 1 : 2, "its own");
	if (pid == 0) {
		blocks_free(&b);
		expect_clean(64 * KIB);
		_exit(0);
	}
	child_await(pid);
	blocks_expect(&b, 2, "the parent's own");
	blocks_free(&b);
}

static void rule14_child_frees_what_it_inherited(void)
{
	struct blocks b;
	pid_t pid;

	blocks_take(&b);
	pid = fork();
	if (pid == 0) {
		unmap(b.p[3] + 512 * KIB, MIB);
		EXPECT(is_hole(b.p[3] + 512 * KIB));
		blocks_free(&b);
		EXPECT(is_hole(b.p[0]) && is_hole(b.p[3]));
		expect_clean(2 * MIB);
		_exit(0);
	}
	child_await(pid);
	blocks_expect(&b, SOIL, "freed by a child");
}

static void rule14_generations(void)
{
	for (unsigned depth = 0; depth < 6; depth++) {
		unsigned char *p = map_soiled(MIB), *q = map_soiled(64 * KIB);
		pid_t pid = fork();

		if (pid == 0) {
			expect_bytes(p, MIB, SOIL, "of the generation before");
			unmap(p, MIB);
			continue;
		}
		unmap(q, 64 * KIB);
		expect_clean(64 * KIB);
		child_await(pid);
		expect_bytes(p, MIB, SOIL, "of this generation");
		unmap(p, MIB);
		if (depth > 0)
			_exit(0);
		return;
	}
	_exit(0);
}

static void rule14_many_children_at_once(void)
{
	struct blocks b;
	pid_t pids[12];

	blocks_take(&b);
	for (unsigned i = 0; i < 12; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			blocks_expect(&b, SOIL, "one of twelve");
			blocks_reuse(&b);
			blocks_fill(&b, (unsigned char)i);
			blocks_expect(&b, (unsigned char)i, "its own");
			_exit(0);
		}
	}
	for (unsigned i = 0; i < 12; i++)
		child_await(pids[i]);
	blocks_expect(&b, SOIL, "the parent's");
}

/* ---- Without copies ---------------------------------------------------------------- */

static long faults_now(void)
{
	struct rusage used;

	EXPECT(getrusage(RUSAGE_SELF, &used) == 0);
	return used.ru_minflt;
}

/* As a child does that has saved an object and needs its memory no more: what is given
 * back is never copied first. */
static void rule14_child_gives_back_without_copies(void)
{
	unsigned char *p = map_soiled(2 * MIB), *q = map_soiled(64 * KIB);
	pid_t pid = fork();

	if (pid == 0) {
		long before = faults_now();

		for (size_t at = 0; at < 2 * MIB; at += PAGE)
			OK(madvise(p + at, PAGE, MADV_DONTNEED));
		OK(madvise(q, 64 * KIB, MADV_DONTNEED));
		EXPECT(faults_now() - before < 64);
		expect_zero(p, 2 * MIB, "given back by a child");
		expect_zero(q, 64 * KIB, "given back by a child");
		_exit(0);
	}
	child_await(pid);
	expect_bytes(p, 2 * MIB, SOIL, "given back by a child");
	expect_bytes(q, 64 * KIB, SOIL, "given back by a child");
}

/* Nor are large mappings that were free at the time, to be cleared. */
static void rule14_child_maps_without_copies(void)
{
	const size_t bytes[] = {2 * MIB, 4 * MIB, 8 * MIB};
	unsigned char *p[3];
	pid_t pid;

	for (unsigned i = 0; i < 3; i++)
		p[i] = map_soiled(bytes[i]);
	for (unsigned i = 0; i < 3; i++)
		unmap(p[i], bytes[i]);
	pid = fork();
	if (pid == 0) {
		long before = faults_now();

		for (unsigned i = 0; i < 3; i++)
			p[i] = map(bytes[i]);
		EXPECT(faults_now() - before < 64);
		for (unsigned i = 0; i < 3; i++)
			expect_zero(p[i], bytes[i], "mapped by a child");
		_exit(0);
	}
	child_await(pid);
}

/* ---- With threads, which are anywhere when the fork comes -------------------------- */

static void child_churns(void)
{
	unsigned random = (unsigned)getpid();

	for (unsigned i = 0; i < scaled(40); i++)
		if (!churn_round(&random))
			probe_fail("a child's round: seen: old bytes or a "
				   "refusal; the kernel: zero");
	_exit(0);
}

static void rule14_fork_among_threads(void)
{
	churn_start(8);
	for (unsigned i = 0; i < scaled(40); i++) {
		pid_t pid = fork();

		if (pid == 0)
			child_churns();
		child_await(pid);
	}
	churn_stop();
}

/* Whatever other threads were at: what a child has is its own to change. */
static void child_changes(unsigned char *p, size_t bytes)
{
	unsigned char *q = p + bytes / 4;

	EXPECT(mmap(q, PAGE, RW, ANON | MAP_FIXED, -1, 0) == q);
	expect_zero(q, PAGE, "MAP_FIXED in a child");
	OK(mprotect(q + PAGE, PAGE, PROT_READ));
	unmap(q + 2 * PAGE, PAGE);
	EXPECT(is_hole(q + 2 * PAGE));
	EXPECT(mmap(q + 2 * PAGE, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1,
		    0) == q + 2 * PAGE);
	OK(madvise(p, PAGE, MADV_DONTNEED));
	expect_zero(p, PAGE, "MADV_DONTNEED in a child");
	p = mremap(p, bytes / 4, bytes, MREMAP_MAYMOVE);
	EXPECT(p != MAP_FAILED);
	expect_bytes(p + PAGE, bytes / 4 - PAGE, SOIL, "moved in a child");
	unmap(p, bytes);
	unmap(q, bytes - bytes / 4);
}

static void rule14_changes_among_threads(void)
{
	churn_start(8);
	for (unsigned i = 0; i < scaled(84); i++) {
		size_t bytes = 64 * KIB << i % 7;
		unsigned char *p = map(bytes);
		pid_t pid;

		memset(p, SOIL, bytes);
		pid = fork();
		if (pid == 0) {
			child_changes(p, bytes);
			_exit(0);
		}
		child_await(pid);
		unmap(p, bytes);
	}
	churn_stop();
}

/* A fork of which no handler hears. */
static void rule14_raw_clone_among_threads(void)
{
	churn_start(8);
	for (unsigned i = 0; i < scaled(40); i++) {
		pid_t pid = (pid_t)direct_fork();

		if (pid == 0)
			child_churns();
		if (pid < 0) {
			churn_stop();
			probe_skip("no clone: %s", error_name(-pid));
		}
		child_await(pid);
	}
	churn_stop();
}

static void rule14_raw_clone_alone(void)
{
	for (unsigned i = 0; i < scaled(20); i++) {
		unsigned char *p = map_soiled(MIB);
		pid_t pid = (pid_t)direct_fork();

		if (pid == 0) {
			expect_bytes(p, MIB, SOIL, "inherited");
			unmap(p, MIB);
			expect_clean(MIB);
			child_churns();
		}
		if (pid < 0)
			probe_skip("no clone: %s", error_name(-pid));
		unmap(p, MIB);
		expect_clean(MIB);
		child_await(pid);
	}
}

static void *forks(void *arg)
{
	for (unsigned i = 0; i < scaled(12); i++) {
		pid_t pid = fork();

		if (pid == 0)
			child_churns();
		child_await(pid);
	}
	return arg;
}

static void rule14_forks_from_four_threads(void)
{
	pthread_t threads[4];

	churn_start(4);
	for (unsigned i = 0; i < 4; i++)
		EXPECT(pthread_create(&threads[i], NULL, forks, NULL) == 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	churn_stop();
}

/* ---- Children that share the memory ------------------------------------------------ */

static char true_path[] = "/bin/true";
static char *true_argv[] = {true_path, NULL};

static void rule14_vfork_among_threads(void)
{
	churn_start(8);
	for (unsigned i = 0; i < scaled(40); i++) {
		pid_t pid = vfork();

		if (pid == 0) {
			execve(true_path, true_argv, environ);
			_exit(1);
		}
		child_await(pid);
	}
	churn_stop();
}

static void rule14_spawn_among_threads(void)
{
	churn_start(8);
	for (unsigned i = 0; i < scaled(40); i++) {
		pid_t pid;

		if (posix_spawn(&pid, true_path, NULL, NULL, true_argv,
				environ) != 0) {
			churn_stop();
			probe_skip("posix_spawn of /bin/true is refused");
		}
		child_await(pid);
	}
	churn_stop();
}

static void rule14_vfork_child_maps(void)
{
	static unsigned char *volatile p;

	for (unsigned i = 0; i < 50; i++) {
		unsigned char *q = map_soiled(64 * KIB);
		pid_t pid = vfork();

		if (pid == 0) {
			p = mmap(NULL, 64 * KIB, RW, ANON, -1, 0);
			memset(p, 7, 64 * KIB);
			munmap(q, 64 * KIB);
			_exit(0);
		}
		child_await(pid);
		EXPECT(is_hole(q));
		expect_bytes(p, 64 * KIB, 7, "mapped by a vfork's child");
		unmap(p, 64 * KIB);
		expect_clean(64 * KIB);
	}
}

static int sharing_child(void *arg)
{
	unsigned random = 5;

	for (unsigned i = 0; i < 200; i++)
		if (!churn_round(&random))
			return 1;
	*(unsigned char **)arg = map_soiled(MIB);
	return 0;
}

/* The same memory and thread-local memory; with and without a waiting parent. */
static void clone_shares(int flags)
{
	static unsigned char stack[64 * KIB] __attribute__((aligned(16)));

	for (unsigned i = 0; i < 10; i++) {
		unsigned char *p = NULL;
		pid_t pid = clone(sharing_child, stack + sizeof(stack),
				  CLONE_VM | SIGCHLD | flags, &p);

		child_await(pid);
		EXPECT(p != NULL);
		expect_bytes(p, MIB, SOIL, "mapped by a child that shares");
		unmap(p, MIB);
		expect_clean(MIB);
	}
}

static void rule14_clone_vm_and_vfork(void)
{
	clone_shares(CLONE_VFORK);
}

static void rule14_clone_vm(void)
{
	clone_shares(0);
}

const struct probe probes_fork[] = {
	PROBE(rule14_child_writes),
	PROBE(rule14_parent_writes),
	PROBE(rule14_parent_reuses_while_child_reads),
	PROBE(rule14_child_reuses_while_parent_reads),
	PROBE(rule14_both_reuse_what_was_free),
	PROBE(rule14_child_frees_what_it_inherited),
	PROBE(rule14_generations),
	PROBE(rule14_many_children_at_once),
	PROBE(rule14_child_gives_back_without_copies),
	PROBE(rule14_child_maps_without_copies),
	PROBE(rule14_fork_among_threads),
	PROBE(rule14_changes_among_threads),
	PROBE(rule14_raw_clone_among_threads),
	PROBE(rule14_raw_clone_alone),
	PROBE(rule14_forks_from_four_threads),
	PROBE(rule14_vfork_among_threads),
	PROBE(rule14_spawn_among_threads),
	PROBE(rule14_vfork_child_maps),
	PROBE(rule14_clone_vm_and_vfork),
	PROBE(rule14_clone_vm),
	PROBES_END,
};
