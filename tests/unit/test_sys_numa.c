/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_sys_numa.c - binding, and where pages are, of this machine
 * (lib/sys/sys_numa.c).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <numaif.h>
#include <string.h>
#include <sys/mman.h>

#include "sys/sys.h"
#include "topo.h"

/* The policy that the kernel has for the range. */
static void expect_policy(void *addr, int want, unsigned os_node)
{
	unsigned long mask[64] = {0};
	int mode;

	cr_assert_eq(get_mempolicy(&mode, mask, 4096 + 1, addr, MPOL_F_ADDR), 0);
	cr_assert_eq(mode, want);
	for (unsigned i = 0; i < 64; i++)
		cr_assert_eq(mask[i],
			     i == os_node / 64 ? 1ul << os_node % 64 : 0);
}

Test(sys_numa, bind_to_a_node_of_this_machine_works_or_says_why)
{
	size_t bytes = 4 * pcpi_sys_page_bytes();
	void *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct pcpi_topo *topo;
	int node, rc;

	cr_assert_neq(addr, MAP_FAILED);
	cr_assert_eq(pcpi_topo_load(&topo), 0);
	node = pcpi_topo_nearest_with_memory(topo, 0);
	errno = 4711;
	rc = pcpi_sys_bind_numa(addr, bytes, topo->nodes[node].os_index,
				PCPI_BIND_PREFER);
	cr_assert(rc == 0 || rc == -EPERM || rc == -ENOSYS, "%d", rc);
	if (rc == 0)
		expect_policy(addr, MPOL_PREFERRED, topo->nodes[node].os_index);
	rc = pcpi_sys_bind_numa(addr, bytes, topo->nodes[node].os_index,
				PCPI_BIND_ONLY);
	cr_assert(rc == 0 || rc == -EPERM || rc == -ENOSYS, "%d", rc);
	if (rc == 0)
		expect_policy(addr, MPOL_BIND, topo->nodes[node].os_index);
	rc = pcpi_sys_bind_numa(addr, bytes, 4095, PCPI_BIND_PREFER);
	cr_assert(rc == -EINVAL || rc == -EPERM || rc == -ENOSYS, "%d", rc);
	cr_assert_eq(pcpi_sys_bind_numa(addr, bytes, 65534, PCPI_BIND_PREFER),
		     -EINVAL);
	cr_assert_eq(errno, 4711);
	munmap(addr, bytes);
}

Test(sys_numa, place_of_pages_is_told_or_refused)
{
	size_t page = pcpi_sys_page_bytes(), bytes = 600 * page;
	char *addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct pcpi_topo *topo;
	ssize_t n;

	cr_assert_neq(addr, MAP_FAILED);
	cr_assert_eq(pcpi_topo_load(&topo), 0);
	errno = 4711;
	n = pcpi_sys_elsewhere_numa(addr, bytes, page, 4095);
	cr_assert_eq(errno, 4711);
	if (n == -EPERM || n == -ENOSYS)
		cr_skip_test("no move_pages here");
	cr_assert_eq(n, 0, "%zd: pages that aren't there are nowhere", n);
	memset(addr, 1, bytes);
	cr_assert_eq(pcpi_sys_elsewhere_numa(addr, bytes, page, 4095), 600);
	cr_assert_eq(pcpi_sys_elsewhere_numa(addr, bytes, 16 * page, 4095), 38);
	if (topo->nr_nodes == 1)
		cr_assert_eq(pcpi_sys_elsewhere_numa(addr, bytes, page,
						     topo->nodes[0].os_index),
			     0);
	munmap(addr, bytes);
}
