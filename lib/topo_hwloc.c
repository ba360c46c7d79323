/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * topo_hwloc.c - reads a machine with hwloc and libnuma.  Layer 2.
 *
 * Owns: the process's topology and the making of a value from a loaded hwloc
 * topology; the only file that asks hwloc, libnuma and the kernel about nodes
 * and CPUs.  What is done with the value is topo.c's.
 *
 * Steps of pcpi_topo_build_hwloc():
 *
 *   allowed NUMA nodes, by os_index ->  struct source[]   (which_nodes)
 *   one block: nodes | distance | cpu_node                (allocate)
 *   distances: the machine's own table, or guessed        (fill_distances)
 *   every allowed CPU -> one node                         (place_cpus)
 *
 * Which node does a CPU belong to?  On this system the kernel says, through
 * libnuma.  hwloc's CPU sets say less: a node without CPUs is given the set of
 * whatever it is attached to, its package or the machine, so that several nodes
 * claim one CPU:
 *
 *   Machine 0-95                                P2 claims 0-95
 *     Package 0-47:  P0 claims 0-47, P3 (memory only) claims 0-47
 *     Package 48-95: P1 claims 48-95
 *
 * For a topology that is not this system's (a file, a synthetic one) the CPU
 * goes to the best claim:
 *   H1  the smallest set, as it was before anything was taken away (hwloc's
 *       complete set): P0 and P3 before P2, a node of a package before one of
 *       the machine;
 *   H2  among equals ordinary memory, before a node with a subtype other than
 *       DRAM (HBM, MCDRAM, NVM, PMEM, ...) or with a DAX device, which was
 *       added after the start of the machine and so has no CPUs;
 *   H3  then the lowest number: the kernel numbers nodes with CPUs first.
 * A node that ends without a CPU is one without CPUs.  Limits: where two nodes
 * of ordinary memory with the same set are numbered against H3 they are
 * confused; a node of a whole machine gets the CPUs that no smaller one claims,
 * also where it is memory only and their own node was left out of the file.
 *
 * A CPU may be allowed while its node isn't (a container with one node's CPUs
 * and another's memory).  It then belongs to the nearest allowed node by
 * the kernel's distances, or, in a foreign topology, to the first with memory:
 * its thread draws on that node, so it has to count there (T3).
 *
 * "Allowed" is the process's cpuset.  The affinity of the calling thread is no
 * limit: threads of packet programs are pinned one by one, and the others will
 * run elsewhere.  Where a container hides the control groups' files, denied
 * nodes are still found (the kernel is asked), denied CPUs are not: the caches
 * are then sized for more CPUs than there are, never for fewer.
 *
 * Nothing but the structure is loaded (no memory attributes, no CPU kinds), and
 * the calling thread is not moved about.  The structure can't be left out as
 * well: a node whose package is filtered away loses its CPU set.
 *
 * Concurrency: pthread_once; the value is constant afterwards and never freed.
 * A fork waits until it is read (heap.h, pcpi_once): the child's own attempt would
 * wait for ever for a lock of hwloc's whose holder it doesn't have.
 * Cost, 2 CPUs, one node, idle: 0.9 ms once per process; 6.3 where hwloc has
 * plugins installed, of which 5.5 load the plugins and can't be avoided from
 * here (the administrator can, with HWLOC_PLUGINS_PATH).
 * Failure: pcpi_topo_load() always has an answer, see make_up().
 * Proved by tests/unit/test_topo_hwloc.c, tests/sys/no_sysfs.c.
 */
#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "sys/sys.h"
#include "topo.h"

/* The kernel's own unit: 10 is a node's distance to itself, 20 the default
 * across.  15 lies between, for nodes that share a package or a CPU set. */
enum { DISTANCE_SELF = 10, DISTANCE_NEAR = 15, DISTANCE_FAR = 20 };

/* What is known of a node while the value is built. */
struct source {
	hwloc_obj_t obj;
	int weight;   /* CPUs that it claims (H1)                      */
	bool special; /* not ordinary memory (H2)                      */
};

