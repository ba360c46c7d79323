/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_buddy.c - both buddy cores against a naive reference.
 *
 * usage: model_buddy [STEPS [SEED]]; exits 0 or 1, and prints the seed.
 *
 * The reference is an array with a byte a page.  Each world is one core and
 * one reference, with a geometry of its own.  A step takes, gives, or adds
 * chunks at random; after it:
 *   - every page that was handed out was free before, and aligned;
 *   - a range is as free as the reference says, and so is the first run in it,
 *     which can be taken, whatever its length, and be given back as it is or as
 *     single pages;
 *   - the free pages are the same, and so are the blocks by order, where the
 *     reference counts the largest aligned runs by brute force;
 *   - a take succeeded iff the reference has a block of that order;
 *   - splits rose iff a block was taken out of a larger one;
 *   - the core's own invariants hold.
 * The two cores choose different blocks, so that each has a reference of its
 * own; both see the same sequence of orders and counts.
 */
#include <stdint.h>

#include "buddy_core.h"

#define MAX_BULK 100
#define MAX_RANGES 16
#define MAX_PAGES (12u << PCPI_MAX_ORDER)

static uint64_t seed, step_now;

struct block {
	uint32_t pfn;
	unsigned order;
};

struct range {
	uint32_t at, pages;
};

struct world {
	struct core core;
	uint8_t free[MAX_PAGES]; /* the reference */
	struct block held[MAX_PAGES];
	uint32_t held_count;
	struct range ranges[MAX_RANGES];
	uint32_t range_count;
	uint32_t added; /* chunks */
};

static void fail(const struct world *w, const char *what)
{
	fprintf(stderr, "model_buddy: %s at step %llu, seed %llu\n", what,
		(unsigned long long)step_now, (unsigned long long)seed);
	core_dump(&w->core, stderr);
	exit(1);
}

