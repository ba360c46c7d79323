/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * work_latency.c - how long single calls take: the time-stamp counter is read
 * before and after each of them.
 *
 *   latency-pair, -churn   the loops of pair and churn, on one thread
 *   latency-remoteN        N/2 pairs of threads: one takes bursts of 32, call by
 *                          call, the other frees them, call by call
 *   latency-mixedN         N threads in a circle, orders 0-3: half of the bursts
 *                          of each are freed by the next one
 *
 *   remote:  0 --ring--> 1   2 --ring--> 3 ...     mixed:  0 -> 1 -> 2 ... -> 0
 *
 * Threads of even numbers are on the first CPU, the others on the second; with
 * more than two, those of a CPU take turns as the kernel has it, and whoever
 * waits for a ring gives the CPU away.
 *
 * No call is left out: one during which an interrupt came, or another virtual
 * machine, counts as long as it took, for every allocator alike.  With no more
 * threads than CPUs a repetition in which the kernel gave the CPU of one away is
 * lost as a whole.  The clock's own time is part of each call and told beside them.
 */
#include "lane.h"

#include <sched.h>

#include "hist.h"
#include "tsc.h"

enum {
	THREADS_MAX = 8,
	REPETITION_BURSTS = 1024,
	WARM_BURSTS = 64,
	REPETITION_NS = 10000000, /* less bursts where they are slow */
	CLOCK_READINGS = 10001,
	CPUS = 2,
};

#define VALUE_PART 0.999

/* One thread's part of a repetition. */
struct side {
	struct bench_lane *lane;
	struct spsc *in, *out; /* NULL: none */
	pthread_barrier_t *start;
	bool mixed;
	uint64_t limit_ticks;
	long losses; /* of the CPU, in this repetition */
	struct hist *taking, *giving; /* where a call is noted: warm_up or the below */
	struct hist taken, given, warm_up;
};

static struct latency {
	unsigned threads; /* beside the main one; 0: that alone */
	bool mixed;
	struct ops_shared *shared;
	struct bench_peer peer[THREADS_MAX];
	struct bench_lane lane[THREADS_MAX];
	struct spsc ring[THREADS_MAX];
	struct side side[THREADS_MAX];
	pthread_barrier_t start;
	/* The last repetition, which another try of the same turn replaces, and
	 * those before. */
	unsigned last_turn;
	struct hist last_taken, last_given;
	struct hist taken, given;
} latency;

/* ---- The clock ---- */

/* Nothing of the call begins before. */
static inline uint64_t call_begin(void)
{
	uint64_t ticks = bench_tsc_read();

#if defined(__x86_64__)
	_mm_lfence();
#endif
	return ticks;
}

static double clock_measure(double ticks_per_ns)
{
	static struct hist h;

	h = (struct hist){.calls = 0};
	for (int i = 0; i < CLOCK_READINGS; i++) {
		uint64_t begin = call_begin();

		hist_note(&h, bench_tsc_read() - begin);
	}
	return (double)hist_percentile(&h, 0.5) / ticks_per_ns;
}

/* ---- Single calls ---- */

static inline void *timed_take(struct side *s, unsigned order)
{
	uint64_t begin = call_begin();
	void *p = ops_take(&s->lane->ops, order);

	hist_note(s->taking, bench_tsc_read() - begin);
	bench_consume(p);
	return p;
}

static inline void timed_give(struct side *s, void *p, unsigned order)
{
	uint64_t begin = call_begin();

	ops_give(&s->lane->ops, p, order);
	hist_note(s->giving, bench_tsc_read() - begin);
}

/* What comes first fills caches that others had in between. */
static void side_note(struct side *s, bool warm)
{
	s->taking = warm ? &s->warm_up : &s->taken;
	s->giving = warm ? &s->warm_up : &s->given;
}

static uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

/* ---- One thread ---- */

static void pair_side(struct side *s)
{
	for (int i = 0; i < SPSC_BURST; i++)
		timed_give(s, timed_take(s, 0), 0);
}

static void churn_side(struct side *s)
{
	struct bench_lane *l = s->lane;

	for (int i = 0; i < SPSC_BURST; i++) {
		uint64_t x = random_next(&l->random);
		size_t slot = x % LANE_LIVE;
		unsigned order = (unsigned)(x >> 32) % OPS_ORDERS;

		timed_give(s, l->blocks[slot], l->orders[slot]);
		l->blocks[slot] = timed_take(s, order);
		l->orders[slot] = (uint8_t)order;
	}
}

static void alone_run(struct side *s)
{
	uint64_t end = bench_tsc_read() + s->limit_ticks;

	s->losses = -bench_cpu_losses();
	for (int b = 0; b < REPETITION_BURSTS + WARM_BURSTS; b++) {
		side_note(s, b < WARM_BURSTS);
		if (s->mixed)
			churn_side(s);
		else
			pair_side(s);
		if (b > WARM_BURSTS && bench_tsc_read() > end)
			break;
	}
	s->losses += bench_cpu_losses();
}

