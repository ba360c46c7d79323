/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buddy_list.c - the list core of the buddy: a free list per order.
 *
 * Owns which blocks of a range are free.  Not linked into the library: the
 * model test holds buddy.c against it, and the benchmarks need an allocator
 * that behaves as the kernel's.
 *
 *   head[0] -> 13 -> 7 -> 29       page 16: state 3, a free block of order 2
 *   head[1] -> 40                  pages 17-19: state 0
 *   head[2] -> 16 -> 4
 *
 * take: the first block of the smallest order that has one; the rest of it
 * goes back as the largest aligned blocks.  give: while the buddy is free and
 * whole, unhang it and go one order up; hang the result at the head, or at the
 * tail when the next order's buddy is free too: left alone for a while, the
 * block may merge twice.
 *
 * L1 a page is in at most one free block; its first page has state 1 + order
 *    and hangs in that order's list, any other page has state 0.
 * L2 a block of order k starts at a multiple of 2^k, counted from `first`.
 * L3 no two buddies of the same order below the top order are both free.
 * L4 blocks[k] is the length of list k.
 * L5 free_pages is the sum of blocks[k] x 2^k.
 *
 * Concurrency: none; the caller holds a lock.  Cost: O(orders) a block, each
 * step a line of the neighbours in the list.  Failure: no block: PCPI_NO_PFN
 * or 0.  Proved by tests/unit/test_buddy.c and tests/model/model_buddy.c.
 */
#include "buddy_list.h"

#include "bits.h"
#include "check.h"

/* ---- Lists; pages are counted from `first` ------------------------------ */

static void hang_head(struct pcpi_buddy_list *b, uint32_t page, unsigned order)
{
	struct pcpi_buddy_link *link = &b->link[page];

	link->prev = 0;
	link->next = b->head[order];
	if (link->next != 0)
		b->link[link->next - 1].prev = page + 1;
	else
		b->tail[order] = page + 1;
	b->head[order] = page + 1;
	b->state[page] = (uint8_t)(order + 1);
	b->blocks[order]++;
}

static void hang_tail(struct pcpi_buddy_list *b, uint32_t page, unsigned order)
{
	struct pcpi_buddy_link *link = &b->link[page];

	link->next = 0;
	link->prev = b->tail[order];
	if (link->prev != 0)
		b->link[link->prev - 1].next = page + 1;
	else
		b->head[order] = page + 1;
	b->tail[order] = page + 1;
	b->state[page] = (uint8_t)(order + 1);
	b->blocks[order]++;
}

static void unhang(struct pcpi_buddy_list *b, uint32_t page, unsigned order)
{
	struct pcpi_buddy_link *link = &b->link[page];

	if (link->prev != 0)
		b->link[link->prev - 1].next = link->next;
	else
		b->head[order] = link->next;
	if (link->next != 0)
		b->link[link->next - 1].prev = link->prev;
	else
		b->tail[order] = link->prev;
	b->state[page] = 0;
	b->blocks[order]--;
}

/* ---- Take and give ------------------------------------------------------ */

/* Takes the first block of order j, writes up to n blocks of `order` from its
 * front, and hangs the rest; returns how many it wrote. */
static uint32_t break_block(struct pcpi_buddy_list *b, unsigned j,
			    unsigned order, uint32_t *pfns, uint32_t n)
{
	uint32_t page = b->head[j] - 1, at, end = 1u << j;

	n = pcpi_min(n, end >> order);
	unhang(b, page, j);
	for (uint32_t i = 0; i < n; i++)
		pfns[i] = b->first + page + (i << order);
	for (at = n << order; at < end;) {
		unsigned rest = (unsigned)__builtin_ctz(at);

		hang_head(b, page + at, rest);
		at += 1u << rest;
	}
	b->splits += j > order;
	b->free_pages -= (uint64_t)n << order;
	return n;
}

uint32_t pcpi_buddy_list_take_bulk(struct pcpi_buddy_list *b, unsigned order,
				   uint32_t *pfns, uint32_t n)
{
	uint32_t got = 0;

	for (unsigned j = order; j <= b->top_order; j++)
		while (got < n && b->head[j] != 0)
			got += break_block(b, j, order, pfns + got, n - got);
	return got;
}

