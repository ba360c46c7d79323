/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp_events.c - one CPU receives and only allocates, the other one is the
 * application's and only frees: which of the kernel's events does each have?
 *
 *   lane 0, "napi"                  lane 1, "app"
 *   alloc 32 --- ring of bursts ---> free 32
 *
 *   alloc, free   blocks of order 0: one a packet
 *   zone_locked   pages that a refill took from the zone, under its lock
 *   pcpu_drain    pages that a cache gave back (to the zone, or the depot)
 *
 * Per million packets.  The original counted samples of the tracepoints of the
 * same names, one for each page, at unlike rates: compare zeros and shapes.  With
 * the depot the app's pages come back to napi without the zone, which is the
 * point of it.  The counts are those of kpcp's counters, and of the heap's trace,
 * which is called on the thread that causes an event.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "duo.h"
#include "spsc.h"
#include "subject.h"
#include "tsc.h"

enum {
	WARM_BURSTS = 2048,
	BURSTS = 8192,
	PACKETS = BURSTS * SPSC_BURST,
	HEAP_MIB = 64,
};

enum { KERNEL, LEGACY, MODERN, SUBJECTS };
enum { NAPI, APP, CORES };
enum { ALLOC, FREE, ZONE_LOCKED, DRAIN, EVENTS };

static const char *const subject_name[SUBJECTS] = {"kernel-5.x", "legacy",
						    "modern"};
static const char *const core_name[CORES] = {"napi", "app"};
static const char *const event_name[EVENTS] = {"alloc", "free", "zone_locked",
					       "pcpu_drain"};

/* Samples; those that the original doesn't tell of: -1. */
static const int original[CORES][EVENTS] = {
	{221875, -1, 766584, 35},
	{-1, 38922, 1, 107289},
};

struct lane {
	struct bench_user user;
	uint64_t events[EVENTS];	/* of the heap's trace, so far */
	uint64_t before[EVENTS];
	uint64_t measured[EVENTS];
};

struct events {
	const struct bench_experiment_args *args;
	struct bench_duo duo;
	struct spsc ring;
	struct kpcp kpcp;
	struct bench_subject *subject;
	struct lane lane[CORES];
	uint64_t zone_locks[2]; /* of both, before and after */
};

static _Thread_local struct lane *lane_mine;

static void event_note(const struct pcpa_event *e, void *arg)
{
	(void)arg;
	if (e->kind == PCPA_EVENT_ZONE_LOCKED)
		lane_mine->events[ZONE_LOCKED] += e->pages;
	if (e->kind == PCPA_EVENT_PCPU_DRAIN)
		lane_mine->events[DRAIN] += e->pages;
}

/* ---- The two cores ------------------------------------------------------- */

/* False: there was no page. */
static bool burst_alloc(struct lane *l, void **burst)
{
	for (int i = 0; i < SPSC_BURST; i++)
		if (!(burst[i] = bench_user_alloc(&l->user, 0)))
			return false;
	l->events[ALLOC] += SPSC_BURST;
	return true;
}

static void bursts_send(struct events *e, unsigned bursts)
{
	struct lane *l = &e->lane[NAPI];
	void *burst[SPSC_BURST];

	for (unsigned i = 0; i < bursts; i++) {
		/* The heap is far larger than ring and caches. */
		if (!burst_alloc(l, burst))
			__builtin_trap();
		while (!spsc_push(&e->ring, burst))
			bench_pause();
	}
}

static void bursts_free(struct events *e, unsigned bursts)
{
	struct lane *l = &e->lane[APP];
	void *burst[SPSC_BURST];

	for (unsigned i = 0; i < bursts; i++) {
		while (!spsc_pop(&e->ring, burst))
			bench_pause();
		for (int k = 0; k < SPSC_BURST; k++)
			bench_user_free(&l->user, burst[k], 0);
		l->events[FREE] += SPSC_BURST;
	}
}

static void events_read(struct lane *l, uint64_t *out)
{
	const struct kpcp_counters *c = &l->user.cache.counters;

	memcpy(out, l->events, sizeof(l->events));
	if (!l->user.subject->kpcp)
		return;
	out[ZONE_LOCKED] = c->refill_pages;
	out[DRAIN] = c->drain_pages;
}

static uint64_t zone_locks_read(const struct events *e)
{
	struct pcpa_stats st = PCPA_STATS_INIT;

	if (e->subject->kpcp)
		return e->lane[NAPI].user.cache.counters.locks +
		       e->lane[APP].user.cache.counters.locks;
	pcpa_stats_read(e->subject->heap, -1, &st);
	return st.zone_locks;
}

/* Between the two meetings both rest. */
static void locks_note(struct events *e, unsigned core, unsigned when)
{
	bench_duo_meet(&e->duo);
	if (core == NAPI)
		e->zone_locks[when] = zone_locks_read(e);
	bench_duo_meet(&e->duo);
}

