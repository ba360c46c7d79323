/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replaced.h - functions of EAL's and the library's that the handler's test has of
 * its own, and the plugin finds first: whether it is a secondary process, which
 * addresses devices see, and what VFIO is asked to map.
 */
#ifndef TESTS_DPDK_REPLACED_H
#define TESTS_DPDK_REPLACED_H

#include <stdbool.h>
#include <stdint.h>

extern struct replaced {
	bool secondary, vfio, physical;	       /* what is */
	uint64_t mapped_bytes, unmapped_bytes; /* what VFIO was told */
} replaced;

#endif
