/* SPDX-License-Identifier: BSD-2-Clause */
/* quarantine.c - see quarantine.h. */
#include "quarantine.h"

#define MEMORY_SHARE 8u

size_t pcpi_quarantine_bytes(void)
{
	return sizeof(struct pcpi_quarantine) +
	       (PCPI_MAX_ORDER + 1) * PCPI_QUARANTINE_BLOCKS * sizeof(uint32_t);
}

void pcpi_quarantine_init(struct pcpi_quarantine *q)
{
	uint32_t *slots = (uint32_t *)(void *)(q + 1);
	unsigned o;

	for (o = 0; o <= PCPI_MAX_ORDER; o++)
		pcpi_depot_init(&q->queues[o], slots + o * PCPI_QUARANTINE_BLOCKS,
				PCPI_QUARANTINE_BLOCKS);
}

void pcpi_quarantine_fini(struct pcpi_quarantine *q)
{
	unsigned o;

	for (o = 0; o <= PCPI_MAX_ORDER; o++)
		pcpi_depot_fini(&q->queues[o]);
}

/* Blocks that a queue may hold when another is to come. */
static uint32_t limit_of(unsigned order, uint64_t managed_pages)
{
	uint64_t blocks = managed_pages / MEMORY_SHARE >> order;

	return (uint32_t)pcpi_min(blocks, (uint64_t)PCPI_QUARANTINE_BLOCKS);
}

uint32_t pcpi_quarantine_put(struct pcpi_quarantine *q, unsigned order,
			     uint32_t pfn, uint64_t managed_pages,
			     uint32_t *out, uint32_t n)
{
	struct pcpi_depot *queue = &q->queues[order];
	uint32_t limit = limit_of(order, managed_pages), len, got = 0;

	if (limit > 0) {
		len = pcpi_depot_len(queue);
		if (len >= limit) /* Q1 */
			got = pcpi_depot_shift(queue, out,
					       pcpi_min(len - limit + 1, n - 1));
		if (pcpi_depot_put(queue, &pfn, 1))
			return got;
	}
	/* No room, or other threads have taken it. */
	out[got] = pfn;
	return got + 1;
}

uint32_t pcpi_quarantine_shift(struct pcpi_quarantine *q, unsigned order,
			       uint32_t *pfns, uint32_t n)
{
	return pcpi_depot_shift(&q->queues[order], pfns, n);
}

void pcpi_quarantine_close(struct pcpi_quarantine *q, bool closed)
{
	unsigned o;

	for (o = 0; o <= PCPI_MAX_ORDER; o++)
		pcpi_depot_close(&q->queues[o], closed);
}

uint64_t pcpi_quarantine_pages(const struct pcpi_quarantine *q)
{
	uint64_t pages = 0;
	unsigned o;

	for (o = 0; q && o <= PCPI_MAX_ORDER; o++)
		pages += (uint64_t)pcpi_depot_len(&q->queues[o]) << o;
	return pages;
}
