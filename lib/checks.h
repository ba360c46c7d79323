/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * checks.h - what is looked at when a block of a watched heap changes hands.
 * Layer 2.
 *
 * A heap is watched with PCPA_HEAP_CHECKS, and where a tool wants to know of each
 * block (annotate.h).  Then no call is a hit (pcp.h, C8), and
 *
 *   a free      marks the block's order byte (page.h, PCPI_PAGE_HELD), by a
 *               compare and swap, so that of two frees at once one is refused;
 *   a hand-out  clears the mark again;
 *   both        tell the tools.
 *
 * With PCPA_HEAP_CHECKS, moreover,
 *
 *   a free      notes the thread and the calls that led to it, and fills the
 *               block with a pattern;
 *   a hand-out  aborts where the pattern isn't what it was, and notes likewise.
 *
 * With PCPA_HEAP_CONTENTS nothing is filled, and memory tools aren't told.
 *
 * Owns: the table of these notes, one entry a page, of which that of a block's
 * first page is used; which pages hold the pattern; what is said of a block.
 * Does not own: what is refused and why (badfree.c), nor how long a free block
 * rests before it is handed out again (quarantine.h).
 *
 * CK1  filled[page] is set only while no one may write the page.
 * CK2  Nothing is allocated from the C library after pcpi_checks_init().
 *
 * Cost: two unwindings and twice the block's bytes a pair; 145 bytes a page that
 * was used, and that much address space for each that may be.
 * Concurrency: a block's calls are made by the thread that holds it; what is said
 * of a block may be out of date when another thread frees it as well.
 * Failure: where the table can't be mapped, notes and pattern are left out, which
 * is said.  Proved by tests/unit/test_checks.c, tests/tools/.
 */
#ifndef PCPI_CHECKS_H
#define PCPI_CHECKS_H

#include "base.h"

#define PCPI_SITE_FRAMES 8u

struct pcpi_site {
	int tid; /* 0: there was no such call */
	unsigned nr_frames;
	void *frames[PCPI_SITE_FRAMES];
};

struct pcpi_checks_note {
	struct pcpi_site taken, given; /* the last of each */
};

/* c: fixed after pcpi_checks_init(); h: a page's is its holder's. */
struct pcpi_checks {
	const void *heap;		/* c: for messages */
	char *base;			/* c */
	unsigned page_shift;		/* c */
	uint8_t *orders;		/* c: page.h */
	struct pcpi_checks_note *notes; /* c, h: [pages], or NULL */
	uint8_t *filled;		/* c, h: [pages], or NULL: order + 1 of
					 * the free block that it was part of */
	bool contents;			/* c: PCPA_HEAP_CONTENTS */
	void *memory;			/* c */
	size_t memory_bytes;		/* c */
	uintptr_t code, code_end;	/* c: of the library, if it is shared */
};

/* heap, base, page_shift and orders are set.  notes: with PCPA_HEAP_CHECKS. */
void pcpi_checks_init(struct pcpi_checks *k, uint64_t pages, bool notes);

void pcpi_checks_fini(struct pcpi_checks *k);

/* Pages that come from the kernel hold no pattern. */
void pcpi_checks_add(struct pcpi_checks *k, uint32_t pfn, uint32_t pages);

/* Marks a block of the caller's as free; false when it is already. */
bool pcpi_checks_hold(const struct pcpi_checks *k, uint32_t pfn, unsigned order);

/* A block that pcpi_checks_hold() has marked has come back. */
void pcpi_checks_give(struct pcpi_checks *k, uint32_t pfn, unsigned order);

/* A block is handed out; aborts when it was written after it was freed. */
void pcpi_checks_take(struct pcpi_checks *k, uint32_t pfn, unsigned order,
		      unsigned os_node);

/* The same for a range of any length (contig.c), of which nothing is noted. */
void pcpi_checks_take_range(struct pcpi_checks *k, uint32_t pfn, uint32_t pages);
void pcpi_checks_give_range(const struct pcpi_checks *k, uint32_t pfn,
			    uint32_t pages);

/* Says which block a page is part of, on which node, where the caller does with
 * it what `now` says, and who had it before.  Requires notes. */
void pcpi_checks_say(const struct pcpi_checks *k, uint32_t pfn,
		     unsigned os_node, const char *now);

/* The last part of it, for what is no page of the heap. */
void pcpi_checks_say_here(const struct pcpi_checks *k, const char *now);

#endif
