/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcpalloc.h - the public interface of libpcpalloc, a page allocator for
 * packet processing in Linux userspace.
 *
 * A heap hands out blocks of 2^order base pages (order 0 is one page, 4 KiB
 * on x86-64), each aligned to its own size and never crossing a huge page.
 * Any thread may free what any other allocated.  Nothing is registered and no
 * size or count is fixed: threads get their caches at their first call, a heap
 * grows by whole arenas up to its maximum.
 *
 * Units: *_bytes are bytes; *_pages, batch, high and the counts of trace
 * events are base pages; *_total, *_blocks and n of the bulk calls are blocks.
 *
 * Concurrency: every call may be made from any thread at any time, except
 * pcpa_heap_destroy(), which requires that no other call on the heap is
 * running or will follow.
 *
 * errno: success and every free leave it alone.
 */
#ifndef PCPALLOC_PCPALLOC_H
#define PCPALLOC_PCPALLOC_H

#include <stddef.h>
#include <stdint.h>

#include <pcpalloc/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pcpa_heap;
struct pcpa_stats; /* pcpalloc/stats.h */

/* The largest order of any heap; a heap's own may be lower: see
 * pcpa_heap_max_order(). */
#define PCPA_MAX_ORDER 10

/* ---- Allocation flags --------------------------------------------------- */

/* Zero the bytes handed out by this call. */
#define PCPA_ZERO 0x10u
/* Never grow the heap for this call. */
#define PCPA_NOGROW 0x20u
/* Fail rather than take a block of another node than the one asked for; alone
 * it means the caller's node. */
#define PCPA_THISNODE 0x40u
/* Prefer node n, an os number up to 65,534. */
#define PCPA_NODE(n) (((unsigned)(n) + 1u) << 16)

/* ---- Creation ----------------------------------------------------------- */

/* Arenas are copy-on-write after fork and the child may use the heap; never
 * backed by hugetlb pages. */
#define PCPA_HEAP_COW 0x01u
/* The heap never grows: initial_bytes is required, max_bytes equals it or is 0. */
#define PCPA_HEAP_FIXED 0x02u
/* The cache policy of Linux 5.14 instead of that of 6.7 and later. */
#define PCPA_HEAP_LEGACY 0x04u
/*
 * Find a program's mistakes with blocks: a free that can't be right (twice, not
 * the start of a block, of another heap or of none, of another order than said),
 * and a write to a block that is free, which is seen when it is handed out
 * again.  Either says which block it is, of which heap, node and order, who
 * allocated and freed it last and where, on stderr whatever the verbosity, and
 * aborts.  So that this works, freed blocks (up to 2,048 of an order, and 1/8 of
 * a node) rest before they are used again, and are filled with bytes a5.  A
 * second free after the block was handed out again can't be told from a right
 * one; the free after that is.
 * Cost: some microseconds a pair, and 145 bytes of memory a page; where there is
 * no address space for these, which is said, bad frees are found only.
 * The variable PCPA_CHECKS=1 sets it for every heap of the process, also those
 * that the program makes with options of its own.
 */
#define PCPA_HEAP_CHECKS 0x08u
/* Blocks are part of core dumps. */
#define PCPA_HEAP_DUMP 0x10u
/* Never interrupt a running thread to drain its cache: it drains itself at its
 * next call. */
#define PCPA_HEAP_NO_IPI 0x20u

/*
 * What a heap is made of.  Start from PCPA_HEAP_OPTIONS_INIT; zero means the
 * default everywhere.  Each field has a PCPA_* variable of the same name for
 * the default heap (PCPA_INITIAL_BYTES=64M, PCPA_NODES=0, PCPA_FLAGS=fixed,...).
 */
struct pcpa_heap_options {
	size_t struct_size;
	unsigned flags; /* PCPA_HEAP_* */
	/* Backed at creation, per node; 0: one arena at first use. */
	size_t initial_bytes;
	/* Bound of growth, per node, rounded up to a huge page; 0: what the
	 * node has, less than the cgroup's limit. */
	size_t max_bytes;
	/* os numbers, "0,2-3"; NULL: every allowed node with memory. */
	const char *nodes;
	/* Huge page size to use; 0: the largest that fits; the base page size:
	 * no huge pages. */
	size_t hugepage_bytes;
	/* Transfer unit between a cache and the buddy, up to 4,096; 0: by the
	 * zone's size. */
	unsigned batch_pages;
	/* A cache's bound, up to 65,536 (of which 65,024 are used); 0: by
	 * watermarks and CPUs.  Set, it is fixed. */
	unsigned high_pages;
	/* A cache's bound as 1/high_fraction of the zone over its CPUs; 0: off;
	 * 1 to 7 are refused. */
	unsigned high_fraction;
	/* 0 silent, 1 each fallback and the first bad free once, on stderr. */
	unsigned verbosity;
};

