/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_arena_fall.c - every fall from the wanted kind of memory to a lesser
 * one, every clamp, and what is said about them, on an invented machine.
 */
#include "../support/arena_fixture.h"

TestSuite(arena_fall, .init = setup, .fini = teardown);

/* ---- Falls: hugetlb to transparent ---------------------------------------- */

Test(arena_fall, large_pages_come_first_then_smaller_then_transparent)
{
	fake_sys_pool(1 * GIB, 0, 1);
	fake_sys_pool(2 * MIB, 0, 3);
	nodes[0].max_bytes = 4 * GIB;
	create();
	cr_expect_eq(grow(0, 2 * MIB).page_bytes, 2 * MIB,
		     "a gigabyte for 2 MiB would be too much");
	cr_expect_eq(grow(0, 1 * GIB).page_bytes, 1 * GIB);
	cr_expect_eq(grow(0, 1 * GIB).bytes, 4 * MIB);
	cr_expect_eq(fake.says, 0);
	cr_expect_eq(grow(0, 1 * GIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(fake_sys_said("sysctl vm.nr_hugepages=515"), 1, "%s",
		     fake.said);
	grow(0, 2 * MIB);
	cr_expect_eq(fake.says, 1, "once");
}

/* As much hugetlb memory as is there and never more, since what is more is a
 * signal at the first touch; the rest is transparent. */
static void expect_pool_and_rest(size_t page, uint64_t pool_pages,
				 uint64_t want)
{
	uint64_t got = 0, huge = 0;
	struct pcpi_arena a;

	fake_sys_pool(page, 0, pool_pages);
	nodes[0].max_bytes = want;
	create();
	while (got < want) {
		a = grow(0, want - got);
		got += a.bytes;
		if (a.backing != PCPA_BACKING_HUGETLB)
			continue;
		huge += a.bytes;
		cr_expect_eq(a.page_bytes, page);
	}
	cr_expect_eq(got, want);
	cr_expect_eq(huge, pcpi_min(want, pool_pages * page));
	cr_expect_eq(fake.populated_bytes, want, "all of it, before use");
	cr_expect_eq(fake.pools[0].free, pool_pages - huge / page);
}

Test(arena_fall, six_hundred_pages_asked_of_a_pool_of_512)
{
	expect_pool_and_rest(2 * MIB, 512, 1200 * MIB);
}

Test(arena_fall, whole_heap_that_a_pool_cannot_back_is_refused)
{
	fake_sys_pool(2 * MIB, 0, 512);
	nodes[0].max_bytes = 1200 * MIB;
	fake_sys_file("/proc/meminfo", "MemAvailable: 102400 kB\n");
	create();
	cr_expect_eq(pcpi_space_can_back(&space, 1200 * MIB), -ENOMEM);
	expect_no_arena(0, 1200 * MIB, true);
	cr_expect_eq(fake.populated_bytes, 0);
	cr_expect_eq(fake.pools[0].free, 512);
}

Test(arena_fall, only_gigabyte_pages_are_there)
{
	expect_pool_and_rest(1 * GIB, 2, 2 * GIB);
}

Test(arena_fall, only_two_megabyte_pages_are_there)
{
	expect_pool_and_rest(2 * MIB, 1024, 2 * GIB);
}

Test(arena_fall, size_asked_for_is_used_alone_and_rounds_up)
{
	fake_sys_pool(1 * GIB, 0, 2);
	fake_sys_pool(2 * MIB, 0, 3);
	nodes[0].max_bytes = 4 * GIB;
	spec.hugepage_bytes = 1 * GIB;
	create();
	cr_expect_eq(space.nr_windows, 2);
	cr_expect_eq(grow(0, 2 * MIB).bytes, 1 * GIB);
	grow(0, 1 * GIB);
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(fake_sys_said("hugepages-1048576kB/nr_hugepages"), 1, "%s",
		     fake.said);
	cr_expect_eq(fake.pools[1].free, 3);
}

Test(arena_fall, size_asked_for_is_used_when_its_pages_come_later)
{
	struct fake_pool *pool = fake_sys_pool(2 * MIB, 0, 0);

	spec.hugepage_bytes = 2 * MIB;
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	pool->total = pool->free = 1;
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_HUGETLB);
}

Test(arena_fall, no_pool_in_the_kernel_is_said)
{
	create();
	grow(0, 2 * MIB);
	grow(0, 2 * MIB);
	cr_expect_eq(fake_sys_said("no hugetlb pages to be seen"), 1);
	cr_expect_eq(fake.says, 1);
}

Test(arena_fall, refused_hugetlb_mapping_falls)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake.map_hugetlb_rc = -EINVAL;
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	grow(0, 2 * MIB);
	cr_expect_eq(fake_sys_said("MAP_HUGETLB"), 1);
	cr_expect_eq(fake.says, 1);
}

