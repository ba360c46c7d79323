/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * slots.c - free extents at hand: what empties them, and a fork.  How they work: slots.h.
 */
#include "slots.h"

#include "pool.h"
#include "table.h"

struct shim_slots shim_slots[SHIM_ORDERS][SHIM_SHARDS];

static void shard_empty(struct shim_slots *s)
{
	uint32_t pfn;

	while ((pfn = shim_slots_take(s)) != PCPI_NO_PFN) {
		uint64_t w = shim_head(pfn);

		if (shim_order(w) >= SHIM_UNIT_ORDER)
			shim_pool_retain(-(int64_t)shim_high(w));
		shim_pool_give(pfn, shim_order(w), shim_high(w));
	}
}

void shim_slots_empty(void)
{
	for (unsigned order = 0; order < SHIM_ORDERS; order++)
		for (unsigned i = 0; i < SHIM_SHARDS; i++)
			shard_empty(&shim_slots[order][i]);
}

static void shard_inherit(struct shim_slots *s)
{
	for (unsigned i = 0; i < SHIM_SLOTS; i++) {
		/* relaxed: one thread of the child is here, and no other goes on. */
		uint32_t v = pcpi_load_relaxed(&s->slot[i]);
		uint64_t w;

		if (!v)
			continue;
		w = shim_head(v - 1);
		shim_head_set(v - 1, shim_free(shim_order(w), shim_high(w),
					       shim_range.copy));
	}
}

void shim_slots_inherit(void)
{
	for (unsigned order = 0; order < SHIM_ORDERS; order++)
		for (unsigned i = 0; i < SHIM_SHARDS; i++)
			shard_inherit(&shim_slots[order][i]);
}

void shim_slots_age(void)
{
	for (unsigned order = SHIM_UNIT_ORDER; order < SHIM_ORDERS; order++)
		for (unsigned i = 0; i < SHIM_SHARDS; i++) {
			struct shim_slots *s = &shim_slots[order][i];
			/* relaxed: counts. */
			uint32_t takes = (uint32_t)pcpi_load_relaxed(&s->takes);

			if (takes == pcpi_load_relaxed(&s->aged))
				shard_empty(s);
			pcpi_store_relaxed(&s->aged, takes);
		}
}
