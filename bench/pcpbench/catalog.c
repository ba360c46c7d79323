/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * catalog.c - the tables of workloads and allocators.
 *
 * The order of the workloads is the order of `all`: those of one thread first,
 * while the allocators' processes still have one, and those of eight last.
 */
#include "catalog.h"

#include <string.h>

const struct bench_workload_info bench_workloads[BENCH_WORKLOADS] = {
	[BENCH_PAIR] = {"pair", "ns/pair",
			"one block taken and given back, hot", 1, 16, false},
	[BENCH_BULK8] = {"bulk8", "ns/page",
			 "8 taken by one call, 8 given back by one", 1, 16,
			 false},
	[BENCH_BULK32] = {"bulk32", "ns/page",
			  "32 taken by one call, 32 given back by one", 1, 16,
			  false},
	[BENCH_BULK64] = {"bulk64", "ns/page",
			  "64 taken by one call, 64 given back by one", 1, 16,
			  false},
	[BENCH_BURST64] = {"burst64", "ns/pair",
			   "64 taken one by one, then given back", 1, 16, false},
	[BENCH_BURST4096] = {"burst4096", "ns/pair",
			     "4096 taken one by one, then given back", 1, 32,
			     false},
	[BENCH_CHURN] = {"churn", "ns/pair",
			 "orders 0-3, 2048 live, random replacement", 1, 128,
			 false},
	[BENCH_LATENCY_PAIR] = {"latency-pair", "ns/call",
				"each call timed: one block taken and given back",
				1, 16, false},
	[BENCH_LATENCY_CHURN] = {"latency-churn", "ns/call",
				 "each call timed: churn", 1, 128, false},
	[BENCH_REMOTE] = {"remote", "ns/block",
			  "taken on one CPU, freed on another, bursts of 32", 2,
			  16, false},
	[BENCH_REMOTE_TOUCH] = {"remote-touch", "ns/block",
				"the same, 64 bytes written and read", 2, 16,
				false},
	[BENCH_PARALLEL] = {"parallel", "ns/pair",
			    "two threads, each its own bursts of 64", 2, 16,
			    false},
	[BENCH_COALESCE] = {"coalesce", "blocks",
			    "64 MiB freed at random: order-3 blocks back", 1,
			    16, true},
	[BENCH_LATENCY_REMOTE2] = {"latency-remote2", "ns/call",
				   "each call timed: one takes, another frees",
				   2, 64, false},
	[BENCH_LATENCY_MIXED2] = {"latency-mixed2", "ns/call",
				  "each call timed: orders 0-3, half freed by "
				  "the next thread",
				  2, 128, false},
	[BENCH_LATENCY_REMOTE8] = {"latency-remote8", "ns/call",
				   "the same as remote2 with 8 threads", 8, 64,
				   false},
	[BENCH_LATENCY_MIXED8] = {"latency-mixed8", "ns/call",
				  "the same as mixed2 with 8 threads", 8, 256,
				  false},
};

const struct bench_allocator_info bench_allocators[BENCH_ALLOCATORS] = {
	{"pcpalloc", "this library, shared", NULL},
	{"pcpalloc-static", "this library, static", NULL},
	{"pcpalloc-sized", "this library, shared, frees told the order", NULL},
	{"pcpalloc-inline", "this library, shared, hits inlined, frees told the order", NULL},
	{"calls", "two empty calls into a shared library: the floor", NULL},
	{"limit", "array stack inlined; two rings where threads differ", NULL},
	{"tcmalloc", "malloc and free (gperftools, minimal)",
	 "libtcmalloc_minimal"},
	{"jemalloc", "malloc, aligned_alloc from order 2, and free",
	 "libjemalloc"},
	{"mimalloc", "malloc and free", "libmimalloc"},
	{"glibc", "aligned_alloc and free", NULL},
	{"kernel", "the list buddy behind one lock", NULL},
	{"mmap", "mmap, populated, and munmap", NULL},
};

int bench_workload_find(const char *name)
{
	for (int i = 0; i < BENCH_WORKLOADS; i++)
		if (strcmp(bench_workloads[i].name, name) == 0)
			return i;
	return -1;
}

int bench_allocator_find(const char *name)
{
	for (int i = 0; i < BENCH_ALLOCATORS; i++)
		if (strcmp(bench_allocators[i].name, name) == 0)
			return i;
	return -1;
}
