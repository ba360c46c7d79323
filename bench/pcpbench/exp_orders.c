/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp_orders.c - blocks of order 3, which the network stack takes for fragments:
 * what does a cache for them bring?
 *
 *   kernel-5.x          lists for order 0 only: each block takes the zone's lock
 *   kernel-5.x-orders   the same with lists for orders 0 to 3
 *   modern              the library, which always caches them
 *
 * Each thread takes 16 blocks and gives them back, over and over; once with
 * nothing else to do, and once with a microsecond of other work a block, since the
 * original's figures are those of a whole netperf UDP stream and not of the
 * allocator.
 *
 * Turns: each allocator runs once in each, beginning with another one; gains are
 * medians of the quotients within turns.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duo.h"
#include "series.h"
#include "subject.h"
#include "tsc.h"

enum { ORDER = 3, BURST = 16, HEAP_MIB = 64, MEASURE_NS = 3000000, WORK_NS = 1000 };

enum { PLAIN, ORDERS, MODERN, SUBJECTS };
enum { BARE, WORK, LOADS };

static const char *const subject_name[SUBJECTS] = {
	"kernel-5.x", "kernel-5.x-orders", "modern"};
static const char *const load_name[LOADS] = {"bare", "1 us of work a block"};

/* Of the gain over the first; netperf's, whole. */
static const char *const subject_original[SUBJECTS] = {
	NULL, "+22.9 % (16 KiB) to +50 % (small) UDP; a first version +6 to +9.5 %",
	NULL};

struct lane {
	struct bench_user user;
	uint64_t pairs, ticks;
	struct kpcp_counters before, after;
};

struct orders {
	const struct bench_experiment_args *args;
	struct bench_duo duo;
	struct kpcp kpcp;
	struct bench_subject modern;
	struct bench_subject *subject; /* whose turn it is */
	uint64_t work_ticks;
	uint64_t ticks;
	struct lane lane[2];
	double *pairs[LOADS][SUBJECTS];	 /* [reps] a second, all threads */
	double *waited[LOADS][SUBJECTS]; /* [reps] of kpcp */
	struct bench_tally tally[LOADS][SUBJECTS];
};

/* ---- The load ------------------------------------------------------------ */

static void work(uint64_t ticks)
{
	uint64_t start = bench_tsc_read();

	while (bench_tsc_read() - start < ticks)
		;
}

/* False: a block was missing. */
static bool burst_run(struct bench_user *u, uint64_t work_ticks)
{
	void *block[BURST];
	int n = 0;

	while (n < BURST && (block[n] = bench_user_alloc(u, ORDER))) {
		if (work_ticks)
			work(work_ticks);
		n++;
	}
	for (int i = 0; i < n; i++)
		bench_user_free(u, block[i], ORDER);
	return n == BURST;
}

static void lane_main(void *arg, unsigned lane)
{
	struct orders *o = arg;
	struct lane *l = &o->lane[lane];
	uint64_t start;
	bool whole = true;

	bench_user_attach(&l->user, o->subject);
	for (int i = 0; i < 32; i++)
		burst_run(&l->user, 0);
	bench_duo_meet(&o->duo);
	l->pairs = 0;
	l->before = l->user.cache.counters;
	start = bench_tsc_read();
	while (whole && bench_tsc_read() - start < o->ticks) {
		whole = burst_run(&l->user, o->work_ticks);
		l->pairs += BURST;
	}
	l->ticks = bench_tsc_read() - start;
	l->after = l->user.cache.counters;
	/* The heap is far larger than what two bursts need. */
	if (!whole)
		abort();
	bench_user_detach(&l->user);
}

static int subject_ready(struct orders *o, unsigned subject,
			 struct bench_subject *s)
{
	struct kpcp_options opts = KPCP_OPTIONS_INIT;

	if (subject == MODERN) {
		*s = o->modern;
		return 0;
	}
	opts.orders = subject == ORDERS ? KPCP_ORDERS : 1;
	return bench_subject_kpcp(s, subject_name[subject], &o->kpcp, &opts);
}

static int cell_measure(struct orders *o, unsigned load, unsigned subject,
			unsigned turn)
{
	double rate = 0, waited = 0;
	struct bench_subject s;
	int err = subject_ready(o, subject, &s);

	if (err)
		return err;
	o->subject = &s;
	o->work_ticks = load == WORK
				? (uint64_t)(WORK_NS * o->args->ticks_per_ns)
				: 0;
	bench_duo_measure(&o->duo, o->duo.lanes, lane_main, o,
			  &o->tally[load][subject]);
	for (unsigned i = 0; i < o->duo.lanes; i++) {
		const struct lane *l = &o->lane[i];

		rate += (double)l->pairs / (double)l->ticks;
		waited += (double)(l->after.lock_wait_ticks -
				   l->before.lock_wait_ticks) /
			  (double)l->ticks / o->duo.lanes;
	}
	o->pairs[load][subject][turn] = rate * 1e9 * o->args->ticks_per_ns;
	o->waited[load][subject][turn] = waited;
	return 0;
}

