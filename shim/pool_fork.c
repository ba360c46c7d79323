/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_fork.c - what a child of fork() does with its copy of the range.
 *
 * There are no fork handlers.  A word in a page that the kernel clears in a child
 * (MADV_WIPEONFORK) tells a copied address space from a shared one (vfork).  Every
 * call looks at it first, so a child's threads find out before any of them is at
 * something, and nobody waits for what a thread of the parent has:
 *
 *   the lock was free    all is consistent; the range is used on
 *   the lock was taken, or free memory was being unmapped for good
 *                        buddies may be half changed: the range is forgotten.  The
 *                        words say at any time what the program has; that becomes
 *                        memory like any other, and all else is unmapped, so that the
 *                        kernel's view is the program's from then on
 *   an extent was BUSY   its word says in which copy: table.c takes it over, tainted
 *   an extent was in a slot
 *                        its word says from now on that it is this copy's
 *   anything else        extents on their way to or from a slot are lost to the child,
 *                        until it asks for just these pages (pool.c)
 *
 * What is resident at that time is the parent's memory, too: to clear a page of it would
 * copy it first.  So each page is marked as inherited, and the first time that it would be
 * cleared, free or for MADV_DONTNEED, the kernel takes it back.
 *
 * Concurrency: one thread looks, without signals, and the others wait for that one.
 * A child that is made meanwhile goes on where the look was: what was unmapped once may
 * be another mapping now.
 * Failure: a hole that the kernel doesn't make (too many areas) stays memory.
 * Limit: a handler that interrupted a call of the shim, forks, and in the child both
 * maps memory and returns, must not do that while another thread maps.  What the call
 * had at the fork, and may put into a slot, is the parent's copy's: a thread that asks
 * for just these pages while another takes them out gets them, too.
 * Proved by tests/preload/test_fork.c.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "pool_core.h"

#include <signal.h>

#include "hugetlb.h"
#include "mem.h"
#include "raw.h"
#include "slots.h"
#include "table.h"

/* Unmaps [from, to), of which the program has nothing, and goes on from there. */
static void hole_unmap(uint32_t from, uint32_t to)
{
	shim_pool.lost_at = to;
	if (from < to)
		raw_munmap(shim_at(from), (size_t)(to - from)
						  << SHIM_PAGE_SHIFT);
}

/* The holes of one held extent; `from` is where the hole before it begins.  Returns
 * where the one at its end does. */
static uint32_t extent_holes_unmap(uint32_t head, uint64_t w, uint32_t from)
{
	uint32_t stop = head + (UINT32_C(1) << shim_order(w));

	for (uint32_t at = pcpi_max(head, from); at < stop; at++)
		if (shim_page_mapped(head, w, at)) {
			hole_unmap(from, at);
			from = at + 1;
		}
	return from;
}

/* All that the words don't say to be the program's. */
static void holes_unmap(void)
{
	uint32_t grown = shim_pool.windows * (uint32_t)SHIM_WINDOW_PAGES;
	uint32_t end = (uint32_t)(shim_pool.max_bytes >> SHIM_PAGE_SHIFT);
	uint32_t from = shim_pool.lost_at, at = 0;

	if (from >= end)
		return;
	while (at < grown) {
		uint64_t w = shim_head(at);
		uint32_t pages = 1;

		if (shim_held(w)) {
			pages = UINT32_C(1) << shim_order(w);
			if (at + pages > from)
				from = extent_holes_unmap(at, w, from);
		}
		at += pages;
	}
	hole_unmap(from, end);
}

/* Was somebody changing the list of free pages, or unmapping what is on it? */
static bool range_is_lost(void)
{
	/* pairs with dissolving_set() and run_unmap(). */
	bool dissolving = pcpi_load_acquire(&shim_pool.dissolving);

	/* relaxed: one thread of the child is here, and no other goes on. */
	return pcpi_load_relaxed(&shim_pool.lock) == LOCK_HELD || dissolving;
}

enum { WORD_BITS = 64 };

/* Marks all pages that were ever handed out.  Without memory for that, none. */
static void inherit(void)
{
	size_t bytes = shim_pool.max_bytes >> SHIM_PAGE_SHIFT >> 3;
	uint64_t *words = shim_range.inherited;

	if (!shim_range_there())
		return;
	if (!words)
		words = shim_table_map(bytes);
	if (!words)
		return;
	shim_fill(words, 0xff,
		  (size_t)shim_pool.windows * (SHIM_WINDOW_PAGES >> 3));
	/* pairs with shim_inherited_take(). */
	pcpi_store_release(&shim_range.inherited, words);
}

/* Clears bits of a word, and says whether any was set. */
static bool bits_take(uint64_t *word, uint64_t bits)
{
	/* relaxed: the swap looks again. */
	uint64_t w = pcpi_load_relaxed(word);

	while (w & bits)
		/* pairs with itself: other bits are other threads'. */
		if (pcpi_cas_acq_rel(word, &w, w & ~bits))
			return true;
	return false;
}

bool shim_inherited_take(uint32_t first, uint32_t end)
{
	/* pairs with inherit(). */
	uint64_t *words = pcpi_load_acquire(&shim_range.inherited);
	bool any = false;

	if (pcpi_likely(!words))
		return false;
	while (first < end) {
		uint32_t stop = (first | (WORD_BITS - 1)) + 1, n;

		n = pcpi_min(stop, end) - first;
		any |= bits_take(&words[first / WORD_BITS],
				 (UINT64_MAX >> (WORD_BITS - n))
					 << first % WORD_BITS);
		first += n;
	}
	return any;
}

static void copy_look(void)
{
	/* relaxed: one thread of the child is here, and no other goes on. */
	pcpi_fetch_add_relaxed(&shim_range.copy, 1u);
	if (range_is_lost()) {
		/* Without a range there is nothing to unmap; a part of it may be gone. */
		if (shim_range.bytes)
			shim_pool.lost_at = 0;
		else if (!shim_pool.dissolving)
			shim_pool.lost_at = UINT32_MAX;
		/* relaxed: the same. */
		pcpi_store_relaxed(&shim_pool.lock, (uint32_t)LOCK_LOST);
		shim_range_forget();
	}
	shim_hugetlb_copied(shim_pool_lost());
	if (shim_pool_lost()) {
		holes_unmap();
	} else {
		shim_slots_inherit();
		inherit();
	}
}

PCPI_COLD void shim_fork_look(void)
{
	uint32_t *copied = shim_range.copied, was = COPIED_YES;
	uint64_t all = UINT64_MAX, mask = 0;

	raw6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&mask,
	     sizeof(mask), 0, 0);
	/* pairs with itself: one thread of the child looks. */
	if (pcpi_cas_acq_rel(copied, &was, (uint32_t)COPIED_LOOKING)) {
		copy_look();
		/* pairs with shim_fork_check(). */
		pcpi_store_release(copied, (uint32_t)COPIED_NO);
	}
	/* pairs with the store above. */
	while (pcpi_load_acquire(copied) == COPIED_LOOKING)
		raw_yield();
	raw6(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask), 0,
	     0);
}
