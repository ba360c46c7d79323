/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pipeline.c - the main job: every packet in a block of its own, allocated on
 * one thread and freed on another.
 *
 * Owns the threads, the batches and the measurement; not the allocator.
 *
 *   receive  --to_worker-->  worker  --to_transmit-->  transmit
 *   allocate, copy           headers                   read all, free
 *      ^                                                  |
 *      +------------------- empty batches ----------------+
 *
 * Batches of BURST packets go round.  Their number bounds the memory in flight.
 * The empty ones are reused newest first, so that `none`, whose blocks belong
 * to the batches, has blocks as warm as an allocator could give.
 *
 * The last batch of the warm-up is marked.  Transmit reads the clocks and
 * counters when it has freed that batch and when it has freed the last one, so
 * what is measured is what left the pipeline in between.
 *
 * Invariants:
 *   L1  a batch is in one queue or with one thread
 *   L2  packets leave in the order of the capture
 *   L3  the sum over the transmitted frames is capture_digest_expect()
 *
 * Concurrency: each struct below is one thread's until it has been joined.
 * Failure: one thread records the reason and closes all queues, which ends
 * the others.  A receive that gets no block waits for transmit to free some
 * and fails only when nothing is in flight: no packet is dropped.
 */
#define _GNU_SOURCE
#include "pipeline.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "handover.h"

/* Batches a stage takes from its queue at once. */
#define TAKE_MOST 16

/* Receive looks at the clock every so many batches. */
#define CLOCK_EVERY 8

struct batch {
	size_t slot;
	size_t n;
	bool mark; /* the warm-up ends with this one */
	uint8_t orders[BURST];
	uint16_t link_types[BURST];
	uint32_t bytes[BURST];
	void *blocks[BURST];
};

struct sample {
	uint64_t packets;
	uint64_t wall_ns;
	uint64_t cpu_ns;
	struct pcpa_stats stats;
};

struct pipeline {
	const struct pipeline_setup *setup;
	struct handover to_worker;
	struct handover to_transmit;
	struct handover empty;
	struct batch *batches;
	size_t nr_batches;
	char error[REPLAY_ERROR_BYTES]; /* by receive only */
	/* receive */
	struct pcpa_cache receive_cache;
	uint64_t nr_sent; /* batches */
	uint64_t stalls;
	uint64_t rss_before;
	uint64_t rss_after;
	/* worker */
	uint64_t kinds[PACKET_NR_KINDS];
	/* transmit */
	struct pcpa_cache transmit_cache;
	uint64_t nr_out; /* packets */
	uint64_t digest;
	struct sample start;
	struct sample end;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t rss_bytes(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f)
		return 0;
	if (fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

size_t pipeline_nr_batches(size_t depth)
{
	return 2 * depth;
}

/* ---- receive ------------------------------------------------------------ */

/* Called when a batch could not be filled: waits until another came back.
 * False when none is out, and `had` says that was so before the last try. */
static bool memory_await(struct pipeline *p, uint64_t had)
{
	uint64_t back = had - p->nr_batches;

	handover_flush(&p->to_worker);
	if (back == p->nr_sent)
		return false;
	p->stalls++;
	handover_await_put(&p->empty, had);
	return true;
}

static bool blocks_take(struct pipeline *p, struct batch *b)
{
	struct backend *backend = p->setup->backend;
	size_t got = backend_take(backend, &p->receive_cache, b->slot,
				  b->orders, b->blocks, b->n);

	while (got < b->n) {
		uint64_t had = handover_puts(&p->empty);

		got += backend_take(backend, &p->receive_cache, b->slot,
				    b->orders + got, b->blocks + got,
				    b->n - got);
		if (got == b->n)
			break;
		if (!memory_await(p, had)) {
			snprintf(p->error, sizeof(p->error),
				 "%s: no memory for a block of order %u with "
				 "nothing else in flight: %s",
				 backend_name(backend->kind), b->orders[got],
				 strerror(errno));
			backend_give(backend, &p->receive_cache, b->orders,
				     b->blocks, got);
			return false;
		}
	}
	return true;
}

static void frames_copy(const struct capture *c, size_t at, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct frame *f = &c->frames[at];

		memcpy((uint8_t *)b->blocks[i] + HEADROOM_BYTES, f->data,
		       f->bytes);
		at = at + 1 == c->nr_frames ? 0 : at + 1;
	}
}

static size_t batch_plan(const struct capture *c, size_t at, struct batch *b)
{
	b->n = BURST;
	for (size_t i = 0; i < BURST; i++) {
		b->orders[i] = c->frames[at].order;
		b->bytes[i] = c->frames[at].bytes;
		b->link_types[i] = c->frames[at].link_type;
		at = at + 1 == c->nr_frames ? 0 : at + 1;
	}
	return at;
}

static struct batch *empty_take(struct pipeline *p)
{
	void *item;

