/* SPDX-License-Identifier: BSD-2-Clause */
/* core_fixture.c - see core_fixture.h. */
#include "core_fixture.h"

#include "../../lib/rseq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../lib/bits.h"

#define MIB_SHIFT 20

struct parts parts;

static uint64_t parts_coarse_ns(void)
{
	return parts.now_ns;
}

/* The fake machine with our clock. */
static void sys_install(void)
{
	static struct pcpi_sys table;

	fake_sys_install();
	table = *pcpi_sys;
	table.coarse_ns = parts_coarse_ns;
	pcpi_sys = &table;
}

/* Zero memory on a line of its own. */
static void *zeroed(size_t bytes)
{
	size_t whole = (size_t)pcpi_round_up(bytes, PCPI_CACHELINE);
	void *memory = aligned_alloc(PCPI_CACHELINE, whole);

	if (!memory)
		abort();
	return memset(memory, 0, whole);
}

static void spec_default(struct parts_spec *spec)
{
	if (spec->nr_zones == 0)
		spec->nr_zones = 1;
	if (spec->max_mib == 0)
		spec->max_mib = 256;
	if (spec->initial_mib == 0)
		spec->initial_mib = spec->max_mib;
	if (spec->initial_mib == PARTS_NOTHING)
		spec->initial_mib = 0;
	if (spec->node_cpus == 0)
		spec->node_cpus = 1;
}

static void space_make(const struct parts_spec *spec)
{
	struct pcpi_space_node_spec nodes[PARTS_ZONES];
	struct pcpi_space_spec space = {
		.nodes = nodes,
		.nr_nodes = spec->nr_zones,
	};
	unsigned z;

	for (z = 0; z < spec->nr_zones; z++)
		nodes[z] = (struct pcpi_space_node_spec){
			.os_node = 10 * z,
			.max_bytes = spec->max_mib << MIB_SHIFT,
		};
	if (pcpi_space_create(&parts.space, &space))
		abort();
}

static void env_make(const struct parts_spec *spec)
{
	struct pcpi_space *space = &parts.space;
	unsigned w;

	parts.orders = zeroed((size_t)(space->bytes >> space->page_shift));
	parts.window_zone = zeroed(space->nr_windows * sizeof(unsigned));
	for (w = 0; w < space->nr_windows; w++)
		parts.window_zone[w] = space->windows[w].node;
	parts.env = (struct pcpi_pcp_env){
		.base = space->base,
		.page_shift = space->page_shift,
		.zones = parts.zones,
		.nr_zones = spec->nr_zones,
		.orders = parts.orders,
		.window_zone = parts.window_zone,
		.window_pfn_shift = space->window_shift - space->page_shift,
		.watched = spec->watched,
		.exchange = spec->exchange,
		.rseq = spec->rseq && pcpi_rseq_setup(),
	};
}

static void zone_make(const struct parts_spec *spec, unsigned z)
{
	struct pcpi_space *space = &parts.space;
	const struct pcpi_space_node *node = &space->nodes[z];
	unsigned shift = space->window_shift - space->page_shift;
	uint32_t pages = node->nr_windows << shift;
	struct pcpi_zone_config config = {
		.position = z,
		.os_node = node->os_node,
		.node_cpus = spec->node_cpus,
		.all_cpus = spec->node_cpus,
		.batch_pages = spec->batch,
		.high_pages = spec->high,
		.high_fraction = spec->fraction,
		.legacy = spec->legacy,
		.fixed = spec->fixed,
		.max_pages = node->max_bytes >> space->page_shift,
		.checks = spec->watched ? &parts.checks : NULL,
	};
	uint64_t grown;

	parts.buddies[z] = zeroed(pcpi_buddy_meta_bytes(
		pages >> space->top_order, space->top_order));
	if (pcpi_zone_init(&parts.zones[z], &config, space, parts.orders,
			   parts.buddies[z], node->first_window << shift, pages))
		abort();
	if (spec->initial_mib > 0 &&
	    pcpi_zone_grow(&parts.zones[z], 0, spec->initial_mib << MIB_SHIFT,
			   true, &grown))
		abort();
}

void parts_make(struct parts_spec spec)
{
	unsigned z;

	memset(&parts, 0, sizeof(parts));
	parts.now_ns = 100 * PARTS_SECOND;
	sys_install();
	spec_default(&spec);
	space_make(&spec);
	env_make(&spec);
	parts.nr_zones = spec.nr_zones;
	for (z = 0; z < spec.nr_zones; z++)
		zone_make(&spec, z);
}

void parts_unmake(void)
{
	unsigned i;

	for (i = 0; i < parts.nr_caches; i++)
		free(parts.caches[i]->memory);
	for (i = 0; i < parts.nr_zones; i++) {
		pcpi_zone_fini(&parts.zones[i]);
		free(parts.buddies[i]);
	}
	free(parts.window_zone);
	free(parts.orders);
	pcpi_space_destroy(&parts.space);
}

struct pcpi_cache *parts_cache(unsigned zone)
{
	struct pcpi_zone *z = &parts.zones[zone];
	struct pcpi_cache *c;
	size_t bytes;

	if (parts.nr_caches == PARTS_CACHES)
		abort();
	pcpi_zone_caches_changed(z, 1);
	bytes = pcpi_cache_bytes(&parts.env, z);
	c = pcpi_cache_init(zeroed(bytes), bytes, &parts.env, z);
	c->by_mark = !(parts.env.rseq && pcpi_rseq_ready());
	c->root = c;
	c->peers[zone] = c;
	return parts.caches[parts.nr_caches++] = c;
}

void parts_take(unsigned zone, unsigned order, uint32_t *pfns, uint32_t n)
{
	if (pcpi_zone_take_bulk(&parts.zones[zone], order, pfns, n, NULL) != n)
		abort();
}

static void event_note(const struct pcpa_event *event, void *arg)
{
	struct parts *p = arg;

	if (p->nr_events == PARTS_EVENTS)
		abort();
	p->events[p->nr_events++] = *event;
}

void parts_listen(void)
{
	parts.nr_events = 0;
	pcpi_trace_set(&parts.env.trace, event_note, &parts);
}

uint64_t parts_heard(enum pcpa_event_kind kind, unsigned *n)
{
	uint64_t pages = 0;
	unsigned i, seen = 0;

	for (i = 0; i < parts.nr_events; i++)
		if (parts.events[i].kind == kind) {
			pages += parts.events[i].pages;
			seen++;
		}
	if (n)
		*n = seen;
	return pages;
}

uint64_t parts_pages_held(unsigned zone)
{
	struct pcpi_zone *z = &parts.zones[zone];
	uint64_t remote[PARTS_ZONES] = {0};
	uint64_t pages = z->free_pages + pcpi_zone_depot_pages(z);
	unsigned i;

	for (i = 0; i < parts.nr_caches; i++) {
		pcpi_cache_remote_pages(parts.caches[i], remote);
		if (parts.caches[i]->zone == z)
			pages += pcpi_cache_count(parts.caches[i]);
	}
	return pages + remote[zone];
}

uint64_t parts_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return *state = x;
}

uint64_t parts_seed(void)
{
	const char *text = getenv("PCPA_TEST_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0)
			     : (uint64_t)time(NULL) * 2654435761u;

	seed |= 1; /* 0 is the one state that xorshift never leaves */
	printf("PCPA_TEST_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}
