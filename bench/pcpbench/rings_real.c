/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rings_real.c - see rings_real.h.
 *
 *   lane 0 (the caller)   its sides of the rings, and the clock: at the end of each
 *                         window it reads what all lanes have consumed
 *   other lanes           their sides, until lane 0 says stop
 *
 * Then receivers stop, applications empty the rings, and when all have, what the
 * drivers hold goes back: no page may be missing.
 */
#define _GNU_SOURCE
#include "rings_real.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "rings_packet.h"
#include "spsc.h"
#include "tsc.h"

enum { DRIVER_PAGES = 4096, HALF = 2048 };

/* Driver 0's: more than can be on their way (a full ring and a burst at each end),
 * and no more, since the caches hold what is used again soon. */
enum { TURN_PAGES = SPSC_BURST * (SPSC_BURSTS + 8) };
enum { WINDOW_NS = 1000000, WARM_WINDOWS = 10, TRIES = 8, GAP_NS = 150000 };

struct ring {
	struct spsc spsc;
	_Atomic bool ended; /* the receiver pushes no more */
};

struct lane {
	struct run *run;
	struct rings_user user;
	int cpu;
	struct ring *receives, *consumes;
	uint64_t received, checked; /* packets' marks */
	char *half;		    /* driver 1: the page's other half */
	void *burst[SPSC_BURST];    /* being received */
	bool pending;		    /* burst waits for room in the ring */
	uint64_t idle, idle_since;  /* ticks */
	uint64_t out;		    /* ticks: without its CPU */
	uint64_t wait;		    /* ticks: for kpcp's lock */
	uint64_t began, ended;
	struct rings_buffer buffer;
	void *held[DRIVER_PAGES]; /* driver 3: oldest at tail */
	uint64_t held_head, held_tail;
	char *fault;
	/* Read by the clock: */
	_Alignas(128) _Atomic uint64_t consumed; /* packets               */
	_Atomic uint64_t beat;			 /* ticks: it ran         */
	_Atomic unsigned lost;			 /* times it did not      */
};

struct run {
	const struct rings_setup *setup;
	struct ring *ring;
	struct lane *lane;
	unsigned lanes;
	pthread_barrier_t gate;
	_Atomic bool stop;
	/* The clock's: */
	uint64_t window_end, consumed, since, gap;
	unsigned warm, tried, kept, disturbed, lost;
	double *gbps; /* [setup->windows] */
};

/* ---- Drivers --------------------------------------------------------------- */

static void *page_new(struct lane *l)
{
	void *page = rings_take(&l->user);

	if (!page) {
		fprintf(stderr, "pcpbench: rings: out of pages\n");
		exit(1);
	}
	return page;
}

static void ref_set(struct lane *l, void *page, int refs)
{
	/* relaxed: the ring publishes it with the packet. */
	atomic_store_explicit(rings_ref(l->run->setup->store, page), refs,
			      memory_order_relaxed);
}

static void *driver1_packet(struct lane *l)
{
	char *packet = l->half;

	if (packet) {
		l->half = NULL;
		return packet;
	}
	packet = page_new(l);
	ref_set(l, packet, 2);
	l->half = packet + HALF;
	return packet;
}

static void *driver3_packet(struct lane *l)
{
	void *page = l->held[l->held_tail % DRIVER_PAGES];
	bool any = l->held_head != l->held_tail;
	bool full = l->held_head - l->held_tail == DRIVER_PAGES;

	/* pairs with packet_free(): the packet was read. */
	if (any && atomic_load_explicit(rings_ref(l->run->setup->store, page),
					memory_order_acquire) == 1) {
		l->held_tail++;
		full = false;
	} else {
		page = page_new(l);
	}
	ref_set(l, page, full ? 1 : 2);
	if (!full)
		l->held[l->held_head++ % DRIVER_PAGES] = page;
	return page;
}

static void *driver0_packet(const struct lane *l)
{
	return l->run->setup->store->base +
	       l->received % TURN_PAGES * RINGS_PAGE;
}

