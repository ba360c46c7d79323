/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_fork.c - a child of a fork in the midst of what another thread was at.
 *
 * The preload library's objects are part of this program, so the moment is made
 * without luck: the one thread does the first half of what another thread's call does
 * under the pool's lock, or with an extent, and forks.  The child then changes memory
 * that it has and maps where nothing is, as it may on the bare kernel; an alarm ends
 * one that waits for ever.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_core.h"
#include "raw.h"
#include "slots.h"
#include "table.h"

enum { PAGE = 4096, BLOCK = 64 * PAGE, RW = PROT_READ | PROT_WRITE };

#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static unsigned char *map(size_t bytes)
{
	unsigned char *p = mmap(NULL, bytes, RW, ANON, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	cr_assert(shim_inside((uintptr_t)p), "not served");
	memset(p, 7, bytes);
	return p;
}

static uint32_t page_of(const void *p)
{
	return shim_pfn((uintptr_t)p);
}

/* In a child: ends it with the line of what isn't right. */
#define NEED(x)                                                                \
	do {                                                                   \
		if (!(x))                                                      \
			_exit(__LINE__ % 251 + 1);                             \
	} while (0)

static void need_bytes(const unsigned char *p, unsigned char value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		NEED(p[i] == value);
}

static bool is_hole(void *p)
{
	return msync(p, PAGE, MS_ASYNC) == -1 && errno == ENOMEM;
}

/* A free page is mapped once, and not on top of that. */
static void need_free(unsigned char *p)
{
	NEED(is_hole(p));
	NEED(mmap(p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == p);
	need_bytes(p, 0, PAGE);
	*p = 1;
	NEED(mmap(p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
	NEED(errno == EEXIST && *p == 1);
	NEED(munmap(p, PAGE) == 0);
}

static void need_changes(unsigned char *p)
{
	unsigned char *q = p + BLOCK / 4;

	NEED(mmap(q, PAGE, RW, ANON | MAP_FIXED, -1, 0) == q);
	need_bytes(q, 0, PAGE);
	NEED(mprotect(q + PAGE, PAGE, PROT_READ) == 0);
	NEED(munmap(q + 2 * PAGE, PAGE) == 0);
	need_free(q + 2 * PAGE);
	NEED(madvise(p, PAGE, MADV_DONTNEED) == 0);
	need_bytes(p, 0, PAGE);
	p = mremap(p, BLOCK / 4, BLOCK, MREMAP_MAYMOVE);
	NEED(p != MAP_FAILED);
	need_bytes(p + PAGE, 7, BLOCK / 4 - PAGE);
	NEED(munmap(p, BLOCK) == 0);
	NEED(munmap(q, BLOCK - BLOCK / 4) == 0);
	need_free(q);
}

/* New memory of many sizes, whole, and freed. */
static void need_maps(void)
{
	for (size_t bytes = PAGE; bytes <= (size_t)16 << 20; bytes *= 4) {
		unsigned char *p = mmap(NULL, bytes, RW, ANON, -1, 0);

		NEED(p != MAP_FAILED);
		need_bytes(p, 0, bytes);
		memset(p, 9, bytes);
		NEED(munmap(p, bytes) == 0);
	}
}

static pid_t child(void)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		alarm(20);
	return pid;
}

static void await(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "a child got signal %d", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "the child's line %% 251 + 1: %d",
		     WEXITSTATUS(status));
}

/* The parent's side: what another thread had at the fork is ended, and all goes on. */
static void parent_goes_on(unsigned char *p)
{
	for (size_t i = 0; i < BLOCK; i++)
		cr_assert_eq(p[i], 7);
	cr_assert_eq(munmap(p, BLOCK), 0);
	cr_assert_eq(munmap(map(BLOCK), BLOCK), 0);
}

Test(fork, lock_is_held)
{
	unsigned char *p = map(BLOCK), *freed = map(BLOCK), *cut = map(BLOCK);
	unsigned char *holed = map(BLOCK), *huge = map((size_t)4 << 20);
	pid_t pid;

	cr_assert_eq(munmap(freed, BLOCK), 0);
	cr_assert_eq(munmap(cut + BLOCK / 2, BLOCK / 2), 0);
	cr_assert_eq(munmap(holed + PAGE, PAGE), 0);
	cr_assert(shim_pool_lock());
	pid = child();
	if (pid == 0) {
		need_changes(p);
		need_free(freed);
		need_free(freed + BLOCK - PAGE);
		need_free(cut + BLOCK / 2);
		need_free(holed + PAGE);
		need_bytes(holed + 2 * PAGE, 7, BLOCK - 2 * PAGE);
		need_bytes(cut, 7, BLOCK / 2);
		need_bytes(huge, 7, (size_t)4 << 20);
		NEED(munmap(huge, (size_t)4 << 20) == 0 && is_hole(huge));
		need_maps();
		_exit(0);
	}
	await(pid);
	shim_pool_unlock();
	parent_goes_on(p);
}

/* Each call as the first of a child. */
static void first_mmap(unsigned char *p)
{
	NEED(mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + PAGE);
}

static void first_noreplace(unsigned char *p)
{
	need_free(p + BLOCK);
}

static void first_mremap(unsigned char *p)
{
	unsigned char *q = mremap(p, BLOCK, 2 * BLOCK, MREMAP_MAYMOVE);

	NEED(q != MAP_FAILED);
	need_bytes(q, 7, BLOCK);
	need_bytes(q + BLOCK, 0, BLOCK);
}

static void first_mremap_onto(unsigned char *p)
{
	unsigned char *q = p + BLOCK;

	NEED(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	need_bytes(q, 7, PAGE);
	NEED(is_hole(p));
}

static void first_munmap(unsigned char *p)
{
	NEED(munmap(p, BLOCK) == 0);
	need_free(p);
}

static void first_mlockall(unsigned char *p)
{
	munlockall();
	mlockall(MCL_CURRENT);
	munlockall();
	need_free(p + BLOCK);
}

Test(fork, lock_is_held_at_each_call)
{
	static void (*const calls[])(unsigned char *) = {
		first_mmap,        first_noreplace, first_mremap,
		first_mremap_onto, first_munmap,    first_mlockall};
	unsigned char *p = map(2 * BLOCK);

	cr_assert_eq(munmap(p + BLOCK, BLOCK), 0);
	cr_assert(shim_pool_lock());
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		pid_t pid = child();

		if (pid == 0) {
			calls[i](p);
			need_maps();
			_exit(0);
		}
		await(pid);
	}
	shim_pool_unlock();
	parent_goes_on(p);
}

Test(fork, children_of_that_child)
{
	unsigned char *p = map(BLOCK), *q = map(BLOCK);
	pid_t pid;

	cr_assert_eq(munmap(q, BLOCK), 0);
	cr_assert(shim_pool_lock());
	pid = child();
	if (pid == 0) {
		/* Where the range was is somebody else's in the next generation. */
		NEED(mmap(q, BLOCK, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == q);
		memset(q, 3, BLOCK);
		pid = fork();
		if (pid == 0) {
			need_maps();
			need_bytes(q, 3, BLOCK);
			need_changes(p);
			_exit(0);
		}
		await(pid);
		need_bytes(q, 3, BLOCK);
		_exit(0);
	}
	await(pid);
	shim_pool_unlock();
	parent_goes_on(p);
}

/* Several threads of a child, of which none knows so far that it is one. */
static void *maps(void *arg)
{
	for (int i = 0; i < 20; i++)
		need_maps();
	return arg;
}

Test(fork, threads_of_that_child)
{
	unsigned char *p = map(BLOCK);
	pid_t pid;

	cr_assert(shim_pool_lock());
	pid = child();
	if (pid == 0) {
		pthread_t threads[4];

		for (int i = 0; i < 4; i++)
			NEED(pthread_create(&threads[i], NULL, maps, NULL) == 0);
		for (int i = 0; i < 4; i++)
			NEED(pthread_join(threads[i], NULL) == 0);
		need_changes(p);
		_exit(0);
	}
	await(pid);
	shim_pool_unlock();
	parent_goes_on(p);
}

/* Another thread has taken the access from a page, and not yet written that down:
 * whoever gets these pages next must be able to write to them. */
Test(fork, extent_is_busy)
{
	unsigned char *p = map(BLOCK), *half = map(BLOCK);
	uint64_t w = shim_extent_enter(page_of(p));
	uint64_t v = shim_extent_enter(page_of(half));
	pid_t pid;

	cr_assert(w != 0 && v != 0);
	cr_assert_eq(raw_mprotect((uintptr_t)half + PAGE, PAGE, PROT_NONE), 0);
	pid = child();
	if (pid == 0) {
		NEED(munmap(half, BLOCK) == 0);
		for (int i = 0; i < 20; i++)
			map(BLOCK);
		need_changes(p);
		need_maps();
		_exit(0);
	}
	await(pid);
	shim_head_set(page_of(p), w);
	shim_head_set(page_of(half), v);
	parent_goes_on(p);
}

Test(fork, extent_is_busy_again)
{
	unsigned char *p = map(BLOCK);
	uint64_t w = shim_extent_enter(page_of(p));
	pid_t pid = child();

	if (pid == 0) {
		/* A thread of the child has it now, of the grandchild none. */
		NEED(shim_extent_enter(page_of(p)) != 0);
		pid = fork();
		if (pid == 0) {
			need_changes(p);
			_exit(0);
		}
		await(pid);
		_exit(0);
	}
	await(pid);
	shim_head_set(page_of(p), w);
	parent_goes_on(p);
}

/* At free pages, which the kernel would map whatever else goes on. */
static void need_fixed(unsigned char *p, size_t bytes)
{
	NEED(is_hole(p) && is_hole(p + bytes - PAGE));
	NEED(mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + PAGE);
	need_bytes(p + PAGE, 0, PAGE);
	memset(p + PAGE, 3, PAGE);
	NEED(mmap(p, bytes, RW, ANON | MAP_FIXED, -1, 0) == p);
	need_bytes(p, 0, bytes);
	memset(p, 3, bytes);
	NEED(munmap(p, bytes) == 0 && is_hole(p));
}

/* Another thread has just taken an extent out of its slot, or is about to put it there:
 * the child has no such thread. */
Test(fork, extent_is_out_of_its_slot)
{
	unsigned char *p = map(BLOCK);
	struct shim_slots *s = NULL;
	uint32_t pfn = page_of(p);
	pid_t pid;

	cr_assert_eq(munmap(p, BLOCK), 0);
	for (unsigned i = 0; i < SHIM_SHARDS && !s; i++)
		if (shim_slots_take(&shim_slots[6][i]) == pfn)
			s = &shim_slots[6][i];
	cr_assert(s);
	pid = child();
	if (pid == 0) {
		need_fixed(p, BLOCK);
		need_maps();
		_exit(0);
	}
	await(pid);
	cr_assert(shim_slots_put(s, 6, pfn));
	cr_assert_eq(munmap(map(BLOCK), BLOCK), 0);
}

/* The same with a block out of the pool; of a grandchild, too. */
Test(fork, block_is_out_of_the_pool)
{
	unsigned char *p = map(BLOCK);
	uint32_t pfn = shim_pool_take(SHIM_BASE, 6);
	uint32_t unit = shim_pool_take(SHIM_HUGE, SHIM_UNIT_ORDER);
	pid_t pid;

	cr_assert(pfn != PCPI_NO_PFN && unit != PCPI_NO_PFN);
	pid = child();
	if (pid == 0) {
		uint32_t later = shim_pool_take(SHIM_BASE, 6);

		need_fixed((unsigned char *)shim_at(pfn), BLOCK);
		need_fixed((unsigned char *)shim_at(unit), BLOCK);
		pid = child();
		if (pid == 0) {
			need_fixed((unsigned char *)shim_at(later), BLOCK);
			need_maps();
			_exit(0);
		}
		await(pid);
		/* What is on its way here, is so still. */
		NEED(mmap((void *)shim_at(later), PAGE, RW, ANON | MAP_FIXED,
			  -1, 0) == MAP_FAILED);
		_exit(0);
	}
	await(pid);
	shim_pool_give(pfn, 6, 0);
	shim_pool_give(unit, SHIM_UNIT_ORDER, 0);
	parent_goes_on(p);
}

/* A thread of the child has just taken what was in a slot at the fork: it is on its way,
 * not lost. */
Test(fork, slot_of_the_parent_is_taken)
{
	unsigned char *p = map(BLOCK);
	uint32_t pfn = page_of(p);
	pid_t pid;

	cr_assert_eq(munmap(p, BLOCK), 0);
	pid = child();
	if (pid == 0) {
		struct shim_slots *s = NULL;

		shim_fork_check();
		for (unsigned i = 0; i < SHIM_SHARDS && !s; i++)
			if (shim_slots_take(&shim_slots[6][i]) == pfn)
				s = &shim_slots[6][i];
		NEED(s);
		NEED(mmap(p, PAGE, RW, ANON | MAP_FIXED, -1, 0) == MAP_FAILED);
		NEED(shim_slots_put(s, 6, pfn));
		/* Where it is free, it can be had. */
		need_fixed(p, BLOCK);
		need_maps();
		_exit(0);
	}
	await(pid);
	cr_assert_eq(munmap(map(BLOCK), BLOCK), 0);
}

/* Another thread was giving all that is free back for good. */
static void dissolve_begin(void)
{
	shim_pool.state = POOL_GONE;
	shim_pool.dissolving = 1;
	shim_range_forget();
}

static void fork_while_dissolving(bool locked)
{
	unsigned char *p = map(BLOCK), *freed = map(BLOCK), *first = map(BLOCK);
	pid_t pid;

	/* What was unmapped is somebody else's. */
	cr_assert_eq(munmap(freed, BLOCK), 0);
	cr_assert_eq(munmap(first, BLOCK), 0);
	if (first > freed) {
		unsigned char *other = first;

		first = freed;
		freed = other;
	}
	if (locked)
		cr_assert(shim_pool_lock());
	dissolve_begin();
	shim_pool.lost_at = page_of(first) + BLOCK / PAGE;
	raw_munmap((uintptr_t)first, BLOCK);
	cr_assert_eq(mmap(first, BLOCK, RW, ANON | MAP_FIXED, -1, 0), first);
	memset(first, 5, BLOCK);
	pid = child();
	if (pid == 0) {
		need_free(freed);
		need_free(freed + BLOCK - PAGE);
		need_bytes(first, 5, BLOCK);
		need_changes(p);
		need_maps();
		shim_pool_dissolve(true);
		need_bytes(first, 5, BLOCK);
		_exit(0);
	}
	await(pid);
}

Test(fork, range_is_dissolved)
{
	fork_while_dissolving(false);
}

Test(fork, range_is_dissolved_under_the_lock)
{
	fork_while_dissolving(true);
}

Test(fork, nothing_is_held)
{
	unsigned char *p = map(BLOCK);
	pid_t pid = child();

	if (pid == 0) {
		need_changes(p);
		need_maps();
		/* It is served as its parent is. */
		NEED(shim_inside((uintptr_t)mmap(NULL, PAGE, RW, ANON, -1, 0)));
		_exit(0);
	}
	await(pid);
	parent_goes_on(p);
}
