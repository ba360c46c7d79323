/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.c - the reserved range: which pages are free, and what is known of the others.
 *
 * Owns: one reservation of address space, made at the first request that is served;
 * the tables beside it; the free pages.  Does not own: the extents in slots
 * (slots.h), nor what becomes of a request (serve.c).
 *
 *   base                                                        base + bytes
 *    |  window 0: HUGE  |  window 1: BASE  | window 2: HUGE | ... never used ...
 *    |<---- 128 MiB ---->|
 *
 * The range grows by windows, each given to one of two zones.  A zone is two buddies
 * of the library's (buddy.h): `big` in units of 2 MiB for orders 9 to 15, `small` in
 * pages for orders 0 to 8, whose chunks are units taken from `big`.  A window becomes
 * accessible by one mprotect(), memory comes with the page faults.
 *
 * The tables (an extent's word and a byte for each page, the buddies' bits) are
 * mappings of their own: nothing that the program does to memory it was handed can
 * hurt them.
 *
 *   P1  A page is in one place: in a buddy, in a slot, parked, with one thread that is
 *       moving it, or the program's.
 *   P2  A word that is not NONE is that of an extent's first page, and the words of
 *       its other pages are NONE.
 *   P3  A free page without DIRTY reads as zeros.
 *   P4  All windows below `windows` were added to a zone, and none beyond.
 *
 * Concurrency: the lock guards buddies, zones and windows.  It is held for a bounded
 * time without any system call, and nobody waits long for it: who doesn't get it goes
 * to the kernel, or parks what is to be freed on a stack which the next holder
 * empties.  So a handler that interrupted the holder, or a thread that was made
 * without the C library, is safe.
 *
 * Fork: there are no handlers.  A word in a page that the kernel clears in a child
 * (MADV_WIPEONFORK) tells a copied address space from a shared one (vfork).  If the
 * lock was free in the copy, all is consistent; else some thread of the parent was at
 * it, and the child forgets the range: what it has got of it is ordinary memory.
 *
 * Failure: no range, no zone that can grow: the kernel serves.
 * Proved by tests/preload/ and tests/shim/.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "buddy.h"
#include "check.h"
#include "control.h"
#include "raw.h"
#include "slots.h"
#include "table.h"

enum {
	BIG_TOP = SHIM_MAX_ORDER - SHIM_UNIT_ORDER,
	SPINS = 200,       /* some microseconds */
	LONG_SPINS = 2000, /* yields: for what can't be refused */
	RANGE_SHIFT_MAX = 36,
	RANGE_SHIFT_MIN = 30,
};

struct zone {
	struct pcpi_buddy big;   /* in units */
	struct pcpi_buddy small; /* in pages */
	uint32_t small_used;     /* pages handed out of small */
	void *tables[2];         /* f: the buddies' */
	size_t table_bytes[2];   /* f */
};

struct shim_range shim_range PCPI_ALIGNED(64);

/* P: the lock.  a: atomic.  f: fixed when the range is there. */
static struct {
	uint32_t lock PCPI_ALIGNED(64); /* a */
	uint32_t parked;                /* a: first page + 1, or 0 */
	uint32_t windows;               /* P, read by anyone: a */
	uint32_t state;                 /* a: enum pool_state */
	uint32_t tick_s;                /* a */
	uint32_t *cookie;               /* f: what it points to: a */
	uint64_t limit_pages;           /* f: of what is kept free with memory */
	int64_t retained_pages;         /* a */
	uint64_t returned_pages;        /* a: given back so far */
	struct zone zones[SHIM_ZONES];  /* P */
	uint16_t *used;                 /* P: pages handed out, for small's units */
	uint8_t *window_zone;           /* a: enum shim_zone_id */
	size_t max_bytes;               /* f */
} pool;

enum pool_state { POOL_NONE, POOL_MAKING, POOL_READY, POOL_GONE };

static void range_forget(void);

/* ---- The lock ------------------------------------------------------------ */

enum { COOKIE_WIPED = 0, COOKIE_SET = 1, COOKIE_LOOKING = 2 };

/* In a child, before anybody there has taken the lock: false when it is held, by a
 * thread that only the parent has. */
