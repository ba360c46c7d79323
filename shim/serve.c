/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serve.c - a whole mapping handed out, a whole mapping taken back.
 *
 * Owns: the way of an extent between slot, pool and program, and the size classes'
 * state (classes.h).
 *
 *   shim_serve      slot -> else the pool -> else the kernel (0)
 *                   clear what may be dirty; LIVE
 *   shim_take_back  LIVE -> BUSY by a swap, so that of two threads that unmap the
 *                   same one has it; cold classes give the memory back; FREE
 *   shim_release    slot -> else the pool
 *
 * An extent of a cold class, and each probe of a warm one, is handed out without
 * memory.  Below 2 MiB that takes the base zone, where a neighbour's huge page doesn't
 * make pages resident that nobody touched.  The first small extents come from there,
 * too: a program that maps a few pages doesn't pay for a huge one.
 *
 * A mapping may have been changed by a system call that nobody could see.  That can't
 * be asked about each time; the first extents of a class that come back are looked at,
 * and then one of many.  One that isn't as it was handed out ends the serving.
 *
 * R1  What is handed out reads as zeros.
 *
 * Concurrency: no lock here; an extent that was swapped out of a slot or out of LIVE
 * is the caller's.
 * Failure: the kernel serves.  Proved by tests/preload/ and tests/shim/.
 */
#include "serve.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "control.h"
#include "hugetlb.h"
#include "mem.h"
#include "raw.h"
#include "slots.h"
#include "stats.h"
#include "table.h"

enum {
	/* Small blocks come from the base zone until so many are in use. */
	BASE_PAGES = SHIM_UNIT_PAGES,
	/* More than 8 MiB is cleared past the caches: it doesn't fit. */
	STREAM_PAGES = 1 << 11,
	/* 16 MiB and more are kept as what the kernel may take when it has to. */
	LEND_PAGES = 1 << 12,
	LOOK_PAGES = SHIM_UNIT_PAGES,
	LOOKS = 4,
	/* Is a mapping as it was handed out?  One system call more each is little for
	 * the first, and nothing for one of so many. */
	LOOK_FIRST = 32,
	LOOK_EVERY = 8192,
	LOOK_WHOLE_PAGES = 16,
};

struct shim_class shim_classes[SHIM_ORDERS];

/* ---- Clearing ------------------------------------------------------------ */

/* Zeros past the caches. */
static void stream_clear(uintptr_t at, size_t bytes)
{
#if defined(__x86_64__)
	const __m128i zero = _mm_setzero_si128();

	for (uintptr_t end = at + bytes; at < end; at += 64) {
		__m128i *line = (__m128i *)at;

		_mm_stream_si128(line, zero);
		_mm_stream_si128(line + 1, zero);
		_mm_stream_si128(line + 2, zero);
		_mm_stream_si128(line + 3, zero);
	}
	_mm_sfence();
#else
	shim_fill((void *)at, 0, bytes);
#endif
}

static void memory_clear(uint32_t pfn, uint32_t pages)
{
	size_t bytes = (size_t)pages << SHIM_PAGE_SHIFT;

	if (pages > STREAM_PAGES)
		stream_clear(shim_at(pfn), bytes);
	else
		shim_fill((void *)shim_at(pfn), 0, bytes);
}

/* Gives the memory of the extent's first pages back.  False: it is as it was. */
static bool memory_discard(uint32_t pfn, uint32_t pages)
{
	size_t bytes = (size_t)pages << SHIM_PAGE_SHIFT;

	if (pages == 0)
		return true;
	shim_hugetlb_drop(pfn, pfn + pages);
	shim_count(SHIM_DISCARDS);
	return !raw_failed(raw_madvise(shim_at(pfn), bytes, MADV_DONTNEED));
}

/* Huge pages that may be the parent's, too, aren't cleared but go back.  Less is: the copy
 * that the kernel makes costs what a new page does. */
static bool inherited_discard(uint32_t pfn, uint32_t pages)
{
	return pages >= SHIM_UNIT_PAGES &&
	       pcpi_unlikely(shim_inherited_take(pfn, pfn + pages)) &&
	       !shim_hugetlb_is(pfn) && memory_discard(pfn, pages);
}

