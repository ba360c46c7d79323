/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * series.c - order statistics of repetitions.  No clock, no input or output.
 */
#include "series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double *doubles_get(size_t n)
{
	double *d = calloc(n ? n : 1, sizeof(*d));

	if (!d)
		abort();
	return d;
}

void bench_series_init(struct bench_series *s, size_t n)
{
	memset(s, 0, sizeof(*s));
	s->value = doubles_get(n);
	s->second = doubles_get(n);
}

void bench_series_fini(struct bench_series *s)
{
	free(s->value);
	free(s->second);
}

static void counters_add(struct wire_counters *to, const struct wire_counters *c)
{
	to->taken += c->taken;
	to->zone_locks += c->zone_locks;
	to->depot_gets += c->depot_gets;
	to->depot_puts += c->depot_puts;
	to->refills += c->refills;
	to->drains += c->drains;
}

void bench_series_add(struct bench_series *s, const struct wire_reply *r)
{
	s->value[s->n] = r->value;
	s->second[s->n] = r->second;
	s->n++;
	s->disturbed += r->lost != 0;
	s->pages = r->pages;
	s->counted = r->counted != 0;
	counters_add(&s->sum, &r->counters);
}

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The value at a part of the way from the first to the last of n > 0. */
static double sorted_at(const double *d, size_t n, double part)
{
	double rank = part * (double)(n - 1);
	size_t below = (size_t)rank;

	if (below + 1 == n)
		return d[below];
	return d[below] + (rank - (double)below) * (d[below + 1] - d[below]);
}

struct bench_summary bench_series_summary(const double *value, size_t n)
{
	struct bench_summary out = {0, 0, 0, 0, 0};
	double *sorted;

	if (!n)
		return out;
	sorted = doubles_get(n);
	memcpy(sorted, value, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), double_compare);
	out.min = sorted[0];
	out.p25 = sorted_at(sorted, n, 0.25);
	out.median = sorted_at(sorted, n, 0.5);
	out.p75 = sorted_at(sorted, n, 0.75);
	out.p99 = sorted[(n * 99 + 99) / 100 - 1];
	free(sorted);
	return out;
}

double bench_series_ratio(const double *value, const double *base, size_t n)
{
	double *ratio = doubles_get(n);
	double median;

	for (size_t i = 0; i < n; i++)
		ratio[i] = base[i] > 0 ? value[i] / base[i] : 0;
	median = bench_series_summary(ratio, n).median;
	free(ratio);
	return median;
}

/* Pairs in which b's is the larger, equal ones as halves. */
static double pairs_above(const double *a, size_t na, const double *b, size_t nb)
{
	double above = 0;

	for (size_t i = 0; i < na; i++)
		for (size_t j = 0; j < nb; j++)
			above += b[j] > a[i] ? 1 : b[j] == a[i] ? 0.5 : 0;
	return above;
}

/* Sum of t^3 - t over the groups of t equal values of both. */
static double ties_sum(const double *a, size_t na, const double *b, size_t nb)
{
	double *all = doubles_get(na + nb), sum = 0;
	size_t n = na + nb, end;

	memcpy(all, a, na * sizeof(*all));
	memcpy(all + na, b, nb * sizeof(*all));
	qsort(all, n, sizeof(*all), double_compare);
	for (size_t i = 0; i < n; i = end) {
		double t;

		for (end = i + 1; end < n && all[end] == all[i]; end++)
			;
		t = (double)(end - i);
		sum += t * t * t - t;
	}
	free(all);
	return sum;
}

double bench_series_rank(const double *a, size_t na, const double *b, size_t nb)
{
	double pairs = (double)na * (double)nb, n = (double)(na + nb);
	double off, variance;

	if (na == 0 || nb == 0)
		return 0;
	off = pairs_above(a, na, b, nb) - pairs / 2;
	variance = pairs / 12 *
		   (n + 1 - ties_sum(a, na, b, nb) / (n * (n - 1)));
	if (variance <= 0)
		return 0;
	/* Pairs are counted in steps: half of one is for the continuous curve. */
	if (off > 0.5)
		return (off - 0.5) / sqrt(variance);
	return off < -0.5 ? (off + 0.5) / sqrt(variance) : 0;
}
