/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcpbench.c - measures page allocators against each other.
 *
 * Each allocator lives in a worker process of its own (worker.c).  Within one
 * workload they take turns, one short repetition each, beginning with another
 * one in every turn:
 *
 *   turn 0:  A B C      turn 1:  B C A      turn 2:  C A B ...
 *
 * so that whatever the machine does to one it does to all, and ratios hold.  A
 * repetition that lost its CPU is repeated in the same turn, up to TRIES
 * times, less where that takes longer than RETRY_NS; the last one counts as it is
 * and is reported as disturbed.
 *
 * Exit status: 0, 1 when something failed, 2 for a bad command line.
 */
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"
#include "crew.h"
#include "options.h"
#include "peer.h"
#include "report.h"
#include "rtt.h"
#include "tsc.h"

enum { TRIES = 8, LEAST_TRIES = 3, RETRY_NS = 300000000 };

struct bench {
	struct bench_options options;
	struct bench_member crew[BENCH_ALLOCATORS];
	size_t nr_crew;
	struct bench_missing missing[BENCH_ALLOCATORS];
	size_t nr_missing;
	double ticks_per_ns;
	struct bench_cells before, now; /* with --compare */
	bool progress;
};

/* ---- Crew ---- */

/* Notes an allocator that isn't there; false where it was asked for by name. */
static bool missing_note(struct bench *b, const struct bench_allocator_info *info,
			 const char *why)
{
	struct bench_missing *m = &b->missing[b->nr_missing++];

	m->info = info;
	snprintf(m->why, sizeof(m->why), "%s", why);
	return !b->options.allocators_named;
}

static bool not_built(struct bench *b, const struct bench_allocator_info *info)
{
	char why[64] = "it was not built";

	if (info->needs)
		snprintf(why, sizeof(why), "%s was not found", info->needs);
	if (b->options.allocators_named)
		fprintf(stderr, "pcpbench: %s: %s\n", info->name, why);
	return missing_note(b, info, why);
}

static bool crew_start_one(struct bench *b, int allocator)
{
	const struct bench_allocator_info *info = &bench_allocators[allocator];
	struct bench_member *m = &b->crew[b->nr_crew];
	char why[sizeof(m->why)];
	struct wire_request q = {
		.kind = WIRE_SETUP,
		.heap_mib = b->options.heap_mib,
		.cpu = {b->options.cpu[0], b->options.cpu[1]},
		.ticks_per_ns = b->ticks_per_ns,
	};

	if (!bench_member_exists(info))
		return not_built(b, info);
	if (b->progress)
		fprintf(stderr, "\rstarting %-40s", info->name);
	if (bench_member_start(m, info, &q)) {
		b->nr_crew++;
		return true;
	}
	bench_member_stop(m);
	/* A peer's library may be there and not work. */
	memcpy(why, m->why, sizeof(why));
	return info->needs && missing_note(b, info, why);
}

/* Does it do any of the workloads? */
static bool crew_wants(const struct bench *b, int allocator)
{
	bool any = false;

	for (unsigned w = 0; w < BENCH_WORKLOADS; w++)
		any |= b->options.workload[w] &&
		       bench_is_mapping(w) == bench_allocators[allocator].mappings;
	return any || b->options.allocators_named;
}

static bool crew_start(struct bench *b)
{
	for (size_t i = 0; i < b->options.nr_allocators; i++)
		if (crew_wants(b, b->options.allocator[i]) &&
		    !crew_start_one(b, b->options.allocator[i]))
			return false;
	if (!b->nr_crew)
		fprintf(stderr, "pcpbench: no allocator is there\n");
	return b->nr_crew > 0;
}

static void crew_stop(struct bench *b)
{
	for (size_t i = 0; i < b->nr_crew; i++)
		bench_member_stop(&b->crew[i]);
}

/* ---- One workload ---- */

/* The members that can do it; *n is 0 when none can. */
static bool crew_prepare(struct bench *b, unsigned workload,
			 struct bench_member **able, size_t *n)
{
	struct wire_request q = {.kind = WIRE_PREPARE, .workload = workload};
	struct wire_reply r;

	*n = 0;
	for (size_t i = 0; i < b->nr_crew; i++) {
		if (!bench_member_ask(&b->crew[i], &q, &r))
			return false;
		if (r.status == WIRE_OK)
			able[(*n)++] = &b->crew[i];
		else if (b->options.allocators_named)
			fprintf(stderr, "pcpbench: %s: not for %s\n",
				bench_workloads[workload].name,
				b->crew[i].allocator);
	}
	return true;
}

/* The turn's repetition: the first try that didn't lose its CPU, or the last.
 * Some allocators need half a second for one. */
static bool turn_take(struct bench_member *m, struct bench_series *s,
		      const struct wire_request *q)
{
	uint64_t start = bench_ns_read();
	struct wire_reply r;

	for (int i = 1; ; i++) {
		if (!bench_member_ask(m, q, &r))
			return false;
		if (!r.lost || i == TRIES)
			break;
		if (i >= LEAST_TRIES && bench_ns_read() - start > RETRY_NS)
			break;
		s->discarded++;
	}
	bench_series_add(s, &r);
	return true;
}

/* Repetitions of a workload: those asked for, fewer where one is long. */
static unsigned workload_reps(const struct bench *b, unsigned workload)
{
	unsigned most = bench_workloads[workload].most_reps;

	return most && most < b->options.reps ? most : b->options.reps;
}

static bool turns_take(struct bench *b, struct bench_result *res,
		       struct bench_member **able)
{
	struct wire_request q = {.kind = WIRE_RUN, .workload = res->workload};

	unsigned reps = workload_reps(b, res->workload);

