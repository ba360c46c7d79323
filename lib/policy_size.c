/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * policy_size.c - how large everything is: watermarks, batch, high, depot.
 *
 * Owns the numbers that depend only on a zone's size, its CPUs and threads,
 * and the knobs.  Owns neither what a cache decides from moment to moment
 * (policy_pcp.c) nor the order lists (policy_share.c), and keeps no state:
 * whoever changes an input asks again.
 *
 *   managed -+-> min -> low -> high                      watermarks
 *            |           |
 *            |           +--- / sharers ---> high_min -+
 *            |                                         +-> clamped to cap
 *            +-- / 8 -------- / sharers ---> high_max -+
 *            |                    |
 *            |                    +--> cap = min(that, ring capacity)
 *            |                           |
 *            +-> batch --- halved while 4 * batch > cap
 *
 * A sharer is whoever may have a cache: a CPU of the node, any CPU where the
 * node has none, or a thread where these outnumber the CPUs.  Dividing the low
 * watermark by a node's own zero CPUs, taken as one, gave every CPU of a
 * machine with 96 a cache of 69584 pages; hence all_cpus.
 *
 * Invariants (Y: policy, sizes):
 * Y1 0 < min <= low <= high <= promo <= managed, and min <= max(managed/4, 1).
 * Y2 sharers * high_max <= managed / 8, and high_max <= the ring's capacity.
 * Y3 high_min <= high_max; equal for LEGACY and for every fixed bound.
 * Y4 high_max is 0 and batch 1, or 4 * batch <= cap.
 *    Only a knob batch_pages may exceed a quarter of a knob high_pages.
 * Y5 a function's result grows with managed where everything else is equal.
 *
 * Concurrency: pure; any thread, no lock.  Cost: a few divisions; the square
 * root 32 steps.  Failure: none, every input has a result.
 * Proved by tests/unit/test_policy_size.c.
 */
#include "policy.h"

#include "bits.h"
#include "check.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

/* Bounds of the derived min, as Linux has for min_free_kbytes. */
#define MIN_FLOOR_KIB UINT64_C(128)
#define MIN_CEIL_KIB (256 * KIB)
/* From this size on min is at its ceiling: 16 * KiB = ceiling^2. */
#define MIN_SATURATED_KIB (MIN_CEIL_KIB * MIN_CEIL_KIB / 16)

#define BASIS_POINTS 10000u

/* A cache is worth having from four batches on: one to refill with, one to
 * drain, and something to keep between the two. */
#define MIN_BATCHES 4u

/* What a thread moves between cache and zone at once (PCPI_CHUNK). */
#define IN_HAND_PAGES 64u

/* floor(sqrt(x)), a bit at a time; libm has no place in a pure object. */
static uint64_t sqrt_floor(uint64_t x)
{
	uint64_t root = 0;

	for (uint64_t bit = UINT64_C(1) << 62; bit != 0; bit >>= 2) {
		uint64_t trial = root + bit;

		root >>= 1;
		if (x >= trial) {
			x -= trial;
			root += bit;
		}
	}
	return root;
}

static uint64_t derive_min_pages(uint64_t managed_pages, uint64_t page_bytes)
{
	uint64_t kib = MIN_SATURATED_KIB;
	uint64_t min_kib;

	if (managed_pages < MIN_SATURATED_KIB * KIB / page_bytes)
		kib = managed_pages * page_bytes / KIB;
	min_kib = pcpi_clamp(sqrt_floor(16 * kib), MIN_FLOOR_KIB, MIN_CEIL_KIB);
	return min_kib * KIB / page_bytes;
}

/* managed * scale / 10000, rounded down, without the product's overflow. */
static uint64_t scale_pages(uint64_t managed_pages, uint32_t scale_factor)
{
	uint64_t scale = pcpi_min(scale_factor, BASIS_POINTS);

	return managed_pages / BASIS_POINTS * scale +
	       managed_pages % BASIS_POINTS * scale / BASIS_POINTS;
}

struct pcpi_watermarks pcpi_policy_watermarks(uint64_t managed_pages,
					      uint64_t page_bytes,
					      uint64_t min_pages,
					      uint32_t scale_factor)
{
	uint64_t ceiling = pcpi_max(managed_pages / 4, UINT64_C(1));
	struct pcpi_watermarks wm = {0, 0, 0, 0};
	uint64_t gap;

	PCPA_ASSERT(pcpi_is_pow2(page_bytes));
	if (managed_pages == 0)
		return wm;
	if (min_pages == 0)
		min_pages = derive_min_pages(managed_pages, page_bytes);
	wm.min = pcpi_clamp(min_pages, UINT64_C(1), ceiling);
	gap = pcpi_max(wm.min / 4, scale_pages(managed_pages, scale_factor));
	/* Y1; each step is clamped before the next, so no sum overflows. */
	wm.low = wm.min + pcpi_min(gap, managed_pages - wm.min);
	wm.high = wm.low + pcpi_min(gap, managed_pages - wm.low);
	wm.promo = wm.high + pcpi_min(gap, managed_pages - wm.high);
	return wm;
}

