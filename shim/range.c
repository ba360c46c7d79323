/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * range.c - calls that concern any pages of the reserved range.
 *
 * Owns: what becomes of an extent of which only a part is unmapped, protected,
 * advised or moved.
 *
 *   unmapped at the end   the length shrinks; the pages wait for the rest
 *   unmapped elsewhere    the pages are replaced by a mapping without access, which
 *                         frees their memory; FLIP in their bytes; tainted
 *   protection, policy, locks, advice that stays, another mapping on top
 *                         the kernel does it; tainted
 *
 * When the last page of a tainted extent is unmapped, its pages are replaced by new
 * memory, in one call for neighbours, and it is as good as never used.
 *
 * Concurrency: an extent is BUSY while its word and pages' bytes change; no lock.
 * Failure: the kernel's errno, and the pages stay the program's.
 * Proved by tests/preload/model.c.
 */
#include "range.h"

#include <errno.h>

#include "hugetlb.h"
#include "mem.h"
#include "raw.h"
#include "serve.h"
#include "stats.h"
#include "table.h"

enum {
	/* Less is cleared, which keeps huge pages whole; more goes back. */
	CLEAR_MAX_PAGES = 256,
	/* A shorter rest of an extent isn't worth a call. */
	TAIL_PAGES = 16,
};

/* ---- Looks --------------------------------------------------------------- */

bool shim_range_mapped(uint32_t first, uint32_t end)
{
	return shim_mapped_run(first, end) == end - first;
}

bool shim_range_any_mapped(uint32_t first, uint32_t end)
{
	return shim_hole_run(first, end) != end - first;
}

/* Calls of `each` with every held extent that has pages in the range, until it returns
 * false. */
static void extents_walk(uint32_t first, uint32_t end,
			 bool (*each)(uint32_t head))
{
	for (uint32_t at = first; at < end;) {
		uint32_t head = shim_extent_of(at);

		if (head == PCPI_NO_PFN) {
			at++;
			continue;
		}
		if (!each(head))
			return;
		at = head + (UINT32_C(1) << shim_order(shim_head(head)));
	}
}

static bool taint_each(uint32_t head)
{
	shim_extent_taint(head);
	return true;
}

void shim_range_taint(uint32_t first, uint32_t end)
{
	shim_count(SHIM_TAINTS);
	shim_hugetlb_leave(first, end);
	extents_walk(first, end, taint_each);
}

/* A name of a part makes two areas. */
void shim_range_name(uint32_t first, uint32_t end)
{
	for (uint32_t at = first; at < end;) {
		uint32_t head = shim_extent_of(at);
		uint64_t w;

		if (head == PCPI_NO_PFN) {
			at++;
			continue;
		}
		w = shim_head(head);
		if (at == head && end - head >= shim_length(w))
			shim_extent_mark(head, SHIM_NAMED);
		else
			shim_range_taint(at, at + 1);
		at = head + (UINT32_C(1) << shim_order(w));
	}
}

bool shim_range_named(uint32_t first, uint32_t end)
{
	uint32_t head = shim_extent_of(first);

	return head != PCPI_NO_PFN && first < end &&
	       (shim_head(head) & SHIM_NAMED);
}

bool shim_range_plain(uint32_t first, uint32_t end)
{
	for (uint32_t at = first; at < end;) {
		uint32_t head = shim_extent_of(at);
		uint64_t w;

		if (head == PCPI_NO_PFN)
			return false;
		w = shim_head(head);
		if (w & SHIM_TAINTED)
			return false;
		at = head + (UINT32_C(1) << shim_order(w));
	}
	return true;
}

/* ---- Unmapping ----------------------------------------------------------- */

/* Neighbouring tainted extents, BUSY, that are about to be renewed at once. */
struct batch {
	uint32_t first, end;
};

/* Makes the batch's extents free, or live again when the kernel refuses. */
static long batch_settle(struct batch *b)
{
	long r = 0;

	if (b->first == b->end)
		return 0;
	shim_hugetlb_drop(b->first, b->end);
	r = shim_pool_renew(b->first, b->end);
	for (uint32_t at = b->first; at < b->end;) {
		uint64_t w = shim_head(at);
		unsigned order = shim_order(w);
		uint32_t pages = UINT32_C(1) << order;

		if (r < 0) {
			shim_head_set(at, shim_live(w));
		} else {
			shim_fill(&shim_range.pages[at], 0, pages);
			shim_pool_give(at, order, 0);
		}
		at += pages;
	}
	b->first = b->end = 0;
	return r;
}

/* Adds an extent to the batch, which is settled first if it isn't its neighbour. */
static long batch_add(struct batch *b, uint32_t head, uint32_t pages)
{
	long r = 0;

	if (b->first == b->end || b->end != head ||
	    shim_pool_zone(b->first) != shim_pool_zone(head)) {
		r = batch_settle(b);
		b->first = head;
	}
	b->end = head + pages;
	return r;
}