	if (handover_try_take(&p->empty, &item, 1))
		return item;
	handover_flush(&p->to_worker);
	return handover_take(&p->empty, &item, 1) ? item : NULL;
}

/* Fills and sends one batch from frame *at on; false on failure. */
static bool batch_send(struct pipeline *p, size_t *at, bool mark)
{
	const struct capture *c = p->setup->capture;
	struct batch *b = empty_take(p);
	void *item = b;
	size_t next;

	if (!b)
		return false;
	next = batch_plan(c, *at, b);
	if (!blocks_take(p, b))
		return false;
	frames_copy(c, *at, b);
	*at = next;
	b->mark = mark;
	p->nr_sent++;
	return handover_put(&p->to_worker, &item, 1);
}

static bool batches_send_until(struct pipeline *p, size_t *at, uint64_t end_ns)
{
	do {
		for (int i = 0; i < CLOCK_EVERY; i++)
			if (!batch_send(p, at, false))
				return false;
	} while (clock_ns(CLOCK_MONOTONIC) < end_ns);
	return true;
}

static void pipeline_close(struct pipeline *p)
{
	handover_close(&p->to_worker);
	handover_close(&p->to_transmit);
	handover_close(&p->empty);
}

static void *receive_main(void *arg)
{
	struct pipeline *p = arg;
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	uint64_t warm = start + p->setup->warm_ns;
	size_t at = 0;

	p->receive_cache = pcpa_cache_self(p->setup->backend->heap);
	if (!batches_send_until(p, &at, warm) || !batch_send(p, &at, true) ||
	    !batches_send_until(p, &at, warm + p->setup->run_ns))
		pipeline_close(p);
	p->rss_after = rss_bytes();
	handover_close(&p->to_worker);
	return NULL;
}

/* ---- worker and transmit ------------------------------------------------ */

/* Takes batches; before it sleeps, lets the next stage have what it was put. */
static size_t batches_take(struct handover *in, struct handover *out,
			   void **items)
{
	size_t n = handover_try_take(in, items, TAKE_MOST);

	if (n)
		return n;
	handover_flush(out);
	return handover_take(in, items, TAKE_MOST);
}

static uint8_t *frame_of(const struct batch *b, size_t i)
{
	return (uint8_t *)b->blocks[i] + HEADROOM_BYTES;
}

static void *worker_main(void *arg)
{
	struct pipeline *p = arg;
	void *items[TAKE_MOST];
	size_t n;

	while ((n = batches_take(&p->to_worker, &p->to_transmit, items))) {
		for (size_t k = 0; k < n; k++) {
			struct batch *b = items[k];

			for (size_t i = 0; i < b->n; i++)
				p->kinds[packet_forward(frame_of(b, i), b->bytes[i],
							b->link_types[i])]++;
		}
		handover_put(&p->to_transmit, items, n);
	}
	handover_close(&p->to_transmit);
	return NULL;
}

static struct sample sample_take(const struct pipeline *p)
{
	struct sample s = {.packets = p->nr_out,
			   .wall_ns = clock_ns(CLOCK_MONOTONIC),
			   .cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
			   .stats = PCPA_STATS_INIT};

	if (p->setup->backend->kind == BACKEND_PCPALLOC)
		pcpa_stats_read(p->setup->backend->heap, -1, &s.stats);
	return s;
}

static void batch_transmit(struct pipeline *p, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		p->digest += packet_digest(frame_of(b, i), b->bytes[i]);
	backend_give(p->setup->backend, &p->transmit_cache, b->orders, b->blocks,
		     b->n);
	p->nr_out += b->n;
	if (b->mark)
		p->start = sample_take(p);
}

static void *transmit_main(void *arg)
{
	struct pipeline *p = arg;
	void *items[TAKE_MOST];
	size_t n;

	p->transmit_cache = pcpa_cache_self(p->setup->backend->heap);
	while ((n = batches_take(&p->to_transmit, &p->empty, items))) {
		for (size_t k = 0; k < n; k++)
			batch_transmit(p, items[k]);
		handover_put(&p->empty, items, n);
	}
	p->end = sample_take(p);
	return NULL;
}

/* ---- one run ------------------------------------------------------------ */

static int queues_make(struct pipeline *p)
{
	size_t depth = p->setup->depth;
	int rc = handover_init(&p->to_worker, depth, false);

	if (rc)
		return rc;
	rc = handover_init(&p->to_transmit, depth, false);
	if (rc)
		goto destroy_worker;
	rc = handover_init(&p->empty, p->nr_batches, true);
	if (rc)
		goto destroy_transmit;
	return 0;

destroy_transmit:
	handover_destroy(&p->to_transmit);
destroy_worker:
	handover_destroy(&p->to_worker);
	return rc;
}

static int pipeline_make(struct pipeline *p)
{
	int rc;

	p->nr_batches = pipeline_nr_batches(p->setup->depth);
	p->batches = calloc(p->nr_batches, sizeof(*p->batches));
	if (!p->batches)
		return ENOMEM;
	rc = queues_make(p);
	if (rc) {
		free(p->batches);
		return rc;
	}
	for (size_t i = 0; i < p->nr_batches; i++) {
		void *item = &p->batches[i];

		p->batches[i].slot = i;
		handover_put(&p->empty, &item, 1);
	}
	return 0;
}

static void pipeline_unmake(struct pipeline *p)
{
	handover_destroy(&p->empty);
	handover_destroy(&p->to_transmit);
	handover_destroy(&p->to_worker);
	free(p->batches);
}

static int threads_run(struct pipeline *p)
{
	static void *(*const stages[])(void *) = {transmit_main, worker_main,
						  receive_main};
	enum { NR_STAGES = 3 };
	pthread_t threads[NR_STAGES];
	int started = 0;
	int rc = 0;

	while (started < NR_STAGES && !rc) {
		rc = pthread_create(&threads[started], NULL, stages[started], p);
		started += !rc;
	}
	if (rc)
		pipeline_close(p);
	while (started)
		pthread_join(threads[--started], NULL);
	return rc;
}

/* Blocks and bytes of the first n packets times sign, added to the result. */
static void packets_count(const struct capture *c, uint64_t n, bool add,
			  struct pipeline_result *r)
{
	uint64_t passes = n / c->nr_frames;
	uint64_t rest = n % c->nr_frames;

