/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp_fixture.h - one cache of one zone of core_fixture.h.
 */
#ifndef PCP_FIXTURE_H
#define PCP_FIXTURE_H

#include <criterion/criterion.h>

#include "core_fixture.h"
#include "page.h"
#include "pcp_tune.h"

static struct pcpi_zone *const zone = &parts.zones[0];
static struct pcpi_cache *cache;

static inline void make(struct parts_spec spec)
{
	parts_make(spec);
	cache = parts_cache(0);
}

static inline void setup(void)
{
	make((struct parts_spec){0});
}

static inline void teardown(void)
{
	for (unsigned i = 0; i < parts.nr_caches; i++)
		cr_expect(pcpi_cache_check(parts.caches[i]));
	for (unsigned z = 0; z < parts.nr_zones; z++)
		cr_expect(pcpi_zone_check(&parts.zones[z]));
	parts_unmake();
}

static inline void remake(struct parts_spec spec)
{
	parts_unmake();
	make(spec);
}

static inline uint32_t pop_one(unsigned order)
{
	uint32_t pfn = PCPI_NO_PFN;

	cr_assert_eq(pcpi_cache_pop(cache, order, &pfn, 1), 1);
	return pfn;
}

static inline uint32_t depot_len(unsigned order)
{
	return pcpi_depot_len(&zone->depots[order]);
}

static inline void expect_conserved(uint64_t out)
{
	cr_expect_eq(parts_pages_held(0) + out, zone->managed_pages, "%llu",
		     (unsigned long long)parts_pages_held(0));
}

#endif
