/* SPDX-License-Identifier: BSD-2-Clause */
/* sim_rings.c - see sim_rings.h. */
#include "sim_rings.h"

#include <stdlib.h>

#include "spsc.h"

enum { DESCRIPTORS = 1024 };

/* Per mille by which work varies, from burst to burst and from packet to packet. */
enum { BURST_SPREAD = 500, PACKET_SPREAD = 200 };

/* Bit i of a burst: consuming packet i frees a page. */
typedef uint32_t burst_mask;
_Static_assert(SPSC_BURST == 32, "a bit for each packet of a burst");

enum job { JOB_NONE, JOB_RECEIVE, JOB_CONSUME };

/* What a core's event means. */
enum phase { PHASE_MEET, PHASE_ASK, PHASE_DROP };

struct ring {
	burst_mask burst[SPSC_BURSTS];
	uint64_t head, tail;   /* bursts */
	uint64_t arrives;      /* ps: when the next packet can be had */
	uint64_t taken, done;  /* driver 3: its pages' packets so far */
	uint32_t held;	       /* driver 3: pages in its cache */
	bool half;	       /* driver 1: the page has a packet so far */
	uint32_t application;  /* cores */
	uint32_t receiver;
};

struct core {
	uint64_t clock;	     /* ps; ahead of the events' time */
	uint64_t busy, wait; /* ps */
	uint64_t asked;	     /* ps: since when it waits for a lock */
	struct sim_cache cache;
	struct sim_op op;
	struct sim_lock *lock; /* it asked for or holds */
	struct ring *receives, *consumes;
	enum job job, last;
	enum phase phase;
	bool idle;
	uint32_t at;	 /* packet of the burst */
	burst_mask mask; /* of that burst; consumed bits are cleared */
	uint32_t kept;	 /* packets of it whose page stays the driver's */
	uint32_t pace; /* per mille of the usual work, in this burst */
	uint32_t random;
};

struct machine {
	const struct sim_setup *setup;
	const struct sim_costs *costs;
	struct sim_heap heap;
	struct sim_queue queue;
	struct ring ring[SIM_RINGS];
	struct core core[SIM_CORES];
	uint32_t cores;
	uint64_t packets;
	uint64_t packet_ps; /* between two arrivals of a ring; 0: no wire */
};

/* ---- Time ------------------------------------------------------------------ */

static void spend(struct core *c, uint64_t ps)
{
	c->clock += ps;
	c->busy += ps;
}

static void post(struct machine *m, struct core *c, enum phase phase)
{
	c->phase = phase;
	sim_queue_put(&m->queue, c->clock, (uint32_t)(c - m->core));
}

/* Per mille of 1000 +- spread (xorshift). */
static uint32_t dice(struct core *c, uint32_t spread)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 17;
	c->random ^= c->random << 5;
	return 1000 - spread + c->random % (2 * spread + 1);
}

/* Work on a packet: as this burst's goes, and a little more or less. */
static uint64_t work(struct core *c, double ns)
{
	return sim_ps(ns) * c->pace / 1000 * dice(c, PACKET_SPREAD) / 1000;
}

/* ---- Packets --------------------------------------------------------------- */

/* The wire fills a ring's descriptors in advance, as many as there are. */
static void arrival_await(const struct machine *m, struct core *c)
{
	struct ring *r = c->receives;
	uint64_t ahead = DESCRIPTORS * m->packet_ps;

	if (c->clock > ahead && r->arrives < c->clock - ahead)
		r->arrives = c->clock - ahead;
	if (c->clock < r->arrives)
		c->clock = r->arrives; /* idle */
	r->arrives += m->packet_ps;
}

static void page_begin(struct core *c, bool freed_with_packet)
{
	sim_alloc_begin(&c->op);
	if (freed_with_packet)
		c->mask |= 1u << c->at;
}

/* The oldest page, if its packet was consumed; else one more. */
static void driver3_page(const struct machine *m, struct core *c)
{
	struct ring *r = c->receives;

	spend(c, sim_ps(m->costs->ref_far));
	if (r->taken - r->done >= r->held && r->held == m->setup->driver_pages) {
		page_begin(c, true);
		return;
	}
	if (r->taken - r->done >= r->held) {
		r->held++;
		page_begin(c, false);
	}
	r->taken++;
}

static void packet_receive(const struct machine *m, struct core *c)
{
	struct ring *r = c->receives;

	arrival_await(m, c);
	spend(c, work(c, m->costs->receive));
	if (m->setup->driver == 1) {
		if (!r->half)
			page_begin(c, false);
		else
			c->mask |= 1u << c->at;
		spend(c, sim_ps(m->costs->ref_near));
		r->half = !r->half;
	} else if (m->setup->driver == 2) {
		page_begin(c, true);
	} else {
		driver3_page(m, c);
	}
}

