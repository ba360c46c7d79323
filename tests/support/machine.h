/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * machine.h - heaps on a machine that hwloc reads from a description; each thread
 * says on which CPU it is, and what the kernel would say of its node.
 */
#ifndef MACHINE_H
#define MACHINE_H

#include "heap_fixture.h"
#include "sys/sys.h"

static __thread int my_cpu, my_node = -1;
static struct pcpi_sys table;

static inline int cpu_said(void)
{
	return my_cpu;
}

static inline int node_said(void)
{
	return my_node;
}

static inline void machine(const char *variable, const char *value)
{
	setenv(variable, value, 1);
	table = pcpi_sys_linux;
	table.cpu = cpu_said;
	table.node = node_said;
	pcpi_sys = &table;
}

static inline void machine_file(const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/topologies/%s", PCPI_TEST_DATA, name);
	machine("HWLOC_XMLFILE", path);
}

static inline struct pcpa_heap *heap_on(const char *nodes, size_t initial, size_t max,
				 unsigned flags)
{
	struct pcpa_heap_options o = PCPA_HEAP_OPTIONS_INIT;
	struct pcpa_heap *heap = NULL;
	int err;

	o.nodes = nodes;
	o.initial_bytes = initial;
	o.max_bytes = max;
	o.flags = flags;
	o.verbosity = 0;
	err = pcpa_heap_create(&o, &heap);
	cr_assert_eq(err, 0, "create: %d", err);
	return heap;
}

#endif
