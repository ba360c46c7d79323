/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetlb.c - memory from the kernel's pool of huge pages.
 *
 * Owns: which units of 2 MiB are from the pool (the zone SHIM_HUGETLB), and when that
 * ends.
 *
 *   take    a free block of the zone; else a block of the zone HUGE whose memory is
 *           replaced: mapped elsewhere, which the kernel refuses when it can't promise
 *           all of it; populated, as a control group or a cpuset may break the
 *           promise; moved over the block.  From then on no access to it can fail
 *   drop    back to the zone HUGE, empty
 *   leave   back to the zone HUGE with its contents (hugetlb_leave.c)
 *   end     all leave, for good
 *
 * Only extents from 2 MiB up come from here, whole ones, so that a mapping is one area to
 * the kernel; of classes that are known to be warm.  They stay warm, as all of it is
 * resident and nothing shows any more what was touched.
 *
 * What the kernel can't do with such pages must not be seen:
 *
 *   a part of one      protection, another mapping on top, advice that stays, moves:
 *                      the units leave first
 *   copy-on-write      after a fork the owner's first write takes a page from the
 *                      pool, and if there is none it takes the child's, which is then
 *                      killed by SIGBUS; what is reserved, is reserved for the owner
 *                      only.  So all units leave before a fork, and the process that
 *                      forked doesn't take any again.  The child may.  For a fork that
 *                      nobody hears of the pool must have as many pages again when
 *                      one is taken
 *   giving back        MADV_DONTNEED would give the page to others and lose the
 *                      promise: a unit is dropped instead
 *
 *   H1  A unit of the zone is populated, and mapped as it was handed out.
 *   H2  A unit changes its zone under the pool's lock, and to HUGE with our lock held.
 *   H3  Once the gate is closed and nobody is inside, no unit comes to the zone.
 *
 * Concurrency: our lock is held by who makes units leave, and waited for; the gate
 * counts who makes them come.  Neither is left while a signal is handled.
 * Failure: transparent huge pages, and the reason is in the statistics.
 * Proved by tests/shim/hugetlb, and the contract under it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hugetlb.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "bits.h"
#include "control.h"
#include "mem.h"
#include "pool_core.h"
#include "range.h"
#include "raw.h"
#include "serve.h"
#include "table.h"

#define MAP_HUGE_2M (21 << 26)

struct shim_hugetlb shim_hugetlb;

/* ---- Locks --------------------------------------------------------------- */

static void signals_block(uint64_t *mask)
{
	uint64_t all = UINT64_MAX;

	raw6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)mask,
	     sizeof(all), 0, 0);
}

static void signals_restore(const uint64_t *mask)
{
	raw6(SYS_rt_sigprocmask, SIG_SETMASK, (long)mask, 0, sizeof(*mask), 0,
	     0);
}

void shim_hugetlb_lock(uint64_t *mask)
{
	signals_block(mask);
	/* pairs with shim_hugetlb_unlock(). */
	while (pcpi_exchange_acq_rel(&shim_hugetlb.lock, 1u))
		raw_yield();
}

void shim_hugetlb_unlock(const uint64_t *mask)
{
	/* pairs with shim_hugetlb_lock(). */
	pcpi_store_release(&shim_hugetlb.lock, 0u);
	signals_restore(mask);
}

static bool gate_enter(uint64_t *mask)
{
	signals_block(mask);
	/* pairs with gate_close(). */
	if (!(pcpi_fetch_add_acq_rel(&shim_hugetlb.gate, 1u) & HUGETLB_CLOSED))
		return true;
	/* pairs with gate_close(). */
	pcpi_fetch_add_acq_rel(&shim_hugetlb.gate, UINT32_MAX);
	signals_restore(mask);
	return false;
}

static void gate_leave(const uint64_t *mask)
{
	/* pairs with gate_close(). */
	pcpi_fetch_add_acq_rel(&shim_hugetlb.gate, UINT32_MAX);
	signals_restore(mask);
}

/* Returns when nobody is inside. */
static void gate_close(void)
{
	uint32_t was = 0;

	/* pairs with gate_enter() and gate_leave(). */
	while (!(was & HUGETLB_CLOSED) &&
	       !pcpi_cas_acq_rel(&shim_hugetlb.gate, &was, was | HUGETLB_CLOSED))
		;
	/* pairs with gate_leave(). */
	while (pcpi_load_acquire(&shim_hugetlb.gate) != HUGETLB_CLOSED)
		raw_yield();
}

