/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * depot_guess.h - where in a depot a cache's next get and put will be.  Layer 3.
 *
 * Owns: what one cache remembers of a depot for that.  Both need the depot's line,
 * which another processor wrote, before they know the slots, which another wrote
 * too: one wait after the other.  Guessed right, there is one.
 *
 *     freer   puts a batch   at  [h, h + batch)
 *     taker   gets half      of  [h + batch/2, h + batch)
 *             gets half      of  [h, h + batch/2)             and so on
 *
 * The freer's next put is where its last was.  The taker's next get is half a batch
 * above where the depot ended after its last, if the other has given meanwhile: as it
 * will have, where it had not before that one.  Else the slots are in its own cache.
 *
 * A wrong guess costs the fetching of lines that nobody needed.
 * Concurrency: the cache's owner.  Proved by tests/unit/test_depot.c.
 */
#ifndef PCPI_DEPOT_GUESS_H
#define PCPI_DEPOT_GUESS_H

#include "depot.h"

struct pcpi_depot_guess {
	uint32_t head;		/* of the ring, after the last get */
	const uint32_t *get;	/* slots, or NULL */
	uint32_t *put;		/* slots, or NULL */
};

#define PCPI_SLOTS_PER_LINE (PCPI_CACHELINE / sizeof(uint32_t))

/* Before a get or put of n blocks, the earlier the better. */
PCPI_INLINE void pcpi_depot_expect_get(const struct pcpi_depot *d,
				       const struct pcpi_depot_guess *g, uint32_t n)
{
	uint32_t i;

	pcpi_depot_expect(d);
	for (i = 0; g->get && i < n; i += PCPI_SLOTS_PER_LINE)
		__builtin_prefetch(g->get + i);
}

PCPI_INLINE void pcpi_depot_expect_put(const struct pcpi_depot *d,
				       const struct pcpi_depot_guess *g, uint32_t n)
{
	uint32_t i;

	pcpi_depot_expect(d);
	for (i = 0; g->put && i < n; i += PCPI_SLOTS_PER_LINE)
		pcpi_prefetch_write(g->put + i);
}

/* After a get of n blocks, where others put `batch` at a time. */
PCPI_INLINE void pcpi_depot_guess_got(struct pcpi_depot_guess *g,
				      const struct pcpi_depot *d, uint32_t n,
				      uint32_t batch)
{
	const struct pcpi_ring *r = &d->ring;
	/* relaxed: a guess. */
	uint32_t head = pcpi_load_relaxed(&r->head);
	bool came = head + n != g->head;

	g->head = head;
	g->get = came && n < batch ? NULL : r->slots + ((head + batch - n) & r->mask);
}

/* After a put of n blocks. */
PCPI_INLINE void pcpi_depot_guess_given(struct pcpi_depot_guess *g,
					const struct pcpi_depot *d, uint32_t n)
{
	const struct pcpi_ring *r = &d->ring;

	/* relaxed: a guess. */
	g->put = r->slots + ((pcpi_load_relaxed(&r->head) - n) & r->mask);
}

#endif
