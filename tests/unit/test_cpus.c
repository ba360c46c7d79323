/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cpus.c - the bounds of caches when processors go offline or come: the
 * kernel's lists are the test's, the machine is the one that runs it.
 */
#include "../support/clock_fixture.h"

#define MAX_BLOCKS 4096u

static char online[4096], of_node[4096]; /* "": as it is */
static void *blocks[MAX_BLOCKS];

static ssize_t read_said(const char *path, char *buf, size_t size)
{
	const char *said = "";
	size_t len;

	if (strcmp(path, "/sys/devices/system/cpu/online") == 0)
		said = online;
	else if (strstr(path, "/cpulist"))
		said = of_node;
	if (said[0] == '\0')
		return pcpi_sys_linux.read_file(path, buf, size);
	if (said[0] == '-')
		return -EACCES;
	len = strlen(said) < size - 1 ? strlen(said) : size - 1;
	memcpy(buf, said, len);
	buf[len] = '\0';
	return (ssize_t)len;
}

static void setup(void)
{
	clock_setup();
	table.read_file = read_said;
}

TestSuite(cpus, .init = setup);

/* A heap whose bounds are large enough to be divided by a few. */
static struct pcpa_heap *heap_on_cpus(unsigned cpus)
{
	struct pcpa_heap *heap = heap_fixed(64 * MIB, 0);

	if (heap->topo->nr_nodes > 1 || heap->topo->nr_cpus < cpus)
		cr_skip("needs one node with %u processors", cpus);
	return heap;
}

static uint32_t high_max(struct pcpa_heap *heap)
{
	return pcpi_zone_pageset(&heap->env.zones[0]).high_max;
}

static uint32_t share_of(struct pcpa_heap *heap, unsigned cpus)
{
	return (uint32_t)(stats_of(heap, -1).managed_pages / 8 / cpus);
}

/* The first allowed CPU as a list; of the others none. */
static void first_cpu_only(const struct pcpi_topo *topo)
{
	unsigned cpu = 0;

	while (pcpi_topo_node_of_cpu(topo, (int)cpu) < 0)
		cpu++;
	snprintf(online, sizeof(online), "%u\n", cpu);
}

Test(cpus, processor_that_goes_offline_is_no_sharer)
{
	struct pcpa_heap *heap = heap_on_cpus(2);
	unsigned cpus = heap->topo->nr_cpus;

	tick(heap);
	cr_expect_eq(high_max(heap), share_of(heap, cpus));
	first_cpu_only(heap->topo);
	cr_expect_eq(high_max(heap), share_of(heap, cpus), "before a tick");
	tick(heap);
	cr_expect_eq(high_max(heap), share_of(heap, 1));
	online[0] = '\0';
	tick(heap);
	cr_expect_eq(high_max(heap), share_of(heap, cpus));
	heap_end(heap);
}

Test(cpus, processor_that_comes_counts_where_none_was_denied)
{
	struct pcpa_heap *heap = heap_on_cpus(1);
	struct pcpi_topo topo = *heap->topo;
	unsigned cpus = topo.nr_cpus;

	cr_assert(topo.here);
	if (!topo.cpu_node)
		cr_skip("needs hwloc's word");
	heap->topo = &topo;
	snprintf(online, sizeof(online), "0-%u\n", topo.nr_os_cpus + 2);
	snprintf(of_node, sizeof(of_node), "0-%u\n", topo.nr_os_cpus + 1);
	topo.whole = false;
	tick(heap);
	cr_expect_eq(high_max(heap), share_of(heap, cpus));
	topo.whole = true;
	/* The same in another way. */
	snprintf(online, sizeof(online), "0,1-%u\n", topo.nr_os_cpus + 2);
	tick(heap);
	cpus = topo.nr_os_cpus + 2; /* one is on no node of the heap's */
	cr_expect_eq(high_max(heap), share_of(heap, cpus));
	heap->topo = NULL;
	pcpi_topo_load(&heap->topo);
	heap_end(heap);
}

Test(cpus, bounds_that_fall_bring_back_what_is_above)
{
	struct pcpa_heap *heap = heap_on_cpus(2);

	first_cpu_only(heap->topo);
	tick(heap);
	while (stats_of(heap, -1).cached_pages <=
	       share_of(heap, heap->topo->nr_cpus)) {
		cr_assert_eq(pcpa_alloc_bulk(heap, 0, 0, blocks, MAX_BLOCKS),
			     MAX_BLOCKS);
		for (unsigned i = 0; i < MAX_BLOCKS; i++) {
			pcpa_free(heap, blocks[i]);
			if (stats_of(heap, -1).cached_pages >
			    share_of(heap, heap->topo->nr_cpus)) {
				pcpa_free_bulk(heap, blocks + i + 1,
					       MAX_BLOCKS - 1 - i);
				break;
			}
		}
	}
	online[0] = '\0';
	tick(heap);
	cr_expect_leq(stats_of(heap, -1).cached_pages,
		      share_of(heap, heap->topo->nr_cpus));
	heap_end(heap);
}

Test(cpus, list_that_is_not_understood_changes_nothing)
{
	static const char *const bad[] = {"-", "\n", "0-\n", "what\n", "1-0\n"};
	struct pcpa_heap *heap = heap_on_cpus(2);
	uint32_t before = high_max(heap);

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(online, bad[i]);
		tick(heap);
		cr_expect_eq(high_max(heap), before, "'%s'", bad[i]);
	}
	/* Whole up to where it is cut. */
	strcpy(online, "0");
	while (strlen(online) < 3000)
		strcat(online, ",0");
	tick(heap);
	cr_expect_eq(high_max(heap), before, "cut");
	heap_end(heap);
}

Test(cpus, described_machine_stays_as_it_is)
{
	struct pcpa_heap *heap;
	uint32_t before;

	setenv("HWLOC_SYNTHETIC", "Package:2 [NUMANode(memory=1GiB)] PU:4", 1);
	heap = heap_fixed(64 * MIB, 0);
	cr_assert_not(heap->topo->here);
	before = high_max(heap);
	strcpy(online, "0\n");
	tick(heap);
	cr_expect_eq(high_max(heap), before);
	heap_end(heap);
}
