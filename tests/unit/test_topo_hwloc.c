/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_topo_hwloc.c - machines, through hwloc, to topology values
 * (lib/topo_hwloc.c).
 *
 * The descriptions are synthetic strings or files of tests/topologies; each is
 * asserted not to be this system, on which hwloc falls back silently.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <hwloc.h>
#include <numa.h>
#include <numaif.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/sandbox.h"
#include "sys/sys.h"
#include "topo.h"

#define GIB (UINT64_C(1) << 30)

/* --- loading --- */

static hwloc_topology_t begin(void)
{
	hwloc_topology_t hwloc;

	cr_assert_eq(hwloc_topology_init(&hwloc), 0);
	cr_assert_eq(pcpi_topo_configure_hwloc(hwloc), 0);
	return hwloc;
}

static hwloc_topology_t open_synthetic(const char *description)
{
	hwloc_topology_t hwloc = begin();

	cr_assert_eq(hwloc_topology_set_synthetic(hwloc, description), 0, "%s",
		     description);
	cr_assert_eq(hwloc_topology_load(hwloc), 0);
	cr_assert_not(hwloc_topology_is_thissystem(hwloc));
	return hwloc;
}

static hwloc_topology_t open_xml(const char *name)
{
	hwloc_topology_t hwloc = begin();
	char path[4096];

	snprintf(path, sizeof(path), "%s/topologies/%s", PCPI_TEST_DATA, name);
	cr_assert_eq(hwloc_topology_set_xml(hwloc, path), 0, "%s", path);
	cr_assert_eq(hwloc_topology_load(hwloc), 0);
	cr_assert_not(hwloc_topology_is_thissystem(hwloc));
	return hwloc;
}

static struct pcpi_topo build(hwloc_topology_t hwloc)
{
	struct pcpi_topo topo;

	cr_assert_eq(pcpi_topo_build_hwloc(hwloc, &topo), 0);
	cr_assert(pcpi_topo_check(&topo));
	cr_assert_not(topo.guessed);
	hwloc_topology_destroy(hwloc);
	return topo;
}

static struct pcpi_topo synthetic(const char *description)
{
	return build(open_synthetic(description));
}

static struct pcpi_topo recorded(const char *name)
{
	return build(open_xml(name));
}

/* --- what is expected --- */

static void expect_node(const struct pcpi_topo *topo, unsigned pos,
			unsigned os_index, unsigned nr_cpus, uint64_t memory)
{
	const struct pcpi_topo_node *node = &topo->nodes[pos];

	cr_assert_lt(pos, topo->nr_nodes);
	cr_assert_eq(node->os_index, os_index, "pos %u: P%u", pos,
		     node->os_index);
	cr_assert_eq(node->nr_cpus, nr_cpus, "P%u: %u CPUs", os_index,
		     node->nr_cpus);
	cr_assert_eq(node->has_cpus, nr_cpus > 0);
	cr_assert_eq(node->memory_bytes, memory);
	cr_assert_eq(pcpi_topo_cpus_of(topo, pos),
		     nr_cpus > 0 ? nr_cpus : topo->nr_cpus);
	cr_assert_eq(pcpi_topo_find(topo, os_index), (int)pos);
}

static void expect_distances(const struct pcpi_topo *topo, const unsigned *want)
{
	for (unsigned i = 0; i < topo->nr_nodes * topo->nr_nodes; i++)
		cr_assert_eq(topo->distance[i], want[i], "[%u]: %u for %u", i,
			     topo->distance[i], want[i]);
}

static void expect_cpus(const struct pcpi_topo *topo, int first, int last,
			int pos)
{
	for (int cpu = first; cpu <= last; cpu++)
		cr_assert_eq(pcpi_topo_node_of_cpu(topo, cpu), pos, "CPU %d",
			     cpu);
}