struct builder {
	hwloc_topology_t hwloc;
	hwloc_const_bitmap_t cpus; /* allowed                           */
	struct source *sources;    /* [nr], ascending os_index          */
	unsigned nr;
	unsigned nr_os_cpus;
	/* The value's tables, writable while it is built; one block. */
	struct pcpi_topo_node *nodes;
	unsigned *distance;
	int *cpu_node;
};

/* --- nodes --- */

/* The kernel refuses masks beyond a page; 4,096 bits are four times the nodes
 * that it can be built for. */
#define MEMS_BITS 4096u
#define WORD_BITS ((unsigned)(sizeof(unsigned long) * CHAR_BIT))

/* The process's own status says it as a list, "0,2-3", also in a sandbox that
 * denies the call.  The buffer is for 1,024 CPUs and nodes. */
static PCPI_NOINLINE bool read_mems(hwloc_bitmap_t mems)
{
	static const char key[] = "\nMems_allowed_list:\t";
	char text[8192], *at;

	if (pcpi_sys->read_file("/proc/self/status", text, sizeof(text)) < 0)
		return false;
	at = strstr(text, key);
	if (!at)
		return false;
	at += sizeof(key) - 1;
	at[strcspn(at, "\n")] = '\0';
	return hwloc_bitmap_list_sscanf(mems, at) == 0;
}

static bool ask_mems(hwloc_bitmap_t mems)
{
	unsigned long mask[MEMS_BITS / WORD_BITS] = {0};

	return get_mempolicy(NULL, mask, MEMS_BITS + 1ul, NULL,
			     MPOL_F_MEMS_ALLOWED) == 0 &&
	       hwloc_bitmap_from_ulongs(mems, MEMS_BITS / WORD_BITS, mask) == 0;
}

/*
 * Takes the nodes away that the kernel doesn't let this process use: hwloc
 * reads the control groups' files, which a container may not show.  Where
 * the kernel says nothing, or that would leave nothing, hwloc's word stands.
 */
static void take_denied_mems(hwloc_bitmap_t nodes)
{
	hwloc_bitmap_t mems = hwloc_bitmap_alloc();

	if (!mems)
		return;
	if ((ask_mems(mems) || read_mems(mems)) &&
	    hwloc_bitmap_intersects(nodes, mems))
		hwloc_bitmap_and(nodes, nodes, mems);
	hwloc_bitmap_free(mems);
}

static bool is_special(hwloc_obj_t node)
{
	return (node->subtype && strcmp(node->subtype, "DRAM") != 0) ||
	       hwloc_obj_get_info_by_name(node, "DAXDevice") != NULL;
}

/* Fills sources with the nodes of the set, in order of their numbers. */
static int collect_sources(struct builder *b, hwloc_const_bitmap_t set)
{
	int bits = hwloc_bitmap_weight(set);
	int os;

	if (bits <= 0)
		return -EINVAL;
	b->sources = calloc((size_t)bits, sizeof(*b->sources));
	if (!b->sources)
		return -ENOMEM;
	for (os = hwloc_bitmap_first(set); os >= 0;
	     os = hwloc_bitmap_next(set, os)) {
		hwloc_obj_t obj = hwloc_get_numanode_obj_by_os_index(
			b->hwloc, (unsigned)os);

		if (!obj)
			continue;
		b->sources[b->nr++] = (struct source){
			.obj = obj,
			.weight = hwloc_bitmap_weight(obj->complete_cpuset),
			.special = is_special(obj),
		};
	}
	return b->nr > 0 ? 0 : -EINVAL;
}

static int which_nodes(struct builder *b)
{
	hwloc_bitmap_t set =
		hwloc_bitmap_dup(hwloc_topology_get_allowed_nodeset(b->hwloc));
	int rc;

	if (!set)
		return -ENOMEM;
	if (hwloc_topology_is_thissystem(b->hwloc))
		take_denied_mems(set);
	rc = collect_sources(b, set);
	hwloc_bitmap_free(set);
	return rc;
}

/* --- memory of the value --- */

