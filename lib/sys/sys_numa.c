/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sys_numa.c - binding memory to a node, and asking where it is, through
 * libnuma.  Layer 1.
 *
 * Owns: the one call of mbind() and the one of move_pages(), which moves
 * nothing here.  It is a file of its own so that the preload shim, which has no
 * libnuma, can leave it out.
 *
 * Ordinary memory is "preferred", not "bound": a bound range that its node
 * can't hold has the process killed, where a preferred one comes from another
 * node, which elsewhere() then finds.  Hugetlb memory is bound: what its node
 * can't hold is an error of populate().  Either has to be set before the range
 * is populated: pages that are there don't move.
 *
 *   mask of 64-bit words, only as long as needed for the node:
 *   node 70   word 0: 0   word 1: bit 6   bits passed to the kernel: 72
 *
 * The kernel takes the number of bits plus one, and refuses set bits beyond
 * the nodes it was built for; a longer mask would be refused beyond a page.
 *
 * Concurrency: none; acts on the caller's range.  Cost: one system call to bind;
 * to ask, one for 256 pages, which take some 0.1 us each.
 * Failure: a negative errno; the range keeps its policy.  EPERM in containers
 * that deny the call, ENOSYS in kernels without NUMA, EINVAL for a node that
 * isn't there, isn't allowed or has no memory: what it means is for the heap
 * to say (arena_node.c).
 * Proved by tests/unit/test_sys_numa.c; on real nodes by tests/vm.
 */
#include <errno.h>
#include <limits.h>
#include <numaif.h>
#include <string.h>

#include "sys.h"

#define WORD_BITS ((unsigned)(sizeof(unsigned long) * CHAR_BIT))

/* Far above the 1,024 nodes a kernel can be built for; 512 bytes of stack. */
#define MAX_NODES 4096u

/* Pages asked for at once; 3 KiB of stack. */
#define ASKED 256u

int pcpi_sys_bind_numa(void *addr, size_t bytes, unsigned os_node,
		       enum pcpi_binding how)
{
	int mode = how == PCPI_BIND_ONLY ? MPOL_BIND : MPOL_PREFERRED;
	unsigned long mask[MAX_NODES / (sizeof(unsigned long) * CHAR_BIT)];
	int saved = errno, rc = 0;

	if (os_node >= MAX_NODES)
		return -EINVAL;
	memset(mask, 0, (os_node / WORD_BITS + 1) * sizeof(mask[0]));
	mask[os_node / WORD_BITS] = 1ul << os_node % WORD_BITS;
	if (mbind(addr, bytes, mode, mask, os_node + 2ul, 0) != 0)
		rc = -errno;
	errno = saved;
	return rc;
}

/* Of n addresses; a page that isn't there is nowhere. */
static ssize_t count_elsewhere(void **at, unsigned n, unsigned os_node)
{
	int status[ASKED];
	ssize_t count = 0;

	if (move_pages(0, n, at, NULL, status, 0) != 0)
		return -errno;
	for (unsigned i = 0; i < n; i++)
		count += status[i] >= 0 && (unsigned)status[i] != os_node;
	return count;
}

ssize_t pcpi_sys_elsewhere_numa(const void *addr, size_t bytes, size_t step,
				unsigned os_node)
{
	char *from = (char *)(uintptr_t)addr;
	int saved = errno;
	ssize_t sum = 0, more = 0;
	void *at[ASKED];

	for (size_t done = 0; done < bytes && more >= 0;) {
		unsigned n = 0;

		for (; n < ASKED && done < bytes; done += step)
			at[n++] = from + done;
		more = count_elsewhere(at, n, os_node);
		sum += more;
	}
	errno = saved;
	return more < 0 ? more : sum;
}
