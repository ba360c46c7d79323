/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replaced.h - functions of EAL's and the library's that the handler's test has of
 * its own, and the plugin finds first: whether it is a secondary process, which
 * addresses devices see, what VFIO is asked to map, and what memory there is.
 */
#ifndef TESTS_DPDK_REPLACED_H
#define TESTS_DPDK_REPLACED_H

#include <stdbool.h>
#include <stdint.h>

extern struct replaced {
	bool secondary, vfio, physical;	       /* what is */
	bool noiommu;
	bool unmappable;		       /* VFIO maps nothing */
	bool attached;			       /* EAL forgets nothing */
	uint64_t mapped_bytes, unmapped_bytes; /* what VFIO was told */
	unsigned zmalloc_fails;		       /* 1: the plugin's next one does */
	bool bulk_short;		       /* a block fewer than asked for */
} replaced;

#endif