static int turns_take(struct orders *o)
{
	for (unsigned turn = 0; turn < o->args->reps; turn++)
		for (unsigned i = 0; i < LOADS * SUBJECTS; i++) {
			unsigned at = (turn + i) % (LOADS * SUBJECTS);
			int err = cell_measure(o, at / SUBJECTS, at % SUBJECTS,
					       turn);

			if (err)
				return err;
		}
	return 0;
}

/* ---- Results ------------------------------------------------------------- */

/* Per cent over the one without caches. */
static double gain(const struct orders *o, unsigned load, unsigned subject)
{
	return 100 * (bench_series_ratio(o->pairs[load][subject],
					 o->pairs[load][PLAIN], o->args->reps) -
		      1);
}

static void cell_print(const struct orders *o, unsigned load, unsigned subject)
{
	double rate = bench_series_summary(o->pairs[load][subject],
					   o->args->reps).median;
	double waited = bench_series_summary(o->waited[load][subject],
					     o->args->reps).median;
	double ns = 1e9 * o->duo.lanes / rate;
	struct json_object *j;

	if (!o->args->json) {
		printf("  %-21s %-18s %9.1f %+9.1f", load_name[load],
		       subject_name[subject], ns, gain(o, load, subject));
		if (subject == MODERN)
			printf("      -");
		else
			printf(" %6.1f", 100 * waited);
		printf("  %s\n", subject_original[subject]
					 ? subject_original[subject]
					 : "");
		return;
	}
	j = bench_experiment_json("orders");
	bench_experiment_text(j, "load", load_name[load]);
	bench_experiment_text(j, "allocator", subject_name[subject]);
	bench_experiment_count(j, "order", ORDER);
	bench_experiment_count(j, "threads", o->duo.lanes);
	bench_experiment_number(j, "pairs_per_s", rate);
	bench_experiment_number(j, "ns_per_pair", ns);
	bench_experiment_number(j, "gain_percent", gain(o, load, subject));
	if (subject != MODERN)
		bench_experiment_number(j, "lock_share", waited);
	bench_tally_json(j, &o->tally[load][subject]);
	bench_experiment_text(j, "original", subject_original[subject]);
	bench_experiment_print(j);
}

static void results_print(const struct orders *o)
{
	if (!o->args->json)
		printf("\norders: blocks of order %u taken and given back by %u "
		       "thread%s, %u at a time\n"
		       "  %-21s %-18s %9s %9s %6s  original's gain\n",
		       ORDER, o->duo.lanes, o->duo.lanes > 1 ? "s" : "", BURST,
		       "load", "allocator", "ns a pair", "gain %", "lock %");
	for (unsigned load = 0; load < LOADS; load++)
		for (unsigned s = 0; s < SUBJECTS; s++)
			cell_print(o, load, s);
}

/* ---- Set-up -------------------------------------------------------------- */

static double *values_get(struct orders *o)
{
	size_t n = o->args->reps;
	double *all = calloc(n * LOADS * SUBJECTS * 2, sizeof(*all));

	for (unsigned i = 0; all && i < LOADS * SUBJECTS; i++) {
		o->pairs[i / SUBJECTS][i % SUBJECTS] = all + 2 * i * n;
		o->waited[i / SUBJECTS][i % SUBJECTS] = all + (2 * i + 1) * n;
	}
	return all;
}

static int allocators_run(struct orders *o)
{
	struct kpcp_options opts = KPCP_OPTIONS_INIT;
	int err = bench_subject_heap(&o->modern, subject_name[MODERN], HEAP_MIB,
				     0, 0, 0);

	if (err)
		return err;
	opts.mib = HEAP_MIB;
	err = kpcp_open(&o->kpcp, &opts);
	if (!err) {
		err = turns_take(o);
		kpcp_close(&o->kpcp);
	}
	bench_subject_close(&o->modern);
	return err;
}

bool bench_exp_orders(const struct bench_experiment_args *args)
{
	static struct orders o;
	double *values;
	int err;

	o.args = args;
	o.ticks = (uint64_t)(MEASURE_NS * args->ticks_per_ns);
	values = values_get(&o);
	err = values ? -bench_duo_start(&o.duo, args) : -ENOMEM;
	if (!err) {
		err = allocators_run(&o);
		bench_duo_stop(&o.duo);
	}
	if (!err)
		results_print(&o);
	else
		fprintf(stderr, "pcpbench: orders: %s\n", strerror(-err));
	free(values);
	return !err;
}
