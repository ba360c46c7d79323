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
 * accessible by one mprotect(), memory comes with the page faults.  Where that is asked
 * for, units of HUGE change to a third zone, and back (hugetlb.c).
 *
 * The tables (an extent's word and a byte for each page, the buddies' bits) are
 * mappings of their own: nothing that the program does to memory it was handed can
 * hurt them.
 *
 *   P1  A page is in one place: in a buddy, in a slot, parked, with one thread that is
 *       moving it, or the program's.
 *   P2  A word that is not NONE is that of an extent's first page, and the words of
 *       its other pages are NONE.  In a buddy all are NONE.
 *   P3  A free page without DIRTY reads as zeros.
 *   P4  All windows below `windows` were added to a zone, and none beyond.
 *
 * Concurrency: the lock guards buddies, zones and windows.  It is held for a bounded
 * time without any system call, and nobody waits long for it: who doesn't get it goes
 * to the kernel, or parks what is to be freed on a stack which the next holder
 * empties.  So a handler that interrupted the holder, or a thread that was made
 * without the C library, is safe.
 *
 * Fork: pool_fork.c.  When the lock was free in the copy, all of the above is
 * consistent there, and what was on its way is lost to the child, unless it asks for
 * these very pages: the word says of which copy the thread was.
 *
 * Failure: no range, no zone that can grow: the kernel serves.
 * Proved by tests/preload/ and tests/shim/.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool_core.h"

#include "control.h"
#include "hugetlb.h"
#include "mem.h"
#include "raw.h"
#include "slots.h"
#include "table.h"

enum {
	SPINS = 200,       /* some microseconds */
	LONG_SPINS = 2000, /* yields: for what can't be refused */
};

struct shim_pool shim_pool;

/* ---- The lock ------------------------------------------------------------ */

static bool lock_try(void)
{
	/* relaxed: a look that saves the exchange. */
	if (pcpi_load_relaxed(&shim_pool.lock))
		return false;
	/* pairs with shim_pool_unlock(). */
	return pcpi_exchange_acq_rel(&shim_pool.lock, (uint32_t)LOCK_HELD) ==
	       LOCK_FREE;
}

static void parked_settle_locked(void);

