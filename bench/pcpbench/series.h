/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * series.h - the repetitions of one allocator in one workload.  Pure.
 *
 * Entry i of every allocator's series was taken in turn i, within milliseconds
 * of the others' entry i: so ratios are formed turn by turn, and the median is
 * taken of the ratios.  That holds where a machine changes its speed between
 * turns, which a ratio of medians does not.
 */
#ifndef BENCH_SERIES_H
#define BENCH_SERIES_H

#include <stddef.h>
#include <stdint.h>

#include "wire.h"

struct bench_series {
	size_t n;
	double *value;      /* n of them */
	double *second;     /* of the catalog; 0 where not measured */
	unsigned discarded; /* repetitions that lost the CPU */
	unsigned disturbed; /* of the n, those that lost it and count, because
			     * every try did */
	uint64_t pages;     /* of the last repetition */
	bool counted;
	struct wire_counters sum;
};

struct bench_summary {
	double min, p25, median, p75, p99;
};

/* Room for n repetitions; ends the process when there is no memory. */
void bench_series_init(struct bench_series *s, size_t n);
void bench_series_fini(struct bench_series *s);

/* Adds a repetition; there must be room. */
void bench_series_add(struct bench_series *s, const struct wire_reply *r);

/* Quartiles lie between two values where their rank does; p99 is by nearest
 * rank: below 100 repetitions it is the largest. */
struct bench_summary bench_series_summary(const double *value, size_t n);

/* Median of value[i] / base[i]; 0 when n is 0 or a base is 0. */
double bench_series_ratio(const double *value, const double *base, size_t n);

/*
 * How far two series lie apart by their ranks (Mann and Whitney), in standard
 * deviations of what equal ones show by chance; positive: b has the larger values.
 * Equal values share their rank.  Assumes nothing of how values are spread.  0 of
 * an empty series.
 */
double bench_series_rank(const double *a, size_t na, const double *b, size_t nb);

#endif
