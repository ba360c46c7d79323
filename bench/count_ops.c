/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * count_ops.c - what bench/count-instructions counts: the same calls N and 2N
 * times, so that the difference is N times one round, exactly.
 *
 * usage: valgrind --tool=callgrind ... count_ops N
 *
 * A case is a heap of its own, rounds that make every later call a hit, and two
 * runs of rounds, in which no hit looks on which node it is (lib/pcp_hot.h, HO3).
 * A round allocates `depth` blocks and frees them: at depth 1
 * the block of order 0 stays in the cache's front, at depth 2 the second one
 * takes the way through the ring.  After each run callgrind writes the counts
 * since the run began, under the name "CASE ROUNDS".
 *
 * The functions here are named count_*; the script leaves them out by that.
 */
#include <pcpalloc/pcpalloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/callgrind.h>

#include "../lib/heap.h"

#define HEAP_BYTES ((size_t)16 << 20)
#define SETTLE_ROUNDS 256
#define MAX_DEPTH 64

struct count_case {
	const char *name;
	unsigned order, depth;
	bool sized, bulk;
};

static const struct count_case count_cases[] = {
	{"order0-depth1", 0, 1, false, false},
	{"order0-depth2", 0, 2, false, false},
	{"order2-depth1", 2, 1, false, false},
	{"order0-sized-depth1", 0, 1, true, false},
	{"order0-sized-depth2", 0, 2, true, false},
	{"order2-sized-depth1", 2, 1, true, false},
	{"bulk8", 0, 8, false, true},
	{"bulk64", 0, 64, false, true},
	{"bulk8-sized", 0, 8, true, true},
	{"bulk64-sized", 0, 64, true, true},
};

static void count_die(const char *what)
{
	fprintf(stderr, "count_ops: %s\n", what);
	exit(1);
}

static void count_single(struct pcpa_heap *heap, const struct count_case *c)
{
	void *blocks[MAX_DEPTH];
	unsigned i;

	for (i = 0; i < c->depth; i++) {
		blocks[i] = pcpa_alloc(heap, c->order, 0);
		if (!blocks[i])
			count_die("the heap is too small");
	}
	for (i = 0; i < c->depth; i++) {
		if (c->sized)
			pcpa_free_sized(heap, blocks[i], c->order);
		else
			pcpa_free(heap, blocks[i]);
	}
}

static void count_bulk(struct pcpa_heap *heap, const struct count_case *c)
{
	void *blocks[MAX_DEPTH];

	if (pcpa_alloc_bulk(heap, c->order, 0, blocks, c->depth) != c->depth)
		count_die("the heap is too small");
	if (c->sized)
		pcpa_free_bulk_sized(heap, c->order, blocks, c->depth);
	else
		pcpa_free_bulk(heap, blocks, c->depth);
}

static void count_rounds(struct pcpa_heap *heap, const struct count_case *c,
			 unsigned long n)
{
	for (; n > 0; n--) {
		if (c->bulk)
			count_bulk(heap, c);
		else
			count_single(heap, c);
	}
}

/* The thread has just looked. */
static void count_align(struct pcpa_heap *heap, const struct count_case *c)
{
	const struct pcpi_pcp_list *list =
		&pcpi_hot_cache(&heap->hot)->list[c->order];

	while (pcpi_allocs(&list->allocs) % PCPI_LOOK_ALLOCS != 0)
		count_rounds(heap, c, 1);
}

static void count_run(const struct count_case *c, unsigned long n)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	char name[64];
	unsigned long rounds;

	opts.flags = PCPA_HEAP_FIXED;
	opts.initial_bytes = HEAP_BYTES;
	opts.verbosity = 0;
	if (pcpa_heap_create(&opts, &heap))
		count_die("can't create a heap");
	count_rounds(heap, c, SETTLE_ROUNDS);
	/* valgrind knows no restartable sequences; one thread needs none to be
	 * restarted. */
	pcpi_hot_cache(&heap->hot)->by_mark = !PCPI_RSEQ;
	for (rounds = n; rounds <= 2 * n; rounds += n) {
		snprintf(name, sizeof(name), "%s %lu", c->name, rounds);
		count_align(heap, c);
		CALLGRIND_ZERO_STATS;
		count_rounds(heap, c, rounds);
		CALLGRIND_DUMP_STATS_AT(name);
	}
	if (pcpa_heap_destroy(heap))
		count_die("blocks are missing");
}

int main(int argc, char **argv)
{
	unsigned long n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned i;

	if (n == 0 || !RUNNING_ON_VALGRIND)
		count_die("started by bench/count-instructions only");
	for (i = 0; i < sizeof(count_cases) / sizeof(count_cases[0]); i++)
		count_run(&count_cases[i], n);
	return 0;
}
