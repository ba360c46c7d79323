/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp_lazy.c - merge each page that comes back, or put it off until a larger
 * block is missed?  In one binary, beside what the library does.
 *
 *   eager            kernel-5.x: the buddy merges each page
 *   lazy             single pages are put aside and merged when a block of a
 *                    higher order isn't there
 *   cluster          the same, and a batch of them is one step under the lock
 *   legacy, modern   the library: a bit for each page, so that a merge is no work
 *                    of its own; a depot in front of it
 *
 * Loads:
 *   order-0   both threads take and give back runs of pages (pageload.h)
 *   mixed     one thread does that, as far as there are pages; the other takes
 *             blocks of order 9, as many as there are up to 48, each for 20 us,
 *             and gives them back
 *   spaced    both threads take and give back runs that fill the memory but for
 *             468 pages; every 100 ms one of them, which has no page then,
 *             wants a block of order 9
 *
 * The kernel compacts memory by moving pages before it gives up, nobody here can:
 * a block of order 9 is there where all of its pages happen to be free, or not.
 * The library looks into the caches of other threads before it says no.
 *
 * Turns: each allocator does each load once in each, beginning with another one;
 * gains are medians of the quotients within turns.  Of `spaced' none is discarded:
 * in 100 ms every thread is preempted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pageload.h"
#include "series.h"
#include "tsc.h"

enum { EAGER, LAZY, CLUSTER, LEGACY, MODERN, SUBJECTS };
enum { ORDER_0, MIXED, SPACED, LOADS };

enum {
	HUGE_ORDER = 9,
	HEAP_MIB = 128,
	MOST_HUGE = 48, /* of 64 */
	HUGE_USE_NS = 20000,
	MAX_SPACED_TURNS = 11,
};

static const char *const subject_name[SUBJECTS] = {
	"kernel-5.x", "kernel-5.x-lazy", "kernel-5.x-cluster", "legacy", "modern"};

struct load {
	const char *name;
	size_t pages; /* of a run, a thread */
	unsigned ms;
	const char *original;
};

static const struct load loads[LOADS] = {
	{"order-0", 8192, 4,
	 "page_fault1, 112 CPUs: lock on frees 35 % -> 1.1 % lazy, on "
	 "allocations -> ~0 with cluster"},
	{"mixed", 24576, 16,
	 "order 0 +246 %, THP -69 % lazy; +47 %, -8.8 % with all patches"},
	{"spaced", 16150, 100, /* 468 pages are left: no block of order 9 */
	 "order 9 got 58 % -> 57 %, 3.96 -> 6.59 ms with compaction"},
};

/* What a turn shows. */
struct figures {
	double *pages;	/* of order 0 a second                        */
	double *waited; /* part of the time, for the lock (kpcp)      */
	double *huge;	/* of order 9 a second                        */
	double *served; /* part of the requests of order 9            */
	double *took;	/* ns, a request of order 9                   */
	struct bench_tally tally;
};

struct lazy {
	const struct bench_experiment_args *args;
	struct bench_duo duo;
	struct kpcp kpcp;
	struct bench_subject heap[SUBJECTS]; /* of LEGACY, MODERN */
	struct bench_pageload run[LOADS];
	struct bench_pageload *load; /* of the turn */
	struct { uint64_t asked, got, ticks; } huge;
	struct figures f[LOADS][SUBJECTS];
};

/* ---- Loads --------------------------------------------------------------- */

static void *huge_take(struct lazy *z, struct bench_user *u)
{
	uint64_t start = bench_tsc_read();
	void *block = bench_user_alloc(u, HUGE_ORDER);

	z->huge.ticks += bench_tsc_read() - start;
	z->huge.asked++;
	z->huge.got += block != NULL;
	return block;
}

static void huge_use(const struct lazy *z)
{
	uint64_t start = bench_tsc_read();

	while ((double)(bench_tsc_read() - start) <
	       HUGE_USE_NS * z->args->ticks_per_ns)
		bench_pause();
}

/* Takes what there is, up to a bound and the time, and gives it back. */
static void huge_round(struct lazy *z, struct bench_user *u, uint64_t until)
{
	void *block[MOST_HUGE];
	unsigned n = 0;

	while (n < MOST_HUGE && bench_tsc_read() < until) {
		block[n] = huge_take(z, u);
		if (!block[n])
			break;
		n++;
		huge_use(z);
	}
	while (n > 0)
		bench_user_free(u, block[--n], HUGE_ORDER);
}

/* lane 0: pages; lane 1: order 9.  Alone: in turns. */
static void mixed_go(struct lazy *z, unsigned lane, uint64_t until)
{
	struct bench_user *u = &z->load->lane[lane].user;

	if (lane == 0)
		while (bench_pageload_round(z->load, 0, until))
			if (z->duo.used == 1)
				huge_round(z, u, until);
	if (lane == 1)
		while (bench_tsc_read() < until)
			huge_round(z, u, until);
}

/* The request comes when lane 0's time is up, in the middle of a run of lane 1. */
static void spaced_go(struct lazy *z, unsigned lane, uint64_t until)
{
	struct bench_user *u = &z->load->lane[lane].user;
	uint64_t half = until - z->load->ticks / 100;
	void *block;

	if (lane == 1) {
		while (bench_pageload_round(z->load, 1, until))
			;
		return;
	}
	while (bench_pageload_round(z->load, 0, half))
		;
	block = huge_take(z, u);
	if (block)
		bench_user_free(u, block, HUGE_ORDER);
}

/* Both have all of their pages at once, so that no block of order 9 is left that
 * was never broken up. */
static void memory_break(struct lazy *z, struct bench_pageload_lane *l)
{
	size_t n = 0;

	while (n < z->load->pages && (l->page[n] = bench_user_alloc(&l->user, 0)))
		n++;
	bench_duo_meet(&z->duo);
	while (n > 0)
		bench_user_free(&l->user, l->page[--n], 0);
}

static void lane_main(void *arg, unsigned lane)
{
	struct lazy *z = arg;
	struct bench_pageload_lane *l = &z->load->lane[lane];
	uint64_t start;

	if (lane == 0)
		memset(&z->huge, 0, sizeof(z->huge));
	bench_user_attach(&l->user, z->load->subject);
	if (z->load == &z->run[SPACED])
		memory_break(z, l);
	else if (lane == 0)
		bench_pageload_round(z->load, 0, UINT64_MAX);
	bench_duo_meet(&z->duo);
	l->calls = 0;
	l->before = l->user.cache.counters;
	start = bench_tsc_read();
	if (z->load == &z->run[MIXED])
		mixed_go(z, lane, start + z->load->ticks);
	else
		spaced_go(z, lane, start + z->load->ticks);
	l->ticks = bench_tsc_read() - start;
	l->after = l->user.cache.counters;
	bench_user_detach(&l->user);
}

/* ---- A turn -------------------------------------------------------------- */

static int subject_ready(struct lazy *z, unsigned subject,
			 struct bench_subject *s)
{
	struct kpcp_options o = KPCP_OPTIONS_INIT;

	if (subject >= LEGACY) {
		*s = z->heap[subject];
		return pcpa_heap_drain(s->heap);
	}
	o.merge = (enum kpcp_merge)((unsigned)KPCP_EAGER + subject);
	return bench_subject_kpcp(s, subject_name[subject], &z->kpcp, &o);
}

static void figures_note(struct lazy *z, struct figures *f, unsigned turn)
{
	const struct bench_pageload *p = z->load;
	double a_second = 1e9 * z->args->ticks_per_ns;

	f->pages[turn] = bench_pageload_rate(p) * a_second;
	f->waited[turn] = bench_pageload_waited(p);
	f->huge[turn] = (double)z->huge.got / (double)p->ticks * a_second;
	if (!z->huge.asked)
		return;
	f->served[turn] = (double)z->huge.got / (double)z->huge.asked;
	f->took[turn] = (double)z->huge.ticks / (double)z->huge.asked /
			z->args->ticks_per_ns;
}

static int cell_measure(struct lazy *z, unsigned load, unsigned subject,
			unsigned turn)
{
	struct bench_tally *tally = &z->f[load][subject].tally;
	struct bench_subject s;
	int err = subject_ready(z, subject, &s);

	if (err)
		return err;
	z->load = &z->run[load];
	memset(&z->huge, 0, sizeof(z->huge));
	z->load->lane[1].calls = 0;
	z->load->subject = &s;
	if (load == ORDER_0)
		bench_pageload_run(z->load, z->duo.lanes, &s, tally);
	else if (load == MIXED)
		bench_duo_measure(&z->duo, z->duo.lanes, lane_main, z, tally);
	else
		bench_duo_run(&z->duo, z->duo.lanes, lane_main, z);
	figures_note(z, &z->f[load][subject], turn);
	return 0;
}

static unsigned turns(const struct lazy *z, unsigned load)
{
	return load == SPACED ? pcpi_min(z->args->reps,
					 (unsigned)MAX_SPACED_TURNS)
			      : z->args->reps;
}

static int turn_take(struct lazy *z, unsigned load, unsigned turn)
{
	int err = 0;

	for (unsigned i = 0; i < SUBJECTS && !err; i++)
		err = cell_measure(z, load, (turn + i) % SUBJECTS, turn);
	return err;
}

static int turns_take(struct lazy *z)
{
	int err = 0;

	for (unsigned turn = 0; turn < z->args->reps && !err; turn++)
		for (unsigned load = 0; load < LOADS && !err; load++)
			if (turn < turns(z, load))
				err = turn_take(z, load, turn);
	return err;
}

/* ---- Results ------------------------------------------------------------- */

/* Per cent over eager merging; 0 where that has none. */
static double gain(const double *value, const double *eager, unsigned n)
{
	double ratio = bench_series_ratio(value, eager, n);

	return ratio > 0 ? 100 * (ratio - 1) : 0;
}

/* Of all requests of all turns. */
static double mean(const double *value, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += value[i];
	return sum / n;
}

static void cell_table(const struct lazy *z, unsigned load, unsigned subject)
{
	const struct figures *f = &z->f[load][subject];
	const struct figures *eager = &z->f[load][EAGER];
	unsigned n = turns(z, load);

	printf("  %-8s %-18s %7.2f %+7.1f", loads[load].name,
	       subject_name[subject],
	       bench_series_summary(f->pages, n).median / 1e6,
	       gain(f->pages, eager->pages, n));
	if (subject < LEGACY)
		printf(" %6.1f",
		       100 * bench_series_summary(f->waited, n).median);
	else
		printf("      -");
	if (load == MIXED)
		printf(" %8.0f %+7.1f", bench_series_summary(f->huge, n).median,
		       gain(f->huge, eager->huge, n));
	else
		printf(" %8s %7s", "-", "-");
	if (load != ORDER_0)
		printf(" %6.0f %9.1f", 100 * mean(f->served, n),
		       bench_series_summary(f->took, n).median / 1e3);
	putchar('\n');
}

static void cell_json(const struct lazy *z, unsigned load, unsigned subject)
{
	const struct figures *f = &z->f[load][subject];
	const struct figures *eager = &z->f[load][EAGER];
	struct json_object *o = bench_experiment_json("lazy");
	unsigned n = turns(z, load);

	bench_experiment_text(o, "load", loads[load].name);
	bench_experiment_text(o, "allocator", subject_name[subject]);
	bench_experiment_count(o, "threads", z->duo.lanes);
	bench_experiment_number(o, "pages_per_s",
				bench_series_summary(f->pages, n).median);
	bench_experiment_number(o, "gain_percent",
				gain(f->pages, eager->pages, n));
	if (subject < LEGACY)
		bench_experiment_number(
			o, "lock_share",
			bench_series_summary(f->waited, n).median);
	if (load == MIXED) {
		bench_experiment_number(o, "order9_per_s",
					bench_series_summary(f->huge, n).median);
		bench_experiment_number(o, "order9_gain_percent",
					gain(f->huge, eager->huge, n));
	}
	if (load != ORDER_0) {
		bench_experiment_number(o, "order9_served", mean(f->served, n));
		bench_experiment_number(o, "order9_ns",
					bench_series_summary(f->took, n).median);
	}
	bench_tally_json(o, &f->tally);
	bench_experiment_text(o, "original", loads[load].original);
	bench_experiment_print(o);
}

static void load_print(const struct lazy *z, unsigned load)
{
	for (unsigned s = 0; s < SUBJECTS; s++) {
		if (z->args->json)
			cell_json(z, load, s);
		else
			cell_table(z, load, s);
	}
	if (!z->args->json)
		printf("           original: %s\n", loads[load].original);
}

static void results_print(const struct lazy *z)
{
	if (!z->args->json)
		printf("\nlazy: pages merged as they come back, or when a larger "
		       "block is missed; %u thread%s\n"
		       "  %-8s %-18s %7s %7s %6s %8s %7s %6s %9s\n",
		       z->duo.lanes, z->duo.lanes > 1 ? "s" : "", "load",
		       "allocator", "Mpage/s", "gain %", "lock %", "order9/s",
		       "gain %", "got %", "us each");
	for (unsigned load = 0; load < LOADS; load++)
		load_print(z, load);
}

/* ---- Set-up -------------------------------------------------------------- */

static double *figures_get(struct lazy *z)
{
	enum { COLUMNS = 5 };
	size_t n = z->args->reps;
	double *all = calloc(n * LOADS * SUBJECTS * COLUMNS, sizeof(*all));

	for (unsigned i = 0; all && i < LOADS * SUBJECTS; i++) {
		double *d = all + i * n * COLUMNS;

		z->f[i / SUBJECTS][i % SUBJECTS] = (struct figures){
			d, d + n, d + 2 * n, d + 3 * n, d + 4 * n, {0, 0}};
	}
	return all;
}

static int runs_init(struct lazy *z)
{
	int err = 0;

	for (unsigned i = 0; i < LOADS && !err; i++) {
		double ticks = loads[i].ms * 1e6 * z->args->ticks_per_ns;

		err = bench_pageload_init(&z->run[i], &z->duo, loads[i].pages,
					  (uint64_t)ticks);
	}
	return err;
}

static void all_close(struct lazy *z)
{
	for (unsigned i = 0; i < LOADS; i++)
		bench_pageload_fini(&z->run[i]);
	for (unsigned i = LEGACY; i < SUBJECTS; i++)
		bench_subject_close(&z->heap[i]);
	if (z->kpcp.base)
		kpcp_close(&z->kpcp);
}

static int all_open(struct lazy *z)
{
	struct kpcp_options o = KPCP_OPTIONS_INIT;
	int err = runs_init(z);

	o.mib = HEAP_MIB;
	if (!err)
		err = kpcp_open(&z->kpcp, &o);
	if (!err)
		err = bench_subject_heap(&z->heap[LEGACY], subject_name[LEGACY],
					 HEAP_MIB, PCPA_HEAP_LEGACY, 0, 0);
	if (!err)
		err = bench_subject_heap(&z->heap[MODERN], subject_name[MODERN],
					 HEAP_MIB, 0, 0, 0);
	return err;
}

bool bench_exp_lazy(const struct bench_experiment_args *args)
{
	static struct lazy z;
	double *values;
	int err;

	z = (struct lazy){.args = args};
	values = figures_get(&z);
	err = values ? -bench_duo_start(&z.duo, args) : -ENOMEM;
	if (!err) {
		err = all_open(&z);
		if (!err)
			err = turns_take(&z);
		all_close(&z);
		bench_duo_stop(&z.duo);
	}
	if (!err)
		results_print(&z);
	else
		fprintf(stderr, "pcpbench: lazy: %s\n", strerror(-err));
	free(values);
	return !err;
}