#define PCPA_HEAP_OPTIONS_INIT                                                 \
	{                                                                      \
		sizeof(struct pcpa_heap_options), 0u, 0u, 0u, NULL, 0u, 0u, 0u,   \
			0u, 1u                                                 \
	}

/*
 * Creates a heap and stores it in *out; *opts may be NULL for defaults.
 * Returns 0, or a negative errno with *out untouched and nothing mapped:
 * -EINVAL for an option that can't be (named on stderr at verbosity 1) or a
 * variable PCPA_CHECKS that is neither 0 nor 1,
 * -ENOMEM when initial_bytes can't be backed, -ENODEV for a node that isn't
 * there or allowed.
 * Cost: 1-7 ms once in a process (hwloc's reading of the topology, the more
 * plugins it has the longer), then the population of initial_bytes, in parallel.
 */
int pcpa_heap_create(const struct pcpa_heap_options *opts,
		     struct pcpa_heap **out);

/*
 * Gives everything back to the kernel.  Requires quiescent callers.
 * Returns 0, or -EBUSY while blocks are out: the heap is then unchanged and
 * pcpa_stats_read() says how many.
 */
int pcpa_heap_destroy(struct pcpa_heap *heap);

/*
 * The process's heap, made at first use from the PCPA_* variables and never
 * destroyed.  NULL with errno EINVAL when a variable is bad (one line on stderr
 * names it or its field), or with the errno of pcpa_heap_create().
 */
struct pcpa_heap *pcpa_default_heap(void);

/* ---- Blocks ------------------------------------------------------------- */

/*
 * Returns a block of 2^order base pages, aligned to its size, or NULL with
 * errno: ENOMEM after draining all caches and growing failed (what other threads
 * have in their hands at that moment is not found), EINVAL for an order above the
 * heap's, an unknown flag or a node that the heap doesn't use, ENODEV in a forked
 * child of a heap without PCPA_HEAP_COW.  Not for signal handlers that may have
 * interrupted a call in the same thread.
 * Cost: a hit of the thread's cache (orders 0-3) takes no lock, atomic
 * read-modify-write or system call.
 */
void *pcpa_alloc(struct pcpa_heap *heap, unsigned order, unsigned flags);

/*
 * Frees a block; NULL is allowed.  A pointer that is no block of the heap, is
 * interior, or is already back in the buddy is counted (bad_frees), reported
 * once and refused; a double free of a block that is still in a cache is found
 * with PCPA_HEAP_CHECKS only, and in a program that runs under AddressSanitizer,
 * ThreadSanitizer or memcheck.
 */
void pcpa_free(struct pcpa_heap *heap, void *block);

/* The same, told the order: saves reading it.  A wrong order, or a page of the
 * heap that is no block, corrupts the heap, unless PCPA_HEAP_CHECKS is set. */
void pcpa_free_sized(struct pcpa_heap *heap, void *block, unsigned order);

/*
 * Stores up to n blocks in blocks[0..n-1] and returns how many.  Fewer than n
 * only where pcpa_alloc() would fail; errno is set exactly then.
 */
size_t pcpa_alloc_bulk(struct pcpa_heap *heap, unsigned order, unsigned flags,
		       void **blocks, size_t n);

/*
 * Fills the NULL entries of slots[0..n-1] and returns the length of the filled
 * prefix, entries that were filled before included; it stops at the first hole
 * that can't be filled (errno is set exactly then).
 */
size_t pcpa_refill(struct pcpa_heap *heap, unsigned order, unsigned flags,
		   void **slots, size_t n);

/* Frees blocks[0..n-1] of mixed orders and nodes, NULLs skipped; a bad entry
 * is treated as by pcpa_free() and the others are freed. */
void pcpa_free_bulk(struct pcpa_heap *heap, void **blocks, size_t n);

