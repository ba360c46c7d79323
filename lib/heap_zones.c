/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heap_zones.c - which zone of a heap serves whom.  Layer 5, part of heap.h.
 *
 * Owns: the tables from the topology's positions to zones, which are made with the
 * heap, and the lookups in them.
 *
 *   positions (topo.h)   0    1    2    3        nodes of the machine
 *   zones                0         1    2        those that the heap uses
 *   topo_zone            0    0    1    2        each position's own, or nearest
 *   fallback             0 1 2 | 1 2 0 | ...     by distance, from each zone
 *
 * Concurrency: constant after creation.  Cost: creation nodes squared times the
 * number of different distances; lookups a load, or a search of the zones.
 * Failure: none.  Proved by tests/unit/test_numa.c, test_numa_sets.c.
 */
#include "heap.h"

/* Of a position, -1 for a node that the heap doesn't use. */
static int zone_at(const unsigned *positions, unsigned nr_zones, unsigned position)
{
	unsigned lo = 0, hi = nr_zones;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (positions[mid] < position)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < nr_zones && positions[lo] == position ? (int)lo : -1;
}

/* The zones in the order in which a node asks them. */
static void zones_by_distance(const struct pcpa_heap *h, const unsigned *positions,
			      unsigned position, unsigned *out)
{
	unsigned order[h->topo->nr_nodes], i, n = 0;
	int z;

	pcpi_topo_fallback(h->topo, position, order);
	for (i = 0; i < h->topo->nr_nodes; i++) {
		z = zone_at(positions, h->nr_zones, order[i]);
		if (z >= 0)
			out[n++] = (unsigned)z;
	}
}

void pcpi_heap_zones_fill(struct pcpa_heap *h, const unsigned *positions)
{
	unsigned order[h->nr_zones], i;

	for (i = 0; i < h->nr_zones; i++)
		zones_by_distance(h, positions, positions[i],
				  h->fallback + i * h->nr_zones);
	for (i = 0; i < h->topo->nr_nodes; i++) {
		h->topo_zone[i] = zone_at(positions, h->nr_zones, i);
		if (h->topo_zone[i] >= 0)
			continue;
		zones_by_distance(h, positions, i, order);
		h->topo_zone[i] = (int)order[0];
	}
}

struct pcpi_zone *pcpi_heap_zone(struct pcpa_heap *h, unsigned os_node)
{
	unsigned z;

	for (z = 0; z < h->nr_zones; z++)
		if (h->env.zones[z].config.os_node == os_node)
			return &h->env.zones[z];
	return NULL;
}

struct pcpi_zone *pcpi_heap_local_zone(struct pcpa_heap *h)
{
	int node;

	if (h->nr_zones == 1)
		return &h->env.zones[0];
	node = pcpi_topo_node_of_cpu(h->topo, pcpi_sys->cpu());
	if (node < 0) /* a CPU that was denied, or not there, at the start */
		node = pcpi_topo_find(h->topo, (unsigned)pcpi_sys->node());
	return &h->env.zones[node < 0 ? 0 : h->topo_zone[node]];
}
