/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * arena_place.c - which parts of a window arenas take.
 *
 * Owns: a window's next, its map of granules and the choice of a place for an
 * arena.  Does not own: backing (arena.c), layout (arena_window.c).
 *
 *   granules   1 1 1 0 0 1 1 0 1 1 1 | . . . . . |
 *                    hole    hole    ^ next      ^ bytes
 *
 * What is given back in the middle is a hole, which the next arena that fits
 * takes; at the end it lowers next, past holes that come to lie there.  So the
 * address space of a window serves for any number of rounds of growing and
 * giving back, wherever a block stays in use.
 *
 * A10 a granule's bit is set iff it is in an arena; that below next is set;
 *     hole_bytes are those of clear bits below next.
 *
 * Concurrency: whoever grows the node.
 * Cost: without holes constant; else a bit a granule below next.
 * Failure: no place: 0.
 * Proved by tests/unit/test_arena_place.c.
 */
#include "arena.h"

#include "bits.h"
#include "check.h"

/* A run of clear granules below next. */
struct hole {
	uint64_t at, bytes;
};

static bool is_set(const struct pcpi_window *w, uint64_t granule)
{
	return w->granules[granule / 64] >> (granule % 64) & 1u;
}

static void write_bits(struct pcpi_window *w, uint64_t at, uint64_t bytes,
		       bool set)
{
	uint64_t g = at / w->granule_bytes, end = g + bytes / w->granule_bytes;

	for (; g < end; g++) {
		uint64_t bit = UINT64_C(1) << (g % 64);

		PCPA_ASSERT(is_set(w, g) != set);
		w->granules[g / 64] ^= bit;
	}
}

/* The hole that begins at or behind granule g; bytes 0: none. */
static struct hole hole_next(const struct pcpi_window *w, uint64_t g)
{
	uint64_t end = w->next / w->granule_bytes, first;

	while (g < end && is_set(w, g))
		g++;
	first = g;
	while (g < end && !is_set(w, g))
		g++;
	return (struct hole){ first * w->granule_bytes,
			      (g - first) * w->granule_bytes };
}

/* The first hole of that size, or the largest. */
static struct hole hole_find(const struct pcpi_window *w, uint64_t bytes)
{
	struct hole best = { 0 }, h = { 0 };
	uint64_t left = w->hole_bytes;

	while (left > 0 && best.bytes < bytes) {
		h = hole_next(w, (h.at + h.bytes) / w->granule_bytes);
		left -= h.bytes;
		if (h.bytes > best.bytes)
			best = h;
	}
	return best;
}

uint64_t pcpi_window_place(const struct pcpi_window *w, uint64_t bytes,
			   bool exact, uint64_t *at)
{
	uint64_t room = pcpi_round_down(w->bytes - w->next, w->granule_bytes);
	struct hole hole = hole_find(w, bytes);

	if (hole.bytes >= pcpi_min(bytes, room + 1)) {
		*at = hole.at;
		room = hole.bytes;
	} else {
		*at = w->next;
	}
	if (room < bytes)
		bytes = exact ? 0 : room;
	return bytes;
}

void pcpi_window_fill(struct pcpi_window *w, uint64_t at, uint64_t bytes)
{
	write_bits(w, at, bytes, true);
	if (at < w->next)
		w->hole_bytes -= bytes;
	else
		w->next += bytes;
}

uint64_t pcpi_window_clear(struct pcpi_window *w, uint64_t at, uint64_t bytes)
{
	uint64_t end = w->next, g;

	write_bits(w, at, bytes, false);
	w->hole_bytes += bytes;
	for (g = end / w->granule_bytes; g > 0 && !is_set(w, g - 1);)
		g--;
	w->next = g * w->granule_bytes;
	w->hole_bytes -= end - w->next;
	return end - w->next;
}

void pcpi_window_check(const struct pcpi_window *w)
{
	uint64_t g = w->next / w->granule_bytes, clear = 0;

	PCPA_TRAP(w->next % w->granule_bytes == 0);
	PCPA_TRAP(g == 0 || is_set(w, g - 1));
	while (g-- > 0)
		clear += is_set(w, g) ? 0 : w->granule_bytes;
	PCPA_TRAP(clear == w->hole_bytes); /* A10 */
}