static void packet_consume(const struct machine *m, struct core *c)
{
	burst_mask bit = 1u << c->at;
	double ref = 0;

	/* A page's first packet finds the count where the receiver left it. */
	if (m->setup->driver == 1)
		ref = c->mask & bit ? m->costs->ref_near : m->costs->ref_far;
	else if (m->setup->driver == 3)
		ref = m->costs->ref_far;
	spend(c, work(c, m->costs->consume) + sim_ps(ref));
	if (c->mask & bit)
		sim_free_begin(&c->op);
	c->mask &= ~bit;
}

/* ---- Bursts: where cores meet ----------------------------------------------- */

static void wake(struct machine *m, uint32_t core, uint64_t now)
{
	struct core *c = &m->core[core];

	if (!c->idle)
		return;
	c->idle = false;
	c->clock = now + sim_ps(m->costs->line);
	post(m, c, PHASE_MEET);
}

static void burst_end(struct machine *m, struct core *c, uint64_t now)
{
	struct ring *r;

	if (c->job == JOB_RECEIVE) {
		r = c->receives;
		r->burst[r->head++ % SPSC_BURSTS] = c->mask;
		wake(m, r->application, now);
	} else if (c->job == JOB_CONSUME) {
		m->packets += SPSC_BURST;
		c->consumes->done += c->kept;
	}
	c->last = c->job;
	c->job = JOB_NONE;
	c->mask = 0;
}

static bool receive_begin(struct machine *m, struct core *c)
{
	struct ring *r = c->receives;

	if (!r || r->head - r->tail == SPSC_BURSTS)
		return false;
	c->job = JOB_RECEIVE;
	spend(c, sim_ps(m->costs->push));
	return true;
}

static bool consume_begin(struct machine *m, struct core *c, uint64_t now)
{
	struct ring *r = c->consumes;

	if (!r || r->head == r->tail)
		return false;
	c->job = JOB_CONSUME;
	c->mask = r->burst[r->tail++ % SPSC_BURSTS];
	c->kept = SPSC_BURST - (uint32_t)__builtin_popcount(c->mask);
	spend(c, sim_ps(m->costs->pop));
	wake(m, r->receiver, now);
	return true;
}

/* A core with both jobs does them in turns. */
static bool burst_begin(struct machine *m, struct core *c, uint64_t now)
{
	c->at = 0;
	c->pace = dice(c, BURST_SPREAD);
	if (c->last == JOB_RECEIVE)
		return consume_begin(m, c, now) || receive_begin(m, c);
	return receive_begin(m, c) || consume_begin(m, c, now);
}

/* ---- A core ---------------------------------------------------------------- */

/* Steps that no other core sees, up to the next event. */
static void core_run(struct machine *m, struct core *c)
{
	for (;;) {
		if (c->op.stage != SIM_OP_NONE) {
			uint64_t ps = 0;
			enum sim_next next =
				sim_op_step(&m->heap, &c->cache, &c->op, &ps);

			spend(c, ps);
			if (next == SIM_DONE) {
				c->at++;
				continue;
			}
			c->lock = next == SIM_ZONE ? &m->heap.zone
						   : &m->heap.depot;
			post(m, c, PHASE_ASK);
			return;
		}
		if (c->at == SPSC_BURST) {
			post(m, c, PHASE_MEET);
			return;
		}
		if (c->job == JOB_RECEIVE)
			packet_receive(m, c);
		else
			packet_consume(m, c);
		c->at += c->op.stage == SIM_OP_NONE;
	}
}

static void core_meet(struct machine *m, struct core *c, uint64_t now)
{
	burst_end(m, c, now);
	c->clock = now;
	if (burst_begin(m, c, now))
		core_run(m, c);
	else
		c->idle = true;
}

/* The lock is this core's from `at` on. */
static void core_granted(struct machine *m, struct core *c, uint64_t at)
{
	c->wait += at - c->asked;
	c->clock = at;
	spend(c, sim_op_locked(&m->heap, &c->cache, &c->op));
	post(m, c, PHASE_DROP);
}

static void core_ask(struct machine *m, struct core *c, uint64_t now)
{
	uint64_t at;

	c->asked = now;
	if (!sim_lock_ask(c->lock, m->costs, (uint32_t)(c - m->core), now, &at))
		return;
	/* Nobody held it: no time of waiting. */
	c->busy += at - now;
	c->asked = at;
	core_granted(m, c, at);
}

static void core_drop(struct machine *m, struct core *c, uint64_t now)
{
	uint64_t at;
	int next = sim_lock_drop(c->lock, m->costs, now, &at);

	if (next >= 0)
		core_granted(m, &m->core[next], at);
	core_run(m, c);
}

static void event_run(struct machine *m, const struct sim_event *e)
{
	struct core *c = &m->core[e->core];

	switch (c->phase) {
	case PHASE_MEET:
		core_meet(m, c, e->at);
		break;
	case PHASE_ASK:
		core_ask(m, c, e->at);
		break;
	case PHASE_DROP:
		core_drop(m, c, e->at);
		break;
	}
}

/* ---- A run ----------------------------------------------------------------- */

