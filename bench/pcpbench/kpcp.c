/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kpcp.c - per-thread lists of pages in front of one zone, as in Linux 5.x.
 *
 *   thread's lists                 zone, one lock
 *   order 0: hot - ... - cold  <-> unmerged runs: [31 pages] -> [31 pages] ...
 *   order 1..3, where asked for    buddy of free lists (lib/buddy_list.c)
 *
 * An allocation pops the hot end.  Where that is empty, a batch is taken under
 * one lock and hung up in ascending order.  A free pushes; where the count has
 * reached high, a batch is taken off the cold ends and given back under one
 * lock, of the freed block's order first.  What has no list goes to the zone.
 *
 * Merging: KPCP_EAGER gives each page to the buddy.  The others keep single
 * pages as they are, in runs: of one page each (KPCP_LAZY: as many steps under
 * the lock as pages), or of all pages of a drain (KPCP_CLUSTER: one step, and a
 * refill takes a run as it is).  When the buddy can't serve an order above 0, all
 * runs are merged and it is asked again; if it still can't, pages are merged as
 * they come until such a request succeeds.
 *
 * K1 a free page is in the buddy, in one run, or in one list of one cache.
 * K2 a cache's count is the sum of its blocks' pages.
 * K3 a block in a list has its order in its page's `order`; pages of runs are of
 *    order 0.
 * K4 a run has at most `batch` pages and ends in `run_last`.
 *
 * The lock is a ticket lock: first come, first served, as the kernel's queued
 * one.  Who waits long yields the CPU, since here a holder can lose it.  The time
 * it is held is counted from two readings of the counter inside of it (some 20 ns
 * more), the time waited only when there was a wait.
 *
 * What is not the kernel's: links and states of the buddy lie in arrays of their
 * own, denser than struct page; no migrate types, watermarks, interrupts, zeroing
 * or memory groups.
 *
 * Concurrency: a cache is its thread's; the zone is under the lock.  Cost: a hit
 * some ns and the page's line.  Failure: kpcp_open() by errno; no page: NULL.
 * Proved by tests/bench/test_kpcp.c.
 */
#define _GNU_SOURCE
#include "kpcp.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "check.h"
#include "tsc.h"

enum { SPINS_BEFORE_YIELD = 2000 };

/* ---- The zone's lock ----------------------------------------------------- */

static void owner_await(struct kpcp_lock *l, unsigned mine)
{
	/* pairs with zone_unlock(). */
	for (unsigned spins = 1;
	     atomic_load_explicit(&l->owner, memory_order_acquire) != mine;
	     spins++) {
		if (spins % SPINS_BEFORE_YIELD == 0)
			sched_yield();
		else
			bench_pause();
	}
}

/* Returns when it was got, for zone_unlock(). */
static uint64_t zone_lock(struct kpcp_cache *c)
{
	struct kpcp_lock *l = &c->kpcp->lock;
	/* relaxed: the order comes from owner. */
	unsigned mine = atomic_fetch_add_explicit(&l->next, 1,
						  memory_order_relaxed);
	uint64_t asked, got;

	c->counters.locks++;
	/* pairs with zone_unlock(). */
	if (atomic_load_explicit(&l->owner, memory_order_acquire) == mine)
		return bench_tsc_read();
	asked = bench_tsc_read();
	owner_await(l, mine);
	got = bench_tsc_read();
	c->counters.lock_contended++;
	c->counters.lock_wait_ticks += got - asked;
	return got;
}

static void zone_unlock(struct kpcp_cache *c, uint64_t got)
{
	struct kpcp_lock *l = &c->kpcp->lock;
	/* relaxed: only the holder writes it. */
	unsigned mine = atomic_load_explicit(&l->owner, memory_order_relaxed);

	c->counters.lock_hold_ticks += bench_tsc_read() - got;
	/* pairs with owner_await() and zone_lock(). */
	atomic_store_explicit(&l->owner, mine + 1, memory_order_release);
}

/* ---- Lists of a cache ---------------------------------------------------- */

static struct kpcp_page *page_at(const struct kpcp *k, uint32_t link)
{
	return &k->page[link - 1];
}