static void packet_free(struct lane *l, void *packet)
{
	void *page = rings_page(packet);

	if (l->run->setup->driver == 0)
		return;
	if (l->run->setup->driver == 2 ||
	    /* pairs with itself, and with driver3_packet(): whoever has the page
	     * next comes after this packet was read. */
	    atomic_fetch_sub_explicit(rings_ref(l->run->setup->store, page), 1,
				      memory_order_acq_rel) == 1)
		rings_give(&l->user, page);
}

/* ---- Bursts ---------------------------------------------------------------- */

static void *packet_new(struct lane *l)
{
	switch (l->run->setup->driver) {
	case 0:
		return driver0_packet(l);
	case 1:
		return driver1_packet(l);
	case 2:
		return page_new(l);
	default:
		return driver3_packet(l);
	}
}

static void burst_receive(struct lane *l)
{
	for (int i = 0; i < SPSC_BURST; i++) {
		l->burst[i] = packet_new(l);
		rings_packet_write(l->burst[i], l->received++);
	}
}

static void burst_consume(struct lane *l, void **burst)
{
	for (int i = 0; i < SPSC_BURST; i++) {
		if (!rings_packet_read(burst[i], l->checked++, &l->buffer))
			l->fault = "a packet was overwritten";
		packet_free(l, burst[i]);
	}
	/* relaxed: a count for the clock's lane. */
	atomic_store_explicit(&l->consumed, l->checked, memory_order_relaxed);
}

/* True when something was done. */
static bool lane_receive(struct lane *l)
{
	bool built = !l->pending;

	if (built)
		burst_receive(l);
	l->pending = !spsc_push(&l->receives->spsc, l->burst);
	return built || !l->pending;
}

static bool lane_consume(struct lane *l)
{
	void *burst[SPSC_BURST];

	if (!spsc_pop(&l->consumes->spsc, burst))
		return false;
	burst_consume(l, burst);
	return true;
}

/* At the end of a step: says that the lane runs, and what of its time wasn't work:
 * steps with nothing to do, and those in which it lost its CPU. */
static void lane_note(struct lane *l, bool did)
{
	/* relaxed (all three): numbers for the clock. */
	uint64_t last = atomic_load_explicit(&l->beat, memory_order_relaxed);
	uint64_t now = bench_tsc_read();
	bool lost = last && now - last > l->run->gap;

	if (!did)
		bench_pause();
	if (lost) {
		atomic_fetch_add_explicit(&l->lost, 1, memory_order_relaxed);
		l->out += now - last;
	}
	if (l->idle_since && (did || lost)) {
		l->idle += last - l->idle_since;
		l->idle_since = 0;
	}
	if (!did && !l->idle_since)
		l->idle_since = lost || !last ? now : last;
	atomic_store_explicit(&l->beat, now, memory_order_relaxed);
}

/* ---- The clock, lane 0's ---------------------------------------------------- */

/* Whether a lane has lost its CPU since the last window, or is without it. */
static bool any_lost(struct run *r, uint64_t now)
{
	unsigned lost = 0;
	bool out = false;

	for (unsigned i = 0; i < r->lanes; i++) {
		/* relaxed (both): numbers. */
		uint64_t beat = atomic_load_explicit(&r->lane[i].beat,
						     memory_order_relaxed);

		lost += atomic_load_explicit(&r->lane[i].lost,
					     memory_order_relaxed);
		out |= (int64_t)(now - beat) > (int64_t)r->gap;
	}
	out |= lost != r->lost;
	r->lost = lost;
	return out;
}

static void window_keep(struct run *r, double gbps, bool lost)
{
	unsigned most = TRIES * r->setup->windows, left;

	if (r->warm < WARM_WINDOWS) {
		r->warm++;
		return;
	}
	left = most - r->tried++;
	/* When no more may be discarded than are wanted, all count. */
	if (lost && left > r->setup->windows - r->kept)
		return;
	r->disturbed += lost;
	r->gbps[r->kept++] = gbps;
}