	for (size_t i = 0; i < c->nr_frames; i++) {
		uint64_t times = passes + (i < rest);

		/* Unsigned arithmetic wraps, so subtracting is adding. */
		if (!add)
			times = 0 - times;
		r->blocks[c->frames[i].order] += times;
		r->bytes += times * c->frames[i].bytes;
	}
}

/* The counters of *end less those of *start; the states stay as at the end. */
static struct pcpa_stats stats_subtract(const struct pcpa_stats *end,
					const struct pcpa_stats *start)
{
	struct pcpa_stats d = *end;

	d.alloc_total -= start->alloc_total;
	d.free_total -= start->free_total;
	d.failed_total -= start->failed_total;
	d.bad_frees -= start->bad_frees;
	d.zone_locks -= start->zone_locks;
	d.zone_contended -= start->zone_contended;
	d.drains -= start->drains;
	d.refills -= start->refills;
	d.depot_gets -= start->depot_gets;
	d.depot_puts -= start->depot_puts;
	return d;
}

static void result_fill(const struct pipeline *p, struct pipeline_result *r)
{
	const struct capture *c = p->setup->capture;

	r->packets = p->end.packets - p->start.packets;
	r->wall_ns = p->end.wall_ns - p->start.wall_ns;
	r->cpu_ns = p->end.cpu_ns - p->start.cpu_ns;
	packets_count(c, p->end.packets, true, r);
	packets_count(c, p->start.packets, false, r);
	memcpy(r->kinds, p->kinds, sizeof(r->kinds));
	r->stalls = p->stalls;
	r->rss_bytes =
		p->rss_after > p->rss_before ? p->rss_after - p->rss_before : 0;
	r->counters = stats_subtract(&p->end.stats, &p->start.stats);
}

static void result_verify(const struct pipeline *p, struct pipeline_result *r)
{
	uint64_t wanted = capture_digest_expect(p->setup->capture, p->nr_out);

	if (p->nr_out != p->nr_sent * BURST)
		snprintf(r->error, sizeof(r->error),
			 "%s: %llu packets were received, %llu transmitted",
			 backend_name(p->setup->backend->kind),
			 (unsigned long long)p->nr_sent * BURST,
			 (unsigned long long)p->nr_out);
	else if (p->digest != wanted)
		snprintf(r->error, sizeof(r->error),
			 "%s: contents changed: the transmitted bytes sum up to "
			 "%016llx, those of the capture to %016llx",
			 backend_name(p->setup->backend->kind),
			 (unsigned long long)p->digest,
			 (unsigned long long)wanted);
}

int pipeline_run(const struct pipeline_setup *setup,
		 struct pipeline_result *result)
{
	struct pipeline p = {.setup = setup};
	int rc;

	*result = (struct pipeline_result){0};
	/* What the last run left in the C library's heap is not this one's. */
	malloc_trim(0);
	p.rss_before = rss_bytes();
	rc = pipeline_make(&p);
	if (!rc) {
		rc = threads_run(&p);
		pipeline_unmake(&p);
	}
	if (rc)
		snprintf(result->error, sizeof(result->error),
			 "the pipeline can't be set up: %s", strerror(rc));
	else if (p.error[0])
		memcpy(result->error, p.error, sizeof(p.error));
	else {
		result_fill(&p, result);
		result_verify(&p, result);
	}
	return result->error[0] ? -1 : 0;
}
