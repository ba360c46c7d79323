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
#include <stdint.h>

#include "../support/children.h"
#include "../support/heap_new.h"
#include "../support/hugepool.h"

#define MIB ((size_t)1 << 20)
#define PAGE_BYTES POOL_PAGE_BYTES
#define POOL_PAGES 32u
#define HALF (POOL_PAGES / 2 * PAGE_BYTES)
#define BLOCKS_MAX 4096u
#define CHILD_SECONDS 30u

static bool has_pool;
static void *blocks[BLOCKS_MAX];
static size_t n, words;

static struct pcpa_heap *make(size_t bytes, unsigned flags)
{
	struct pcpa_heap *heap;

	CHECK(heap_new(NULL, bytes, 0, flags | PCPA_HEAP_FIXED, &heap) == 0);
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
	CHECK(n > 0);
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
			CHECK(((uint64_t *)blocks[i])[w] == mark + i);
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

	CHECK(pcpa_for_each_arena(heap, kind_add, kinds) == 0);
	printf("%zu MiB of hugetlb pages\n", kinds[PCPA_BACKING_HUGETLB] / MIB);
	CHECK(kinds[PCPA_BACKING_HUGETLB] <= POOL_PAGES * PAGE_BYTES);
	CHECK(kinds[0] + kinds[1] + kinds[2] >= want);
	take_all(heap);
	CHECK(n * words * sizeof(uint64_t) >= want);
	write_all(1);
	expect_all(1);
	free_all(heap);
	CHECK(pcpa_heap_destroy(heap) == 0);
}

static void child_plain(struct pcpa_heap *heap)
{
	errno = 0;
	CHECK(!pcpa_alloc(heap, 0, 0) && errno == ENODEV);
	pcpa_free(heap, blocks[0]);
	CHECK(pcpa_thread_flush(heap) == -ENODEV);
	CHECK(pcpa_heap_trim(heap, 0) == 0);
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
	int step[2];
	char byte;
	pid_t pid;

	CHECK(pipe(step) == 0);
	take_all(heap);
	write_all(1);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		close(step[1]);
		CHECK(!parent_first || read(step[0], &byte, 1) == 1);
		child(heap);
		_exit(0);
	}
	if (parent_first) {
		write_all(2);
		CHECK(write(step[1], "", 1) == 1);
	}
	CHECK(child_status(pid) == 0);
	expect_all(parent_first ? 2 : 1);
	write_all(5);
	expect_all(5);
	free_all(heap);
	CHECK(pcpa_heap_destroy(heap) == 0);
	close(step[0]);
	close(step[1]);
}

int main(void)
{
	has_pool = pool_take(POOL_PAGES);
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