/* Node 2 has 248 GiB and no CPUs: what every such file has to become. */
static void expect_memory_node(const struct pcpi_topo *topo, uint64_t others)
{
	cr_assert_eq(topo->nr_nodes, 3);
	cr_assert_eq(topo->nr_cpus, 96);
	expect_node(topo, 0, 0, 48, others);
	expect_node(topo, 1, 1, 48, others);
	expect_node(topo, 2, 2, 0, 248 * GIB);
	cr_assert_eq(pcpi_topo_cpus_of(topo, 2), 96);
	expect_cpus(topo, 0, 47, 0);
	expect_cpus(topo, 48, 95, 1);
	expect_cpus(topo, 96, 200, -1);
}

/* --- shapes --- */

Test(topo_hwloc, one_node_of_two_cpus)
{
	struct pcpi_topo topo =
		synthetic("Package:1 [NUMANode(memory=24GiB)] Core:2 PU:1");

	cr_assert_eq(topo.nr_nodes, 1);
	cr_assert_eq(topo.nr_cpus, 2);
	expect_node(&topo, 0, 0, 2, 24 * GIB);
	expect_distances(&topo, (const unsigned[]){10});
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, two_packages_split_interleaved_cpus)
{
	struct pcpi_topo topo =
		synthetic("Package:2 [NUMANode(memory=256GiB)] Core:24 "
			  "PU:2(indexes=2*48:1*2)");

	cr_assert_eq(topo.nr_nodes, 2);
	cr_assert_eq(topo.nr_cpus, 96);
	expect_node(&topo, 0, 0, 48, 256 * GIB);
	expect_node(&topo, 1, 1, 48, 256 * GIB);
	expect_cpus(&topo, 0, 23, 0);
	expect_cpus(&topo, 24, 47, 1);
	expect_cpus(&topo, 48, 71, 0);
	expect_cpus(&topo, 72, 95, 1);
	expect_distances(&topo, (const unsigned[]){10, 20, 20, 10});
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, eight_sub_nodes_are_near_inside_their_package)
{
	struct pcpi_topo topo = synthetic(
		"Package:2 Group:4 [NUMANode(memory=64GiB)] Core:6 PU:2");
	unsigned order[8];

	cr_assert_eq(topo.nr_nodes, 8);
	cr_assert_eq(topo.nr_cpus, 96);
	for (unsigned i = 0; i < 8; i++) {
		expect_node(&topo, i, i, 12, 64 * GIB);
		expect_cpus(&topo, (int)i * 12, (int)i * 12 + 11, (int)i);
	}
	cr_assert_eq(pcpi_topo_distance(&topo, 4, 7), 15);
	cr_assert_eq(pcpi_topo_distance(&topo, 4, 3), 20);
	for (unsigned self = 0; self < 8; self++) {
		pcpi_topo_fallback(&topo, self, order);
		for (unsigned i = 0; i < 4; i++)
			cr_assert_eq(order[i] / 4, self / 4);
	}
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, gaps_in_numbers_are_kept)
{
	struct pcpi_topo topo =
		synthetic("Package:4 [NUMANode(memory=1GiB "
			  "indexes=252,0,8,3)] PU:2(indexes=7,5,3,1,6,4,2,9)");

	cr_assert_eq(topo.nr_nodes, 4);
	cr_assert_eq(topo.nr_cpus, 8);
	expect_node(&topo, 0, 0, 2, GIB);
	expect_node(&topo, 1, 3, 2, GIB);
	expect_node(&topo, 2, 8, 2, GIB);
	expect_node(&topo, 3, 252, 2, GIB);
	cr_assert_eq(pcpi_topo_find(&topo, 1), -1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 0), -1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 8), -1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 7), 3);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 5), 3);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 1), 0);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 9), 1);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 6), 2);
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, very_large_numbers_are_kept)
{
	struct pcpi_topo topo = synthetic("Package:2 [NUMANode(memory=1GiB "
					  "indexes=65534,1023)] PU:1024");

	cr_assert_eq(topo.nr_cpus, 2048);
	expect_node(&topo, 0, 1023, 1024, GIB);
	expect_node(&topo, 1, 65534, 1024, GIB);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 2047), 0);
	cr_assert_eq(pcpi_topo_node_of_cpu(&topo, 1023), 1);
	pcpi_topo_free(&topo);
}