static void window_note(struct run *r, uint64_t now)
{
	double ns = (double)(now - r->since) / r->setup->ticks_per_ns;
	uint64_t consumed = 0;

	for (unsigned i = 0; i < r->lanes; i++)
		/* relaxed: a count. */
		consumed += atomic_load_explicit(&r->lane[i].consumed,
						 memory_order_relaxed);
	window_keep(r, (double)(consumed - r->consumed) * RINGS_PACKET_BYTES * 8 / ns,
		    any_lost(r, now));
	r->consumed = consumed;
	r->since = now;
	r->window_end = now + (uint64_t)(WINDOW_NS * r->setup->ticks_per_ns);
}

static void clock_look(struct run *r)
{
	uint64_t now = bench_tsc_read();

	if (now < r->window_end)
		return;
	window_note(r, now);
	if (r->kept == r->setup->windows)
		/* relaxed: they notice when they notice. */
		atomic_store_explicit(&r->stop, true, memory_order_relaxed);
}

/* ---- Lanes ----------------------------------------------------------------- */

static bool lane_stopped(const struct lane *l)
{
	/* relaxed: see clock_look(). */
	return atomic_load_explicit(&l->run->stop, memory_order_relaxed);
}

static void lane_run(struct lane *l)
{
	bool clock = l == l->run->lane;

	while (!lane_stopped(l)) {
		bool did = false;

		if (l->receives)
			did |= lane_receive(l);
		if (l->consumes)
			did |= lane_consume(l);
		lane_note(l, did);
		if (clock)
			clock_look(l->run);
	}
	lane_note(l, true);
}

/* What is on its way arrives. */
static void lane_finish(struct lane *l)
{
	bool consumed = !l->consumes, ended;

	do {
		if (l->receives && l->pending)
			l->pending = !spsc_push(&l->receives->spsc, l->burst);
		if (l->receives && !l->pending)
			/* pairs with the load below: all was pushed. */
			atomic_store_explicit(&l->receives->ended, true,
					      memory_order_release);
		if (consumed)
			continue;
		/* pairs with the store above. */
		ended = atomic_load_explicit(&l->consumes->ended,
					     memory_order_acquire);
		consumed = !lane_consume(l) && ended;
	} while (l->pending || !consumed);
}

/* Nobody has a packet any more. */
static void driver_empty(struct lane *l)
{
	if (l->half)
		packet_free(l, l->half);
	for (; l->held_tail != l->held_head; l->held_tail++)
		rings_give(&l->user, l->held[l->held_tail % DRIVER_PAGES]);
}

static void *lane_main(void *arg)
{
	struct lane *l = arg;

	if (bench_pin(l->cpu))
		l->fault = "a CPU could not be had";
	rings_user_begin(&l->user, l->run->setup->store);
	pthread_barrier_wait(&l->run->gate);
	l->began = bench_tsc_read();
	lane_run(l);
	l->ended = bench_tsc_read();
	l->wait = l->user.kpcp.counters.lock_wait_ticks;
	lane_finish(l);
	pthread_barrier_wait(&l->run->gate);
	driver_empty(l);
	rings_user_end(&l->user);
	return NULL;
}

/* ---- A run ----------------------------------------------------------------- */

bool rings_real_fits(unsigned rings, unsigned cpus, bool *shared)
{
	*shared = 2 * rings > cpus;
	return cpus >= 2 && rings <= cpus;
}

/* First rings, then applications; or lane i receives i and consumes the next. */
static void lanes_lay(struct run *r, bool shared)
{
	unsigned rings = r->setup->rings;

	for (unsigned i = 0; i < r->lanes; i++) {
		struct lane *l = &r->lane[i];

		l->run = r;
		/* A ring's two sides on neighbouring entries of the list. */
		l->cpu = r->setup->cpu[shared	   ? i
				       : i < rings ? 2 * i
						   : 2 * (i - rings) + 1];
		if (i < rings)
			l->receives = &r->ring[i];
		if (shared)
			l->consumes = &r->ring[(i + 1) % rings];
		else if (i >= rings)
			l->consumes = &r->ring[i - rings];
	}
}