static PCPI_COLD bool fork_look(void)
{
	uint32_t wiped = COOKIE_WIPED;

	/* pairs with itself: one thread of the child looks. */
	if (!pcpi_cas_acq_rel(pool.cookie, &wiped, (uint32_t)COOKIE_LOOKING))
		return wiped == COOKIE_SET;
	/* relaxed: one thread of the child is here, and no other takes the lock. */
	if (pcpi_load_relaxed(&pool.lock))
		range_forget();
	/* pairs with lock_try(). */
	pcpi_store_release(pool.cookie, (uint32_t)COOKIE_SET);
	return true;
}

static bool lock_try(void)
{
	/* pairs with fork_look(). */
	if (pcpi_unlikely(pcpi_load_acquire(pool.cookie) != COOKIE_SET) &&
	    !fork_look())
		return false;
	/* relaxed: a look that saves the exchange. */
	if (pcpi_load_relaxed(&pool.lock))
		return false;
	/* pairs with lock_drop(). */
	return pcpi_exchange_acq_rel(&pool.lock, 1u) == 0;
}

static void parked_settle_locked(void);

static bool lock_take(void)
{
	for (int i = 0; i < SPINS; i++) {
		if (pcpi_likely(lock_try())) {
			parked_settle_locked();
			return true;
		}
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
	}
	return false;
}

/* For what can't be refused; fails when the holder is gone for good. */
static bool lock_take_long(void)
{
	for (int i = 0; i < LONG_SPINS; i++) {
		if (lock_take())
			return true;
		raw_yield();
	}
	return false;
}

static void lock_drop(void)
{
	/* pairs with lock_try(). */
	pcpi_store_release(&pool.lock, 0u);
}

/* ---- The range ----------------------------------------------------------- */

static size_t round_page(size_t bytes)
{
	return pcpi_round_up(bytes, SHIM_PAGE_BYTES);
}

