/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pageload.h - the load of will-it-scale's page_fault1, as the allocator sees it:
 * each thread takes a long run of pages and gives all of it back, over and over.
 *
 * There it is 128 MiB a process, each page touched; here the pages are not
 * written, so that two CPUs spend most of their time in the allocator.
 *
 * Concurrency: bench_pageload_lane() in each lane, the rest by lane 0's thread.
 * Cost: as long as asked for, plus a round before it that isn't counted.
 */
#ifndef BENCH_PAGELOAD_H
#define BENCH_PAGELOAD_H

#include "duo.h"
#include "subject.h"

struct bench_pageload_lane {
	struct bench_user user;
	void **page;	/* [pages] */
	uint64_t calls; /* of both kinds, while the clock ran */
	uint64_t ticks;
	struct kpcp_counters before, after; /* of kpcp only */
};

struct bench_pageload {
	struct bench_duo *duo;
	struct bench_subject *subject;
	size_t pages;	/* of a run */
	uint64_t ticks; /* how long to measure */
	struct bench_pageload_lane lane[2];
};

/* Room for runs of so many pages.  Returns 0 or -ENOMEM. */
int bench_pageload_init(struct bench_pageload *p, struct bench_duo *d,
			size_t pages, uint64_t ticks);
void bench_pageload_fini(struct bench_pageload *p);

/* Measures with so many lanes. */
void bench_pageload_run(struct bench_pageload *p, unsigned lanes,
			struct bench_subject *s, struct bench_tally *tally);

/* Pages taken and given back per tick, by all lanes of the last run. */
double bench_pageload_rate(const struct bench_pageload *p);

/* Part of their time that the lanes waited for the zone's lock, and held it (of
 * kpcp only). */
double bench_pageload_waited(const struct bench_pageload *p);
double bench_pageload_held(const struct bench_pageload *p);

/* ---- Parts, for loads that mix this with others ---- */

/*
 * One round with the lane's user: takes a run, fewer pages where there are no
 * more, and gives it back.  Counts calls until the clock says `until`; returns
 * false once it has.
 */
bool bench_pageload_round(struct bench_pageload *p, unsigned lane,
			  uint64_t until);

#endif
