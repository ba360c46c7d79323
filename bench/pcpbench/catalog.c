/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * catalog.c - the tables of workloads and allocators.
 *
 * The order of the workloads is the order of `all`: those of one thread first,
 * while the allocators' processes still have one, and those of many last.
 */
#include "catalog.h"

#include <string.h>

const struct bench_workload_info bench_workloads[BENCH_WORKLOADS] = {
	[BENCH_PAIR] = {
		.name = "pair",
		.unit = "ns/pair",
		.what = "one block taken and given back, hot",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_BULK8] = {
		.name = "bulk8",
		.unit = "ns/page",
		.what = "8 taken by one call, 8 given back by one",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_BULK32] = {
		.name = "bulk32",
		.unit = "ns/page",
		.what = "32 taken by one call, 32 given back by one",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_BULK64] = {
		.name = "bulk64",
		.unit = "ns/page",
		.what = "64 taken by one call, 64 given back by one",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_BURST64] = {
		.name = "burst64",
		.unit = "ns/pair",
		.what = "64 taken one by one, then given back",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_BURST4096] = {
		.name = "burst4096",
		.unit = "ns/pair",
		.what = "4096 taken one by one, then given back",
		.threads = 1,
		.least_heap_mib = 32,
	},
	[BENCH_CHURN] = {
		.name = "churn",
		.unit = "ns/pair",
		.what = "orders 0-3, 2048 live, random replacement",
		.threads = 1,
		.least_heap_mib = 128,
	},
	[BENCH_LATENCY_PAIR] = {
		.name = "latency-pair",
		.unit = "ns/call",
		.what = "each call timed: one block taken and given back",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_LATENCY_CHURN] = {
		.name = "latency-churn",
		.unit = "ns/call",
		.what = "each call timed: churn",
		.threads = 1,
		.least_heap_mib = 128,
	},
	[BENCH_REMOTE] = {
		.name = "remote",
		.unit = "ns/block",
		.what = "taken on one CPU, freed on another, bursts of 32",
		.threads = 2,
		.least_heap_mib = 16,
	},
	[BENCH_REMOTE_TOUCH] = {
		.name = "remote-touch",
		.unit = "ns/block",
		.what = "the same, 64 bytes written and read",
		.threads = 2,
		.least_heap_mib = 16,
	},
	[BENCH_PARALLEL] = {
		.name = "parallel",
		.unit = "ns/pair",
		.what = "two threads, each its own bursts of 64",
		.threads = 2,
		.least_heap_mib = 16,
		.second = "one_thread",
	},
	[BENCH_COALESCE] = {
		.name = "coalesce",
		.unit = "blocks",
		.what = "64 MiB freed at random: order-3 blocks back",
		.threads = 1,
		.least_heap_mib = 16,
		.more_is_better = true,
		.second = "order9_blocks",
	},
	[BENCH_FRAGMENT] = {
		.name = "fragment",
		.unit = "%",
		.what = "a day of mixed lifetimes: share of the free memory that order 3 gets",
		.threads = 1,
		.least_heap_mib = 16,
		.most_reps = 11,
		.more_is_better = true,
		.second = "order9_percent",
	},
	[BENCH_START] = {
		.name = "start",
		.unit = "us",
		.what = "a new process, from main() to the first block, written",
		.threads = 1,
		.least_heap_mib = 16,
		.most_reps = 11,
		.second = "process_us",
	},
	[BENCH_START_HEAP] = {
		.name = "start-heap",
		.unit = "us",
		.what = "one heap more: created, first block taken and written",
		.threads = 1,
		.least_heap_mib = 16,
		.most_reps = 21,
	},
	[BENCH_GROW] = {
		.name = "grow",
		.unit = "ns/page",
		.what = "a new process: 32 MiB more, page by page, each written",
		.threads = 1,
		.least_heap_mib = 16,
		.most_reps = 11,
	},
	[BENCH_TRIM] = {
		.name = "trim",
		.unit = "ns/page",
		.what = "a new process: 32 MiB freed, then given to the system",
		.threads = 1,
		.least_heap_mib = 16,
		.most_reps = 11,
		.second = "released_mib",
	},
	[BENCH_LATENCY_REMOTE2] = {
		.name = "latency-remote2",
		.unit = "ns/call",
		.what = "each call timed: one takes, another frees",
		.threads = 2,
		.least_heap_mib = 64,
	},
	[BENCH_LATENCY_MIXED2] = {
		.name = "latency-mixed2",
		.unit = "ns/call",
		.what = "each call timed: orders 0-3, half freed by the next thread",
		.threads = 2,
		.least_heap_mib = 128,
	},
	[BENCH_LATENCY_REMOTE8] = {
		.name = "latency-remote8",
		.unit = "ns/call",
		.what = "the same as remote2 with 8 threads",
		.threads = 8,
		.least_heap_mib = 64,
	},
	[BENCH_LATENCY_MIXED8] = {
		.name = "latency-mixed8",
		.unit = "ns/call",
		.what = "the same as mixed2 with 8 threads",
		.threads = 8,
		.least_heap_mib = 256,
	},
	[BENCH_THREADS_SHORT] = {
		.name = "threads-short",
		.unit = "us/thread",
		.what = "started, 64 pairs, ended, one after another",
		.threads = 1,
		.least_heap_mib = 16,
		.most_reps = 21,
		.second = "cached_pages_after",
	},
	[BENCH_THREADS] = {
		.name = "threads",
		.unit = "ns/pair",
		.what = "1000 at once: the first 64 pairs of each",
		.threads = 1000,
		.least_heap_mib = 64,
		.most_reps = 7,
		.second = "cached_pages_after",
	},
	[BENCH_FAULT4K] = {
		.name = "fault4k",
		.unit = "ns/round",
		.what = "4 KiB mapped, written, unmapped",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_FAULT64K] = {
		.name = "fault64k",
		.unit = "ns/round",
		.what = "64 KiB mapped, each page written, unmapped",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_FAULT2M] = {
		.name = "fault2m",
		.unit = "ns/round",
		.what = "2 MiB mapped, each page written, unmapped",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_FAULT128M] = {
		.name = "fault128m",
		.unit = "ns/round",
		.what = "128 MiB mapped, each page written, unmapped",
		.threads = 1,
		.least_heap_mib = 16,
		.most_reps = 11,
	},
	[BENCH_MAP4K] = {
		.name = "map4k",
		.unit = "ns/round",
		.what = "4 KiB mapped and unmapped, never touched",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_MAP2M] = {
		.name = "map2m",
		.unit = "ns/round",
		.what = "2 MiB mapped and unmapped, never touched",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_MAP128M] = {
		.name = "map128m",
		.unit = "ns/round",
		.what = "128 MiB mapped and unmapped, never touched",
		.threads = 1,
		.least_heap_mib = 16,
	},
	[BENCH_DONTNEED] = {
		.name = "dontneed",
		.unit = "ns/round",
		.what = "a page of 4 MiB written, MADV_DONTNEED",
		.threads = 1,
		.least_heap_mib = 16,
	},
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
	{.name = "system", .what = "mappings: the kernel's calls", .mappings = true},
	{.name = "system-huge",
	 .what = "the same, MADV_HUGEPAGE from 2 MiB",
	 .worker = "system",
	 .settings = "PCPBENCH_HUGE=1",
	 .mappings = true},
	{.name = "preload",
	 .what = "the same calls with libpcpalloc-preload.so",
	 .mappings = true},
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