/* The same for blocks that are all of one order. */
void pcpa_free_bulk_sized(struct pcpa_heap *heap, unsigned order, void **blocks,
			  size_t n);

/* ---- Queries ------------------------------------------------------------ */

/* Order of an allocated block, or -EINVAL. */
int pcpa_block_order(struct pcpa_heap *heap, const void *block);

/* os number of the node a block of the heap belongs to, or -EINVAL. */
int pcpa_block_node(struct pcpa_heap *heap, const void *block);

/* The largest order that the heap serves.  Requires a heap. */
unsigned pcpa_heap_max_order(const struct pcpa_heap *heap);

/* Bytes of a block of order 0.  Requires a heap. */
size_t pcpa_heap_page_bytes(const struct pcpa_heap *heap);

enum pcpa_backing {
	PCPA_BACKING_HUGETLB = 0,
	PCPA_BACKING_THP = 1,
	PCPA_BACKING_BASE = 2
};

/* A range of backed memory, for DMA mapping, UMEM or extmem registration. */
struct pcpa_arena_info {
	size_t struct_size;
	void *base;
	size_t bytes;
	int node; /* os number */
	enum pcpa_backing backing;
	size_t page_bytes; /* of the pages asked for */
};

/*
 * Calls fn for each arena until it returns non-zero, and returns that value or
 * 0; -ENODEV in a forked child of a heap without PCPA_HEAP_COW, -EINVAL without
 * a heap or fn.  Arenas added meanwhile may or may not be seen.  fn must not call the
 * heap.
 */
int pcpa_for_each_arena(struct pcpa_heap *heap,
			int (*fn)(const struct pcpa_arena_info *, void *),
			void *arg);

/* ---- Control ------------------------------------------------------------ */

/* Moves the calling thread's cached blocks to the depot.  Returns 0, or
 * -ENODEV in a forked child. */
int pcpa_thread_flush(struct pcpa_heap *heap);

/*
 * Moves every thread's cached blocks and the depot to the buddy, where they
 * merge.  Returns 0, or -ETIMEDOUT when a thread stayed inside the library for
 * 100 ms; its cache is then drained by itself at its next call.  With
 * PCPA_HEAP_NO_IPI all running threads' caches are, and nobody waits for them.
 */
int pcpa_heap_drain(struct pcpa_heap *heap);

/* ---- Observation -------------------------------------------------------- */

enum pcpa_event_kind {
	PCPA_EVENT_PCPU_DRAIN = 0,  /* a cache gives pages back            */
	PCPA_EVENT_PCPU_REFILL = 1, /* a cache takes blocks                */
	PCPA_EVENT_ZONE_LOCKED = 2, /* pages taken under the zone lock     */
	PCPA_EVENT_EXTFRAG = 3,     /* a larger block was broken up        */
	PCPA_EVENT_ARENA_GROW = 4   /* an arena was added                  */
};

/* One decision, with the state before it. */
struct pcpa_event {
	size_t struct_size;
	enum pcpa_event_kind kind;
	int node;	/* os number */
	unsigned order; /* of the block that caused it */
	uint64_t pages; /* moved by this decision */
	uint64_t count; /* pages in the cache before */
	uint64_t high;	/* the cache's bound at that time */
};

/*
 * Has fn called for each rare event of the heap, on the thread that causes it,
 * with no lock of the library held; NULL ends it.  When pcpa_heap_trace()
 * returns, what was subscribed before is not running and won't be called.  fn
 * must not call the heap, subscribe to any, fork, or take a lock that a caller of
 * pcpa_heap_trace() holds.  Returns 0 or -EINVAL.
 */
int pcpa_heap_trace(struct pcpa_heap *heap,
		    void (*fn)(const struct pcpa_event *, void *), void *arg);

/*
 * Fills *out, whose struct_size the caller has set (PCPA_STATS_INIT), for a
 * node's os number, or all nodes with -1.  Returns 0 or -EINVAL.  Each counter
 * is monotone; the sum of the states is exact while the callers rest.
 */
int pcpa_stats_read(struct pcpa_heap *heap, int node, struct pcpa_stats *out);

/* Version of the library that is running, "MAJOR.MINOR.PATCH". */
const char *pcpa_version(void);

#ifdef __cplusplus
}
#endif

#endif
