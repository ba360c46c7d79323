/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp_sweep.c - what does a larger batch bring?  Batch 31 to 527 in steps of 31
 * with high = 6 x batch, and batch 96 against 310 with the same high of 1860.
 *
 * The original ran will-it-scale's page_fault1 with a process on each of up to
 * 200 CPUs; the load here is pageload.h's, on the CPUs that there are.  In it the
 * kernel spent 80 % of its time waiting for the zone's lock.
 *
 * Lock share, twice:
 *   waited   part of the threads' time that they waited for the lock, counted
 *            (kernel-5.x only; what a profile shows as spinning)
 *   loss     what two threads lack of twice the pages that one alone gets, in the
 *            same turn: the lock, the lines that move with it, and what else CPUs
 *            do to each other.  An upper bound, for both allocators; the library
 *            has no other figure, as its statistics count the waits
 *            (zone_contended), not their time.
 *
 * Turns: in each every setting of every allocator runs once, alone and with all
 * threads, beginning with another one.  Medians.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pageload.h"
#include "series.h"

enum {
	STEP = 31,
	STEPS = 17,
	SETTINGS = STEPS + 2,
	FIXED_HIGH = 1860,
	RUN_PAGES = 16384, /* long beside the largest high, 3,162 */
	HEAP_MIB = 160,
	MEASURE_NS = 3000000,
	MAX_TURNS = 11,
};

enum { KERNEL, LEGACY, ALLOCATORS };

static const char *const allocator_name[ALLOCATORS] = {"kernel-5.x", "legacy"};

struct setting {
	unsigned batch, high;
	const char *original;
};

struct cell {
	double *ops;	   /* [reps] a second, all threads */
	double *one;	   /* [reps] one thread alone */
	double *waited;	   /* [reps] */
	double *loss;	   /* [reps] */
	double *contended; /* [reps] part of the lock's acquisitions */
	struct bench_tally tally;
};

struct sweep {
	const struct bench_experiment_args *args;
	unsigned turns;
	struct bench_duo duo;
	struct bench_pageload load;
	struct kpcp kpcp;
	struct setting setting[SETTINGS];
	struct cell cell[ALLOCATORS][SETTINGS];
};

/* What the original's machines did with a batch; NULL: nothing that it named. */
static const char *original_of(unsigned batch)
{
	switch (batch) {
	case 93:
		return "knee on Skylake-EP";
	case 279:
		return "peak on Haswell-EP and Broadwell-EP";
	case 310:
		return "peak on EX machines";
	case 403:
		return "peak on Skylake-EP";
	default:
		return NULL;
	}
}

static void settings_fill(struct setting *s)
{
	for (unsigned i = 0; i < STEPS; i++) {
		unsigned batch = STEP * (i + 1);

		s[i] = (struct setting){batch, 6 * batch, original_of(batch)};
	}
	s[STEPS] = (struct setting){96, FIXED_HIGH, "15762348 ops, lock 79.95 %"};
	s[STEPS + 1] =
		(struct setting){310, FIXED_HIGH, "19291492 ops, lock 74.87 %"};
}

/* ---- A turn -------------------------------------------------------------- */

static int subject_open(struct sweep *w, unsigned allocator,
			const struct setting *s, struct bench_subject *out)
{
	struct kpcp_options o = KPCP_OPTIONS_INIT;

	if (allocator == LEGACY)
		return bench_subject_heap(out, allocator_name[LEGACY], HEAP_MIB,
					  PCPA_HEAP_LEGACY, s->batch, s->high);
	o.batch = s->batch;
	o.high = s->high;
	return bench_subject_kpcp(out, allocator_name[KERNEL], &w->kpcp, &o);
}

struct locks {
	uint64_t taken, contended;
};

static struct locks locks_read(const struct sweep *w,
			       const struct bench_subject *s)
{
	struct pcpa_stats st = PCPA_STATS_INIT;
	struct locks l = {0, 0};

	if (!s->kpcp) {
		pcpa_stats_read(s->heap, -1, &st);
		return (struct locks){st.zone_locks, st.zone_contended};
	}
	for (unsigned i = 0; i < w->duo.lanes; i++) {
		const struct bench_pageload_lane *lane = &w->load.lane[i];

		l.taken += lane->after.locks - lane->before.locks;
		l.contended += lane->after.lock_contended -
			       lane->before.lock_contended;
	}
	return l;
}

