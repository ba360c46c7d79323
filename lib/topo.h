/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * topo.h - the machine as a value: nodes, their CPUs, distances.  Layer 2.
 *
 * Owns: the value and the questions asked of it (topo.c, PURE).  Reading the
 * machine is topo_hwloc.c's job; a program without hwloc fills the value in by
 * hand (a machine of one node needs no table at all).
 *
 * A node is named in two ways, which are never mixed: by its number in the
 * operating system (os_index: what users write, what binding takes, may have
 * gaps) and by its position in nodes[] (what this library counts with).  CPUs
 * have only the number of the operating system.
 *
 *   nodes[]    pos 0: os 0, 48 CPUs, 256 GiB
 *              pos 1: os 1, 48 CPUs, 256 GiB
 *              pos 2: os 4,  0 CPUs, 248 GiB      nr_cpus 96
 *   distance   10 21 17                           [from * nr_nodes + to]
 *              21 10 28
 *              17 28 10
 *   cpu_node   0 0 ... 1 1 ... -1 ...             [CPU number] -> position
 *
 * Invariants:
 *   T1  nr_nodes > 0, os_index ascending; only nodes that the process may use.
 *   T2  cpu_node[c] is a position, or -1 for a CPU that isn't allowed.
 *   T3  nodes[p].nr_cpus is the number of c with cpu_node[c] == p; the sum over
 *       all nodes is nr_cpus, so every allowed CPU belongs to one node.
 *   T4  has_cpus iff nr_cpus > 0: a node whose CPUs are all denied to the
 *       process is to us a node without CPUs.
 *   T5  no distance is 0.  Distances need not be symmetric, and a node need not
 *       be its own nearest: nothing here relies on either.
 *   T6  without tables (cpu_node NULL) there is one node, and every CPU is its.
 *
 * Concurrency: the value is constant once built; any thread may read it.
 * Proved by tests/unit/test_topo.c; on machines by test_topo_hwloc.c.
 */
#ifndef PCPI_TOPO_H
#define PCPI_TOPO_H

#include "base.h"

struct pcpi_topo_node {
	unsigned os_index;
	bool has_cpus;         /* an allowed CPU is local to it (T4)   */
	unsigned nr_cpus;      /* allowed CPUs local to it             */
	uint64_t memory_bytes; /* 0: a node without memory             */
};

struct pcpi_topo {
	unsigned nr_nodes;
	unsigned nr_cpus; /* all that are allowed                      */
	const struct pcpi_topo_node *nodes; /* [nr_nodes], T1          */
	const unsigned *distance;           /* [nr_nodes * nr_nodes]   */
	const int *cpu_node;                /* [nr_os_cpus], T2, T6    */
	unsigned nr_os_cpus;                /* length of cpu_node      */
	bool guessed; /* the machine could not be read: one node made up */
	bool others;  /* it may have nodes that aren't allowed now      */
	bool here;    /* the machine that runs this, not a described one */
	bool whole;   /* here, and no CPU that was online was denied     */
};

/* Position of the node with this number, or -1. */
int pcpi_topo_find(const struct pcpi_topo *topo, unsigned os_index);

/* Position of the node that a CPU belongs to, -1 for a CPU that isn't known
 * (negative numbers included, so a failed getcpu() may be passed on). */
int pcpi_topo_node_of_cpu(const struct pcpi_topo *topo, int cpu);

/* How many CPUs share the node's pages, never 0: its own, or all that are
 * allowed for a node without CPUs (D7). */
unsigned pcpi_topo_cpus_of(const struct pcpi_topo *topo, unsigned pos);

/* From one position to another. */
unsigned pcpi_topo_distance(const struct pcpi_topo *topo, unsigned from,
			    unsigned to);

/*
 * The order in which node `self` asks others for memory: self first, then by
 * ascending distance.  Nodes at one distance are rotated by self, so that
 * several nodes that run dry don't all fall upon the same one: where m nodes
 * are each other's nearest, each is the first choice of exactly one.
 * Shape: out[nr_nodes], a permutation of the positions.
 * Cost: nr_nodes squared.
 */
void pcpi_topo_fallback(const struct pcpi_topo *topo, unsigned self,
			unsigned *out);

/*
 * The node itself if it has memory, else the nearest with memory (rotated by
 * pos like the fallback order); -1 when no node has any.
 */
int pcpi_topo_nearest_with_memory(const struct pcpi_topo *topo, unsigned pos);

enum pcpi_topo_refusal {
	PCPI_TOPO_BAD_TEXT, /* not a list of numbers; .where: offset in it */
	PCPI_TOPO_NO_NODE,  /* not there, or not allowed; .where: number   */
	PCPI_TOPO_NO_MEMORY /* there, without memory; .where: number       */
};

struct pcpi_topo_error {
	enum pcpi_topo_refusal what;
	size_t where;
};

/*
 * The nodes that a heap uses: those named in `list` ("0,2-3"), or with NULL
 * every node with memory.
 * Shape: out[nr_nodes], ascending positions without repetition, *nr of them.
 * Returns: 0, or -EINVAL (the text) or -ENODEV (a node that isn't there, isn't
 * allowed or has no memory; with NULL: no node has any), *err saying which;
 * out and *nr are then untouched.
 */
int pcpi_topo_select(const struct pcpi_topo *topo, const char *list,
		     unsigned *out, unsigned *nr, struct pcpi_topo_error *err);

/* True iff T1-T6 hold.  Cost: CPUs times nodes. */
bool pcpi_topo_check(const struct pcpi_topo *topo);

/* --- topo_hwloc.c, which is not pure --- */

/*
 * The machine that the process runs on, as hwloc and libnuma see it (hwloc's
 * variables HWLOC_SYNTHETIC and HWLOC_XMLFILE put another in its place).  Read
 * at the first call of the process and kept until it ends.  Where hwloc
 * can't read it, one node with the online CPUs and all memory, and
 * topo->guessed is true.
 * Returns 0: the made-up node needs no memory, so there is always an answer.
 * Cost: the first call 1-7 ms, see topo_hwloc.c; then a load.
 */
int pcpi_topo_load(const struct pcpi_topo **out);

/* One line on stderr, once per process, if the topology was made up. */
void pcpi_topo_say(const struct pcpi_topo *topo);

struct hwloc_topology;

/*
 * A value from a loaded hwloc topology, of this machine or another.
 * Returns 0, -ENOMEM, or -EINVAL for a topology without a usable node or CPU.
 * pcpi_topo_free() takes it back.
 */
int pcpi_topo_build_hwloc(struct hwloc_topology *hwloc, struct pcpi_topo *out);

/* Prepares a topology before hwloc_topology_load(): keeps only what matters
 * here, and forbids hwloc to move the calling thread about. */
int pcpi_topo_configure_hwloc(struct hwloc_topology *hwloc);

void pcpi_topo_free(struct pcpi_topo *topo);

#endif