/* ---- Several ---- */

static void ring_wait(unsigned *spins)
{
	if (++*spins % 64 == 0)
		sched_yield();
	else
		bench_pause();
}

/* The order travels in the low bits of the address. */
static void burst_take(struct side *s, void **burst)
{
	for (int i = 0; i < SPSC_BURST; i++) {
		unsigned order =
			s->mixed ? (unsigned)(random_next(&s->lane->random) >>
					      32) % OPS_ORDERS
				 : 0;

		burst[i] = (char *)timed_take(s, order) + order;
	}
}

static void burst_give(struct side *s, void **burst)
{
	for (int i = 0; i < SPSC_BURST; i++) {
		unsigned order = (uintptr_t)burst[i] % OPS_PAGE_BYTES;

		timed_give(s, (char *)burst[i] - order, order);
	}
}

/* A burst of NULLs ends a stream. */
static bool burst_ends(void *const *burst)
{
	return !burst[0];
}

static void taker_run(struct side *s)
{
	uint64_t end = bench_tsc_read() + s->limit_ticks;
	void *burst[SPSC_BURST] = {NULL};
	unsigned spins = 0;

	for (int b = 0; b < REPETITION_BURSTS + WARM_BURSTS; b++) {
		side_note(s, b < WARM_BURSTS);
		burst_take(s, burst);
		while (!spsc_push(s->out, burst))
			ring_wait(&spins);
		if (b > WARM_BURSTS && bench_tsc_read() > end)
			break;
	}
	burst[0] = NULL;
	while (!spsc_push(s->out, burst))
		ring_wait(&spins);
}

static void giver_run(struct side *s)
{
	void *burst[SPSC_BURST];
	unsigned spins = 0;

	for (int b = 0;; b++) {
		side_note(s, b < WARM_BURSTS);
		while (!spsc_pop(s->in, burst))
			ring_wait(&spins);
		if (burst_ends(burst))
			return;
		burst_give(s, burst);
	}
}

/* Frees what the one before has sent, if anything; true: that was the last. */
static bool mixed_receive(struct side *s)
{
	void *burst[SPSC_BURST];

	if (!spsc_pop(s->in, burst))
		return false;
	if (burst_ends(burst))
		return true;
	burst_give(s, burst);
	return false;
}

static void mixed_run(struct side *s)
{
	uint64_t end = bench_tsc_read() + s->limit_ticks;
	void *burst[SPSC_BURST], *last[SPSC_BURST] = {NULL};
	bool ended = false;
	unsigned spins = 0;

	for (int b = 0; b < REPETITION_BURSTS + WARM_BURSTS; b++) {
		side_note(s, b < WARM_BURSTS);
		burst_take(s, burst);
		if (!(random_next(&s->lane->random) >> 32 & 1) ||
		    !spsc_push(s->out, burst))
			burst_give(s, burst);
		ended = ended || mixed_receive(s);
		if (b > WARM_BURSTS && bench_tsc_read() > end)
			break;
	}
	while (!spsc_push(s->out, last)) {
		ended = ended || mixed_receive(s);
		ring_wait(&spins);
	}
	while (!ended && !(ended = mixed_receive(s)))
		ring_wait(&spins);
}

static void side_main(void *arg)
{
	struct side *s = arg;

	pthread_barrier_wait(s->start);
	s->losses = -bench_cpu_losses();
	if (s->mixed)
		mixed_run(s);
	else if (s->out)
		taker_run(s);
	else
		giver_run(s);
	s->losses += bench_cpu_losses();
}

/* ---- A workload ---- */

static void side_attach(void *arg)
{
	struct side *s = arg;

	s->lane = &latency.lane[s - latency.side];
	bench_lane_open(s->lane, latency.shared,
			0x2545f4914f6cdd1du + (uint64_t)(s - latency.side));
}

static void side_detach(void *arg)
{
	struct side *s = arg;

	bench_lane_close(s->lane);
}

/* Has fn run on all threads, and waits. */
static void sides_do(void (*fn)(void *))
{
	for (unsigned i = 0; i < latency.threads; i++)
		bench_peer_run(&latency.peer[i], fn, &latency.side[i]);
	for (unsigned i = 0; i < latency.threads; i++)
		bench_peer_wait(&latency.peer[i]);
}

static void side_connect(unsigned i)
{
	struct side *s = &latency.side[i];
	unsigned n = latency.threads;

	s->start = &latency.start;
	s->mixed = latency.mixed;
	if (latency.mixed) {
		s->out = &latency.ring[i];
		s->in = &latency.ring[(i + n - 1) % n];
	} else {
		s->out = i % 2 ? NULL : &latency.ring[i];
		s->in = i % 2 ? &latency.ring[i - 1] : NULL;
	}
}

