/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_ranges.h - the steps of model_heap.c that concern more than blocks:
 * contiguous ranges against the same reference, and disables and enables, counted
 * by node.  Part of model_heap.c, whose state they work on.
 */
#ifndef HEAP_RANGES_H
#define HEAP_RANGES_H

#define MAX_RANGES 12u

/* ---- Contiguous ranges ------------------------------------------------------- */

struct range {
	char *addr;
	size_t pages;
	uint64_t stamp;
	unsigned node;
};

static struct range ranges[MAX_RANGES];
static size_t range_count;

struct range_search {
	unsigned node;
	size_t pages, align;
};

/* 1: the arena has room. */
static int range_search(const struct pcpa_arena_info *a, void *arg)
{
	const struct range_search *s = arg;
	size_t bytes = s->align * page, at;
	uintptr_t start = ((uintptr_t)a->base + bytes - 1) & ~(bytes - 1);
	uintptr_t end = (uintptr_t)a->base + a->bytes;

	if ((unsigned)a->node != s->node)
		return 0;
	for (; start + s->pages * page <= end; start += bytes) {
		at = (start - (uintptr_t)heap->hot.base) / page;
		if (!memchr(out + at, 1, s->pages))
			return 1;
	}
	return 0;
}

static bool node_has_range(unsigned node, size_t pages, size_t align,
			   unsigned flags)
{
	struct range_search s = {node, pages, align};
	size_t huge = (size_t)1 << MAX_ORDER;
	uint64_t managed = heap->env.zones[node].managed_pages;

	if (!(flags & PCPA_NOGROW) &&
	    managed + (pages + huge - 1) / huge * huge <= NODE_BYTES / page)
		return true;
	return pcpa_for_each_arena(heap, range_search, &s) == 1;
}

static void range_came(char *addr, size_t pages, size_t align, unsigned flags)
{
	size_t at = index_of(addr);
	unsigned node = pcpi_zone_of(&heap->env, (uint32_t)at)->config.position;
	unsigned named = node_named(flags);
	struct range *r = &ranges[range_count++];

	MUST(addr >= heap->hot.base && at + pages <= MAX_PAGES);
	MUST(((uintptr_t)addr & (page * align - 1)) == 0);
	MUST(!memchr(out + at, 1, pages));
	MUST(pcpa_for_each_arena(heap, arena_covers, addr) == 1);
	MUST(pcpa_for_each_arena(heap, arena_covers,
				 addr + (pages - 1) * page) == 1);
	MUST(pcpa_block_order(heap, addr) == -EINVAL);
	if (flags & PCPA_ZERO)
		MUST(is_zero(addr, pages * page));
	MUST(node == named || (!(flags & PCPA_THISNODE) &&
			       !node_has_range(named, pages, align, flags)));
	memset(out + at, 1, pages);
	held_pages[node] += pages;
	*r = (struct range){addr, pages, random_next(), node};
	pages_write(addr, pages, r->stamp);
}

static void step_contig(void)
{
	size_t pages = below(4) ? 1 + below(40) : 1 + below(1100);
	size_t align = (size_t)1 << below(MAX_ORDER + 1);
	unsigned flags = flags_random() & ~PCPA_NOWAIT, node = node_named(flags);
	char *addr;

	if (range_count == MAX_RANGES)
		return;
	errno = 4711;
	addr = pcpa_alloc_contig(heap, pages, align, flags);
	if (addr) {
		MUST(errno == 4711);
		range_came(addr, pages, align, flags);
		return;
	}
	if (pages > NODE_BYTES / page) {
		MUST(errno == EINVAL);
		return;
	}
	MUST(errno == ENOMEM);
	MUST(!node_has_range(node, pages, align, flags));
	MUST((flags & PCPA_THISNODE) ||
	     !node_has_range(!node, pages, align, flags));
	failures++;
}

static void step_free_contig(void)
{
	struct range r;

	if (range_count == 0)
		return;
	r = ranges[--range_count];
	if (!(heap_flags & PCPA_HEAP_CHECKS) && below(4) == 0) {
		pcpa_free_contig(heap, r.addr, r.pages + 1);
		pcpa_free_contig(heap, r.addr, r.pages - 1);
		pcpa_free_contig(heap, r.addr + page, r.pages - 1);
		pcpa_free(heap, r.addr + below(r.pages) * page);
		bad_count += 4;
	}
	pages_check(r.addr, r.pages, r.stamp);
	memset(out + index_of(r.addr), 0, r.pages);
	held_pages[r.node] -= r.pages;
	errno = 4711;
	pcpa_free_contig(heap, r.addr, r.pages);
	MUST(errno == 4711);
}

/* ---- Whole caches -------------------------------------------------------------- */

static void step_disable(void)
{
	int node = (int)below(NODES + 1) - 1;

	MUST(pcpa_cache_disable(heap, node) == 0);
	depths[0] += node != 1;
	depths[1] += node != 0;
}

static void step_enable(void)
{
	int node = (int)below(NODES + 1) - 1, err;
	bool may = (node == 1 || depths[0] > 0) && (node == 0 || depths[1] > 0);

	err = pcpa_cache_enable(heap, node);
	MUST(err == (may ? 0 : -EINVAL));
	depths[0] -= may && node != 1;
	depths[1] -= may && node != 0;
}

#endif
