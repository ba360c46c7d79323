/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * topo.c - questions asked of a topology value; see topo.h.  Layer 2, PURE.
 *
 * Owns: lookup, fallback order, the choice of a heap's nodes.  Knows neither
 * hwloc nor the kernel.
 *
 * Fallback order: the positions other than self, grouped by distance.  A group
 * of m positions, ascending, is read from its member number self % m onwards
 * and around:
 *
 *   8 nodes in two packages, distance 11 inside and 21 across
 *   self 0 asks  0 | 1 2 3 | 4 5 6 7      starts at 0 % 3 and 0 % 4
 *   self 1 asks  1 | 2 3 0 | 5 6 7 4                1 % 3 and 1 % 4
 *   self 2 asks  2 | 3 0 1 | 6 7 4 5                2 % 3 and 2 % 4
 *   self 3 asks  3 | 0 1 2 | 7 4 5 6                3 % 3 and 3 % 4
 *
 * In a group of m + 1 consecutive positions that are each other's nearest, self
 * = base + r sees the others without itself, so that no two start with
 * the same one: the start index moves by one each step, and the gap left by
 * self moves along with it.
 *
 * Concurrency: none needed, nothing is written but the caller's arrays.
 * Cost: lookups are a search by halves or one load; the fallback order is
 * nr_nodes squared, computed once per heap.  Failure: see each function.
 * Proved by tests/unit/test_topo.c.
 */
#include "topo.h"

#include <errno.h>

#include "check.h"
#include "nodeset.h"

int pcpi_topo_find(const struct pcpi_topo *topo, unsigned os_index)
{
	unsigned lo = 0, hi = topo->nr_nodes;

	while (lo < hi) {
		unsigned mid = lo + (hi - lo) / 2;

		if (topo->nodes[mid].os_index < os_index)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < topo->nr_nodes && topo->nodes[lo].os_index == os_index)
		return (int)lo;
	return -1;
}

int pcpi_topo_node_of_cpu(const struct pcpi_topo *topo, int cpu)
{
	if (cpu < 0)
		return -1;
	if (!topo->cpu_node)
		return 0; /* T6 */
	return (unsigned)cpu < topo->nr_os_cpus ? topo->cpu_node[cpu] : -1;
}

unsigned pcpi_topo_cpus_of(const struct pcpi_topo *topo, unsigned pos)
{
	const struct pcpi_topo_node *node = &topo->nodes[pos];

	PCPA_ASSERT(pos < topo->nr_nodes);
	return node->has_cpus ? node->nr_cpus : topo->nr_cpus;
}

unsigned pcpi_topo_distance(const struct pcpi_topo *topo, unsigned from,
			    unsigned to)
{
	PCPA_ASSERT(from < topo->nr_nodes && to < topo->nr_nodes);
	return topo->distance[(size_t)from * topo->nr_nodes + to];
}

static bool has_memory(const struct pcpi_topo *topo, unsigned pos)
{
	return topo->nodes[pos].memory_bytes != 0;
}

/* A set of nodes described by what its members have in common. */
struct group {
	unsigned self;     /* not a member                           */
	unsigned distance; /* of every member, from self             */
	bool memory_only;  /* only nodes with memory                 */
};

static bool group_has(const struct pcpi_topo *topo, const struct group *g,
		      unsigned pos)
{
	return pos != g->self &&
	       pcpi_topo_distance(topo, g->self, pos) == g->distance &&
	       (!g->memory_only || has_memory(topo, pos));
}

static unsigned group_size(const struct pcpi_topo *topo, const struct group *g)
{
	unsigned n = 0;

	for (unsigned pos = 0; pos < topo->nr_nodes; pos++)
		n += group_has(topo, g, pos);
	return n;
}

/* Moves to the nearest distance that is above `beyond` and has members: 0 for
 * the first group.  False when there is none. */
static bool group_advance(const struct pcpi_topo *topo, struct group *g,
			  unsigned beyond)
{
	bool found = false;
	unsigned best = 0;

	for (unsigned pos = 0; pos < topo->nr_nodes; pos++) {
		unsigned d = pcpi_topo_distance(topo, g->self, pos);

		if (pos == g->self || d <= beyond || (found && d >= best))
			continue;
		if (g->memory_only && !has_memory(topo, pos))
			continue;
		best = d;
		found = true;
	}
	g->distance = best;
	return found;
}

/* Writes the members to out, starting with number `start` of them and going
 * around.  Requires start < size. */
static void group_write(const struct pcpi_topo *topo, const struct group *g,
			unsigned size, unsigned start, unsigned *out)
{
	unsigned i = 0;

	for (unsigned pos = 0; pos < topo->nr_nodes; pos++) {
		if (!group_has(topo, g, pos))
			continue;
		out[(i + size - start) % size] = pos;
		i++;
	}
}

