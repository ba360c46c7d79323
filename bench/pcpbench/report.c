/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.c - tables and JSON lines.
 *
 * Both show the same figures.  JSON has the ratio to every allocator of the
 * run; the table those to the first, to `calls` and to `limit`, or, where single
 * calls are timed, to tcmalloc.
 */
#include "report.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "facts.h"

#define INSTALL "bench/run --peers"

static const struct bench_row *row_find(const struct bench_result *r,
					const char *allocator)
{
	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->row[i].allocator, allocator) == 0)
			return &r->row[i];
	return NULL;
}

static double row_ratio(const struct bench_row *row, const struct bench_row *to)
{
	if (!to)
		return 0;
	return bench_series_ratio(row->series.value, to->series.value,
				  row->series.n);
}

static double per_million(const struct bench_series *s, uint64_t count)
{
	return s->sum.taken ? 1e6 * (double)count / (double)s->sum.taken : 0;
}

/* Whether the workload has a second figure, and the allocator says it. */
static bool second_known(const struct bench_result *r,
			 const struct bench_series *s)
{
	return bench_workloads[r->workload].second && s->n &&
	       s->second[s->n - 1] >= 0;
}

/* ---- Table ---- */

static void ratio_print(double ratio)
{
	if (ratio > 0)
		printf(" %10.2f", ratio);
	else
		printf(" %10s", "-");
}

static void rtt_print(const struct bench_result *r)
{
	if (r->rtt_before_ns > 0)
		printf("cross-core round trip: %.0f ns before, %.0f ns after\n",
		       r->rtt_before_ns, r->rtt_after_ns);
}

static void header_print(const struct bench_result *r)
{
	const struct bench_workload_info *w = &bench_workloads[r->workload];
	char first[32];

	printf("\n%s: %s; %s\n", w->name, w->what, w->unit);
	rtt_print(r);
	snprintf(first, sizeof(first), "x %.14s", r->row[0].allocator);
	printf("%-21s %9s %9s %9s %9s %9s %10s %10s %10s %5s %9s\n", "",
	       "median", "min", "p25", "p75", "p99", strlen(first) > 10 ? "x first" : first, "x calls",
	       "x limit", "reps", "discarded");
}

static void row_print(const struct bench_result *r, const struct bench_row *row)
{
	const struct bench_series *s = &row->series;
	struct bench_summary sum = bench_series_summary(s->value, s->n);

	printf("%-21s %9.2f %9.2f %9.2f %9.2f %9.2f", row->allocator,
	       sum.median, sum.min, sum.p25, sum.p75, sum.p99);
	ratio_print(row_ratio(row, &r->row[0]));
	ratio_print(row_ratio(row, row_find(r, "calls")));
	ratio_print(row_ratio(row, row_find(r, "limit")));
	printf(" %5zu %9u", s->n, s->discarded);
	if (s->disturbed)
		printf("  %u disturbed", s->disturbed);
	if (r->workload == BENCH_PARALLEL)
		printf("  %.2f x one thread",
		       bench_series_ratio(s->value, s->second, s->n));
	else if (second_known(r, s))
		printf("  %s %.4g", bench_workloads[r->workload].second,
		       bench_series_summary(s->second, s->n).median);
	if (s->counted)
		printf("  %.0f zone locks/M", per_million(s, s->sum.zone_locks));
	putchar('\n');
}

static void blocks_print(const struct bench_result *r)
{
	printf("%-21s %14s %14s %14s\n", "", "order-0 taken", "order-3 back",
	       "order-9 back");
	for (size_t i = 0; i < r->n; i++) {
		const struct bench_series *s = &r->row[i].series;

		printf("%-21s %14llu %14.0f %14.0f\n", r->row[i].allocator,
		       (unsigned long long)s->pages,
		       bench_series_summary(s->value, s->n).min,
		       bench_series_summary(s->second, s->n).min);
	}
}

static void latency_side_print(const struct wire_latency *l)
{
	for (int i = 0; i < WIRE_PERCENTILES; i++)
		printf(" %7.0f", l->percentile[i]);
	printf(" %9.0f", l->longest);
}

