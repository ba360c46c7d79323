/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - what pcpbench prints: a table to read, or JSON to process.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "catalog.h"
#include "series.h"

struct json_object;

/* One workload's results, allocators in the order they were named. */
struct bench_result {
	unsigned workload;
	unsigned heap_mib;
	size_t n;
	struct bench_row {
		const char *allocator;
		const char *backing;
		struct bench_series series;
		struct wire_latency taking, giving; /* latency* */
		double clock_ns;
	} row[BENCH_ALLOCATORS];
	double rtt_before_ns, rtt_after_ns; /* 0: not measured */
};

/* An allocator that isn't there. */
struct bench_missing {
	const struct bench_allocator_info *info;
	char why[192];
};

void bench_report_missing(const struct bench_missing *m, size_t n);
void bench_report_missing_json(const struct bench_missing *m, size_t n);

void bench_report_table(const struct bench_result *r);
/* The JSON line of one allocator, to be put by the caller. */
struct json_object *bench_report_row(const struct bench_result *r, size_t i);
void bench_report_json(const struct bench_result *r);

#endif
