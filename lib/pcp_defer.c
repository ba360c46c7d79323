/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp_defer.c - what a nested call frees, and what becomes of it.  Part of pcp.h.
 *
 * Owns: the state of deferred blocks: their order byte has PCPI_PAGE_HELD, so that
 * another free of one is refused; a range's first byte is PCPI_PAGE_GOING.
 *
 *   nested free -----------> byte -> stack --settle--> byte -> depot or zone
 *   ring at its limit -------^   (deferred.h)
 *     in a nested hit
 *
 * DF1  Deferred pages count in their zone's deferred_pages, from before they are in
 *     the stack until after they are out, and nowhere else.
 * DF2  A nested hit leaves a ring below its limit, or finds it claimed, which
 *     keeps further hits out: so rings have room without a test for it (TU3).
 *
 * On watched heaps (checks.h) the tools are told, and the free is noted, when it is
 * settled: until then the library writes to the block.
 *
 * Concurrency: deferring, any handler; settling waits for locks, so it is for calls
 * that are not nested, with DRAIN at most.  Cost: a compare and swap or two a
 * block.  Failure: false where a block is free already.
 * Proved by tests/unit/test_nested.c, tests/conc/signals.c.
 */
#include "page.h"
#include "pcp.h"

static void *memory_of(const struct pcpi_pcp_env *env, uint32_t pfn)
{
	return env->base + ((size_t)pfn << env->page_shift);
}

static void push(struct pcpi_pcp_env *env, uint32_t pfn, uint64_t size,
		 uint32_t pages)
{
	/* relaxed: a statistic. */
	pcpi_fetch_add_relaxed(&pcpi_zone_of(env, pfn)->deferred_pages, size);
	pcpi_deferred_push(&env->deferred, memory_of(env, pfn), pfn, pages);
}

bool pcpi_defer_block(struct pcpi_pcp_env *env, uint32_t pfn, unsigned order)
{
	uint8_t byte = (uint8_t)(order + 1);

	/* acquire/release: pairs with itself; of two frees one is the first. */
	if (!pcpi_cas_acq_rel(&env->orders[pfn], &byte,
			      (uint8_t)(byte | PCPI_PAGE_HELD)))
		return false;
	push(env, pfn, UINT64_C(1) << order, 0);
	return true;
}

void pcpi_defer_range(struct pcpi_pcp_env *env, uint32_t pfn, uint32_t pages)
{
	push(env, pfn, pages, pages);
}

void pcpi_cache_defer(struct pcpi_cache *c, unsigned order)
{
	struct pcpi_ring *ring = &c->list[order].ring;
	uint32_t pfns[PCPI_CHUNK], n = 1, i;

	if (c->env->watched)
		return; /* no frees come to its rings */
	/* A batch more than has to go, for the frees that follow. */
	while (n > 0 && pcpi_ring_len(ring) >= ring->limit) {
		if (!pcpi_cache_enter(c))
			return; /* DF2 */
		n = pcpi_cache_shift(c, order, pfns, PCPI_CHUNK);
		pcpi_cache_leave(c);
		/* False: it was freed twice, and is there once. */
		for (i = 0; i < n; i++)
			pcpi_defer_block(c->env, pfns[i], order);
	}
}

/* ---- Settling ------------------------------------------------------------------ */

/* Blocks of one zone and order that came one after the other. */
struct batch {
	struct pcpi_zone *zone;
	unsigned order;
	uint32_t n, pfns[PCPI_CHUNK];
};

static void batch_give(struct batch *b)
{
	uint64_t pages = (uint64_t)b->n << b->order;

	if (b->n == 0)
		return;
	pcpi_direct_give(b->zone, b->order, b->pfns, b->n);
	/* relaxed: a statistic. */
	pcpi_fetch_add_relaxed(&b->zone->deferred_pages, -pages);
	b->n = 0;
}

static void block_settle(struct pcpi_pcp_env *env, uint32_t pfn, struct batch *b)
{
	unsigned byte = pcpi_page_read(env->orders, pfn);
	unsigned order = (byte & ~PCPI_PAGE_HELD) - 1;
	struct pcpi_zone *zone = pcpi_zone_of(env, pfn);

	PCPA_TRAP((byte & PCPI_PAGE_HELD) && order <= PCPI_MAX_ORDER);
	if (env->watched) {
		pcpi_watched_give(zone, order, pfn);
		/* relaxed: a statistic. */
		pcpi_fetch_add_relaxed(&zone->deferred_pages,
				       -(UINT64_C(1) << order));
		return;
	}
	pcpi_page_write(env->orders, pfn, order + 1);
	if (b->zone != zone || b->order != order || b->n == PCPI_CHUNK)
		batch_give(b);
	b->zone = zone;
	b->order = order;
	b->pfns[b->n++] = pfn;
}

static void range_settle(struct pcpi_pcp_env *env, uint32_t pfn, uint32_t pages)
{
	struct pcpi_zone *zone = pcpi_zone_of(env, pfn);

	if (env->watched)
		pcpi_checks_give_range(zone->config.checks, pfn, pages);
	pcpi_zone_give_range(zone, pfn, pages);
	/* relaxed: a statistic. */
	pcpi_fetch_add_relaxed(&zone->deferred_pages, -(uint64_t)pages);
}

PCPI_COLD void pcpi_deferred_settle(struct pcpi_pcp_env *env)
{
	uint32_t top = pcpi_deferred_take(&env->deferred), pfn, pages;
	struct batch b = { .n = 0 };

	while (top != 0) {
		pfn = top - 1;
		top = pcpi_deferred_next(memory_of(env, pfn), top, &pages);
		if (pages > 0)
			range_settle(env, pfn, pages);
		else
			block_settle(env, pfn, &b);
	}
	batch_give(&b);
}
