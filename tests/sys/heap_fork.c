/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_fork.c - forks while most of the huge pages are in use: nobody gets a
 * signal, and the parent's pages are not taken by the child.
 *
 *   pool        more asked of a hugetlb pool than it has, all of it written
 *   plain       a heap of half the pool, all blocks written before; after the
 *               fork the parent writes all again while the child calls the heap,
 *               which says so; and the other way round, the child first
 *   cow         the same with a copy-on-write heap, where the child reads what was
 *               there, writes all, and both go on seeing their own
 *
 * As root the pool of 2 MiB pages is set for the time, and back afterwards.  Where
 * that can't be, "pool" is left out and the others run on what there is.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pcpalloc/pcpalloc.h>
#include <pcpalloc/stats.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define PAGE_BYTES (2 * MIB)
#define POOL_PAGES 32u
#define HALF (POOL_PAGES / 2 * PAGE_BYTES)
#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define BLOCKS_MAX 4096u
#define CHILD_SECONDS 30u

static long pool_before;
static bool has_pool;
static void *blocks[BLOCKS_MAX];
static size_t n, words;

#define EXPECT(cond)                                                           \
	do {                                                                   \
		if (!(cond)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,     \
				#cond);                                        \
			exit(1);                                               \
		}                                                              \
	} while (0)

static long pool_file(const char *name)
{
	char path[128];
	long x = -1;
	FILE *f;

	snprintf(path, sizeof(path), POOL "%s", name);
	f = fopen(path, "r");
	if (f && fscanf(f, "%ld", &x) != 1)
		x = -1;
	if (f)
		fclose(f);
	return x;
}

static void pool_set(long pages)
{
	FILE *f = fopen(POOL "nr_hugepages", "w");

	if (!f)
		return;
	fprintf(f, "%ld", pages);
	fclose(f);
}

static pid_t owner;

static void restore(void)
{
	if (has_pool && getpid() == owner)
		pool_set(pool_before);
}

static void on_signal(int sig)
{
	restore();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* Only a pool that nobody uses. */
static void pool_take(void)
{
	owner = getpid();
	pool_before = pool_file("nr_hugepages");
	if (geteuid() != 0 || pool_before != 0)
		return;
	has_pool = true;
	atexit(restore);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	signal(SIGBUS, on_signal);
	signal(SIGSEGV, on_signal);
	pool_set(POOL_PAGES);
	if (pool_file("free_hugepages") != POOL_PAGES) {
		restore();
		has_pool = false;
	}
}

static struct pcpa_heap *make(size_t bytes, unsigned flags)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	o.initial_bytes = bytes;
	o.flags = flags | PCPA_HEAP_FIXED;
	o.verbosity = 0;
	EXPECT(pcpa_heap_create(&o, &heap) == 0);
	return heap;
}

/* ---- Blocks -------------------------------------------------------------------- */

static void take_all(struct pcpa_heap *heap)
{
	unsigned order = pcpa_heap_max_order(heap);

	words = (pcpa_heap_page_bytes(heap) << order) / sizeof(uint64_t);
	for (n = 0; n < BLOCKS_MAX; n++)
		if (!(blocks[n] = pcpa_alloc(heap, order, 0)))
			break;
	EXPECT(n > 0);
}

/* One word of each base page, or thereabouts. */
static void write_all(uint64_t mark)
{
	for (size_t i = 0; i < n; i++)
		for (size_t w = 0; w < words; w += 256)
			((uint64_t *)blocks[i])[w] = mark + i;
}

static void expect_all(uint64_t mark)
{
	for (size_t i = 0; i < n; i++)
		for (size_t w = 0; w < words; w += 256)
			EXPECT(((uint64_t *)blocks[i])[w] == mark + i);
}

static void free_all(struct pcpa_heap *heap)
{
	for (size_t i = 0; i < n; i++)
		pcpa_free(heap, blocks[i]);
}

/* ---- Cases ---------------------------------------------------------------------- */

static int kind_add(const struct pcpa_arena_info *info, void *arg)
{
	((size_t *)arg)[info->backing] += info->bytes;
	return 0;
}

/* Others' heaps may take pages of it at the same time. */
static void pool(void)
{
	size_t want = POOL_PAGES * PAGE_BYTES / 512 * 600, kinds[3] = { 0, 0, 0 };
	struct pcpa_heap *heap = make(want, 0);

	EXPECT(pcpa_for_each_arena(heap, kind_add, kinds) == 0);
	printf("%zu MiB of hugetlb pages\n", kinds[PCPA_BACKING_HUGETLB] / MIB);
	EXPECT(kinds[PCPA_BACKING_HUGETLB] <= POOL_PAGES * PAGE_BYTES);
	EXPECT(kinds[0] + kinds[1] + kinds[2] >= want);
	take_all(heap);
	EXPECT(n * words * sizeof(uint64_t) >= want);
	write_all(1);
	expect_all(1);
	free_all(heap);
	EXPECT(pcpa_heap_destroy(heap) == 0);
}

static void child_plain(struct pcpa_heap *heap)
{
	errno = 0;
	EXPECT(!pcpa_alloc(heap, 0, 0) && errno == ENODEV);
	pcpa_free(heap, blocks[0]);
	EXPECT(pcpa_thread_flush(heap) == -ENODEV);
	EXPECT(pcpa_heap_trim(heap, 0) == 0);
}

static void child_cow(struct pcpa_heap *heap)
{
	expect_all(1);
	write_all(3);
	expect_all(3);
	free_all(heap);
	take_all(heap);
	write_all(4);
	expect_all(4);
}

/* Who writes first: the other waits for it. */
static void forked(unsigned flags, void (*child)(struct pcpa_heap *heap),
		   bool parent_first)
{
	struct pcpa_heap *heap = make(HALF, flags);
	int step[2], status;
	char byte;
	pid_t pid;

	EXPECT(pipe(step) == 0);
	take_all(heap);
	write_all(1);
	pid = fork();
	EXPECT(pid >= 0);
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		close(step[1]);
		EXPECT(!parent_first || read(step[0], &byte, 1) == 1);
		child(heap);
		_exit(0);
	}
	if (parent_first) {
		write_all(2);
		EXPECT(write(step[1], "", 1) == 1);
	}
	EXPECT(waitpid(pid, &status, 0) == pid);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_all(parent_first ? 2 : 1);
	write_all(5);
	expect_all(5);
	free_all(heap);
	EXPECT(pcpa_heap_destroy(heap) == 0);
	close(step[0]);
	close(step[1]);
}

int main(void)
{
	pool_take();
	printf("pool: %s\n", has_pool ? "set" : "left out");
	fflush(stdout);
	if (has_pool)
		pool();
	forked(0, child_plain, true);
	forked(0, child_plain, false);
	/* The child must read what was there before the parent wrote. */
	forked(PCPA_HEAP_COW, child_cow, true);
	forked(PCPA_HEAP_COW, child_cow, false);
	return 0;
}