static void list_push(struct kpcp_cache *c, uint32_t pfn, unsigned order)
{
	struct kpcp_list *list = &c->list[order];
	struct kpcp_page *p = &c->kpcp->page[pfn];

	p->order = (uint8_t)order;
	p->prev = 0;
	p->next = list->head;
	if (list->head)
		page_at(c->kpcp, list->head)->prev = pfn + 1;
	else
		list->tail = pfn + 1;
	list->head = pfn + 1;
	c->count += 1u << order;
}

/* Hangs a chain, linked both ways, at the cold end. */
static void list_append(struct kpcp_cache *c, unsigned order, uint32_t first,
			uint32_t last, unsigned pages)
{
	struct kpcp_list *list = &c->list[order];

	page_at(c->kpcp, first)->prev = list->tail;
	page_at(c->kpcp, last)->next = 0;
	if (list->tail)
		page_at(c->kpcp, list->tail)->next = first;
	else
		list->head = first;
	list->tail = last;
	c->count += pages;
}

/* Requires: the list isn't empty. */
static uint32_t list_pop(struct kpcp_cache *c, unsigned order)
{
	struct kpcp_list *list = &c->list[order];
	uint32_t link = list->head;

	list->head = page_at(c->kpcp, link)->next;
	if (list->head)
		page_at(c->kpcp, list->head)->prev = 0;
	else
		list->tail = 0;
	c->count -= 1u << order;
	return link - 1;
}

/* Takes blocks off the cold end until *pages are; they stay linked.  Returns the
 * first in list order, 0 of an empty list, and takes its pages off *pages. */
static uint32_t list_cut(struct kpcp_cache *c, unsigned order, int *pages,
			 uint32_t *last)
{
	struct kpcp_list *list = &c->list[order];
	uint32_t first = 0, link = list->tail;

	*last = list->tail;
	while (link && *pages > 0) {
		first = link;
		link = page_at(c->kpcp, link)->prev;
		*pages -= 1 << order;
		c->count -= 1u << order;
	}
	list->tail = link;
	if (link)
		page_at(c->kpcp, link)->next = 0;
	else
		list->head = 0;
	return first;
}

/* ---- Unmerged runs, under the lock --------------------------------------- */

static void run_hang(struct kpcp *k, uint32_t first, uint32_t last,
		     unsigned pages)
{
	struct kpcp_page *p = page_at(k, first);

	p->run_next = k->runs;
	p->run_last = last;
	p->run_pages = pages;
	k->runs = first;
	k->unmerged_pages += pages;
}

static uint32_t run_unhang(struct kpcp *k)
{
	uint32_t first = k->runs;
	const struct kpcp_page *p = page_at(k, first);

	k->runs = p->run_next;
	k->unmerged_pages -= p->run_pages;
	return first;
}

/* Gives a chain to the buddy. */
static void chain_merge(struct kpcp *k, uint32_t first, unsigned order)
{
	for (uint32_t link = first, next; link; link = next) {
		next = page_at(k, link)->next;
		pcpi_buddy_list_give(&k->buddy, link - 1, order);
	}
}

static void runs_merge(struct kpcp *k)
{
	while (k->runs)
		chain_merge(k, run_unhang(k), 0);
	k->merge_passes++;
}

/* A chain of one order comes back from a cache. */
static void chain_give(struct kpcp *k, uint32_t first, uint32_t last,
		       unsigned order, unsigned pages)
{
	bool merged = order > 0 || k->options.merge == KPCP_EAGER ||
		      k->merge_needed;

	if (merged)
		chain_merge(k, first, order);
	else if (k->options.merge == KPCP_CLUSTER)
		run_hang(k, first, last, pages);
	else
		for (uint32_t link = first, next; link; link = next) {
			next = page_at(k, link)->next;
			page_at(k, link)->next = 0;
			run_hang(k, link, link, 1);
		}
}

/* ---- Refill and drain ---------------------------------------------------- */

/* Up to n blocks of the buddy; where an order above 0 is missed and pages are
 * unmerged, they are merged first. */