#define MUST(w, cond)                                                          \
	do {                                                                   \
		if (!(cond))                                                   \
			fail((w), #cond);                                      \
	} while (0)

/* ---- Reference ---------------------------------------------------------- */

static bool run_is_free(const struct world *w, uint32_t at, unsigned order)
{
	for (uint32_t i = 0; i < 1u << order; i++)
		if (!w->free[at + i])
			return false;
	return true;
}

/* 1 + order of the largest free block around a page, 0 when it isn't free. */
static unsigned largest_around(const struct world *w, uint32_t page)
{
	unsigned j = 0;

	while (j <= w->core.top_order && run_is_free(w, page & (~0u << j), j))
		j++;
	return j;
}

static void reference_counts(const struct world *w,
			     uint32_t counts[PCPI_MAX_ORDER + 1])
{
	memset(counts, 0, sizeof(uint32_t) * (PCPI_MAX_ORDER + 1));
	for (uint32_t at = 0; at < core_pages(&w->core);) {
		unsigned top = largest_around(w, at);

		at += top == 0 ? 1u : 1u << (top - 1);
		if (top != 0)
			counts[top - 1]++;
	}
}

static bool reference_has(const struct world *w, unsigned order)
{
	for (uint32_t at = 0; at < core_pages(&w->core); at += 1u << order)
		if (run_is_free(w, at, order))
			return true;
	return false;
}

/* ---- Steps -------------------------------------------------------------- */

static void compare(const struct world *w)
{
	uint32_t have[PCPI_MAX_ORDER + 1], want[PCPI_MAX_ORDER + 1];
	uint32_t pages = core_pages(&w->core);
	uint64_t free = 0;

	MUST(w, CORE_ASK(&w->core, check));
	for (uint32_t i = 0; i < pages; i++) {
		bool is_free = CORE_DO(&w->core, is_free, w->core.first + i);

		MUST(w, is_free == (w->free[i] != 0));
		free += w->free[i];
	}
	MUST(w, CORE_ASK(&w->core, free_pages) == free);
	core_counts(&w->core, have);
	reference_counts(w, want);
	MUST(w, memcmp(have, want, sizeof(have)) == 0);
	for (unsigned j = 0; j <= w->core.top_order; j++)
		MUST(w, CORE_DO(&w->core, has, j) == reference_has(w, j));
}

/* Notes a block that the core handed out; *broke: it was part of a larger one
 * before the take, whose free pages `before` are. */
static void note_taken(struct world *w, uint32_t pfn, unsigned order)
{
	uint32_t at = pfn - w->core.first;

	MUST(w, pfn >= w->core.first && at < core_pages(&w->core));
	MUST(w, (at & ((1u << order) - 1)) == 0);
	MUST(w, run_is_free(w, at, order));
	memset(&w->free[at], 0, (size_t)1 << order);
	w->held[w->held_count++] = (struct block){pfn, order};
}

static bool any_in_larger(const struct world *w, const uint32_t *pfns,
			  uint32_t n, unsigned order)
{
	for (uint32_t i = 0; i < n; i++)
		if (largest_around(w, pfns[i] - w->core.first) > order + 1)
			return true;
	return false;
}

/* Within a chunk the indices ascend, and a chunk is not come back to. */
static void check_ascending(const struct world *w, const uint32_t *pfns,
			    uint32_t n)
{
	uint32_t chunks = n != 0;

	for (uint32_t i = 1; i < n; i++) {
		uint32_t a = (pfns[i - 1] - w->core.first) >> w->core.top_order;
		uint32_t b = (pfns[i] - w->core.first) >> w->core.top_order;

		MUST(w, a != b || pfns[i - 1] < pfns[i]);
		chunks += a != b;
	}
	MUST(w, chunks <= PCPI_BUDDY_TAKE_CHUNKS);
}

static void step_take(struct world *w, unsigned order, uint32_t n)
{
	uint32_t pfns[MAX_BULK], got;
	uint64_t splits = core_splits(&w->core);
	bool has = reference_has(w, order);

	if (n == 1) {
		pfns[0] = CORE_DO(&w->core, take, order);
		got = pfns[0] != PCPI_NO_PFN;
	} else {
		got = CORE_DO(&w->core, take_bulk, order, pfns, n);
	}
	MUST(w, got <= n);
	MUST(w, (got != 0) == has);
	MUST(w, (core_splits(&w->core) != splits) ==
			any_in_larger(w, pfns, got, order));
	if (w->core.kind == CORE_BITMAP)
		check_ascending(w, pfns, got);
	for (uint32_t i = 0; i < got; i++)
		note_taken(w, pfns[i], order);
	if (got < n && w->core.kind == CORE_LIST)
		MUST(w, !reference_has(w, order));
}

/* Gives up to n held blocks of one order: the last taken (runs), or any. */
static void step_give(struct world *w, uint32_t n, bool runs, uint64_t random)
{
	uint32_t pfns[MAX_BULK], got = 0, k;
	unsigned order = 0;

	while (got < n && w->held_count != 0) {
		k = runs ? w->held_count - 1
			 : (uint32_t)(core_random(&random) % w->held_count);
		if (got != 0 && w->held[k].order != order)
			break;
		order = w->held[k].order;
		pfns[got++] = w->held[k].pfn;
		memset(&w->free[w->held[k].pfn - w->core.first], 1,
		       (size_t)1 << order);
		w->held[k] = w->held[--w->held_count];
	}
	if (runs) /* ascending again */
		for (uint32_t i = 0; i < got / 2; i++) {
			k = pfns[i];
			pfns[i] = pfns[got - 1 - i];
			pfns[got - 1 - i] = k;
		}
	if (got == 1)
		CORE_DO(&w->core, give, pfns[0], order);
	else
		CORE_DO(&w->core, give_bulk, order, pfns, got);
}

/* Gives a held block back in two halves: a block may be given in parts. */
static void step_halve(struct world *w, uint64_t random)
{
	struct block *h;
	unsigned half;

	if (w->held_count == 0)
		return;
	h = &w->held[random % w->held_count];
	if (h->order == 0)
		return;
	half = h->order - 1;
	memset(&w->free[h->pfn + (1u << half) - w->core.first], 1,
	       (size_t)1 << half);
	CORE_DO(&w->core, give, h->pfn + (1u << half), half);
	h->order = half;
}

/* A random range of what is managed: its free pages are counted, and the first
 * run of them, or a part of it, is taken. */
static void step_range(struct world *w, uint64_t random)
{
	uint32_t managed = w->added << w->core.top_order, from, pages, free = 0;
	uint32_t run, first, i;

	if (managed == 0)
		return;
	from = (uint32_t)(core_random(&random) % managed);
	pages = 1 + (uint32_t)(core_random(&random) % (managed - from));
	if (core_random(&random) % 2 == 0)
		pages = 1 + pages % 40;
	pages = pcpi_min(pages, managed - from);
	for (i = 0; i < pages; i++)
		free += w->free[from + i];
	MUST(w, CORE_DO(&w->core, range_free, w->core.first + from, pages) ==
			free);
	run = CORE_DO(&w->core, range_run, w->core.first + from, pages, &first);
	MUST(w, (run == 0) == (free == 0));
	if (run == 0)
		return;
	first -= w->core.first;
	for (i = from; i < first; i++)
		MUST(w, !w->free[i]);
	for (i = first; i < first + run; i++)
		MUST(w, w->free[i]);
	MUST(w, first + run == from + pages || !w->free[first + run]);
	run = 1 + (uint32_t)(core_random(&random) % run);
	CORE_DO(&w->core, range_take, w->core.first + first, run);
	memset(&w->free[first], 0, run);
	w->ranges[w->range_count++] = (struct range){first, run};
}

/* A range goes back whole, or becomes pages that are held one by one. */
static void step_range_end(struct world *w, uint64_t random)
{
	struct range r;

	if (w->range_count == 0)
		return;
	r = w->ranges[--w->range_count];
	if (core_random(&random) % 2 == 0) {
		CORE_DO(&w->core, range_give, w->core.first + r.at, r.pages);
		memset(&w->free[r.at], 1, r.pages);
		return;
	}
	for (uint32_t i = 0; i < r.pages; i++)
		w->held[w->held_count++] =
			(struct block){w->core.first + r.at + i, 0};
}

static void step_add(struct world *w)
{
	uint32_t chunk = 1u << w->core.top_order;
	uint32_t at = w->added * chunk;

	if (w->added == w->core.chunks)
		return;
	memset(&w->free[at], 1, chunk);
	CORE_DO(&w->core, add, w->core.first + at, chunk);
	w->added++;
}

static void step(struct world *w, uint64_t r, bool filling)
{
	unsigned order = (unsigned)((r >> 8) % (w->core.top_order + 1u));
	uint32_t n =
		(r >> 16) % 4 == 0 ? 1 : 1 + (uint32_t)((r >> 20) % MAX_BULK);

	if ((r >> 28) % 2 == 0) /* small orders are what is used most */
		order %= 4;
	if (r % 100 == 0)
		step_add(w);
	else if (r % 100 < 5)
		step_halve(w, r >> 32);
	else if (r % 100 < 10 && w->range_count < MAX_RANGES)
		step_range(w, r | 1);
	else if (r % 100 < 15)
		step_range_end(w, r | 1);
	else if (r % 100 < (filling ? 60 : 40))
		step_take(w, order, n);
	else
		step_give(w, n, (r >> 29) % 3 == 0, r | 1);
}

/* All goes back in random order: the top blocks must be whole again. */
static void finish(struct world *w, uint64_t *state)
{
	uint32_t counts[PCPI_MAX_ORDER + 1];

	for (uint32_t i = w->held_count; i > 1; i--) {
		uint32_t k = (uint32_t)(core_random(state) % i);
		struct block t = w->held[i - 1];

		w->held[i - 1] = w->held[k];
		w->held[k] = t;
	}
	while (w->held_count != 0)
		step_give(w, 1, true, 1);
	while (w->range_count != 0) {
		struct range r = w->ranges[--w->range_count];

		CORE_DO(&w->core, range_give, w->core.first + r.at, r.pages);
		memset(&w->free[r.at], 1, r.pages);
	}
	compare(w);
	core_counts(&w->core, counts);
	MUST(w, counts[w->core.top_order] == w->added);
	MUST(w, CORE_ASK(&w->core, free_pages) == (uint64_t)w->added
							  << w->core.top_order);
}

/* A run of both cores in one random geometry. */
static void run(uint64_t steps, uint64_t *state)
{
	static struct world worlds[CORE_KINDS];
	unsigned top_order =
		PCPI_BUDDY_MIN_TOP_ORDER + (unsigned)(core_random(state) % 7);
	uint32_t chunks = 1 + (uint32_t)(core_random(state) % 12);
	uint32_t first = (uint32_t)(core_random(state) % 1000) << top_order;

	for (int kind = 0; kind < CORE_KINDS; kind++) {
		struct world *w = &worlds[kind];

		memset(w, 0, sizeof(*w));
		core_make(&w->core, (enum core_kind)kind, first, chunks,
			  top_order);
		compare(w);
		for (uint32_t i = 0; i < (chunks + 1) / 2; i++)
			step_add(w);
	}
	for (uint64_t i = 0; i < steps; i++, step_now++) {
		uint64_t r = core_random(state);

		for (int kind = 0; kind < CORE_KINDS; kind++) {
			step(&worlds[kind], r, i / 64 % 2 == 0);
			compare(&worlds[kind]);
		}
	}
	for (int kind = 0; kind < CORE_KINDS; kind++) {
		finish(&worlds[kind], state);
		core_unmake(&worlds[kind].core);
	}
}

int main(int argc, char **argv)
{
	uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
	uint64_t state;

	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 20211;
	printf("model_buddy: %llu steps, seed %llu\n",
	       (unsigned long long)steps, (unsigned long long)seed);
	fflush(stdout);
	state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	while (step_now < steps)
		run(pcpi_min(steps - step_now, UINT64_C(250)), &state);
	return 0;
}
