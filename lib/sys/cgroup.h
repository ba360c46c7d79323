/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cgroup.h - how much memory the control groups, the machine and a node leave.
 * Layer 1.
 *
 * Owns: finding the process's groups and reading their limits, version 2 and
 * version 1.  Does not own: the margin to keep (arena.c).
 */
#ifndef PCPI_CGROUP_H
#define PCPI_CGROUP_H

#include "sys.h"

/* UINT64_MAX: no limit. */
struct pcpi_memory_room {
	uint64_t limit; /* the lowest limit of a memory group           */
	uint64_t left;  /* the least that any of the groups leaves      */
	uint64_t machine_left; /* what the machine could give           */
};

/* Ordinary memory.  Page cache that nobody uses counts as left. */
void pcpi_cgroup_memory(struct pcpi_memory_room *out);

/* Ordinary memory that the kernel would take of the node if `want` bytes of it are
 * preferred; UINT64_MAX: it doesn't say. */
uint64_t pcpi_node_memory_left(unsigned os_node, uint64_t want);

/* Bytes of hugetlb pages of page_bytes that the groups leave; UINT64_MAX
 * without a limit. */
uint64_t pcpi_cgroup_hugetlb_left(size_t page_bytes);

/* The size as the names of hugetlb groups' files have it: "2MB". */
void pcpi_cgroup_size_name(size_t page_bytes, char *buf, size_t size);

#endif
