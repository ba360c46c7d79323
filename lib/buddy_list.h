/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buddy_list.h - the interface of buddy.h over classic free lists.  Layer 2,
 * PURE.  The reference of the tests and the kernel-like allocator of the
 * benchmarks; not part of the library.
 *
 * Each function does what its namesake in buddy.h does, with the differences
 * named here.
 */
#ifndef PCPI_BUDDY_LIST_H
#define PCPI_BUDDY_LIST_H

#include "base.h"

/* Neighbours in a free list: 1 + page, 0 at the ends. */
struct pcpi_buddy_link {
	uint32_t next, prev;
};

struct pcpi_buddy_list {
	struct pcpi_buddy_link *link; /* of a free block's first page      */
	uint8_t *state; /* 1 + order on a free block's first page, else 0  */
	uint64_t free_pages;
	uint64_t splits; /* larger blocks broken */
	uint32_t first;
	uint32_t chunks;
	unsigned top_order;
	uint32_t head[PCPI_MAX_ORDER + 1];
	uint32_t tail[PCPI_MAX_ORDER + 1];
	uint32_t blocks[PCPI_MAX_ORDER + 1];
};

/* 9 bytes a page. */
size_t pcpi_buddy_list_meta_bytes(uint32_t chunks, unsigned top_order);

void pcpi_buddy_list_init(struct pcpi_buddy_list *b, void *meta, uint32_t first,
			  uint32_t chunks, unsigned top_order);

void pcpi_buddy_list_add(struct pcpi_buddy_list *b, uint32_t pfn,
			 uint32_t pages);

uint32_t pcpi_buddy_list_take(struct pcpi_buddy_list *b, unsigned order);

/* Ascending only within what one larger block gives; fewer than n only when
 * they ran out. */
uint32_t pcpi_buddy_list_take_bulk(struct pcpi_buddy_list *b, unsigned order,
				   uint32_t *pfns, uint32_t n);

/* Traps where the first page begins a free block; the rest isn't looked at. */
void pcpi_buddy_list_give(struct pcpi_buddy_list *b, uint32_t pfn,
			  unsigned order);

void pcpi_buddy_list_give_bulk(struct pcpi_buddy_list *b, unsigned order,
			       const uint32_t *pfns, uint32_t n);

uint32_t pcpi_buddy_list_range_free(const struct pcpi_buddy_list *b,
				    uint32_t pfn, uint32_t pages);

uint32_t pcpi_buddy_list_range_run(const struct pcpi_buddy_list *b, uint32_t pfn,
				   uint32_t pages, uint32_t *first);

/* Page by page, as is the next. */
void pcpi_buddy_list_range_take(struct pcpi_buddy_list *b, uint32_t pfn,
				uint32_t pages);

void pcpi_buddy_list_range_give(struct pcpi_buddy_list *b, uint32_t pfn,
				uint32_t pages);

bool pcpi_buddy_list_is_free(const struct pcpi_buddy_list *b, uint32_t pfn);

bool pcpi_buddy_list_has(const struct pcpi_buddy_list *b, unsigned order);

uint64_t pcpi_buddy_list_free_pages(const struct pcpi_buddy_list *b);

void pcpi_buddy_list_chunk_counts(const struct pcpi_buddy_list *b,
				  uint32_t chunk,
				  uint32_t counts[PCPI_MAX_ORDER + 1]);

bool pcpi_buddy_list_check(const struct pcpi_buddy_list *b);

#endif