bool shim_pool_lock(void)
{
	shim_fork_check();
	for (int i = 0; i < SPINS && !shim_pool_lost(); i++) {
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
bool shim_pool_lock_long(void)
{
	for (int i = 0; i < LONG_SPINS; i++) {
		if (shim_pool_lock())
			return true;
		if (shim_pool_lost())
			break;
		raw_yield();
	}
	return false;
}

void shim_pool_unlock(void)
{
	/* pairs with lock_try(). */
	pcpi_store_release(&shim_pool.lock, (uint32_t)LOCK_FREE);
}

/* ---- Growth -------------------------------------------------------------- */

static uintptr_t window_at(uint32_t window)
{
	return shim_at(window * SHIM_WINDOW_PAGES);
}

static void window_add_locked(uint32_t unit, enum shim_zone_id zone)
{
	struct pcpi_buddy *pooled = &shim_pool.zones[SHIM_HUGETLB].big;

	pcpi_buddy_add(&shim_pool.zones[zone].big, unit, SHIM_WINDOW_UNITS);
	if (zone == SHIM_HUGE && shim_control.hugetlb) {
		/* Units of it may be given there later. */
		pcpi_buddy_add(pooled, unit, SHIM_WINDOW_UNITS);
		pcpi_buddy_range_take(pooled, unit, SHIM_WINDOW_UNITS);
	}
}

/* Makes the next window part of the zone.  The lock is held, and dropped for the
 * system calls; false, without the lock, when there is no more. */
static bool grow_locked(enum shim_zone_id zone)
{
	uint32_t window = shim_pool.windows;
	size_t bytes = shim_range.bytes;
	bool made;

	if ((size_t)(window + 1) * shim_window_bytes() > bytes) {
		shim_pool_unlock();
		return false;
	}
	shim_fill(&shim_pool.unit_zone[window * SHIM_WINDOW_UNITS],
		  (unsigned char)zone, SHIM_WINDOW_UNITS);
	/* relaxed: written under the lock; readers may see it late. */
	pcpi_store_relaxed(&shim_pool.windows, window + 1);
	shim_pool_unlock();
	if (zone == SHIM_HUGE)
		raw_madvise(window_at(window), shim_window_bytes(),
			    MADV_HUGEPAGE);
	made = !raw_failed(raw_mprotect(window_at(window), shim_window_bytes(),
					PROT_READ | PROT_WRITE));
	if (!made || !shim_pool_lock_long())
		return false; /* the window is lost: address space only */
	window_add_locked(window * SHIM_WINDOW_UNITS, zone);
	return true;
}

enum shim_zone_id shim_pool_zone(uint32_t pfn)
{
	/* relaxed: written before any page of it was handed out. */
	return (enum shim_zone_id)pcpi_load_relaxed(
		&shim_pool.unit_zone[pfn >> SHIM_UNIT_ORDER]);
}

/* ---- Blocks -------------------------------------------------------------- */

static void small_feed_locked(struct shim_zone *z, uint32_t unit)
{
	pcpi_buddy_add(&z->small, unit << SHIM_UNIT_ORDER, SHIM_UNIT_PAGES);
	shim_pool.used[unit] = 0;
}

static uint32_t small_take_locked(struct shim_zone *z, unsigned order)
{
	uint32_t pfn = pcpi_buddy_take(&z->small, order);

	if (pfn == PCPI_NO_PFN) {
		uint32_t unit = pcpi_buddy_take(&z->big, 0);

		if (unit == PCPI_NO_PFN)
			return unit;
		small_feed_locked(z, unit);
		pfn = pcpi_buddy_take(&z->small, order);
	}
	shim_pool.used[pfn >> SHIM_UNIT_ORDER] =
		(uint16_t)(shim_pool.used[pfn >> SHIM_UNIT_ORDER] +
			   (1u << order));
	z->small_used += 1u << order;
	return pfn;
}

static uint32_t take_locked(struct shim_zone *z, unsigned order)
{
	uint32_t unit;

	if (order < SHIM_UNIT_ORDER)
		return small_take_locked(z, order);
	unit = pcpi_buddy_take(&z->big, order - SHIM_UNIT_ORDER);
	return unit == PCPI_NO_PFN ? unit : unit << SHIM_UNIT_ORDER;
}

/* Some of the units may have left their zone (hugetlb.c). */
static void units_give_locked(uint32_t unit, unsigned order)
{
	uint8_t *zone = &shim_pool.unit_zone[unit];
	uint32_t units = UINT32_C(1) << order;

	if (shim_find_other(zone, zone[0], units) == units) {
		pcpi_buddy_give(&shim_pool.zones[zone[0]].big, unit, order);
		return;
	}
	for (uint32_t i = 0; i < units; i++)
		pcpi_buddy_give(&shim_pool.zones[zone[i]].big, unit + i, 0);
}

static void give_locked(uint32_t pfn, unsigned order)
{
	struct shim_zone *z = &shim_pool.zones[shim_pool_zone(pfn)];
	uint32_t unit = pfn >> SHIM_UNIT_ORDER;

	if (order >= SHIM_UNIT_ORDER) {
		units_give_locked(unit, order - SHIM_UNIT_ORDER);
		return;
	}
	pcpi_buddy_give(&z->small, pfn, order);
	z->small_used -= 1u << order;
	shim_pool.used[unit] = (uint16_t)(shim_pool.used[unit] - (1u << order));
	if (shim_pool.used[unit] == 0) {
		pcpi_buddy_remove(&z->small, unit << SHIM_UNIT_ORDER,
				  SHIM_UNIT_PAGES);
		pcpi_buddy_give(&z->big, unit, 0);
	}
}

uint32_t shim_pool_take(enum shim_zone_id zone, unsigned order)
{
	struct shim_zone *z = &shim_pool.zones[zone];
	uint32_t pfn;

	if (!shim_pool_lock())
		return PCPI_NO_PFN;
	pfn = take_locked(z, order);
	if (pfn == PCPI_NO_PFN) {
		if (zone == SHIM_HUGETLB) {
			shim_pool_unlock();
			return pfn;
		}
		if (!grow_locked(zone))
			return PCPI_NO_PFN;
		pfn = take_locked(z, order);
	}
	if (pfn != PCPI_NO_PFN)
		shim_pool_note(pfn, order);
	shim_pool_unlock();
	return pfn;
}

/* A block is with a thread of this copy: a child that hasn't got the thread may have it
 * back. */
void shim_pool_note(uint32_t pfn, unsigned order)
{
	/* relaxed: read under the lock. */
	pcpi_store_relaxed(&shim_range.heads[pfn],
			   shim_free(order, 0, shim_range.copy));
}

void shim_pool_retain(int64_t pages)
{
	/* relaxed: a count that may be late. */
	pcpi_fetch_add_relaxed(&shim_pool.retained_pages, pages);
}

bool shim_pool_full(uint32_t pages)
{
	/* relaxed: a count that may be late. */
	int64_t kept = pcpi_load_relaxed(&shim_pool.retained_pages);

	return kept + (int64_t)pages > (int64_t)shim_pool.limit_pages;
}

uint32_t shim_pool_small_used(enum shim_zone_id zone)
{
	/* relaxed: a count that may be late. */
	return pcpi_load_relaxed(&shim_pool.zones[zone].small_used);
}

/* ---- Parked extents ------------------------------------------------------ */

static void park(uint32_t pfn, unsigned order)
{
	/* relaxed: the exchange below publishes. */
	uint32_t first = pcpi_load_relaxed(&shim_pool.parked);

	do
		pcpi_store_relaxed(&shim_range.heads[pfn],
				   shim_parked(order, first));
	/* pairs with parked_settle_locked(). */
	while (!pcpi_cas_acq_rel(&shim_pool.parked, &first, pfn + 1));
}

static void parked_settle_locked(void)
{
	uint32_t at;

	/* relaxed: a look that saves the exchange. */
	if (pcpi_likely(!pcpi_load_relaxed(&shim_pool.parked)))
		return;
	/* pairs with park(). */
	at = pcpi_exchange_acq_rel(&shim_pool.parked, 0u);
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
		shim_fill(&shim_range.pages[pfn], SHIM_PAGE_DIRTY, high);
		shim_pool_retain(high);
	}
	if (!shim_pool_lock()) {
		park(pfn, order);
		return;
	}
	/* relaxed: P1. */
	pcpi_store_relaxed(&shim_range.heads[pfn], UINT64_C(0));
	give_locked(pfn, order);
	shim_pool_unlock();
	if (pcpi_unlikely(high && shim_pool_full(0)))
		shim_pool_press();
}

/* ---- Claims -------------------------------------------------------------- */

/* The windows up to this page, all in the base zone. */
static bool windows_reach_locked(uint32_t end)
{
	while (shim_pool.windows * (uint64_t)SHIM_WINDOW_PAGES < end)
		if (!grow_locked(SHIM_BASE))
			return false;
	return true;
}

/* Is the page free in a buddy?  Then takes it. */
static bool page_take_locked(uint32_t pfn)
{
	struct shim_zone *z = &shim_pool.zones[shim_pool_zone(pfn)];
	uint32_t unit = pfn >> SHIM_UNIT_ORDER;

	if (shim_pool_zone(pfn) == SHIM_HUGETLB)
		return false;
	if (pcpi_buddy_is_free(&z->big, unit)) {
		pcpi_buddy_range_take(&z->big, unit, 1);
		small_feed_locked(z, unit);
	}
	if (!pcpi_buddy_is_free(&z->small, pfn))
		return false;
	pcpi_buddy_range_take(&z->small, pfn, 1);
	shim_pool.used[unit]++;
	z->small_used++;
	return true;
}

/* Is the page part of an extent that a thread had, of which there is none here since a
 * fork?  Then it is free. */
static bool page_recover_locked(uint32_t pfn)
{
	for (unsigned order = 0; order < SHIM_ORDERS; order++) {
		uint32_t head = pfn & ~((UINT32_C(1) << order) - 1);
		uint64_t w = shim_head(head);
		uint32_t pages = UINT32_C(1) << shim_order(w);

		if (shim_kind(w) != SHIM_FREE || pfn - head >= pages ||
		    shim_of_copy(w, shim_range.copy))
			continue;
		shim_fill(&shim_range.pages[head], SHIM_PAGE_DIRTY, pages);
		shim_pool_retain(pages);
		/* relaxed: P1. */
		pcpi_store_relaxed(&shim_range.heads[head], UINT64_C(0));
		give_locked(head, shim_order(w));
		return true;
	}
	return false;
}

/* The page becomes mapped: an extent of its own, or again a part of one. */
static bool page_claim_locked(uint32_t pfn)
{
	uint32_t head = shim_extent_of(pfn);
	uint64_t w;

	if (head == PCPI_NO_PFN) {
		if (!page_take_locked(pfn) &&
		    !(page_recover_locked(pfn) && page_take_locked(pfn)))
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
	shim_hugetlb_leave(first, end);
	if (!shim_pool_lock_long())
		return false;
	if (!windows_reach_locked(end))
		return false;
	for (pfn = first; pfn < end; pfn++)
		if (!page_claim_locked(pfn))
			break;
	shim_pool_unlock();
	return pfn == end;
}

bool shim_pool_claim(uint32_t first, uint32_t end)
{
	enum { TRIES = 20 };

	for (int i = 0; i < TRIES; i++) {
		if (claim_once(first, end) || shim_pool_lost())
			return true;
		raw_yield();
	}
	return false;
}

/* Of which windows (64 GiB at most, pool_range.c) a copy of the range has parts that
 * don't merge with what it copied: the kernel keeps areas apart that came through a fork
 * and new ones. */
static uint8_t
	window_pieces[((size_t)1 << 36) >> SHIM_PAGE_SHIFT >> SHIM_MAX_ORDER];

bool shim_pool_in_pieces(uint32_t pfn)
{
	/* relaxed: set before the pages are free. */
	return pcpi_load_relaxed(&window_pieces[pfn / SHIM_WINDOW_PAGES]);
}

static void pieces_note(uint32_t first, uint32_t end)
{
	/* relaxed: changes only between threads. */
	if (!pcpi_load_relaxed(&shim_range.copy))
		return;
	for (; first < end; first += SHIM_WINDOW_PAGES)
		/* relaxed: who gives the pages back publishes it. */
		pcpi_store_relaxed(&window_pieces[first / SHIM_WINDOW_PAGES],
				   (uint8_t)1);
	/* relaxed: the same. */
	pcpi_store_relaxed(&window_pieces[(end - 1) / SHIM_WINDOW_PAGES],
			   (uint8_t)1);
}

long shim_pool_renew(uint32_t first, uint32_t end)
{
	size_t bytes = (size_t)(end - first) << SHIM_PAGE_SHIFT;
	bool huge = shim_pool_zone(first) != SHIM_BASE;
	long r = raw_mmap(
		shim_at(first), bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (raw_failed(r))
		return r;
	pieces_note(first, end);
	if (huge)
		raw_madvise(shim_at(first), bytes, MADV_HUGEPAGE);
	return 0;
}