static void latency_print(const struct bench_result *r)
{
	const struct bench_workload_info *w = &bench_workloads[r->workload];
	const struct bench_row *tcmalloc = row_find(r, "tcmalloc");

	printf("\n%s: %s; ns, of which reading the clock takes %.0f; "
	       "ratios: p99.9 of alloc\n", w->name,
	       w->what, r->row[0].clock_ns);
	rtt_print(r);
	printf("%-21s %41s   %41s\n", "", "---- alloc ----", "---- free ----");
	printf("%-21s", "");
	for (int i = 0; i < 2; i++)
		printf(" %7s %7s %7s %7s %9s%s", "p50", "p99", "p99.9", "p99.99",
		       "max", i ? "" : "  ");
	printf(" %10s %10s %9s\n", "calls", "x tcmalloc", "discarded");
	for (size_t i = 0; i < r->n; i++) {
		const struct bench_row *row = &r->row[i];

		printf("%-21s", row->allocator);
		latency_side_print(&row->taking);
		printf("  ");
		latency_side_print(&row->giving);
		printf(" %10llu", (unsigned long long)row->taking.calls);
		ratio_print(row_ratio(row, tcmalloc));
		printf(" %9u", row->series.discarded);
		if (row->series.disturbed)
			printf("  %u disturbed", row->series.disturbed);
		putchar('\n');
	}
}

void bench_report_table(const struct bench_result *r)
{
	if (bench_is_latency(r->workload)) {
		latency_print(r);
		fflush(stdout);
		return;
	}
	if (r->workload == BENCH_COALESCE) {
		printf("\n%s: %s\n", bench_workloads[r->workload].name,
		       bench_workloads[r->workload].what);
		blocks_print(r);
		return;
	}
	header_print(r);
	for (size_t i = 0; i < r->n; i++)
		row_print(r, &r->row[i]);
	fflush(stdout);
}

void bench_report_missing(const struct bench_missing *m, size_t n)
{
	if (n)
		puts("\nnot there:");
	for (size_t i = 0; i < n; i++) {
		printf("  %-21s %s", m[i].info->name, m[i].why);
		if (m[i].info->package)
			printf(" (" INSTALL " installs %s)", m[i].info->package);
		putchar('\n');
	}
	fflush(stdout);
}

/* ---- JSON ---- */

static struct json_object *number_json(double value, const char *format)
{
	char text[32];

	snprintf(text, sizeof(text), format, value);
	return json_object_new_double_s(value, text);
}

static void double_add(struct json_object *o, const char *key, double value)
{
	json_object_object_add(o, key, number_json(value, "%.3f"));
}

static void integer_add(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_int64((int64_t)value));
}

static void text_add(struct json_object *o, const char *key, const char *value)
{
	json_object_object_add(o, key, json_object_new_string(value));
}

/* What --compare ranks. */
static struct json_object *values_json(const struct bench_series *s)
{
	struct json_object *values = json_object_new_array();

	for (size_t i = 0; i < s->n; i++)
		json_object_array_add(values, number_json(s->value[i], "%.5g"));
	return values;
}

/* [[percentile, ns], ...] */
static struct json_object *curve_json(const struct wire_point *curve)
{
	struct json_object *points = json_object_new_array();

	for (int i = 0; i < WIRE_CURVE; i++) {
		struct json_object *point = json_object_new_array();

		json_object_array_add(point,
				      number_json(curve[i].percentile, "%.7g"));
		json_object_array_add(point, number_json(curve[i].ns, "%.1f"));
		json_object_array_add(points, point);
	}
	return points;
}

static void latency_add(struct json_object *o, const char *key,
			const struct wire_latency *l)
{
	static const char *const names[WIRE_PERCENTILES] = {"p50", "p99", "p99.9",
							    "p99.99"};
	struct json_object *side = json_object_new_object();

	for (int i = 0; i < WIRE_PERCENTILES; i++)
		double_add(side, names[i], l->percentile[i]);
	double_add(side, "max", l->longest);
	integer_add(side, "calls", l->calls);
	json_object_object_add(side, "curve", curve_json(l->curve));
	json_object_object_add(o, key, side);
}