static unsigned buddy_take(struct kpcp *k, unsigned order, uint32_t *pfns,
			   unsigned n)
{
	unsigned got = pcpi_buddy_list_take_bulk(&k->buddy, order, pfns, n);

	if (order == 0)
		return got;
	if (!got && k->runs) {
		runs_merge(k);
		got = pcpi_buddy_list_take_bulk(&k->buddy, order, pfns, n);
	}
	k->merge_needed = got == 0;
	return got;
}

static unsigned refill_from_runs(struct kpcp_cache *c, unsigned want)
{
	struct kpcp *k = c->kpcp;
	unsigned got = 0;

	while (k->runs && got + page_at(k, k->runs)->run_pages <= want) {
		uint32_t first = run_unhang(k);
		const struct kpcp_page *p = page_at(k, first);

		got += p->run_pages;
		list_append(c, 0, first, p->run_last, p->run_pages);
	}
	return got;
}

static unsigned refill_from_buddy(struct kpcp_cache *c, unsigned order,
				  unsigned want)
{
	uint32_t pfns[KPCP_MAX_BATCH];
	unsigned got = buddy_take(c->kpcp, order, pfns, want);

	for (unsigned i = 0; i < got; i++) {
		c->kpcp->page[pfns[i]].order = (uint8_t)order;
		list_append(c, order, pfns[i] + 1, pfns[i] + 1, 1u << order);
	}
	return got;
}

/* Returns whether there is anything now. */
static bool refill(struct kpcp_cache *c, unsigned order)
{
	unsigned want = kpcp_refill_blocks(c->kpcp->options.batch, order);
	unsigned got = 0;
	uint64_t held = zone_lock(c);

	if (order == 0)
		got = refill_from_runs(c, want);
	if (got == 0)
		got = refill_from_buddy(c, order, want);
	zone_unlock(c, held);
	c->counters.refills++;
	c->counters.refill_pages += (uint64_t)got << order;
	return got > 0;
}

/* Gives back at least so many pages, where there are, by one hold of the lock;
 * lists are cut before it is taken. */
static void drain(struct kpcp_cache *c, unsigned freed_order, unsigned pages)
{
	struct { uint32_t first, last; unsigned pages, order; } cut[KPCP_ORDERS];
	unsigned before = c->count, n = 0;
	int left = (int)pages;
	uint64_t held;

	for (unsigned i = 0; i < c->kpcp->options.orders && left > 0; i++) {
		unsigned order = (freed_order + i) % c->kpcp->options.orders;
		unsigned count = c->count;

		cut[n].order = order;
		cut[n].first = list_cut(c, order, &left, &cut[n].last);
		cut[n].pages = count - c->count;
		n += cut[n].first != 0;
	}
	held = zone_lock(c);
	for (unsigned i = 0; i < n; i++)
		chain_give(c->kpcp, cut[i].first, cut[i].last, cut[i].order,
			   cut[i].pages);
	zone_unlock(c, held);
	c->counters.drains++;
	c->counters.drain_pages += before - c->count;
}

/* ---- Without a list ------------------------------------------------------ */

static uint32_t direct_take(struct kpcp_cache *c, unsigned order)
{
	uint32_t pfn = PCPI_NO_PFN;
	uint64_t held = zone_lock(c);

	buddy_take(c->kpcp, order, &pfn, 1);
	zone_unlock(c, held);
	c->counters.directs++;
	return pfn;
}

static void direct_give(struct kpcp_cache *c, uint32_t pfn, unsigned order)
{
	uint64_t held = zone_lock(c);

	pcpi_buddy_list_give(&c->kpcp->buddy, pfn, order);
	zone_unlock(c, held);
	c->counters.directs++;
}

/* ---- Calls --------------------------------------------------------------- */

void *kpcp_alloc(struct kpcp_cache *c, unsigned order)
{
	struct kpcp *k = c->kpcp;
	uint32_t pfn;

	if (order > KPCP_TOP_ORDER)
		return NULL;
	if (order >= k->options.orders) {
		pfn = direct_take(c, order);
		if (pfn == PCPI_NO_PFN)
			return NULL;
	} else {
		if (!c->list[order].head && !refill(c, order))
			return NULL;
		pfn = list_pop(c, order);
	}
	c->counters.allocs++;
	return k->base + (size_t)pfn * KPCP_PAGE_BYTES;
}

