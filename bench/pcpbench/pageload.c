/* SPDX-License-Identifier: BSD-2-Clause */
/* pageload.c - see pageload.h. */
#include "pageload.h"

#include <errno.h>
#include <stdlib.h>

#include "tsc.h"

enum { CALLS_BETWEEN_LOOKS = 64 };

int bench_pageload_init(struct bench_pageload *p, struct bench_duo *d,
			size_t pages, uint64_t ticks)
{
	*p = (struct bench_pageload){.duo = d, .pages = pages, .ticks = ticks};
	for (int i = 0; i < 2; i++)
		p->lane[i].page = calloc(pages, sizeof(void *));
	if (p->lane[0].page && p->lane[1].page)
		return 0;
	bench_pageload_fini(p);
	return -ENOMEM;
}

void bench_pageload_fini(struct bench_pageload *p)
{
	for (int i = 0; i < 2; i++)
		free(p->lane[i].page);
}

/* Counts a few calls, if they were in time. */
static bool calls_note(struct bench_pageload_lane *l, uint64_t calls,
		       uint64_t until)
{
	if (bench_tsc_read() >= until)
		return false;
	l->calls += calls;
	return true;
}

bool bench_pageload_round(struct bench_pageload *p, unsigned lane,
			  uint64_t until)
{
	struct bench_pageload_lane *l = &p->lane[lane];
	bool in_time = true;
	size_t n = 0;

	while (n < p->pages && in_time) {
		l->page[n] = bench_user_alloc(&l->user, 0);
		if (!l->page[n])
			break;
		if (++n % CALLS_BETWEEN_LOOKS == 0)
			in_time = calls_note(l, CALLS_BETWEEN_LOOKS, until);
	}
	for (size_t i = 0; i < n; i++) {
		bench_user_free(&l->user, l->page[i], 0);
		if ((i + 1) % CALLS_BETWEEN_LOOKS == 0 && in_time)
			in_time = calls_note(l, CALLS_BETWEEN_LOOKS, until);
	}
	return in_time;
}

static void lane_main(void *arg, unsigned lane)
{
	struct bench_pageload *p = arg;
	struct bench_pageload_lane *l = &p->lane[lane];
	uint64_t start;

	bench_user_attach(&l->user, p->subject);
	bench_pageload_round(p, lane, UINT64_MAX);
	bench_duo_meet(p->duo);
	l->calls = 0;
	l->before = l->user.cache.counters;
	start = bench_tsc_read();
	while (bench_pageload_round(p, lane, start + p->ticks))
		;
	l->ticks = bench_tsc_read() - start;
	l->after = l->user.cache.counters;
	bench_user_detach(&l->user);
}

void bench_pageload_run(struct bench_pageload *p, unsigned lanes,
			struct bench_subject *s, struct bench_tally *tally)
{
	p->subject = s;
	bench_duo_measure(p->duo, lanes, lane_main, p, tally);
}

double bench_pageload_rate(const struct bench_pageload *p)
{
	double calls = 0;

	for (unsigned i = 0; i < p->duo->used; i++)
		calls += (double)p->lane[i].calls;
	return calls / 2 / (double)p->ticks;
}

double bench_pageload_waited(const struct bench_pageload *p)
{
	double part = 0;

	for (unsigned i = 0; i < p->duo->used; i++)
		part += (double)(p->lane[i].after.lock_wait_ticks -
				 p->lane[i].before.lock_wait_ticks) /
			(double)p->lane[i].ticks;
	return part / p->duo->used;
}

double bench_pageload_held(const struct bench_pageload *p)
{
	double part = 0;

	for (unsigned i = 0; i < p->duo->used; i++)
		part += (double)(p->lane[i].after.lock_hold_ticks -
				 p->lane[i].before.lock_hold_ticks) /
			(double)p->lane[i].ticks;
	return part / p->duo->used;
}
