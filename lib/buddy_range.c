/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buddy_range.c - ranges of any length in the bitmap core; part of the module
 * buddy, PURE.
 *
 * Free blocks are not stored (buddy.c), so that a range is taken by clearing its
 * bits and given by setting them, a word at a time; what it splits or merges
 * shows when the chunk is counted again.
 *
 *     word     [........][..rrrrrr][rrrrrrrr][rr......]
 *     pieces                1         2       3
 *
 * Cost: a chunk's words, once to change and once to count them; whole chunks are
 * counted by their summary.  Failure: a page in the wrong state: trap.
 * Proved by tests/unit/test_buddy.c and tests/model/model_buddy.c.
 */
#include "buddy.h"

#include "buddy_bits.h"
#include "check.h"

/* The part of a range that is in one word; pages are counted from b->first. */
struct piece {
	size_t w;
	uint64_t mask;
	unsigned bit;
	uint32_t pages;
};

static struct piece piece_at(const struct pcpi_buddy *b, uint32_t at,
			     uint32_t end)
{
	uint32_t word_pages = 1u << b->word_order;
	unsigned bit = at & (word_pages - 1);
	uint32_t n = pcpi_min(word_pages - bit, end - at);

	return (struct piece){
		.w = at >> b->word_order,
		.mask = low_bits(n) << bit,
		.bit = bit,
		.pages = n,
	};
}

static void range_assert(const struct pcpi_buddy *b, uint32_t pfn, uint32_t pages)
{
	PCPA_ASSERT(pages > 0 && pfn >= b->first);
	PCPA_ASSERT((uint64_t)pfn - b->first + pages <=
		    (uint64_t)b->chunks << b->top_order);
	(void)b;
	(void)pfn;
	(void)pages;
}

uint32_t pcpi_buddy_range_free(const struct pcpi_buddy *b, uint32_t pfn,
			       uint32_t pages)
{
	uint32_t at = pfn - b->first, end = at + pages, free = 0;
	uint32_t chunk = 1u << b->top_order;
	struct piece p;

	range_assert(b, pfn, pages);
	while (at < end) {
		if (at % chunk == 0 && end - at >= chunk) {
			free += b->chunk[at >> b->top_order].free;
			at += chunk;
			continue;
		}
		p = piece_at(b, at, end);
		free += count_bits(b->words[p.w] & p.mask);
		at += p.pages;
	}
	return free;
}

/* The first page in [at, end) whose bit, flipped by `flip`, is set; end: none. */
static uint32_t bit_find(const struct pcpi_buddy *b, uint32_t at, uint32_t end,
			 uint64_t flip)
{
	struct piece p;
	uint64_t x;

	for (; at < end; at += p.pages) {
		p = piece_at(b, at, end);
		x = (b->words[p.w] ^ flip) & p.mask;
		if (x != 0)
			return at + lowest_bit(x) - p.bit;
	}
	return end;
}

uint32_t pcpi_buddy_range_run(const struct pcpi_buddy *b, uint32_t pfn,
			      uint32_t pages, uint32_t *first)
{
	uint32_t at = pfn - b->first, end = at + pages;

	range_assert(b, pfn, pages);
	at = bit_find(b, at, end, 0);
	*first = b->first + at;
	return bit_find(b, at, end, ~UINT64_C(0)) - at;
}

/* Sets the pages' bits to `free`, which they must not be yet. */
static void range_set(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages,
		      bool free)
{
	uint32_t at = pfn - b->first, end = at + pages, chunk;
	uint64_t before = free ? 0 : ~UINT64_C(0);
	struct piece p;

	range_assert(b, pfn, pages);
	while (at < end) {
		chunk = at >> b->top_order;
		for (; at < end && at >> b->top_order == chunk; at += p.pages) {
			p = piece_at(b, at, end);
			PCPA_TRAP(((b->words[p.w] ^ before) & p.mask) == 0);
			b->words[p.w] ^= p.mask;
		}
		pcpi_buddy_recount(b, chunk);
	}
}

void pcpi_buddy_range_take(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages)
{
	range_set(b, pfn, pages, false);
}

void pcpi_buddy_range_give(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages)
{
	range_set(b, pfn, pages, true);
}