void kpcp_free(struct kpcp_cache *c, void *block, unsigned order)
{
	const struct kpcp_options *o = &c->kpcp->options;
	size_t offset = (size_t)((char *)block - c->kpcp->base);
	uint32_t pfn = (uint32_t)(offset / KPCP_PAGE_BYTES);
	unsigned pages;

	c->counters.frees++;
	if (order >= o->orders) {
		direct_give(c, pfn, order);
		return;
	}
	list_push(c, pfn, order);
	pages = kpcp_drain_pages(c->count, o->batch, o->high);
	if (pages)
		drain(c, order, pages);
}

void kpcp_merge_all(struct kpcp_cache *c)
{
	uint64_t held = zone_lock(c);

	runs_merge(c->kpcp);
	zone_unlock(c, held);
}

uint32_t kpcp_free_blocks(const struct kpcp *k, unsigned order)
{
	return k->buddy.blocks[order];
}

void kpcp_attach(struct kpcp *k, struct kpcp_cache *c)
{
	*c = (struct kpcp_cache){.kpcp = k};
}

void kpcp_detach(struct kpcp_cache *c)
{
	while (c->count)
		drain(c, 0, pcpi_min(c->count, c->kpcp->options.batch));
	c->kpcp = NULL;
}

/* ---- Set-up -------------------------------------------------------------- */

static bool options_valid(const struct kpcp_options *o)
{
	return o->mib >= 2 && o->mib <= (size_t)1 << 22 && o->batch >= 1 &&
	       o->batch <= KPCP_MAX_BATCH && o->high >= o->batch &&
	       o->high <= INT32_MAX && o->orders >= 1 &&
	       o->orders <= KPCP_ORDERS && o->merge < KPCP_MERGES;
}

/* Blocks are to be aligned to their size: a chunk more is mapped, and its ends
 * go back. */
static char *memory_map(size_t bytes)
{
	size_t chunk = (size_t)KPCP_PAGE_BYTES << KPCP_TOP_ORDER, skip;
	char *p = mmap(NULL, bytes + chunk, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	skip = -(uintptr_t)p % chunk;
	if (skip)
		munmap(p, skip);
	munmap(p + skip + bytes, chunk - skip);
	madvise(p + skip, bytes, MADV_HUGEPAGE);
	for (size_t at = 0; at < bytes; at += KPCP_PAGE_BYTES)
		*(volatile char *)(p + skip + at) = 0;
	return p + skip;
}

int kpcp_open(struct kpcp *k, const struct kpcp_options *options)
{
	uint32_t chunks;

	if (!options_valid(options))
		return -EINVAL;
	chunks = (uint32_t)(options->mib / 2);
	*k = (struct kpcp){.options = *options, .bytes = (size_t)chunks << 21};
	k->base = memory_map(k->bytes);
	k->page = aligned_alloc(64, k->bytes / KPCP_PAGE_BYTES *
					    sizeof(struct kpcp_page));
	k->meta = calloc(1, pcpi_buddy_list_meta_bytes(chunks, KPCP_TOP_ORDER));
	if (!k->base || !k->page || !k->meta) {
		kpcp_close(k);
		return -ENOMEM;
	}
	for (size_t i = 0; i < k->bytes / KPCP_PAGE_BYTES; i++)
		k->page[i] = (struct kpcp_page){.order = 0};
	pcpi_buddy_list_init(&k->buddy, k->meta, 0, chunks, KPCP_TOP_ORDER);
	pcpi_buddy_list_add(&k->buddy, 0, chunks << KPCP_TOP_ORDER);
	return 0;
}

void kpcp_close(struct kpcp *k)
{
	if (k->base)
		munmap(k->base, k->bytes);
	free(k->page);
	free(k->meta);
	*k = (struct kpcp){.bytes = 0};
}
