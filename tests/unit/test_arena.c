/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_arena.c - layout of a heap's address space, and every fall from the
 * wanted kind of memory to a lesser one, on an invented machine.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/arena.h"
#include "../../lib/bits.h"
#include "../support/fake_sys.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static struct pcpi_space space;
static struct pcpi_space_node_spec nodes[8];
static struct pcpi_space_spec spec;

/* One node of 256 MiB at verbosity 1; tests change what they need. */
static void setup(void)
{
	fake_sys_install();
	for (unsigned i = 0; i < 8; i++)
		nodes[i] = (struct pcpi_space_node_spec){i, 256 * MIB};
	spec = (struct pcpi_space_spec){
		.nodes = nodes, .nr_nodes = 1, .verbosity = 1};
}

static void teardown(void)
{
	if (fake_sys_mapped() > 0) {
		pcpi_space_check(&space);
		cr_expect_eq(pcpi_space_destroy(&space), 0);
	}
	cr_expect_eq(fake_sys_mapped(), 0);
	cr_expect_eq(fake.populated_bytes, 0);
}

TestSuite(arena, .init = setup, .fini = teardown);

static void create(void)
{
	cr_assert_eq(pcpi_space_create(&space, &spec), 0, "%s", fake.said);
	pcpi_space_check(&space);
}

static struct pcpi_arena grow(unsigned node, uint64_t bytes)
{
	struct pcpi_arena a;

	memset(&a, 0, sizeof(a));
	cr_assert_eq(pcpi_arena_grow(&space, node, bytes, false, &a), 0, "%s",
		     fake.said);
	pcpi_space_check(&space);
	return a;
}

/* Nothing of the kind could be had. */
static void expect_no_arena(unsigned node, uint64_t bytes, bool exact)
{
	struct pcpi_arena a;

	cr_expect_eq(pcpi_arena_grow(&space, node, bytes, exact, &a), -ENOMEM);
	pcpi_space_check(&space);
}

/* ---- Layout ------------------------------------------------------------- */

Test(arena, no_hugetlb_pages_gives_one_window_a_node)
{
	spec.nr_nodes = 3;
	create();
	cr_expect_eq(space.nr_windows, 3);
	cr_expect_eq(space.bytes, 3 * 256 * MIB);
	cr_expect_eq(1u << space.page_shift, fake.page_bytes);
	for (unsigned i = 0; i < 3; i++) {
		cr_expect_eq(space.windows[i].os_node, i);
		cr_expect_eq(space.windows[i].backing, PCPA_BACKING_THP);
		cr_expect_eq(space.windows[i].page_bytes, 2 * MIB);
	}
	cr_expect_eq(space.top_order, 9);
}

Test(arena, pools_give_windows_largest_first)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake_sys_pool(1 * GIB, 0, 1);
	spec.nr_nodes = 2;
	nodes[0].max_bytes = 3 * GIB;
	nodes[1].os_node = 5;
	create();
	cr_assert_eq(space.nr_windows, 4);
	cr_expect_eq(space.bytes, 16 * GIB, "windows are powers of two");
	cr_expect_eq(space.windows[0].page_bytes, 1 * GIB);
	cr_expect_eq(space.windows[1].page_bytes, 2 * MIB);
	cr_expect_eq(space.windows[2].backing, PCPA_BACKING_THP);
	cr_expect_eq(space.windows[3].os_node, 5);
	cr_expect_eq(space.windows[3].node, 1);
	cr_expect_eq((uintptr_t)space.base % GIB, 0);
	cr_expect_eq(space.top_order, 9, "blocks stay within 2 MiB");
}

Test(arena, surplus_pages_count_as_a_pool)
{
	fake_sys_pool(2 * MIB, 0, 0)->overcommit = 4;
	create();
	cr_expect_eq(space.nr_windows, 2);
	cr_expect_eq(grow(0, 8 * MIB).backing, PCPA_BACKING_HUGETLB);
}

Test(arena, page_larger_than_maximum_gets_no_window)
{
	fake_sys_pool(1 * GIB, 0, 4);
	create();
	cr_expect_eq(space.nr_windows, 1);
}