static void threads_start(struct bench_worker *w)
{
	latency.shared = &w->shared;
	if (pthread_barrier_init(&latency.start, NULL, latency.threads))
		bench_die("no barrier");
	for (unsigned i = 0; i < latency.threads; i++) {
		if (bench_peer_start(&latency.peer[i], w->cpu[i % 2]))
			bench_die("a thread can't be started");
		spsc_init(&latency.ring[i]);
		side_connect(i);
	}
	sides_do(side_attach);
}

static void repetition_do(struct bench_worker *w)
{
	unsigned sides = latency.threads ? latency.threads : 1;

	for (unsigned i = 0; i < sides; i++) {
		struct side *s = &latency.side[i];

		s->taken = s->given = (struct hist){.calls = 0};
		s->limit_ticks = (uint64_t)(REPETITION_NS * w->ticks_per_ns);
	}
	if (latency.threads)
		sides_do(side_main);
	else
		alone_run(&latency.side[0]);
}

void bench_latency_prepare(struct bench_worker *w, unsigned workload)
{
	unsigned n = bench_workloads[workload].threads;

	latency.threads = n > 1 ? n : 0;
	latency.mixed = workload == BENCH_LATENCY_CHURN ||
			workload == BENCH_LATENCY_MIXED2 ||
			workload == BENCH_LATENCY_MIXED8;
	latency.taken = latency.given = (struct hist){.calls = 0};
	latency.last_taken = latency.last_given = (struct hist){.calls = 0};
	if (latency.threads) {
		threads_start(w);
	} else {
		latency.side[0].lane = &w->lane[0];
		latency.side[0].mixed = latency.mixed;
		bench_local_prepare(&w->lane[0],
				    latency.mixed ? BENCH_CHURN : BENCH_PAIR,
				    w->ticks_per_ns);
	}
	repetition_do(w);
}

/* What the last repetition noted is final. */
static void last_keep(void)
{
	hist_add(&latency.taken, &latency.last_taken);
	hist_add(&latency.given, &latency.last_given);
}

void bench_latency_run(struct bench_worker *w, unsigned turn,
		       struct wire_reply *r)
{
	struct hist *taken = &latency.last_taken, *given = &latency.last_given;
	unsigned sides = latency.threads ? latency.threads : 1;
	long losses = 0;

	if (turn != latency.last_turn)
		last_keep();
	latency.last_turn = turn;
	*taken = *given = (struct hist){.calls = 0};
	repetition_do(w);
	for (unsigned i = 0; i < sides; i++) {
		hist_add(taken, &latency.side[i].taken);
		hist_add(given, &latency.side[i].given);
		losses += latency.side[i].losses;
	}
	r->lost = sides <= CPUS && losses > 0;
	r->pages = taken->calls;
	r->value = (double)hist_percentile(taken, VALUE_PART) / w->ticks_per_ns;
}

static void curve_fill(struct wire_point *curve, const struct hist *h,
		       double ticks_per_ns)
{
	/* The eighth root of a tenth: so much of what is above a point is above
	 * the next. */
	const double step = 0.74989420933245583;
	double above = 1;

	for (int i = 0; i < WIRE_CURVE; i++) {
		double part = i ? 1 - (above *= step) : 0.01;

		curve[i].percentile = 100 * part;
		curve[i].ns = (double)hist_percentile(h, part) / ticks_per_ns;
	}
}

static struct wire_latency summary(const struct hist *h, double ticks_per_ns)
{
	static const double part[WIRE_PERCENTILES] = {0.5, 0.99, 0.999, 0.9999};
	struct wire_latency out = {.calls = h->calls};

	for (int i = 0; i < WIRE_PERCENTILES; i++)
		out.percentile[i] =
			(double)hist_percentile(h, part[i]) / ticks_per_ns;
	out.longest = (double)h->longest / ticks_per_ns;
	curve_fill(out.curve, h, ticks_per_ns);
	return out;
}

void bench_latency_finish(struct bench_worker *w, struct wire_reply *r)
{
	last_keep();
	r->taking = summary(&latency.taken, w->ticks_per_ns);
	r->giving = summary(&latency.given, w->ticks_per_ns);
	r->clock_ns = clock_measure(w->ticks_per_ns);
	if (!latency.threads) {
		bench_local_finish(&w->lane[0],
				   latency.mixed ? BENCH_CHURN : BENCH_PAIR);
		return;
	}
	sides_do(side_detach);
	for (unsigned i = 0; i < latency.threads; i++)
		bench_peer_stop(&latency.peer[i]);
	pthread_barrier_destroy(&latency.start);
}
