/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * buddy_core.h - either core of the buddy behind one set of calls, with its
 * own metadata, for tests and benchmarks.  core_make() aborts when there is no
 * memory.
 */
#ifndef TESTS_BUDDY_CORE_H
#define TESTS_BUDDY_CORE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "buddy.h"
#include "buddy_list.h"

enum core_kind { CORE_BITMAP, CORE_LIST, CORE_KINDS };

struct core {
	enum core_kind kind;
	uint32_t first, chunks;
	unsigned top_order;
	void *meta;
	union {
		struct pcpi_buddy bitmap;
		struct pcpi_buddy_list list;
	} u;
};

/* CORE_DO(c, take, order) calls pcpi_buddy_take or pcpi_buddy_list_take. */
#define CORE_DO(c, verb, ...)                                                  \
	((c)->kind == CORE_BITMAP                                              \
		 ? pcpi_buddy_##verb(&(c)->u.bitmap, __VA_ARGS__)              \
		 : pcpi_buddy_list_##verb(&(c)->u.list, __VA_ARGS__))
/* The same for the verbs without arguments. */
#define CORE_ASK(c, verb)                                                      \
	((c)->kind == CORE_BITMAP ? pcpi_buddy_##verb(&(c)->u.bitmap)          \
				  : pcpi_buddy_list_##verb(&(c)->u.list))

static inline const char *core_name(enum core_kind kind)
{
	return kind == CORE_BITMAP ? "bitmap" : "list";
}

/* A core over a range of which nothing is managed. */
static inline void core_make(struct core *c, enum core_kind kind,
			     uint32_t first, uint32_t chunks, unsigned top_order)
{
	size_t bytes = kind == CORE_BITMAP
			       ? pcpi_buddy_meta_bytes(chunks, top_order)
			       : pcpi_buddy_list_meta_bytes(chunks, top_order);

	memset(c, 0, sizeof(*c));
	c->kind = kind;
	c->first = first;
	c->chunks = chunks;
	c->top_order = top_order;
	bytes = (size_t)pcpi_round_up(bytes, PCPI_CACHELINE);
	c->meta = aligned_alloc(PCPI_CACHELINE, bytes);
	if (c->meta == NULL)
		abort();
	memset(c->meta, 0, bytes);
	if (kind == CORE_BITMAP)
		pcpi_buddy_init(&c->u.bitmap, c->meta, first, chunks, top_order);
	else
		pcpi_buddy_list_init(&c->u.list, c->meta, first, chunks,
				     top_order);
}

static inline uint32_t core_pages(const struct core *c)
{
	return c->chunks << c->top_order;
}

/* A core whose whole range is managed and free. */
static inline void core_make_free(struct core *c, enum core_kind kind,
				  uint32_t first, uint32_t chunks,
				  unsigned top_order)
{
	core_make(c, kind, first, chunks, top_order);
	CORE_DO(c, add, first, core_pages(c));
}

static inline void core_unmake(struct core *c)
{
	free(c->meta);
}

static inline uint64_t core_splits(const struct core *c)
{
	return c->kind == CORE_BITMAP ? c->u.bitmap.splits : c->u.list.splits;
}

/* Free blocks of each order in the whole range. */
static inline void core_counts(const struct core *c,
			       uint32_t counts[PCPI_MAX_ORDER + 1])
{
	memset(counts, 0, sizeof(uint32_t) * (PCPI_MAX_ORDER + 1));
	for (uint32_t i = 0; i < c->chunks; i++)
		CORE_DO(c, chunk_counts, i, counts);
}

/* Takes n blocks however many calls it needs; returns how many it got. */
static inline uint32_t core_take_all(struct core *c, unsigned order,
				     uint32_t *pfns, uint32_t n)
{
	uint32_t got = 0, more;

	do {
		more = CORE_DO(c, take_bulk, order, pfns + got, n - got);
		got += more;
	} while (more != 0 && got < n);
	return got;
}

static inline void core_dump(const struct core *c, FILE *to)
{
	uint32_t counts[PCPI_MAX_ORDER + 1];

	core_counts(c, counts);
	fprintf(to, "%s core, first %u, %u chunks of order %u, %llu free:",
		core_name(c->kind), c->first, c->chunks, c->top_order,
		(unsigned long long)CORE_ASK(c, free_pages));
	for (unsigned j = 0; j <= PCPI_MAX_ORDER; j++)
		fprintf(to, " %u", counts[j]);
	fputc('\n', to);
	for (uint32_t i = 0; i < core_pages(c); i++)
		fprintf(to, "%s%c", i % 64 == 0 ? "\n" : "",
			CORE_DO(c, is_free, c->first + i) ? '-' : '#');
	fputc('\n', to);
}

/* A small generator (xorshift), so that a seed means the same everywhere. */
static inline uint64_t core_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

static inline void core_shuffle(uint32_t *v, uint32_t n, uint64_t *state)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t k = (uint32_t)(core_random(state) % i), t = v[i - 1];

		v[i - 1] = v[k];
		v[k] = t;
	}
}

#endif