uint32_t pcpi_buddy_list_take(struct pcpi_buddy_list *b, unsigned order)
{
	uint32_t pfn;

	return pcpi_buddy_list_take_bulk(b, order, &pfn, 1) == 1 ? pfn
								 : PCPI_NO_PFN;
}

/* Is the block likely to merge twice once its buddy is given? */
static bool merge_likely(const struct pcpi_buddy_list *b, uint32_t page,
			 unsigned order)
{
	uint32_t parent = page & ~(1u << order);

	return order + 1 < b->top_order &&
	       b->state[parent ^ (2u << order)] == order + 2;
}

void pcpi_buddy_list_give(struct pcpi_buddy_list *b, uint32_t pfn,
			  unsigned order)
{
	uint32_t page = pfn - b->first;

	PCPA_ASSERT(page >> b->top_order < b->chunks);
	PCPA_ASSERT((page & ((1u << order) - 1)) == 0); /* L2 */
	PCPA_TRAP(b->state[page] == 0);
	b->free_pages += UINT64_C(1) << order;
	while (order < b->top_order) {
		uint32_t buddy = page ^ (1u << order);

		if (b->state[buddy] != order + 1)
			break;
		unhang(b, buddy, order);
		page &= buddy;
		order++;
	}
	if (merge_likely(b, page, order))
		hang_tail(b, page, order);
	else
		hang_head(b, page, order);
}

void pcpi_buddy_list_give_bulk(struct pcpi_buddy_list *b, unsigned order,
			       const uint32_t *pfns, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pcpi_buddy_list_give(b, pfns[i], order);
}

/* ---- Set-up and queries ------------------------------------------------- */

size_t pcpi_buddy_list_meta_bytes(uint32_t chunks, unsigned top_order)
{
	return ((size_t)chunks << top_order) *
	       (sizeof(struct pcpi_buddy_link) + sizeof(uint8_t));
}

void pcpi_buddy_list_init(struct pcpi_buddy_list *b, void *meta, uint32_t first,
			  uint32_t chunks, unsigned top_order)
{
	PCPA_ASSERT(top_order >= 1 && top_order <= PCPI_MAX_ORDER);
	PCPA_ASSERT(first + ((uint64_t)chunks << top_order) <= UINT64_C(1)
								       << 32);
	*b = (struct pcpi_buddy_list){.link = meta,
				      .first = first,
				      .chunks = chunks,
				      .top_order = top_order};
	b->state = (void *)(b->link + ((size_t)chunks << top_order));
}

void pcpi_buddy_list_add(struct pcpi_buddy_list *b, uint32_t pfn, uint32_t pages)
{
	uint32_t chunk = 1u << b->top_order, page = pfn - b->first;

	PCPA_ASSERT(((page | pages) & (chunk - 1)) == 0);
	PCPA_ASSERT((page + pages) >> b->top_order <= b->chunks);
	PCPA_ASSERT((uint64_t)pfn + pages <= PCPI_NO_PFN);
	for (uint32_t at = 0; at < pages; at += chunk)
		hang_tail(b, page + at, b->top_order);
	b->free_pages += pages;
}

bool pcpi_buddy_list_is_free(const struct pcpi_buddy_list *b, uint32_t pfn)
{
	uint32_t page = pfn - b->first;

	if (pfn < b->first || page >> b->top_order >= b->chunks)
		return false;
	for (unsigned j = 0; j <= b->top_order; j++)
		if (b->state[page & (~0u << j)] == j + 1)
			return true;
	return false;
}

/* ---- Ranges ------------------------------------------------------------- */

uint32_t pcpi_buddy_list_range_free(const struct pcpi_buddy_list *b,
				    uint32_t pfn, uint32_t pages)
{
	uint32_t free = 0;

	while (pages-- > 0)
		free += pcpi_buddy_list_is_free(b, pfn + pages);
	return free;
}

