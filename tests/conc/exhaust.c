/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exhaust.c - two threads and a heap that is too small for both.
 *
 * A thread frees from its store at random and allocates until it is refused, or
 * holds `most` blocks.  Where the other can hold so much that the heap is
 * empty, a refusal is right; where it can't, an allocation must not fail:
 *
 *     own + most of the other + what may be on its way < all      must succeed
 *
 * On its way, so that nobody can take it, are the batch that a thread moves
 * between its cache and the depot, and a cache that is inside a call; none of
 * that exists for orders that caches don't hold.
 */
#include "conc.h"

#define MS 1000u
#define STORE 2048u

struct exhaust_case {
	struct pcpa_heap *heap;
	uint64_t seed;
	unsigned order, all, transit;
	unsigned most[2];
	unsigned refused[2];
};

struct store {
	void *blocks[STORE];
	unsigned n;
};

/* Up to the most; what was refused must have been so rightly. */
static void fill(struct exhaust_case *the, unsigned index, struct store *s)
{
	unsigned other = the->most[!index];
	void *block;

	while (s->n < the->most[index]) {
		block = pcpa_alloc(the->heap, the->order, 0);
		if (!block) {
			CHECK(errno == ENOMEM);
			CHECK_U64(s->n + other + the->transit, >=, the->all);
			the->refused[index]++;
			return;
		}
		conc_stamp(the->heap, block, the->order, index + 1);
		s->blocks[s->n++] = block;
	}
}

static void give(struct exhaust_case *the, unsigned index, struct store *s,
		 unsigned n)
{
	while (n-- > 0 && s->n > 0) {
		void *block = s->blocks[--s->n];

		conc_unstamp(the->heap, block, the->order, index + 1);
		pcpa_free(the->heap, block);
	}
}

static void fighter(unsigned index, void *arg)
{
	struct exhaust_case *the = arg;
	uint64_t random = (the->seed + index) | 1, end = conc_now_ms() + MS;
	struct store *s = calloc(1, sizeof(*s));

	CHECK(s);
	do {
		fill(the, index, s);
		give(the, index, s,
		     (unsigned)(conc_random(&random) % (s->n + 1)));
	} while (conc_now_ms() < end);
	give(the, index, s, s->n);
	free(s);
}

/* Once nobody else runs, all blocks can be had by one thread, and no more. */
static void all_there(struct exhaust_case *the)
{
	void **blocks = calloc(the->all + 1, sizeof(*blocks));

	CHECK(blocks);
	CHECK_U64(pcpa_alloc_bulk(the->heap, the->order, 0, blocks, the->all + 1),
		  ==, the->all);
	pcpa_free_bulk(the->heap, blocks, the->all);
	free(blocks);
}

/* share: of all, in percent, that each may hold. */
static void fought(uint64_t seed, unsigned order, unsigned share)
{
	struct exhaust_case the = { .heap = conc_heap(2 * MIB, PCPA_HEAP_FIXED),
				    .seed = seed, .order = order };

	the.all = (unsigned)(conc_stats(the.heap).managed_pages >> order);
	/* A chunk each of two threads, and the caches' share of an eighth. */
	if (order < PCPI_PCP_ORDERS)
		the.transit = 2 * PCPI_CHUNK + the.all / 8;
	the.most[0] = the.most[1] = pcpi_min(the.all * share / 100, STORE);
	conc_run(2, fighter, &the);
	fprintf(stderr, "order %u, %u blocks, %u%% each: refused %u and %u\n",
		order, the.all, share, the.refused[0], the.refused[1]);
	all_there(&the);
	conc_heap_end(the.heap);
}

int main(void)
{
	uint64_t seed = conc_seed();

	fought(seed, 0, 100);
	fought(seed, 0, 30);
	fought(seed, 2, 90);
	fought(seed, 5, 100);
	fought(seed, 5, 50);
	return 0;
}