static int cell_measure(struct sweep *w, unsigned allocator, unsigned setting,
			unsigned turn)
{
	struct cell *c = &w->cell[allocator][setting];
	double a_second = 1e9 * w->args->ticks_per_ns;
	struct bench_subject s;
	struct locks before, after;
	int err = subject_open(w, allocator, &w->setting[setting], &s);

	if (err)
		return err;
	bench_pageload_run(&w->load, 1, &s, &c->tally);
	c->one[turn] = bench_pageload_rate(&w->load) * a_second;
	before = s.kpcp ? (struct locks){0, 0} : locks_read(w, &s);
	bench_pageload_run(&w->load, w->duo.lanes, &s, &c->tally);
	after = locks_read(w, &s);
	c->ops[turn] = bench_pageload_rate(&w->load) * a_second;
	c->waited[turn] = bench_pageload_waited(&w->load);
	c->loss[turn] = w->duo.lanes == 1
				? 0
				: 1 - c->ops[turn] / (2 * c->one[turn]);
	c->contended[turn] = (double)(after.contended - before.contended) /
			     (double)(after.taken - before.taken + 1);
	bench_subject_close(&s);
	return 0;
}

static int turns_take(struct sweep *w)
{
	enum { CELLS = ALLOCATORS * SETTINGS };

	for (unsigned turn = 0; turn < w->turns; turn++)
		for (unsigned i = 0; i < CELLS; i++) {
			unsigned at = (turn * 7 + i) % CELLS;
			int err = cell_measure(w, at % ALLOCATORS,
					       at / ALLOCATORS, turn);

			if (err)
				return err;
		}
	return 0;
}

/* ---- Results ------------------------------------------------------------- */

static double median(const struct sweep *w, const double *value)
{
	return bench_series_summary(value, w->turns).median;
}

static void row_table(const struct sweep *w, unsigned setting)
{
	const struct setting *s = &w->setting[setting];

	printf("  %5u %6u", s->batch, s->high);
	for (unsigned a = 0; a < ALLOCATORS; a++) {
		const struct cell *c = &w->cell[a][setting];

		printf(" %9.2f", median(w, c->ops) / 1e6);
		if (a == KERNEL)
			printf(" %6.1f", 100 * median(w, c->waited));
		printf(" %6.1f", 100 * median(w, c->loss));
	}
	printf("  %s\n", s->original ? s->original : "");
}

/* The gain of batch 310 at the fixed high, per cent. */
static double gain(const struct sweep *w, unsigned allocator)
{
	const struct cell *c = w->cell[allocator];

	return 100 * (bench_series_ratio(c[STEPS + 1].ops, c[STEPS].ops,
					 w->turns) - 1);
}

static unsigned best_batch(const struct sweep *w, unsigned allocator)
{
	unsigned best = 0;

	for (unsigned i = 1; i < STEPS; i++)
		if (median(w, w->cell[allocator][i].ops) >
		    median(w, w->cell[allocator][best].ops))
			best = i;
	return w->setting[best].batch;
}

static void results_table(const struct sweep *w)
{
	printf("\nsweep: runs of %u pages taken and given back by %u thread%s; "
	       "a larger batch, at high = 6 x batch\n"
	       "  and at one high; million pages a second, %% waited for the "
	       "zone's lock, %% lost against threads alone\n"
	       "  %5s %6s %9s %6s %6s %9s %6s  original\n",
	       RUN_PAGES, w->duo.lanes, w->duo.lanes > 1 ? "s" : "", "batch",
	       "high", allocator_name[KERNEL], "waited", "loss",
	       allocator_name[LEGACY], "loss");
	for (unsigned i = 0; i < SETTINGS; i++)
		row_table(w, i);
	for (unsigned a = 0; a < ALLOCATORS; a++)
		printf("  %-10s best at batch %u (original: 310, 279 or 403 by "
		       "machine, desktop flat); 310 for 96 at high %u: %+.1f %% "
		       "(original: +22.4 %%)\n",
		       allocator_name[a], best_batch(w, a), FIXED_HIGH,
		       gain(w, a));
}