Test(arena_fall, hugetlb_group_limit_falls)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake_sys_file("/proc/self/cgroup", "0::/box\n");
	fake_sys_file("/sys/fs/cgroup/box/hugetlb.2MB.max", "8388608\n");
	fake_sys_file("/sys/fs/cgroup/box/hugetlb.2MB.current", "4194304\n");
	create();
	cr_expect_eq(grow(0, 8 * MIB).bytes, 4 * MIB);
	fake_sys_file("/sys/fs/cgroup/box/hugetlb.2MB.current", "8388608\n");
	cr_expect_eq(grow(0, 8 * MIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(fake_sys_said("raise hugetlb.2MB.max"), 1, "%s", fake.said);
}

/* Of reservations, which a mapping without any meets when its pages come. */
static void rsvd_limit(const char *max, const char *current)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake_sys_file(max, "8388608\n");
	fake_sys_file(current, "4194304\n");
	create();
	cr_expect_eq(grow(0, 8 * MIB).bytes, 4 * MIB);
	fake_sys_file(current, "8388608\n");
	cr_expect_eq(grow(0, 8 * MIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(fake_sys_said("hugetlb.2MB.rsvd.max"), 1, "%s", fake.said);
}

Test(arena_fall, hugetlb_reservation_limit_falls)
{
	fake_sys_file("/proc/self/cgroup", "0::/box\n");
	rsvd_limit("/sys/fs/cgroup/box/hugetlb.2MB.rsvd.max",
		   "/sys/fs/cgroup/box/hugetlb.2MB.rsvd.current");
}

Test(arena_fall, hugetlb_reservation_limit_of_version_1_falls)
{
	fake_sys_file("/proc/self/cgroup", "7:hugetlb:/box\n");
	rsvd_limit("/sys/fs/cgroup/hugetlb/box/hugetlb.2MB.rsvd.limit_in_bytes",
		   "/sys/fs/cgroup/hugetlb/box/hugetlb.2MB.rsvd.usage_in_bytes");
}

/* The group's files can't be read: the kernel's refusal is what tells. */
Test(arena_fall, hidden_group_that_refuses_hugetlb_pages_is_named)
{
	fake_sys_pool(2 * MIB, 0, 10);
	create();
	fake.populate_rc = -EFAULT;
	expect_no_arena(0, 4 * MIB, false);
	cr_expect_eq(space.windows[0].lack, PCPI_FALL_HUGETLB_CGROUP);
	fake.populate_rc = 0;
	fake.pools[0].free = 0;
	cr_expect_eq(grow(0, 4 * MIB).backing, PCPA_BACKING_THP);
}

/* One limit for the pools of all nodes. */
Test(arena_fall, group_limit_counts_once_for_all_nodes)
{
	fake_sys_pool(2 * MIB, 0, 100);
	fake_sys_pool(2 * MIB, 1, 100);
	fake_sys_file("/proc/meminfo", "MemAvailable: 102400 kB\n");
	fake_sys_file("/proc/self/cgroup", "0::/box\n");
	fake_sys_file("/sys/fs/cgroup/box/hugetlb.2MB.max", "104857600\n");
	fake_sys_file("/sys/fs/cgroup/box/hugetlb.2MB.current", "0\n");
	spec.nr_nodes = 2;
	create();
	cr_expect_eq(pcpi_space_can_back(&space, 190 * MIB), 0);
	cr_expect_eq(pcpi_space_can_back(&space, 220 * MIB), -ENOMEM);
}

Test(arena_fall, missing_populate_call_avoids_hugetlb_and_touches)
{
	struct pcpi_arena a;

	fake_sys_pool(2 * MIB, 0, 10);
	fake.populate_rc = -EINVAL;
	create();
	a = grow(0, 2 * MIB);
	cr_expect_eq(a.backing, PCPA_BACKING_THP);
	cr_expect_eq(a.base[0], 0);
	cr_expect_eq(fake_sys_said("MADV_POPULATE_WRITE"), 1);
	fake.populates = 0;
	grow(0, 2 * MIB);
	cr_expect_eq(fake.populates, 0, "it is asked once");
}

Test(arena_fall, pool_that_shrinks_meanwhile_gives_a_smaller_arena)
{
	struct pcpi_arena a;
	struct fake_pool *pool = fake_sys_pool(2 * MIB, 0, 10);

	create();
	pool->free = 3;
	fake_sys_file("/sys/kernel/mm/hugepages/hugepages-2048kB/"
		      "free_hugepages",
		      "10\n");
	fake_sys_file("/sys/devices/system/node/node0/hugepages/"
		      "hugepages-2048kB/free_hugepages",
		      "10\n");
	a = grow(0, 20 * MIB);
	cr_expect_eq(a.backing, PCPA_BACKING_HUGETLB);
	cr_expect_eq(a.bytes, 4 * MIB, "halved until it fits");
	cr_expect_eq(fake.populated_bytes, 4 * MIB);
	cr_expect_eq(pool->free, 1);
}

Test(arena_fall, promised_pages_are_left_alone)
{
	struct fake_pool *pool = fake_sys_pool(2 * MIB, 0, 10);

	create();
	pool->promised = 8;
	cr_expect_eq(grow(0, 20 * MIB).bytes, 4 * MIB);
}

/* ---- Falls: transparent to base ------------------------------------------- */

Test(arena_fall, thp_never_falls_to_base_pages)
{
	fake_sys_file("/sys/kernel/mm/transparent_hugepage/enabled",
		      "always madvise [never]\n");
	fake_sys_pool(2 * MIB, 0, 1);
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_HUGETLB);
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_BASE);
	grow(0, 2 * MIB);
	cr_expect_eq(fake_sys_said("echo madvise > /sys/kernel/mm/"
				   "transparent_hugepage/enabled"),
		     1);
	cr_expect_eq(fake_sys_said("using base pages: `sysctl"), 1);
	cr_expect_eq(fake.says, 2);
}