void shim_populate(uintptr_t at, size_t bytes)
{
	if (!raw_failed(raw_madvise(at, bytes, MADV_POPULATE_WRITE)))
		return;
	for (size_t i = 0; i < bytes; i += SHIM_PAGE_BYTES)
		*(volatile char *)(at + i) = 0;
}

/* ---- Out of the pool ----------------------------------------------------- */

static enum shim_zone_id zone_for(unsigned order, bool cold)
{
	if (order >= SHIM_UNIT_ORDER)
		return SHIM_HUGE;
	if (cold || shim_pool_small_used(SHIM_BASE) < BASE_PAGES)
		return SHIM_BASE;
	return SHIM_HUGE;
}

/* Cleans a block out of the pool and returns how far it may still be dirty: without
 * memory if it shall be cold. */
static uint32_t block_clean(uint32_t pfn, unsigned order, bool cold)
{
	uint32_t pages = UINT32_C(1) << order, at = 0, dirty = 0;
	uint8_t *bytes = &shim_range.pages[pfn];

	while (at < pages) {
		uint32_t from;

		at += shim_find(bytes + at, SHIM_PAGE_DIRTY, pages - at);
		from = at;
		while (at < pages && bytes[at] == SHIM_PAGE_DIRTY)
			bytes[at++] = 0;
		dirty += at - from;
		if (at > from &&
		    !inherited_discard(pfn + from, at - from) &&
		    (!cold || !memory_discard(pfn + from, at - from)))
			memory_clear(pfn + from, at - from);
	}
	if (dirty)
		shim_pool_retain(-(int64_t)dirty);
	return cold ? 0 : dirty;
}

/* Is what will be resident in this extent what its owner touched? */
static uint64_t cold_flag(uint32_t pfn, unsigned order)
{
	bool own_pages =
		order >= SHIM_UNIT_ORDER || shim_pool_zone(pfn) == SHIM_BASE;

	return own_pages && !shim_hugetlb_is(pfn) ? SHIM_COLD : 0;
}

/* A clean extent and its word, LIVE; PCPI_NO_PFN when there is none. */
static PCPI_NOINLINE uint32_t take_slow(unsigned order, uint32_t length,
					bool probe, uint64_t *word)
{
	bool cold = probe || !shim_class_keeps(&shim_classes[order], order);
	enum shim_zone_id zone = zone_for(order, cold);
	uint32_t pfn = PCPI_NO_PFN, dirty;

	if (!cold && shim_hugetlb_wanted(order))
		pfn = shim_hugetlb_take(order);
	if (pfn == PCPI_NO_PFN)
		pfn = shim_pool_take(zone, order);
	if (pfn == PCPI_NO_PFN)
		return pfn;
	if (pcpi_unlikely(order && shim_pool_in_pieces(pfn)) &&
	    !shim_hugetlb_any(pfn, pfn + (UINT32_C(1) << order))) {
		dirty = block_clean(pfn, order, true);
		shim_pool_renew(pfn, pfn + (UINT32_C(1) << order));
	} else {
		dirty = block_clean(pfn, order, cold);
	}
	*word = shim_word(SHIM_LIVE, order, length, 0);
	if (!dirty)
		*word |= cold_flag(pfn, order);
	return pfn;
}

/* ---- Handing out --------------------------------------------------------- */

/* What is looked at once in a while; true: hand out an extent without memory. */
static PCPI_COLD bool slots_due(struct shim_slots *s, unsigned order)
{
	const struct shim_class *c = &shim_classes[order];
	/* relaxed: a decision that is one call late is as good. */
	uint32_t heat = pcpi_load_relaxed(&c->heat);
	/* Memory that others had used tells nothing: then a class is unknown still. */
	bool probe = order > SHIM_ALWAYS_WARM &&
		     (heat == SHIM_WARM ||
		      (heat == SHIM_UNKNOWN && pcpi_load_relaxed(&s->takes)));

	/* relaxed: a shard's threads may disagree about when. */
	pcpi_store_relaxed(&s->countdown, shim_class_interval(c, order));
	shim_pool_tick();
	return probe;
}