static int allocate(struct builder *b)
{
	size_t nodes = b->nr * sizeof(*b->nodes);
	size_t distance = (size_t)b->nr * b->nr * sizeof(*b->distance);
	int last = hwloc_bitmap_last(b->cpus);
	char *block;

	if (last < 0)
		return -EINVAL;
	b->nr_os_cpus = (unsigned)last + 1;
	block = malloc(nodes + distance + b->nr_os_cpus * sizeof(*b->cpu_node));
	if (!block)
		return -ENOMEM;
	/* Descending alignment, so that each table ends where the next begins. */
	b->nodes = (struct pcpi_topo_node *)(void *)block;
	b->distance = (unsigned *)(void *)(block + nodes);
	b->cpu_node = (int *)(void *)(block + nodes + distance);
	return 0;
}

void pcpi_topo_free(struct pcpi_topo *topo)
{
	free((void *)(uintptr_t)topo->nodes);
	memset(topo, 0, sizeof(*topo));
}

/* --- distances --- */

/* The object with CPUs that a node is attached to, past memory-side caches. */
static hwloc_obj_t attached_to(hwloc_obj_t node)
{
	do
		node = node->parent;
	while (node->parent && !hwloc_obj_type_is_normal(node->type));
	return node;
}

/* Where the machine says nothing. */
static unsigned guess_distance(const struct builder *b, unsigned i, unsigned j)
{
	hwloc_obj_t a = b->sources[i].obj, c = b->sources[j].obj;
	hwloc_obj_t shared;

	if (i == j)
		return DISTANCE_SELF;
	if (hwloc_bitmap_intersects(a->complete_cpuset, c->complete_cpuset))
		return DISTANCE_NEAR;
	shared = hwloc_get_common_ancestor_obj(b->hwloc, attached_to(a),
					       attached_to(c));
	return shared->parent ? DISTANCE_NEAR : DISTANCE_FAR;
}

static int source_of(const struct builder *b, hwloc_obj_t obj)
{
	for (unsigned i = 0; obj && i < b->nr; i++)
		if (b->sources[i].obj == obj)
			return (int)i;
	return -1;
}

static void copy_distances(struct builder *b,
			   const struct hwloc_distances_s *table)
{
	for (unsigned i = 0; i < table->nbobjs; i++) {
		int from = source_of(b, table->objs[i]);

		for (unsigned j = 0; from >= 0 && j < table->nbobjs; j++) {
			int to = source_of(b, table->objs[j]);
			uint64_t v = table->values[i * table->nbobjs + j];

			if (to >= 0 && v > 0) /* T5 */
				b->distance[(unsigned)from * b->nr + (unsigned)to] =
					(unsigned)pcpi_min(v,
							   (uint64_t)UINT_MAX);
		}
	}
}