/* A mapping of our own, zero, of which only what is touched costs memory. */
static void *table_map(size_t bytes)
{
	long at = raw_mmap(0, round_page(bytes), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (raw_failed(at))
		return NULL;
	raw_madvise((uintptr_t)at, round_page(bytes), MADV_NOHUGEPAGE);
	return (void *)at;
}

static bool zone_init(struct zone *z, uint32_t units)
{
	uint32_t windows = units >> BIG_TOP;

	z->table_bytes[0] = pcpi_buddy_meta_bytes(windows, BIG_TOP);
	z->table_bytes[1] = pcpi_buddy_meta_bytes(units, SHIM_UNIT_ORDER);
	for (int i = 0; i < 2; i++) {
		z->tables[i] = table_map(z->table_bytes[i]);
		if (!z->tables[i])
			return false;
	}
	pcpi_buddy_init(&z->big, z->tables[0], 0, windows, BIG_TOP);
	pcpi_buddy_init(&z->small, z->tables[1], 0, units, SHIM_UNIT_ORDER);
	return true;
}

static bool tables_init(size_t bytes)
{
	uint32_t pages = (uint32_t)(bytes >> SHIM_PAGE_SHIFT);
	uint32_t units = pages >> SHIM_UNIT_ORDER;

	shim_range.heads = table_map(pages * sizeof(*shim_range.heads));
	shim_range.pages = table_map(pages);
	pool.used = table_map(units * sizeof(*pool.used));
	pool.window_zone = table_map(units >> BIG_TOP);
	pool.cookie = table_map(SHIM_PAGE_BYTES);
	if (!shim_range.heads || !shim_range.pages || !pool.used ||
	    !pool.window_zone || !pool.cookie)
		return false;
	for (int i = 0; i < SHIM_ZONES; i++)
		if (!zone_init(&pool.zones[i], units))
			return false;
	/* Without this a child couldn't tell that it is one. */
	if (raw_failed(raw_madvise((uintptr_t)pool.cookie, SHIM_PAGE_BYTES,
				   MADV_WIPEONFORK)))
		return false;
	/* relaxed: published with the range. */
	pcpi_store_relaxed(pool.cookie, (uint32_t)COOKIE_SET);
	return true;
}

/* As much address space as is to be had, aligned to a window; 0: none. */
static uintptr_t range_reserve(size_t *bytes)
{
	size_t window = (size_t)SHIM_WINDOW_PAGES << SHIM_PAGE_SHIFT;

	for (unsigned shift = RANGE_SHIFT_MAX; shift >= RANGE_SHIFT_MIN; shift -= 2) {
		size_t size = (size_t)1 << shift;
		long at = raw_mmap(0, size + window, PROT_NONE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
				   0);
		uintptr_t base;

		if (raw_failed(at))
			continue;
		base = pcpi_round_up((uintptr_t)at, window);
		if (base > (uintptr_t)at)
			raw_munmap((uintptr_t)at, base - (uintptr_t)at);
		raw_munmap(base + size, (uintptr_t)at + window - base);
		*bytes = size;
		return base;
	}
	return 0;
}

static bool limited(int resource)
{
	struct rlimit limit;
	long r = raw6(SYS_prlimit64, 0, resource, 0, (long)&limit, 0, 0);

	return !raw_failed(r) && limit.rlim_cur != RLIM_INFINITY;
}

static uint64_t keep_pages(void)
{
	struct sysinfo info;
	uint64_t bytes = shim_control.retain;

	if (!raw_failed(raw6(SYS_sysinfo, (long)&info, 0, 0, 0, 0, 0)))
		bytes = pcpi_min(bytes, (uint64_t)info.totalram * info.mem_unit / 16);
	return bytes >> SHIM_PAGE_SHIFT;
}

static bool pool_make(void)
{
	size_t bytes;

	/* What we keep would count against the program. */
	if (limited(RLIMIT_AS) || limited(RLIMIT_DATA))
		return false;
	shim_range.base = range_reserve(&bytes);
	if (!shim_range.base)
		return false;
	if (!tables_init(bytes)) {
		raw_munmap(shim_range.base, bytes);
		return false;
	}
	pool.limit_pages = keep_pages();
	pool.max_bytes = bytes;
	/* pairs with shim_inside(). */
	pcpi_store_release(&shim_range.bytes, bytes);
	return true;
}

bool shim_pool_ready(void)
{
	/* pairs with the store below. */
	uint32_t state = pcpi_load_acquire(&pool.state);

	if (pcpi_likely(state == POOL_READY))
		return true;
	if (state != POOL_NONE)
		return false;
	/* pairs with itself: one makes it, the others go to the kernel. */
	if (!pcpi_cas_acq_rel(&pool.state, &state, (uint32_t)POOL_MAKING))
		return false;
	if (!pool_make()) {
		/* pairs with the load above. */
		pcpi_store_release(&pool.state, (uint32_t)POOL_GONE);
		return false;
	}
	state = POOL_MAKING;
	/* pairs with the load above; a dissolve may have come in between. */
	if (!pcpi_cas_acq_rel(&pool.state, &state, (uint32_t)POOL_READY)) {
		range_forget();
		return false;
	}
	if (shim_control.populate)
		shim_pool_populate(shim_control.populate);
	return true;
}

/* ---- Growth -------------------------------------------------------------- */

static uintptr_t window_at(uint32_t window)
{
	return shim_at(window * SHIM_WINDOW_PAGES);
}

static size_t window_bytes(void)
{
	return (size_t)SHIM_WINDOW_PAGES << SHIM_PAGE_SHIFT;
}

/* Makes the next window part of the zone.  The lock is held, and dropped for the
 * system calls; false, without the lock, when there is no more. */
static bool grow_locked(enum shim_zone_id zone)
{
	uint32_t window = pool.windows;
	size_t bytes = shim_range.bytes;
	bool made;

	if ((size_t)(window + 1) * window_bytes() > bytes) {
		lock_drop();
		return false;
	}
	/* relaxed: written under the lock; readers may see it late. */
	pcpi_store_relaxed(&pool.window_zone[window], (uint8_t)zone);
	pcpi_store_relaxed(&pool.windows, window + 1);
	lock_drop();
	if (zone == SHIM_HUGE)
		raw_madvise(window_at(window), window_bytes(), MADV_HUGEPAGE);
	made = !raw_failed(raw_mprotect(window_at(window), window_bytes(),
					PROT_READ | PROT_WRITE));
	if (!made || !lock_take_long())
		return false; /* the window is lost: address space only */
	pcpi_buddy_add(&pool.zones[zone].big, window * SHIM_WINDOW_UNITS,
		       SHIM_WINDOW_UNITS);
	return true;
}

enum shim_zone_id shim_pool_zone(uint32_t pfn)
{
	/* relaxed: written before any page of it was handed out. */
	return (enum shim_zone_id)pcpi_load_relaxed(
		&pool.window_zone[pfn / SHIM_WINDOW_PAGES]);
}

/* ---- Blocks -------------------------------------------------------------- */

static void small_feed_locked(struct zone *z, uint32_t unit)
{
	pcpi_buddy_add(&z->small, unit << SHIM_UNIT_ORDER, SHIM_UNIT_PAGES);
	pool.used[unit] = 0;
}

static uint32_t small_take_locked(struct zone *z, unsigned order)
{
	uint32_t pfn = pcpi_buddy_take(&z->small, order);

	if (pfn == PCPI_NO_PFN) {
		uint32_t unit = pcpi_buddy_take(&z->big, 0);

		if (unit == PCPI_NO_PFN)
			return unit;
		small_feed_locked(z, unit);
		pfn = pcpi_buddy_take(&z->small, order);
	}
	pool.used[pfn >> SHIM_UNIT_ORDER] =
		(uint16_t)(pool.used[pfn >> SHIM_UNIT_ORDER] + (1u << order));
	z->small_used += 1u << order;
	return pfn;
}

static uint32_t take_locked(struct zone *z, unsigned order)
{
	uint32_t unit;

	if (order < SHIM_UNIT_ORDER)
		return small_take_locked(z, order);
	unit = pcpi_buddy_take(&z->big, order - SHIM_UNIT_ORDER);
	return unit == PCPI_NO_PFN ? unit : unit << SHIM_UNIT_ORDER;
}

static void give_locked(uint32_t pfn, unsigned order)
{
	struct zone *z = &pool.zones[shim_pool_zone(pfn)];
	uint32_t unit = pfn >> SHIM_UNIT_ORDER;

	if (order >= SHIM_UNIT_ORDER) {
		pcpi_buddy_give(&z->big, unit, order - SHIM_UNIT_ORDER);
		return;
	}
	pcpi_buddy_give(&z->small, pfn, order);
	z->small_used -= 1u << order;
	pool.used[unit] = (uint16_t)(pool.used[unit] - (1u << order));
	if (pool.used[unit] == 0) {
		pcpi_buddy_remove(&z->small, unit << SHIM_UNIT_ORDER,
				  SHIM_UNIT_PAGES);
		pcpi_buddy_give(&z->big, unit, 0);
	}
}

uint32_t shim_pool_take(enum shim_zone_id zone, unsigned order)
{
	struct zone *z = &pool.zones[zone];
	uint32_t pfn;

	if (!lock_take())
		return PCPI_NO_PFN;
	pfn = take_locked(z, order);
	if (pfn == PCPI_NO_PFN) {
		if (!grow_locked(zone))
			return PCPI_NO_PFN;
		pfn = take_locked(z, order);
	}
	lock_drop();
	return pfn;
}

/* relaxed (this function and the next two): a count that is a little late. */
void shim_pool_retain(int64_t pages)
{
	pcpi_fetch_add_relaxed(&pool.retained_pages, pages);
}

bool shim_pool_full(uint32_t pages)
{
	/* relaxed: see above. */
	int64_t kept = pcpi_load_relaxed(&pool.retained_pages);

	return kept + (int64_t)pages > (int64_t)pool.limit_pages;
}

uint32_t shim_pool_small_used(enum shim_zone_id zone)
{
	/* relaxed: see above. */
	return pcpi_load_relaxed(&pool.zones[zone].small_used);
}

/* ---- Parked extents ------------------------------------------------------ */

static void park(uint32_t pfn, unsigned order)
{
	/* relaxed: the exchange below publishes. */
	uint32_t first = pcpi_load_relaxed(&pool.parked);

	do
		pcpi_store_relaxed(&shim_range.heads[pfn],
				   shim_parked(order, first));
	while (!pcpi_cas_acq_rel(&pool.parked, &first, pfn + 1));
	/* pairs with parked_settle_locked(). */
}

static void parked_settle_locked(void)
{
	uint32_t at;

	/* relaxed: a look that saves the exchange. */
	if (pcpi_likely(!pcpi_load_relaxed(&pool.parked)))
		return;
	/* pairs with park(). */
	at = pcpi_exchange_acq_rel(&pool.parked, 0u);
	while (at) {
		uint64_t w = shim_range.heads[at - 1];

		/* relaxed: P1. */
		pcpi_store_relaxed(&shim_range.heads[at - 1], UINT64_C(0));
		give_locked(at - 1, shim_order(w));
		at = shim_next(w);
	}
}

void shim_pool_give(uint32_t pfn, unsigned order, uint32_t high)
{
	if (high) {
		__builtin_memset(&shim_range.pages[pfn], SHIM_PAGE_DIRTY, high);
		shim_pool_retain(high);
	}
	if (!lock_take()) {
		park(pfn, order);
		return;
	}
	/* relaxed: P1. */
	pcpi_store_relaxed(&shim_range.heads[pfn], UINT64_C(0));
	give_locked(pfn, order);
	lock_drop();
}

/* ---- Claims -------------------------------------------------------------- */

/* The windows up to this page, all in the base zone. */
static bool windows_reach_locked(uint32_t end)
{
	while (pool.windows * (uint64_t)SHIM_WINDOW_PAGES < end)
		if (!grow_locked(SHIM_BASE))
			return false;
	return true;
}

/* Is the page free in a buddy?  Then takes it. */
static bool page_take_locked(uint32_t pfn)
{
	struct zone *z = &pool.zones[shim_pool_zone(pfn)];
	uint32_t unit = pfn >> SHIM_UNIT_ORDER;

	if (pcpi_buddy_is_free(&z->big, unit)) {
		pcpi_buddy_range_take(&z->big, unit, 1);
		small_feed_locked(z, unit);
	}
	if (!pcpi_buddy_is_free(&z->small, pfn))
		return false;
	pcpi_buddy_range_take(&z->small, pfn, 1);
	pool.used[unit]++;
	z->small_used++;
	return true;
}

/* The page becomes mapped: an extent of its own, or again a part of one. */
static bool page_claim_locked(uint32_t pfn)
{
	uint32_t head = shim_extent_of(pfn);
	uint64_t w;

	if (head == PCPI_NO_PFN) {
		if (!page_take_locked(pfn))
			return false;
		if (shim_range.pages[pfn] & SHIM_PAGE_DIRTY)
			shim_pool_retain(-1);
		shim_range.pages[pfn] = 0;
		/* pairs with shim_extent_of(). */
		pcpi_store_release(&shim_range.heads[pfn],
				   shim_word(SHIM_LIVE, 0, 1, 1) | SHIM_TAINTED);
		return true;
	}
	shim_extent_taint(head);
	/* relaxed: the program asks for one thing at a time at one page. */
	w = pcpi_load_relaxed(&shim_range.heads[head]);
	if (!shim_page_mapped(head, w, pfn))
		shim_range.pages[pfn] ^= SHIM_PAGE_FLIP;
	return true;
}

static bool claim_once(uint32_t first, uint32_t end)
{
	uint32_t pfn;

	shim_slots_empty();
	if (!lock_take_long())
		return false;
	if (!windows_reach_locked(end))
		return false;
	for (pfn = first; pfn < end; pfn++)
		if (!page_claim_locked(pfn))
			break;
	lock_drop();
	return pfn == end;
}

bool shim_pool_claim(uint32_t first, uint32_t end)
{
	enum { TRIES = 20 };

	for (int i = 0; i < TRIES; i++) {
		if (claim_once(first, end))
			return true;
		raw_yield();
	}
	return false;
}

long shim_pool_renew(uint32_t first, uint32_t end)
{
	size_t bytes = (size_t)(end - first) << SHIM_PAGE_SHIFT;
	bool huge = shim_pool_zone(first) == SHIM_HUGE;
	long r = raw_mmap(shim_at(first), bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
			  -1, 0);

	if (raw_failed(r))
		return r;
	if (huge)
		raw_madvise(shim_at(first), bytes, MADV_HUGEPAGE);
	return 0;
}

/* ---- Memory back to the kernel ------------------------------------------- */

/* Takes the next free unit at or after *unit that has memory; or PCPI_NO_PFN. */
static uint32_t dirty_unit_take(uint32_t *unit)
{
	uint32_t found = PCPI_NO_PFN;

	if (!lock_take())
		return found;
	for (; *unit < pool.windows * SHIM_WINDOW_UNITS; ++*unit) {
		uint32_t pfn = *unit << SHIM_UNIT_ORDER;
		struct pcpi_buddy *big = &pool.zones[shim_pool_zone(pfn)].big;

		if (pcpi_buddy_is_free(big, *unit) &&
		    __builtin_memchr(&shim_range.pages[pfn], SHIM_PAGE_DIRTY,
				     SHIM_UNIT_PAGES)) {
			pcpi_buddy_range_take(big, *unit, 1);
			found = (*unit)++;
			break;
		}
	}
	lock_drop();
	return found;
}

/* Clears the pages' DIRTY and counts them. */
static uint32_t pages_clean(uint32_t pfn, uint32_t pages)
{
	uint32_t dirty = 0;

	for (uint32_t i = 0; i < pages; i++)
		dirty += shim_range.pages[pfn + i] & SHIM_PAGE_DIRTY;
	__builtin_memset(&shim_range.pages[pfn], 0, pages);
	return dirty;
}

void shim_pool_trim(uint64_t keep)
{
	uint32_t unit = 0, taken;

	/* relaxed: a count. */
	while (pcpi_load_relaxed(&pool.retained_pages) > (int64_t)keep &&
	       (taken = dirty_unit_take(&unit)) != PCPI_NO_PFN) {
		uint32_t pfn = taken << SHIM_UNIT_ORDER, dirty;
		size_t bytes = (size_t)SHIM_UNIT_PAGES << SHIM_PAGE_SHIFT;

		if (!raw_failed(raw_madvise(shim_at(pfn), bytes, MADV_DONTNEED))) {
			dirty = pages_clean(pfn, SHIM_UNIT_PAGES);
			shim_pool_retain(-(int64_t)dirty);
			pcpi_fetch_add_relaxed(&pool.returned_pages, dirty);
		}
		shim_pool_give(pfn, SHIM_UNIT_ORDER, 0);
	}
}

void shim_pool_tick(void)
{
	struct timespec now;
	uint32_t last;

	if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now))
		return;
	/* relaxed: once a second, about. */
	last = pcpi_load_relaxed(&pool.tick_s);
	if (last == (uint32_t)now.tv_sec)
		return;
	pcpi_store_relaxed(&pool.tick_s, (uint32_t)now.tv_sec);
	shim_slots_age();
	/* relaxed: a count. */
	shim_pool_trim((uint64_t)pcpi_max(
		pcpi_load_relaxed(&pool.retained_pages) / 2, INT64_C(0)));
}

