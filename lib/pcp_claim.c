/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcp_claim.c - the mark and the claim of a cache; see pcp.h, C1-C3, C8, C9.
 *
 * Owns: every access to busy and claim but those of pcp_move.h.
 *
 *   claim:  NONE --drainer--> CLAIMED --emptied--> NONE
 *             ^                  |
 *             |                  +--deadline--> PENDING --drainer--> CLAIMED
 *             +---- owner, who then flushes ------+
 *
 * A tick that does less ends its claim in what that replaced (tick.c).
 *
 * Proved by tests/spin/claim.pml (the protocol), tests/unit/test_pcp_claim.c and
 * tests/conc/ (this code).
 */
#include "pcp.h"

/* What claims leave alone. */
#define REST                                                                    \
	((unsigned)(PCPI_CLAIM_SLOW | PCPI_CLAIM_OFF | PCPI_CLAIM_LOOK |        \
		    PCPI_CLAIM_WHERE))

bool pcpi_cache_enter(struct pcpi_cache *c)
{
	unsigned claim;

	/* relaxed: only this thread sets it; set means that we interrupted it. */
	if (pcpi_load_relaxed(&c->busy))
		return false;
	/* relaxed: C9; in a heap without interruption, where only that matters,
	 * the owner has seen OFF before anybody counts on the exchange. */
	if (c->env->exchange ||
	    (pcpi_load_relaxed(&c->claim) & PCPI_CLAIM_OFF)) {
		/* docs/memory-order.md, "The mark by exchange" */
		pcpi_exchange_seq_cst(&c->busy, 1);
		claim = pcpi_load_seq_cst(&c->claim); /* docs/memory-order.md */
	} else {
		/* relaxed: ordered by the drainer's membarrier. */
		pcpi_store_relaxed(&c->busy, 1);
		pcpi_compiler_barrier();
		/* acquire: pairs with pcpi_cache_claim_end(). */
		claim = pcpi_load_acquire(&c->claim);
	}
	if ((claim & PCPI_CLAIM_STATE) == PCPI_CLAIM_CLAIMED) {
		pcpi_cache_leave(c);
		return false;
	}
	pcpi_cache_tuck(c); /* C7 */
	return true;
}

void pcpi_cache_leave(struct pcpi_cache *c)
{
	/* release: pairs with pcpi_cache_claimed_quiet(). */
	pcpi_store_release(&c->busy, 0);
}

bool pcpi_cache_claim(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);

	do {
		if ((seen & PCPI_CLAIM_STATE) == PCPI_CLAIM_CLAIMED)
			return false;
		/* docs/memory-order.md, "Claiming" */
	} while (!pcpi_cas_seq_cst(&c->claim, &seen,
				   (uint8_t)((seen & REST) |
					    PCPI_CLAIM_CLAIMED)));
	return true;
}

bool pcpi_cache_is_claimed(const struct pcpi_cache *c)
{
	/* relaxed: claims begin, and are given up, under the caller's lock. */
	return (pcpi_load_relaxed(&c->claim) & PCPI_CLAIM_STATE) ==
	       PCPI_CLAIM_CLAIMED;
}

bool pcpi_cache_is_pending(const struct pcpi_cache *c)
{
	/* relaxed: only the owner ends it, and then there is less to do. */
	return (pcpi_load_relaxed(&c->claim) & PCPI_CLAIM_STATE) ==
	       PCPI_CLAIM_PENDING;
}

bool pcpi_cache_claimed_quiet(const struct pcpi_cache *c)
{
	/* docs/memory-order.md, "Claiming"; pairs with pcpi_cache_leave() and
	 * pcpi_mark_leave(). */
	return pcpi_load_seq_cst(&c->busy) == 0;
}

void pcpi_cache_claim_end(struct pcpi_cache *c, enum pcpi_claim state)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);

	/* acquire/release: pairs with pcpi_cache_enter(), pcpi_mark_enter() and,
	 * where it is PENDING, with pending_answer(). */
	while (!pcpi_cas_acq_rel(&c->claim, &seen,
				 (uint8_t)((seen & REST) | (unsigned)state)))
		;
}

void pcpi_cache_claim_postpone(struct pcpi_cache *c)
{
	pcpi_counter_add(&c->busy_skipped, 1);
	pcpi_cache_claim_end(c, PCPI_CLAIM_PENDING);
}