Test(arena, base_pages_asked_for_uses_neither_kind)
{
	fake_sys_pool(2 * MIB, 0, 10);
	spec.hugepage_bytes = fake.page_bytes;
	create();
	cr_assert_eq(space.nr_windows, 1);
	cr_expect_eq(fake.nohuges, 1);
	cr_expect_eq(grow(0, 4 * MIB).backing, PCPA_BACKING_BASE);
	cr_expect_eq(space.top_order, 9, "blocks keep the huge page's size");
	cr_expect_eq(fake.says, 0, "%s", fake.said);
}

Test(arena, odd_maximum_rounds_up_to_the_granule)
{
	nodes[0].max_bytes = 5 * MIB + 1;
	create();
	cr_expect_eq(space.nodes[0].max_bytes, 6 * MIB);
	cr_expect_eq(space.bytes, 8 * MIB);
}

Test(arena, pages_of_64_kib_scale_everything)
{
	fake.page_bytes = 64 * KIB;
	fake.unit_bytes = 32 * MIB;
	fake_sys_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
		      "536870912\n");
	nodes[0].max_bytes = 1 * GIB;
	create();
	cr_expect_eq(space.page_shift, 16);
	cr_expect_eq(space.granule_bytes, 512 * MIB);
	cr_expect_eq(space.top_order, PCPI_MAX_ORDER);
	cr_expect_eq(grow(0, 1).pages, 8192);
}

Test(arena, pages_of_16_kib_scale_everything)
{
	fake.page_bytes = 16 * KIB;
	fake_sys_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
		      "33554432\n");
	create();
	cr_expect_eq(space.page_shift, 14);
	cr_expect_eq(space.top_order, PCPI_MAX_ORDER);
	cr_expect_eq(grow(0, 1).bytes, 32 * MIB);
}

Test(arena, no_huge_page_size_known_uses_512_pages)
{
	fake_sys_file("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size",
		      NULL);
	create();
	cr_expect_eq(space.granule_bytes, 512 * fake.page_bytes);
	cr_expect_eq(space.windows[0].backing, PCPA_BACKING_BASE);
}

Test(arena, page_index_finds_window_and_address)
{
	struct pcpi_arena a;

	spec.nr_nodes = 4;
	create();
	grow(3, 2 * MIB);
	a = grow(3, 4 * MIB);
	cr_expect_eq(a.first_pfn, pcpi_space_pfn(&space, a.base));
	cr_expect_eq(pcpi_space_addr(&space, a.first_pfn), a.base);
	cr_expect_eq(pcpi_space_window(&space, a.first_pfn), &space.windows[3]);
	cr_expect_eq(pcpi_space_window(&space, a.first_pfn + a.pages - 1),
		     &space.windows[3]);
	cr_expect_eq((uint64_t)a.pages << space.page_shift, a.bytes);
}

Test(arena, sixteen_tib_is_accepted_and_more_refused)
{
	fake.own_maps_only = true;
	nodes[0].max_bytes = fake.page_bytes << 32;
	create();
	cr_expect_lt(space.windows[0].bytes, nodes[0].max_bytes,
		     "the last page number means none");
	cr_expect_eq(pcpi_space_destroy(&space), 0);
	nodes[0].max_bytes++;
	cr_expect_eq(pcpi_space_create(&space, &spec), -EINVAL);
	cr_expect_eq(fake_sys_said("2^32 pages"), 1);
	nodes[0].max_bytes = UINT64_MAX;
	cr_expect_eq(pcpi_space_create(&space, &spec), -EINVAL);
}

Test(arena, hugetlb_window_is_left_out_where_page_indices_end)
{
	fake.own_maps_only = true;
	fake_sys_pool(2 * MIB, 0, 10);
	nodes[0].max_bytes = fake.page_bytes << 32;
	create();
	cr_expect_eq(space.nr_windows, 1);
	cr_expect_eq(fake_sys_said("1 of 1 hugetlb sizes"), 1);
}

/* ---- Options that can't be ----------------------------------------------- */

Test(arena, unknown_page_size_is_refused)
{
	spec.hugepage_bytes = 3 * MIB;
	cr_expect_eq(pcpi_space_create(&space, &spec), -EINVAL);
	cr_expect_eq(fake_sys_said("hugepage_bytes=3145728"), 1);
	spec.hugepage_bytes = 1 * GIB;
	cr_expect_eq(pcpi_space_create(&space, &spec), -EINVAL);
}

