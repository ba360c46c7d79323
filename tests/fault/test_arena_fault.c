/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_arena_fault.c - each system call of a space's life fails once.
 *
 * A life is create, two grows, a release and destroy.  Whatever fails, each
 * step succeeds or says so, and afterwards nothing is mapped or populated: by
 * the books of the fake, and by the process's own maps file.
 */
#include "../../lib/arena.h"
#include "../support/fake_sys.h"
#include "../support/heap_fixture.h"

/* More calls than any life makes. */
#define MAX_CALLS 2000u

static void install(bool hugetlb)
{
	fake_sys_install();
	fake_sys_file("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
		      "always [advise] never\n");
	if (hugetlb)
		fake_sys_pool(2 * MIB, 0, 4);
	fake_sys_file("/proc/self/cgroup", "0::/a\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.max", "4294967296\n");
	fake_sys_file("/sys/fs/cgroup/a/memory.current", "4096\n");
}

/* Destroys, once more if the first refusal was the injected one. */
static void destroy(struct pcpi_space *space)
{
	int rc = pcpi_space_destroy(space);

	if (rc != 0) {
		cr_expect_eq(rc, -ENOMEM);
		rc = pcpi_space_destroy(space);
	}
	cr_expect_eq(rc, 0);
}

/* The arenas must be real; then a release may be refused, and changes nothing. */
static void use_space(struct pcpi_space *space)
{
	struct pcpi_arena a, b;
	uint64_t sum = 0;
	bool has_b;

	if (pcpi_arena_grow(space, 0, 8 * MIB, false, &a) == 0)
		sum += a.bytes;
	has_b = pcpi_arena_grow(space, 1, 8 * MIB, false, &b) == 0;
	if (has_b)
		sum += b.bytes;
	cr_expect_geq(sum, 8 * MIB, "one failure costs one arena at most");
	cr_expect_eq(space->nodes[0].used_bytes + space->nodes[1].used_bytes,
		     sum);
	pcpi_space_check(space);
	if (has_b && pcpi_arena_give_back(space, &b) == 0)
		sum -= b.bytes;
	cr_expect_eq(space->nodes[0].used_bytes + space->nodes[1].used_bytes,
		     sum);
	pcpi_space_check(space);
}

/* Returns whether the Nth call came at all. */
static bool live(bool hugetlb, bool is_default, bool shared, unsigned fail_call)
{
	static const struct pcpi_space_node_spec nodes[2] = {{0, 64 * MIB},
							     {1, 64 * MIB}};
	struct pcpi_space_spec spec = {.nodes = nodes,
				       .nr_nodes = 2,
				       .max_is_default = is_default,
				       .shared = shared,
				       .verbosity = 1};
	struct pcpi_space space;
	unsigned long before = maps_kib();
	uint64_t free_pages;
	int rc;

	install(hugetlb);
	free_pages = fake.pools[0].free;
	fake.fail_call = fail_call;
	rc = pcpi_space_create(&space, &spec);
	cr_expect(rc == 0 || rc == -ENOMEM, "call %u: %d", fail_call, rc);
	if (rc == 0) {
		use_space(&space);
		destroy(&space);
	}
	cr_expect_eq(fake_sys_mapped(), 0, "call %u", fail_call);
	cr_expect_eq(fake_sys_open_files(), 0, "call %u", fail_call);
	cr_expect_eq(fake.populated_bytes, 0, "call %u", fail_call);
	cr_expect_eq(fake.pools[0].free, free_pages, "call %u", fail_call);
	cr_expect_eq(maps_kib(), before, "call %u", fail_call);
	return fake.calls >= fail_call;
}

static void fail_each_call(bool hugetlb, bool is_default, bool shared)
{
	unsigned n = 1;

	live(hugetlb, is_default, shared, 0);
	while (live(hugetlb, is_default, shared, n) && n < MAX_CALLS)
		n++;
	cr_expect_gt(n, 40, "the calls of a life");
	cr_expect_lt(n, MAX_CALLS);
}

Test(arena_fault, nth_call_fails_with_hugetlb_leaves_nothing)
{
	fail_each_call(true, false, false);
}

Test(arena_fault, nth_call_fails_with_transparent_pages_leaves_nothing)
{
	fail_each_call(false, false, false);
}

Test(arena_fault, nth_call_fails_with_default_maximum_leaves_nothing)
{
	fail_each_call(true, true, false);
}

Test(arena_fault, nth_call_fails_with_shared_hugetlb_leaves_nothing)
{
	fail_each_call(true, false, true);
}

Test(arena_fault, nth_call_fails_with_shared_memory_leaves_nothing)
{
	fail_each_call(false, false, true);
}

Test(arena_fault, everything_refused_fails_cleanly)
{
	static const struct pcpi_space_node_spec node = {0, 64 * MIB};
	struct pcpi_space_spec spec = {.nodes = &node, .nr_nodes = 1};
	struct pcpi_space space;

	install(true);
	fake.reserve_rc = -ENOMEM;
	spec.max_is_default = true;
	cr_expect_eq(pcpi_space_create(&space, &spec), -ENOMEM);
	cr_expect_eq(fake_sys_mapped(), 0);
	spec.max_is_default = false;
	cr_expect_eq(pcpi_space_create(&space, &spec), -ENOMEM);
	cr_expect_eq(fake_sys_mapped(), 0);
}