/* --- nodes without CPUs --- */

Test(topo_hwloc, memory_node_of_a_package_has_no_cpus)
{
	struct pcpi_topo topo = recorded("memory-package.xml");
	unsigned order[3];

	expect_memory_node(&topo, 256 * GIB);
	expect_distances(&topo,
			 (const unsigned[]){10, 21, 17, 21, 10, 28, 17, 28, 10});
	pcpi_topo_fallback(&topo, 0, order);
	cr_assert_eq(order[1], 2);
	pcpi_topo_fallback(&topo, 1, order);
	cr_assert_eq(order[1], 0);
	pcpi_topo_free(&topo);
}

static void expect_memory_node_of(const char *file, uint64_t others,
				  const unsigned *distances)
{
	struct pcpi_topo topo = recorded(file);

	expect_memory_node(&topo, others);
	expect_distances(&topo, distances);
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, memory_node_of_the_machine_has_no_cpus)
{
	expect_memory_node_of(
		"memory-machine.xml", 256 * GIB,
		(const unsigned[]){10, 20, 15, 20, 10, 15, 15, 15, 10});
}

Test(topo_hwloc, memory_node_with_empty_set_has_no_cpus)
{
	expect_memory_node_of(
		"memory-empty.xml", 248 * GIB,
		(const unsigned[]){10, 21, 31, 21, 10, 31, 31, 31, 10});
}

/* The lower number isn't enough when the node is known to be added memory. */
Test(topo_hwloc, dax_nodes_with_lower_numbers_have_no_cpus)
{
	struct pcpi_topo topo = recorded("memory-dax.xml");

	cr_assert_eq(topo.nr_nodes, 4);
	expect_node(&topo, 0, 0, 0, 248 * GIB);
	expect_node(&topo, 1, 1, 0, 248 * GIB);
	expect_node(&topo, 2, 2, 48, 256 * GIB);
	expect_node(&topo, 3, 3, 48, 256 * GIB);
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, guest_recorded_under_linux_matches_its_kernel)
{
	struct pcpi_topo topo = recorded("recorded-guest.xml");

	cr_assert_eq(topo.nr_nodes, 3);
	expect_node(&topo, 0, 0, 2, 686489600);
	expect_node(&topo, 1, 1, 2, 722837504);
	expect_node(&topo, 2, 2, 0, 515538944);
	expect_cpus(&topo, 0, 1, 0);
	expect_cpus(&topo, 2, 3, 1);
	expect_distances(&topo,
			 (const unsigned[]){10, 21, 17, 21, 10, 28, 17, 28, 10});
	pcpi_topo_free(&topo);
}

/* --- nodes without memory --- */

Test(topo_hwloc, nodes_without_memory_stay_and_are_not_selected)
{
	struct pcpi_topo topo = recorded("no-memory.xml");
	struct pcpi_topo_error err;
	unsigned out[4], nr;

	cr_assert_eq(topo.nr_nodes, 4);
	expect_node(&topo, 0, 0, 4, 64 * GIB);
	expect_node(&topo, 1, 1, 4, 0);
	expect_node(&topo, 2, 2, 4, 0);
	expect_node(&topo, 3, 3, 4, 64 * GIB);
	cr_assert_eq(pcpi_topo_nearest_with_memory(&topo, 1), 0);
	cr_assert_eq(pcpi_topo_nearest_with_memory(&topo, 2), 3);
	cr_assert_eq(pcpi_topo_select(&topo, NULL, out, &nr, &err), 0);
	cr_assert_eq(nr, 2);
	cr_assert_eq(out[1], 3);
	cr_assert_eq(pcpi_topo_select(&topo, "0-1", out, &nr, &err), -ENODEV);
	cr_assert_eq(err.what, PCPI_TOPO_NO_MEMORY);
	cr_assert_eq(err.where, 1);
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, no_memory_anywhere_selects_nothing)
{
	struct pcpi_topo topo = synthetic("Package:2 [NUMANode(memory=0)] PU:2");
	struct pcpi_topo_error err;
	unsigned out[2], nr;

	cr_assert_eq(topo.nr_nodes, 2);
	cr_assert_eq(pcpi_topo_nearest_with_memory(&topo, 1), -1);
	cr_assert_eq(pcpi_topo_select(&topo, NULL, out, &nr, &err), -ENODEV);
	pcpi_topo_free(&topo);
}

