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

#endif
