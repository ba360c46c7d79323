/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys_numa.c - binding memory to a node, through libnuma.  Layer 1.
 *
 * Owns: the one call of mbind().  It is a file of its own so that the preload
 * shim, which has no libnuma, can leave it out.
 *
 * The policy is "preferred", not "bind": an arena that its node can't hold
 * comes from another one, which the statistics show, where a bound one would
 * have the process killed.  It has to be set before the range is populated:
 * pages that are there don't move.
 *
 *   mask of 64-bit words, only as long as needed for the node:
 *   node 70   word 0: 0   word 1: bit 6   bits passed to the kernel: 72
 *
 * The kernel takes the number of bits plus one, and refuses set bits beyond
 * the nodes it was built for; a longer mask would be refused beyond a page.
 *
 * Concurrency: none; acts on the caller's range.  Cost: one system call.
 * Failure: a negative errno; the range keeps its policy.  EPERM in containers
 * that deny the call, ENOSYS in kernels without NUMA, EINVAL for a node that
 * isn't there, isn't allowed or has no memory: none of them is fatal to a heap.
 * Proved by tests/unit/test_topo_hwloc.c.
 */
#include <errno.h>
#include <limits.h>
#include <numaif.h>
#include <string.h>

#include "sys.h"

#define WORD_BITS ((unsigned)(sizeof(unsigned long) * CHAR_BIT))

/* Far above the 1,024 nodes a kernel can be built for; 512 bytes of stack. */
#define MAX_NODES 4096u

int pcpi_sys_bind_numa(void *addr, size_t bytes, unsigned os_node)
{
	unsigned long mask[MAX_NODES / (sizeof(unsigned long) * CHAR_BIT)];
	int saved = errno, rc = 0;

	if (os_node >= MAX_NODES)
		return -EINVAL;
	memset(mask, 0, (os_node / WORD_BITS + 1) * sizeof(mask[0]));
	mask[os_node / WORD_BITS] = 1ul << os_node % WORD_BITS;
	if (mbind(addr, bytes, MPOL_PREFERRED, mask, os_node + 2ul, 0) != 0)
		rc = -errno;
	errno = saved;
	return rc;
}
