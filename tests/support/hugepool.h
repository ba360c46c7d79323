/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugepool.h - the machine's pool of 2 MiB pages, set while a test runs.
 *
 * It is put back when the process that set it ends, also by a signal: the machine
 * must not be left changed.  One such test runs at a time, whoever started it: what
 * another has set for the moment isn't what to put back.
 */
#ifndef HUGEPOOL_H
#define HUGEPOOL_H

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define POOL_PAGE_BYTES ((size_t)2 << 20)

static uint64_t pool_before;
static pid_t pool_owner; /* who has to put it back, or 0 */

/* 0 where there is no such pool. */
static inline uint64_t pool_file(const char *name)
{
	char path[128];
	uint64_t x = 0;
	FILE *f;

	snprintf(path, sizeof(path), POOL "%s", name);
	f = fopen(path, "re");
	if (f && fscanf(f, "%" SCNu64, &x) != 1)
		x = 0;
	if (f)
		fclose(f);
	return x;
}

static inline bool pool_set(uint64_t pages)
{
	FILE *f = fopen(POOL "nr_hugepages", "we");

	if (!f)
		return false;
	fprintf(f, "%" PRIu64, pages);
	return fclose(f) == 0 && pool_file("nr_hugepages") >= pages;
}

static inline void pool_restore(void)
{
	if (pool_owner == getpid())
		pool_set(pool_before);
	pool_owner = 0;
}

static inline void pool_on_signal(int sig)
{
	pool_restore();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* So many pages, all of them free.  False, and nothing changed, where that can't be:
 * not root, a pool that is larger or that somebody uses, no memory. */
static inline bool pool_take(uint64_t pages)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGBUS, SIGSEGV };
	int lock = open(POOL "nr_hugepages", O_RDONLY | O_CLOEXEC);

	if (lock < 0 || flock(lock, LOCK_EX) != 0) /* held until the end */
		return false;
	pool_before = pool_file("nr_hugepages");
	if (geteuid() != 0 || pool_before > pages ||
	    pool_file("free_hugepages") != pool_before)
		return false;
	pool_owner = getpid();
	atexit(pool_restore);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		signal(ends[i], pool_on_signal);
	if (pool_set(pages) && pool_file("free_hugepages") == pages)
		return true;
	pool_restore();
	return false;
}

#endif