/* --- allowed sets --- */

Test(topo_hwloc, denied_cpus_and_nodes_are_left_out)
{
	struct pcpi_topo topo = recorded("restricted.xml");

	cr_assert_eq(topo.nr_nodes, 1);
	cr_assert_eq(topo.nr_cpus, 12);
	expect_node(&topo, 0, 0, 12, 256 * GIB);
	expect_cpus(&topo, 0, 11, 0);
	expect_cpus(&topo, 12, 96, -1);
	pcpi_topo_free(&topo);
}

/* A program that asks hwloc for everything still only gets what is allowed. */
Test(topo_hwloc, denied_objects_that_are_loaded_are_left_out)
{
	hwloc_topology_t hwloc = begin();
	struct pcpi_topo topo;

	cr_assert_eq(hwloc_topology_set_flags(
			     hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED),
		     0);
	cr_assert_eq(hwloc_topology_set_xml(hwloc, PCPI_TEST_DATA
					    "/topologies/restricted.xml"),
		     0);
	cr_assert_eq(hwloc_topology_load(hwloc), 0);
	cr_assert_not(hwloc_topology_is_thissystem(hwloc));
	cr_assert_eq(hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_NUMANODE), 2);
	topo = build(hwloc);
	cr_assert_eq(topo.nr_nodes, 1);
	cr_assert_eq(topo.nr_cpus, 12);
	expect_node(&topo, 0, 0, 12, 256 * GIB);
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, restricted_cpus_leave_a_node_without_any)
{
	hwloc_topology_t hwloc =
		open_synthetic("Package:2 [NUMANode(memory=1GiB)] PU:48");
	hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
	struct pcpi_topo topo;

	hwloc_bitmap_set_range(cpus, 4, 9);
	cr_assert_eq(hwloc_topology_restrict(hwloc, cpus, 0), 0);
	hwloc_bitmap_free(cpus);
	topo = build(hwloc);
	cr_assert_eq(topo.nr_nodes, 2);
	cr_assert_eq(topo.nr_cpus, 6);
	expect_node(&topo, 0, 0, 6, GIB);
	expect_node(&topo, 1, 1, 0, GIB);
	expect_cpus(&topo, 0, 3, -1);
	expect_cpus(&topo, 4, 9, 0);
	pcpi_topo_free(&topo);
}

/* Node 0 is denied, its CPUs are not: they draw on what there is. */
Test(topo_hwloc, cpus_of_a_denied_node_count_for_another)
{
	hwloc_topology_t hwloc =
		open_synthetic("Package:3 [NUMANode(memory=1GiB)] PU:4");
	hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
	struct pcpi_topo topo;

	hwloc_bitmap_set_range(nodes, 1, 2);
	cr_assert_eq(hwloc_topology_restrict(hwloc, nodes,
					     HWLOC_RESTRICT_FLAG_BYNODESET),
		     0);
	hwloc_bitmap_free(nodes);
	topo = build(hwloc);
	cr_assert_eq(topo.nr_nodes, 2);
	cr_assert_eq(topo.nr_cpus, 12);
	expect_node(&topo, 0, 1, 8, GIB);
	expect_node(&topo, 1, 2, 4, GIB);
	pcpi_topo_free(&topo);
}