static void row_json(const struct sweep *w, unsigned allocator,
		     unsigned setting)
{
	const struct cell *c = &w->cell[allocator][setting];
	const struct setting *s = &w->setting[setting];
	struct json_object *o = bench_experiment_json("sweep");
	bool counted = allocator == KERNEL;

	bench_experiment_text(o, "allocator", allocator_name[allocator]);
	bench_experiment_count(o, "batch", s->batch);
	bench_experiment_count(o, "high", s->high);
	bench_experiment_count(o, "threads", w->duo.lanes);
	bench_experiment_number(o, "ops_per_s", median(w, c->ops));
	bench_experiment_number(o, "one_thread_ops_per_s", median(w, c->one));
	bench_experiment_number(
		o, "lock_share",
		counted ? median(w, c->waited)
			: pcpi_max(median(w, c->loss), 0.0));
	bench_experiment_text(o, "lock_share_is",
			      counted ? "time waited, counted"
				      : "at most: loss against threads alone");
	bench_experiment_number(o, "loss", median(w, c->loss));
	bench_experiment_number(o, "contended_share", median(w, c->contended));
	bench_tally_json(o, &c->tally);
	bench_experiment_text(o, "original", s->original);
	if (setting == STEPS + 1) {
		bench_experiment_number(o, "gain_percent", gain(w, allocator));
		bench_experiment_number(o, "original_gain_percent", 22.4);
	}
	bench_experiment_print(o);
}

static void results_json(const struct sweep *w)
{
	for (unsigned a = 0; a < ALLOCATORS; a++)
		for (unsigned i = 0; i < SETTINGS; i++)
			row_json(w, a, i);
}

/* ---- Set-up -------------------------------------------------------------- */

static double *column(size_t n, double **rest)
{
	double *d = *rest;

	*rest += n;
	return d;
}

/* Cuts one allocation into the cells' columns. */
static double *cells_fill(struct sweep *w)
{
	enum { COLUMNS = 5 };
	size_t n = w->turns;
	double *all = calloc(n * ALLOCATORS * SETTINGS * COLUMNS, sizeof(*all));
	double *rest = all;

	for (unsigned i = 0; all && i < ALLOCATORS * SETTINGS; i++)
		w->cell[i % ALLOCATORS][i / ALLOCATORS] = (struct cell){
			column(n, &rest), column(n, &rest), column(n, &rest),
			column(n, &rest), column(n, &rest), {0, 0}};
	return all;
}

static int sweep_run(struct sweep *w)
{
	struct kpcp_options o = KPCP_OPTIONS_INIT;
	double *values = cells_fill(w);
	int err = values ? 0 : -ENOMEM;

	o.mib = HEAP_MIB;
	if (!err)
		err = kpcp_open(&w->kpcp, &o);
	if (!err) {
		err = turns_take(w);
		kpcp_close(&w->kpcp);
	}
	if (!err && w->args->json)
		results_json(w);
	else if (!err)
		results_table(w);
	free(values);
	return err;
}

bool bench_exp_sweep(const struct bench_experiment_args *args)
{
	static struct sweep w;
	int err;

	w.args = args;
	w.turns = pcpi_min(args->reps, (unsigned)MAX_TURNS);
	settings_fill(w.setting);
	err = -bench_duo_start(&w.duo, args);
	if (!err) {
		err = bench_pageload_init(
			&w.load, &w.duo, RUN_PAGES,
			(uint64_t)(MEASURE_NS * args->ticks_per_ns));
		if (!err) {
			err = sweep_run(&w);
			bench_pageload_fini(&w.load);
		}
		bench_duo_stop(&w.duo);
	}
	if (err)
		fprintf(stderr, "pcpbench: sweep: %s\n", strerror(-err));
	return !err;
}
