/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zone_range.c - ranges of any length, out of a zone's buddy and back; part of
 * the module zone.
 *
 * Owns: the search for a range, and the isolation: a range whose free pages are
 * taken at once and whose others are taken as they come back, while caches are
 * drained (contig.c).
 *
 *   range   [ free | cached | free | depot ]     order byte
 *   isolate   ^^^^            ^^^^               ISOLATED, out of the buddy
 *   drain             ^^^^^^          ^^^^^      given -> taken in the same hold
 *   end     [ one range ]                        CONTIG, then TAIL
 *           or all ISOLATED ones given back      0
 *
 * ZR1 A page has the byte ISOLATED iff it was taken for the zone's isolation; it
 *     is written and read back under or after the hold that took the page, by
 *     the isolation's caller or for it.
 * ZR2 A hold of the lock touches at most 64 chunks.
 *
 * The search slides a window over the candidates and keeps the one that misses
 * the fewest pages: with none missing it can be taken at once; else what is
 * missing may be in caches, or handed out, which the bits don't tell.
 *
 * Concurrency: any thread, the isolation one at a time.
 * Cost: search: some ns a candidate; take and give: two lines a chunk and a byte
 * a page.  Failure: false, with nothing changed.
 * Proved by tests/unit/test_contig.c, tests/model/model_heap.c, tests/conc/.
 */
#include "page.h"
#include "zone.h"

#define SLIDE_CHUNKS 8u

/* The end of the piece at pfn that one hold works on: ZR2. */
static uint32_t piece_end(const struct pcpi_zone *z, uint32_t pfn, uint32_t end)
{
	uint32_t chunk = 1u << z->space->top_order;
	uint64_t stop = (uint64_t)(pfn & ~(chunk - 1)) + PCPI_ZONE_HOLD_CHUNKS * chunk;

	return (uint32_t)pcpi_min(stop, (uint64_t)end);
}

/* ---- Search ------------------------------------------------------------------ */

static uint32_t missing_locked(const struct pcpi_zone *z, uint32_t pfn,
			       uint32_t pages)
{
	return pages - pcpi_buddy_range_free(&z->buddy, pfn, pages);
}

static uint32_t missing_count(struct pcpi_zone *z, uint32_t pfn, uint32_t pages)
{
	uint32_t end = pfn + pages, missing = 0, stop;

	for (; pfn < end; pfn = stop) {
		stop = piece_end(z, pfn, end);
		pcpi_zone_hold(z);
		missing += missing_locked(z, pfn, stop - pfn);
		pcpi_zone_hold_end(z);
	}
	return missing;
}

static void consider(const struct pcpi_search *s, uint32_t pfn, uint32_t missing,
		     struct pcpi_candidate *best)
{
	unsigned i;

	if (missing >= best->missing)
		return;
	for (i = 0; i < s->nr_used; i++)
		if (s->used[i] - pfn < s->pages)
			return;
	*best = (struct pcpi_candidate){ .pfn = pfn, .missing = missing };
}

/* The first aligned address at or after a page, as a page; may be past it all. */
static uint64_t aligned_from(const struct pcpi_zone *z, uint32_t pfn,
			     uint64_t align_pages)
{
	uint64_t base = (uintptr_t)z->space->base >> z->space->page_shift;

	return ((base + pfn + align_pages - 1) & ~(align_pages - 1)) - base;
}

/* From the window at *pfn, which misses `missing`, to the next ones in one hold;
 * *pfn: the first that wasn't looked at. */
static void slide(struct pcpi_zone *z, const struct pcpi_search *s, uint64_t *pfn,
		  uint32_t missing, struct pcpi_candidate *best)
{
	uint32_t step = (uint32_t)pcpi_min(s->align_pages, (uint64_t)s->pages);
	uint32_t most = SLIDE_CHUNKS << z->space->top_order, at = (uint32_t)*pfn;
	uint32_t steps = step == s->align_pages ? most / step : 0;

	consider(s, at, missing, best);
	*pfn += s->align_pages;
	if (steps == 0)
		return;
	pcpi_zone_hold(z);
	while (steps-- > 0 && best->missing > 0 && *pfn + s->pages <= s->end) {
		missing -= missing_locked(z, at, step);
		missing += missing_locked(z, at + s->pages, step);
		at += step;
		consider(s, at, missing, best);
		*pfn += step;
	}
	pcpi_zone_hold_end(z);
}

void pcpi_zone_search(struct pcpi_zone *z, const struct pcpi_search *s,
		      struct pcpi_candidate *best)
{
	uint64_t at = aligned_from(z, s->from, s->align_pages);

	while (best->missing > 0 && at + s->pages <= s->end)
		slide(z, s, &at, missing_count(z, (uint32_t)at, s->pages), best);
}

/* ---- Ranges that are free ----------------------------------------------------- */

uint32_t pcpi_zone_take_range_max(const struct pcpi_zone *z)
{
	return (PCPI_ZONE_HOLD_CHUNKS - 1) << z->space->top_order;
}