/* Would the extent have any mapped page without [first, end)? */
static bool any_outside(uint32_t head, uint64_t w, uint32_t first, uint32_t end)
{
	uint32_t stop = head + (UINT32_C(1) << shim_order(w));

	if (!(w & SHIM_TAINTED))
		return first > head || end < head + shim_length(w);
	for (uint32_t at = head; at < stop; at++) {
		if (at >= first && at < end)
			at = end;
		if (at < stop && shim_page_mapped(head, w, at))
			return true;
	}
	return false;
}

/* The program's last pages of the extent. */
static void tail_unmap(uint32_t head, uint64_t w, uint32_t first)
{
	uint32_t length = shim_length(w), left = first - head;

	/* Of a huge page that goes on being used nothing can go. */
	shim_hugetlb_drop(shim_unit_up(first), head + length);
	if (length - left >= TAIL_PAGES)
		raw_madvise(shim_at(first),
			    (size_t)(length - left) << SHIM_PAGE_SHIFT,
			    MADV_DONTNEED);
	shim_head_set(head, shim_with_length(w, left));
}

static long part_unmap(uint32_t head, uint64_t w, uint32_t first, uint32_t end)
{
	long r;

	if (!(w & SHIM_TAINTED) && first > head && end >= head + shim_length(w)) {
		if (first < head + shim_length(w))
			tail_unmap(head, w, first);
		else
			shim_head_set(head, w);
		return 0;
	}
	shim_count(SHIM_TAINTS);
	shim_hugetlb_leave(first, end);
	r = raw_mmap(shim_at(first), (size_t)(end - first) << SHIM_PAGE_SHIFT,
		     PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		     -1, 0);
	if (raw_failed(r)) {
		shim_head_set(head, w);
		return r;
	}
	w |= SHIM_TAINTED;
	for (uint32_t at = first; at < end; at++)
		if (shim_page_mapped(head, w, at))
			shim_range.pages[at] ^= SHIM_PAGE_FLIP;
	shim_head_set(head, w);
	return 0;
}

/* Unmaps [first, end) of one extent. */
static long extent_unmap(uint32_t head, uint32_t first, uint32_t end,
			 struct batch *b)
{
	uint64_t w = shim_head(head);

	if (first == head && shim_length(w) <= end - first &&
	    shim_take_back(head, shim_length(w)))
		return 0;
	w = shim_extent_enter(head);
	if (!w)
		return 0;
	if (any_outside(head, w, first, end))
		return part_unmap(head, w, first, end);
	if (w & (SHIM_TAINTED | SHIM_NAMED))
		return batch_add(b, head, UINT32_C(1) << shim_order(w));
	shim_release(head, shim_order(w),
		     pcpi_max(shim_high(w), shim_length(w)));
	return 0;
}

long shim_range_unmap(uint32_t first, uint32_t end)
{
	struct batch b = {0, 0};
	long r = 0, s;

	for (uint32_t at = first; at < end && !r;) {
		uint32_t head = shim_extent_of(at), stop;

		if (head == PCPI_NO_PFN) {
			at++;
			continue;
		}
		stop = head + (UINT32_C(1) << shim_order(shim_head(head)));
		r = extent_unmap(head, at, pcpi_min(stop, end), &b);
		at = stop;
	}
	s = batch_settle(&b);
	return r ? r : s;
}

/* ---- Advice -------------------------------------------------------------- */

/* What leaves no trace in the mapping. */
static bool passing(int advice)
{
	switch (advice) {
	case MADV_WILLNEED:
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_COLD:
	case MADV_PAGEOUT:
	case MADV_POPULATE_READ:
	case MADV_POPULATE_WRITE:
	case MADV_DONTNEED_LOCKED:
	case MADV_COLLAPSE:
		return true;
	default:
		return false;
	}
}

/* A copy that is made for the pool of huge pages just now would bring back what is
 * given back: this waits for it. */
static long advise_apart(uint32_t first, uint32_t end, int advice)
{
	size_t bytes = (size_t)(end - first) << SHIM_PAGE_SHIFT;
	bool waits = shim_hugetlb_used() && (advice == MADV_DONTNEED ||
					     advice == MADV_DONTNEED_LOCKED);
	uint64_t mask;
	long r;

	if (waits)
		shim_hugetlb_lock(&mask);
	r = raw_madvise(shim_at(first), bytes, advice);
	if (waits)
		shim_hugetlb_unlock(&mask);
	return r;
}

static void pages_discard(uint32_t first, uint32_t end)
{
	if (first < end)
		advise_apart(first, end, MADV_DONTNEED);
}