/* --- properties --- */

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void check_properties(const struct pcpi_topo *topo, unsigned pus)
{
	unsigned *order = malloc(topo->nr_nodes * sizeof(*order));
	bool *seen = malloc(topo->nr_nodes);
	unsigned sum = 0;

	cr_assert_eq(topo->nr_cpus, pus);
	for (unsigned self = 0; self < topo->nr_nodes; self++) {
		unsigned share = pcpi_topo_cpus_of(topo, self);

		sum += topo->nodes[self].nr_cpus;
		cr_assert(share > 0 && share <= pus);
		cr_assert_eq(pcpi_topo_distance(topo, self, self), 10);
		memset(seen, 0, topo->nr_nodes);
		pcpi_topo_fallback(topo, self, order);
		cr_assert_eq(order[0], self);
		for (unsigned i = 0; i < topo->nr_nodes; i++) {
			cr_assert_not(seen[order[i]]);
			seen[order[i]] = true;
		}
	}
	cr_assert_eq(sum, pus);
	free(order);
	free(seen);
}

Test(topo_hwloc, random_machines_keep_the_invariants)
{
	unsigned seed = 41;
	char text[256];

	printf("seed %u\n", seed);
	for (int round = 0; round < 60; round++) {
		unsigned packages = 1 + next_random(&seed) % 4;
		unsigned groups = 1 + next_random(&seed) % 4;
		unsigned pus =
			1 + next_random(&seed) % (1024 / (packages * groups));
		bool root = next_random(&seed) % 2,
		     beside = next_random(&seed) % 2;
		struct pcpi_topo topo;

		snprintf(text, sizeof(text),
			 "%sPackage:%u %sGroup:%u [NUMANode(memory=%uGiB)] "
			 "PU:%u",
			 root ? "[NUMANode(memory=8GiB)] " : "", packages,
			 beside ? "[NUMANode(memory=0)] " : "", groups,
			 next_random(&seed) % 3, pus);
		topo = synthetic(text);
		cr_assert_eq(topo.nr_nodes,
			     packages * groups + root + packages * beside, "%s",
			     text);
		check_properties(&topo, packages * groups * pus);
		pcpi_topo_free(&topo);
	}
}

/* --- the process's own --- */

/* The kernel's own word for a CPU's node: a link beside the CPU's files. */
static int node_in_sysfs(const struct pcpi_topo *topo, long cpu)
{
	char path[128];

	for (unsigned i = 0; i < topo->nr_nodes; i++) {
		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%ld/node%u", cpu,
			 topo->nodes[i].os_index);
		if (access(path, F_OK) == 0)
			return (int)i;
	}
	return -1;
}

Test(topo_hwloc, load_gives_this_machine_and_keeps_errno)
{
	const struct pcpi_topo *topo, *again;

	unsetenv("HWLOC_SYNTHETIC");
	unsetenv("HWLOC_XMLFILE");
	errno = 4711;
	cr_assert_eq(pcpi_topo_load(&topo), 0);
	cr_assert_eq(errno, 4711);
	cr_assert(pcpi_topo_check(topo));
	cr_assert_not(topo->guessed);
	cr_assert_leq(topo->nr_cpus, (unsigned)sysconf(_SC_NPROCESSORS_CONF));
	for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		int pos = pcpi_topo_node_of_cpu(topo, (int)cpu);
		int want = node_in_sysfs(topo, cpu);

		printf("CPU %ld: %d\n", cpu, pos);
		if (pos >= 0 && want >= 0)
			cr_assert_eq(pos, want, "CPU %ld", cpu);
	}
	for (unsigned i = 0; i < topo->nr_nodes; i++)
		printf("node %u: %u CPUs, %llu MiB\n", topo->nodes[i].os_index,
		       topo->nodes[i].nr_cpus,
		       (unsigned long long)topo->nodes[i].memory_bytes >> 20);
	cr_assert_geq(pcpi_topo_nearest_with_memory(topo, 0), 0);
	cr_assert_eq(pcpi_topo_load(&again), 0);
	cr_assert_eq(again, topo);
}