/* ---- Units --------------------------------------------------------------- */

bool shim_hugetlb_any(uint32_t first, uint32_t end)
{
	if (!shim_hugetlb_used() || first >= end)
		return false;
	for (uint32_t at = shim_unit_down(first); at < end;
	     at += SHIM_UNIT_PAGES)
		if (shim_pool_zone(at) == SHIM_HUGETLB)
			return true;
	return false;
}

static void state_set(enum shim_hugetlb_state state)
{
	/* relaxed: for the statistics, and a decision that may be late. */
	pcpi_store_relaxed(&shim_hugetlb.state, (uint32_t)state);
	/* relaxed: once a second, about. */
	pcpi_store_relaxed(&shim_hugetlb.short_s,
			   pcpi_load_relaxed(&shim_pool.tick_s));
}

/* The units of a block that nobody else has are from the pool now, and all zero. */
static bool units_set(uint32_t pfn, uint32_t units)
{
	uint32_t pages = units << SHIM_UNIT_ORDER, dirty = 0;

	if (!shim_pool_lock_long())
		return false;
	for (uint32_t i = 0; i < units; i++)
		/* relaxed: who gets the block gets it by other means. */
		pcpi_store_relaxed(
			&shim_pool.unit_zone[(pfn >> SHIM_UNIT_ORDER) + i],
			(uint8_t)SHIM_HUGETLB);
	/* pairs with shim_hugetlb_used(). */
	pcpi_fetch_add_release(&shim_hugetlb.units, units);
	shim_pool_unlock();
	for (uint32_t i = 0; i < pages; i++)
		dirty += shim_range.pages[pfn + i] & SHIM_PAGE_DIRTY;
	if (dirty)
		shim_pool_retain(-(int64_t)dirty);
	shim_fill(&shim_range.pages[pfn], 0, pages);
	return true;
}

/* A unit, free or not, is one of the zone HUGE from now on. */
static void unit_unset_locked(uint32_t unit)
{
	struct pcpi_buddy *from = &shim_pool.zones[SHIM_HUGETLB].big;

	if (pcpi_buddy_is_free(from, unit)) {
		pcpi_buddy_range_take(from, unit, 1);
		pcpi_buddy_give(&shim_pool.zones[SHIM_HUGE].big, unit, 0);
	}
	/* relaxed: who gets the unit gets it by other means. */
	pcpi_store_relaxed(&shim_pool.unit_zone[unit], (uint8_t)SHIM_HUGE);
	/* pairs with shim_hugetlb_used(). */
	pcpi_fetch_add_release(&shim_hugetlb.units, UINT32_MAX);
}

static void unit_unset(uint32_t unit)
{
	if (!shim_pool_lock_long())
		return;
	unit_unset_locked(unit);
	shim_pool_unlock();
}

/* ---- Taking -------------------------------------------------------------- */

/* May the pool be used by this process as it is?  Its rights may change. */
static bool safe(void)
{
	if (shim_hugetlb_can_hold())
		return true;
	state_set(HUGETLB_UNSAFE);
	return false;
}

/* A mapping of so many units, for which the kernel reserves all. */
static long units_map(uint32_t units)
{
	size_t bytes = (size_t)units << (SHIM_UNIT_ORDER + SHIM_PAGE_SHIFT);

	return raw_mmap(0, bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_HUGE_2M,
			-1, 0);
}

/* Has the pool as many again, for the copies after a fork that nobody tells us of?  They
 * are promised to us for a moment, and then left to those copies. */
static bool copies_covered(uint32_t units)
{
	/* relaxed: a count that may be late. */
	uint32_t all = pcpi_load_relaxed(&shim_hugetlb.units) + units;
	long at = units_map(all);

	if (raw_failed(at))
		return false;
	raw_munmap((uintptr_t)at,
		   (size_t)all << (SHIM_UNIT_ORDER + SHIM_PAGE_SHIFT));
	return true;
}

/* Memory of the pool in the place of what the pages have. */
static enum shim_hugetlb_state pages_replace(uint32_t pfn, uint32_t units)
{
	size_t bytes = (size_t)units << (SHIM_UNIT_ORDER + SHIM_PAGE_SHIFT);
	enum shim_hugetlb_state state = HUGETLB_OPEN;
	long at = units_map(units);

