/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetlb.h - memory from the kernel's pool of huge pages, where that is asked for
 * (PCPA_PRELOAD_HUGETLB).  How it works: hugetlb.c; how memory leaves the pool with
 * what is in it: hugetlb_leave.c.
 *
 * Ranges are page indices, [first, end).
 */
#ifndef SHIM_HUGETLB_H
#define SHIM_HUGETLB_H

#include "pool.h"

/* Why there is no more of it; the texts are in stats.c. */
enum shim_hugetlb_state {
	HUGETLB_OPEN,    /* is used, or will be */
	HUGETLB_SHORT,   /* the pool has too few; asked again in a second */
	HUGETLB_REFUSED, /* the kernel has none, or can't move them */
	HUGETLB_BOUND,   /* a control group or a cpuset keeps us from the pool */
	HUGETLB_UNSAFE,  /* not all writes can be held up by userfaultfd */
	HUGETLB_FORKED,  /* the program has forked */
	HUGETLB_OVER,    /* nothing is served any more */
};

struct shim_hugetlb {
	uint32_t gate;       /* a: HUGETLB_CLOSED, and how many are growing */
	uint32_t lock;       /* a: whose pages leave */
	uint32_t state;      /* a: enum shim_hugetlb_state */
	uint32_t short_s;    /* a: second in which the pool was too short */
	uint32_t units;      /* a: of 2 MiB that are from the pool */
	uint64_t left_units; /* a: that left the pool with what was in them */
	uint64_t lost_units; /* a: that should have, and couldn't */
};

#define HUGETLB_CLOSED (UINT32_C(1) << 31)

extern struct shim_hugetlb shim_hugetlb;

/* Are there any pages of the pool? */
PCPI_INLINE bool shim_hugetlb_used(void)
{
	/* pairs with units_set(): who has got such an extent sees that. */
	return pcpi_unlikely(pcpi_load_acquire(&shim_hugetlb.units) != 0);
}

PCPI_INLINE bool shim_hugetlb_is(uint32_t pfn)
{
	return shim_hugetlb_used() && shim_pool_zone(pfn) == SHIM_HUGETLB;
}

/* Is any page of the range from the pool? */
bool shim_hugetlb_any(uint32_t first, uint32_t end);

/* Shall extents of that order come from the pool now? */
bool shim_hugetlb_wanted(unsigned order);

/* A free block from the pool, all zero but for pages that are DIRTY; PCPI_NO_PFN: none
 * is to be had.  Cost: three system calls and the kernel's clearing for a new one. */
uint32_t shim_hugetlb_take(unsigned order);

/* Replaces what the range has of the pool by other memory, without its contents.  The
 * pages are the caller's. */
void shim_hugetlb_drop(uint32_t first, uint32_t end);

/*
 * The same with the contents, whoever has the pages and writes to them meanwhile; of an
 * extent all, as one area, unless the program changed a part of it.  Cost: a copy.
 * Failure: pages that can't leave stay; what the caller is about to do is then refused
 * by the kernel.
 */
void shim_hugetlb_leave(uint32_t first, uint32_t end);

/*
 * While it is held nothing leaves.  For who gives memory back in an extent that has pages
 * of the pool.  No signals come, so that no handler waits for what it interrupted.
 */
void shim_hugetlb_lock(uint64_t *mask);
void shim_hugetlb_unlock(const uint64_t *mask);

/* All pages leave, and none comes any more. */
void shim_hugetlb_end(enum shim_hugetlb_state why);

/* In a child, in which nothing else goes on: the pool may be used again, unless the
 * range is lost to it. */
void shim_hugetlb_copied(bool lost);

/* Registers what has to be done before a fork.  Called by our constructor. */
void shim_hugetlb_start(void);

/* ---- Between hugetlb.c, hugetlb_leave.c and hugetlb_stack.c ---------------- */

/* Can the writes of other threads be held up, also those of the kernel for them? */
bool shim_hugetlb_can_hold(void);

/* Other memory with the same contents in the place of whole units', as one area.  The
 * lock is held, or nothing else goes on.  False: it is as it was. */
bool shim_hugetlb_run_leave(uint32_t first, uint32_t end);

/* A call while which neither the thread nor the kernel for it writes to these bytes.  False:
 * that can't be had, and there was none.  The lock is held, or nothing else goes on. */
bool shim_hugetlb_call(void (*call)(void), uintptr_t at, size_t bytes);

#endif
