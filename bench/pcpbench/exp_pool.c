/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp_pool.c - packet pools (pcpalloc/page_pool.h), each time two ways of doing one
 * thing, and the quotient.
 *
 *   pool          a block of a heap taken and given back; a buffer of a pool
 *   pool-frag     a page for each packet; two packets a page: 4,096 packets gotten, more
 *                 than a pool keeps pages, then put in that order
 *   pool-frag-remote  the same, gotten by one thread and put one by one by another,
 *                 bursts of 32 through a ring: pages don't leave the pool
 *   pool-colour   a pipeline of one thread over bursts of 64 packets, whose header and
 *                 first line of data four stages read or write: buffers at the begin of
 *                 their pages; at 16 lines
 *
 * Turns: each way runs for a millisecond or two in each, beginning with the other one
 * each time; quotients are medians of those within turns.
 */
#include <errno.h>
#include <pcpalloc/page_pool.h>
#include <pcpalloc/pcpalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duo.h"
#include "series.h"
#include "spsc.h"
#include "tsc.h"

enum {
	HEAP_MIB = 64,
	PACKETS = 1 << 15, /* a measurement; a multiple of all bursts */
	PIPE_BURST = 64,
	QUEUE = 4096,
	HEADROOM = 128,
	WARM_ROUNDS = 20,
};

struct pools {
	const struct bench_experiment_args *args;
	struct bench_duo duo;
	struct pcpa_heap *heap;
	struct pcpa_pool *pool; /* whose turn it is */
	struct spsc ring;
	uint64_t ticks;
	bool parts; /* two a page */
};

/* One way of doing it. */
struct way {
	const char *name;
	unsigned flags;	/* of its pool */
	bool heap;	/* without one */
	bool parts;
};

struct contest {
	const char *name, *what, *unit;
	unsigned lanes;
	void (*job)(void *pools, unsigned lane);
	struct way way[2]; /* the quotient is the second's of the first */
	double target;	   /* the quotient is to be at most this; 0: whatever */
};

/* A block that isn't there ends the process: nothing here runs short. */
static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* ---- Pairs --------------------------------------------------------------------- */

static void pair_run(void *arg, unsigned lane)
{
	struct pools *ps = arg;
	uint64_t start = bench_tsc_read();

	(void)lane;
	if (ps->pool)
		for (int i = 0; i < PACKETS; i++)
			pcpa_pool_put(ps->pool, must(pcpa_pool_get(ps->pool)));
	else
		for (int i = 0; i < PACKETS; i++)
			pcpa_free(ps->heap, must(pcpa_alloc(ps->heap, 0, 0)));
	ps->ticks = bench_tsc_read() - start;
}

/* ---- Parts of pages ------------------------------------------------------------- */

static void packets_get(struct pools *ps, void **burst, int n)
{
	for (int i = 0; i < n; i++)
		burst[i] = must(ps->parts
					? pcpa_pool_get_frag(ps->pool, 2048, NULL)
					: pcpa_pool_get(ps->pool));
}

static void queue_run(void *arg, unsigned lane)
{
	static void *queue[QUEUE];
	struct pools *ps = arg;
	uint64_t start = bench_tsc_read();

	(void)lane;
	for (int n = 0; n < PACKETS; n += QUEUE) {
		packets_get(ps, queue, QUEUE);
		for (int i = 0; i < QUEUE; i++)
			pcpa_pool_put(ps->pool, queue[i]);
	}
	ps->ticks = bench_tsc_read() - start;
}

static void receive(struct pools *ps)
{
	void *burst[SPSC_BURST];

	for (int n = 0; n < PACKETS; n += SPSC_BURST) {
		packets_get(ps, burst, SPSC_BURST);
		while (!spsc_push(&ps->ring, burst))
			bench_pause();
	}
}

static void transmit(struct pools *ps)
{
	void *burst[SPSC_BURST];

	for (int n = 0; n < PACKETS; n += SPSC_BURST) {
		while (!spsc_pop(&ps->ring, burst))
			bench_pause();
		for (int i = 0; i < SPSC_BURST; i++)
			pcpa_pool_put(ps->pool, burst[i]);
	}
}

static void remote_run(void *arg, unsigned lane)
{
	struct pools *ps = arg;
	uint64_t start;

	bench_duo_meet(&ps->duo);
	start = bench_tsc_read();
	if (lane == 0)
		receive(ps);
	else
		transmit(ps);
	/* The one that puts is the last to end. */
	if (lane == 1)
		ps->ticks = bench_tsc_read() - start;
}

/* ---- A pipeline that touches its packets ------------------------------------------ */

static void stage(void *const *burst, uint64_t add)
{
	for (int i = 0; i < PIPE_BURST; i++) {
		uint64_t *header = burst[i], *data = header + HEADROOM / 8;

		header[1] += data[0] + add;
		data[1] = header[0];
	}
}

static void pipe_run(void *arg, unsigned lane)
{
	struct pools *ps = arg;
	void *burst[PIPE_BURST];
	uint64_t start = bench_tsc_read();

	(void)lane;
	for (int n = 0; n < PACKETS; n += PIPE_BURST) {
		for (int i = 0; i < PIPE_BURST; i++)
			burst[i] = must(pcpa_pool_get(ps->pool));
		for (uint64_t s = 0; s < 4; s++)
			stage(burst, s);
		for (int i = 0; i < PIPE_BURST; i++)
			pcpa_pool_put(ps->pool, burst[i]);
	}
	ps->ticks = bench_tsc_read() - start;
}

/* ---- Turns ---------------------------------------------------------------------------- */