Test(arena, cow_with_hugetlb_size_is_refused)
{
	fake_sys_pool(2 * MIB, 0, 10);
	spec.cow = true;
	spec.hugepage_bytes = 2 * MIB;
	cr_expect_eq(pcpi_space_create(&space, &spec), -EINVAL);
}

Test(arena, silent_heap_says_nothing)
{
	spec.verbosity = 0;
	spec.hugepage_bytes = 3 * MIB;
	cr_expect_eq(pcpi_space_create(&space, &spec), -EINVAL);
	spec.hugepage_bytes = 0;
	fake.bind_rc = -EPERM;
	create();
	grow(0, 2 * MIB);
	cr_expect_eq(fake.says, 0);
}

/* ---- Advice -------------------------------------------------------------- */

Test(arena, advice_is_given_once_a_window)
{
	fake_sys_pool(2 * MIB, 0, 4);
	create();
	for (int i = 0; i < 50; i++)
		grow(0, 2 * MIB);
	cr_expect_eq(fake.dontdumps, 2);
	cr_expect_eq(fake.dontforks, 2);
	cr_expect_eq(fake.huges, 1);
	cr_expect_eq(fake.binds, 2);
}

Test(arena, cow_is_inherited_and_never_hugetlb)
{
	fake_sys_pool(2 * MIB, 0, 10);
	spec.cow = true;
	create();
	cr_expect_eq(space.nr_windows, 1);
	cr_expect_eq(fake.dontforks, 0);
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(fake.says, 0, "its kind is no fall: %s", fake.said);
}

Test(arena, dump_leaves_pages_in_core_files)
{
	spec.dump = true;
	create();
	cr_expect_eq(fake.dontdumps, 0);
}

Test(arena, inheritable_hugetlb_pages_are_not_used)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake.dontfork_rc = -EINVAL;
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
}

/* ---- Growth -------------------------------------------------------------- */

Test(arena, arenas_follow_each_other)
{
	struct pcpi_arena a, b;

	create();
	a = grow(0, 1);
	b = grow(0, 3 * MIB);
	cr_expect_eq(a.bytes, 2 * MIB);
	cr_expect_eq(b.bytes, 4 * MIB);
	cr_expect_eq(b.base, a.base + a.bytes);
	cr_expect_eq(fake.populated_bytes, 6 * MIB);
	cr_expect_eq(space.nodes[0].used_bytes, 6 * MIB);
}

Test(arena, maximum_holds_over_all_windows)
{
	fake_sys_pool(2 * MIB, 0, 100);
	create();
	cr_expect_eq(grow(0, 200 * MIB).backing, PCPA_BACKING_HUGETLB);
	cr_expect_eq(grow(0, 200 * MIB).bytes, 56 * MIB);
	expect_no_arena(0, 1, false);
	cr_expect_eq(space.nodes[0].used_bytes, 256 * MIB);
}

Test(arena, exact_takes_all_or_nothing)
{
	struct pcpi_arena a;

	fake_sys_pool(2 * MIB, 0, 4);
	create();
	expect_no_arena(0, 257 * MIB, true);
	cr_assert_eq(pcpi_arena_grow(&space, 0, 16 * MIB, true, &a), 0);
	cr_expect_eq(a.bytes, 16 * MIB);
	cr_expect_eq(a.backing, PCPA_BACKING_THP);
	cr_expect_eq(fake.pools[0].free, 4);
}

Test(arena, large_arena_is_populated_in_parallel)
{
	nodes[0].max_bytes = 1 * GIB;
	create();
	grow(0, 64 * MIB);
	cr_expect_eq(fake.helpers, 0, "one piece is the caller's");
	grow(0, 130 * MIB);
	cr_expect_eq(fake.helpers, 2);
	grow(0, 512 * MIB);
	cr_expect_eq(fake.helpers, 4, "as many as CPUs");
	cr_expect_eq(fake.populated_bytes, 706 * MIB);
}

