/* SPDX-License-Identifier: BSD-2-Clause */
/* duo.c - see duo.h. */
#define _GNU_SOURCE
#include "duo.h"

#include <sys/resource.h>

int bench_duo_start(struct bench_duo *d, const struct bench_experiment_args *a)
{
	*d = (struct bench_duo){.lanes = a->cpu[1] < 0 ? 1 : 2};
	return d->lanes == 2 ? bench_peer_start(&d->peer, a->cpu[1]) : 0;
}

static long switches_read(void)
{
	struct rusage used;

	return getrusage(RUSAGE_THREAD, &used) ? 0 : used.ru_nivcsw;
}

static void lane_run(struct bench_duo *d, unsigned lane)
{
	long before = switches_read();

	d->job(d->arg, lane);
	d->lost[lane] = switches_read() - before;
}

static void second_main(void *arg)
{
	lane_run(arg, 1);
}

void bench_duo_run(struct bench_duo *d, unsigned lanes,
		   void (*job)(void *arg, unsigned lane), void *arg)
{
	d->job = job;
	d->arg = arg;
	d->used = lanes;
	d->lost[1] = 0;
	if (lanes == 2)
		bench_peer_run(&d->peer, second_main, d);
	lane_run(d, 0);
	if (lanes == 2)
		bench_peer_wait(&d->peer);
}

void bench_duo_measure(struct bench_duo *d, unsigned lanes,
		       void (*job)(void *arg, unsigned lane), void *arg,
		       struct bench_tally *tally)
{
	for (int tries = 1;; tries++) {
		bench_duo_run(d, lanes, job, arg);
		if (d->lost[0] + d->lost[1] == 0)
			return;
		if (tries == BENCH_DUO_TRIES)
			break;
		tally->discarded++;
	}
	tally->disturbed++;
}

void bench_tally_json(struct json_object *o, const struct bench_tally *t)
{
	bench_experiment_count(o, "discarded", t->discarded);
	bench_experiment_count(o, "disturbed", t->disturbed);
}

void bench_duo_meet(struct bench_duo *d)
{
	if (d->used == 2)
		bench_gate_pass(&d->gate);
}

void bench_duo_stop(struct bench_duo *d)
{
	if (d->lanes == 2)
		bench_peer_stop(&d->peer);
}