/* An extent out of a slot and its word, LIVE. */
static inline uint32_t take_fast(struct shim_slots *s, unsigned order,
				 uint32_t length, bool probe, uint64_t *word)
{
	uint32_t pfn = shim_slots_take(s), high;

	if (pfn == PCPI_NO_PFN)
		return pfn;
	high = shim_high(shim_head(pfn));
	if (order >= SHIM_UNIT_ORDER && high)
		shim_pool_retain(-(int64_t)high);
	if (pcpi_unlikely(probe) && !shim_hugetlb_is(pfn) &&
	    memory_discard(pfn, high))
		high = 0;
	*word = shim_word(SHIM_LIVE, order, length, high);
	if (!high)
		*word |= cold_flag(pfn, order);
	if (high && !inherited_discard(pfn, high)) {
		uint32_t clear = pcpi_min(high, length);

		pcpi_counter_add(&s->cleared_pages, clear);
		memory_clear(pfn, clear);
	}
	pcpi_counter_inc(&s->hits);
	return pfn;
}

uintptr_t shim_serve(size_t bytes, bool populate)
{
	uint32_t length = (uint32_t)shim_pages(bytes);
	unsigned order = shim_order_for(length);
	struct shim_slots *s = shim_slots_of(order);
	uint32_t pfn = PCPI_NO_PFN;
	bool probe = false;
	uint64_t word;

	/* relaxed: a shard's threads may disagree about when. */
	if (pcpi_unlikely(pcpi_load_relaxed(&s->countdown) == 0))
		probe = slots_due(s, order);
	pcpi_store_relaxed(&s->countdown, pcpi_load_relaxed(&s->countdown) - 1);
	if (!probe || order >= SHIM_UNIT_ORDER)
		pfn = take_fast(s, order, length, probe, &word);
	if (pfn == PCPI_NO_PFN)
		pfn = take_slow(order, length, probe, &word);
	if (pfn == PCPI_NO_PFN)
		return 0;
	pcpi_counter_inc(&s->takes);
	if (pcpi_unlikely(populate)) {
		shim_populate(shim_at(pfn), (size_t)length << SHIM_PAGE_SHIFT);
		word &= ~SHIM_COLD;
	}
	shim_head_set(pfn, word);
	return shim_at(pfn);
}

/* ---- Taking back --------------------------------------------------------- */

uint32_t shim_resident(uintptr_t at, uint64_t pages, uint32_t *seen)
{
	unsigned char vec[LOOK_PAGES];
	uint64_t step = pcpi_max(pages / LOOKS, (uint64_t)LOOK_PAGES);
	uint32_t resident = 0;

	*seen = 0;
	for (uint64_t first = 0; first < pages; first += step) {
		uint32_t look =
			(uint32_t)pcpi_min((uint64_t)LOOK_PAGES, pages - first);

		if (raw_failed(raw_mincore(at + (first << SHIM_PAGE_SHIFT),
					   (size_t)look << SHIM_PAGE_SHIFT, vec)))
			continue;
		for (uint32_t i = 0; i < look; i++)
			resident += vec[i] & 1;
		*seen += look;
	}
	return resident;
}

/* The memory stays; much of it on call. */
static void memory_keep(uint32_t pfn, uint32_t pages)
{
	if (pages >= LEND_PAGES)
		raw_madvise(shim_at(pfn), (size_t)pages << SHIM_PAGE_SHIFT,
			    MADV_FREE);
	shim_pool_retain(pages);
}

/* Slots are for what is from the pool of huge pages, as long as more comes from there. */
static inline bool displaced(uint32_t pfn, unsigned order)
{
	return pcpi_unlikely(shim_control.hugetlb) &&
	       shim_hugetlb_wanted(order) && shim_pool_zone(pfn) != SHIM_HUGETLB;
}

void shim_release(uint32_t pfn, unsigned order, uint32_t high)
{
	struct shim_slots *s = shim_slots_of(order);
	bool large = order >= SHIM_UNIT_ORDER;

	if (high && large) {
		if (shim_pool_full(high) && memory_discard(pfn, high))
			high = 0;
		else
			memory_keep(pfn, high);
	}
	/* S1. */
	shim_head_set(pfn, shim_free(order, high, shim_range.copy));
	if (!displaced(pfn, order) && pcpi_likely(shim_slots_put(s, order, pfn)))
		return;
	if (high && large)
		shim_pool_retain(-(int64_t)high);
	shim_pool_give(pfn, order, high);
}

