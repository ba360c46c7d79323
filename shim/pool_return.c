/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_return.c - memory back to the kernel, and the end of a pool.
 *
 *   trim      free units of 2 MiB that were touched lose their memory, and stay free
 *   press     the same down to half of the bound, when more than that is kept
 *   tick      at most once a second: half of what is kept, and the slots of large
 *             classes that nobody took from.  It is asked for by calls that come
 *             anyway, as there is no thread: a program that maps nothing any more
 *             keeps what it has, which shim_control.retain bounds
 *   dissolve  the range is forgotten: what the program has of it is memory like any
 *             other from then on, and what was free is unmapped
 *
 * Failure: memory that the kernel doesn't take back stays free and dirty.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool_core.h"

#include <time.h>

#include "control.h"
#include "hugetlb.h"
#include "mem.h"
#include "raw.h"
#include "slots.h"

/* ---- Memory back to the kernel ------------------------------------------- */

/* Takes the next free unit at or after *unit that has memory; or PCPI_NO_PFN.  Of the
 * pool of huge pages, or any. */
static uint32_t dirty_unit_take(uint32_t *unit, bool any)
{
	uint32_t found = PCPI_NO_PFN;

	if (!shim_pool_lock())
		return found;
	for (; *unit < shim_pool.windows * SHIM_WINDOW_UNITS; ++*unit) {
		uint32_t pfn = *unit << SHIM_UNIT_ORDER;
		struct pcpi_buddy *big =
			&shim_pool.zones[shim_pool_zone(pfn)].big;

		if (pcpi_buddy_is_free(big, *unit) &&
		    (shim_pool_zone(pfn) == SHIM_HUGETLB ||
		     (any && shim_find(&shim_range.pages[pfn], SHIM_PAGE_DIRTY,
				       SHIM_UNIT_PAGES) < SHIM_UNIT_PAGES))) {
			pcpi_buddy_range_take(big, *unit, 1);
			shim_pool_note(pfn, SHIM_UNIT_ORDER);
			found = (*unit)++;
			break;
		}
	}
	shim_pool_unlock();
	return found;
}

/* Clears the pages' DIRTY and counts them. */
static uint32_t pages_clean(uint32_t pfn, uint32_t pages)
{
	uint32_t dirty = 0;

	for (uint32_t i = 0; i < pages; i++)
		dirty += shim_range.pages[pfn + i] & SHIM_PAGE_DIRTY;
	shim_fill(&shim_range.pages[pfn], 0, pages);
	return dirty;
}

/* A taken unit loses its memory and is free. */
static void unit_return(uint32_t pfn)
{
	size_t bytes = (size_t)SHIM_UNIT_PAGES << SHIM_PAGE_SHIFT;
	uint32_t dirty;

	shim_hugetlb_drop(pfn, pfn + SHIM_UNIT_PAGES);
	if (!raw_failed(raw_madvise(shim_at(pfn), bytes, MADV_DONTNEED))) {
		dirty = pages_clean(pfn, SHIM_UNIT_PAGES);
		shim_pool_retain(-(int64_t)dirty);
		/* relaxed: a count. */
		pcpi_fetch_add_relaxed(&shim_pool.returned_pages, dirty);
	}
	shim_pool_give(pfn, SHIM_UNIT_ORDER, 0);
}

void shim_pool_trim(uint64_t keep)
{
	uint32_t unit = 0, taken;

	/* relaxed: a count. */
	while (pcpi_load_relaxed(&shim_pool.retained_pages) > (int64_t)keep &&
	       (taken = dirty_unit_take(&unit, true)) != PCPI_NO_PFN)
		unit_return(taken << SHIM_UNIT_ORDER);
}

void shim_pool_return_hugetlb(void)
{
	uint32_t unit = 0, taken;

	shim_slots_empty();
	while ((taken = dirty_unit_take(&unit, false)) != PCPI_NO_PFN)
		unit_return(taken << SHIM_UNIT_ORDER);
}

void shim_pool_press(void)
{
	/* 16 MiB: the units were looked at not long ago. */
	enum { AGAIN_PAGES = 1 << 12 };
	/* relaxed: counts. */
	int64_t kept = pcpi_load_relaxed(&shim_pool.retained_pages);

	if (kept <
	    pcpi_load_relaxed(&shim_pool.press_pages)) /* relaxed: the same */
		return;
	shim_pool_trim(shim_pool.limit_pages / 2);
	/* relaxed: counts. */
	kept = pcpi_load_relaxed(&shim_pool.retained_pages) + AGAIN_PAGES;
	pcpi_store_relaxed(&shim_pool.press_pages, kept);
}

void shim_pool_tick(void)
{
	struct timespec now;
	uint32_t last;

	if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now))
		return;
	/* relaxed: once a second, about. */
	last = pcpi_load_relaxed(&shim_pool.tick_s);
	if (last == (uint32_t)now.tv_sec)
		return;
	pcpi_store_relaxed(&shim_pool.tick_s, (uint32_t)now.tv_sec);
	shim_slots_age();
	/* relaxed: a count. */
	shim_pool_trim((uint64_t)pcpi_max(
		pcpi_load_relaxed(&shim_pool.retained_pages) / 2, INT64_C(0)));
}