void shim_pool_drop(void)
{
	if (!shim_range.bytes)
		return;
	shim_slots_empty();
	shim_pool_trim(0);
}

/* ---- The end ------------------------------------------------------------- */

static void range_forget(void)
{
	/* pairs with shim_pool_ready(). */
	pcpi_store_release(&pool.state, (uint32_t)POOL_GONE);
	/* pairs with shim_inside(). */
	pcpi_store_release(&shim_range.bytes, (size_t)0);
}

/* Takes the next free run at or after page *at, and returns its pages; 0: none. */
static uint32_t run_take(uint32_t *at, uint32_t *first)
{
	uint32_t pages = 0;

	if (!lock_take_long())
		return 0;
	for (; *at < pool.windows * (uint32_t)SHIM_WINDOW_PAGES && !pages;) {
		struct zone *z = &pool.zones[shim_pool_zone(*at)];
		uint32_t unit = *at >> SHIM_UNIT_ORDER;

		if (pcpi_buddy_is_free(&z->big, unit)) {
			pcpi_buddy_range_take(&z->big, unit, 1);
			*first = unit << SHIM_UNIT_ORDER;
			pages = SHIM_UNIT_PAGES;
		} else {
			pages = pcpi_buddy_range_run(&z->small,
						     unit << SHIM_UNIT_ORDER,
						     SHIM_UNIT_PAGES, first);
			if (pages) {
				pcpi_buddy_range_take(&z->small, *first, pages);
				break; /* there may be more in this unit */
			}
		}
		*at += SHIM_UNIT_PAGES;
	}
	lock_drop();
	return pages;
}