	if (raw_failed(at))
		return at == -ENOMEM ? HUGETLB_SHORT : HUGETLB_REFUSED;
	if (!copies_covered(units))
		state = HUGETLB_SHORT;
	else if (raw_failed(raw_madvise((uintptr_t)at, bytes,
					MADV_POPULATE_WRITE)))
		state = HUGETLB_BOUND;
	else if (raw_failed(raw_mremap((uintptr_t)at, bytes, bytes,
				       MREMAP_MAYMOVE | MREMAP_FIXED,
				       shim_at(pfn))))
		state = HUGETLB_REFUSED;
	if (state != HUGETLB_OPEN)
		raw_munmap((uintptr_t)at, bytes);
	return state;
}

static bool block_fill(uint32_t pfn, uint32_t units)
{
	enum shim_hugetlb_state state;
	uint64_t mask;
	bool done;

	if (!gate_enter(&mask))
		return false;
	state = pages_replace(pfn, units);
	done = state == HUGETLB_OPEN && units_set(pfn, units);
	if (state == HUGETLB_OPEN && !done)
		shim_pool_renew(pfn, pfn + (units << SHIM_UNIT_ORDER));
	gate_leave(&mask);
	state_set(state);
	return done;
}

/* Does the program write to mappings of that order?  Who populates says so. */
static bool used(unsigned order)
{
	/* relaxed: a decision that may be late. */
	uint32_t heat = pcpi_load_relaxed(&shim_classes[order].heat);

	return heat == SHIM_WARM ||
	       (heat == SHIM_UNKNOWN && shim_control.populate);
}

bool shim_hugetlb_wanted(unsigned order)
{
	uint32_t state;

	if (pcpi_likely(!shim_control.hugetlb) || order < SHIM_UNIT_ORDER ||
	    !used(order))
		return false;
	/* relaxed: the same. */
	if (pcpi_load_relaxed(&shim_hugetlb.gate) & HUGETLB_CLOSED)
		return false;
	/* relaxed: the same. */
	state = pcpi_load_relaxed(&shim_hugetlb.state);
	if (state == HUGETLB_OPEN)
		return true;
	/* relaxed: the same. */
	return state != HUGETLB_REFUSED &&
	       pcpi_load_relaxed(&shim_hugetlb.short_s) !=
		       pcpi_load_relaxed(&shim_pool.tick_s);
}

uint32_t shim_hugetlb_take(unsigned order)
{
	uint32_t pfn = shim_pool_take(SHIM_HUGETLB, order);

	if (pfn != PCPI_NO_PFN || !safe())
		return pfn;
	pfn = shim_pool_take(SHIM_HUGE, order);
	if (pfn == PCPI_NO_PFN ||
	    block_fill(pfn, UINT32_C(1) << (order - SHIM_UNIT_ORDER)))
		return pfn;
	shim_pool_give(pfn, order, 0);
	return PCPI_NO_PFN;
}

/* ---- Leaving ------------------------------------------------------------- */

void shim_hugetlb_drop(uint32_t first, uint32_t end)
{
	uint64_t mask;

	if (!shim_hugetlb_any(first, end))
		return;
	shim_hugetlb_lock(&mask);
	for (uint32_t at = shim_unit_down(first); at < end;
	     at += SHIM_UNIT_PAGES)
		if (shim_pool_zone(at) == SHIM_HUGETLB &&
		    shim_pool_renew(at, at + SHIM_UNIT_PAGES) == 0)
			unit_unset(at >> SHIM_UNIT_ORDER);
	shim_hugetlb_unlock(&mask);
}

/* Pages that have to leave as one, so that they stay one area to the kernel: those of
 * the extent that the program has there, or of a unit.  Returns where they end. */
static uint32_t piece_of(uint32_t at, uint32_t *first)
{
	uint32_t head = shim_extent_of(at);

	*first = head == PCPI_NO_PFN ? shim_unit_down(at) : head;
	return head == PCPI_NO_PFN
		       ? *first + SHIM_UNIT_PAGES
		       : head + (UINT32_C(1) << shim_order(shim_head(head)));
}

/* From the first page on, as far as they are from the pool: where that ends. */
static uint32_t run_end(uint32_t at, uint32_t end)
{
	while (at < end && shim_pool_zone(at) == SHIM_HUGETLB)
		at += SHIM_UNIT_PAGES;
	return at;
}

/* All as one area: whole units that the program gave back, too.  What it changed itself
 * in an extent must stay so. */
