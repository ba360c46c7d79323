/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.c - collecting what stats_format.c writes.  Layer 5, part of heap.h.
 *
 * Owns: nothing; reads counters of caches, depots and zones where they are
 * kept, without a lock but the zone's for the free blocks by order, and without
 * a claim.  So each counter is monotone, no state is above what is managed, and
 * their sum is exact when the callers rest.
 *
 *   used = managed - free - cached - depot       alloc - free totals = blocks
 *
 * Cost: a line or two per cache and depot; 64 buddy chunks a lock hold for text.
 * Proved by tests/unit/test_stats.c, tests/conc/stats.c, tests/conc/steps.c.
 */
#include <errno.h>

#include "heap.h"
#include "list.h"
#include "rcu.h"
#include "stats_format.h"

/* relaxed (all of this file): statistics; each value was true a moment ago. */
#define GET(field) pcpi_load_relaxed(&(field))

static void cache_merge(struct pcpi_cache *c, const struct pcpi_zone *z,
			struct pcpa_stats *s)
{
	unsigned o, r;

	if (c->outbox)
		s->free_total += GET(c->outbox[z->config.position].frees);
	if (c->zone != z)
		return;
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		s->alloc_total += pcpi_allocs(&c->list[o].allocs);
	s->free_total += pcpi_cache_frees(c);
	for (r = 0; r < PCPI_DRAIN_REASONS; r++)
		s->drains += GET(c->drains[r]);
	s->drains_high += GET(c->drains[PCPI_DRAIN_HIGH]);
	s->drains_freer += GET(c->drains[PCPI_DRAIN_FREER]);
	s->drains_flush += GET(c->drains[PCPI_DRAIN_FLUSH]);
	s->drains_sweep += GET(c->drains[PCPI_DRAIN_SWEEP]);
	s->drains_decay += GET(c->drains[PCPI_DRAIN_DECAY]);
	s->refills += GET(c->refills);
	s->depot_gets += GET(c->depot_gets);
	s->depot_puts += GET(c->depot_puts);
	s->busy_skipped += GET(c->busy_skipped);
	s->caches += GET(c->owner) != NULL;
}

static void caches_merge(struct pcpa_heap *heap, const struct pcpi_zone *z,
			 struct pcpa_stats *s)
{
	struct pcpi_section section;
	uint64_t remote[heap->nr_zones];
	struct pcpi_cache *c;
	unsigned i;

	for (i = 0; i < heap->nr_zones; i++)
		remote[i] = 0;
	section = pcpi_rcu_read_lock();
	pcpi_list_each(c, &heap->caches, registry) {
		cache_merge(c, z, s);
		pcpi_cache_remote_pages(c, remote);
		if (c->zone == z)
			s->cached_pages += pcpi_cache_count(c);
	}
	pcpi_rcu_read_unlock(section);
	s->cached_pages += remote[z->config.position];
}

static void zone_merge(struct pcpa_heap *heap, const struct pcpi_zone *z,
		       struct pcpa_stats *s)
{
	uint64_t held;

	s->alloc_total = GET(z->direct_allocs);
	s->free_total = GET(z->direct_frees);
	s->depot_gets = GET(z->depot_gets);
	s->depot_puts = GET(z->depot_puts);
	caches_merge(heap, z, s);
	s->free_pages = GET(z->free_pages);
	s->depot_pages = pcpi_zone_depot_pages(z) + GET(z->deferred_pages) +
			 pcpi_quarantine_pages(z->quarantine);
	s->managed_pages = GET(z->managed_pages);
	/* Pages are free a moment before they are managed, and one that moves may
	 * be seen twice. */
	s->free_pages = pcpi_min(s->free_pages, s->managed_pages);
	s->depot_pages = pcpi_min(s->depot_pages, s->managed_pages);
	s->cached_pages = pcpi_min(s->cached_pages, s->managed_pages);
	held = s->free_pages + s->depot_pages + s->cached_pages;
	s->used_pages = s->managed_pages - pcpi_min(held, s->managed_pages);
	s->used_blocks = s->alloc_total - pcpi_min(s->free_total, s->alloc_total);
	s->reserved_pages = z->nr_pfns - s->managed_pages;
	s->min_pages = GET(z->marks.min);
	s->low_pages = GET(z->marks.low);
	s->high_pages = GET(z->marks.high);
	s->zone_locks = GET(z->locks);
	s->zone_contended = GET(z->contended);
	s->numa_miss = GET(z->numa_miss);
	s->numa_foreign = GET(z->numa_foreign);
	s->numa_hit = s->alloc_total - pcpi_min(s->numa_miss, s->alloc_total);
	s->arenas = GET(z->nr_arenas);
	s->trim_failed = GET(z->trim_failed);
	s->grow_vetoed = GET(z->grow_vetoed);
	s->trim_vetoed = GET(z->trim_vetoed);
	s->misplaced_pages =
		GET(heap->space.nodes[z->config.position].misplaced_bytes) >>
		heap->hot.page_shift;
}

