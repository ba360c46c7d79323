/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cpus.c - processors that go offline, or come, while a heap lives.  Layer 5, part
 * of heap.h.
 *
 * Owns: by how many processors each node's pages are shared (zone.h, Z4), after
 * creation.
 *
 *   each tick   the kernel's list of online CPUs: as at the last one, nothing
 *   changed     each CPU in it counts for its node; the zones get the numbers;
 *               what caches hold above bounds that fell comes back
 *
 * CP1  The topology says which node a CPU belongs to.  Of one that was offline when
 *     it was read, the nodes' own lists do; it counts where nothing that was online
 *     then was denied to the process: else nobody tells it from a denied one.
 * CP2  A machine that was described to hwloc has no CPUs that could change.
 *
 * Concurrency: the drain lock.
 * Cost: a small file a tick; after a change a file for each node and each CPU that
 * the topology doesn't know.
 * Failure: what can't be read or is longer than TEXT_BYTES changes nothing.
 * Proved by tests/unit/test_cpus.c; with real CPUs by tests/vm/three/hotplug.c.
 */
#include "heap.h"

#include <stdio.h>
#include <string.h>

#include "nodeset.h"

/* A list of 200 ranges; on the stack of any call. */
#define TEXT_BYTES 1024u
#define PATH_BYTES 64u

/* Reads a list such as "0-3,6"; false, where it isn't whole. */
static bool list_read(const char *path, char text[TEXT_BYTES])
{
	ssize_t n = pcpi_sys->read_file(path, text, TEXT_BYTES);
	size_t at;

	if (n <= 0 || n >= (ssize_t)TEXT_BYTES - 1)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return pcpi_nodeset_check(text, &at) == 0;
}

static uint64_t text_hash(const char *text)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return hash;
}

/* Position of the node of a CPU that the topology doesn't know, or -1. */
static PCPI_NOINLINE int late_position(const struct pcpi_topo *topo,
				       unsigned cpu)
{
	char path[PATH_BYTES], text[TEXT_BYTES];

	for (unsigned pos = 0; pos < topo->nr_nodes; pos++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/node/node%u/cpulist",
			 topo->nodes[pos].os_index);
		if (list_read(path, text) && pcpi_nodeset_has(text, cpu))
			return (int)pos;
	}
	return -1;
}

static int position_of(const struct pcpi_topo *topo, unsigned cpu)
{
	int pos = pcpi_topo_node_of_cpu(topo, (int)cpu);

	return pos < 0 && topo->whole ? late_position(topo, cpu) : pos; /* CP1 */
}

/* Online CPUs of each position; returns their sum. */
static unsigned count_cpus(const struct pcpi_topo *topo, const char *online,
			   unsigned *counts)
{
	struct pcpi_node_range r;
	unsigned sum = 0;

	for (unsigned pos = 0; pos < topo->nr_nodes; pos++)
		counts[pos] = 0;
	while (pcpi_nodeset_next(&online, &r) > 0)
		for (unsigned cpu = r.first; cpu <= r.last; cpu++) {
			int pos = position_of(topo, cpu);

			if (pos < 0)
				continue;
			counts[pos]++;
			sum++;
		}
	return sum;
}

static void zones_set(struct pcpa_heap *heap, const char *online, bool *fell)
{
	const struct pcpi_topo *topo = heap->topo;
	unsigned counts[topo->nr_nodes];
	unsigned all = count_cpus(topo, online, counts), z;

	if (all == 0)
		return;
	for (z = 0; z < heap->nr_zones; z++) {
		struct pcpi_zone *zone = &heap->env.zones[z];
		int pos = pcpi_topo_find(topo, zone->config.os_node);

		fell[z] = pcpi_zone_cpus_changed(zone, counts[pos], all);
	}
}

PCPI_NOINLINE void pcpi_heap_cpus_look(struct pcpa_heap *heap, bool *fell)
{
	char text[TEXT_BYTES];
	uint64_t seen;
	unsigned z;

	for (z = 0; z < heap->nr_zones; z++)
		fell[z] = false;
	if (!heap->topo->here || /* CP2 */
	    !list_read("/sys/devices/system/cpu/online", text))
		return;
	seen = text_hash(text);
	if (seen == heap->cpus_seen)
		return;
	heap->cpus_seen = seen;
	zones_set(heap, text, fell);
}