static bool piece_leave_whole(uint32_t at, uint32_t end)
{
	if (!shim_range_plain(at, end) || !shim_hugetlb_run_leave(at, end))
		return false;
	for (; at < end; at += SHIM_UNIT_PAGES)
		if (shim_pool_zone(at) == SHIM_HUGETLB)
			unit_unset(at >> SHIM_UNIT_ORDER);
	return true;
}

/* The lock is held. */
static void piece_leave(uint32_t at, uint32_t end)
{
	if (run_end(at, end) < end && piece_leave_whole(at, end))
		return;
	while (at < end) {
		uint32_t stop = run_end(at, end);

		if (stop > at && shim_hugetlb_run_leave(at, stop))
			for (; at < stop; at += SHIM_UNIT_PAGES)
				unit_unset(at >> SHIM_UNIT_ORDER);
		at = stop + SHIM_UNIT_PAGES;
	}
}

void shim_hugetlb_leave(uint32_t first, uint32_t end)
{
	uint64_t mask;

	if (!shim_hugetlb_any(first, end))
		return;
	shim_hugetlb_lock(&mask);
	for (uint32_t at = shim_unit_down(first); at < end;) {
		uint32_t from, to = at + SHIM_UNIT_PAGES;

		if (shim_pool_zone(at) == SHIM_HUGETLB) {
			to = piece_of(at, &from);
			piece_leave(from, to);
		}
		at = to;
	}
	shim_hugetlb_unlock(&mask);
}

void shim_hugetlb_end(enum shim_hugetlb_state why)
{
	/* Of a copy, nobody is inside that was. */
	shim_fork_check();
	if (!shim_control.hugetlb)
		return;
	gate_close();
	state_set(why);
	/* What is left in a range that is forgotten is not ours. */
	if (!shim_hugetlb_used() || !shim_range_there())
		return;
	/* What is free needs no copy. */
	shim_pool_return_hugetlb();
	shim_hugetlb_leave(0, shim_pool.windows * (uint32_t)SHIM_WINDOW_PAGES);
}

/* ---- Forks --------------------------------------------------------------- */

static void fork_prepare(void)
{
	shim_hugetlb_end(HUGETLB_FORKED);
}

void shim_hugetlb_start(void)
{
	if (shim_control.hugetlb)
		pthread_atfork(fork_prepare, NULL, NULL);
}

/* From a unit of the pool on, as far as nothing there is the program's: where that
 * ends. */
static uint32_t free_end(uint32_t at, uint32_t end)
{
	end = run_end(at, end);
	while (at < end && shim_extent_of(at) == PCPI_NO_PFN)
		at += SHIM_UNIT_PAGES;
	return at;
}

/* Copied units from the first on leave; returns where they end.  The parent may have
 * taken the copy: of what is free nothing is read.  An extent that can't be read is
 * lost to the program, and nobody else gets its memory. */
static uint32_t copied_leave(uint32_t at, uint32_t end, bool lost)
{
	uint32_t head, to = free_end(at, end);
	bool done;

	if (to > at) {
		done = shim_pool_renew(at, to) == 0;
	} else {
		to = run_end(at, piece_of(at, &head));
		done = shim_hugetlb_run_leave(at, to);
		if (!done && head != PCPI_NO_PFN)
			shim_extent_taint(head);
	}
	for (; at < to; at += SHIM_UNIT_PAGES)
		if (done && !lost)
			unit_unset_locked(at >> SHIM_UNIT_ORDER);
	return to;
}

void shim_hugetlb_copied(bool lost)
{
	uint32_t pages = shim_pool.windows * (uint32_t)SHIM_WINDOW_PAGES;

	if (!shim_control.hugetlb)
		return;
	/* relaxed: one thread of the child is here, and no other goes on. */
	pcpi_store_relaxed(&shim_hugetlb.lock, 0u);
	/* relaxed: the same. */
	pcpi_store_relaxed(&shim_hugetlb.gate, lost ? HUGETLB_CLOSED : 0);
	state_set(lost ? HUGETLB_OVER : HUGETLB_OPEN);
	/* After a fork that no handler saw. */
	for (uint32_t at = 0; shim_hugetlb_used() && at < pages;) {
		if (shim_pool_zone(at) != SHIM_HUGETLB)
			at += SHIM_UNIT_PAGES;
		else
			at = copied_leave(at, pages, lost);
	}
}
