/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * core_fixture.h - a heap's parts without the heap: zones, caches and what
 * they share, on the fake machine, with a clock that tests turn.
 *
 *     parts.space -> parts.zones[] -> caches by parts_cache()
 *                         parts.env, .orders, .now_ns, .events
 *
 * What is missing is what heap.c, thread.c and route.c add: registry, threads'
 * tables, fallback.  A test plays owner and drainer in turns.
 *
 * Concurrency: one test at a time; there is one set of parts.
 */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include "../../lib/pcp.h"
#include "../../lib/zone.h"
#include "fake_sys.h"

#define PARTS_ZONES 2
#define PARTS_CACHES 8
#define PARTS_EVENTS 4096
/* The depot batch of zones of 64 MiB and more with a thread or two. */
#define PARTS_BATCH 256u
#define PARTS_SECOND UINT64_C(1000000000)

/* What the parts are made of; zero is the default of each. */
struct parts_spec {
	unsigned nr_zones;    /* 1 */
	uint64_t max_mib;     /* per zone: 256 */
	uint64_t initial_mib; /* per zone: max_mib; PARTS_NOTHING: none */
	unsigned node_cpus;   /* 1 */
	unsigned batch, high, fraction;
	bool legacy, fixed, watched, exchange;
	bool rseq; /* where the machine has restartable sequences */
};

#define PARTS_NOTHING UINT64_MAX

struct parts {
	struct pcpi_space space;
	struct pcpi_zone zones[PARTS_ZONES];
	struct pcpi_pcp_env env;
	struct pcpi_checks checks;
	uint8_t *orders;
	void *buddies[PARTS_ZONES];
	unsigned *window_zone;
	struct pcpi_cache *caches[PARTS_CACHES];
	unsigned nr_zones, nr_caches;
	uint64_t now_ns; /* what coarse_ns says; tests turn it */

	/* Events since parts_listen(). */
	struct pcpa_event events[PARTS_EVENTS];
	unsigned nr_events;
};

extern struct parts parts;

/* Aborts where the machine has no memory for them. */
void parts_make(struct parts_spec spec);

/* All that parts_make() and parts_cache() made; whatever they hold. */
void parts_unmake(void);

/* Another cache of the zone, alive as far as the zone knows. */
struct pcpi_cache *parts_cache(unsigned zone);

/* Takes n blocks from the zone, as if they were handed out; aborts when there
 * are fewer. */
void parts_take(unsigned zone, unsigned order, uint32_t *pfns, uint32_t n);

/* Records the events of parts.env from now on. */
void parts_listen(void);

/* Pages of all recorded events of a kind; their number in *n (may be NULL). */
uint64_t parts_heard(enum pcpa_event_kind kind, unsigned *n);

/* Pages that are in the zone's buddy, its depots, and in caches and outboxes
 * of all caches. */
uint64_t parts_pages_held(unsigned zone);

/* Random number (xorshift), and a seed that differs from run to run, which is
 * printed; PCPA_TEST_SEED sets it. */
uint64_t parts_random(uint64_t *state);
uint64_t parts_seed(void);

#endif
