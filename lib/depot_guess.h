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
 * A wrong guess costs the fetching of lines that nobody needed, and whose owner has to
 * ask for them again: so there is none where the depot had nothing, or refused.
 * Concurrency: the cache's owner.  Proved by tests/unit/test_depot.c.
 */
#ifndef PCPI_DEPOT_GUESS_H
#define PCPI_DEPOT_GUESS_H

#include "depot.h"

/* Slots, from the begin of a line on; nr 0: no guess. */
struct pcpi_depot_slots {
	uint32_t *at;
	uint32_t nr;
};

struct pcpi_depot_guess {
	uint32_t head; /* of the ring, after the last get */
	struct pcpi_depot_slots get, put;
};

#define PCPI_SLOTS_PER_LINE ((uint32_t)(PCPI_CACHELINE / sizeof(uint32_t)))

/* The depot's line and these slots', to be read or to be written. */
PCPI_INLINE void pcpi_depot_fetch(const struct pcpi_depot *d,
				  const struct pcpi_depot_slots *s, bool write)
{
	uint32_t i;

	pcpi_depot_expect(d);
	for (i = 0; i < s->nr; i += PCPI_SLOTS_PER_LINE)
		if (write)
			pcpi_prefetch_write(s->at + i);
		else
			__builtin_prefetch(s->at + i);
}

/* Before a get, the earlier the better. */
PCPI_INLINE void pcpi_depot_expect_get(const struct pcpi_depot *d,
				       const struct pcpi_depot_guess *g)
{
	pcpi_depot_fetch(d, &g->get, false);
}

/* Before a put. */
PCPI_INLINE void pcpi_depot_expect_put(const struct pcpi_depot *d,
				       const struct pcpi_depot_guess *g)
{
	pcpi_depot_fetch(d, &g->put, true);
}

/* n slots from index `from` on, as far as the ring's edge. */
PCPI_INLINE struct pcpi_depot_slots pcpi_depot_slots(const struct pcpi_depot *d,
						     uint32_t from, uint32_t n)
{
	uint32_t before = from & d->ring.mask & (PCPI_SLOTS_PER_LINE - 1);
	struct pcpi_depot_slots s;

	s.at = pcpi_ring_run(&d->ring, from - before, n + before, &s.nr);
	return s;
}

/* After a get of n blocks, where others put `batch` at a time. */
PCPI_INLINE void pcpi_depot_guess_got(struct pcpi_depot_guess *g,
				      const struct pcpi_depot *d, uint32_t n,
				      uint32_t batch)
{
	/* relaxed: a guess. */
	uint32_t head = pcpi_load_relaxed(&d->ring.head);
	bool came = head + n != g->head;

	g->head = head;
	if (n == 0 || n > batch || (came && n < batch))
		g->get.nr = 0;
	else
		g->get = pcpi_depot_slots(d, head + batch - n, n);
}

/* After a put of n blocks; 0: it was refused. */
PCPI_INLINE void pcpi_depot_guess_given(struct pcpi_depot_guess *g,
					const struct pcpi_depot *d, uint32_t n)
{
	/* relaxed: a guess. */
	uint32_t head = pcpi_load_relaxed(&d->ring.head);

	if (n == 0)
		g->put.nr = 0;
	else
		g->put = pcpi_depot_slots(d, head - n, n);
}

#endif
