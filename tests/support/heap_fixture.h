/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_fixture.h - heaps, statistics and maps for the suites that see the
 * library from outside.
 */
#ifndef HEAP_FIXTURE_H
#define HEAP_FIXTURE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <pcpalloc/stats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap_new.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

/* A value that no call sets. */
#define ERRNO_MARK 4711

/* The statement must leave errno alone. */
#define KEEPS_ERRNO(statement)                                                 \
	do {                                                                   \
		errno = ERRNO_MARK;                                            \
		statement;                                                     \
		cr_expect_eq(errno, ERRNO_MARK, "%s: errno %d", #statement,    \
			     errno);                                           \
	} while (0)

static inline struct pcpa_heap *heap_on(const char *nodes, size_t initial,
					size_t max, unsigned flags)
{
	struct pcpa_heap *heap = NULL;
	int err = heap_new(nodes, initial, max, flags, &heap);

	cr_assert_eq(err, 0, "create: %d", err);
	return heap;
}

static inline struct pcpa_heap *heap_make(size_t initial, size_t max,
					  unsigned flags)
{
	return heap_on(NULL, initial, max, flags);
}

static inline struct pcpa_heap *heap_fixed(size_t bytes, unsigned flags)
{
	return heap_make(bytes, 0, flags | PCPA_HEAP_FIXED);
}

static inline struct pcpa_stats stats_of(struct pcpa_heap *heap, int node)
{
	struct pcpa_stats s = PCPA_STATS_INIT;
	int err = pcpa_stats_read(heap, node, &s);

	cr_assert_eq(err, 0, "stats of node %d: %d", node, err);
	return s;
}

/* The callers rest: every page is in one state. */
static inline struct pcpa_stats stats_summed(struct pcpa_heap *heap)
{
	struct pcpa_stats s = stats_of(heap, -1);

	cr_expect_eq(s.managed_pages, s.free_pages + s.cached_pages +
					      s.depot_pages + s.used_pages);
	cr_expect_eq(s.used_blocks, s.alloc_total - s.free_total);
	return s;
}

static inline void heap_end(struct pcpa_heap *heap)
{
	struct pcpa_stats s = stats_summed(heap);

	cr_expect_eq(s.used_pages, 0);
	cr_expect_eq(s.used_blocks, 0);
	cr_assert_eq(pcpa_heap_destroy(heap), 0);
}

/* Everything back in the buddy: no page may be missing. */
static inline void expect_all_free(struct pcpa_heap *heap)
{
	struct pcpa_stats s;

	cr_assert_eq(pcpa_heap_drain(heap), 0);
	s = stats_summed(heap);
	cr_expect_eq(s.cached_pages, 0);
	cr_expect_eq(s.depot_pages, 0);
	cr_expect_eq(s.free_pages, s.managed_pages);
}

/* Allocates until it fails, n at most; blocks may be NULL for the count. */
static inline size_t alloc_all(struct pcpa_heap *heap, unsigned order,
			       unsigned flags, void **blocks, size_t n)
{
	size_t got = 0;

	while (got < n && (blocks[got] = pcpa_alloc(heap, order, flags)))
		got++;
	return got;
}

static inline void free_all(struct pcpa_heap *heap, void **blocks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pcpa_free(heap, blocks[i]);
}

/* Areas of the process that the library has named or reserved, in KiB: all
 * but the C library's heap and the stack, which grow as a test works. */
static inline unsigned long maps_kib(void)
{
	char line[512];
	unsigned long from, to, sum = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	cr_assert(f);
	while (fgets(line, sizeof(line), f)) {
		if (strstr(line, "[heap]") || strstr(line, "[stack]"))
			continue;
		if (sscanf(line, "%lx-%lx", &from, &to) == 2)
			sum += (to - from) >> 10;
	}
	fclose(f);
	return sum;
}

static inline void thread_run(void *(*fn)(void *), void *arg)
{
	pthread_t t;

	cr_assert_eq(pthread_create(&t, NULL, fn, arg), 0);
	cr_assert_eq(pthread_join(t, NULL), 0);
}

static inline int compare_pointers(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;

	return (x > y) - (x < y);
}

#endif