/* An extent that was handed out without memory: was it worth keeping? */
static PCPI_NOINLINE void extent_measure(uint32_t pfn, uint64_t w)
{
	unsigned order = shim_order(w);
	uint32_t seen, resident;

	if (!shim_class_measures(&shim_classes[order], order))
		return;
	resident = shim_resident(shim_at(pfn), shim_length(w), &seen);
	if (seen)
		shim_class_learn(&shim_classes[order], order, resident, seen);
}

/* Is the mapping as it was handed out?  Asks the kernel, who refuses the one for a
 * hole or a file and the other for what can't be written to.  Where nothing was
 * touched nothing shall be now: access is just given again. */
static bool extent_intact(uint32_t pfn, uint32_t length, bool touched)
{
	uintptr_t at = shim_at(pfn);
	size_t bytes = (size_t)length << SHIM_PAGE_SHIFT;
	size_t look = length <= LOOK_WHOLE_PAGES ? bytes : SHIM_PAGE_BYTES;

	if (shim_hugetlb_any(pfn, pfn + length))
		return !raw_failed(raw_madvise(at, bytes, MADV_POPULATE_WRITE));
	if (raw_failed(raw_madvise(at, bytes, MADV_FREE)))
		return false;
	if (!touched)
		return !raw_failed(
			raw_mprotect(at, bytes, PROT_READ | PROT_WRITE));
	return !raw_failed(raw_madvise(at, look, MADV_POPULATE_WRITE)) &&
	       !raw_failed(raw_madvise(at + bytes - look, look,
				       MADV_POPULATE_WRITE));
}

/* Are the first extents of a class that come back looked at, and one of many later? */
static inline bool look_due(unsigned order)
{
	/* relaxed: a count. */
	uint64_t takes = pcpi_load_relaxed(&shim_slots_of(order)->takes);

	return takes <= LOOK_FIRST || takes % LOOK_EVERY == 0;
}

/* A program that changes mappings by system calls that we can't see, and then frees
 * them by calls that we can, gets no more of ours. */
static PCPI_COLD void extent_lost(uint32_t pfn, unsigned order)
{
	/* What comes to its place isn't from the pool of huge pages. */
	shim_hugetlb_drop(pfn, pfn + (UINT32_C(1) << order));
	shim_head_set(pfn, 0);
	raw_munmap(shim_at(pfn), (size_t)SHIM_PAGE_BYTES << order);
	shim_pool_dissolve(true);
}

/* The extent is BUSY.  A name that doesn't go is a trace like any other. */
static PCPI_COLD bool name_clear(uint32_t pfn, uint64_t w)
{
	size_t bytes = (size_t)SHIM_PAGE_BYTES << shim_order(w);
	long r = raw6(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME,
		      (long)shim_at(pfn), (long)bytes, 0, 0);

	if (raw_failed(r))
		shim_head_set(pfn, shim_live(w) | SHIM_TAINTED);
	return !raw_failed(r);
}

bool shim_take_back(uint32_t pfn, uint64_t pages)
{
	uint64_t w = shim_head(pfn);
	unsigned order = shim_order(w);
	uint32_t high;
	bool keeps;

	if (shim_kind(w) != SHIM_LIVE || (w & SHIM_TAINTED) ||
	    shim_length(w) != pages)
		return false;
	/* pairs with shim_head_set(). */
	if (!pcpi_cas_acq_rel(&shim_range.heads[pfn], &w,
			      shim_busy(w, shim_range.copy)))
		return false;
	if (pcpi_unlikely(w & SHIM_NAMED) && !name_clear(pfn, w))
		return false;
	if (w & SHIM_COLD)
		extent_measure(pfn, w);
	keeps = shim_class_keeps(&shim_classes[order], order);
	if (pcpi_unlikely(look_due(order)) &&
	    !extent_intact(pfn, shim_length(w), keeps)) {
		extent_lost(pfn, order);
		return true;
	}
	high = pcpi_max(shim_high(w), shim_length(w));
	if (!keeps) {
		bool small_huge = order < SHIM_UNIT_ORDER &&
				  shim_pool_zone(pfn) == SHIM_HUGE;

		/* A part of a huge page stays: taking it out would split that. */
		if (small_huge) {
			shim_pool_give(pfn, order, high);
			return true;
		}
		if (memory_discard(pfn, high))
			high = 0;
	}
	shim_release(pfn, order, high);
	return true;
}
