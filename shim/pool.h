/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - the reserved range: which pages are free, and what is known of the others.
 * How it works: pool.c.
 */
#ifndef SHIM_POOL_H
#define SHIM_POOL_H

#include "atomics.h"
#include "extent.h"

/* What a page's byte says.  DIRTY belongs to free pages, FLIP to held ones. */
enum {
	SHIM_PAGE_DIRTY = 1, /* may hold something else than zeros */
	SHIM_PAGE_FLIP = 2,  /* mapped if beyond the length, else unmapped */
};

enum shim_zone_id {
	SHIM_HUGE = 0,    /* advised for huge pages */
	SHIM_BASE = 1,    /* not advised, so that mincore() sees touches */
	SHIM_HUGETLB = 2, /* from the kernel's pool of huge pages: hugetlb.h */
	SHIM_ZONES = 3,
};

/* Fixed once `bytes` isn't 0. */
struct shim_range {
	uintptr_t base;
	size_t bytes;    /* a: 0 before it exists, and after it was dissolved */
	uint64_t *heads; /* a: an extent's word, extent.h */
	uint8_t *pages;  /* a: SHIM_PAGE_* */
	uint32_t *copied; /* a: what it points to is COPIED_NO, but in a new child */
	uint32_t copy; /* a: forks since the first process */
	uint64_t *inherited; /* a: NULL, or of a child: a bit a page (pool_fork.c) */
};

/* What shim_range.copied points to. */
enum { COPIED_YES = 0, COPIED_NO = 1, COPIED_LOOKING = 2 };

extern struct shim_range shim_range;

/* Does the address lie in the range?  pairs with pool_make(). */
PCPI_INLINE bool shim_inside(uintptr_t at)
{
	size_t bytes = pcpi_load_acquire(&shim_range.bytes);

	return at - shim_range.base < bytes;
}

PCPI_INLINE bool shim_range_there(void)
{
	/* pairs with pool_make(). */
	return pcpi_load_acquire(&shim_range.bytes) != 0;
}

/* Finds out what of the copy can be used; returns when that is done. */
void shim_fork_look(void);

/* Comes first in each call that looks at the range: a child of a fork doesn't wait for
 * threads that only its parent has. */
PCPI_INLINE void shim_fork_check(void)
{
	/* pairs with copied_init() and shim_fork_look(). */
	uint32_t *copied = pcpi_load_acquire(&shim_range.copied);

	if (pcpi_unlikely(pcpi_load_acquire(copied) != COPIED_NO))
		shim_fork_look();
}

/* Forgets which of the pages are inherited, and says whether any was: then the caller
 * gives all of them back, or they are copied when they are cleared. */
bool shim_inherited_take(uint32_t first, uint32_t end);

PCPI_INLINE uint32_t shim_pfn(uintptr_t at)
{
	return (uint32_t)((at - shim_range.base) >> SHIM_PAGE_SHIFT);
}

PCPI_INLINE uintptr_t shim_at(uint32_t pfn)
{
	return shim_range.base + ((uintptr_t)pfn << SHIM_PAGE_SHIFT);
}

/*
 * Reserves the range, once.  Returns whether there is one.
 * Cost: a handful of system calls the first time, then a load.
 */
bool shim_pool_ready(void);

/*
 * Takes a block of the zone, growing it if needed: its first page, or PCPI_NO_PFN
 * when there is none or the pool is busy.  Its pages' bytes say which are dirty, and
 * belong to the caller.
 * Cost: the lock; two or three system calls each 128 MiB.
 */
uint32_t shim_pool_take(enum shim_zone_id zone, unsigned order);

/* Gives a block back whose first `high` pages may be dirty.  Its word is the caller's,
 * and becomes NONE.  Never fails, never waits long. */
void shim_pool_give(uint32_t pfn, unsigned order, uint32_t high);

/* Pages in use of the zone's small blocks. */
uint32_t shim_pool_small_used(enum shim_zone_id zone);

/* Free pages that are kept with memory: counts what enters or leaves the slots. */
void shim_pool_retain(int64_t pages);

/* Would so many more be too many? */
bool shim_pool_full(uint32_t pages);

/*
 * Takes just these pages, if all are free, one extent each, tainted.  Pages that the
 * program has got, or of which a part of its extent is, become mapped and tainted.
 * Returns false when some page is on its way between two owners.
 * Cost: a system call for each 128 MiB that nothing was handed out of so far.
 */
bool shim_pool_claim(uint32_t first, uint32_t end);

/* The page's zone, for one that was handed out. */
enum shim_zone_id shim_pool_zone(uint32_t pfn);

/* New memory for the pages, whatever was mapped there: 0 or a negative errno. */
long shim_pool_renew(uint32_t first, uint32_t end);

/* Gives what is free and from the pool of huge pages back. */
void shim_pool_return_hugetlb(void);

/* May a block there be several areas to the kernel, which then moves none of it?  Only
 * in a child of fork(); renewing the block makes it one. */
bool shim_pool_in_pieces(uint32_t pfn);

/* Gives free memory back to the kernel, until `keep` pages are left with some. */
void shim_pool_trim(uint64_t keep);

/* What the clock asks for: at most once a second trims half of what is kept. */
void shim_pool_tick(void);

/*
 * Forgets the range: what the program has got of it becomes memory like any other,
 * and nothing is served any more.  Free memory goes back, with its address space if
 * `unmap` says so.
 * Cost: a system call for each free run.
 */
void shim_pool_dissolve(bool unmap);

/* Gives all free memory back that was touched, as far as it is whole huge pages. */
void shim_pool_drop(void);

/* Populates the first bytes of the huge zone. */
void shim_pool_populate(size_t bytes);

struct shim_pool_numbers {
	uint64_t reserved_bytes, grown_bytes, retained_bytes, returned_bytes;
	bool dissolved;
};

void shim_pool_numbers(struct shim_pool_numbers *n);

#endif
