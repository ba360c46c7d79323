/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kpcp_policy.h - how many pages a per-CPU list of Linux 5.x takes from its zone
 * and gives back.  PURE: numbers in, numbers out.
 *
 *   allocation, list empty     a batch is taken
 *   free, count reaches high   a batch is given back, whatever the load was
 *
 * Used by kpcp.c, which is that allocator, and by simulations of it.
 * Units: base pages, but for kpcp_refill_blocks().
 * Proved by tests/bench/test_kpcp.c.
 */
#ifndef BENCH_KPCP_POLICY_H
#define BENCH_KPCP_POLICY_H

/* What Linux 5.x computes for a zone of 512 KiB batches: high is 6 batches. */
enum { KPCP_BATCH = 31, KPCP_HIGH = 186 };

/* Pages of order 0 that an allocation from an empty list has taken at once. */
static inline unsigned kpcp_refill_pages(unsigned batch)
{
	return batch;
}

/* The same in blocks of an order; above order 0 at least two. */
static inline unsigned kpcp_refill_blocks(unsigned batch, unsigned order)
{
	unsigned blocks = kpcp_refill_pages(batch) >> order;

	return order && blocks < 2 ? 2 : blocks;
}

/* Pages that a free gives back when it has made the count what it is. */
static inline unsigned kpcp_drain_pages(unsigned count, unsigned batch,
					unsigned high)
{
	if (count < high)
		return 0;
	return batch < count ? batch : count;
}

#endif