bool pcpi_zone_take_range(struct pcpi_zone *z, uint32_t pfn, uint32_t pages,
			  uint64_t kept)
{
	bool all;

	pcpi_zone_hold(z);
	all = pcpi_buddy_free_pages(&z->buddy) >= pages + kept && /* Z5 */
	      missing_locked(z, pfn, pages) == 0;
	if (all)
		pcpi_buddy_range_take(&z->buddy, pfn, pages);
	pcpi_zone_hold_end(z);
	if (all)
		pcpi_page_mark_range(z->orders, pfn, pages); /* Z2 */
	return all;
}

/* ---- Isolation ------------------------------------------------------------------ */

/* Takes what is free of [pfn, end), which is inside the isolated range. */
static void isolate_locked(struct pcpi_zone *z, uint32_t pfn, uint32_t end)
{
	uint32_t run;

	while (pfn < end) {
		run = pcpi_buddy_range_run(&z->buddy, pfn, end - pfn, &pfn);
		if (run == 0)
			break;
		pcpi_buddy_range_take(&z->buddy, pfn, run);
		pcpi_page_fill_range(z->orders, pfn, run, PCPI_PAGE_ISOLATED);
		/* relaxed: a hint for who finds too little. */
		pcpi_store_relaxed(&z->isolated.got, z->isolated.got + run);
		pfn += run;
	}
}

/* The same for pages that have come, as far as they are of the range. */
void pcpi_zone_isolate_part_locked(struct pcpi_zone *z, uint32_t pfn,
				   uint32_t pages)
{
	const struct pcpi_isolation *iso = &z->isolated;
	uint32_t from = pcpi_max(pfn, iso->pfn);
	uint32_t end = pcpi_min(pfn + pages, iso->pfn + iso->pages);

	if (from < end)
		isolate_locked(z, from, end);
}

void pcpi_zone_isolate_more_locked(struct pcpi_zone *z, unsigned order,
				   const uint32_t *pfns, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		pcpi_zone_isolate_part_locked(z, pfns[i], 1u << order);
}

bool pcpi_zone_isolate(struct pcpi_zone *z, uint32_t pfn, uint32_t pages)
{
	uint32_t end = pfn + pages, at, stop;

	pcpi_zone_hold(z);
	z->isolated.pfn = pfn;
	z->isolated.pages = pages;
	pcpi_zone_hold_end(z);
	for (at = pfn; at < end; at = stop) {
		stop = piece_end(z, at, end);
		pcpi_zone_hold(z);
		isolate_locked(z, at, stop);
		pcpi_zone_hold_end(z);
	}
	return pcpi_zone_isolated_whole(z);
}

bool pcpi_zone_isolated_whole(struct pcpi_zone *z)
{
	bool whole;

	pcpi_zone_hold(z);
	whole = z->isolated.got == z->isolated.pages;
	pcpi_zone_hold_end(z);
	return whole;
}

/* Gives the pages of the range back that were taken: ZR1.  A page that wasn't. */
static uint32_t isolated_give(struct pcpi_zone *z, uint32_t pfn, uint32_t pages)
{
	uint32_t end = pfn + pages, run, missing = PCPI_NO_PFN;

	for (; pfn < end; pfn += pcpi_max(run, 1u)) {
		run = 0;
		while (pfn + run < end && pcpi_page_read(z->orders, pfn + run) ==
						  PCPI_PAGE_ISOLATED)
			run++;
		if (run > 0)
			pcpi_zone_give_range(z, pfn, run);
		else
			missing = pfn;
	}
	return missing;
}

/* After the last page is back. */
static void isolation_over(struct pcpi_zone *z)
{
	/* release: the next pairs with it. */
	pcpi_store_release(&z->isolated.ends, z->isolated.ends + 1);
	/* release: pairs with isolation_wait() and nowait.c's shared_take(), which
	 * find what came back. */
	pcpi_store_release(&z->isolated.got, 0);
}

bool pcpi_zone_isolate_end(struct pcpi_zone *z, uint64_t kept,
			   uint32_t *missing)
{
	struct pcpi_isolation iso;
	bool whole;

	pcpi_zone_hold(z);
	iso = z->isolated;
	whole = iso.got == iso.pages &&
		pcpi_buddy_free_pages(&z->buddy) >= kept; /* Z5 */
	z->isolated.pages = 0;
	pcpi_zone_hold_end(z);
	if (whole)
		pcpi_page_mark_range(z->orders, iso.pfn, iso.pages); /* Z2 */
	else
		*missing = isolated_give(z, iso.pfn, iso.pages);
	isolation_over(z);
	return whole;
}

void pcpi_zone_give_range(struct pcpi_zone *z, uint32_t pfn, uint32_t pages)
{
	uint32_t end = pfn + pages, stop;

	pcpi_page_fill_range(z->orders, pfn, pages, PCPI_PAGE_NONE); /* Z2 */
	for (; pfn < end; pfn = stop) {
		stop = piece_end(z, pfn, end);
		pcpi_zone_hold(z);
		pcpi_buddy_range_give(&z->buddy, pfn, stop - pfn);
		if (z->isolated.pages > 0) /* Z6 */
			pcpi_zone_isolate_part_locked(z, pfn, stop - pfn);
		pcpi_zone_hold_end(z);
	}
}
