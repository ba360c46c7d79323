/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kpcp.h - the page allocator of Linux 5.x in userspace: a list of pages for
 * each thread in front of one zone, that is a buddy of free lists behind one
 * spinlock.  What the library is held against where the question is what the
 * kernel would have done.  How it works: kpcp.c.
 *
 * Units: pages are base pages of 4 KiB; ticks are those of tsc.h.
 */
#ifndef BENCH_KPCP_H
#define BENCH_KPCP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buddy_list.h"
#include "kpcp_policy.h"

enum {
	KPCP_TOP_ORDER = 9, /* the largest block: 2 MiB                     */
	KPCP_ORDERS = 4,    /* at most the first so many orders have lists  */
	KPCP_MAX_BATCH = 4096,
	KPCP_PAGE_BYTES = 4096,
};

/* What becomes of single pages that a list gives back. */
enum kpcp_merge {
	KPCP_EAGER,   /* each is merged with its buddies, as in Linux     */
	KPCP_LAZY,    /* hung up one by one, merged when a larger block is
		       * missed                                           */
	KPCP_CLUSTER, /* the same, and hung up as the chain they are      */
	KPCP_MERGES
};

struct kpcp_options {
	size_t mib;
	unsigned batch, high; /* pages; KPCP_BATCH and KPCP_HIGH in Linux 5.x */
	unsigned orders;      /* how many have lists: 1 in Linux 5.x, up to 4 */
	enum kpcp_merge merge;
};

#define KPCP_OPTIONS_INIT {256, KPCP_BATCH, KPCP_HIGH, 1, KPCP_EAGER}

/* Of one thread.  Its own: exact when it rests. */
struct kpcp_counters {
	uint64_t allocs, frees; /* blocks, of all orders                   */
	uint64_t refills;       /* times that a list was filled            */
	uint64_t refill_pages;
	uint64_t drains;        /* times that the lists gave pages back    */
	uint64_t drain_pages;
	uint64_t directs;       /* blocks past the lists, either way       */
	uint64_t locks;         /* of the zone, for whatever reason        */
	uint64_t lock_contended;
	uint64_t lock_wait_ticks;
	uint64_t lock_hold_ticks;
};

/* What the kernel keeps for each page in its struct page, of the same size: a
 * page in a list has a cache line of its own. */
struct kpcp_page {
	_Alignas(64) uint32_t next, prev; /* in a list: 1 + page, 0: none   */
	uint32_t run_next;  /* first page of an unmerged run: 1 + that of
			     * the next run                               */
	uint32_t run_last;  /* 1 + the run's last page                    */
	uint32_t run_pages;
	uint8_t order;      /* of a block in a list                       */
};

/* head: hot, where blocks come and go.  tail: cold.  1 + page, 0: empty. */
struct kpcp_list {
	uint32_t head, tail;
};

struct kpcp_lock {
	_Alignas(128) _Atomic unsigned next; /* ticket to take */
	_Atomic unsigned owner;		     /* ticket served  */
};

struct kpcp {
	struct kpcp_lock lock;
	struct pcpi_buddy_list buddy; /* lock                               */
	uint32_t runs;		/* lock: unmerged ones, 1 + first page, or 0 */
	uint64_t unmerged_pages;      /* lock                               */
	uint64_t merge_passes;	      /* lock                               */
	bool merge_needed; /* lock: a larger block was missed even so       */
	_Alignas(128) struct kpcp_options options; /* fixed from here on    */
	char *base;
	size_t bytes;
	struct kpcp_page *page;
	void *meta;
};

/* Of one thread; nobody else touches it. */
struct kpcp_cache {
	_Alignas(128) struct kpcp *kpcp;
	unsigned count; /* pages in all lists */
	struct kpcp_list list[KPCP_ORDERS];
	struct kpcp_counters counters;
};

/* Maps and populates the memory.  Returns 0, -EINVAL for options that can't be,
 * or -ENOMEM. */
int kpcp_open(struct kpcp *k, const struct kpcp_options *options);

/* Requires: no cache is attached. */
void kpcp_close(struct kpcp *k);

/* Both by the thread that uses the cache; detaching gives its pages back. */
void kpcp_attach(struct kpcp *k, struct kpcp_cache *c);
void kpcp_detach(struct kpcp_cache *c);

/*
 * A block of 2^order pages, aligned to its size, or NULL when there is none or
 * the order is above KPCP_TOP_ORDER.  (Linux would drain the other lists before
 * it gives up; here nobody may touch them.)
 */
void *kpcp_alloc(struct kpcp_cache *c, unsigned order);

/* Requires: the block is of this kpcp and of this order. */
void kpcp_free(struct kpcp_cache *c, void *block, unsigned order);

/* Merges what is unmerged, now. */
void kpcp_merge_all(struct kpcp_cache *c);

/* Free blocks of exactly this order in the zone, unmerged runs not counted.
 * Requires: all threads rest. */
uint32_t kpcp_free_blocks(const struct kpcp *k, unsigned order);

#endif
