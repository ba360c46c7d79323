/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * catalog.h - the names of workloads and allocators, and what they mean.
 *
 * Owns: the two tables that --list prints and the command line is checked
 * against.  Pure.
 */
#ifndef BENCH_CATALOG_H
#define BENCH_CATALOG_H

#include <stdbool.h>

enum bench_workload {
	BENCH_PAIR,
	BENCH_BULK8,
	BENCH_BULK32,
	BENCH_BULK64,
	BENCH_BURST64,
	BENCH_BURST4096,
	BENCH_CHURN,
	BENCH_LATENCY_PAIR,
	BENCH_LATENCY_CHURN,
	BENCH_REMOTE,
	BENCH_REMOTE_TOUCH,
	BENCH_PARALLEL,
	BENCH_COALESCE,
	BENCH_FRAGMENT,
	BENCH_START,
	BENCH_START_HEAP,
	BENCH_GROW,
	BENCH_TRIM,
	BENCH_LATENCY_REMOTE2,
	BENCH_LATENCY_MIXED2,
	BENCH_LATENCY_REMOTE8,
	BENCH_LATENCY_MIXED8,
	BENCH_THREADS_SHORT,
	BENCH_THREADS,
	BENCH_FAULT4K,
	BENCH_FAULT64K,
	BENCH_FAULT2M,
	BENCH_FAULT128M,
	BENCH_MAP4K,
	BENCH_MAP2M,
	BENCH_MAP128M,
	BENCH_DONTNEED,
	BENCH_WORKLOADS
};

struct bench_workload_info {
	const char *name;
	const char *unit;
	const char *what;
	unsigned threads;
	unsigned least_heap_mib; /* what it holds at once, and room */
	unsigned most_reps;      /* of those asked for, where one is long; 0: all */
	bool more_is_better;     /* a count or a share, not a time */
	const char *second;      /* JSON name of its second figure, or NULL */
};

enum { BENCH_ALLOCATORS = 23 };

struct bench_allocator_info {
	const char *name;
	const char *what;
	const char *needs; /* library that may be absent, or NULL */
	const char *package; /* of Debian's that brings it, or NULL */
	const char *worker; /* the program of another allocator, or NULL */
	const char *settings; /* of that one's environment: "A=B C=D" */
	bool mappings; /* does BENCH_FAULT4K and those behind it, and nothing else */
};

extern const struct bench_workload_info bench_workloads[BENCH_WORKLOADS];
extern const struct bench_allocator_info bench_allocators[BENCH_ALLOCATORS];

/* Index of a name, or -1. */
int bench_workload_find(const char *name);
int bench_allocator_find(const char *name);

/* Whether single calls are timed (work_latency.c). */
static inline bool bench_is_latency(unsigned workload)
{
	return workload == BENCH_LATENCY_PAIR ||
	       workload == BENCH_LATENCY_CHURN ||
	       (workload >= BENCH_LATENCY_REMOTE2 &&
		workload <= BENCH_LATENCY_MIXED8);
}

/* Whether the workload hands blocks from one thread to another. */
static inline bool bench_is_remote(unsigned workload)
{
	return workload == BENCH_REMOTE || workload == BENCH_REMOTE_TOUCH;
}

/* Whether the workload is about mmap() and its kin, not about blocks. */
static inline bool bench_is_mapping(unsigned workload)
{
	return workload >= BENCH_FAULT4K;
}

#endif