static void extras_add(struct json_object *o, const struct bench_result *r,
		       const struct bench_series *s)
{
	if (r->rtt_before_ns > 0) {
		double_add(o, "rtt_before_ns", r->rtt_before_ns);
		double_add(o, "rtt_after_ns", r->rtt_after_ns);
	}
	if (second_known(r, s)) {
		text_add(o, "second", bench_workloads[r->workload].second);
		json_object_object_add(
			o, bench_workloads[r->workload].second,
			number_json(bench_series_summary(s->second, s->n).median,
				    "%.7g"));
	}
	if (r->workload == BENCH_PARALLEL)
		double_add(o, "ratio_to_one_thread",
			   bench_series_ratio(s->value, s->second, s->n));
	if (r->workload == BENCH_COALESCE)
		integer_add(o, "order3_blocks",
			    (uint64_t)bench_series_summary(s->value, s->n).min);
	if (s->counted) {
		double_add(o, "zone_locks_per_million",
			   per_million(s, s->sum.zone_locks));
		double_add(o, "depot_gets_per_million",
			   per_million(s, s->sum.depot_gets));
		double_add(o, "depot_puts_per_million",
			   per_million(s, s->sum.depot_puts));
		double_add(o, "refills_per_million",
			   per_million(s, s->sum.refills));
		double_add(o, "drains_per_million",
			   per_million(s, s->sum.drains));
	}
}

static void ratios_add(struct json_object *o, const struct bench_result *r,
		       const struct bench_row *row)
{
	struct json_object *ratios = json_object_new_object();

	for (size_t i = 0; i < r->n; i++)
		if (&r->row[i] != row)
			double_add(ratios, r->row[i].allocator,
				   row_ratio(row, &r->row[i]));
	json_object_object_add(o, "ratio_to", ratios);
}

struct json_object *bench_report_row(const struct bench_result *r, size_t i)
{
	const struct bench_row *row = &r->row[i];
	const struct bench_workload_info *w = &bench_workloads[r->workload];
	const struct bench_series *s = &row->series;
	struct bench_summary sum = bench_series_summary(s->value, s->n);
	struct json_object *o = json_object_new_object();

	text_add(o, "workload", w->name);
	text_add(o, "allocator", row->allocator);
	text_add(o, "unit", w->unit);
	if (w->more_is_better)
		text_add(o, "better", "more");
	double_add(o, "min", sum.min);
	double_add(o, "median", sum.median);
	double_add(o, "p25", sum.p25);
	double_add(o, "p75", sum.p75);
	double_add(o, "p99", sum.p99);
	integer_add(o, "reps", s->n);
	json_object_object_add(o, "values", values_json(s));
	integer_add(o, "discarded", s->discarded);
	integer_add(o, "disturbed", s->disturbed);
	integer_add(o, "pages", s->pages);
	integer_add(o, "heap_mib", r->heap_mib);
	text_add(o, "backing", row->backing);
	integer_add(o, "threads", w->threads);
	extras_add(o, r, s);
	if (bench_is_latency(r->workload)) {
		latency_add(o, "alloc", &row->taking);
		latency_add(o, "free", &row->giving);
		double_add(o, "clock_ns", row->clock_ns);
	}
	ratios_add(o, r, row);
	bench_facts_add(o);
	return o;
}

static void line_print(struct json_object *o)
{
	puts(json_object_to_json_string_ext(
		o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	fflush(stdout);
}

void bench_report_missing_json(const struct bench_missing *m, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct bench_allocator_info *info = m[i].info;
		struct json_object *o = json_object_new_object();

		text_add(o, "missing", info->name);
		text_add(o, "why", m[i].why);
		if (info->package) {
			text_add(o, "install", INSTALL);
			text_add(o, "package", info->package);
		}
		bench_facts_add(o);
		line_print(o);
		json_object_put(o);
	}
}

void bench_report_json(const struct bench_result *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct json_object *o = bench_report_row(r, i);

		line_print(o);
		json_object_put(o);
	}
}