static bool node_0_is_allowed(void)
{
	struct bitmask *mems;
	bool yes;

	if (numa_available() < 0)
		return false;
	mems = numa_get_mems_allowed();
	yes = numa_bitmask_isbitset(mems, 0);
	numa_free_nodemask(mems);
	return yes;
}

/* For this process, which is one test. */
static void deny_mempolicy(void)
{
	cr_assert(sandbox_refuse(__NR_get_mempolicy, EPERM));
	cr_assert_eq(get_mempolicy(NULL, NULL, 0, NULL, 0), -1);
	cr_assert_eq(errno, EPERM);
}

/* hwloc is told of a node that this kernel doesn't have or doesn't allow, as
 * in a container that hides the control groups' files. */
static void expect_denied_left_out(void (*before)(void))
{
	hwloc_topology_t hwloc = begin();
	struct pcpi_topo topo;

	if (!node_0_is_allowed())
		cr_skip_test("no NUMA calls here, or node 0 is denied");
	cr_assert_eq(hwloc_topology_set_flags(hwloc,
					      HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM),
		     0);
	cr_assert_eq(hwloc_topology_set_synthetic(
			     hwloc, "Package:2 [NUMANode(memory=1GiB "
				    "indexes=0,1023)] PU:1"),
		     0);
	cr_assert_eq(hwloc_topology_load(hwloc), 0);
	cr_assert(hwloc_topology_is_thissystem(hwloc));
	if (before)
		before();
	topo = build(hwloc);
	cr_assert_eq(topo.nr_nodes, 1);
	expect_node(&topo, 0, 0, 2, GIB);
	pcpi_topo_free(&topo);
}

Test(topo_hwloc, nodes_that_the_kernel_denies_are_left_out)
{
	expect_denied_left_out(NULL);
}

/* Also where the call is denied: its status tells. */
Test(topo_hwloc, nodes_are_denied_in_a_sandbox_too)
{
	expect_denied_left_out(deny_mempolicy);
}

Test(topo_hwloc, load_honours_hwloc_synthetic_variable)
{
	const struct pcpi_topo *topo;

	setenv("HWLOC_SYNTHETIC",
	       "Package:2 [NUMANode(memory=2GiB indexes=1,5)] PU:1", 1);
	cr_assert_eq(pcpi_topo_load(&topo), 0);
	cr_assert_eq(topo->nr_nodes, 2);
	expect_node(topo, 0, 1, 1, 2 * GIB);
	expect_node(topo, 1, 5, 1, 2 * GIB);
}

Test(topo_hwloc, load_honours_hwloc_xmlfile_variable)
{
	const struct pcpi_topo *topo;

	setenv("HWLOC_XMLFILE", PCPI_TEST_DATA "/topologies/memory-package.xml",
	       1);
	cr_assert_eq(pcpi_topo_load(&topo), 0);
	expect_memory_node(topo, 256 * GIB);
}

static void *load_thread(void *arg)
{
	const struct pcpi_topo **out = arg;

	pcpi_topo_load(out);
	return NULL;
}

Test(topo_hwloc, load_from_many_threads_happens_once)
{
	const struct pcpi_topo *topo[8] = {NULL};
	pthread_t threads[8];

	for (int i = 0; i < 8; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, load_thread,
					    &topo[i]),
			     0);
	for (int i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 8; i++)
		cr_assert(topo[i] && topo[i] == topo[0]);
	cr_assert(pcpi_topo_check(topo[0]));
}

/* Without any component hwloc has nothing to discover. */
Test(topo_hwloc, load_without_hwloc_makes_up_one_node)
{
	const struct pcpi_topo *topo;

	setenv("HWLOC_COMPONENTS", "stop", 1);
	cr_assert_eq(pcpi_topo_load(&topo), 0);
	cr_assert(topo->guessed);
	cr_assert(pcpi_topo_check(topo));
	cr_assert_eq(topo->nr_cpus, (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
	cr_assert_eq(pcpi_topo_node_of_cpu(topo, 0), 0);
	cr_assert_gt(topo->nodes[0].memory_bytes, 0);
}