void shim_pool_drop(void)
{
	shim_fork_check();
	if (!shim_range.bytes)
		return;
	shim_slots_empty();
	shim_pool_trim(0);
}

/* ---- The end ------------------------------------------------------------- */

void shim_range_forget(void)
{
	/* pairs with shim_pool_ready(). */
	pcpi_store_release(&shim_pool.state, (uint32_t)POOL_GONE);
	/* pairs with shim_inside(). */
	pcpi_store_release(&shim_range.bytes, (size_t)0);
}

/* Takes the next free run at or after page *at, and returns its pages; 0: none. */
static uint32_t run_take(uint32_t *at, uint32_t *first)
{
	uint32_t pages = 0;

	if (!shim_pool_lock_long())
		return 0;
	for (; *at < shim_pool.windows * (uint32_t)SHIM_WINDOW_PAGES && !pages;) {
		struct shim_zone *z = &shim_pool.zones[shim_pool_zone(*at)];
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
	shim_pool_unlock();
	return pages;
}

/* Tells a child that is forked meanwhile that free memory has to go. */
static void dissolving_set(bool yes)
{
	/* pairs with copy_look(): a child sees what its parent's thread did. */
	pcpi_store_release(&shim_pool.dissolving, (uint32_t)yes);
}

/* Unmaps pages of ours.  A child goes on behind them: once unmapped, they may be a
 * mapping of another thread's. */
static void run_unmap(uint32_t first, uint32_t pages)
{
	/* pairs with copy_look(). */
	pcpi_store_release(&shim_pool.lost_at, first + pages);
	raw_munmap(shim_at(first), (size_t)pages << SHIM_PAGE_SHIFT);
}

/* The buddies are used no more: the lock is taken for good. */
static void buddies_unmap(void)
{
	if (!shim_pool_lock_long())
		return;
	for (int i = 0; i < SHIM_ZONES; i++)
		for (int k = 0; k < 2; k++)
			raw_munmap((uintptr_t)shim_pool.zones[i].tables[k],
				   shim_round_page(
					   shim_pool.zones[i].table_bytes[k]));
}

/* The part of a table beyond the windows. */
static void table_cut(void *table, size_t used, size_t bytes)
{
	size_t keep = shim_round_page(used);

	if (keep < shim_round_page(bytes))
		raw_munmap((uintptr_t)table + keep,
			   shim_round_page(bytes) - keep);
}

static void unused_unmap(void)
{
	uint64_t pages = shim_pool.windows * (uint64_t)SHIM_WINDOW_PAGES;
	uint64_t max = shim_pool.max_bytes >> SHIM_PAGE_SHIFT;

	run_unmap((uint32_t)pages, (uint32_t)(max - pages));
	table_cut(shim_range.heads, pages * sizeof(*shim_range.heads),
		  max * sizeof(*shim_range.heads));
	table_cut(shim_range.pages, pages, max);
}

void shim_pool_dissolve(bool unmap)
{
	uint32_t at = 0, first = 0, pages, state;

	shim_fork_check();
	/* pairs with shim_pool_ready(). */
	state = pcpi_exchange_acq_rel(&shim_pool.state, (uint32_t)POOL_GONE);
	if (state != POOL_READY)
		return;
	/* From then on nobody sees to parts of huge pages. */
	shim_hugetlb_end(HUGETLB_OVER);
	dissolving_set(unmap);
	shim_range_forget();
	shim_slots_empty();
	while ((pages = run_take(&at, &first)) != 0) {
		size_t bytes = (size_t)pages << SHIM_PAGE_SHIFT;

		if (unmap)
			run_unmap(first, pages);
		else
			raw_madvise(shim_at(first), bytes, MADV_DONTNEED);
	}
	if (unmap && !shim_pool_lost()) {
		unused_unmap();
		buddies_unmap();
	}
	dissolving_set(false);
}

void shim_pool_populate(size_t bytes)
{
	uint32_t pages = (uint32_t)pcpi_min(shim_pages(bytes),
					    (uint64_t)SHIM_WINDOW_PAGES);
	unsigned order = shim_order_for(pages);
	uint32_t pfn;

	order = pcpi_max(order, (unsigned)SHIM_UNIT_ORDER);
	pfn = shim_control.hugetlb ? shim_hugetlb_take(order)
				   : PCPI_NO_PFN;
	if (pfn == PCPI_NO_PFN)
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
	n->grown_bytes = pcpi_load_relaxed(&shim_pool.windows) *
			 (uint64_t)shim_window_bytes();
	n->retained_bytes =
		(uint64_t)pcpi_max(pcpi_load_relaxed(&shim_pool.retained_pages),
				   INT64_C(0))
		<< SHIM_PAGE_SHIFT;
	n->returned_bytes = pcpi_load_relaxed(&shim_pool.returned_pages)
			    << SHIM_PAGE_SHIFT;
	/* relaxed: a state that may change meanwhile. */
	n->dissolved = pcpi_load_relaxed(&shim_pool.state) == POOL_GONE &&
		       shim_pool.max_bytes;
}
