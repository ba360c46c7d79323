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

/* Why each setting: README.md, "Tuned". */
const struct bench_allocator_info bench_allocators[BENCH_ALLOCATORS] = {
	{.name = "pcpalloc", .what = "this library, shared"},
	{.name = "pcpalloc-static", .what = "this library, static"},
	{.name = "pcpalloc-sized",
	 .what = "this library, shared, frees told the order"},
	{.name = "pcpalloc-inline",
	 .what = "this library, shared, hits inlined, frees told the order"},
	{.name = "calls",
	 .what = "two empty calls into a shared library: the floor"},
	{.name = "limit",
	 .what = "array stack inlined; two rings where threads differ"},
	{.name = "mempool-ring",
	 .what = "rte_mempool, ring_mp_mc, cache of 512",
	 .needs = "libdpdk",
	 .package = "libdpdk-dev"},
	{.name = "mempool-stack",
	 .what = "rte_mempool, stack, cache of 512",
	 .needs = "libdpdk",
	 .package = "libdpdk-dev"},
	{.name = "mempool-ring-nocache",
	 .what = "rte_mempool, ring_mp_mc, no cache",
	 .needs = "libdpdk",
	 .package = "libdpdk-dev"},
	{.name = "mempool-stack-nocache",
	 .what = "rte_mempool, stack, no cache",
	 .needs = "libdpdk",
	 .package = "libdpdk-dev"},
	{.name = "tcmalloc",
	 .what = "malloc and free (gperftools, minimal)",
	 .needs = "libtcmalloc_minimal",
	 .package = "libtcmalloc-minimal4"},
	{.name = "tcmalloc-tuned",
	 .what = "the same, larger thread caches",
	 .needs = "libtcmalloc_minimal",
	 .package = "libtcmalloc-minimal4",
	 .worker = "tcmalloc",
	 .settings = "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=1073741824 "
		     "TCMALLOC_RELEASE_RATE=0"},
	{.name = "jemalloc",
	 .what = "malloc, aligned_alloc from order 2, and free",
	 .needs = "libjemalloc",
	 .package = "libjemalloc2"},
	{.name = "jemalloc-tuned",
	 .what = "the same, larger thread caches, no purging",
	 .needs = "libjemalloc",
	 .package = "libjemalloc2",
	 .worker = "jemalloc",
	 .settings = "MALLOC_CONF=metadata_thp:auto,dirty_decay_ms:-1,"
		     "muzzy_decay_ms:-1,tcache_nslots_small_min:512,"
		     "tcache_nslots_small_max:512,tcache_nslots_large:512"},
	{.name = "mimalloc",
	 .what = "malloc and free",
	 .needs = "libmimalloc",
	 .package = "libmimalloc2.0"},
	{.name = "mimalloc-tuned",
	 .what = "the same, large pages, no purging",
	 .needs = "libmimalloc",
	 .package = "libmimalloc2.0",
	 .worker = "mimalloc",
	 .settings = "MIMALLOC_LARGE_OS_PAGES=1 MIMALLOC_EAGER_COMMIT_DELAY=0 "
		     "MIMALLOC_ALLOW_DECOMMIT=0 "
		     "MIMALLOC_ALLOW_LARGE_OS_PAGES=1 MIMALLOC_PURGE_DELAY=-1"},
	{.name = "glibc", .what = "aligned_alloc and free"},
	{.name = "glibc-tuned",
	 .what = "the same, memory is kept",
	 .worker = "glibc",
	 .settings = "GLIBC_TUNABLES=glibc.malloc.trim_threshold=17179869184:"
		     "glibc.malloc.top_pad=67108864:"
		     "glibc.malloc.mmap_threshold=33554432:"
		     "glibc.malloc.hugetlb=1"},
	{.name = "kernel", .what = "the list buddy behind one lock"},
	{.name = "mmap", .what = "mmap, populated, and munmap"},
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
