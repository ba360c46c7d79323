/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buddy.h - free blocks of 2^order pages over a range of page indices, as one
 * bit a page.  Layer 2, PURE.  How it works: buddy.c.
 *
 * The range [first, first + (chunks << top_order)) is cut into chunks of
 * 2^top_order pages.  A block never crosses a chunk and is aligned to its size
 * counted from `first`; the caller who wants absolute alignment makes `first`
 * a multiple of the chunk.  The caller holds the lock, if there is one, and
 * owns the metadata memory.
 */
#ifndef PCPI_BUDDY_H
#define PCPI_BUDDY_H

#include "base.h"

#define PCPI_BUDDY_MIN_TOP_ORDER 4

/* The most chunks that one take looks into: bounds the time under the lock. */
#define PCPI_BUDDY_TAKE_CHUNKS 4

enum pcpi_buddy_type {
	PCPI_BUDDY_ABSENT = 0, /* not managed; its metadata is all zero */
	PCPI_BUDDY_NORMAL = 1,
};

/* The summary of a chunk.  All zero is a chunk that is not managed. */
struct pcpi_buddy_chunk {
	uint32_t next, prev; /* in the bucket's circle, when it hangs    */
	uint16_t free;       /* pages                                         */
	uint8_t top;      /* 1 + the largest free order, 0: nothing is free */
	uint8_t type;     /* enum pcpi_buddy_type; isolation will add one  */
	uint8_t spare[4]; /* zero                                          */
};

struct pcpi_buddy {
	uint64_t *words; /* bit set: page free                           */
	struct pcpi_buddy_chunk *chunk; /* [chunks], then the buckets' nodes */
	uint64_t free_pages;
	uint64_t splits; /* rises in a take that broke a larger block    */
	uint32_t first;
	uint32_t chunks;
	uint8_t top_order;
	uint8_t word_order; /* order of what a word covers: at most 6   */
	uint16_t rows;      /* bit r: some classes[r] is not 0          */
	uint16_t classes[PCPI_MAX_ORDER + 1]; /* bit k: bucket [r][k] has any */
};

/* Bytes of metadata; address space is enough, as only the parts that describe
 * managed chunks are ever touched.  0.16 bytes a page at top order 9. */
size_t pcpi_buddy_meta_bytes(uint32_t chunks, unsigned top_order);

/*
 * Makes b describe a range with nothing managed.
 * Requires: meta is zeroed, aligned to a cache line, of
 * pcpi_buddy_meta_bytes(); 4 <= top_order <= PCPI_MAX_ORDER; the range ends at
 * 2^32 at most.
 * Cost: constant; touches only the last 2 KiB of meta.
 */
void pcpi_buddy_init(struct pcpi_buddy *b, void *meta, uint32_t first,
		     uint32_t chunks, unsigned top_order);

/*
 * Makes the whole chunks of [pfn, pfn + pages) managed and free.
 * Requires: chunk boundaries; not managed so far; PCPI_NO_PFN is not in it.
 * Cost: a cache line or two per chunk.
 */
void pcpi_buddy_add(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages);

/*
 * The opposite: makes whole chunks unmanaged if all their pages are free.
 * Requires: chunk boundaries.  Returns false, with nothing changed, if a page is
 * not.  Cost: a cache line or two per chunk.
 */
bool pcpi_buddy_remove(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages);

/* Takes a block and returns its first page, or PCPI_NO_PFN when there is none. */
uint32_t pcpi_buddy_take(struct pcpi_buddy *b, unsigned order);

/*
 * Takes up to n blocks into pfns[n], ascending within what one chunk gives.
 * Returns how many; fewer than n when they ran out or
 * PCPI_BUDDY_TAKE_CHUNKS chunks were used up; 0 only when no block of the
 * order exists.  Call again for more, with the lock dropped in between.
 * Cost: bounded by the chunks touched and n, whatever the range's size.
 */
uint32_t pcpi_buddy_take_bulk(struct pcpi_buddy *b, unsigned order,
			      uint32_t *pfns, uint32_t n);

/* Gives a taken block back, or any aligned part of one. */
void pcpi_buddy_give(struct pcpi_buddy *b, uint32_t pfn, unsigned order);

/*
 * Gives n blocks back; pfns[n] may be in any order, ascending runs are faster.
 * Traps on a page that is free already.
 * Cost: one or two cache lines a block, fetched ahead; a run shares them.
 */
void pcpi_buddy_give_bulk(struct pcpi_buddy *b, unsigned order,
			  const uint32_t *pfns, uint32_t n);

/*
 * Ranges of any length and alignment (buddy_range.c): [pfn, pfn + pages) lies
 * in the buddy's range, and pages is at least 1; what is not managed is not free.
 * Cost of each: a line or two a chunk.
 */

/* How many of the pages are free. */
uint32_t pcpi_buddy_range_free(const struct pcpi_buddy *b, uint32_t pfn,
			       uint32_t pages);

/* The first run of free pages in the range: its length, 0 without any, and in
 * *first where it begins. */
uint32_t pcpi_buddy_range_run(const struct pcpi_buddy *b, uint32_t pfn,
			      uint32_t pages, uint32_t *first);

/* Takes just these pages, whatever blocks they are part of.  Traps unless all
 * are free. */
void pcpi_buddy_range_take(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages);

/* Gives taken pages back.  Traps where one is free already. */
void pcpi_buddy_range_give(struct pcpi_buddy *b, uint32_t pfn, uint32_t pages);

/* For buddy_range.c, which has changed the chunk's bits. */
void pcpi_buddy_recount(struct pcpi_buddy *b, uint32_t chunk);

/* Is the page free?  Any pfn may be asked about; false outside the range. */
bool pcpi_buddy_is_free(const struct pcpi_buddy *b, uint32_t pfn);

/* Would a take of this order succeed? */
bool pcpi_buddy_has(const struct pcpi_buddy *b, unsigned order);

uint64_t pcpi_buddy_free_pages(const struct pcpi_buddy *b);

/* Adds to counts[] the free blocks of the chunk'th chunk, each page counted in
 * the largest block it is part of. */
void pcpi_buddy_chunk_counts(const struct pcpi_buddy *b, uint32_t chunk,
			     uint32_t counts[PCPI_MAX_ORDER + 1]);

/* Do all invariants hold?  Cost: walks all chunks; touches all metadata. */
bool pcpi_buddy_check(const struct pcpi_buddy *b);

#endif
