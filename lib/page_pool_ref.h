/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_pool_ref.h - what is known of a packet pool's page, and how many pages a
 * pool has out.  Layer 2.
 *
 * Owns: the two counts of a page, whose page it is; the count of a pool.  None of
 * them lies in the page: a heap's pools have one array for all of them, by page
 * index of a block's first page.
 *
 *   users   how many puts the page waits for: 1, or BIAS less those that were put
 *           while fragments are cut off it
 *   word    63       62          48..32   31..0
 *           IDLE     EMERGENCY   pool     references: 1 is the pool's own
 *
 * RF1  pool is 0 where no pool has the page and nobody has a reference, and LEFT
 *      where the pool let it go and others have references.
 * RF2  users is 1 whenever nobody holds a fragment.
 * RF3  A page in a pool's cache or ring has one reference, and one user.
 *
 * So a page that comes back whole is known by two compares, without a write: on
 * another thread's processor the line stays shared.
 *
 * Concurrency: any thread that has the page may drop a user or a reference, or
 * take one; the rest is done by who has it alone.  Cost: one or two atomic
 * operations, none where there is one user and one reference.  (page_pool.h, PP6, may
 * do with fewer.)
 * Failure: said by the result.  Proved by tests/unit/test_page_pool_ref.c.
 */
#ifndef PCPI_PAGE_POOL_REF_H
#define PCPI_PAGE_POOL_REF_H

#include "atomics.h"
#include "base.h"

/* More users than anybody makes fragments, and far from an overflow. */
#define PCPI_POOL_BIAS (INT64_MAX >> 1)

#define PCPI_POOL_SHIFT 32
#define PCPI_POOL_LEFT 0xffffu
#define PCPI_POOL_EMERGENCY (UINT64_C(1) << 62) /* of the reserve: not kept */
#define PCPI_POOL_IDLE (UINT64_C(1) << 63)	/* watched: nobody has it   */

struct pcpi_pool_page {
	int64_t users; /* a */
	uint64_t word; /* a */
};

/* Of a page that the pool has alone. */
PCPI_INLINE uint64_t pcpi_pool_word(unsigned id)
{
	return (uint64_t)id << PCPI_POOL_SHIFT | 1;
}

PCPI_INLINE unsigned pcpi_pool_word_id(uint64_t word)
{
	return (unsigned)(word >> PCPI_POOL_SHIFT) & 0xffff;
}

PCPI_INLINE uint32_t pcpi_pool_word_refs(uint64_t word)
{
	return (uint32_t)word;
}

PCPI_INLINE uint64_t pcpi_pool_page_word(const struct pcpi_pool_page *p)
{
	/* acquire: pairs with pcpi_pool_page_unref(), whose caller is done. */
	return pcpi_load_acquire(&p->word);
}

/* A page comes from the heap. */
PCPI_INLINE void pcpi_pool_page_own(struct pcpi_pool_page *p, uint64_t word)
{
	/* relaxed: nobody else has the page. */
	pcpi_store_relaxed(&p->users, 1);
	pcpi_store_relaxed(&p->word, word);
}

/* Before the first fragment. */
PCPI_INLINE void pcpi_pool_page_bias(struct pcpi_pool_page *p)
{
	/* relaxed: nobody else has the page. */
	pcpi_store_relaxed(&p->users, PCPI_POOL_BIAS);
}

/* n users are done.  True: nobody is left, and there is one again (RF2). */
PCPI_INLINE bool pcpi_pool_page_unuse(struct pcpi_pool_page *p, int64_t n)
{
	/* acquire: pairs with itself, other users' drops. */
	if (pcpi_load_acquire(&p->users) != n &&
	    /* acquire/release: pairs with itself. */
	    pcpi_fetch_add_acq_rel(&p->users, -n) != n)
		return false;
	/* relaxed: nobody else has the page. */
	if (n != 1 || pcpi_load_relaxed(&p->users) != 1)
		pcpi_store_relaxed(&p->users, 1);
	return true;
}

