/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_buddy.c - the two buddy cores, bare: ns a page for taking and giving
 * batches of single pages at a steady occupancy.
 *
 * usage: bench_buddy [--mib LIST] [--percent N] [--order K] [--bulk N]
 *                    [--reps N] [--seed N]
 *
 * The heap (4 KiB pages, top order 9) is taken whole and then given back in
 * random order down to the occupancy; two turnovers of random churn bring it to
 * its steady state.  Then each repetition takes ROUNDS batches and gives as
 * many back, picked at random from all that are held.  The picking is not
 * timed.  The cores take turns, so that a noisy neighbour hits both.
 *
 * Prints one JSON object a line: medians of the repetitions, the 99th
 * percentile, and how many order-3 and order-9 blocks are free in the end.
 */
#include <inttypes.h>
#include <time.h>

#include "buddy_core.h"

#define TOP_ORDER 9
#define ROUNDS 16
#define MAX_BULK 4096
#define MAX_REPS 2000

struct options {
	const char *mib;
	unsigned percent, order, bulk, reps;
	uint64_t seed;
};

struct heap {
	struct core core;
	uint32_t *held;
	uint32_t held_count;
	uint64_t random;
	double take_ns[MAX_REPS], give_ns[MAX_REPS];
};

static uint32_t batch[ROUNDS * MAX_BULK];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Moves n random held blocks into batch[]. */
static void pick_held(struct heap *h, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = (uint32_t)(core_random(&h->random) >> 32) %
			     h->held_count;

		batch[i] = h->held[k];
		h->held[k] = h->held[--h->held_count];
	}
}

/* One repetition; returns the blocks that were moved each way. */
static uint32_t turn(struct heap *h, const struct options *o, double *take_ns,
		     double *give_ns)
{
	uint32_t got = 0;
	uint64_t start, took, gave;

	start = now_ns();
	for (unsigned i = 0; i < ROUNDS; i++)
		got += core_take_all(&h->core, o->order,
				     h->held + h->held_count + got, o->bulk);
	took = now_ns() - start;
	h->held_count += got;
	pick_held(h, got);
	start = now_ns();
	for (uint32_t i = 0; i < got; i += o->bulk)
		CORE_DO(&h->core, give_bulk, o->order, batch + i,
			pcpi_min(o->bulk, got - i));
	gave = now_ns() - start;
	*take_ns = (double)took / got;
	*give_ns = (double)gave / got;
	return got;
}

static void heap_make(struct heap *h, enum core_kind kind, uint32_t pages,
		      const struct options *o)
{
	uint32_t blocks = pages >> o->order;
	uint32_t keep = (uint32_t)((uint64_t)blocks * o->percent / 100);
	uint64_t moved = 0;
	double unused;

	core_make_free(&h->core, kind, 0, pages >> TOP_ORDER, TOP_ORDER);
	h->held = malloc(blocks * sizeof(*h->held));
	if (h->held == NULL)
		abort();
	h->random = o->seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	h->held_count = core_take_all(&h->core, o->order, h->held, blocks);
	core_shuffle(h->held, h->held_count, &h->random);
	while (h->held_count > keep)
		CORE_DO(&h->core, give, h->held[--h->held_count], o->order);
	while (moved < 2 * (uint64_t)keep)
		moved += turn(h, o, &unused, &unused);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void heap_print(struct heap *h, const struct options *o, unsigned mib)
{
	uint32_t counts[PCPI_MAX_ORDER + 1], order3 = 0;
	unsigned p99 = o->reps * 99 / 100;

	qsort(h->take_ns, o->reps, sizeof(double), by_value);
	qsort(h->give_ns, o->reps, sizeof(double), by_value);
	core_counts(&h->core, counts);
	for (unsigned j = 3; j <= TOP_ORDER; j++)
		order3 += counts[j] << (j - 3);
	printf("{\"bench\":\"buddy\",\"core\":\"%s\",\"mib\":%u,"
	       "\"occupancy_percent\":%u,\"order\":%u,\"bulk\":%u,"
	       "\"take_ns\":%.2f,\"give_ns\":%.2f,\"take_p99_ns\":%.2f,"
	       "\"give_p99_ns\":%.2f,\"order3_free\":%u,\"order9_free\":%u,"
	       "\"reps\":%u,\"seed\":%" PRIu64 "}\n",
	       core_name(h->core.kind), mib, o->percent, o->order, o->bulk,
	       h->take_ns[o->reps / 2], h->give_ns[o->reps / 2], h->take_ns[p99],
	       h->give_ns[p99], order3, counts[TOP_ORDER], o->reps, o->seed);
	fflush(stdout);
	free(h->held);
	core_unmake(&h->core);
}

static void bench_size(unsigned mib, const struct options *o)
{
	static struct heap heaps[CORE_KINDS];

	for (int kind = 0; kind < CORE_KINDS; kind++)
		heap_make(&heaps[kind], (enum core_kind)kind, mib * 256u, o);
	for (unsigned r = 0; r < o->reps; r++)
		for (int kind = 0; kind < CORE_KINDS; kind++)
			turn(&heaps[kind], o, &heaps[kind].take_ns[r],
			     &heaps[kind].give_ns[r]);
	for (int kind = 0; kind < CORE_KINDS; kind++)
		heap_print(&heaps[kind], o, mib);
}

/* Reads the value of an option; 0 when it is out of [1, max]. */
static unsigned number(const char *text, unsigned max)
{
	unsigned long v = strtoul(text, NULL, 10);

	return v <= max ? (unsigned)v : 0;
}

static int usage(void)
{
	fputs("usage: bench_buddy [--mib LIST] [--percent 1-99] [--order 0-9]\n"
	      "                   [--bulk 1-4096] [--reps 1-2000] [--seed N]\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct options o = {"64,1024,4096", 50, 0, 63, 300, 1};

	for (int i = 1; i < argc; i += 2) {
		const char *name = argv[i], *value = argv[i + 1];

		if (value == NULL)
			return usage();
		if (strcmp(name, "--mib") == 0)
			o.mib = value;
		else if (strcmp(name, "--percent") == 0)
			o.percent = number(value, 99);
		else if (strcmp(name, "--order") == 0)
			o.order = number(value, TOP_ORDER);
		else if (strcmp(name, "--bulk") == 0)
			o.bulk = number(value, MAX_BULK);
		else if (strcmp(name, "--reps") == 0)
			o.reps = number(value, MAX_REPS);
		else if (strcmp(name, "--seed") == 0)
			o.seed = strtoull(value, NULL, 10);
		else
			return usage();
	}
	if (o.percent == 0 || o.bulk == 0 || o.reps == 0)
		return usage();
	for (const char *at = o.mib; *at != '\0';) {
		char *end;
		unsigned long mib = strtoul(at, &end, 10);

		/* Room for the batches in the smaller half of the heap. */
		if (end == at || mib < 16 || mib > 1u << 20)
			return usage();
		bench_size((unsigned)mib, &o);
		at = *end == ',' ? end + 1 : end;
	}
	return 0;
}