/* The buddies are used no more: the lock is taken for good. */
static void buddies_unmap(void)
{
	if (!lock_take_long())
		return;
	for (int i = 0; i < SHIM_ZONES; i++)
		for (int k = 0; k < 2; k++)
			raw_munmap((uintptr_t)pool.zones[i].tables[k],
				   round_page(pool.zones[i].table_bytes[k]));
}

/* The part of a table beyond the windows. */
static void table_cut(void *table, size_t used, size_t bytes)
{
	size_t keep = round_page(used);

	if (keep < round_page(bytes))
		raw_munmap((uintptr_t)table + keep, round_page(bytes) - keep);
}

static void unused_unmap(void)
{
	uint64_t pages = pool.windows * (uint64_t)SHIM_WINDOW_PAGES;
	uint64_t max = pool.max_bytes >> SHIM_PAGE_SHIFT;

	raw_munmap(shim_range.base + (pages << SHIM_PAGE_SHIFT),
		   (max - pages) << SHIM_PAGE_SHIFT);
	table_cut(shim_range.heads, pages * sizeof(*shim_range.heads),
		  max * sizeof(*shim_range.heads));
	table_cut(shim_range.pages, pages, max);
}

void shim_pool_dissolve(bool unmap)
{
	uint32_t at = 0, first = 0, pages;
	/* pairs with shim_pool_ready(). */
	uint32_t state = pcpi_exchange_acq_rel(&pool.state, (uint32_t)POOL_GONE);

	if (state != POOL_READY)
		return;
	range_forget();
	shim_slots_empty();
	while ((pages = run_take(&at, &first)) != 0) {
		size_t bytes = (size_t)pages << SHIM_PAGE_SHIFT;

		if (unmap)
			raw_munmap(shim_at(first), bytes);
		else
			raw_madvise(shim_at(first), bytes, MADV_DONTNEED);
	}
	if (unmap) {
		unused_unmap();
		buddies_unmap();
	}
}