	for (unsigned turn = 0; turn < reps; turn++) {
		q.turn = turn;
		if (b->progress)
			fprintf(stderr, "\r%-12s %6u of %u%-24s",
				bench_workloads[res->workload].name, turn + 1,
				reps, "");
		for (size_t i = 0; i < res->n; i++) {
			size_t k = (turn + i) % res->n;

			if (!turn_take(able[k], &res->row[k].series, &q))
				return false;
		}
	}
	return true;
}

static bool crew_finish(struct bench_result *res, struct bench_member **able)
{
	struct wire_request q = {.kind = WIRE_FINISH, .workload = res->workload};
	struct wire_reply r;

	for (size_t i = 0; i < res->n; i++) {
		if (!bench_member_ask(able[i], &q, &r))
			return false;
		res->row[i].taking = r.taking;
		res->row[i].giving = r.giving;
		res->row[i].clock_ns = r.clock_ns;
	}
	return true;
}

static double round_trip(struct bench *b, unsigned workload)
{
	if (bench_workloads[workload].threads < 2)
		return 0;
	return bench_rtt_measure(b->options.cpu[1], b->ticks_per_ns);
}

static void result_print(struct bench *b, const struct bench_result *res)
{
	if (b->progress)
		fprintf(stderr, "\r%-60s\r", "");
	if (b->options.json)
		bench_report_json(res);
	else
		bench_report_table(res);
	for (size_t i = 0; b->options.compare && i < res->n; i++) {
		struct json_object *o = bench_report_row(res, i);
		const char *why;

		bench_cells_add(&b->now, o, &why);
		json_object_put(o);
	}
}

static bool workload_run(struct bench *b, unsigned workload)
{
	struct bench_member *able[BENCH_ALLOCATORS];
	struct bench_result res = {.workload = workload,
				   .heap_mib = b->options.heap_mib};
	bool ok;

	if (!crew_prepare(b, workload, able, &res.n))
		return false;
	if (!res.n)
		return true;
	for (size_t i = 0; i < res.n; i++) {
		res.row[i].allocator = able[i]->allocator;
		res.row[i].backing = able[i]->backing;
		bench_series_init(&res.row[i].series,
				  workload_reps(b, workload));
	}
	res.rtt_before_ns = round_trip(b, workload);
	ok = turns_take(b, &res, able);
	res.rtt_after_ns = round_trip(b, workload);
	ok = ok && crew_finish(&res, able);
	if (ok)
		result_print(b, &res);
	for (size_t i = 0; i < res.n; i++)
		bench_series_fini(&res.row[i].series);
	return ok;
}

/* The missing come first in JSON, so that a run that is cut short has them, and
 * last behind tables, where they are seen. */
static bool workloads_run(struct bench *b)
{
	bool ok = true;

	if (b->options.json)
		bench_report_missing_json(b->missing, b->nr_missing);
	for (unsigned w = 0; ok && w < BENCH_WORKLOADS; w++)
		ok = !b->options.workload[w] || workload_run(b, w);
	if (!b->options.json)
		bench_report_missing(b->missing, b->nr_missing);
	return ok;
}

static bool experiments_run(struct bench *b)
{
	struct bench_experiment_args args = {
		.cpu = {b->options.cpu[0], b->options.cpu[1]},
		.cpus = b->options.cpus,
		.nr_cpus = b->options.nr_cpus,
		.simulate = b->options.simulate,
		.ticks_per_ns = b->ticks_per_ns,
		.reps = b->options.reps,
		.json = b->options.json,
	};

	for (unsigned i = 0; i < BENCH_EXPERIMENTS; i++)
		if (b->options.experiment[i] && !bench_experiments[i].run(&args))
			return false;
	return true;
}

/* No worker is needed for experiments alone. */
static bool any_workload(const struct bench *b)
{
	bool any = false;

	for (unsigned w = 0; w < BENCH_WORKLOADS; w++)
		any |= b->options.workload[w];
	return any;
}

static bool cells_read(struct bench_cells *cells, const char *path)
{
	char why[512];

	if (bench_cells_read(cells, path, why, sizeof(why)))
		return true;
	fprintf(stderr, "pcpbench: %s\n", why);
	return false;
}

/* Before anything runs: a bad file is told at once. */
static bool files_read(struct bench *b)
{
	const struct bench_options *o = &b->options;

	return (!o->compare || cells_read(&b->before, o->compare)) &&
	       (!o->input || cells_read(&b->now, o->input));
}

static bool self_pin(struct bench *b)
{
	int err = bench_pin(b->options.cpu[0]);

	if (err)
		fprintf(stderr, "pcpbench: pinning to CPU %d: %s\n",
			b->options.cpu[0], strerror(err));
	return err == 0;
}

static bool everything_run(struct bench *b)
{
	bool ok;

	b->progress = isatty(STDERR_FILENO);
	b->ticks_per_ns = bench_tsc_calibrate();
	ok = (!any_workload(b) || crew_start(b)) && self_pin(b) &&
	     workloads_run(b);
	crew_stop(b);
	return ok && experiments_run(b);
}

int main(int argc, char **argv)
{
	static struct bench b;
	int status = bench_options_read(&b.options, argc, argv);
	bool ok;

	if (status >= 0)
		return status;
	if (b.options.list) {
		bench_options_list();
		return 0;
	}
	/* A worker that ended is told by its exit status, not by a signal. */
	signal(SIGPIPE, SIG_IGN);
	ok = files_read(&b) && (b.options.input || everything_run(&b));
	if (ok && b.options.compare)
		bench_compare(&b.before, &b.now, b.options.json, stdout);
	bench_cells_free(&b.before);
	bench_cells_free(&b.now);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "pcpbench: the results could not be written\n");
		ok = false;
	}
	return ok ? 0 : 1;
}
