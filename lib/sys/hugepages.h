/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugepages.h - which huge pages this machine has.  Layer 1.
 *
 * Owns: the names and formats of the kernel's files about hugetlb pools and
 * transparent huge pages.  Does not own: which of them a heap uses (arena.c).
 *
 * What can't be read counts as absent: a container without /sys has no huge
 * pages.  Answers are true at the time of the call only.
 */
#ifndef PCPI_HUGEPAGES_H
#define PCPI_HUGEPAGES_H

#include "sys.h"

/* No architecture has more hugetlb sizes than this. */
#define PCPI_HUGETLB_SIZES 8

/* Of one hugetlb size on one node, in huge pages. */
struct pcpi_hugetlb_pool {
	uint64_t total;  /* nr_hugepages of the node                    */
	uint64_t usable; /* free, not promised, or may come as surplus */
};

enum pcpi_thp_mode {
	PCPI_THP_NEVER,
	PCPI_THP_MADVISE,
	PCPI_THP_ALWAYS,
};

/* Stores the hugetlb sizes, the largest first, and returns how many. */
unsigned pcpi_hugepages_sizes(size_t out[PCPI_HUGETLB_SIZES]);

/* The node's pool of pages of page_bytes; zeros where there is none. */
void pcpi_hugepages_pool(size_t page_bytes, unsigned os_node,
			 struct pcpi_hugetlb_pool *out);

/* Writes the shell command that makes the node's pool hold `pages` pages. */
void pcpi_hugepages_command(size_t page_bytes, unsigned os_node, uint64_t pages,
			    char *buf, size_t size);

/* What transparent huge pages of the PMD's size are set to, for private memory or
 * for that of memory files. */
enum pcpi_thp_mode pcpi_hugepages_thp(bool shared);

/* Bytes of a transparent huge page, 0 where the kernel has none. */
size_t pcpi_hugepages_thp_bytes(void);

#endif