void shim_pool_populate(size_t bytes)
{
	uint32_t pages = (uint32_t)pcpi_min(shim_pages(bytes),
					    (uint64_t)SHIM_WINDOW_PAGES);
	unsigned order = shim_order_for(pages);
	uint32_t pfn;

	order = pcpi_max(order, (unsigned)SHIM_UNIT_ORDER);
	pfn = shim_pool_take(SHIM_HUGE, order);
	if (pfn == PCPI_NO_PFN)
		return;
	raw_madvise(shim_at(pfn), (size_t)pages << SHIM_PAGE_SHIFT,
		    MADV_POPULATE_WRITE);
	shim_pool_give(pfn, order, 0);
}

void shim_pool_numbers(struct shim_pool_numbers *n)
{
	/* relaxed: counts. */
	n->reserved_bytes = pcpi_load_relaxed(&shim_range.bytes);
	n->grown_bytes = pcpi_load_relaxed(&pool.windows) * (uint64_t)window_bytes();
	n->retained_bytes = (uint64_t)pcpi_max(
		pcpi_load_relaxed(&pool.retained_pages), INT64_C(0))
		<< SHIM_PAGE_SHIFT;
	n->returned_bytes = pcpi_load_relaxed(&pool.returned_pages)
			    << SHIM_PAGE_SHIFT;
	n->dissolved = pcpi_load_relaxed(&pool.state) == POOL_GONE && pool.max_bytes;
}