static void lanes_run(struct run *r, pthread_t *thread)
{
	unsigned started = 0;
	int err = 0;

	while (started + 1 < r->lanes && !err) {
		err = pthread_create(&thread[started + 1], NULL, lane_main,
				     &r->lane[started + 1]);
		started += !err;
	}
	if (err) {
		/* The others wait at the gate and can't be called back. */
		fprintf(stderr, "pcpbench: rings: a thread: %s\n",
			strerror(err));
		exit(1);
	}
	lane_main(&r->lane[0]);
	for (unsigned i = 1; i < r->lanes; i++)
		pthread_join(thread[i], NULL);
}

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double busy_ns(const struct run *r, const struct lane *l)
{
	return (double)(l->ended - l->began - l->idle - l->out) /
	       r->setup->ticks_per_ns;
}

/* Of lanes that have one side only. */
static void sides_fill(const struct run *r, struct rings_result *result)
{
	double ns[2] = {0, 0};
	uint64_t packets[2] = {0, 0};

	for (unsigned i = 0; i < r->lanes; i++) {
		const struct lane *l = &r->lane[i];
		bool consumer = l->consumes != NULL;

		ns[consumer] += busy_ns(r, l);
		packets[consumer] += consumer ? l->checked : l->received;
	}
	result->receive_ns = packets[0] ? ns[0] / (double)packets[0] : 0;
	result->consume_ns = packets[1] ? ns[1] / (double)packets[1] : 0;
}

/* A CPU may be lost while its lane waits, too. */
static double lock_share(const struct run *r)
{
	uint64_t total = 0, wait = 0;

	if (r->setup->store->which != SIM_KERNEL)
		return -1;
	for (unsigned i = 0; i < r->lanes; i++) {
		const struct lane *l = &r->lane[i];

		total += l->ended - l->began - l->idle;
		wait += l->wait;
	}
	return total > 0 ? (double)wait / (double)total : 0;
}

static bool result_fill(struct run *r, struct rings_result *result)
{
	unsigned n = r->setup->windows;

	for (unsigned i = 0; i < r->lanes; i++) {
		if (!r->lane[i].fault)
			continue;
		fprintf(stderr, "pcpbench: rings: %s\n", r->lane[i].fault);
		return false;
	}
	qsort(r->gbps, n, sizeof(r->gbps[0]), double_compare);
	result->gbps = r->gbps[n / 2];
	result->p25 = r->gbps[n / 4];
	result->p75 = r->gbps[3 * n / 4];
	result->lock_share = lock_share(r);
	sides_fill(r, result);
	result->disturbed = r->disturbed;
	result->discarded = r->tried - r->kept;
	return true;
}

/* Zeroed, or the process ends. */
static void *zeroed(size_t align, size_t bytes)
{
	void *p = aligned_alloc(align, (bytes + align - 1) / align * align);

	if (!p) {
		fprintf(stderr, "pcpbench: rings: %s\n", strerror(ENOMEM));
		exit(1);
	}
	return memset(p, 0, bytes);
}

bool rings_real_run(const struct rings_setup *setup, struct rings_result *result)
{
	struct run r = {.setup = setup};
	pthread_t thread[SIM_CORES];
	bool shared, ok;

	if (!rings_real_fits(setup->rings, setup->cpus, &shared))
		return false;
	r.lanes = shared ? setup->rings : 2 * setup->rings;
	if (r.lanes > SIM_CORES)
		return false;
	r.ring = zeroed(_Alignof(struct ring), setup->rings * sizeof(r.ring[0]));
	r.lane = zeroed(_Alignof(struct lane), r.lanes * sizeof(r.lane[0]));
	r.gbps = zeroed(64, setup->windows * sizeof(r.gbps[0]));
	lanes_lay(&r, shared);
	pthread_barrier_init(&r.gate, NULL, r.lanes);
	r.since = r.window_end = bench_tsc_read();
	r.gap = (uint64_t)(GAP_NS * setup->ticks_per_ns);
	lanes_run(&r, thread);
	pthread_barrier_destroy(&r.gate);
	ok = result_fill(&r, result);
	ok = rings_store_whole(setup->store) && ok;
	free(r.ring);
	free(r.lane);
	free(r.gbps);
	return ok;
}