uint32_t pcpi_policy_batch(uint64_t managed_pages, uint64_t page_bytes)
{
	uint64_t b = pcpi_min(managed_pages >> 10, MIB / page_bytes);

	b = pcpi_max(b / 4, UINT64_C(1));
	/* One less than a power of two, so that the batches of several CPUs
	 * don't walk through the same cache colours. */
	b = (UINT64_C(1) << pcpi_log2(b + b / 2)) - 1;
	return (uint32_t)pcpi_max(b, UINT64_C(1));
}

uint32_t pcpi_policy_legacy_high(uint32_t batch)
{
	return 6 * batch;
}

bool pcpi_policy_fraction_valid(uint32_t fraction)
{
	return fraction == 0 || fraction >= PCPI_CACHE_SHARE;
}

uint64_t pcpi_policy_zone_highsize(uint64_t managed_pages, uint64_t low_pages,
				   uint32_t batch, uint32_t node_cpus,
				   uint32_t cpu_online, uint32_t all_cpus,
				   uint32_t fraction)
{
	uint64_t total = fraction != 0 ? managed_pages / fraction : low_pages;
	uint64_t cpus = (uint64_t)node_cpus + cpu_online;

	if (cpus == 0)
		cpus = pcpi_max(all_cpus, 1u);
	return pcpi_max(total / cpus, (uint64_t)MIN_BATCHES * batch);
}

static uint32_t count_sharers(const struct pcpi_pageset_inputs *in)
{
	uint32_t cpus = in->node_cpus != 0 ? in->node_cpus : in->all_cpus;
	uint32_t sharers = pcpi_max(cpus, in->threads);

	return pcpi_max(sharers, 1u);
}

/* Y4; a batch that nobody asked for follows a high that somebody did. */
static uint32_t fit_batch(const struct pcpi_pageset_inputs *in, uint32_t cap)
{
	uint32_t batch = in->batch_pages;

	if (batch == 0) {
		batch = pcpi_policy_batch(in->managed_pages, in->page_bytes);
		if (in->high_pages != 0)
			cap = pcpi_min(cap, in->high_pages);
	}
	while (batch > 1 && batch > cap / MIN_BATCHES)
		batch >>= 1;
	return batch;
}

/* One sharer's part of the low watermark or of managed / fraction.  Y2 */
static uint32_t fit_high(const struct pcpi_pageset_inputs *in, uint32_t sharers,
			 uint32_t batch, uint32_t fraction, uint32_t cap)
{
	uint64_t high =
		pcpi_policy_zone_highsize(in->managed_pages, in->low_pages,
					  batch, sharers, 0, 0, fraction);

	return (uint32_t)pcpi_min(high, (uint64_t)cap);
}

struct pcpi_pageset pcpi_policy_pageset(const struct pcpi_pageset_inputs *in)
{
	uint32_t n = count_sharers(in);
	uint32_t cap =
		(uint32_t)pcpi_min(in->managed_pages / PCPI_CACHE_SHARE / n,
				   (uint64_t)in->ring_capacity_pages);
	struct pcpi_pageset ps = {
		.batch = fit_batch(in, cap),
		.depot_batch =
			pcpi_policy_depot_batch(in->threads, in->managed_pages),
		.legacy = in->legacy,
	};

	if (cap < MIN_BATCHES)
		return ps;
	if (in->high_pages != 0)
		ps.high_min = pcpi_min(in->high_pages, cap);
	else
		ps.high_min = fit_high(in, n, ps.batch, in->fraction, cap);
	ps.high_max = ps.high_min;
	/* Without a fixed bound MODERN may grow to the whole share. */
	if (!in->legacy && in->high_pages == 0 && in->fraction == 0)
		ps.high_max = fit_high(in, n, ps.batch, PCPI_CACHE_SHARE, cap);
	return ps;
}

uint32_t pcpi_policy_depot_batch(uint32_t threads, uint64_t managed_pages)
{
	uint64_t units = 2 * (uint64_t)pcpi_max(threads, 1u);
	uint64_t share = managed_pages / PCPI_CACHE_SHARE;
	uint32_t batch;

	for (batch = 256; batch >= 32; batch /= 2)
		if (units * batch <= share)
			return batch;
	return 8;
}

uint32_t pcpi_policy_depot_blocks(uint32_t depot_batch, unsigned order)
{
	return order == 0 ? depot_batch : pcpi_max(depot_batch >> order, 4u);
}

uint64_t pcpi_policy_depot_limit(uint64_t managed_pages, bool fixed)
{
	return fixed ? managed_pages : managed_pages / 4;
}

uint64_t pcpi_policy_heap_pages(uint32_t rx, uint32_t tx, uint32_t threads,
				uint32_t burst)
{
	uint64_t used = (uint64_t)threads * burst, pages;
	uint64_t rest = (uint64_t)threads * IN_HAND_PAGES + rx + tx;

	/* 1 - 1/8 - 1/4 of the pages are for use. */
	if (__builtin_add_overflow(used, rest, &used) ||
	    __builtin_mul_overflow(used / 5, UINT64_C(8), &pages) ||
	    __builtin_add_overflow(pages, (used % 5 * 8 + 4) / 5, &pages))
		return UINT64_MAX;
	return pages;
}

bool pcpi_policy_free_high_batch(uint64_t slice_bytes, uint64_t page_bytes,
				 uint32_t batch)
{
	return slice_bytes / page_bytes > 3 * (uint64_t)batch;
}