Test(arena, release_gives_pages_and_addresses_back)
{
	struct pcpi_arena a, b;

	fake_sys_pool(2 * MIB, 0, 2);
	create();
	a = grow(0, 4 * MIB);
	b = grow(0, 4 * MIB);
	cr_expect_eq(a.backing, PCPA_BACKING_HUGETLB);
	cr_expect_eq(b.backing, PCPA_BACKING_THP);
	cr_expect_eq(pcpi_arena_release(&space, &b), 0);
	cr_expect_eq(pcpi_arena_release(&space, &a), 0);
	cr_expect_eq(fake.populated_bytes, 0);
	cr_expect_eq(fake.committed_bytes, 0);
	cr_expect_eq(fake.pools[0].free, 2);
	cr_expect_eq(space.nodes[0].used_bytes, 0);
	cr_expect_eq(grow(0, 4 * MIB).base, a.base);
}

Test(arena, refused_release_changes_nothing)
{
	struct pcpi_arena a;

	create();
	a = grow(0, 4 * MIB);
	fake.dontneed_rc = -ENOMEM;
	cr_expect_eq(pcpi_arena_release(&space, &a), -ENOMEM);
	cr_expect_eq(space.nodes[0].used_bytes, 4 * MIB);
	pcpi_space_check(&space);
	fake.dontneed_rc = 0;
}

Test(arena, refused_unmap_can_be_repeated)
{
	create();
	fake.unmap_rc = -ENOMEM;
	cr_expect_eq(pcpi_space_destroy(&space), -ENOMEM);
	cr_expect_eq(fake_sys_mapped(), 2);
	fake.unmap_rc = 0;
	cr_expect_eq(pcpi_space_destroy(&space), 0);
	cr_expect_eq(pcpi_space_destroy(&space), 0, "of nothing is nothing");
}

/* ---- Falls: hugetlb to transparent ---------------------------------------- */

Test(arena, large_pages_come_first_then_smaller_then_transparent)
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

Test(arena, size_asked_for_is_used_alone_and_rounds_up)
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

Test(arena, size_asked_for_is_used_when_its_pages_come_later)
{
	struct fake_pool *pool = fake_sys_pool(2 * MIB, 0, 0);

	spec.hugepage_bytes = 2 * MIB;
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	pool->total = pool->free = 1;
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_HUGETLB);
}

Test(arena, no_pool_in_the_kernel_is_said)
{
	create();
	grow(0, 2 * MIB);
	grow(0, 2 * MIB);
	cr_expect_eq(fake_sys_said("no hugetlb pages to be seen"), 1);
	cr_expect_eq(fake.says, 1);
}

Test(arena, refused_hugetlb_mapping_falls)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake.map_hugetlb_rc = -EINVAL;
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	grow(0, 2 * MIB);
	cr_expect_eq(fake_sys_said("MAP_HUGETLB"), 1);
	cr_expect_eq(fake.says, 1);
}

Test(arena, hugetlb_group_limit_falls)
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

Test(arena, missing_populate_call_avoids_hugetlb_and_touches)
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

Test(arena, pool_that_shrinks_meanwhile_gives_a_smaller_arena)
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

Test(arena, promised_pages_are_left_alone)
{
	struct fake_pool *pool = fake_sys_pool(2 * MIB, 0, 10);

	create();
	pool->promised = 8;
	cr_expect_eq(grow(0, 20 * MIB).bytes, 4 * MIB);
}

/* ---- Falls: transparent to base ------------------------------------------- */

Test(arena, thp_never_falls_to_base_pages)
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

Test(arena, refused_thp_advice_falls_to_base_pages)
{
	fake.advise_huge_rc = -EINVAL;
	create();
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_BASE);
	cr_expect_eq(space.windows[0].page_bytes, fake.page_bytes);
	cr_expect_eq(fake_sys_said("no transparent huge pages"), 1);
}

Test(arena, transparent_size_asked_for_is_no_fall)
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

Test(arena, memory_group_clamps_with_a_margin)
{
	box("134217728\n", "67108864\n"); /* 128 MiB, half used */
	create();
	cr_expect_eq(grow(0, 200 * MIB).bytes, 60 * MIB);
	cr_expect_eq(fake_sys_said("raise memory.max"), 1);
	box("134217728\n", "132120576\n");
	expect_no_arena(0, 2 * MIB, false);
	cr_expect_eq(fake_sys_said("raise memory.max"), 1, "once");
}

Test(arena, memory_group_does_not_clamp_hugetlb)
{
	fake_sys_pool(2 * MIB, 0, 10);
	box("134217728\n", "134217728\n");
	create();
	cr_expect_eq(grow(0, 20 * MIB).bytes, 20 * MIB);
}

