/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_arena.c - layout of a heap's address space, options, advice, growth and
 * release, on an invented machine.
 */
#include "../support/arena_fixture.h"

TestSuite(arena, .init = setup, .fini = teardown);

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

static char *bound_from, *bound_to;
static int (*populate)(void *, size_t);
static unsigned populates_unbound;
static size_t populates_most;

static int bind_noted(void *addr, size_t bytes, unsigned os_node,
		      enum pcpi_binding how)
{
	(void)how;
	(void)os_node;
	if (bound_from == NULL)
		bound_from = addr;
	bound_to = (char *)addr + bytes;
	return 0;
}

static int populate_noted(void *addr, size_t bytes)
{
	populates_unbound += (char *)addr < bound_from ||
			     (char *)addr + bytes > bound_to;
	populates_most = pcpi_max(populates_most, bytes);
	return populate(addr, bytes);
}

/* Or the pages would be on the node of whoever populates; in pieces, for threads. */
Test(arena, memory_is_bound_before_it_is_populated)
{
	struct pcpi_sys table = *pcpi_sys;
	const struct pcpi_sys *before = pcpi_sys;

	populate = table.populate;
	table.populate = populate_noted;
	table.bind = bind_noted;
	pcpi_sys = &table;
	fake_sys_pool(2 * MIB, 0, 100);
	nodes[0].max_bytes = 1 * GIB;
	create();
	cr_expect_eq(grow(0, 256 * MIB).backing, PCPA_BACKING_HUGETLB);
	cr_expect_eq(grow(0, 256 * MIB).backing, PCPA_BACKING_THP);
	cr_expect_eq(populates_unbound, 0);
	cr_expect_gt(populates_most, 0);
	cr_expect_leq(populates_most, 128 * MIB);
	pcpi_sys = before;
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
	cr_expect_eq(pcpi_arena_give_back(&space, &b), 0);
	cr_expect_eq(pcpi_arena_give_back(&space, &a), 0);
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
	cr_expect_eq(pcpi_arena_give_back(&space, &a), -ENOMEM);
	cr_expect_eq(space.nodes[0].used_bytes, 4 * MIB);
	pcpi_space_check(&space);
	fake.dontneed_rc = 0;
}

Test(arena, refused_unmap_can_be_repeated)
{
	create();
	fake.unmap_rc = -ENOMEM;
	cr_expect_eq(pcpi_space_destroy(&space), -ENOMEM);
	cr_expect_eq(fake_sys_mapped(), 3);
	fake.unmap_rc = 0;
	cr_expect_eq(pcpi_space_destroy(&space), 0);
	cr_expect_eq(pcpi_space_destroy(&space), 0, "of nothing is nothing");
}