void pcpi_cache_ask(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);

	/* acquire/release: pairs with pending_answer(). */
	while ((seen & PCPI_CLAIM_STATE) == PCPI_CLAIM_NONE &&
	       !pcpi_cas_acq_rel(&c->claim, &seen,
				 (uint8_t)(seen | PCPI_CLAIM_PENDING)))
		;
}

void pcpi_cache_off(struct pcpi_cache *c, bool off)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);
	unsigned want;

	do
		want = off ? seen | PCPI_CLAIM_OFF
			   : seen & ~(unsigned)PCPI_CLAIM_OFF;
	/* acquire/release: pairs with pcpi_cache_enter() and pending_answer(). */
	while (!pcpi_cas_acq_rel(&c->claim, &seen, (uint8_t)want));
}

bool pcpi_cache_is_off(const struct pcpi_cache *c)
{
	/* relaxed: it changes under the drain lock. */
	return pcpi_load_relaxed(&c->claim) & PCPI_CLAIM_OFF;
}

bool pcpi_cache_off_answered(const struct pcpi_cache *c)
{
	/* acquire: pairs with pending_answer(). */
	unsigned seen = pcpi_load_acquire(&c->claim);

	return (seen & PCPI_CLAIM_OFF) &&
	       (seen & PCPI_CLAIM_STATE) != PCPI_CLAIM_PENDING;
}

void pcpi_cache_ask_look(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);

	/* acquire/release: pairs with pending_answer(). */
	while (!pcpi_cas_acq_rel(&c->claim, &seen,
				 (uint8_t)(seen | PCPI_CLAIM_LOOK)))
		;
}

void pcpi_cache_ask_where(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);

	/* acquire/release: pairs with pcpi_cache_where_answer(). */
	while (!pcpi_cas_acq_rel(&c->claim, &seen,
				 (uint8_t)(seen | PCPI_CLAIM_WHERE)))
		;
}

bool pcpi_cache_where_answer(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim);

	/* acquire/release: pairs with pcpi_cache_ask_where(). */
	while ((seen & PCPI_CLAIM_WHERE) &&
	       !pcpi_cas_acq_rel(&c->claim, &seen,
				 (uint8_t)(seen & ~(unsigned)PCPI_CLAIM_WHERE)))
		;
	return seen & PCPI_CLAIM_WHERE;
}

void pcpi_cache_flush_whole(struct pcpi_cache *c)
{
	pcpi_cache_flush(c);
	/* Cut short by a claim, which need not be that of a sweep; or inside a signal
	 * handler, and what it has interrupted puts blocks in.
	 * relaxed: the thread's own. */
	if (pcpi_load_relaxed(&c->busy) || pcpi_cache_pages(c) > 0)
		pcpi_cache_ask_look(c);
}

static void pending_answer(struct pcpi_cache *c)
{
	/* relaxed: the compare below decides. */
	uint8_t seen = pcpi_load_relaxed(&c->claim), left;

	/* relaxed: ours; set means that we interrupted the owner inside, who could
	 * not flush, nor can anybody beside a claim. */
	if (pcpi_load_relaxed(&c->busy) ||
	    (seen & PCPI_CLAIM_STATE) == PCPI_CLAIM_CLAIMED)
		return;
	/* First the answer, then the flush: a request that comes meanwhile is
	 * another one.
	 * acquire/release: pairs with pcpi_cache_ask(), pcpi_cache_ask_look() and
	 * pcpi_cache_claim_postpone(). */
	left = (uint8_t)(seen & ~(PCPI_CLAIM_PENDING | PCPI_CLAIM_LOOK));
	if (left == seen || !pcpi_cas_acq_rel(&c->claim, &seen, left))
		return;
	pcpi_cache_flush_whole(c);
}

/* The owner's caches of other nodes are rarely called: one call answers for
 * all. */
void pcpi_cache_settle(struct pcpi_cache *c)
{
	struct pcpi_cache **peers = c->root->peers;
	unsigned z;

	pending_answer(c);
	for (z = 0; c->env->nr_zones > 1 && z < c->env->nr_zones; z++)
		if (peers[z] && peers[z] != c)
			pending_answer(peers[z]);
}