void pcpi_topo_fallback(const struct pcpi_topo *topo, unsigned self,
			unsigned *out)
{
	struct group g = {.self = self};
	unsigned n = 0, size;

	PCPA_ASSERT(self < topo->nr_nodes);
	out[n++] = self;
	while (group_advance(topo, &g, g.distance)) { /* ends by T5 */
		size = group_size(topo, &g);
		group_write(topo, &g, size, self % size, out + n);
		n += size;
	}
	PCPA_ASSERT(n == topo->nr_nodes);
}

int pcpi_topo_nearest_with_memory(const struct pcpi_topo *topo, unsigned pos)
{
	struct group g = {.self = pos, .memory_only = true};
	unsigned skip;

	if (has_memory(topo, pos))
		return (int)pos;
	if (!group_advance(topo, &g, 0))
		return -1;
	skip = pos % group_size(topo, &g);
	for (unsigned i = 0; i < topo->nr_nodes; i++)
		if (group_has(topo, &g, i) && skip-- == 0)
			return (int)i;
	return -1;
}

static int refuse(struct pcpi_topo_error *err, enum pcpi_topo_refusal what,
		  size_t where)
{
	*err = (struct pcpi_topo_error){.what = what, .where = where};
	return what == PCPI_TOPO_BAD_TEXT ? -EINVAL : -ENODEV;
}

static int check_named(const struct pcpi_topo *topo, struct pcpi_node_range r,
		       struct pcpi_topo_error *err)
{
	for (unsigned os = r.first; os <= r.last; os++) {
		int pos = pcpi_topo_find(topo, os);

		if (pos < 0)
			return refuse(err, PCPI_TOPO_NO_NODE, os);
		if (!has_memory(topo, (unsigned)pos))
			return refuse(err, PCPI_TOPO_NO_MEMORY, os);
	}
	return 0;
}

/* The whole list before anything is chosen, so that a refusal writes nothing. */
static int check_list(const struct pcpi_topo *topo, const char *list,
		      struct pcpi_topo_error *err)
{
	struct pcpi_node_range r;
	const char *cursor = list;
	size_t at = 0;
	int rc;

	if (pcpi_nodeset_check(list, &at) != 0)
		return refuse(err, PCPI_TOPO_BAD_TEXT, at);
	while (pcpi_nodeset_next(&cursor, &r) > 0) {
		rc = check_named(topo, r, err);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int pcpi_topo_select(const struct pcpi_topo *topo, const char *list,
		     unsigned *out, unsigned *nr, struct pcpi_topo_error *err)
{
	unsigned n = 0;
	int rc = list ? check_list(topo, list, err) : 0;

	if (rc != 0)
		return rc;
	for (unsigned pos = 0; pos < topo->nr_nodes; pos++)
		if (list ? pcpi_nodeset_has(list, topo->nodes[pos].os_index)
			 : has_memory(topo, pos))
			out[n++] = pos;
	if (n == 0)
		return refuse(err, PCPI_TOPO_NO_MEMORY, topo->nodes[0].os_index);
	*nr = n;
	return 0;
}

static bool check_nodes(const struct pcpi_topo *topo)
{
	const struct pcpi_topo_node *node = topo->nodes;
	uint64_t sum = 0;

	for (unsigned pos = 0; pos < topo->nr_nodes; pos++, node++) {
		if (pos > 0 && node[-1].os_index >= node->os_index)
			return false; /* T1 */
		if (node->has_cpus != (node->nr_cpus > 0))
			return false; /* T4 */
		sum += node->nr_cpus;
	}
	return topo->nr_nodes > 0 && topo->nr_cpus > 0 && sum == topo->nr_cpus;
}

static bool check_cpus(const struct pcpi_topo *topo)
{
	for (unsigned c = 0; c < topo->nr_os_cpus; c++)
		if (topo->cpu_node[c] < -1 ||
		    topo->cpu_node[c] >= (int)topo->nr_nodes)
			return false; /* T2 */
	for (unsigned pos = 0; pos < topo->nr_nodes; pos++) {
		unsigned n = 0;

		for (unsigned c = 0; c < topo->nr_os_cpus; c++)
			n += topo->cpu_node[c] == (int)pos;
		if (n != topo->nodes[pos].nr_cpus)
			return false; /* T3 */
	}
	return true;
}

bool pcpi_topo_check(const struct pcpi_topo *topo)
{
	size_t n = (size_t)topo->nr_nodes * topo->nr_nodes;

	if (!check_nodes(topo))
		return false;
	for (size_t i = 0; i < n; i++)
		if (topo->distance[i] == 0)
			return false; /* T5 */
	return topo->cpu_node ? check_cpus(topo) : topo->nr_nodes == 1;
}
