/* SPDX-License-Identifier: BSD-2-Clause */
/* direct.c - see direct.h. */
#include "direct.h"

#include "sys/sys.h"

/* Whether the depots of a zone may hold n more blocks. */
static bool depot_accepts(const struct pcpi_zone *z, unsigned order, uint32_t n)
{
	/* relaxed: a bound that may be overshot by a batch. */
	return pcpi_zone_depot_pages(z) + ((uint64_t)n << order) <=
	       pcpi_load_relaxed(&z->depot_limit);
}

bool pcpi_blocks_return(struct pcpi_zone *z, unsigned order,
			  const uint32_t *pfns, uint32_t n)
{
	if (!pcpi_zone_lacks_reserve(z) && depot_accepts(z, order, n) &&
	    pcpi_depot_put(&z->depots[order], pfns, n))
		return true;
	pcpi_zone_give_bulk(z, order, pfns, n);
	return false;
}

void pcpi_surplus_return(struct pcpi_zone *z, unsigned order)
{
	uint64_t now = pcpi_sys->coarse_ns();
	uint32_t pfns[PCPI_CHUNK], n;

	while ((n = pcpi_depot_surplus(&z->depots[order], now, pfns, PCPI_CHUNK)))
		pcpi_zone_give_bulk(z, order, pfns, n);
}

uint32_t pcpi_direct_take(struct pcpi_zone *z, unsigned order, uint32_t *pfns,
			  uint32_t n)
{
	uint32_t got = 0;

	if (order < PCPI_PCP_ORDERS)
		got = pcpi_depot_get(&z->depots[order], pfns, n);
	if (got > 0)
		pcpi_fetch_add_relaxed(&z->depot_gets, 1); /* relaxed: counter */
	if (got < n)
		got += pcpi_zone_take_bulk(z, order, pfns + got, n - got, NULL);
	return got;
}

void pcpi_direct_give(struct pcpi_zone *z, unsigned order, const uint32_t *pfns,
		      uint32_t n)
{
	if (order >= PCPI_PCP_ORDERS)
		pcpi_zone_give_bulk(z, order, pfns, n);
	else if (pcpi_blocks_return(z, order, pfns, n))
		pcpi_fetch_add_relaxed(&z->depot_puts, 1); /* relaxed: counter */
}

void pcpi_watched_give(struct pcpi_zone *z, unsigned order, uint32_t pfn)
{
	uint32_t rested[PCPI_CHUNK], n;

	pcpi_checks_give(z->config.checks, pfn, order);
	n = pcpi_quarantine_put(z->quarantine, order, pfn,
				/* relaxed: a bound. */
				pcpi_load_relaxed(&z->managed_pages), rested,
				PCPI_CHUNK);
	if (n > 0)
		pcpi_direct_give(z, order, rested, n);
}

static uint64_t quarantine_empty(struct pcpi_zone *z)
{
	uint32_t pfns[PCPI_CHUNK], n;
	uint64_t pages = 0;
	unsigned o;

	for (o = 0; o <= PCPI_MAX_ORDER; o++)
		while ((n = pcpi_quarantine_shift(z->quarantine, o, pfns,
						  PCPI_CHUNK))) {
			pcpi_zone_give_bulk(z, o, pfns, n);
			pages += (uint64_t)n << o;
		}
	return pages;
}

uint64_t pcpi_depots_empty(struct pcpi_zone *z)
{
	uint64_t pages = z->quarantine ? quarantine_empty(z) : 0;
	uint32_t pfns[PCPI_CHUNK], n;
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		while ((n = pcpi_depot_shift(&z->depots[o], pfns, PCPI_CHUNK))) {
			pcpi_zone_give_bulk(z, o, pfns, n);
			pages += (uint64_t)n << o;
		}
	return pages;
}