static void core_init(struct machine *m, uint32_t i)
{
	const struct sim_setup *s = m->setup;
	struct core *c = &m->core[i];

	c->random = (s->seed + i) * 2654435761u | 1u;
	sim_cache_init(&m->heap, &c->cache);
	if (i < s->rings)
		c->receives = &m->ring[i];
	if (s->shared)
		c->consumes = &m->ring[(i + 1) % s->rings];
	else if (i >= s->rings)
		c->consumes = &m->ring[i - s->rings];
	if (c->receives)
		c->receives->receiver = i;
	if (c->consumes)
		c->consumes->application = i;
	/* One flow after the other begins. */
	c->clock = sim_ps((double)s->warm_ns) / 2 / s->rings * (i % s->rings);
	if (c->receives)
		c->receives->arrives = c->clock;
	post(m, c, PHASE_MEET);
}

static void machine_init(struct machine *m, const struct sim_setup *s)
{
	double packet_ns = SIM_PACKET_BYTES * 8.0;

	m->setup = s;
	m->costs = s->costs;
	m->cores = s->shared ? s->rings : 2 * s->rings;
	if (s->costs->wire_gbps > 0)
		m->packet_ps = sim_ps(packet_ns / s->costs->wire_gbps * s->rings);
	sim_heap_init(&m->heap, s->allocator, s->costs, s->heap_pages, m->cores);
	for (uint32_t i = 0; i < m->cores; i++)
		core_init(m, i);
}

/* Totals so far. */
struct totals {
	uint64_t packets, busy, wait, zone_takes, zone_waits, depot_takes,
		depot_waits;
};

static struct totals totals_take(const struct machine *m)
{
	struct totals t = {
		.packets = m->packets,
		.zone_takes = m->heap.zone.takes,
		.zone_waits = m->heap.zone.waits,
		.depot_takes = m->heap.depot.takes,
		.depot_waits = m->heap.depot.waits,
	};

	for (uint32_t i = 0; i < m->cores; i++) {
		t.busy += m->core[i].busy;
		t.wait += m->core[i].wait;
	}
	return t;
}

/* Runs until so much time has passed; false: out of pages, or nobody goes on. */
static bool run_until(struct machine *m, uint64_t ps)
{
	struct sim_event e;

	while (sim_queue_take(&m->queue, &e)) {
		event_run(m, &e);
		if (m->heap.exhausted)
			return false;
		if (e.at >= ps)
			return true;
	}
	return false;
}

/* A page that was asked for and isn't there yet is already written down. */
static void page_missing(const struct machine *m, const struct core *c,
			 struct sim_result *r)
{
	if (c->op.stage == SIM_OP_NONE || c->op.stage >= SIM_FREE)
		return;
	if (m->setup->driver == 3 && !(c->mask >> c->at & 1))
		r->held--;
	else
		r->in_flight--;
}

static void pages_count(const struct machine *m, struct sim_result *r)
{
	r->managed = m->heap.managed_pages;
	r->free = m->heap.free_pages;
	r->depot = m->heap.depot_pages;
	for (uint32_t i = 0; i < m->cores; i++) {
		const struct core *c = &m->core[i];

		r->cached += c->cache.state.count;
		r->moving += c->op.stage == SIM_FREE_GIVE ? c->op.left : 0;
		r->in_flight += (unsigned)__builtin_popcount(c->mask);
		page_missing(m, c, r);
	}
	for (uint32_t i = 0; i < m->setup->rings; i++) {
		const struct ring *ring = &m->ring[i];

		for (uint64_t b = ring->tail; b != ring->head; b++)
			r->in_flight += (unsigned)__builtin_popcount(
				ring->burst[b % SPSC_BURSTS]);
		r->held += ring->held;
		r->in_flight += ring->half;
	}
}

static void result_fill(const struct machine *m, const struct totals *from,
			struct sim_result *r)
{
	struct totals to = totals_take(m);
	uint64_t busy = to.busy - from->busy, wait = to.wait - from->wait;

	*r = (struct sim_result){
		.packets = to.packets - from->packets,
		.lock_share = wait ? (double)wait / (double)(busy + wait) : 0,
		.zone_takes = to.zone_takes - from->zone_takes,
		.zone_waits = to.zone_waits - from->zone_waits,
		.depot_takes = to.depot_takes - from->depot_takes,
		.depot_waits = to.depot_waits - from->depot_waits,
		.most_waiting = pcpi_max(m->heap.zone.most, m->heap.depot.most),
	};
	r->gbps = (double)r->packets * SIM_PACKET_BYTES * 8 /
		  (double)m->setup->run_ns;
	pages_count(m, r);
}

bool sim_rings_run(const struct sim_setup *setup, struct sim_result *result)
{
	struct machine *m = calloc(1, sizeof(*m));
	struct totals warm;
	bool ok;

	if (!m)
		return false;
	machine_init(m, setup);
	ok = run_until(m, sim_ps((double)setup->warm_ns));
	warm = totals_take(m);
	ok = ok && run_until(m, sim_ps((double)(setup->warm_ns + setup->run_ns)));
	if (ok)
		result_fill(m, &warm, result);
	free(m);
	return ok;
}