Test(arena_fall, refused_thp_advice_falls_to_base_pages)
{
	fake.advise_huge_rc = -EINVAL;
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_BASE);
	cr_expect_eq(space.windows[0].page_bytes, fake.page_bytes);
	cr_expect_eq(fake_sys_said("no transparent huge pages"), 1);
}

Test(arena_fall, transparent_size_asked_for_is_no_fall)
{
	spec.hugepage_bytes = 2 * MIB;
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(fake.says, 0);
}

/* ---- Clamps --------------------------------------------------------------- */

static void box(const char *max, const char *current)
{
	fake_sys_file("/proc/self/cgroup", "0::/box\n");
	fake_sys_file("/sys/fs/cgroup/box/memory.max", max);
	fake_sys_file("/sys/fs/cgroup/box/memory.current", current);
}

Test(arena_fall, memory_group_clamps_with_a_margin)
{
	box("134217728\n", "67108864\n"); /* 128 MiB, half used */
	create();
	cr_expect_eq(grow(0, 200 * MIB).bytes, 60 * MIB);
	cr_expect_eq(fake_sys_said("raise memory.max"), 1);
	box("134217728\n", "132120576\n");
	expect_no_arena(0, 2 * MIB, false);
	cr_expect_eq(fake_sys_said("raise memory.max"), 1, "once");
}

Test(arena_fall, memory_group_does_not_clamp_hugetlb)
{
	fake_sys_pool(2 * MIB, 0, 10);
	box("134217728\n", "134217728\n");
	create();
	cr_expect_eq(grow(0, 20 * MIB).bytes, 20 * MIB);
}

Test(arena_fall, exact_beyond_the_group_touches_nothing)
{
	box("134217728\n", "67108864\n");
	create();
	expect_no_arena(0, 100 * MIB, true);
	cr_expect_eq(fake.commits, 0);
}

Test(arena_fall, what_another_grower_takes_is_not_counted_twice)
{
	box("134217728\n", "67108864\n");
	create();
	space.pending_bytes = 50 * MIB;
	cr_expect_eq(grow(0, 200 * MIB).bytes, 10 * MIB);
	cr_expect_eq(space.pending_bytes, 50 * MIB);
	space.pending_bytes = 0;
}

Test(arena_fall, machine_without_memory_clamps)
{
	fake_sys_file("/proc/meminfo", "MemAvailable: 65536 kB\n");
	create();
	cr_expect_eq(grow(0, 200 * MIB).bytes, 60 * MIB);
	cr_expect_eq(fake_sys_said("the machine's memory leaves"), 1);
}