static void fill_distances(struct builder *b)
{
	struct hwloc_distances_s *table;
	unsigned got = 1;

	for (unsigned i = 0; i < b->nr; i++)
		for (unsigned j = 0; j < b->nr; j++)
			b->distance[i * b->nr + j] = guess_distance(b, i, j);
	if (hwloc_distances_get_by_type(
		    b->hwloc, HWLOC_OBJ_NUMANODE, &got, &table,
		    HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
	    got == 0)
		return;
	copy_distances(b, table);
	hwloc_distances_release(b->hwloc, table);
}

/* --- CPUs --- */

/* Does the claim of source i go before that of source j?  H1-H3; the sources
 * are in order of their numbers. */
static bool claims_before(const struct builder *b, unsigned i, unsigned j)
{
	const struct source *a = &b->sources[i], *c = &b->sources[j];

	if (a->weight != c->weight)
		return a->weight < c->weight;
	if (a->special != c->special)
		return c->special;
	return i < j;
}

static int place_by_claims(const struct builder *b, unsigned cpu)
{
	int best = -1;

	for (unsigned i = 0; i < b->nr; i++) {
		if (!hwloc_bitmap_isset(b->sources[i].obj->cpuset, cpu))
			continue;
		if (best < 0 || claims_before(b, i, (unsigned)best))
			best = (int)i;
	}
	return best;
}

static int first_with_memory(const struct builder *b)
{
	for (unsigned i = 0; i < b->nr; i++)
		if (b->nodes[i].memory_bytes != 0)
			return (int)i;
	return 0;
}

/* For a CPU of this system whose own node isn't among the sources. */
static int nearest_by_kernel(const struct builder *b, unsigned cpu)
{
	int home = numa_node_of_cpu((int)cpu);
	int best = -1, best_distance = 0;

	for (unsigned i = 0; home >= 0 && i < b->nr; i++) {
		int d = numa_distance(home, (int)b->sources[i].obj->os_index);

		/* 0: not known. */
		if (b->nodes[i].memory_bytes == 0 || d <= 0 ||
		    (best >= 0 && d >= best_distance))
			continue;
		best = (int)i;
		best_distance = d;
	}
	return best;
}

static void place_cpus_by_claims(struct builder *b)
{
	int cpu;

	hwloc_bitmap_foreach_begin(cpu, b->cpus) b->cpu_node[cpu] =
		place_by_claims(b, (unsigned)cpu);
	hwloc_bitmap_foreach_end();
}

/* False when libnuma can't help; nothing is placed then. */
static bool place_cpus_by_kernel(struct builder *b)
{
	struct bitmask *mask;
	int cpu;

	if (numa_available() < 0)
		return false;
	mask = numa_allocate_cpumask();
	if (!mask)
		return false;
	for (unsigned i = 0; i < b->nr; i++) {
		if (numa_node_to_cpus((int)b->sources[i].obj->os_index, mask))
			continue;
		hwloc_bitmap_foreach_begin(
			cpu,
			b->cpus) if (numa_bitmask_isbitset(mask, (unsigned)cpu))
			b->cpu_node[cpu] = (int)i;
		hwloc_bitmap_foreach_end();
	}
	numa_free_cpumask(mask);
	hwloc_bitmap_foreach_begin(cpu, b->cpus) if (b->cpu_node[cpu] < 0)
		b->cpu_node[cpu] = nearest_by_kernel(b, (unsigned)cpu);
	hwloc_bitmap_foreach_end();
	return true;
}

/* A single node has every CPU, whoever is asked; libnuma complains on stderr
 * in containers without its files, and most of these have one node. */
static void place_cpus(struct builder *b)
{
	int cpu, left_over = first_with_memory(b);

	for (unsigned c = 0; c < b->nr_os_cpus; c++)
		b->cpu_node[c] = -1;
	if (b->nr > 1 && (!hwloc_topology_is_thissystem(b->hwloc) ||
			  !place_cpus_by_kernel(b)))
		place_cpus_by_claims(b);
	hwloc_bitmap_foreach_begin(cpu, b->cpus) if (b->cpu_node[cpu] < 0)
		b->cpu_node[cpu] = left_over;
	b->nodes[b->cpu_node[cpu]].nr_cpus++;
	hwloc_bitmap_foreach_end();
}

/* --- the value --- */

static void fill_nodes(struct builder *b)
{
	for (unsigned i = 0; i < b->nr; i++) {
		hwloc_obj_t obj = b->sources[i].obj;

		b->nodes[i] = (struct pcpi_topo_node){
			.os_index = obj->os_index,
			.memory_bytes = obj->attr->numanode.local_memory,
		};
	}
}

static bool has_all_online(const struct builder *b)
{
	return (long)hwloc_bitmap_weight(b->cpus) >=
	       sysconf(_SC_NPROCESSORS_ONLN);
}

static bool has_others(const struct builder *b)
{
	return hwloc_bitmap_weight(hwloc_topology_get_complete_nodeset(
		       b->hwloc)) > (int)b->nr;
}

static void fill(struct builder *b, struct pcpi_topo *out)
{
	bool here = hwloc_topology_is_thissystem(b->hwloc) != 0;

	fill_nodes(b);
	fill_distances(b);
	place_cpus(b);
	for (unsigned i = 0; i < b->nr; i++)
		b->nodes[i].has_cpus = b->nodes[i].nr_cpus > 0; /* T4 */
	*out = (struct pcpi_topo){
		.nr_nodes = b->nr,
		.nr_cpus = (unsigned)hwloc_bitmap_weight(b->cpus),
		.nodes = b->nodes,
		.distance = b->distance,
		.cpu_node = b->cpu_node,
		.nr_os_cpus = b->nr_os_cpus,
		.here = here,
		.whole = here && has_all_online(b),
		.others = has_others(b),
	};
	PCPA_WALK(pcpi_topo_check(out));
}

int pcpi_topo_build_hwloc(struct hwloc_topology *hwloc, struct pcpi_topo *out)
{
	struct builder b = {
		.hwloc = hwloc,
		.cpus = hwloc_topology_get_allowed_cpuset(hwloc),
	};
	int rc = which_nodes(&b);

	if (rc == 0)
		rc = allocate(&b);
	if (rc == 0)
		fill(&b, out);
	free(b.sources);
	return rc;
}

int pcpi_topo_configure_hwloc(struct hwloc_topology *hwloc)
{
	unsigned long flags = 0;

#if HWLOC_API_VERSION >= 0x00020500
	flags |= HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
#endif
#if HWLOC_API_VERSION >= 0x00020800
	flags |= HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS |
		 HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
#endif
	if (hwloc_topology_set_all_types_filter(
		    hwloc, HWLOC_TYPE_FILTER_KEEP_STRUCTURE) != 0)
		return -EINVAL;
	return hwloc_topology_set_flags(hwloc, flags) == 0 ? 0 : -EINVAL;
}

/* --- the process's own --- */

/* Without /sys hwloc finds a node, but not how much memory it has. */
static bool has_memory(const struct pcpi_topo *topo)
{
	for (unsigned i = 0; i < topo->nr_nodes; i++)
		if (topo->nodes[i].memory_bytes != 0)
			return true;
	return false;
}

static int read_machine(struct pcpi_topo *out)
{
	hwloc_topology_t hwloc;
	int rc;

	if (hwloc_topology_init(&hwloc) != 0)
		return -ENOMEM;
	rc = pcpi_topo_configure_hwloc(hwloc);
	if (rc == 0 && hwloc_topology_load(hwloc) != 0)
		rc = -EIO;
	if (rc == 0)
		rc = pcpi_topo_build_hwloc(hwloc, out);
	hwloc_topology_destroy(hwloc);
	if (rc == 0 && !has_memory(out)) {
		pcpi_topo_free(out);
		rc = -ENODATA;
	}
	return rc;
}

static struct pcpi_topo machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;
static pthread_once_t said_once = PTHREAD_ONCE_INIT;

/* One node with everything (T6).  Static, so that it can't fail. */
static void make_up(struct pcpi_topo *out)
{
	static const unsigned distance[1] = {DISTANCE_SELF};
	static struct pcpi_topo_node node;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long pages = sysconf(_SC_PHYS_PAGES);

	node = (struct pcpi_topo_node){
		.has_cpus = true,
		.nr_cpus = (unsigned)pcpi_max(cpus, 1L),
		.memory_bytes =
			(uint64_t)pcpi_max(pages, 1L) * pcpi_sys_page_bytes(),
	};
	*out = (struct pcpi_topo){
		.nr_nodes = 1,
		.nr_cpus = node.nr_cpus,
		.nodes = &node,
		.distance = distance,
		.guessed = true,
		.others = true,
		.here = true,
		.whole = true,
	};
}

/* hwloc has a lock and reads files, at which a thread could be cancelled. */
static void load_machine(void)
{
	int saved = errno, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (read_machine(&machine) != 0)
		make_up(&machine);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
}

int pcpi_topo_load(const struct pcpi_topo **out)
{
	pthread_once(&machine_once, load_machine);
	*out = &machine;
	return 0;
}

static void say_made_up(void)
{
	pcpi_sys_say("hwloc can't read this machine: using one NUMA node with "
		     "%u CPUs; `lstopo` shows what is wrong",
		     machine.nr_cpus);
}

void pcpi_topo_say(const struct pcpi_topo *topo)
{
	if (topo->guessed)
		pthread_once(&said_once, say_made_up);
}
