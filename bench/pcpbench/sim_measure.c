/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sim_measure.c - see sim_measure.h.
 *
 *   what                 how
 *   line                 half a round trip
 *   lock.take            a mutex, taken and dropped, alone
 *   lock.hand_over       two threads at one ticket lock with nothing to do inside
 *   kernel: holds        kpcp's own counters of the time its lock was held
 *   kernel: hits         what is left of a call
 *   pcpalloc: hits       half a pair
 *   pcpalloc: zone       a drained heap's first pages, and draining them: near.
 *                        far: the lines of sim_costs.c on top
 *   depot                what is left of a call, by 64; of what that is on one CPU a
 *                        half is taken to be outside the lock
 *   counts, bursts       as the real run does them
 *   packets              a real run whose pages nobody allocates, busy time
 */
#include "sim_measure.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"
#include "rings_real.h"
#include "rtt.h"
#include "spsc.h"
#include "tsc.h"

enum { PAGES = 1024, ROUNDS = 41, FIRST = 8192, LOCK_ROUNDS = 20000 };
enum { DEPOT_BATCH = 64, SPINS_BEFORE_YIELD = 10000 };

/* One side's part of a round, timed. */
struct side {
	struct rings_user user;
	uint64_t ticks[ROUNDS];
	unsigned round;
};

struct bench {
	double ticks_per_ns;
	struct rings_store *store;
	struct bench_peer peer;
	struct side side[2]; /* who has pages first; who gets them */
	void *page[PAGES];
	struct spsc ring;
	struct bench_gate gate;
	_Alignas(128) _Atomic unsigned turn; /* whose it is, of all rounds */
	_Alignas(128) _Atomic unsigned ticket;
	_Alignas(128) _Atomic unsigned served;
};

typedef void (*part)(struct bench *b, struct side *s);

struct job {
	struct bench *b;
	struct side *s;
	part run;
};

static int ticks_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void part_run(struct job *j)
{
	uint64_t start = bench_tsc_read();

	j->run(j->b, j->s);
	j->s->ticks[j->s->round++ % ROUNDS] = bench_tsc_read() - start;
}

/* Until *word is `value`.  On a busy machine who is awaited may not run. */
static void word_await(_Atomic unsigned *word, unsigned value)
{
	/* pairs with turn_pass(), and the ticket lock's drop. */
	for (unsigned spins = 1;
	     atomic_load_explicit(word, memory_order_acquire) != value; spins++)
		if (spins % SPINS_BEFORE_YIELD == 0)
			sched_yield();
}

static void turn_await(struct bench *b, unsigned turn)
{
	word_await(&b->turn, turn);
}

static void turn_pass(struct bench *b, unsigned turn)
{
	/* pairs with word_await(). */
	atomic_store_explicit(&b->turn, turn, memory_order_release);
}

static void rounds_there(void *arg)
{
	struct job *j = arg;

	for (unsigned r = 0; r < ROUNDS; r++) {
		turn_await(j->b, 2 * r + 1);
		part_run(j);
		turn_pass(j->b, 2 * r + 2);
	}
}

/* Whoever waits spins: a CPU that sleeps may write its caches back, and its lines
 * then cost others less than they do in a pipeline. */
static void rounds_far(struct bench *b, struct job *here, struct job *there)
{
	turn_pass(b, 0);
	bench_peer_run(&b->peer, rounds_there, there);
	for (unsigned r = 0; r < ROUNDS; r++) {
		part_run(here);
		turn_pass(b, 2 * r + 1);
		turn_await(b, 2 * r + 2);
	}
	bench_peer_wait(&b->peer);
}

/* Both parts in turns, the second one over there (far) or here; ns of each. */
static void rounds_run(struct bench *b, part first, part second, bool far,
		       double ns[2])
{
	struct job job[2] = {{b, &b->side[0], first}, {b, &b->side[1], second}};

	for (int i = 0; i < 2; i++)
		b->side[i].round = 0;
	for (int r = 0; r < ROUNDS && !far; r++) {
		part_run(&job[0]);
		part_run(&job[1]);
	}
	if (far)
		rounds_far(b, &job[0], &job[1]);
	for (int i = 0; i < 2; i++) {
		qsort(b->side[i].ticks, ROUNDS, sizeof(uint64_t), ticks_compare);
		ns[i] = (double)b->side[i].ticks[ROUNDS / 2] / b->ticks_per_ns;
	}
}

/* ---- Parts ----------------------------------------------------------------- */

static void part_take(struct bench *b, struct side *s)
{
	for (int i = 0; i < PAGES; i++)
		b->page[i] = rings_take(&s->user);
}

static void part_give(struct bench *b, struct side *s)
{
	for (int i = 0; i < PAGES; i++)
		rings_give(&s->user, b->page[i]);
}

