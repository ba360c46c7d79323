/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vm.h - what the programs of tests/vm share: where a page really is, as the kernel
 * says by two system calls; threads on processors of a node; and the rows of the
 * table in docs/numa.md.
 *
 * A row is printed from what was counted, so the table says what was seen:
 *
 *     | what was asked for | 64 of 64 on node 2 |
 */
#ifndef VM_H
#define VM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <pcpalloc/stats.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/expect.h"

#define MIB ((size_t)1 << 20)
#define VM_NODES 8u

/* As CHECK() for two numbers, which it prints. */
#define CHECK_EQ(a, b)                                                         \
	do {                                                                   \
		long long a_ = (long long)(a), b_ = (long long)(b);            \
		if (a_ != b_) {                                                \
			printf("%s:%d: %s is %lld, %s is %lld\n", __FILE__,    \
			       __LINE__, #a, a_, #b, b_);                      \
			exit(1);                                               \
		}                                                              \
	} while (0)

/* The node that a touched page lies on. */
static inline int vm_node_of(const void *page)
{
	void *pages[1] = {(void *)(uintptr_t)page};
	int node = -1, again = -1;

	CHECK(syscall(SYS_move_pages, 0, 1ul, pages, NULL, &node, 0) == 0);
	CHECK(syscall(SYS_get_mempolicy, &again, NULL, 0ul, page,
		      MPOL_F_NODE | MPOL_F_ADDR) == 0);
	CHECK_EQ(node, again);
	return node;
}

/* Has the calling thread run on the n-th processor of a node. */
static inline void vm_run_on(unsigned node, unsigned n)
{
	char path[64], list[64] = "";
	unsigned first = 0, cpu, at;
	cpu_set_t set;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpulist",
		 node);
	f = fopen(path, "r");
	CHECK(f && fgets(list, sizeof(list), f));
	fclose(f);
	CHECK(sscanf(list, "%u", &first) == 1); /* "2-3" */
	CPU_ZERO(&set);
	CPU_SET(first + n, &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
	CHECK(getcpu(&cpu, &at) == 0 && cpu == first + n && at == node);
}

struct vm_thread {
	unsigned node, n;
	void (*fn)(unsigned node);
};

static inline void *vm_thread_main(void *arg)
{
	struct vm_thread *t = arg;

	vm_run_on(t->node, t->n);
	t->fn(t->node);
	return NULL;
}

/* Runs fn(node) in a thread of its own there, to its end. */
static inline void vm_thread_on(unsigned node, unsigned n,
				void (*fn)(unsigned node))
{
	struct vm_thread t = {node, n, fn};
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, vm_thread_main, &t) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* How many of the blocks lie on each node; each must be whole on one, and be what
 * the library says. */
struct vm_where {
	size_t on[VM_NODES], all;
};

static inline struct vm_where vm_where(struct pcpa_heap *heap, void **blocks,
				       size_t n)
{
	struct vm_where w = {{0}, n};

	for (size_t i = 0; i < n; i++) {
		int node = vm_node_of(blocks[i]);
		size_t bytes = (size_t)4096
			       << pcpa_block_order(heap, blocks[i]);

		CHECK(node >= 0 && node < (int)VM_NODES);
		CHECK_EQ(vm_node_of((char *)blocks[i] + bytes - 1), node);
		CHECK_EQ(pcpa_block_node(heap, blocks[i]), node);
		w.on[node]++;
	}
	return w;
}

/* A row of the table, from what was counted. */
__attribute__((format(printf, 2, 3))) static inline void
vm_row(const struct vm_where *w, const char *asked, ...)
{
	const char *comma = "";
	va_list args;

	va_start(args, asked);
	printf("| ");
	vprintf(asked, args);
	printf(" | ");
	va_end(args);
	for (unsigned node = 0; node < VM_NODES; node++) {
		if (w->on[node] == 0)
			continue;
		printf("%s%zu of %zu on node %u", comma, w->on[node], w->all,
		       node);
		comma = ", ";
	}
	printf(" |\n");
}

static inline struct pcpa_stats vm_stats(struct pcpa_heap *heap, int node)
{
	struct pcpa_stats stats = PCPA_STATS_INIT;

	CHECK_EQ(pcpa_stats_read(heap, node, &stats), 0);
	return stats;
}

/* The number behind a word of the text of a node in the statistics (PCPA_STATS_
 * ZONEINFO), for instance "high_min:"; its first cache counts. */
static inline uint64_t vm_text(struct pcpa_heap *heap, unsigned node,
			       const char *word)
{
	static char text[64 << 10];
	char head[16];
	uint64_t number = 0;
	const char *at;

	CHECK(pcpa_stats_format(heap, PCPA_STATS_ZONEINFO, text, sizeof(text)) <
	      (int)sizeof(text));
	snprintf(head, sizeof(head), "Node %u,", node);
	at = strstr(text, head);
	CHECK(at && (at = strstr(at, word)));
	CHECK(sscanf(at + strlen(word), "%" SCNu64, &number) == 1);
	return number;
}

/* Pages of a node in all threads' caches and outboxes. */
static inline uint64_t vm_cached(struct pcpa_heap *heap, unsigned node)
{
	return vm_stats(heap, (int)node).cached_pages;
}

/* A heap of fixed size on each node of the list, or all. */
static inline struct pcpa_heap *vm_heap(size_t bytes, const char *nodes,
					unsigned flags)
{
	struct pcpa_heap_options options = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;

	options.initial_bytes = bytes;
	options.nodes = nodes;
	options.flags = flags;
	CHECK_EQ(pcpa_heap_create(&options, &heap), 0);
	return heap;
}

#endif
