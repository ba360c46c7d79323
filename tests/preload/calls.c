/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.c - a program for the tests of the variables: maps as its arguments say, and
 * prints nothing.
 *
 *	calls pretend PROGRAM ...
 *	calls [map BYTES | name BYTES | hold COUNT BYTES | look COUNT BYTES |
 *	       quiet BYTES | raise SIGNAL | fork | retitle] ...
 *
 *   pretend runs a program for which naming memory succeeds and does nothing: many
 *           kernels can't
 *   map     twice, written and unmapped each time
 *   name    the same, with a name for it in /proc/PID/maps
 *   hold    so many at a time, written, then all unmapped
 *   look    so many times, neither written nor read
 *   quiet   maps and writes, which must be next to no page fault
 *   raise   sends itself the signal, which must be handled
 *   fork    the rest is done by a child, too
 *   retitle takes its environment's memory for something else, as a server does that
 *           shows a title in ps
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void map_twice(size_t bytes, bool named)
{
	for (int i = 0; i < 2; i++) {
		char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			fail("mmap");
		/* A kernel may have been built without names. */
		if (named)
			prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, bytes,
			      "calls");
		memset(p, 1, bytes);
		if (munmap(p, bytes))
			fail("munmap");
	}
}

static void hold_many(size_t count, size_t bytes)
{
	char **p = calloc(count, sizeof(*p));

	for (size_t i = 0; p && i < count; i++) {
		p[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p[i] == MAP_FAILED)
			fail("mmap");
		memset(p[i], 1, bytes);
	}
	for (size_t i = 0; p && i < count; i++)
		if (munmap(p[i], bytes))
			fail("munmap");
	free(p);
}

static void map_only(size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED || munmap(p, bytes))
			fail("mmap");
	}
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

static void write_quietly(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long before = faults();

	if (p == MAP_FAILED)
		fail("mmap");
	memset(p, 1, bytes);
	if (faults() - before > 2) {
		fprintf(stderr, "%ld page faults\n", faults() - before);
		exit(1);
	}
}

static void child_begin(void)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		fail("fork");
	if (pid > 0 && (waitpid(pid, &status, 0) != pid || status != 0))
		exit(1);
}

static void environment_overwrite(void)
{
	for (char **e = environ; *e; e++)
		memset(*e, 0, strlen(*e));
}

static void pretend(char **argv)
{
	if (!sandbox_refuse_if(SYS_prctl, 0, BPF_JEQ, PR_SET_VMA, 0))
		fail("seccomp");
	execvp(argv[0], argv);
	fail(argv[0]);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "pretend") == 0)
		pretend(argv + 2);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "map") == 0 && i + 1 < argc)
			map_twice(strtoul(argv[++i], NULL, 10), false);
		else if (strcmp(argv[i], "name") == 0 && i + 1 < argc)
			map_twice(strtoul(argv[++i], NULL, 10), true);
		else if (strcmp(argv[i], "hold") == 0 && i + 2 < argc) {
			hold_many(strtoul(argv[i + 1], NULL, 10),
				  strtoul(argv[i + 2], NULL, 10));
			i += 2;
		} else if (strcmp(argv[i], "raise") == 0 && i + 1 < argc)
			raise(atoi(argv[++i]));
		else if (strcmp(argv[i], "look") == 0 && i + 2 < argc) {
			map_only(strtoul(argv[i + 1], NULL, 10),
				 strtoul(argv[i + 2], NULL, 10));
			i += 2;
		} else if (strcmp(argv[i], "quiet") == 0 && i + 1 < argc)
			write_quietly(strtoul(argv[++i], NULL, 10));
		else if (strcmp(argv[i], "fork") == 0)
			child_begin();
		else if (strcmp(argv[i], "retitle") == 0)
			environment_overwrite();
		else
			return 2;
	}
	return 0;
}