/* MADV_DONTNEED of few pages.  What may be the parent's, too, isn't cleared: that would
 * copy it. */
static void pages_clear(uint32_t first, uint32_t end)
{
	if (pcpi_unlikely(shim_inherited_take(first, end))) {
		pages_discard(first, end);
		return;
	}
	shim_count(SHIM_PURGES);
	shim_fill((void *)shim_at(first), 0,
		  (size_t)(end - first) << SHIM_PAGE_SHIFT);
}

/* Pages of one huge page, or of several where none is from the pool. */
static void part_clear(uint32_t first, uint32_t end)
{
	if (first < end && shim_hugetlb_is(first))
		shim_fill((void *)shim_at(first), 0,
			  (size_t)(end - first) << SHIM_PAGE_SHIFT);
	else
		pages_discard(first, end);
}

/* What the kernel would refuse for huge pages of the pool, or gives others.  Where whole
 * ones are not needed any more they go. */
static long hugetlb_advise(uint32_t first, uint32_t end, int advice)
{
	uint32_t from = shim_unit_up(first);
	uint32_t to = shim_unit_down(end);

	if (advice == MADV_POPULATE_READ || advice == MADV_POPULATE_WRITE)
		return raw_madvise(shim_at(first),
				   (size_t)(end - first) << SHIM_PAGE_SHIFT,
				   advice);
	if (advice != MADV_DONTNEED && advice != MADV_DONTNEED_LOCKED)
		return 0;
	shim_count(SHIM_PURGES);
	from = pcpi_min(from, end);
	to = pcpi_max(from, to);
	shim_hugetlb_drop(from, to);
	part_clear(first, from);
	pages_discard(from, to);
	part_clear(to, end);
	return 0;
}

/* Advice for mapped pages, all of one extent or several. */
static long run_advise(uint32_t first, uint32_t end, int advice)
{
	if (shim_hugetlb_any(first, end) && passing(advice))
		return hugetlb_advise(first, end, advice);
	if (end - first < CLEAR_MAX_PAGES && shim_range_plain(first, end)) {
		if (advice == MADV_FREE)
			return 0;
		if (advice == MADV_DONTNEED) {
			pages_clear(first, end);
			return 0;
		}
	}
	if (advice == MADV_HUGEPAGE && shim_pool_zone(first) != SHIM_BASE &&
	    shim_range_plain(first, end))
		return 0;
	if (!passing(advice))
		shim_range_taint(first, end);
	return advise_apart(first, end, advice);
}

/* Clears pages of one mapping that nothing was done to, which is what most callers ask
 * for: its word is looked for once, where run_advise() needs it three times. */
static bool extent_clear(uint32_t first, uint32_t end)
{
	uint32_t head = shim_extent_of(first);
	uint64_t w;

	if (head == PCPI_NO_PFN || end - first >= CLEAR_MAX_PAGES ||
	    shim_hugetlb_any(first, end))
		return false;
	w = shim_head(head);
	if ((w & SHIM_TAINTED) || end > head + shim_length(w))
		return false;
	pages_clear(first, end);
	return true;
}

long shim_range_advise(uint32_t first, uint32_t end, int advice)
{
	long result = 0;

	if (advice == MADV_DONTNEED && first < end && extent_clear(first, end))
		return 0;
	for (uint32_t at = first; at < end;) {
		uint32_t pages = shim_mapped_run(at, end);
		long r;

		if (pages == 0) {
			result = -ENOMEM;
			at += shim_hole_run(at, end);
			continue;
		}
		r = run_advise(at, at + pages, advice);
		if (r < 0)
			return r;
		at += pages;
	}
	return result;
}

/* ---- In place ------------------------------------------------------------ */

static bool extent_resize(uint32_t head, uint64_t w, uint32_t end,
			  uint64_t pages)
{
	uint32_t length = shim_length(w), high;

	if ((w & (SHIM_TAINTED | SHIM_NAMED)) || head + length != end ||
	    pages > UINT64_C(1) << shim_order(w)) {
		shim_head_set(head, w);
		return false;
	}
	high = shim_high(w);
	if (high > length)
		shim_fill((void *)shim_at(end), 0,
			  (size_t)(pcpi_min(high, (uint32_t)pages) - length)
				  << SHIM_PAGE_SHIFT);
	shim_head_set(head, shim_with_length(w, (uint32_t)pages));
	return true;
}

bool shim_range_resize(uint32_t first, uint32_t end, uint64_t pages)
{
	uint32_t head = shim_extent_of(first);
	uint64_t w;

	if (head == PCPI_NO_PFN)
		return false;
	w = shim_extent_enter(head);
	return w && extent_resize(head, w, end, pages + (first - head));
}
