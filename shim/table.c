/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - which extent a page is part of, and whether the program has it mapped.
 * How: table.h.
 */
#include "table.h"

#include "raw.h"

uint64_t shim_extent_enter(uint32_t head)
{
	enum { TRIES = 10000 };
	uint64_t w = shim_head(head);

	for (int i = 0; i < TRIES; i++) {
		bool left = shim_left_behind(w, shim_range.copy);
		uint64_t live = shim_live(w);

		if (!shim_held(w))
			return 0;
		/* Half of a change may have been done. */
		if (left)
			live |= SHIM_TAINTED;
		if (left || shim_kind(w) == SHIM_LIVE) {
			/* pairs with shim_head_set(). */
			if (pcpi_cas_acq_rel(&shim_range.heads[head], &w,
					     shim_busy(live, shim_range.copy)))
				return live;
			continue;
		}
		raw_yield();
		w = shim_head(head);
	}
	return shim_live(w) | SHIM_TAINTED;
}

/* Pages from pfn on, up to end, that are alike; *mapped says how. */
static uint32_t alike(uint32_t pfn, uint32_t end, bool *mapped)
{
	uint32_t head = shim_extent_of(pfn), stop, at = pfn + 1;
	uint64_t w;

	*mapped = false;
	if (head == PCPI_NO_PFN)
		return 1;
	w = shim_head(head);
	stop = pcpi_min(end, head + (UINT32_C(1) << shim_order(w)));
	*mapped = shim_page_mapped(head, w, pfn);
	if (!(w & SHIM_TAINTED)) {
		if (*mapped)
			stop = pcpi_min(stop, head + shim_length(w));
		return stop - pfn;
	}
	while (at < stop && shim_page_mapped(head, w, at) == *mapped)
		at++;
	return at - pfn;
}

static uint32_t run(uint32_t pfn, uint32_t end, bool want)
{
	uint32_t at = pfn;

	while (at < end) {
		bool mapped;
		uint32_t pages = alike(at, end, &mapped);

		if (mapped != want)
			break;
		at += pages;
	}
	return at - pfn;
}

uint32_t shim_mapped_run(uint32_t pfn, uint32_t end)
{
	return run(pfn, end, true);
}

uint32_t shim_hole_run(uint32_t pfn, uint32_t end)
{
	return run(pfn, end, false);
}
