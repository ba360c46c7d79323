/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - progress while it runs, the table or JSON at the end.
 */
#ifndef PCPREPLAY_REPORT_H
#define PCPREPLAY_REPORT_H

#include "options.h"
#include "pipeline.h"

/* All rounds of one backend: medians of the rates, sums of the counters. */
struct summary {
	enum backend_kind kind;
	double ns_per_packet; /* elapsed */
	double cpu_ns_per_packet;
	double bytes_per_packet;
	double spread; /* (largest - smallest) / median of ns_per_packet */
	uint64_t packets;
	uint64_t blocks[PCPA_MAX_ORDER + 1];
	uint64_t stalls;
	uint64_t rss_bytes; /* largest of the rounds */
	struct pcpa_stats counters;
};

/* What pcpalloc's heap is made of. */
struct heap_facts {
	uint64_t managed_bytes;
	size_t page_bytes; /* largest page size of its arenas */
	enum pcpa_backing backing;
	bool mixed; /* not all arenas have these pages */
};

struct report {
	const struct options *options;
	const struct capture *capture;
	size_t base_page_bytes;
	struct heap_facts heap;
	struct summary summaries[BACKEND_NR_KINDS];
	size_t nr_summaries;
};

/* Reduces the results of one backend's rounds, n at least 1. */
struct summary summary_make(enum backend_kind kind,
			    const struct pipeline_result *rounds, size_t n);

/* Says what was read: size of the capture, frames left out, where it broke. */
void report_capture(const struct options *o, const struct capture *c);

/* After each run: `done` of `all` runs; on standard error. */
void report_progress(const char *backend, size_t done, size_t all,
		     double seconds_left, const struct pipeline_result *r);
void report_progress_end(void);

void report_table(const struct report *r);
void report_json(const struct report *r);

#endif
