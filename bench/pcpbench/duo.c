/* SPDX-License-Identifier: BSD-2-Clause */
/* duo.c - see duo.h. */
#include "duo.h"

int bench_duo_start(struct bench_duo *d, const struct bench_experiment_args *a)
{
	*d = (struct bench_duo){.lanes = a->cpu[1] < 0 ? 1 : 2};
	return d->lanes == 2 ? bench_peer_start(&d->peer, a->cpu[1]) : 0;
}

static void second_main(void *arg)
{
	struct bench_duo *d = arg;

	d->job(d->arg, 1);
}

void bench_duo_run(struct bench_duo *d, unsigned lanes,
		   void (*job)(void *arg, unsigned lane), void *arg)
{
	d->job = job;
	d->arg = arg;
	d->used = lanes;
	if (lanes == 2)
		bench_peer_run(&d->peer, second_main, d);
	job(arg, 0);
	if (lanes == 2)
		bench_peer_wait(&d->peer);
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
