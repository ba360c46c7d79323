/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main.c - pcpreplay: what receiving, handling and sending real packets costs
 * with one allocator or another.
 *
 * Owns the order of events: options, capture, heap, rounds, report.
 *
 *   round 1:  none      pcpalloc  glibc     ...
 *   round 2:  pcpalloc  glibc     ...       none      each a short run
 *
 * The allocators take turns, starting with another one each round, so that
 * a slow phase of the machine falls on all of them; medians are reported.
 *
 * Concurrency: threads live within pipeline_run() only.
 * Failure: one line on standard error; exit status 1, and 2 for the usage.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "capture.h"
#include "options.h"
#include "pipeline.h"
#include "report.h"

/* A tenth of a run, but long enough to fill caches and depot. */
#define WARM_SHARE 10
#define WARM_LEAST_NS 50000000u

#define HEAP_LEAST_MIB 256u
#define MIB_BYTES ((size_t)1 << 20)

struct replay {
	struct options options;
	struct capture capture;
	struct pcpa_heap *heap;
	struct pipeline_result *results; /* [kind * rounds + round] */
};

static int complain(const char *message)
{
	fprintf(stderr, "pcpreplay: %s\n", message);
	return -1;
}

/* What the user asked for, else four times what can be in flight: the depot
 * and the caches hold some as well. */
static size_t heap_mib(const struct replay *r, size_t page_bytes)
{
	size_t in_flight = backend_bytes_in_flight(
		&r->capture, page_bytes, pipeline_nr_batches(r->options.depth));
	size_t mib = (4 * in_flight + MIB_BYTES - 1) / MIB_BYTES;

	if (r->options.heap_mib)
		return r->options.heap_mib;
	return mib > HEAP_LEAST_MIB ? mib : HEAP_LEAST_MIB;
}

static int heap_make(struct replay *r, size_t page_bytes)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	size_t mib = heap_mib(r, page_bytes);
	char message[REPLAY_ERROR_BYTES];
	int rc;

	o.initial_bytes = mib * MIB_BYTES;
	o.max_bytes = o.initial_bytes;
	rc = pcpa_heap_create(&o, &r->heap);
	if (!rc)
		return 0;
	snprintf(message, sizeof(message),
		 "no heap of %zu MiB can be made: %s; --heap-mib sets the size",
		 mib, strerror(-rc));
	return complain(message);
}

/* Orders depend on the heap's largest and the heap's size on the orders, so
 * frames are fitted for the library's largest order first. */
static int capture_prepare(struct replay *r, size_t page_bytes)
{
	unsigned max_order = r->options.max_order;

	if (capture_fit(&r->capture, page_bytes, HEADROOM_BYTES, max_order)) {
		if (heap_make(r, page_bytes))
			return -1;
		if (pcpa_heap_max_order(r->heap) < max_order)
			max_order = pcpa_heap_max_order(r->heap);
		capture_fit(&r->capture, page_bytes, HEADROOM_BYTES, max_order);
	}
	report_capture(&r->options, &r->capture);
	if (!r->capture.nr_frames)
		return complain("no frame fits a block");
	if (capture_digest(&r->capture))
		return complain("out of memory");
	return 0;
}

static int backend_run(struct replay *r, enum backend_kind kind,
		       size_t page_bytes, uint64_t run_ns,
		       struct pipeline_result *result)
{
	struct backend b = {.kind = kind,
			    .page_bytes = page_bytes,
			    .single = r->options.single,
			    .heap = r->heap};
	uint64_t warm_ns = run_ns / WARM_SHARE;
	struct pipeline_setup setup = {.capture = &r->capture,
				       .backend = &b,
				       .depth = r->options.depth,
				       .run_ns = run_ns};
	int rc = backend_prepare(&b, &r->capture,
				 pipeline_nr_batches(r->options.depth));

	if (rc)
		return complain("no memory for the blocks of none");
	setup.warm_ns = warm_ns > WARM_LEAST_NS ? warm_ns : WARM_LEAST_NS;
	rc = pipeline_run(&setup, result);
	backend_release(&b);
	return rc ? complain(result->error) : 0;
}

static size_t kinds_list(const struct options *o,
			 enum backend_kind out[BACKEND_NR_KINDS])
{
	size_t n = 0;

	for (int k = 0; k < BACKEND_NR_KINDS; k++)
		if (o->backends[k])
			out[n++] = (enum backend_kind)k;
	return n;
}

static int rounds_run(struct replay *r, size_t page_bytes)
{
	enum backend_kind kinds[BACKEND_NR_KINDS];
	size_t n = kinds_list(&r->options, kinds);
	size_t all = n * r->options.rounds;
	double run_seconds = r->options.seconds / (double)all;

	for (size_t done = 0; done < all; done++) {
		size_t round = done / n;
		enum backend_kind kind = kinds[(done + round) % n];
		struct pipeline_result *result =
			&r->results[kind * r->options.rounds + round];

		if (backend_run(r, kind, page_bytes,
				(uint64_t)(run_seconds * 1e9), result))
			return -1;
		report_progress(backend_name(kind), done + 1, all,
				run_seconds * 1.1 * (double)(all - done - 1),
				result);
	}
	report_progress_end();
	return 0;
}

static int arena_look(const struct pcpa_arena_info *info, void *arg)
{
	struct heap_facts *f = arg;

	if (f->page_bytes && info->page_bytes != f->page_bytes)
		f->mixed = true;
	if (info->page_bytes > f->page_bytes) {
		f->page_bytes = info->page_bytes;
		f->backing = info->backing;
	}
	f->managed_bytes += info->bytes;
	return 0;
}

static void replay_report(struct replay *r, size_t page_bytes)
{
	enum backend_kind kinds[BACKEND_NR_KINDS];
	struct report report = {.options = &r->options,
				.capture = &r->capture,
				.base_page_bytes = page_bytes};

	report.nr_summaries = kinds_list(&r->options, kinds);
	for (size_t i = 0; i < report.nr_summaries; i++)
		report.summaries[i] =
			summary_make(kinds[i],
				     &r->results[kinds[i] * r->options.rounds],
				     r->options.rounds);
	pcpa_for_each_arena(r->heap, arena_look, &report.heap);
	if (r->options.json)
		report_json(&report);
	else
		report_table(&report);
}

static int heap_close(struct replay *r)
{
	int rc = r->heap ? pcpa_heap_destroy(r->heap) : 0;

	return rc ? complain("blocks of the heap were lost") : 0;
}

static int replay_run(struct replay *r)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	if (capture_prepare(r, page_bytes))
		return -1;
	r->results = calloc((size_t)BACKEND_NR_KINDS * r->options.rounds,
			    sizeof(*r->results));
	if (!r->results)
		return complain("out of memory");
	if (rounds_run(r, page_bytes))
		return -1;
	replay_report(r, page_bytes);
	return heap_close(r);
}

int main(int argc, char **argv)
{
	char error[REPLAY_ERROR_BYTES] = "";
	struct replay r = {0};
	int rc;

	if (options_parse(argc, argv, &r.options, error)) {
		complain(error);
		fputs("Try pcpreplay --help.\n", stderr);
		return 2;
	}
	if (r.options.help) {
		options_print_help();
		return 0;
	}
	if (capture_load(r.options.capture, &r.capture, error)) {
		complain(error);
		return 1;
	}
	rc = replay_run(&r);
	free(r.results);
	capture_free(&r.capture);
	return rc ? 1 : 0;
}