/* One more reference; false: the page is nobody's. */
static inline bool pcpi_pool_page_ref(struct pcpi_pool_page *p)
{
	uint64_t word = pcpi_load_relaxed(&p->word); /* relaxed: the swap decides */

	do {
		if (word == 0 || word & PCPI_POOL_IDLE)
			return false;
		/* acquire/release: pairs with pcpi_pool_page_unref(). */
	} while (!pcpi_cas_acq_rel(&p->word, &word, word + 1));
	return true;
}

enum pcpi_pool_drop {
	PCPI_POOL_REFUSED, /* there was none to be dropped */
	PCPI_POOL_SHARED,
	PCPI_POOL_ALONE, /* the page is the caller's, and RF1 no pool's */
};

/* One reference less, of those beside the pool's own. */
static inline enum pcpi_pool_drop pcpi_pool_page_unref(struct pcpi_pool_page *p)
{
	uint64_t word = pcpi_load_relaxed(&p->word); /* relaxed: the swap decides */
	bool last;

	do {
		last = pcpi_pool_word_refs(word) == 1;
		if (word == 0 ||
		    (last && pcpi_pool_word_id(word) != PCPI_POOL_LEFT))
			return PCPI_POOL_REFUSED;
		/* acquire/release: pairs with itself, and pcpi_pool_page_word(). */
	} while (!pcpi_cas_acq_rel(&p->word, &word, last ? 0 : word - 1));
	return last ? PCPI_POOL_ALONE : PCPI_POOL_SHARED;
}

/* The pool lets it go.  True: the page is the caller's. */
static inline bool pcpi_pool_page_leave(struct pcpi_pool_page *p)
{
	uint64_t word = pcpi_load_relaxed(&p->word); /* relaxed: the swap decides */
	uint64_t left;

	do {
		left = pcpi_pool_word_refs(word) == 1
			       ? 0
			       : ((uint64_t)PCPI_POOL_LEFT << PCPI_POOL_SHIFT |
				  (pcpi_pool_word_refs(word) - 1));
		/* acquire/release: pairs with pcpi_pool_page_unref(). */
	} while (!pcpi_cas_acq_rel(&p->word, &word, left));
	return left == 0;
}

/* ---- A pool's pages -------------------------------------------------------- */

/*
 * Two counters of 32 bits that run over: pages that came from the heap, and pages
 * that went back.  They are in one word so that who lets pages go learns from
 * that one step whether they were the last, and needs the pool no more where they
 * weren't: it may be gone.
 *
 *     hold in the low half, release in the high one
 */
struct pcpi_pool_count {
	uint64_t word; /* a */
};

PCPI_INLINE uint32_t pcpi_pool_count_held(uint64_t word)
{
	return (uint32_t)word;
}

PCPI_INLINE uint32_t pcpi_pool_count_gone(uint64_t word)
{
	return (uint32_t)(word >> 32);
}

/* As long as it is less than 2^31, whatever has run over. */
PCPI_INLINE int32_t pcpi_pool_inflight(uint32_t hold, uint32_t release)
{
	return (int32_t)(hold - release);
}

/* The owner: n more.  A compare and swap, since the low half must not carry. */
static inline void pcpi_pool_count_take(struct pcpi_pool_count *c, uint32_t n)
{
	uint64_t word = pcpi_load_relaxed(&c->word); /* relaxed: the swap decides */
	uint64_t more;

	do {
		more = (word & ~(uint64_t)UINT32_MAX) | (uint32_t)(word + n);
		/* acquire/release: pairs with itself and pcpi_pool_count_give(). */
	} while (!pcpi_cas_acq_rel(&c->word, &word, more));
}

/* Anyone: n less; how many are left.  0 for one caller: the last. */
static inline int32_t pcpi_pool_count_give(struct pcpi_pool_count *c, uint32_t n)
{
	/* acquire/release: pairs with itself, so that the last comes after all. */
	uint64_t word = pcpi_fetch_add_acq_rel(&c->word, (uint64_t)n << 32);

	return pcpi_pool_inflight(pcpi_pool_count_held(word),
				  pcpi_pool_count_gone(word) + n);
}

#endif