static const struct contest contests[] = {
	{"pool", "a pair of calls, that hits", "ns a pair", 1, pair_run,
	 {{.name = "heap", .heap = true}, {.name = "pool"}}, 1.3},
	{"pool-frag", "4,096 packets gotten, then put", "ns a packet", 1, queue_run,
	 {{.name = "page-a-packet"}, {.name = "two-a-page", .parts = true}}, 0.7},
	{"pool-frag-remote", "from one thread to another, put one by one",
	 "ns a packet", 2, remote_run,
	 {{.name = "page-a-packet"}, {.name = "two-a-page", .parts = true}}, 0},
	{"pool-colour", "four stages over bursts of 64 packets", "ns a packet", 1,
	 pipe_run,
	 {{.name = "uncoloured", .flags = PCPA_POOL_NO_COLOUR},
	  {.name = "16-colours"}}, 1 / 1.3},
};

/* What a contest has found. */
struct figures {
	double *ns[2]; /* [reps] */
	struct bench_tally tally[2];
};

static int pool_ready(struct pools *ps, const struct way *w)
{
	struct pcpa_pool_options o = PCPA_POOL_OPTIONS_INIT;

	ps->pool = NULL;
	ps->parts = w->parts;
	spsc_init(&ps->ring);
	o.flags = w->flags;
	o.headroom_bytes = HEADROOM;
	return w->heap ? 0 : pcpa_pool_create(ps->heap, &o, &ps->pool);
}

/* One way's part of a turn, on a pool of its own. */
static int way_measure(struct pools *ps, const struct contest *c, unsigned way,
		       struct figures *f, unsigned turn)
{
	int err = pool_ready(ps, &c->way[way]);

	if (err)
		return err;
	for (int i = 0; i < WARM_ROUNDS; i++)
		bench_duo_run(&ps->duo, c->lanes, c->job, ps);
	bench_duo_measure(&ps->duo, c->lanes, c->job, ps, &f->tally[way]);
	f->ns[way][turn] = (double)ps->ticks / ps->args->ticks_per_ns / PACKETS;
	/* Nothing is out. */
	return pcpa_pool_destroy(ps->pool) ? -EBUSY : 0;
}

static void head_print(const struct contest *c)
{
	printf("\n%s: %s\n  %-15s %11s %8s %8s  of the first", c->name, c->what,
	       "", c->unit, "p25", "p75");
	if (c->target > 0)
		printf(" (wanted: at most %.2f)", c->target);
	printf("\n");
}

static void figures_print(const struct pools *ps, const struct contest *c,
			  const struct figures *f)
{
	unsigned reps = ps->args->reps;
	double ratio = bench_series_ratio(f->ns[1], f->ns[0], reps);

	if (!ps->args->json)
		head_print(c);
	for (unsigned way = 0; way < 2; way++) {
		struct bench_summary s = bench_series_summary(f->ns[way], reps);
		struct json_object *j;

		if (!ps->args->json) {
			printf("  %-15s %11.2f %8.2f %8.2f  %.3f\n",
			       c->way[way].name, s.median, s.p25, s.p75,
			       way ? ratio : 1.0);
			continue;
		}
		j = bench_experiment_json(c->name);
		bench_experiment_text(j, "allocator", c->way[way].name);
		bench_experiment_text(j, "unit", c->unit);
		bench_experiment_number(j, "ns", s.median);
		bench_experiment_number(j, "p25", s.p25);
		bench_experiment_number(j, "p75", s.p75);
		bench_experiment_number(j, "ratio", way ? ratio : 1.0);
		if (way && c->target > 0)
			bench_experiment_number(j, "ratio_wanted", c->target);
		bench_tally_json(j, &f->tally[way]);
		bench_experiment_print(j);
	}
}

static int turns_take(struct pools *ps, const struct contest *c)
{
	unsigned reps = ps->args->reps;
	double *all = calloc(2 * (size_t)reps, sizeof(*all));
	struct figures f = {.ns = {all, all + reps}};
	int err = all ? 0 : -ENOMEM;

	for (unsigned turn = 0; !err && turn < reps; turn++)
		for (unsigned i = 0; !err && i < 2; i++)
			err = way_measure(ps, c, (turn + i) % 2, &f, turn);
	if (!err)
		figures_print(ps, c, &f);
	free(all);
	return err;
}

static int heap_ready(struct pools *ps)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;

	o.flags = PCPA_HEAP_FIXED;
	o.initial_bytes = (size_t)HEAP_MIB << 20;
	o.verbosity = 0;
	return pcpa_heap_create(&o, &ps->heap);
}

static bool contest_run(const struct bench_experiment_args *args,
			const struct contest *c)
{
	static struct pools ps;
	int err;

	ps.args = args;
	err = heap_ready(&ps);
	if (!err) {
		err = -bench_duo_start(&ps.duo, args);
		if (!err && c->lanes > ps.duo.lanes) {
			fprintf(stderr, "pcpbench: %s: left out, it takes two "
				"CPUs\n", c->name);
			bench_duo_stop(&ps.duo);
		} else if (!err) {
			err = turns_take(&ps, c);
			bench_duo_stop(&ps.duo);
		}
		pcpa_heap_destroy(ps.heap);
	}
	if (err)
		fprintf(stderr, "pcpbench: %s: %s\n", c->name, strerror(-err));
	return !err;
}

bool bench_exp_pool(const struct bench_experiment_args *args)
{
	return contest_run(args, &contests[0]);
}

bool bench_exp_pool_frag(const struct bench_experiment_args *args)
{
	return contest_run(args, &contests[1]);
}

bool bench_exp_pool_frag_remote(const struct bench_experiment_args *args)
{
	return contest_run(args, &contests[2]);
}

bool bench_exp_pool_colour(const struct bench_experiment_args *args)
{
	return contest_run(args, &contests[3]);
}
