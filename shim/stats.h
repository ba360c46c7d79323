/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.h - counters, and the text that shows them.  The text is made and written
 * without the C library's streams and memory, so that a signal may ask for it.
 */
#ifndef SHIM_STATS_H
#define SHIM_STATS_H

#include "atomics.h"
#include "base.h"

enum shim_counter {
	SHIM_PASSED,   /* anonymous mappings that the kernel served */
	SHIM_ADVISED,  /* of those, advised for huge pages */
	SHIM_DISCARDS, /* extents whose memory went back */
	SHIM_PURGES,   /* MADV_DONTNEED served by clearing */
	SHIM_TAINTS,   /* changes of a mapping that outlive the call */
	SHIM_MOVES,    /* mremap() that left the range */
	SHIM_CLAIMS,   /* mappings at an address in the range */
	SHIM_COUNTERS
};

extern uint64_t shim_counters[SHIM_COUNTERS];

/* relaxed: a count that is read at the end; two threads at once may lose one. */
#define shim_count(which) pcpi_counter_inc(&shim_counters[which])

/* Appends the numbers to the file that PCPA_PRELOAD_STATS names; "-" is standard
 * error, %p in the name the process's number. */
void shim_stats_write(void);

#endif