uint32_t pcpi_buddy_list_range_run(const struct pcpi_buddy_list *b, uint32_t pfn,
				   uint32_t pages, uint32_t *first)
{
	uint32_t end = pfn + pages, at = pfn;

	while (at < end && !pcpi_buddy_list_is_free(b, at))
		at++;
	*first = at;
	while (at < end && pcpi_buddy_list_is_free(b, at))
		at++;
	return at - *first;
}

/* Takes a page out of the block around it, and hangs the rest. */
static void take_page(struct pcpi_buddy_list *b, uint32_t page)
{
	unsigned j = 0;

	while (j <= b->top_order && b->state[page & (~0u << j)] != j + 1)
		j++;
	PCPA_TRAP(j <= b->top_order);
	unhang(b, page & (~0u << j), j);
	while (j-- > 0)
		hang_head(b, (page ^ 1u << j) & (~0u << j), j);
	b->free_pages--;
}

void pcpi_buddy_list_range_take(struct pcpi_buddy_list *b, uint32_t pfn,
				uint32_t pages)
{
	while (pages-- > 0)
		take_page(b, pfn++ - b->first);
}

void pcpi_buddy_list_range_give(struct pcpi_buddy_list *b, uint32_t pfn,
				uint32_t pages)
{
	while (pages-- > 0)
		pcpi_buddy_list_give(b, pfn++, 0);
}

bool pcpi_buddy_list_has(const struct pcpi_buddy_list *b, unsigned order)
{
	for (unsigned j = order; j <= b->top_order; j++)
		if (b->head[j] != 0)
			return true;
	return false;
}

uint64_t pcpi_buddy_list_free_pages(const struct pcpi_buddy_list *b)
{
	return b->free_pages;
}

void pcpi_buddy_list_chunk_counts(const struct pcpi_buddy_list *b,
				  uint32_t chunk,
				  uint32_t counts[PCPI_MAX_ORDER + 1])
{
	const uint8_t *state = &b->state[(size_t)chunk << b->top_order];

	for (uint32_t at = 0; at < 1u << b->top_order;) {
		if (state[at] == 0) {
			at++;
			continue;
		}
		counts[state[at] - 1]++;
		at += 1u << (state[at] - 1);
	}
}

/* ---- Check -------------------------------------------------------------- */

/* L1 to L4 of one list. */
static bool order_check(const struct pcpi_buddy_list *b, unsigned order)
{
	uint32_t prev = 0, n = 0, at = b->head[order];

	for (; at != 0; prev = at, at = b->link[at - 1].next) {
		uint32_t page = at - 1, buddy = page ^ (1u << order);

		if (page >> b->top_order >= b->chunks || n++ == b->blocks[order])
			return false;
		if ((page & ((1u << order) - 1)) != 0 ||
		    b->state[page] != order + 1 || b->link[page].prev != prev)
			return false;
		if (order < b->top_order && b->state[buddy] == order + 1)
			return false;
	}
	return b->tail[order] == prev && n == b->blocks[order];
}

/* L1 of one chunk: no state but 0 inside a block. */
static bool chunk_check(const struct pcpi_buddy_list *b, uint32_t chunk)
{
	const uint8_t *state = &b->state[(size_t)chunk << b->top_order];
	uint32_t free_until = 0;

	for (uint32_t at = 0; at < 1u << b->top_order; at++) {
		if (state[at] == 0)
			continue;
		if (at < free_until || state[at] > b->top_order + 1)
			return false;
		free_until = at + (1u << (state[at] - 1));
	}
	return true;
}

bool pcpi_buddy_list_check(const struct pcpi_buddy_list *b)
{
	uint32_t found[PCPI_MAX_ORDER + 1] = {0};
	uint64_t pages = 0;

	for (uint32_t c = 0; c < b->chunks; c++) {
		if (!chunk_check(b, c))
			return false;
		pcpi_buddy_list_chunk_counts(b, c, found);
	}
	for (unsigned j = 0; j <= PCPI_MAX_ORDER; j++) {
		if (found[j] != b->blocks[j] || !order_check(b, j))
			return false;
		pages += (uint64_t)b->blocks[j] << j;
	}
	return pages == b->free_pages; /* L5 */
}
