/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * duo.h - the threads of an experiment: lane 0 is the caller, on the first CPU;
 * lane 1 a thread on the second, where there is one.
 *
 * A measurement in which a lane was preempted (involuntary switches, of
 * getrusage()) is discarded and done again, up to BENCH_DUO_TRIES times; the last
 * one counts as it is and is called disturbed.  What the hypervisor takes isn't
 * seen; medians have to bear it.
 *
 * Failure: a thread that can't be started, by its errno.
 */
#ifndef BENCH_DUO_H
#define BENCH_DUO_H

#include <stdbool.h>

#include "experiment.h"
#include "peer.h"

enum { BENCH_DUO_TRIES = 4 };

/* Of all measurements of a figure. */
struct bench_tally {
	unsigned discarded, disturbed;
};

struct bench_duo {
	struct bench_peer peer;
	struct bench_gate gate;
	void (*job)(void *arg, unsigned lane);
	void *arg;
	unsigned lanes; /* that there are */
	unsigned used;	/* by the job that runs */
	long lost[2];	/* switches of each lane during the job */
};

/* Returns 0 or an errno. */
int bench_duo_start(struct bench_duo *d, const struct bench_experiment_args *a);

/* Runs job(arg, lane) in each of so many lanes and returns when all are done.
 * Requires: 1 <= lanes <= d->lanes. */
void bench_duo_run(struct bench_duo *d, unsigned lanes,
		   void (*job)(void *arg, unsigned lane), void *arg);

/* The same, again where a lane was preempted.  The job begins anew each time. */
void bench_duo_measure(struct bench_duo *d, unsigned lanes,
		       void (*job)(void *arg, unsigned lane), void *arg,
		       struct bench_tally *tally);

/* Adds both to a JSON line. */
void bench_tally_json(struct json_object *o, const struct bench_tally *t);

/* For the job: returns when all its lanes are here. */
void bench_duo_meet(struct bench_duo *d);

void bench_duo_stop(struct bench_duo *d);

#endif
