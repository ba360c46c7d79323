/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tsc.c - how fast the time-stamp counter counts.
 *
 * The rate is the median of five intervals of 12 ms.  Each end of an interval
 * is the narrowest of several (clock, counter, clock) readings, so that a
 * preemption in between cannot shift it.
 */
#include "tsc.h"

#include <stdlib.h>

enum { INTERVALS = 5, INTERVAL_NS = 12000000, READINGS = 9 };

struct instant {
	uint64_t ns;
	uint64_t ticks;
};

static struct instant instant_read(void)
{
	struct instant best = {0, 0};
	uint64_t narrowest = UINT64_MAX;

	for (int i = 0; i < READINGS; i++) {
		uint64_t before = bench_ns_read();
		uint64_t ticks = bench_tsc_read();
		uint64_t width = bench_ns_read() - before;

		if (width >= narrowest)
			continue;
		narrowest = width;
		best.ns = before + width / 2;
		best.ticks = ticks;
	}
	return best;
}

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_tsc_calibrate(void)
{
	double rate[INTERVALS];

	for (int i = 0; i < INTERVALS; i++) {
		struct instant from = instant_read();
		struct timespec nap = {0, INTERVAL_NS};

		nanosleep(&nap, NULL);
		struct instant to = instant_read();

		rate[i] = (double)(to.ticks - from.ticks) /
			  (double)(to.ns - from.ns);
	}
	qsort(rate, INTERVALS, sizeof(rate[0]), double_compare);
	return rate[INTERVALS / 2];
}