/* Gives all back to the depot, by whatever the cache may hold. */
static void part_flush(struct bench *b, struct side *s)
{
	part_give(b, s);
	pcpa_thread_flush(b->store->heap);
}

static void part_pairs(struct bench *b, struct side *s)
{
	(void)b;
	for (int i = 0; i < PAGES; i++)
		rings_give(&s->user, rings_take(&s->user));
}

static void part_ref(struct bench *b, struct side *s)
{
	(void)s;
	for (int i = 0; i < PAGES; i++)
		/* as the real run's. */
		atomic_fetch_add_explicit(rings_ref(b->store, b->page[i]), 1,
					  memory_order_acq_rel);
}

static void part_push(struct bench *b, struct side *s)
{
	(void)s;
	for (int i = 0; i < SPSC_BURSTS; i++)
		spsc_push(&b->ring, b->page);
}

static void part_pop(struct bench *b, struct side *s)
{
	(void)s;
	for (int i = 0; i < SPSC_BURSTS; i++)
		spsc_pop(&b->ring, b->page);
}

static void part_mutex(struct bench *b, struct side *s)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	(void)b;
	(void)s;
	for (int i = 0; i < PAGES; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

static void tickets_take(struct bench *b)
{
	bench_gate_pass(&b->gate);
	for (int i = 0; i < LOCK_ROUNDS; i++) {
		/* relaxed: the order comes from served. */
		unsigned mine = atomic_fetch_add_explicit(&b->ticket, 1,
							  memory_order_relaxed);

		word_await(&b->served, mine);
		/* pairs with word_await(). */
		atomic_store_explicit(&b->served, mine + 1,
				      memory_order_release);
	}
}

static void tickets_there(void *arg)
{
	tickets_take(arg);
}

/* ---- Costs ----------------------------------------------------------------- */

/* a - b, where noise may have made it negative. */
static double rest(double a, double b)
{
	return a > b ? a - b : 0;
}

static void lock_measure(struct bench *b, struct sim_costs *c)
{
	double ns[2];
	uint64_t start;

	rounds_run(b, part_mutex, part_mutex, false, ns);
	c->lock.take = ns[0] / PAGES;
	bench_peer_run(&b->peer, tickets_there, b);
	start = bench_tsc_read();
	tickets_take(b);
	bench_peer_wait(&b->peer);
	c->lock.hand_over = (double)(bench_tsc_read() - start) /
			    b->ticks_per_ns / (2 * LOCK_ROUNDS);
	c->lock.per_waiter = c->line;
}

/* Counts of pages that are out, and bursts. */
static void refs_measure(struct bench *b, struct sim_costs *c)
{
	double ns[2];

	part_take(b, &b->side[0]);
	rounds_run(b, part_ref, part_ref, false, ns);
	c->ref_near = ns[1] / PAGES;
	rounds_run(b, part_ref, part_ref, true, ns);
	c->ref_far = (ns[0] + ns[1]) / 2 / PAGES;
	part_give(b, &b->side[0]);
	rounds_run(b, part_push, part_pop, true, ns);
	c->push = ns[0] / SPSC_BURSTS;
	c->pop = ns[1] / SPSC_BURSTS;
}

/* Holds of kpcp's lock since `from`, ns a page. */
static double hold_ns(const struct bench *b, const struct side *s,
		      const struct kpcp_counters *from, bool refills)
{
	const struct kpcp_counters *now = &s->user.kpcp.counters;
	uint64_t ticks = now->lock_hold_ticks - from->lock_hold_ticks;
	uint64_t pages = refills ? now->refill_pages - from->refill_pages
				 : now->drain_pages - from->drain_pages;

	return pages ? (double)ticks / b->ticks_per_ns / (double)pages : 0;
}

static void kernel_turn(struct bench *b, bool far, double *take, double *give,
			double ns[2])
{
	struct kpcp_counters from[2] = {b->side[0].user.kpcp.counters,
					b->side[1].user.kpcp.counters};

	rounds_run(b, part_take, part_give, far, ns);
	*take = hold_ns(b, &b->side[0], &from[0], true);
	*give = hold_ns(b, &b->side[1], &from[1], false);
}

static void kernel_measure(struct bench *b, struct sim_costs *c)
{
	struct sim_alloc_costs *k = &c->kernel;
	double ns[2];

	kernel_turn(b, false, &k->take_near, &k->give_near, ns);
	kernel_turn(b, true, &k->take_far, &k->give_far, ns);
	/* A call without its hold, and without the lock's line. */
	k->look = 0;
	k->alloc = rest(ns[0] / PAGES,
			k->take_far + (c->lock.take + c->line) / KPCP_BATCH);
	k->free = rest(ns[1] / PAGES,
		       k->give_far + (c->lock.take + c->line) / KPCP_BATCH);
}

/* A drained heap's pages come from its zone. */
static bool zone_measure(struct bench *b, struct sim_costs *c)
{
	static void *page[FIRST];
	struct side *s = &b->side[0];
	uint64_t start, taken, drained;

	pcpa_heap_drain(b->store->heap);
	start = bench_tsc_read();
	for (int i = 0; i < FIRST; i++)
		if (!(page[i] = rings_take(&s->user)))
			return false;
	taken = bench_tsc_read() - start;
	for (int i = 0; i < FIRST; i++)
		rings_give(&s->user, page[i]);
	start = bench_tsc_read();
	pcpa_heap_drain(b->store->heap);
	drained = bench_tsc_read() - start;
	c->pcpalloc.take_near = rest((double)taken / b->ticks_per_ns / FIRST,
				     c->pcpalloc.alloc);
	c->pcpalloc.give_near = (double)drained / b->ticks_per_ns / FIRST;
	c->pcpalloc.take_far = c->pcpalloc.take_near + c->line / 16;
	c->pcpalloc.give_far = c->pcpalloc.give_near + c->line / 4;
	return true;
}

/* What a hand-over of 64 adds to the hits, as a whole. */
static double depot_ns(double ns, double hit)
{
	return rest(ns / PAGES, hit) * DEPOT_BATCH;
}

static bool library_measure(struct bench *b, struct sim_costs *c)
{
	double ns[2], near, far;

	rounds_run(b, part_pairs, part_pairs, false, ns);
	c->pcpalloc.alloc = c->pcpalloc.free = ns[1] / PAGES / 2;
	if (!zone_measure(b, c))
		return false;
	/* Pages come from the depot from the second round on. */
	rounds_run(b, part_take, part_give, true, ns);
	far = depot_ns((ns[0] + ns[1]) / 2, c->pcpalloc.alloc);
	/* Near: what a hand-over takes beside its lines. */
	rounds_run(b, part_take, part_flush, false, ns);
	near = depot_ns(ns[0], c->pcpalloc.alloc);
	c->pcpalloc.look = near / 2;
	c->depot_fixed = rest(near / 2, c->lock.take);
	c->depot_near = 0;
	c->depot_far = rest(far, near + c->line) / DEPOT_BATCH;
	return true;
}

/* A store for both sides; the second user is the peer's only while it runs, and
 * the library's caches are the threads' anyway. */
static void store_begin(struct bench *b, struct rings_store *store)
{
	b->store = store;
	for (int i = 0; i < 2; i++)
		rings_user_begin(&b->side[i].user, store);
}

static bool store_end(struct bench *b)
{
	for (int i = 0; i < 2; i++)
		rings_user_end(&b->side[i].user);
	return rings_store_whole(b->store);
}

static bool all_measure(struct bench *b, struct rings_store *stores,
			struct sim_costs *c)
{
	bool ok;

	lock_measure(b, c);
	store_begin(b, &stores[SIM_KERNEL]);
	kernel_measure(b, c);
	if (!store_end(b))
		return false;
	store_begin(b, &stores[SIM_MODERN]);
	ok = library_measure(b, c);
	refs_measure(b, c);
	return store_end(b) && ok;
}

bool sim_measure_packets(const int cpu[2], double ticks_per_ns, unsigned windows,
			 struct rings_store *store, struct sim_costs *costs)
{
	const struct rings_setup setup = {
		.store = store,
		.rings = 1,
		.cpu = cpu,
		.cpus = 2,
		.ticks_per_ns = ticks_per_ns,
		.windows = windows,
	};
	struct rings_result r;

	if (!rings_real_run(&setup, &r))
		return false;
	costs->receive = rest(r.receive_ns, costs->push / SPSC_BURST);
	costs->consume = rest(r.consume_ns, costs->pop / SPSC_BURST);
	return true;
}

bool sim_measure(const int cpu[2], double ticks_per_ns,
		 struct rings_store stores[SIM_ALLOCATORS],
		 struct sim_costs *costs)
{
	struct bench *b = aligned_alloc(128, (sizeof(*b) + 127) / 128 * 128);
	bool ok = b != NULL;

	*costs = (struct sim_costs){.name = "here"};
	if (!ok)
		return false;
	memset(b, 0, sizeof(*b));
	b->ticks_per_ns = ticks_per_ns;
	costs->line = bench_rtt_measure(cpu[1], ticks_per_ns) / 2;
	ok = bench_pin(cpu[0]) == 0 && bench_peer_start(&b->peer, cpu[1]) == 0;
	if (ok) {
		ok = all_measure(b, stores, costs);
		bench_peer_stop(&b->peer);
	} else {
		fprintf(stderr, "pcpbench: rings: no CPUs %d and %d\n", cpu[0],
			cpu[1]);
	}
	free(b);
	return ok;
}