Test(arena_fall, memory_that_ends_while_populating_gives_a_smaller_arena)
{
	fake.memory_left = 70 * MIB;
	create();
	cr_expect_eq(grow(0, 256 * MIB).bytes, 64 * MIB);
	cr_expect_eq(fake.populated_bytes, 64 * MIB);
	cr_expect_eq(fake.memory_left, 6 * MIB);
}

Test(arena_fall, no_memory_at_all_gives_everything_back)
{
	fake.memory_left = 1 * MIB;
	create();
	expect_no_arena(0, 64 * MIB, false);
	cr_expect_eq(fake.populated_bytes, 0);
	cr_expect_eq(fake.committed_bytes, 0);
	cr_expect_eq(space.windows[0].next, 0);
	fake.memory_left = 64 * MIB;
	cr_expect_eq(grow(0, 64 * MIB).base, space.base);
}

Test(arena_fall, refused_commit_gives_a_smaller_arena)
{
	fake.commit_left = 20 * MIB;
	create();
	cr_expect_eq(grow(0, 64 * MIB).bytes, 16 * MIB);
	cr_expect_eq(fake_sys_said("sysctl vm.overcommit_memory=0"), 1);
}

/* ---- Limits of the reservation -------------------------------------------- */

Test(arena_fall, default_maximum_follows_address_space)
{
	spec.max_is_default = true;
	nodes[0].max_bytes = 64 * GIB;
	fake.address_space = 1 * GIB;
	create();
	cr_expect_eq(space.bytes, 512 * MIB);
	cr_expect_eq(space.nodes[0].max_bytes, 512 * MIB);
	cr_expect_eq(fake_sys_said("RLIMIT_AS"), 1, "%s", fake.said);
}

Test(arena_fall, default_maximum_follows_the_memory_group)
{
	box("134217728\n", "0\n");
	spec.max_is_default = true;
	nodes[0].max_bytes = 64 * GIB;
	create();
	cr_expect_eq(space.nodes[0].max_bytes, 128 * MIB);
	cr_expect_eq(fake.says, 0);
}

Test(arena_fall, default_maximum_halves_where_page_indices_end)
{
	fake.own_maps_only = true;
	spec.max_is_default = true;
	spec.nr_nodes = 8;
	for (unsigned i = 0; i < 8; i++)
		nodes[i].max_bytes = 6 * TIB;
	create();
	cr_expect_eq(space.nodes[7].max_bytes, 2 * TIB);
	cr_expect_eq(fake_sys_said("2^32 pages"), 1);
}

Test(arena_fall, maximum_asked_for_beyond_address_space_names_the_limit)
{
	fake.address_space = 100 * MIB;
	cr_expect_eq(pcpi_space_create(&space, &spec), -ENOMEM);
	cr_expect_eq(fake_sys_said("max_bytes=268435456"), 1);
	cr_expect_eq(fake_sys_said("RLIMIT_AS (ulimit -v)"), 1);
}

Test(arena_fall, locked_memory_limit_is_named)
{
	fake.reserve_rc = -EAGAIN;
	cr_expect_eq(pcpi_space_create(&space, &spec), -ENOMEM);
	cr_expect_eq(fake_sys_said("RLIMIT_MEMLOCK"), 1);
}

Test(arena_fall, tight_address_space_drops_hugetlb_windows_first)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake.address_space = 300 * MIB;
	create();
	cr_expect_eq(space.nr_windows, 1);
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(fake.says, 1, "%s", fake.said);
}

/* ---- Binding -------------------------------------------------------------- */

Test(arena_fall, windows_are_bound_to_their_os_node)
{
	spec.nr_nodes = 2;
	nodes[0].os_node = 3;
	nodes[1].os_node = 7;
	create();
	cr_expect_eq(fake.binds, 2);
	cr_expect_eq(fake.bound_nodes[0], 3);
	cr_expect_eq(fake.bound_nodes[1], 7);
	cr_expect_eq(fake.populates, 0, "before anything is populated");
	cr_expect_eq(grow(1, 1).os_node, 7);
}

Test(arena_fall, refusing_sandbox_still_works)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake.map_hugetlb_rc = -EINVAL;
	fake.bind_rc = -ENOSYS;
	fake.membarrier_rc = -ENOSYS;
	fake.populate_rc = -EINVAL;
	fake.advise_huge_rc = -EINVAL;
	fake.dontfork_rc = -EINVAL;
	create();
	cr_expect_eq(grow(0, 4 * MIB).backing, PCPA_BACKING_BASE);
}