Test(arena, exact_beyond_the_group_touches_nothing)
{
	box("134217728\n", "67108864\n");
	create();
	expect_no_arena(0, 100 * MIB, true);
	cr_expect_eq(fake.commits, 0);
}

Test(arena, what_another_grower_takes_is_not_counted_twice)
{
	box("134217728\n", "67108864\n");
	create();
	space.pending_bytes = 50 * MIB;
	cr_expect_eq(grow(0, 200 * MIB).bytes, 10 * MIB);
	cr_expect_eq(space.pending_bytes, 50 * MIB);
	space.pending_bytes = 0;
}

Test(arena, machine_without_memory_clamps)
{
	fake_sys_file("/proc/meminfo", "MemAvailable: 65536 kB\n");
	create();
	cr_expect_eq(grow(0, 200 * MIB).bytes, 60 * MIB);
	cr_expect_eq(fake_sys_said("the machine's memory leaves"), 1);
}

Test(arena, memory_that_ends_while_populating_gives_a_smaller_arena)
{
	fake.memory_left = 70 * MIB;
	create();
	cr_expect_eq(grow(0, 256 * MIB).bytes, 64 * MIB);
	cr_expect_eq(fake.populated_bytes, 64 * MIB);
	cr_expect_eq(fake.memory_left, 6 * MIB);
}

Test(arena, no_memory_at_all_gives_everything_back)
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

Test(arena, refused_commit_gives_a_smaller_arena)
{
	fake.commit_left = 20 * MIB;
	create();
	cr_expect_eq(grow(0, 64 * MIB).bytes, 16 * MIB);
	cr_expect_eq(fake_sys_said("sysctl vm.overcommit_memory=0"), 1);
}

/* ---- Limits of the reservation -------------------------------------------- */

Test(arena, default_maximum_follows_address_space)
{
	spec.max_is_default = true;
	nodes[0].max_bytes = 64 * GIB;
	fake.address_space = 1 * GIB;
	create();
	cr_expect_eq(space.bytes, 512 * MIB);
	cr_expect_eq(space.nodes[0].max_bytes, 512 * MIB);
	cr_expect_eq(fake_sys_said("RLIMIT_AS"), 1, "%s", fake.said);
}

Test(arena, default_maximum_follows_the_memory_group)
{
	box("134217728\n", "0\n");
	spec.max_is_default = true;
	nodes[0].max_bytes = 64 * GIB;
	create();
	cr_expect_eq(space.nodes[0].max_bytes, 128 * MIB);
	cr_expect_eq(fake.says, 0);
}

Test(arena, default_maximum_halves_where_page_indices_end)
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

Test(arena, maximum_asked_for_beyond_address_space_names_the_limit)
{
	fake.address_space = 100 * MIB;
	cr_expect_eq(pcpi_space_create(&space, &spec), -ENOMEM);
	cr_expect_eq(fake_sys_said("max_bytes=268435456"), 1);
	cr_expect_eq(fake_sys_said("RLIMIT_AS (ulimit -v)"), 1);
}

Test(arena, locked_memory_limit_is_named)
{
	fake.reserve_rc = -EAGAIN;
	cr_expect_eq(pcpi_space_create(&space, &spec), -ENOMEM);
	cr_expect_eq(fake_sys_said("RLIMIT_MEMLOCK"), 1);
}

Test(arena, tight_address_space_drops_hugetlb_windows_first)
{
	fake_sys_pool(2 * MIB, 0, 10);
	fake.address_space = 300 * MIB;
	create();
	cr_expect_eq(space.nr_windows, 1);
	cr_expect_eq(grow(0, 2 * MIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(fake.says, 1, "%s", fake.said);
}

/* ---- Binding -------------------------------------------------------------- */

Test(arena, windows_are_bound_to_their_os_node)
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

Test(arena, refused_binding_is_said_once)
{
	fake.bind_rc = -EPERM;
	spec.nr_nodes = 3;
	create();
	cr_expect_eq(fake_sys_said("can't be bound to node 0"), 1);
	cr_expect_eq(fake.says, 1);
	grow(2, 2 * MIB);
}

Test(arena, missing_binding_is_not_said)
{
	fake.bind_rc = -ENOSYS;
	create();
	cr_expect_eq(fake.says, 0);
}

Test(arena, refusing_sandbox_still_works)
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