void pcpi_stats_collect(struct pcpa_heap *heap, const struct pcpi_zone *zone,
			struct pcpa_stats *out)
{
	struct pcpa_stats sum = { 0 }, one;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++) {
		one = (struct pcpa_stats){ 0 };
		if (zone && zone != &heap->env.zones[z])
			continue;
		zone_merge(heap, &heap->env.zones[z], &one);
		pcpi_stats_add(&sum, &one);
	}
	sum.bad_frees = GET(heap->bad_frees);
	sum.failed_total = GET(heap->failed);
	sum.struct_size = sizeof(sum);
	*out = sum;
}

/* ---- Text ------------------------------------------------------------------ */

static void node_put(struct pcpi_stats_writer *w, struct pcpa_heap *heap,
		     struct pcpi_zone *z)
{
	struct pcpi_section section;
	struct pcpi_stats_node n = {
		.node = (int)z->config.os_node,
		.flags = GET(z->flags),
	};
	struct pcpi_arena *a;
	unsigned o;

	pcpi_stats_collect(heap, z, &n.s);
	pcpi_zone_count_free(z, n.free_blocks);
	for (o = 0; o < PCPI_PCP_ORDERS; o++)
		n.depot_blocks[o] = pcpi_depot_len(&z->depots[o]);
	section = pcpi_rcu_read_lock();
	pcpi_list_each(a, &z->arenas, link) {
		n.backing_bytes[a->backing] += a->bytes;
		n.backing_page_bytes[a->backing] = a->page_bytes;
	}
	pcpi_rcu_read_unlock(section);
	pcpi_stats_put_node(w, &n);
}

static void cache_put(struct pcpi_stats_writer *w, struct pcpi_cache *c)
{
	struct pcpi_pageset ps = pcpi_zone_pageset(c->zone);
	struct pcpi_stats_cache s = {
		.tid = GET(c->tid),
		.node = (int)c->zone->config.os_node,
		.high = GET(c->high),
		.high_min = ps.high_min,
		.high_max = ps.high_max,
		.batch = ps.batch,
		.depot_batch = ps.depot_batch,
		.free_total = pcpi_cache_frees(c),
		.live = GET(c->owner) != NULL,
	};
	unsigned o;

	for (o = 0; o < PCPI_PCP_ORDERS; o++) {
		s.len[o] = pcpi_cache_len(c, o);
		s.count += s.len[o] << o;
		s.alloc_total += pcpi_allocs(&c->list[o].allocs);
	}
	pcpi_stats_put_cache(w, &s);
}

static void zone_put(struct pcpi_stats_writer *w, struct pcpa_heap *heap,
		     struct pcpi_zone *z)
{
	struct pcpi_section section;
	struct pcpi_cache *c;
	struct pcpi_arena *a;

	node_put(w, heap, z);
	section = pcpi_rcu_read_lock();
	pcpi_list_each(c, &heap->caches, registry)
		if (c->zone == z)
			cache_put(w, c);
	pcpi_list_each(a, &z->arenas, link) {
		struct pcpi_stats_arena arena = {
			.node = (int)a->os_node,
			.bytes = a->bytes,
			.page_bytes = a->page_bytes,
			.backing = a->backing,
		};

		pcpi_stats_put_arena(w, &arena);
	}
	pcpi_rcu_read_unlock(section);
}

int pcpi_stats_write(struct pcpa_heap *heap, enum pcpa_stats_format format,
		     char *buf, size_t size)
{
	struct pcpi_stats_writer w;
	struct pcpa_stats total;
	unsigned z;
	int err;

	pcpi_stats_collect(heap, NULL, &total);
	err = pcpi_stats_begin(&w, buf, size, format,
			       (size_t)1 << heap->hot.page_shift, &total);
	if (err)
		return err;
	/* The counters are in the totals already. */
	for (z = 0; z < heap->nr_zones && format != PCPA_STATS_VMSTAT; z++)
		zone_put(&w, heap, &heap->env.zones[z]);
	return (int)pcpi_stats_end(&w);
}
