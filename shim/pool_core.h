/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_core.h - the pool's own state, for its four files: pool.c (free pages),
 * pool_range.c (the reservation and its tables), pool_fork.c (a child's copy of them),
 * pool_return.c (memory back to the kernel, and the end of a pool).
 */
#ifndef SHIM_POOL_CORE_H
#define SHIM_POOL_CORE_H

#include "buddy.h"
#include "pool.h"

enum { SHIM_BIG_TOP = SHIM_MAX_ORDER - SHIM_UNIT_ORDER };

enum shim_pool_state { POOL_NONE, POOL_MAKING, POOL_READY, POOL_GONE };

/* LOST: by a thread that only the parent has, for good. */
enum shim_pool_lock { LOCK_FREE, LOCK_HELD, LOCK_LOST };

struct shim_zone {
	struct pcpi_buddy big;   /* in units */
	struct pcpi_buddy small; /* in pages */
	uint32_t small_used;     /* pages handed out of small */
	void *tables[2];         /* f: the buddies' */
	size_t table_bytes[2];   /* f */
};

/* P: the lock.  a: atomic.  f: fixed when the range is there. */
struct shim_pool {
	uint32_t lock PCPI_ALIGNED(64); /* a: enum shim_pool_lock */
	uint32_t parked;                /* a: first page + 1, or 0 */
	uint32_t windows;               /* P, read by anyone: a */
	uint32_t state;                 /* a: enum shim_pool_state */
	uint32_t tick_s;                /* a */
	uint32_t dissolving;            /* a: free memory is being unmapped */
	uint32_t lost_at;               /* a: page: how far that is */
	uint64_t limit_pages;    /* f: of what is kept free with memory */
	int64_t retained_pages;  /* a */
	int64_t press_pages;     /* a: kept, when it is worth trying again */
	uint64_t returned_pages; /* a: given back so far */
	struct shim_zone zones[SHIM_ZONES]; /* P */
	uint16_t *used;     /* P: pages handed out, for small's units */
	uint8_t *unit_zone; /* a: enum shim_zone_id */
	size_t max_bytes;   /* f */
};

extern struct shim_pool shim_pool;

/*
 * The lock.  Taking it fails when it is held for longer than a few microseconds; the
 * long way waits some milliseconds, and fails when the holder is gone for good.  Who
 * gets it finds no parked extents.
 */
bool shim_pool_lock(void);
bool shim_pool_lock_long(void);
void shim_pool_unlock(void);

/* Is the lock gone for good, and the range with it? */
PCPI_INLINE bool shim_pool_lost(void)
{
	/* relaxed: never changes once a thread of this process runs here. */
	return pcpi_load_relaxed(&shim_pool.lock) == LOCK_LOST;
}

/* The block was taken out of a buddy.  Under the lock. */
void shim_pool_note(uint32_t pfn, unsigned order);

/* More is kept than may be: gives half of it back, as far as it is whole units. */
void shim_pool_press(void);

/* A mapping of our own, zero, of which only what is touched costs memory; or NULL. */
void *shim_table_map(size_t bytes);

/* All that is known of the range is forgotten: what is in it is the kernel's. */
void shim_range_forget(void);

PCPI_INLINE size_t shim_window_bytes(void)
{
	return (size_t)SHIM_WINDOW_PAGES << SHIM_PAGE_SHIFT;
}

PCPI_INLINE size_t shim_round_page(size_t bytes)
{
	return (bytes + SHIM_PAGE_BYTES - 1) & ~(size_t)(SHIM_PAGE_BYTES - 1);
}

#endif