static void core_main(void *arg, unsigned core)
{
	struct events *e = arg;
	struct lane *l = &e->lane[core];
	void (*go)(struct events *, unsigned) =
		core == NAPI ? bursts_send : bursts_free;
	uint64_t after[EVENTS];

	lane_mine = l;
	memset(l->events, 0, sizeof(l->events));
	bench_user_attach(&l->user, e->subject);
	go(e, WARM_BURSTS);
	locks_note(e, core, 0);
	events_read(l, l->before);
	go(e, BURSTS);
	locks_note(e, core, 1);
	events_read(l, after);
	for (int i = 0; i < EVENTS; i++)
		l->measured[i] = after[i] - l->before[i];
	bench_user_detach(&l->user);
}

/* ---- Results ------------------------------------------------------------- */

/* Rounded. */
static uint64_t per_million(uint64_t n)
{
	return (n * 1000000 + PACKETS / 2) / PACKETS;
}

static uint64_t locks_per_million(const struct events *e)
{
	return per_million(e->zone_locks[1] - e->zone_locks[0]);
}

static void core_table(const struct events *e, unsigned core)
{
	printf("  %-11s %-6s", e->subject->name, core_name[core]);
	for (int i = 0; i < EVENTS; i++)
		printf(" %11" PRIu64, per_million(e->lane[core].measured[i]));
	if (core == NAPI)
		printf(" %11" PRIu64, locks_per_million(e));
	putchar('\n');
}

static void core_json(const struct events *e, unsigned core)
{
	struct json_object *o = bench_experiment_json("events");
	char key[32];

	bench_experiment_text(o, "allocator", e->subject->name);
	bench_experiment_text(o, "core", core_name[core]);
	bench_experiment_text(o, "unit", "per million packets");
	for (int i = 0; i < EVENTS; i++)
		bench_experiment_count(o, event_name[i],
				       per_million(e->lane[core].measured[i]));
	bench_experiment_count(o, "zone_locks_of_both", locks_per_million(e));
	bench_experiment_text(o, "original_unit", "samples");
	for (int i = 0; i < EVENTS; i++) {
		snprintf(key, sizeof(key), "original_%s", event_name[i]);
		if (original[core][i] >= 0)
			bench_experiment_count(o, key,
					       (uint64_t)original[core][i]);
		else
			bench_experiment_text(o, key, NULL);
	}
	bench_experiment_print(o);
}

static void original_table(void)
{
	for (int c = 0; c < CORES; c++) {
		printf("  %-11s %-6s", "original", core_name[c]);
		for (int i = 0; i < EVENTS; i++)
			if (original[c][i] < 0)
				printf(" %11s", "-");
			else
				printf(" %11d", original[c][i]);
		puts(c == NAPI ? "   (samples)" : "");
	}
}

static void header_table(void)
{
	puts("\nevents: one CPU allocates, the other one frees; per million "
	     "packets, in pages; zone locks are those of both");
	printf("  %-11s %-6s", "", "core");
	for (int i = 0; i < EVENTS; i++)
		printf(" %11s", event_name[i]);
	puts("  zone locks");
	original_table();
}

/* ---- Set-up -------------------------------------------------------------- */

static int subject_open(struct events *e, unsigned subject,
			struct bench_subject *s)
{
	struct kpcp_options o = KPCP_OPTIONS_INIT;
	int err;

	if (subject == KERNEL)
		return bench_subject_kpcp(s, subject_name[KERNEL], &e->kpcp, &o);
	err = bench_subject_heap(s, subject_name[subject], HEAP_MIB,
				 subject == LEGACY ? PCPA_HEAP_LEGACY : 0, 0, 0);
	if (err)
		return err;
	return pcpa_heap_trace(s->heap, event_note, NULL);
}

static int subject_run(struct events *e, unsigned subject)
{
	struct bench_subject s;
	int err = subject_open(e, subject, &s);

	if (err)
		return err;
	e->subject = &s;
	spsc_init(&e->ring);
	bench_duo_run(&e->duo, CORES, core_main, e);
	bench_subject_close(&s);
	for (unsigned core = 0; core < CORES; core++) {
		if (e->args->json)
			core_json(e, core);
		else
			core_table(e, core);
	}
	return 0;
}

static int subjects_run(struct events *e)
{
	struct kpcp_options o = KPCP_OPTIONS_INIT;
	int err;

	o.mib = HEAP_MIB;
	err = kpcp_open(&e->kpcp, &o);
	if (err)
		return err;
	if (!e->args->json)
		header_table();
	for (unsigned s = 0; s < SUBJECTS && !err; s++)
		err = subject_run(e, s);
	kpcp_close(&e->kpcp);
	return err;
}

bool bench_exp_events(const struct bench_experiment_args *args)
{
	static struct events e;
	int err;

	if (args->cpu[1] < 0) {
		fputs("pcpbench: events is left out: it needs a second CPU\n",
		      stderr);
		return true;
	}
	e.args = args;
	err = -bench_duo_start(&e.duo, args);
	if (!err) {
		err = subjects_run(&e);
		bench_duo_stop(&e.duo);
	}
	if (err)
		fprintf(stderr, "pcpbench: events: %s\n", strerror(-err));
	return !err;
}
