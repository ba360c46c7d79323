/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp_unmap.c - a process unmaps a large mapping: pages are freed and none is
 * allocated.  How many pages does each drain of the cache give back?
 *
 * The original (Linux 5.14): unpatched, 63 pages at a time at a count of 378;
 * with the patch that is policy LEGACY here, at 814, each drain twice the one
 * before up to 751.
 *
 * The figures are those of the heap's own trace, and of the kernel-like
 * allocator's counters: a check of the policies as they run, not of formulas.
 */
#include "experiment.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "subject.h"

enum { DRAINS = 8, BATCH = 63, PAGES = 8192, HEAP_MIB = 256, KPCP_MIB = 64 };

static void *page[PAGES];

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

static int legacy_trace(unsigned high, struct trace *t)
{
	struct bench_subject s;
	int err = bench_subject_heap(&s, "legacy", HEAP_MIB, PCPA_HEAP_LEGACY,
				     BATCH, high);

	if (err)
		return err;
	err = pages_free(s.heap, t);
	bench_subject_close(&s);
	return err;
}

/* Takes pages until the list is just empty, then frees them with an eye on the
 * drains.  Returns how many there were. */
static size_t kernel_pages_free(struct kpcp_cache *c, struct trace *t)
{
	size_t n = 0;

	while (n < PAGES - BATCH || c->count)
		if (!(page[n++] = kpcp_alloc(c, 0)))
			return 0;
	for (size_t i = 0; i < n; i++) {
		struct kpcp_counters before = c->counters;
		unsigned count = c->count + 1;

		kpcp_free(c, page[i], 0);
		if (c->counters.drains == before.drains || t->n == DRAINS)
			continue;
		t->drain[t->n].pages =
			c->counters.drain_pages - before.drain_pages;
		t->drain[t->n++].count = count;
	}
	return n;
}

static int kernel_trace(unsigned high, struct trace *t)
{
	struct kpcp_options o = KPCP_OPTIONS_INIT;
	struct kpcp_cache c;
	struct kpcp k;
	int err;

	o.mib = KPCP_MIB;
	o.batch = BATCH;
	o.high = high;
	err = kpcp_open(&k, &o);
	if (err)
		return err;
	kpcp_attach(&k, &c);
	err = kernel_pages_free(&c, t) ? 0 : -ENOMEM;
	kpcp_detach(&c);
	kpcp_close(&k);
	return err;
}

struct run {
	const char *allocator;
	int (*trace)(unsigned high, struct trace *t);
	unsigned high;
	const char *original;
};

static void run_table(const struct run *r, const struct trace *t)
{
	printf("  %-10s high %u  original: %-41s here:", r->allocator, r->high,
	       r->original ? r->original : "-");
	for (size_t i = 0; i < t->n; i++)
		printf(" %llu@%u", (unsigned long long)t->drain[i].pages,
		       t->drain[i].count);
	putchar('\n');
}

static struct json_object *numbers_json(const struct trace *t, bool counts)
{
	struct json_object *a = json_object_new_array();

	for (size_t i = 0; i < t->n; i++)
		json_object_array_add(
			a, json_object_new_int64(
				   counts ? (int64_t)t->drain[i].count
					  : (int64_t)t->drain[i].pages));
	return a;
}

static void run_json(const struct run *r, const struct trace *t)
{
	struct json_object *o = bench_experiment_json("unmap");

	bench_experiment_text(o, "allocator", r->allocator);
	bench_experiment_count(o, "high", r->high);
	bench_experiment_text(o, "original", r->original);
	json_object_object_add(o, "drains", numbers_json(t, false));
	json_object_object_add(o, "counts", numbers_json(t, true));
	bench_experiment_print(o);
}

bool bench_exp_unmap(const struct bench_experiment_args *args)
{
	static const struct run runs[] = {
		{"kernel-5.x", kernel_trace, 378, "63 each (unpatched)"},
		{"legacy", legacy_trace, 378, NULL},
		{"legacy", legacy_trace, 814,
		 "126, 252, 504, 751, 751 (63 before them)"},
	};

	if (!args->json)
		puts("\nunmap: pages each drain gives back while pages are only "
		     "freed; pages@count");
	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct trace t = {0};
		int err = runs[i].trace(runs[i].high, &t);

		if (err) {
			fprintf(stderr, "pcpbench: unmap: %s\n", strerror(-err));
			return false;
		}
		if (args->json)
			run_json(&runs[i], &t);
		else
			run_table(&runs[i], &t);
	}
	return true;
}
