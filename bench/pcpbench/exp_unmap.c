/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp_unmap.c - a process unmaps a large mapping: pages are freed and none is
 * allocated.  How many pages does each drain of the cache give back?
 *
 * The original (Linux 5.14): unpatched, 63 pages at a time at a count of 378;
 * with the patch that is policy LEGACY here, at 814, each drain twice the one
 * before up to 751.
 *
 * The figures are those of the heap's own trace, so this is a check of the policy
 * as it runs, not of its formula.
 */
#include "experiment.h"

#include <errno.h>
#include <json-c/json.h>
#include <pcpalloc/pcpalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAINS = 8, BATCH = 63, PAGES = 8192, HEAP_MIB = 256 };

struct trace {
	size_t n;
	struct { uint64_t pages; uint32_t count; } drain[DRAINS];
};

static void event_note(const struct pcpa_event *e, void *arg)
{
	struct trace *t = arg;

	if (e->kind != PCPA_EVENT_PCPU_DRAIN || t->n == DRAINS)
		return;
	t->drain[t->n].pages = e->pages;
	t->drain[t->n++].count = (uint32_t)e->count;
}

/* Takes all pages, then frees them with an eye on the drains. */
static int pages_free(struct pcpa_heap *heap, struct trace *t)
{
	static void *page[PAGES];

	for (size_t i = 0; i < PAGES; i++)
		if (!(page[i] = pcpa_alloc(heap, 0, 0)))
			return -errno;
	pcpa_heap_drain(heap);
	pcpa_heap_trace(heap, event_note, t);
	for (size_t i = 0; i < PAGES; i++)
		pcpa_free(heap, page[i]);
	pcpa_heap_trace(heap, NULL, NULL);
	return 0;
}

static int trace_take(unsigned high, struct trace *t)
{
	struct pcpa_heap_options opts = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap;
	int err;

	opts.flags = PCPA_HEAP_LEGACY | PCPA_HEAP_FIXED;
	opts.initial_bytes = (size_t)HEAP_MIB << 20;
	opts.batch_pages = BATCH;
	opts.high_pages = high;
	err = pcpa_heap_create(&opts, &heap);
	if (err)
		return err;
	err = pages_free(heap, t);
	pcpa_heap_destroy(heap);
	return err;
}

static void trace_table(unsigned high, const char *original,
			const struct trace *t)
{
	printf("  high %u  original: %-42s here:", high, original);
	for (size_t i = 0; i < t->n; i++)
		printf(" %llu@%u", (unsigned long long)t->drain[i].pages,
		       t->drain[i].count);
	putchar('\n');
}

static void trace_json(unsigned high, const char *original,
		       const struct trace *t)
{
	struct json_object *o = bench_experiment_json("unmap");
	struct json_object *drains = json_object_new_array();

	for (size_t i = 0; i < t->n; i++)
		json_object_array_add(
			drains, json_object_new_int64(
					(int64_t)t->drain[i].pages));
	json_object_object_add(o, "high", json_object_new_int64(high));
	json_object_object_add(o, "original", json_object_new_string(original));
	json_object_object_add(o, "drains", drains);
	bench_experiment_print(o);
}

bool bench_exp_unmap(const struct bench_experiment_args *args)
{
	static const struct {
		unsigned high;
		const char *original;
	} runs[] = {
		{378, "63 each (unpatched)"},
		{814, "126, 252, 504, 751, 751 (63 before them)"},
	};

	if (!args->json)
		puts("\nunmap: pages each drain gives back while pages are only "
		     "freed; pages@count");
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct trace t = {0};
		int err = trace_take(runs[i].high, &t);

		if (err) {
			fprintf(stderr, "pcpbench: unmap: %s\n", strerror(-err));
			return false;
		}
		if (args->json)
			trace_json(runs[i].high, runs[i].original, &t);
		else
			trace_table(runs[i].high, runs[i].original, &t);
	}
	return true;
}
