/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * duo.h - the threads of an experiment: lane 0 is the caller, on the first CPU;
 * lane 1 a thread on the second, where there is one.
 *
 * Failure: a thread that can't be started, by its errno.
 */
#ifndef BENCH_DUO_H
#define BENCH_DUO_H

#include <stdbool.h>

#include "experiment.h"
#include "peer.h"

struct bench_duo {
	struct bench_peer peer;
	struct bench_gate gate;
	void (*job)(void *arg, unsigned lane);
	void *arg;
	unsigned lanes; /* that there are */
	unsigned used;	/* by the job that runs */
};

/* Returns 0 or an errno. */
int bench_duo_start(struct bench_duo *d, const struct bench_experiment_args *a);

/* Runs job(arg, lane) in each of so many lanes and returns when all are done.
 * Requires: 1 <= lanes <= d->lanes. */
void bench_duo_run(struct bench_duo *d, unsigned lanes,
		   void (*job)(void *arg, unsigned lane), void *arg);

/* For the job: returns when all its lanes are here. */
void bench_duo_meet(struct bench_duo *d);

void bench_duo_stop(struct bench_duo *d);

#endif
